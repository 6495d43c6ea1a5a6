# SPDX-License-Identifier: Apache-2.0
"""Words that the templates of an exported estimator have for one machine: sizes, names, numbers, parts of the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import isfinite, isnan

import numpy as np

from ..description.age import age_text, drifting, today
from ..description.model import MechanismDescription, fingerprint
from ..export.folder import render, wrapped
from ..filters.hydraulic_observer import HydraulicObserver
from ..filters.weighing import PAUSES
from ..machine.equations import pressure_pairs
from ..monitor.faults import DOUBTS
from ..monitor.steps import WIDTH
from ..version import __version__
from . import joint_numbers
from .tables import (
    LARGEST_NIS,
    EstimatorSetup,
    clock_macros,
    lengths,
    number_macros,
    number_tables,
    place_tables,
    started,
)
from .template_memory import APART_MEMORY, JOINT_MEMORY
from .template_observer import APART, COVARIANCE
from .template_payload import PLACE
from .template_weighing_observer import CLIPPED, KEEP_LOAD, START_LOAD, WEIGHING
from .template_weighing_observer import COVARIANCE as WEIGHING_COVARIANCE

IN_DOUBLE = {'VARYING'}      # tables that are in double precision always
TOLERANCE = {False: 1e-9, True: 5e-2}       # of the recorded ticks, by whether the precision is single
CLOSED = {False: 1e-13, True: 1e-6}         # change of a coordinate, in its size, below which Newton's method ends
UNITS = {'position': 'm or rad', 'velocity': 'm/s or rad/s', 'acceleration': 'm/s^2 or rad/s^2', 'pressure': 'Pa',
         'spool': 'V', 'flow': 'm^3/s', 'supply': 'Pa', 'inclination': 'rad', 'rate': 'rad/s', 'command': 'V',
         'effort': 'N m or N', 'base_acceleration': 'm/s^2'}
PROTOTYPE = 'int @name@_casadi_@function@(const real **arg, real **res, int *iw, real *w, int mem);\n'


def words_of(of: EstimatorSetup, observer: HydraulicObserver, functions: Sequence[str],
             work: tuple[int, int, int, int], prefix: str, single: bool) -> dict[str, object]:
    """Words of an estimator with these generated ``functions`` and lengths of their ``work`` arrays."""
    machine, names, m = of.machine, observer.names, len(observer.channels)
    step, x, p = started(of, observer)
    nx, nd = len(names), len(machine.system.dependent)
    commands, lower, upper = machine.commands, *machine.payload_data.limits
    words = {
        'name': prefix, 'NAME': prefix.upper(), 'machine': machine.name, 'version': __version__,
        'fingerprint': fingerprint(machine.description), 'real': 'float' if single else 'double',
        'aged': _aged(machine.description),
        'precision': 'single' if single else 'double', 'rate': f'{of.rate:g}', 'substeps': of.substeps, 'channels': m,
        'channels1': m, 'commands': len(commands), 'commands1': max(1, len(commands)), 'nx': nx, 'nx_all': len(x),
        'ny': step.numel_out(1), 'np': len(p), 'nu': m + len(commands), 'window': of.window, 'batch': of.batch,
        'nd': nd, 'g': len(machine.coordinates), 'R': f'({prefix}_real)',
        'activity': observer.filter.state.places['activity'].start, 'range': number(upper - lower, False),
        'tolerance': repr(TOLERANCE[single]),
        'doubt_ticks': of.ticks(of.observer.doubt_after, False), 'lost_ticks': of.ticks(of.observer.lost_after, False),
        'constant_ticks': of.ticks(of.observer.constant_after, True),
        'channel_macros': _macros(prefix, 'CHANNEL', machine.channels),
        'command_macros': _macros(prefix, 'COMMAND', commands), 'state_macros': _macros(prefix, 'STATE', names),
        'channel_names': _quoted(machine.channels), 'state_names': _quoted(names),
        'tables': _tables(of, observer, single) + _c_numbers(of, observer, single),
        'number_macros': _precision(single), 'step_rows': WIDTH + 1, 'series': lengths()['SERIES'],
        'weighing': of.observer.weighing, 'pauses': PAUSES, 'largest_nis': number(LARGEST_NIS, False),
        'fault_macros': joint_numbers.fault_macros(prefix),
        'prototypes': ''.join(render(PROTOTYPE, {'function': name}) for name in functions)}
    words |= dict(zip(('sz_arg', 'sz_res', 'sz_iw', 'sz_w'), (max(5, work[0]), *work[1:])))
    words |= _joint_words(of, observer, prefix) if of.joint else _apart_words(of)
    near = observer.filter.state.places['near'].start
    if near < len(x):
        words['start_dependent'] = f'(void)place(e, {"clipped(e)" if of.joint else "e->x"}, e->x + {near});'
    words['place_function'] = render(PLACE, words) if nd else ''
    words['place'] = f'if (!place(e, e->mean, e->xs)) return {0 if of.joint else -1};' if nd else ''
    return words | {'names_tables': _readme(observer, commands)}


def _aged(machine: MechanismDescription) -> str:
    """Line of the header on zeros that drift: their deviations stay those of the day of the export."""
    names = drifting(machine)
    return (f' * Zeros that drift ({", ".join(names)}) are as uncertain as on {today()},\n * {age_text(machine)}, the '
            'date of the calibration: they do not age in C. Export again.\n') if names else ''


def _apart_words(of: EstimatorSetup) -> dict[str, object]:
    """Those of the estimator of the papers."""
    machine = of.machine
    some, nd, a = np.count_nonzero(machine.parameters.stddev), len(machine.system.dependent), len(machine.weighing)
    return {'ns': nd + a + 1, 'nrow': 3 + some, 'width': 2 + some, 'guard': of.guard, 'guard1': of.guard,
            'sizes': f'enum {{ NROW = {3 + some}, GUARD = {of.guard} }};',
            'memory': APART_MEMORY, 'correct': APART.lstrip(), 'covariance': COVARIANCE.lstrip(),
            'keep_load': '', 'start_load': '', 'lost': '', 'start_dependent': ''}


def _joint_words(of: EstimatorSetup, observer: HydraulicObserver, prefix: str) -> dict[str, object]:
    """Those of an estimator that weighs."""
    own = wrapped(f'{name} = {value}' for name, value in joint_numbers.counts(of, observer).items())
    types, loops = ('filter', 'block', 'mass_result', 'weighed_mass'), bool(of.machine.system.dependent)
    return {**joint_numbers.words(of, observer), 'ns': max(1, len(of.machine.system.dependent)),
            'sizes': ''.join(f'typedef {prefix}_{name} {name};\n' for name in types) + f'enum {{\n{own}}};\n'
                     f'static const unsigned DOUBTS = {int(DOUBTS)}u;',
            'memory': JOINT_MEMORY, 'correct': WEIGHING.lstrip(), 'covariance': WEIGHING_COVARIANCE,
            'keep_load': KEEP_LOAD.lstrip() + CLIPPED * loops, 'start_load': START_LOAD,
            'lost': '\n  if (out->observer == @NAME@_LOST) e->has_state = 0;', 'start_dependent': '',
            'place_ways': 'if (!place(e, e->window_x, e->ways_near)) return;' * loops}


def _precision(single: bool) -> str:
    """What numbers and functions of libm are called."""
    return ('#define R(number) number##f\n#define F(name) name##f' if single else
            '#define R(number) number\n#define F(name) name')


def _c_numbers(of: EstimatorSetup, observer: HydraulicObserver, single: bool) -> str:
    pairs = len(pressure_pairs(of.machine))
    whole = ''.join(f', {name} = {value}' for name, value in {**lengths(), 'PARTNERS': 2 * pairs}.items())
    commands = f'enum {{ COMMAND = {observer.filter.state.places["commands"].start}{whole} }};\n'
    found = number_macros(of, observer) | ({'CLOSED': CLOSED[single]} if of.machine.system.dependent else {})
    clocks = clock_macros(of)
    if of.joint:
        found |= joint_numbers.numbers(of)
        clocks |= joint_numbers.numbers_in_double(of)
    return commands + ''.join(f'static const {kind} {name} = {number(value, short)};\n' for kind, short, group in (
        ('real', single, found), ('double', False, clocks)) for name, value in group.items())


def _tables(of: EstimatorSetup, observer: HydraulicObserver, single: bool) -> str:
    """Constant arrays."""
    found, numbers, whole = [], number_tables(of, observer), place_tables(of, observer)
    if of.joint:
        numbers |= joint_numbers.tables(of, observer)
        whole |= joint_numbers.places(of, observer)
    for name, values in numbers.items():
        values = np.asarray(values, dtype=float)
        pairs = values.ndim == 2
        short = single and name not in IN_DOUBLE
        text = [f'{{{number(a, short)}, {number(b, short)}}}' for a, b in values] if pairs else [
            number(value, short) for value in values] or ['0']
        found.append(f'static const {"double" if name in IN_DOUBLE else "real"} {name}[]{"[2]" * pairs} = {{\n'
                     f'{wrapped(text)}}};\n')
    for name, places in whole.items():
        found.append(f'static const int {name}[] = {{{", ".join(map(str, places)) or "0"}}};\n')
    return ''.join(found)


def number(value: float, single: bool) -> str:
    """A number as C has it, the shortest text that is read as the same one."""
    if isnan(value):
        return '(real)NAN'
    if not isfinite(value):
        return '(real)INFINITY' if value > 0 else '-(real)INFINITY'
    return repr(float(value)) + 'f' * single


def _macros(prefix: str, group: str, names: Sequence[str]) -> str:
    """Places of names with their units."""
    words = [_word(name.removeprefix('command/')) for name in names]
    return ''.join(f'#define {prefix.upper()}_{group}_{word} {i} /* {name}, {unit(name)} */\n'
                   for i, (word, name) in enumerate(zip(words, names)))


def _word(name: str) -> str:
    return re.sub(r'\W+', '_', name, flags=re.ASCII).strip('_').upper()


def unit(name: str) -> str:
    """Unit of what a name stands for."""
    return UNITS.get(name.partition('/')[0], 'SI')


def _readme(observer: HydraulicObserver, commands: Sequence[str]) -> str:
    """Places, names and units of the vectors."""
    groups = {'sample': observer.channels, 'command': commands, 'state': observer.names}
    return '\n'.join(f'### {title}\n\n' + ('| place | name | unit |\n|---|---|---|\n' + ''.join(
        f'| {i} | `{name}` | {unit(name)} |\n' for i, name in enumerate(names)) if names else 'none\n')
        for title, names in groups.items()).rstrip()


def _quoted(names: Iterable[str]) -> str:
    return ', '.join(f'"{name}"' for name in names)
