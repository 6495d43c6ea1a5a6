# SPDX-License-Identifier: Apache-2.0
"""Numbers that the C of an estimator that weighs holds: those of ``filters``, ``payload`` and ``monitor`` by the
names that the templates have for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

import numpy as np

from ..filters import between_samples, hydraulic_observer, mass_information, unweighed, weighing
from ..filters.hydraulic_observer import HydraulicObserver
from ..filters.hydraulic_state import PUSHED, direct, state_names
from ..filters.unweighed import FLOW_AGAIN, unknown
from ..machine.equations import pressure_pairs
from ..machine.parameters import of_motion
from ..monitor import clocks, exchanged, one_signal
from ..monitor import mass as monitor_mass
from ..monitor.faults import KINDS
from ..payload import common_errors, filter, joint, steps, zeros
from ..payload.gates import GATE_NUMBERS, gate_numbers
from ..streams.mass_monitor import RETURN_NS
from ..streams.records import FORGOTTEN
from .tables import EstimatorSetup

TINY = 1e-300             # almost nothing
EPSILON = 1e-15           # a share that is lost by rounding


def numbers_in_double(of: EstimatorSetup) -> dict[str, float]:
    """Those of times, of which sums are compared, and of the errors that masses have in common: in double precision
    always."""
    m, c = monitor_mass, common_errors
    low, high = of.machine.payload_data.limits
    span = high - low
    return {
        'TINY': TINY, 'EPSILON': EPSILON,
        'NOTHING': c.NOTHING, 'MOST': c.MOST, 'SAFE': c.SAFE, 'LEAST_LEARNT': c.LEAST, 'CREDIBLE': c.CREDIBLE,
        'DOUBTED': c.DOUBTED, 'FADED': c.FADED, 'SURPRISED': c.SURPRISED, 'CHANGED': c.CHANGED, 'OPENED_STEP': c.OPENED,
        'SAME': c.SAME, 'UNKNOWN_VARIANCE': (joint.WIDE * span) ** 2, 'WRONG': steps.WRONG, 'ABSURD': steps.ABSURD,
        'SIGNIFICANT': steps.SIGNIFICANT, 'LEANS': steps.LEANS, 'CONSISTENT': steps.CONSISTENT,
        'LOAD_SQUARE': steps.LOAD, 'NUMBER_SQUARE': steps.NUMBER, 'ALIKE': steps.ALIKE,
        'MARGIN': zeros.MARGIN, 'UNLEARNT': zeros.UNLEARNT, 'ZERO_SIGNIFICANT': zeros.SIGNIFICANT,
        'ZERO_AGREES': zeros.AGREES, 'ZERO_WIDE': zeros.WIDE,
        'ANOTHER': joint.ANOTHER * span,
        'STEP_S': of.step_ns * 1e-9, 'STEP_NS': float(of.step_ns), 'RETURN_NS': float(RETURN_NS),
        'LATE': unweighed.LATE, 'RECENT': unweighed.RECENT, 'SHOCKS': unweighed.SHOCKS,
        'SILENT_AFTER': of.observer.silent_after, 'ONE_WAY': between_samples.ONE_WAY,
        'RARE_GAP': max(between_samples.SELDOM * of.step_ns * of.substeps, 1e9 * between_samples.WHOLE),
        'RARE_REMEMBERED': between_samples.REMEMBERED, 'PAUSES': weighing.PAUSES, 'FORGOTTEN': FORGOTTEN,
        'LONGEST_PAUSE': clocks.PAUSE_NS * 1e-9, 'REMEMBERED': joint.REMEMBERED, 'FADES': common_errors.FADES,
        'MEMORY': common_errors.MEMORY, 'TICK_ROUND': common_errors.TICK, 'DELAY': common_errors.DELAY,
        'LOOK_BACK': m.LOOK_BACK, 'FORGOTTEN_MUCH': m.CHANGED, 'FORGOTTEN_ALL': m.ANOTHER,
        'SETTLES': m.SETTLES, 'PATIENT': m.PATIENT, 'WEIGHED_FIRST': _first(of),
        'AFTER_CONTACT': m.AFTER_CONTACT, 'LEAK': m.LEAK, 'LASTING': m.LASTING, 'ALARM_FADES': m.FADES,
        'ONE_CHANGE': m.ONE_CHANGE, 'WANDERING': m.WANDERING, 'ALARMS': m.ALARMS, 'AT_START': m.AT_START,
        'RECOVERED': m.RECOVERED, 'PROBATION': m.PROBATION, 'TRUST_FIRST': m.FIRST, 'TRUST_LONGEST': m.LONGEST,
        'EVERY': m.EVERY, 'DRIFT_SETTLES': m.STARTS, 'WINDOW_S': exchanged.WINDOW, 'FREE': exchanged.FREE,
        'LONGEST_CONTACT': exchanged.LONGEST, 'SIGNAL_TIME': one_signal.TIME}


def _first(of: EstimatorSetup) -> float:
    """s of weighing before a mass counts."""
    return 0.0 if len(of.machine.weighing) == len(of.machine.actuated) else monitor_mass.FIRST_WEIGHED


def numbers(of: EstimatorSetup) -> dict[str, float]:
    """Single numbers by their macros."""
    low, high = of.machine.payload_data.limits
    span, change, o = high - low, monitor_mass, hydraulic_observer
    found = {
        'SPAN': span, 'SHOCK': o.SHOCK, 'MASS_AFTER_SHOCK': o.MASS_AFTER_SHOCK,
        'LARGEST_ACTIVITY': mass_information.LARGEST_ACTIVITY, 'PRESSURE_PSD': of.observer.pressure_psd,
        'RARE_DENSITY': between_samples.DENSITY, 'RAMP': between_samples.RAMP, 'VALVE_CLOSED': between_samples.CLOSED,
        'FLOW_AGAIN': FLOW_AGAIN, 'UNSEEN': unweighed.UNSEEN,
        'UNSEEN_ANOTHER': unweighed.ANOTHER, 'ANY': unweighed.ANY,
        'AGAIN_ACTIVITY': unweighed.AGAIN,
        'RESTART': filter.RESTART, 'CONVINCING': joint.CONVINCING, 'HARDLY': joint.HARDLY,
        'LEAST_INFORMATION': (joint.UNKNOWN * span) ** -2,
        'LOST': change.LOST, 'AGREES': change.AGREES, 'CALM': change.CALM, 'LEAST_NOISE': change.LEAST * span,
        'KNOWN_MASS': change.KNOWN, 'ROUGHLY': change.ROUGHLY, 'UNSURE_MASS': change.UNSURE,
        'LIKELY': exchanged.LIKELY, 'ROUGH_MASS': exchanged.ROUGH * span, 'WANDERS': change.WANDERS, 'FAR': change.FAR,
        'SIGNAL_MOVES': one_signal.MOVES, 'ONE_LINE': one_signal.ONE_LINE, 'SIGNAL_SURE': one_signal.SURE}
    return found


def counts(of: EstimatorSetup, observer: HydraulicObserver) -> dict[str, int]:
    """Whole numbers by their macros."""
    machine, layout, tuning = of.machine, observer.filter.state, observer.filter.tuning.places
    k = len(machine.parameters.consider)
    return {
        'K': k, 'M': k + 1, 'UNSURE': layout.parts['T'][0], 'SLOPES': layout.places['T'].start,
        'MASS': layout.places['mass'].start, 'MOVED_AT': layout.places['moved'].start,
        'EQUATIONS': len(machine.weighing), 'FORCE': tuning['force_psd'].start,
        'PRESSURE_WALK': tuning['pressure_psd'].start, 'UNKNOWNS': observer.model.unknowns,
        'PUSHES': len(machine.measured_pushes),
        'FLOWS': 2 * len(machine.unknown_valves), 'WHOLE': int(len(machine.weighing) == len(machine.actuated)),
        'ACTUATED_COUNT': len(machine.actuated), 'STREAK': unweighed.STREAK,
        'OUTSIDE_STEPS': max(1, round(unweighed.LASTS / of.step)),
        'FULL': max(1, round(common_errors.BLOCK / of.step)),
        'LONGEST': max(1, round(common_errors.DELAY / of.step)), 'LEARNING': common_errors.LEARNING,
        'EARLIER': common_errors.EARLIER, 'LEARNT': steps.LEARNT, 'SHORTEST': steps.SHORTEST, 'AGAIN': steps.AGAIN,
        'PARTS': steps.PARTS, 'BLOCKS': steps.WINDOWS[-1], 'WINDOW_COUNT': len(steps.WINDOWS),
        'SUDDEN_COUNT': len(sudden(of)), 'ZERO_COUNT': len(zeros.position_zeros(machine)), 'SOONEST': zeros.SOONEST,
        **sizes(of), 'FEWEST': monitor_mass.FEWEST,
        'WAYS': len(pressure_pairs(machine)), 'NE': len(observer.names) - observer.model.unknowns,
        'SEEN': len(seen(of)),
        'CONTRADICTIONS': exchanged.CONTRADICTIONS, 'TWICE': exchanged.TWICE, 'GATE_COUNT': GATE_NUMBERS}


def sizes(of: EstimatorSetup) -> dict[str, int]:
    """Lengths of arrays: blocks that wait, all of them, masses of half a second, masses that are compared."""
    due = common_errors.EARLIER + 4
    return {'DUE': due, 'POOL': steps.WINDOWS[-1] + due + 1, 'LOG': of.ticks(monitor_mass.LOOK_BACK, True) + 3,
            'DRIFT': round(monitor_mass.OVER / monitor_mass.EVERY) + 1}


def sudden(of: EstimatorSetup) -> list[int]:
    """Places of what may take a step besides the mass."""
    return [1 + k for k, name in enumerate(of.machine.parameters.consider_names)
            if name.startswith(common_errors.SUDDEN)]


def seen(of: EstimatorSetup) -> list[tuple[int, int]]:
    """Entry of the state and channel of the pressures and efforts that are measured."""
    names, _ = state_names(of.machine)
    return [(names.index(name), of.machine.channels.index(item.name)) for name, item in direct(of.machine).items()
            if name.startswith(PUSHED)]


def tables(of: EstimatorSetup, observer: HydraulicObserver) -> dict[str, Iterable[Any]]:
    """Arrays of numbers by name."""
    machine = of.machine
    limits = [machine.hydraulics.valves[name].command_limit for name in machine.modelled_valves]
    bodies = [name.startswith('bodies.') for name in machine.parameters.consider_names]
    return {'GATES': [*gate_numbers(machine, of.payload), *machine.parameters.mean],
            'VARYING': np.where(bodies, common_errors.STEADY, common_errors.VARYING),
            'ZERO_STDDEV': [item.zero_stddev for item in machine.all_channels],
            'COMMAND_LIMIT': [inf if limit is None else limit.value for limit in limits],
            'PUSH_UNKNOWN': [unknown(machine, name) for name in machine.measured_pushes]}


def places(of: EstimatorSetup, observer: HydraulicObserver) -> dict[str, list[int]]:
    """Arrays of whole numbers by name."""
    machine, names = of.machine, observer.names
    pushes, needs, valves = machine.measured_pushes, machine.push_needs, machine.hydraulics.valves
    flows = [(f'flow/{valve}.{port}', f'pressure/{getattr(valves[valve], port)}') for valve in machine.unknown_valves
             for port in 'ab']
    considered = [machine.parameters.names[place] for place in observer.model.consider(machine)]
    friction = observer.filter.state.parts['T'][0] - len(considered)
    return {
        'OF_MOTION': [*(int(of_motion(name)) for name in considered), *[1] * friction],
        'SHOWS': [int(not name.startswith(PUSHED)) for name in machine.channels],
        'PUSH_CHANNEL': [machine.channels.index(name) for name in pushes],
        'PUSH_ENTRY': [names.index(name) for name in pushes],
        'NEEDS': [int(name in needs[k]) for name in pushes for k in machine.weighing],
        'FLOW_ENTRY': [names.index(name) for name, _ in flows],
        'FLOW_OWNER': [pushes.index(owner) if owner in pushes else -1 for _, owner in flows],
        'ACTUATED': list(machine.actuated), 'WEIGHED': [machine.actuated.index(k) for k in machine.weighed],
        'WINDOWS': list(steps.WINDOWS), 'SUDDEN': sudden(of), 'ZEROS': [1 + k for k in zeros.position_zeros(machine)],
        'SEEN_ENTRY': [entry for entry, _ in seen(of)],
        'SEEN_CHANNEL': [channel for _, channel in seen(of)],
        'PAIR_CHANNEL': [machine.channels.index(name) for pair in pressure_pairs(machine).values() for name in pair]}


def fault_macros(prefix: str) -> str:
    """Bits of the faults."""
    return ''.join(f'#define {prefix.upper()}_FAULT_{fault.name} {fault.value}u /* {kind.reason} */\n'
                   for fault, kind in KINDS.items())


def words(of: EstimatorSetup, observer: HydraulicObserver) -> Mapping[str, object]:
    """Words of the templates."""
    own, machine = sizes(of), of.machine
    return {'width': 2 + len(of.machine.parameters.consider), 'actuated': len(of.machine.actuated),
            'pushes1': max(1, len(of.machine.measured_pushes)), 'equations': len(of.machine.weighing),
            'pool': own['POOL'], 'recent': steps.WINDOWS[-1], 'due': own['DUE'], 'log': own['LOG'],
            'drift': own['DRIFT'], 'sudden1': max(1, len(sudden(of))), 'shortest': steps.SHORTEST,
            'ways1': 1 + len(pressure_pairs(machine)), 'ne': len(observer.names) - observer.model.unknowns,
            'seen1': max(1, len(seen(of)))}
