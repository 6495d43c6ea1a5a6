# SPDX-License-Identifier: Apache-2.0
"""A CasADi function as C with NumPy's memory layout: dense, row by row, under a name that cannot collide; and the check
of the arrays that it is given.

CasADi copies number by number and calls the C library for the larger and smaller of two numbers. Its small functions,
which a step calls hundreds of times, are written so that a compiler makes the most of them. The results are those of
the virtual machine to the last bit: of a NaN and a number the number, and of two zeros the first. That is how it is
built for x86-64; elsewhere larger and smaller stay calls.
"""

from __future__ import annotations

import re
from math import prod
from typing import Any

import casadi as ca
import numpy as np

from . import lanes
from .cache import code_identity

FASTER = {
    'copy': '''void casadi_copy(const casadi_real* x, casadi_int n, casadi_real* y) {
  if (y && n > 0) {
    if (x) __builtin_memmove(y, x, n * sizeof(casadi_real));
    else __builtin_memset(y, 0, n * sizeof(casadi_real));
  }
}
''',
    **{name: f'''static inline casadi_real casadi_{name}(casadi_real x, casadi_real y) {{
#ifdef __x86_64__
  return x != x || x {sign} y ? y : x;
#else
  return {name}(x, y);
#endif
}}
''' for name, sign in (('fmax', '<'), ('fmin', '>'))}}
_DEFINITION = re.compile(r'^(?:void|casadi_real) casadi_(\w+)\([^)]*\) \{\n.*?^\}\n', re.S | re.M)
WRITERS = ('compiled',)       # where the code is that writes C
DOUBLE = np.dtype(np.float64)


def with_fast_small_functions(source: str) -> str:
    """C source of CasADi with these functions instead of its own."""
    return _DEFINITION.sub(lambda match: FASTER.get(match[1], match[0]), source)


def dense(function: ca.Function, name: str) -> ca.Function:
    """The function with dense inputs and outputs whose buffers are C-ordered arrays.

    CasADi stores column by column: a matrix (r, c) becomes its transpose (c, r), vectors stay; where the function is
    one of scalar operations (SX) this costs nothing. Entries outside the sparsity of an input are ignored, those of
    an output are 0. ``name`` needs a prefix: a C function called ``step`` binds to an old symbol of glibc.
    """
    symbolic = ca.SX if function.is_a('SXFunction') else ca.MX
    symbols, arguments = [], []
    for i in range(function.n_in()):
        rows, columns = function.size_in(i)
        matrix = is_matrix((rows, columns))
        symbol = symbolic.sym(f'i{i}', *((columns, rows) if matrix else (rows, columns)))
        symbols.append(symbol)
        arguments.append(symbol.T if matrix else symbol)
    results = [ca.densify(result) for result in function.call(arguments, True, False)]
    return ca.Function(name, symbols, [result.T if is_matrix(result.shape) else result for result in results])


def is_matrix(shape: tuple[int, int]) -> bool:
    """Whether the order of storage matters: more than one row and more than one column."""
    return shape[0] > 1 and shape[1] > 1


def array_shape(shape: tuple[int, int]) -> tuple[int, ...]:
    """NumPy shape of a CasADi shape: (n,) of a column (n, 1), else unchanged."""
    return (shape[0],) if shape[1] == 1 else shape


def c_source(*functions: ca.Function, in_lanes: bool = True) -> str:
    """Generated C of functions; doubles, ``long long`` integers; ``in_lanes``: see ``lanes``."""
    generator = ca.CodeGenerator('mbse_generated', {})
    for function in functions:
        generator.add(function)
    source = with_fast_small_functions(generator.dump())
    return lanes.with_lanes(source) if in_lanes else source


def made_of(function: ca.Function, in_lanes: bool = True) -> str:
    """All that ``c_source`` of a function follows from, in a tenth of its time: the function and what writes the C."""
    chosen = (lanes.LEAST, lanes.LONGEST) if in_lanes else None
    return f'{function.serialize()} {code_identity(*WRITERS)} {chosen}'


def fitted(array: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """The numbers as float64 of the shape; a vector may come as a scalar, 1-D, row or column. Raises ValueError."""
    if type(array) is np.ndarray and array.shape == shape and array.dtype is DOUBLE:
        return array
    result = np.asarray(array)
    if result.dtype.kind not in 'fiub':
        raise ValueError(f'{what}: got dtype {result.dtype}, expected real numbers')
    as_vector = result.size == max(result.shape, default=1) == max(shape, default=1) == prod(shape)
    if result.shape != shape and not as_vector:
        raise ValueError(f'{what}: got shape {result.shape}, expected {shape}')
    return result.astype(DOUBLE, copy=False).reshape(shape)


def checked(array: np.ndarray, shape: tuple[int, ...], what: str, writable: bool = False) -> None:
    """ValueError unless the array is C-contiguous float64 of the shape (and writable, if asked)."""
    if type(array) is not np.ndarray or array.dtype is not DOUBLE or array.shape != shape:
        got = f'{array.dtype} {array.shape}' if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f'{what}: got {got}, expected a float64 array of shape {shape}')
    flags = array.flags
    if not flags.c_contiguous or (writable and not flags.writeable):
        raise ValueError(f'{what}: must be C-contiguous{" and writable" if writable else ""}')
