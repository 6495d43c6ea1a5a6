# SPDX-License-Identifier: Apache-2.0
"""Export of a machine's observer and payload estimator as plain C, with recorded ticks.

The generated part: a step of the observer, a sample of the mass, a step of Newton's method.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np

from ..compiled.dense import dense
from ..description.model import fingerprint
from ..errors import SettingError
from ..export.folder import ESTIMATOR, MANIFEST, check_earlier, render, write_files
from ..export.functions import shared, work_sizes
from ..filters.hydraulic_observer import HydraulicObserver
from ..filters.hydraulic_state import variances
from ..machine import Machine
from ..machine.equations import check_weighs
from ..monitor.exchanged import Exchanged
from ..payload.gates import GATE_NUMBERS, StateGates
from ..payload.paper import sample_step
from ..payload.unstated import unsure
from ..version import __version__
from .record import Recorded, record
from .tables import EstimatorSetup, started
from .template_common_errors import ALGEBRA, ERRORS
from .template_exchanged import EXCHANGED
from .template_header import CMAKE, HEADER, README, TEST
from .template_joint import ESTIMATOR as JOINT_ESTIMATOR
from .template_joint import FILTER, STEP
from .template_mass_monitor import MONITOR
from .template_observer import OBSERVER
from .template_payload import PAYLOAD, TICK
from .template_steps import STEPS
from .template_zeros import FIND_ZEROS
from .words import number as number_in_c
from .words import unit, words_of

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


def estimator_functions(machine: Machine, observer: ca.Function, joint: bool = False) -> dict[str, ca.Function]:
    """``observer (x, u, p)``, its step; of one that weighs ``gates (x, X, p)`` of the mass and ``exchanged (near, X, P,
    mass, p)``, else ``sample (x, X, P, numbers, gates)`` of the mass, with derivatives by the numbers that are
    uncertain alone; ``close (dependent, z, numbers)`` where there are dependent coordinates."""
    own = ({'gates': StateGates(machine, 'vm').function, 'exchanged': Exchanged(machine).function} if joint else
           {'sample': _sample(machine)})
    found = {'observer': observer, **own}
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
                *([] if (tool := of.machine.description.attachment) is None else [tool.line]),
                f'test: cd {self.folder} && cc -std=c99 -O2 *.c -lm -o test_estimator && ./test_estimator']


@dataclass(frozen=True)
class EstimatorParts:
    """C of an estimator: its header, what includes that, the generated ``functions``; the ``words`` that they have."""

    header: str
    source: str
    functions: str
    observer: HydraulicObserver
    words: dict[str, object]


def estimator_parts(of: EstimatorSetup, prefix: str, single: bool = False) -> EstimatorParts:
    """C of observer and payload estimator, whose names begin with ``prefix``. Raises SettingError for a machine or a
    tuning that is not in C, and for drives whose file calls gains, offsets or frictions exact."""
    check_weighs(of.machine)
    if of.machine.swings:
        raise SettingError('machine', of.machine.name, 'a machine whose payload does not hang (`payload.hanging`)')
    exact = unsure(of.machine.description)[1] if of.joint else ()
    if exact:
        raise SettingError(f'{exact[0]}.stddev', 0.0, 'a deviation, as in a calibrated file: C does not look for what '
                           'is wrong with numbers of drives that the file calls exact'
                           + (f'; also of {", ".join(exact[1:])}' if exact[1:] else ''))
    observer = HydraulicObserver(of.machine, of.observer, 'vm')
    code = generated(estimator_functions(of.machine, started(of, observer)[0], of.joint), prefix, single)
    words = words_of(of, observer, code.names, code.work, prefix, single)
    source = ''.join(render(part, words) for part in (OBSERVER, TICK, *(JOINT if of.joint else (PAYLOAD,))))
    return EstimatorParts(render(HEADER, words), source, render(GENERATED_HEAD, words) + code.source.rstrip() + '\n',
                          observer, words)


def export_estimator(of: EstimatorSetup, folder: str | Path, single: bool = False) -> EstimatorExport:
    """Write observer and payload estimator of a machine as C99 to a folder, which is made; ``single``: in single
    precision. Raises SettingError, OSError."""
    folder = Path(folder)
    check_earlier(folder)
    prefix = re.sub(r'\W', '_', of.machine.name, flags=re.ASCII)
    prefix = prefix if prefix[:1].isalpha() else f'm_{prefix}'
    parts = estimator_parts(of, prefix, single)
    observer, words = parts.observer, parts.words
    recorded = record(of)
    files = {
        f'{prefix}.h': parts.header, f'{prefix}.c': parts.source, f'{prefix}_casadi.c': parts.functions,
        'test_estimator.c': render(TEST, words | _ticks(recorded, single)),
        'CMakeLists.txt': render(CMAKE, words), 'README.md': render(README, words)}
    files[MANIFEST] = _manifest(of, observer, prefix, single, [*files, MANIFEST])
    write_files(folder, files)
    return EstimatorExport(folder, tuple(sorted(files)), prefix, of, single)


JOINT = FILTER, ALGEBRA, STEPS, FIND_ZEROS, ERRORS, JOINT_ESTIMATOR, EXCHANGED, MONITOR, STEP
GENERATED_HEAD = '''/* SPDX-License-Identifier: Apache-2.0 */
/* Functions generated by CasADi, for @name@.c. */
#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

'''


def _ticks(recorded: Recorded, single: bool) -> dict[str, object]:
    """Inputs and outputs of the test program."""
    def rows(table: np.ndarray, number: Callable[[float], str]) -> str:
        table = table if table.shape[1] else np.zeros((len(table), 1))
        return ',\n'.join('  {' + ', '.join(map(number, row)) + '}' for row in table.tolist()) + '\n'

    def number(value: float) -> str:
        return number_in_c(value, single).replace('(real)', '')

    return {'ticks': len(recorded.status), 'samples': rows(recorded.samples, number),
            'commands_table': rows(recorded.commands, number), 'status': rows(recorded.status, str),
            'expected': rows(recorded.expected, number)}


def _manifest(of: EstimatorSetup, observer: HydraulicObserver, prefix: str, single: bool, files: Sequence[str]) -> str:
    def items(names: Iterable[str]) -> list[dict[str, str]]:
        return [{'name': name, 'unit': unit(name)} for name in names]

    manifest = {'format': ESTIMATOR, 'machine': of.machine.name, 'fingerprint': fingerprint(of.machine.description),
                **({} if (tool := of.machine.description.attachment) is None else {'attachment': tool.name}),
                'version': __version__, 'prefix': prefix, 'precision': 'single' if single else 'double',
                'rate_hz': of.rate, 'step_s': of.step, 'files': sorted(files), 'channels': items(of.machine.channels),
                'commands': items(of.machine.commands), 'states': items(observer.names),
                'sensor_stddev': np.sqrt(variances(of.machine)).tolist()}
    return json.dumps(manifest, indent=2, ensure_ascii=False) + '\n'
