# SPDX-License-Identifier: Apache-2.0
"""Export of a machine's observer and payload estimator as plain C, with recorded ticks.

The generated part: a step of the observer, a sample of the mass, a step of Newton's method.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from pathlib import Path

import casadi as ca
import numpy as np

from ..compiled.dense import dense
from ..description.model import fingerprint
from ..errors import SettingError
from ..estimators.hydraulic_observer import HydraulicObserver
from ..estimators.hydraulic_sensors import variances
from ..export.folder import ESTIMATOR, MANIFEST, check_earlier, render, wrapped, write_files
from ..export.functions import shared, work_sizes
from ..machine import Machine
from ..machine.equations import check_weighs
from ..payload.gates import GATE_NUMBERS
from ..payload.inverse_dynamics import sample_step
from ..version import __version__
from .record import Recorded, record
from .tables import LARGEST_NIS, EstimatorSetup, number_macros, number_tables, place_tables, started
from .template_header import CMAKE, HEADER, README, TEST
from .template_observer import OBSERVER
from .template_payload import PAYLOAD, PLACE

NUMBER = re.compile(r'(?<![\w.])(\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?![\w.])')
OF_LIBM = re.compile(r'(?<!\w)(sqrt|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|exp|log|log1p|expm1|pow|fabs|fmax|'
                     r'fmin|fmod|floor|ceil|hypot|copysign|erf)\(')
SMALLEST, LARGEST = 1e-37, 1e+30        # of single precision, with room for a product
TOLERANCE = {False: 1e-9, True: 5e-2}       # of the recorded ticks, by whether the precision is single
CLOSED = {False: 1e-13, True: 1e-6}         # change of a coordinate, in its size, below which Newton's method ends
UNITS = {'position': 'm or rad', 'velocity': 'm/s or rad/s', 'acceleration': 'm/s^2 or rad/s^2', 'pressure': 'Pa',
         'spool': 'V', 'flow': 'm^3/s', 'supply': 'Pa', 'inclination': 'rad', 'rate': 'rad/s', 'command': 'V'}


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


@dataclass(frozen=True)
class EstimatorExport:
    """What was written: ``folder``, ``files`` in it, their ``prefix``; of which ``setup``, ``single``: precision."""

    folder: Path
    files: tuple[str, ...]
    prefix: str
    setup: EstimatorSetup
    single: bool

    def summary(self) -> list[str]:
        """What there is, and how to test it, a line each."""
        of = self.setup
        return [f'wrote {self.folder}: {self.prefix}.h, {len(self.files)} files; {len(of.machine.channels)} channels, '
                f'{len(of.machine.commands)} commands, {of.rate:g} ticks a second of {of.substeps} steps, '
                f'{"single" if self.single else "double"} precision',
                f'test: cd {self.folder} && cc -std=c99 -O2 *.c -lm -o test_estimator && ./test_estimator']


def export_estimator(of: EstimatorSetup, folder: str | Path, single: bool = False) -> EstimatorExport:
    """Write observer and payload estimator of a machine as C99 to a folder, which is made; ``single``: in single
    precision. Raises SettingError, OSError."""
    check_weighs(of.machine)
    if of.machine.swings:
        raise SettingError('machine', of.machine.name, 'a machine whose payload does not hang (`payload.hanging`)')
    folder = Path(folder)
    check_earlier(folder)
    prefix = re.sub(r'\W', '_', of.machine.name, flags=re.ASCII)
    prefix = prefix if prefix[:1].isalpha() else f'm_{prefix}'
    observer = HydraulicObserver(of.machine, of.observer, 'vm')
    code = generated(estimator_functions(of.machine, started(of, observer)[0]), prefix, single)
    words = _words(of, observer, code, prefix, single)
    recorded = record(of)
    files = {
        f'{prefix}.h': render(HEADER, words), f'{prefix}.c': render(OBSERVER, words) + render(PAYLOAD, words),
        f'{prefix}_casadi.c': render(GENERATED_HEAD, words) + code.source.rstrip() + '\n',
        'test_estimator.c': render(TEST, words | _ticks(recorded, single)),
        'CMakeLists.txt': render(CMAKE, words), 'README.md': render(README, words)}
    files[MANIFEST] = _manifest(of, observer, prefix, single, [*files, MANIFEST])
    write_files(folder, files)
    return EstimatorExport(folder, tuple(sorted(files)), prefix, of, single)


GENERATED_HEAD = '''/* SPDX-License-Identifier: Apache-2.0 */
/* Functions generated by CasADi, for @name@.c. */
#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

'''
PROTOTYPE = 'int @name@_casadi_@function@(const real **arg, real **res, int *iw, real *w, int mem);\n'


def _words(of: EstimatorSetup, observer: HydraulicObserver, code: EstimatorCode, prefix: str, single: bool
           ) -> dict[str, object]:
    machine, names, m = of.machine, observer.names, len(observer.channels)
    step, x, p = started(of, observer)
    nx, nd = len(names), len(machine.system.dependent)
    commands, a, some = machine.commands, len(machine.weighing), np.count_nonzero(machine.parameters.stddev)
    lower, upper = machine.payload_data.limits
    words = {
        'name': prefix, 'NAME': prefix.upper(), 'machine': machine.name, 'version': __version__,
        'fingerprint': fingerprint(machine.description), 'real': 'float' if single else 'double',
        'precision': 'single' if single else 'double', 'rate': f'{of.rate:g}', 'substeps': of.substeps, 'channels': m,
        'channels1': m, 'commands': len(commands), 'commands1': max(1, len(commands)), 'nx': nx, 'nx_all': len(x),
        'ny': step.numel_out(1), 'np': len(p), 'nu': m + len(commands), 'ns': nd + a + 1, 'nrow': 3 + some,
        'width': 2 + some, 'guard': of.guard, 'guard1': of.guard, 'window': of.window, 'batch': of.batch, 'nd': nd,
        'g': len(machine.coordinates), 'largest_nis': _number(LARGEST_NIS, False), 'R': f'({prefix}_real)',
        'activity': observer.filter.state.places['activity'].start, 'range': _number(upper - lower, False),
        'tolerance': repr(TOLERANCE[single]),
        'doubt_ticks': of.ticks(of.observer.doubt_after, False), 'lost_ticks': of.ticks(of.observer.lost_after, False),
        'constant_ticks': of.ticks(of.observer.constant_after, True),
        'settle_ticks': of.ticks(of.observer.settle_time, True),
        'channel_macros': _macros(prefix, 'CHANNEL', machine.channels),
        'command_macros': _macros(prefix, 'COMMAND', commands), 'state_macros': _macros(prefix, 'STATE', names),
        'channel_names': _quoted(machine.channels), 'state_names': _quoted(names),
        'tables': _tables(of, observer, single) + _c_numbers(of, observer, single),
        'number_macros': _precision(single), 'prototypes': ''.join(
            render(PROTOTYPE, {'function': name}) for name in code.names)}
    words |= dict(zip(('sz_arg', 'sz_res', 'sz_iw', 'sz_w'), (max(5, code.work[0]), *code.work[1:])))
    near = observer.filter.state.places['near'].start
    words['start_dependent'] = f'(void)place(e, e->x, e->x + {near});' if near < len(x) else ''
    words['place_function'] = render(PLACE, words) if nd else ''
    words['place'] = 'if (!place(e, e->mean, e->xs)) return -1;' if nd else ''
    return words | {'names_tables': _readme(observer, commands)}


def _precision(single: bool) -> str:
    """What numbers and functions of libm are called."""
    return ('#define R(number) number##f\n#define F(name) name##f' if single else
            '#define R(number) number\n#define F(name) name')


def _c_numbers(of: EstimatorSetup, observer: HydraulicObserver, single: bool) -> str:
    commands = f'enum {{ COMMAND = {observer.filter.state.places["commands"].start} }};\n'
    closed = {'CLOSED': CLOSED[single]} if of.machine.system.dependent else {}
    return commands + ''.join(f'static const real {name} = {_number(value, single)};\n'
                              for name, value in (number_macros(of, observer) | closed).items())


def _tables(of: EstimatorSetup, observer: HydraulicObserver, single: bool) -> str:
    """Constant arrays."""
    found = []
    for name, values in number_tables(of, observer).items():
        values = np.asarray(values, dtype=float)
        pairs = values.ndim == 2
        text = [f'{{{_number(a, single)}, {_number(b, single)}}}' for a, b in values] if pairs else [
            _number(value, single) for value in values] or ['0']
        found.append(f'static const real {name}[]{"[2]" * pairs} = {{\n{wrapped(text)}}};\n')
    for name, places in place_tables(of, observer).items():
        found.append(f'static const int {name}[] = {{{", ".join(map(str, places)) or "0"}}};\n')
    return ''.join(found)


def _number(value: float, single: bool) -> str:
    """A number as C has it, the shortest text that is read as the same one."""
    if isnan(value):
        return '(real)NAN'
    if not isfinite(value):
        return '(real)INFINITY' if value > 0 else '-(real)INFINITY'
    return repr(float(value)) + 'f' * single


def _macros(prefix: str, group: str, names: Sequence[str]) -> str:
    """Places of names with their units."""
    words = [_word(name.removeprefix('command/')) for name in names]
    return ''.join(f'#define {prefix.upper()}_{group}_{word} {i} /* {name}, {_unit(name)} */\n'
                   for i, (word, name) in enumerate(zip(words, names)))


def _word(name: str) -> str:
    return re.sub(r'\W+', '_', name, flags=re.ASCII).strip('_').upper()


def _unit(name: str) -> str:
    return UNITS.get(name.partition('/')[0], 'SI')


def _readme(observer: HydraulicObserver, commands: Sequence[str]) -> str:
    """Places, names and units of the vectors."""
    groups = {'sample': observer.channels, 'command': commands, 'state': observer.names}
    return '\n'.join(f'### {title}\n\n' + ('| place | name | unit |\n|---|---|---|\n' + ''.join(
        f'| {i} | `{name}` | {_unit(name)} |\n' for i, name in enumerate(names)) if names else 'none\n')
        for title, names in groups.items()).rstrip()


def _quoted(names: Iterable[str]) -> str:
    return ', '.join(f'"{name}"' for name in names)


def _ticks(recorded: Recorded, single: bool) -> dict[str, object]:
    """Inputs and outputs of the test program."""
    def rows(table: np.ndarray, number: Callable[[float], str]) -> str:
        table = table if table.shape[1] else np.zeros((len(table), 1))
        return ',\n'.join('  {' + ', '.join(map(number, row)) + '}' for row in table.tolist()) + '\n'

    def number(value: float) -> str:
        return _number(value, single).replace('(real)', '')

    return {'ticks': len(recorded.status), 'samples': rows(recorded.samples, number),
            'commands_table': rows(recorded.commands, number), 'status': rows(recorded.status, str),
            'expected': rows(recorded.expected, number)}


def _manifest(of: EstimatorSetup, observer: HydraulicObserver, prefix: str, single: bool, files: Sequence[str]) -> str:
    def items(names: Iterable[str]) -> list[dict[str, str]]:
        return [{'name': name, 'unit': _unit(name)} for name in names]

    manifest = {'format': ESTIMATOR, 'machine': of.machine.name, 'fingerprint': fingerprint(of.machine.description),
                'version': __version__, 'prefix': prefix, 'precision': 'single' if single else 'double',
                'rate_hz': of.rate, 'step_s': of.step, 'files': sorted(files), 'channels': items(of.machine.channels),
                'commands': items(of.machine.commands), 'states': items(observer.names),
                'sensor_stddev': np.sqrt(variances(of.machine)).tolist()}
    return json.dumps(manifest, indent=2, ensure_ascii=False) + '\n'
