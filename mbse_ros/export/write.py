# SPDX-License-Identifier: Apache-2.0
"""Export of a model as plain C (rates, transition step, position problem, sensors, energy) with what it has to
reproduce: inputs and outputs along a motion, by the virtual machine."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np

from ..dynamics.model import Model
from ..dynamics.sensor_equations import state_sensors
from ..errors import SettingError, check_choice
from . import templates as text
from . import templates_of_the_test as beside
from .folder import FORMAT, MANIFEST, check_earlier, render, wrapped, write_files
from .functions import (
    COORDINATE_RATES,
    LARGEST_ITERATIONS,
    STEP_ITERATIONS,
    TOLERANCE,
    ExportedFunctions,
    Generated,
    Item,
    Names,
    comment,
    export_names,
)

COUNT = 6           # recorded states
BETWEEN = 5         # steps from one to the next
SPEED = 0.5         # m/s or rad/s, added to the start's, so that no term is zero
LOAD = 10.0         # N or N m, the largest input
ASIDE = 1e-3        # m or rad, of the guess of the position problem
SMALLEST = 1e-3     # outputs smaller than this are compared as if they were as large
ORDERS = ('exact', '1', '2', '3', '4')
SERIES = {'exact': 'F = exp(A dt), G = int_0^dt exp(A s) ds, exact for any dt.'}
ARGUMENTS = {       # of the generated functions: inputs, outputs
    'state': (('q', 'zd', 'u', 't', 'p'), ('zdd', 'A', 'B', 'qdd', 'lam', 'qd')),
    'newton': (('q', 't', 'p'), ('q_next', 'size')), 'velocity': (('q', 'zd', 't', 'p'), ('qd',)),
    'energy': (('q', 'zd', 'u', 't', 'p'), ('energies',)), 'sensors': (('q', 'zd', 'u', 't', 'p'), ('h', 'H'))}


@dataclass(frozen=True)
class ReferenceRecord:
    """``inputs``: t, X, q, u and a guess of q in one row; ``outputs``: f, A, B, qdd, qd, energy, h, H, q, X_next,
    q_next, F in one row, in the order of the test program."""

    inputs: np.ndarray
    outputs: np.ndarray


def records(functions: ExportedFunctions, dt: float) -> list[ReferenceRecord]:
    """Records along a motion from the start with steps ``dt``, s; raises SettingError where a step fails."""
    model, g = functions.model, len(functions.model.z)
    q, t = model.start.q, model.start.t
    X = np.concatenate([q[model.z], model.start.qd[model.z] + SPEED * np.sin(1.0 + np.arange(g))])
    model.partition().rates(q, X[g:])       # at a dead point: the error that says so
    found = []
    for k in range(COUNT * BETWEEN):
        u = LOAD * np.sin(0.3 * k + np.arange(len(model.inputs)))
        with np.errstate(over='ignore', invalid='ignore'):      # of a step that is much too long
            fresh, q_next, residual, F = functions.step(X, q, u, t, dt)
        scale = max(1.0, float(np.max(np.abs(q_next))) ** 2)
        if not (np.isfinite(fresh).all() and residual <= TOLERANCE * scale):
            raise SettingError('dt', dt, f'a step that the mechanism can take at t = {t:.6g} s, X = {X.tolist()}')
        if k % BETWEEN == 0:
            found.append(_record(functions, X, q, u, t, [fresh, q_next, F]))
        X, q, t = fresh, q_next, t + dt
    return found


def _record(functions: ExportedFunctions, X: np.ndarray, q: np.ndarray, u: np.ndarray, t: float,
            step: list[np.ndarray]) -> ReferenceRecord:
    g = len(functions.z)
    guess = q + ASIDE * np.sin(2.0 + np.arange(len(q)))
    guess[functions.z] = X[:g]
    f, A, B, qd, qdd = functions.rates(q, X[g:], u, t)
    energy, = functions.call('energy', q, X[g:], u, [t])
    sensors = functions.call('sensors', q, X[g:], u, [t]) if 'sensors' in functions.functions else ()
    closed, _ = functions.position(guess, t)
    outputs = [f, A, B, qdd, qd, energy, *sensors, closed, *step]
    return ReferenceRecord(np.concatenate([[t], X, q, u, guess]), np.concatenate([item.ravel() for item in outputs]))


@dataclass(frozen=True)
class Export:
    """What was written: ``folder``, ``files`` in it, ``names`` of the vectors; constraints ``redundant``, left out."""

    folder: Path
    files: tuple[str, ...]
    names: Names
    redundant: tuple[str, ...] = ()

    def summary(self) -> list[str]:
        """What there is, and how to test it, a line each."""
        n = self.names
        left = [f'left out, as other constraints imply them: {", ".join(self.redundant)}'] if self.redundant else []
        return [f'wrote {self.folder}: {n.prefix}.h, {len(self.files)} files; {len(n.q)} coordinates, state of '
                f'{2 * len(n.z)} ({", ".join(item.name for item in n.z)} and rates), {len(n.u)} inputs, '
                f'{len(n.h)} sensor channels, {len(n.p)} parameters', *left,
                f'test: cd {self.folder} && cc -std=c99 -O2 *.c -lm -o test_model && ./test_model']


def export_c(model: Model, folder: str | Path, dt: float = 1e-3, order: str = 'exact') -> Export:
    """Write a model as C99 to a folder, which is made.

    ``dt``, s: of the recorded steps and the macro DT; ``order`` of the exponential integration, 'exact' or '1' to '4'.
    The same model gives the same bytes. Raises SettingError: a folder with other files in it, a model without degrees
    of freedom, a step that cannot be taken; OSError.
    """
    folder = Path(folder)
    check_earlier(folder)
    check_choice('order', order, ORDERS)
    if not (np.isfinite(dt) and dt > 0):
        raise SettingError('dt', dt, 'a time step above 0 s')
    if not model.z:
        raise SettingError('mechanism', model.description.name, 'a mechanism that its drivers do not move completely')
    files, names = _files(model, dt, order)
    write_files(folder, files)
    return Export(folder, tuple(sorted(files)), names, tuple(model.redundant))


def _files(model: Model, dt: float, order: str) -> tuple[dict[str, str], Names]:
    """Contents by name."""
    sensors = state_sensors(model.partition().system)
    names = export_names(model, sensors)
    functions = ExportedFunctions(model, order)
    recorded = records(functions, dt)
    generated = functions.generated(names.prefix)
    series = SERIES.get(order) or f'F = I + A G, G = dt sum over k = 0 to {order} of (A dt)^k / (k + 1)!.'
    words = _words(model, names, generated, dt, order, series)
    words |= {'nh1': _or_one(names.h), 'transition': text.EXACT if order == 'exact' else text.SERIES}
    shown = {True: (text.SENSORS_H, text.SENSORS_C, beside.SENSORS_TEST), False: ('', '', '')}[bool(names.h)]
    files = {
        f'{names.prefix}.h': render(text.HEADER, words | {'macros': _macros(names), 'sensors': shown[0]}),
        f'{names.prefix}.c': render(text.MODEL, words | {
            'data': _data(model, names, sensors.stddev), 'calls': _calls(generated), 'sensors': shown[1],
            'prototypes': ''.join(render(text.PROTOTYPE, {'function': name}) for name in generated.work)}),
        f'{names.prefix}_casadi.c': render(text.GENERATED_HEAD, words) + generated.source.rstrip() + '\n',
        'test_model.c': render(beside.TEST, words | _recorded(recorded) | {
            'sensors': shown[2], 'sensor_arrays': ', h[NH], H[NH * NX]' if names.h else ''}),
        'CMakeLists.txt': render(beside.CMAKE, words), 'README.md': render(beside.README, words | _readme(names))}
    files[MANIFEST] = _manifest(model, names, [*files, MANIFEST], dt, order)
    return files, names


def _words(model: Model, names: Names, generated: Generated, dt: float, order: str, series: str) -> dict[str, object]:
    """What the templates have in common."""
    source = comment(model.description.source)
    g, n = len(names.z), len(names.q)
    return {
        'what': f'Mechanism {comment(model.description.name)}', 'name': names.prefix, 'NAME': names.macro,
        'source': '\n * '.join(textwrap.wrap(source, 110)) if source else 'No source given.', 'series': series,
        'nq': n, 'nz': g, 'nx': 2 * g, 'nu': len(names.u), 'nh': len(names.h), 'np': len(names.p), 'order': order,
        'nu1': _or_one(names.u), 'np1': _or_one(names.p), 'nb1': '@NAME@_NX * @NAME@_NU' if names.u else '1',
        'dt': repr(float(dt)), 'step': STEP_ITERATIONS, 'most': LARGEST_ITERATIONS, 'tolerance': repr(TOLERANCE),
        'pad': ' ' * len(names.prefix), 'smallest': repr(SMALLEST), 'stack': _stack(generated, names)}


def _or_one(items: Sequence[Item]) -> int:
    """Length of an array that C wants to have at least one element."""
    return max(1, len(items))


def _macros(names: Names) -> str:
    """Places of all names."""
    return ''.join(f'/* {title} */\n' + ''.join(
        f'#define {item.macro} {i} /* {item.name}, {item.unit} */\n' for i, item in enumerate(items)) + '\n'
        for title, items in names.groups.items() if items)


def _data(model: Model, names: Names, stddev: np.ndarray) -> str:
    """Constant arrays."""
    start, z = model.start, model.z
    numbers = {'parameters[]': model.system.values.mean, 'sensor_stddev[]': stddev, 'start_q[]': start.q,
               'start_X[]': np.concatenate([start.q[z], start.qd[z]])}
    words = {'coordinate_names[]': names.q, 'input_names[]': names.u, 'sensor_names[]': names.h,
             'parameter_names[]': names.p}
    lines = [_array('const int', 'independent[]', map(str, z), names.prefix)]
    lines += [_array('const double', key, map(_number, values if len(values) else [0.0]), names.prefix)
              for key, values in numbers.items()]
    lines += [_array('const char *const', key, [f'"{item.name}"' for item in items] or ['""'], names.prefix)
              for key, items in words.items()]
    return '\n'.join(lines) + '\n'


def _array(kind: str, name: str, values: Iterable[str], prefix: str) -> str:
    return f'{kind} {prefix}_{name} = {{\n{wrapped(values)}}};\n'


def _number(value: float) -> str:
    """Shortest text that is read as the same number."""
    return repr(float(value))


def _calls(generated: Generated) -> str:
    """Plain functions round the generated ones, whose arguments are arrays of pointers."""
    calls = []
    for name, work in generated.work.items():
        inputs, outputs = ARGUMENTS[name]
        arguments = [('double t' if item == 't' else f'const double *{item}') for item in inputs]
        arguments += [f'double *{item}' for item in outputs]
        places = [f'arg[{i}] = {"&t" if item == "t" else item};' for i, item in enumerate(inputs)]
        places += [f'res[{i}] = {item};' for i, item in enumerate(outputs)]
        lines = textwrap.wrap(', '.join(arguments), 110 - len(name))
        sizes = {key: max(1, size) for key, size in zip(('sz_arg', 'sz_res', 'sz_iw', 'sz_w'), work)}
        calls.append(render(text.CALL, sizes | {
            'function': name, 'arguments': ('\n' + ' ' * (17 + len(name))).join(lines), 'set': '\n  '.join(places)}))
    return '\n'.join(calls)


def _recorded(recorded: list[ReferenceRecord]) -> dict[str, object]:
    """Inputs and outputs of the test program."""
    return {'records': len(recorded), 'outputs_size': recorded[0].outputs.size,
            **{key: ',\n'.join('  {\n' + wrapped(map(_number, getattr(record, key)), '    ') + '  }'
                               for record in recorded) + '\n' for key in ('inputs', 'outputs')}}


def _readme(names: Names) -> dict[str, object]:
    tables = []
    for title, items in names.groups.items():
        title += ' (their rates follow them in X)' * (items is names.z)
        rows = ''.join(f'| {i} | `{item.name}` | {item.unit} | `{item.macro}` |\n' for i, item in enumerate(items))
        tables.append(f'### {title}\n\n' + ('| place | name | unit | macro |\n|---|---|---|---|\n' + rows if items
                                            else 'none\n'))
    return {'tables': '\n'.join(tables).rstrip(), 'u': 'u' if names.u else 'NULL',
            'use_u': 'double u[@NAME@_NU] = {0.0};' if names.u else '/* this mechanism has no inputs */'}


def _manifest(model: Model, names: Names, files: list[str], dt: float, order: str) -> str:
    vectors = {key: [{'name': item.name, 'unit': item.unit, 'macro': item.macro} for item in getattr(names, key)]
               for key in 'qzuhp'}
    rates = [COORDINATE_RATES[item.unit] for item in names.z]
    manifest = {'format': FORMAT, 'mechanism': model.description.name, 'prefix': names.prefix, 'files': sorted(files),
            'dt': dt, 'order': order, 'vectors': vectors, 'rate_units': rates,
            'parameters': list(model.system.values.mean), 'redundant': list(model.redundant)}
    return json.dumps(manifest, indent=2, ensure_ascii=False) + '\n'


def _stack(generated: Generated, names: Names) -> int:
    """About what the functions need, kB: work arrays, local numbers, the wrappers' arrays."""
    arrays = max(8 * (a + r + w) + 4 * iw + 8 * local for (a, r, iw, w), local in
                 zip(generated.work.values(), generated.locals.values()))
    x = 2 * len(names.z)
    wrappers = 8 * (6 * x * x + x * len(names.u) + len(names.h) * (x + 1) + 5 * len(names.q) + 4 * x)
    return ceil((arrays + wrappers) / 1024) + 1
