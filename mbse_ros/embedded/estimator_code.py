# SPDX-License-Identifier: Apache-2.0
"""Generated C of a machine's estimator: a step of the observer, a sample of the mass, a step of Newton's method."""

from __future__ import annotations

import re
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..compiled.dense import dense
from ..export.functions import shared, work_sizes
from ..machine import Machine
from ..payload.gates import GATE_NUMBERS
from ..payload.inverse_dynamics import sample_step

NUMBER = re.compile(r'(?<![\w.])(\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?![\w.])')
OF_LIBM = re.compile(r'(?<!\w)(sqrt|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|exp|log|log1p|expm1|pow|fabs|fmax|'
                     r'fmin|fmod|floor|ceil|hypot|copysign|erf)\(')
SMALLEST, LARGEST = 1e-37, 1e+30        # of single precision, with room for a product


@dataclass(frozen=True)
class EstimatorCode:
    """``source`` of all functions and the lengths of the work arrays, enough for each: arguments, results, integers,
    numbers."""

    source: str
    names: tuple[str, ...]
    work: tuple[int, int, int, int]


def estimator_functions(machine: Machine, observer: ca.Function) -> dict[str, ca.Function]:
    """``observer (x, u, p)``, its step; ``sample (x, X, P, numbers, gates)`` of the mass, with derivatives
    by the numbers that are uncertain alone; ``close (dependent, z, numbers)`` where there are dependent coordinates."""
    found = {'observer': observer, 'sample': _sample(machine)}
    if machine.system.dependent:
        dependent, z = ca.SX.sym('dependent', len(machine.system.dependent)), ca.SX.sym('z', len(machine.coordinates))
        numbers = machine.parameters.symbol
        found['close'] = ca.Function('close', [dependent, z, numbers], [
            machine.closed(dependent, z, 1)[machine.system.dependent]])
    return found


def _sample(machine: Machine) -> ca.Function:
    """``sample_step`` with its numbers one by one."""
    step, p = sample_step(machine), machine.parameters
    kind = ca.SX if step.is_a('SXFunction') else ca.MX
    n, k = step.size1_in(1), len(p.names)
    x, X, P = kind.sym('x', step.size1_in(0)), kind.sym('X', n), kind.sym('P', n * n)
    numbers, gates = kind.sym('numbers', k), kind.sym('gates', GATE_NUMBERS + 1)
    after, y = step(x, X, ca.vertcat(P, gates, numbers))
    return ca.Function('sample', [x, X, P, numbers, gates], [after, ca.vertcat(y[:2], _mixing(machine) @ y[2:-1],
                                                                                y[-1])], {'cse': True})


def _mixing(machine: Machine) -> ca.DM:
    """Takes the derivatives by all numbers to those by the uncertain ones, which errors in common count once."""
    p = machine.parameters
    some = np.flatnonzero(p.stddev)
    mixed = p.factor() / p.stddev if p.correlated else np.eye(len(p.names))
    return ca.sparsify(ca.DM(mixed.T[some]))


def generated(functions: dict[str, ca.Function], prefix: str, single: bool) -> EstimatorCode:
    """C of the functions, named ``<prefix>_casadi_<function>``, in double or single precision."""
    options = {'casadi_int': 'int', 'with_export': False, **({'casadi_real': 'float'} if single else {})}
    generator = ca.CodeGenerator(f'{prefix}_generated', options)
    named = [dense(function, f'{prefix}_casadi_{name}') for name, function in functions.items()]
    for function in named:
        generator.add(function)
    source = shared(generator.dump())
    sizes = [work_sizes(source, function) for function in named]
    work = tuple(max(1, max(column)) for column in zip(*sizes))
    return EstimatorCode(single_precision(source) if single else source, tuple(functions), work)


def single_precision(source: str) -> str:
    """The same with numbers and functions of libm in single precision; numbers beyond its range are at its ends."""
    return OF_LIBM.sub(r'\1f(', NUMBER.sub(_single, source))


def _single(found: re.Match[str]) -> str:
    value = float(found[0])
    if value == 0.0 or SMALLEST <= value <= LARGEST:
        return f'{found[0]}f'
    return f'{min(max(value, SMALLEST), LARGEST)!r}f'
