# SPDX-License-Identifier: Apache-2.0
"""A symbolic function evaluated with complex numbers: derivatives good to rounding, without any rule of CasADi's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import casadi as ca
import numpy as np

STEP = 1e-30


def _side(pick: Callable[[bool], bool]) -> Callable[[complex, complex], complex]:
    """One of two numbers, chosen by their real parts."""
    return lambda a, b: a if pick(a.real >= b.real) else b


def _atan2(y: complex, x: complex) -> complex:
    """To first order in the imaginary parts."""
    y, x = complex(y), complex(x)
    return complex(np.arctan2(y.real, x.real), (x.real * y.imag - y.real * x.imag) / (x.real ** 2 + y.real ** 2))


RULES: dict[int, Callable] = {
    ca.OP_ASSIGN: lambda a: a, ca.OP_NEG: lambda a: -a, ca.OP_SQ: lambda a: a * a, ca.OP_TWICE: lambda a: 2 * a,
    ca.OP_INV: lambda a: 1 / a, ca.OP_SQRT: np.sqrt, ca.OP_SIN: np.sin, ca.OP_COS: np.cos, ca.OP_TANH: np.tanh,
    ca.OP_ADD: lambda a, b: a + b, ca.OP_SUB: lambda a, b: a - b, ca.OP_MUL: lambda a, b: a * b,
    ca.OP_DIV: lambda a, b: a / b, ca.OP_FABS: lambda a: a if a.real >= 0 else -a,
    ca.OP_SIGN: lambda a: np.sign(a.real),
    ca.OP_FMAX: _side(lambda first: first), ca.OP_FMIN: _side(lambda first: not first),
    ca.OP_LT: lambda a, b: float(a.real < b.real), ca.OP_LE: lambda a, b: float(a.real <= b.real),
    ca.OP_EQ: lambda a, b: float(a.real == b.real), ca.OP_NE: lambda a, b: float(a.real != b.real),
    ca.OP_NOT: lambda a: float(not a.real), ca.OP_AND: lambda a, b: float(bool(a.real) and bool(b.real)),
    ca.OP_OR: lambda a, b: float(bool(a.real) or bool(b.real)),
    ca.OP_IF_ELSE_ZERO: lambda a, b: b if a.real else 0.0,
    ca.OP_ATAN2: _atan2,
    ca.OP_COPYSIGN: lambda a, b: a if (a.real >= 0) == (not np.signbit(np.real(b))) else -a,
}


@lru_cache(64)
def instructions(function: ca.Function) -> list[tuple[int, list[int], list[int], float]]:
    """Operation, places it writes, places it reads, constant; asked for once, since each question to CasADi takes
    longer than the operation."""
    operations = [function.instruction_id(k) for k in range(function.n_instructions())]
    return [(operation, function.instruction_output(k), function.instruction_input(k),
             function.instruction_constant(k) if operation == ca.OP_CONST else 0.0)
            for k, operation in enumerate(operations)]


def evaluate(function: ca.Function, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs of an SX function, dense, complex; columns are 1-D."""
    inputs = [np.asarray(a, dtype=complex).ravel(order='F') for a in arguments]
    inputs = [a[function.sparsity_in(i).find()] for i, a in enumerate(inputs)]
    work = np.zeros(function.sz_w(), dtype=complex)
    found = [np.zeros(function.nnz_out(i), dtype=complex) for i in range(function.n_out())]
    for operation, into, out_of, constant in instructions(function):
        if operation == ca.OP_CONST:
            work[into[0]] = constant
        elif operation == ca.OP_INPUT:
            work[into[0]] = inputs[out_of[0]][out_of[1]]
        elif operation == ca.OP_OUTPUT:
            found[into[0]][into[1]] = work[out_of[0]]
        else:
            work[into[0]] = RULES[operation](*(work[i] for i in out_of))
    return [_dense(function.sparsity_out(i), values) for i, values in enumerate(found)]


def _dense(sparsity: ca.Sparsity, values: np.ndarray) -> np.ndarray:
    rows, columns = sparsity.get_triplet()
    full = np.zeros(sparsity.shape, dtype=complex)
    full[rows, columns] = values
    return full[:, 0] if sparsity.is_column() else full


def derivative(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Jacobian (..., n) of ``f`` at ``x`` (n,), f given on complex numbers."""
    x = np.asarray(x, dtype=float)
    columns = [np.imag(f(x + 1j * STEP * unit)) / STEP for unit in np.eye(len(x))]
    return np.stack(columns, axis=-1)


def directional(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Derivative of ``f`` at ``x`` along a direction (n,)."""
    return np.imag(f(np.asarray(x) + 1j * STEP * np.asarray(direction))) / STEP
