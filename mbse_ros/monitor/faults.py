# SPDX-License-Identifier: Apache-2.0
"""What states and masses are reported with: status, kinds of faults as bits with what each means and does, what became
of a sample, health of the innovations.

Whatever decides looks at a ``Fault``. The ``reason`` beside it says the same to people, and nothing reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import NamedTuple


class Fault(IntFlag):
    """Kinds of faults, joined by ``|``; the values are those of Fault.msg."""

    # of a sensor
    MISSING = 1
    STUCK = 1 << 1
    REJECTED = 1 << 2
    JUMPED = 1 << 3
    VACUUM = 1 << 4
    SATURATED = 1 << 5
    FAR = 1 << 6
    UNIT = 1 << 7
    RARE = 1 << 8
    # of a state
    UNMEASURED = 1 << 9
    NOT_FINITE = 1 << 10
    OUT_OF_RANGE = 1 << 11
    VAGUE = 1 << 12
    SETTLING = 1 << 13
    RESTARTED = 1 << 14
    UNCHECKED = 1 << 15
    MISFIT = 1 << 16
    OUTSIDE_FORCE = 1 << 17
    UNSOLVED = 1 << 18
    # of a mass
    DOUBTED = 1 << 19
    FIRST_MASS = 1 << 20
    PAUSED = 1 << 21
    UNSEEN = 1 << 22
    LIMITS = 1 << 23
    CONTRADICTION = 1 << 24
    LOAD_CHANGES = 1 << 25
    SURPRISE = 1 << 26
    NOT_TRUSTED = 1 << 27
    SINGULAR = 1 << 28
    UNWEIGHED = 1 << 29
    EXCHANGED = 1 << 30
    FORCE_BALANCE = 1 << 31

    @property
    def words(self) -> tuple[str, ...]:
        """The names of its kinds in small letters, () for none; of what a newer version sends: only those known."""
        return tuple(kind.name.lower() for kind in KINDS if kind in self)   # type: ignore[union-attr]


NONE = Fault(0)


class Kind(NamedTuple):
    """How the ``reason`` of a fault begins, what it ``means``, what it ``does``, how it is ``found``, in which records,
    and whether it ``doubts`` the state: then what was learnt of the mass a moment ago is left out, too.

    Numbers in ``found`` are named, in braces, by their module or group of settings: docs/safety.md has their values.
    """

    reason: str
    means: str
    does: str
    found: str
    records: tuple[str, ...]
    doubts: bool = False


_STATE, _LINKAGE, _MASS = 'state', 'linkage_state', 'payload'
_REFUSED = 'rejects the samples; COASTING'
_WRONG = 'IMPLAUSIBLE: updated, not to be used'
KINDS = {
    Fault.MISSING: Kind(
        'missing', 'a sensor sends nothing', 'COASTING: the other sensors carry the state',
        'no two samples within `interpolation.max_gap`, {interpolation.max_gap} s (a third of it for faster sensors); '
        'of a mechanism: none for `coast_after`, {linkage.coast_after} s, and {monitor.channels.PERIODS} periods',
        (_STATE, _LINKAGE)),
    Fault.STUCK: Kind(
        'constant', 'a sensor sends one value while the state moves on', f'{_REFUSED} until its value changes',
        'one value for `constant_after`, {observer.constant_after} s, of a sensor with noise, or while the estimate '
        'moves by {monitor.channels.MOVED} standard deviations and steps', (_STATE, _LINKAGE), True),
    Fault.REJECTED: Kind(
        'rejected', 'samples farther from the prediction than the gate allows',
        'rejects the samples; COASTING after `doubt_after`, {observer.doubt_after} s, of a channel; loses the state '
        'after `lost_after`, {observer.lost_after} s, of half of the sensors',
        'an innovation beyond `gate`, a probability of {observer.gate} for a machine, {linkage.gate} for a mechanism',
        (_STATE, _LINKAGE), True),
    Fault.JUMPED: Kind(
        'jumped', 'a position faster than any machine, or a pressure alone, from one sample to the next',
        f'{_REFUSED} until as much is jumped back',
        'a piston faster than `fastest_piston`, {observer.fastest_piston} m/s, another coordinate faster than '
        '`fastest_joint`, {observer.fastest_joint} rad/s, by {monitor.steps.NOISE} standard deviations; '
        'one pressure that changes by {monitor.steps.SUDDEN} times the largest change in the {monitor.steps.SIDE} '
        'samples beside it and {monitor.steps.NOISES} standard deviations, at {monitor.steps.LONGEST} s between '
        'samples at most; of a mechanism: a rejected sample off those before and after it by '
        '{monitor.steps.FARTHER} times their changes', (_STATE, _LINKAGE), True),
    Fault.VACUUM: Kind(
        'below vacuum', 'a pressure that no fluid has', _REFUSED,
        'a sample {monitor.bounds.DEEPEST} standard deviations below 0 Pa (absolute)', (_STATE,), True),
    Fault.SATURATED: Kind(
        'at the end of its range', 'a sample at an end of the range that the file states', _REFUSED,
        'at the upper end of `range` or above, or {monitor.bounds.DEEPEST} standard deviations below the lower',
        (_STATE, _LINKAGE), True),
    Fault.FAR: Kind(
        'far outside its range', 'a position far beyond the stroke, or beyond the limits of a joint', _REFUSED,
        'a position beyond its range by {monitor.bounds.ROOM} of it; a pressure, by as much and '
        '{monitor.bounds.DEEPEST} standard deviations, above {monitor.bounds.STOPS} times the largest supply '
        "times the ratio of a cylinder's areas", (_STATE, _LINKAGE), True),
    Fault.UNIT: Kind(
        'hardly any noise near zero (another unit?)',
        'a pressure near zero whose noise is far too small: in another unit, or without supply',
        f'{_REFUSED}; a mechanism does not start again by them',
        '{monitor.units.SAMPLES} samples up to {monitor.units.LARGEST} Pa whose noise, by second differences, is '
        'below {monitor.units.FAINT} of the stated one; of a mechanism: samples rejected for {monitor.units.EARLY} '
        'times `lost_after` that are the factor of a unit times the prediction, to {monitor.units.LIKE} of it',
        (_STATE, _LINKAGE), True),
    Fault.RARE: Kind(
        'samples too rare for this motion', 'what moves between two samples shows in none of them',
        'the mass counts less; it is held instead of blaming the load or the file',
        'lines between samples that are off by {filters.between_samples.RARE} standard deviations',
        (_STATE, _MASS)),
    Fault.UNMEASURED: Kind(
        'nothing is measured', 'no sensor gives a sample that can be used',
        'loses the state, LOST; COASTING for a mechanism',
        'no sample of any sensor; of a mechanism: none used for `coast_after`, {linkage.coast_after} s',
        (_STATE, _LINKAGE)),
    Fault.NOT_FINITE: Kind(
        'the state left the finite numbers', 'infinite numbers, or a negative variance',
        'loses the state, LOST: starts again', 'a number that is not finite, or a variance below 0', (_STATE, _LINKAGE),
        True),
    Fault.OUT_OF_RANGE: Kind(
        'where it cannot be', 'a coordinate is estimated where the machine cannot be',
        'loses the state, LOST: starts again',
        'a position, a speed ({observer.fastest_piston} m/s, {observer.fastest_joint} rad/s) or a pressure beyond its '
        'range by {monitor.bounds.ROOM} of it; of speeds and pressures also by '
        '{monitor.bounds.DEEPEST} of their standard deviations', (_STATE, _LINKAGE), True),
    Fault.VAGUE: Kind(
        'not known', 'a coordinate, or the mass, is known no better than a share of its range',
        'loses the state, LOST; of a mass NOT_OBSERVABLE', 'an interval of the mass wider than `max_interval_share`, '
        '{payload.max_interval_share}, of `payload.limits`; '
        'standard deviation of a position above {monitor.bounds.ROOM} of its range; of a mechanism: above '
        '`lost_stddev`, {linkage.lost_stddev} rad or m', (_STATE, _LINKAGE, _MASS)),
    Fault.SETTLING: Kind(
        'settling after a start', 'the state has started a moment ago', 'STARTING: the mass is held',
        'for `settle_time`, {observer.settle_time} s, and until speeds are known to `start_velocity`, '
        '{observer.start_velocity} m/s, or no better any more; of a mechanism: {linkage.settle_time} s',
        (_STATE, _LINKAGE)),
    Fault.RESTARTED: Kind(
        'starts again', 'a coordinate starts at what the sensor says that alone sees it',
        'loses this coordinate; STARTING for a machine, LOST for a mechanism',
        'samples rejected for `lost_after`, {observer.lost_after} s, of a position that no other sensor sees; or a '
        'sensor that had jumped is believed again', (_STATE, _LINKAGE)),
    Fault.UNCHECKED: Kind(
        'nothing checks', 'samples are predicted so badly that any value would fit', 'COASTING',
        'a predicted sample known no better than `lost_stddev`, {linkage.lost_stddev} rad or m', (_LINKAGE,)),
    Fault.MISFIT: Kind(
        'the model or the stated noise does not fit', 'innovations far larger than stated, for long',
        'COASTING; the noise of the motion is raised',
        'more than half of the squares of innovations above {monitor.channels.MISFIT} times their variance, for '
        '{monitor.channels.TWICE} times `lost_after` and {monitor.channels.FITTED} samples',
        (_LINKAGE,)),
    Fault.OUTSIDE_FORCE: Kind(
        'outside force: the tool or the load touches something',
        'the force balance has a force that no load explains', 'CONTACT: the mass is held',
        '{filters.unweighed.STREAK} samples of a position rejected one after the other, or '
        '{filters.unweighed.SHOCKS} shocks within {filters.unweighed.LATE} s; of a mass '
        'also: windows of {monitor.exchanged.WINDOW} s whose equations contradict each other, also with pressures '
        'exchanged, after {monitor.exchanged.FREE} s that a load explains, for {monitor.exchanged.LONGEST} s at most',
        (_STATE, _MASS), True),
    Fault.UNSOLVED: Kind(
        'not solved', 'the smoother found no solution, or is too far behind', 'loses the state, LOST',
        'the solver ends without a solution, or {streams.lagged.BEHIND} instants wait for it', (_LINKAGE,)),
    Fault.DOUBTED: Kind(
        'observer not trusted', 'the state was in doubt a moment ago', 'NO_DATA: the mass is held',
        'for {streams.mass_monitor.RETURN_NS} s after a fault that doubts the state', (_MASS,)),
    Fault.FIRST_MASS: Kind(
        'the first mass does not agree yet with the one half a second before', 'no load is known yet',
        'CHANGING: no mass yet', 'masses {monitor.mass.LOOK_BACK} s apart differ by more than '
        '{monitor.mass.AGREES} deviations of their noise', (_MASS,)),
    Fault.PAUSED: Kind(
        'after a pause of sensors the load may be another one, and is not known yet',
        'samples were missing, and no mass is known since', 'NO_DATA: the mass is held',
        'a pause, of which each {filters.weighing.PAUSES} s leave 1/e of what is known of the load', (_MASS,)),
    Fault.UNSEEN: Kind(
        'the load may be another', 'cylinders moved that nothing weighs', 'CHANGING: forgets the mass',
        'less than {monitor.mass.FIRST_WEIGHED} s of weighing since the motion of a cylinder whose pressures are '
        'not measured', (_MASS,)),
    Fault.LIMITS: Kind(
        'the mass is not within', 'beyond `payload.limits` by 3 standard deviations', _WRONG,
        'a mass beyond them by {payload.mass.BEYOND} half-widths of its interval', (_MASS,)),
    Fault.CONTRADICTION: Kind(
        'masses of different poses contradict each other',
        "no error that the file states explains them: a sensor or the machine's file is wrong",
        f'{_WRONG}; or, if another zero of a position sensor explains them, the status stays, the reason names it, and '
        'the mass is corrected, with a wide interval',
        'a chance below {payload.common_errors.CREDIBLE} of errors that explain the masses; a zero by '
        '{payload.zeros.SIGNIFICANT} deviations, after {payload.zeros.SOONEST} blocks of '
        '{payload.common_errors.BLOCK} s, that explains them as well as any number', (_MASS,)),
    Fault.LOAD_CHANGES: Kind(
        'the load changes', 'the force balance shows another mass', 'CHANGING: forgets the mass',
        'within {monitor.mass.LOOK_BACK} s the logarithm of what counts still of the mass falls by '
        '{monitor.mass.CHANGED}, and its noise rises {monitor.mass.LOST} times; until it moves by less '
        'than {monitor.mass.CALM} deviation and is known to {monitor.mass.KNOWN} of the range of its '
        'limits', (_MASS,)),
    Fault.SURPRISE: Kind(
        'masses of these poses contradict those before', 'the machine has moved, or a sensor has become wrong',
        'CHANGING: forgets what was found of the errors',
        'a mean square of surprises above {payload.common_errors.SURPRISED} of their variance', (_MASS,)),
    Fault.NOT_TRUSTED: Kind(
        'not trusted yet', 'the masses looked well for too short a time after alarms',
        f'{_WRONG} until they agree for a while of motion',
        'less than {monitor.mass.FIRST} s of motion, then twice as long up to {monitor.mass.LONGEST} s, after '
        'an implausible mass, {monitor.mass.LASTING} s of masses that change to and fro, or more than '
        '{monitor.mass.ALARMS} alarms; {monitor.mass.EXPLAINED} s after an error of the model was found', (_MASS,)),
    Fault.SINGULAR: Kind(
        'the position cannot be solved', 'the estimated pose is singular, or cannot be reached',
        'OUTSIDE_STROKE: the mass is held', 'the position problem has no solution', (_MASS,)),
    Fault.UNWEIGHED: Kind(
        'no sensors weigh', 'no cylinder has all sensors that a weighing takes', 'NOT_OBSERVABLE: no mass',
        "the machine's file", (_MASS,)),
    Fault.EXCHANGED: Kind(
        'the forces balance only with these exchanged (swapped hoses, or one of them is wrong)',
        'no load explains the two pressures of a cylinder as they are, and one does the other way', _WRONG,
        'windows of {monitor.exchanged.WINDOW} s: no mass within `payload.limits` agrees to {monitor.exchanged.SURE} '
        'standard deviations and friction; or both show one signal for {monitor.one_signal.TIME} s of motion',
        (_MASS,)),
    Fault.FORCE_BALANCE: Kind(
        'the force balance does not fit the sensors; its error is taken to be',
        "friction or a force that the machine's file does not have, another body, a pressure that is off, or valves, "
        'hoses or a pump that are not those of the file',
        'the mass counts as far as the balance is known, with a wide interval, and so does what was weighed before',
        'means of the innovations of the sensors of a cylinder over 0.3, 1 or 3 s beyond '
        '{filters.force_error.BIASED} '
        'deviations, of which a larger error of the balance, or of the pressures, leaves {filters.force_error.LESS}; '
        'or a mass that oscillates: within {filters.oscillation.WINDOW} s one sine explains '
        '{filters.oscillation.SHARE} of its variance; '
        'until its residuals say '
        'for several times {filters.force_error.FALLS} s that it is smaller', (_STATE,)),
}
DOUBTS = Fault(sum(fault for fault, kind in KINDS.items() if kind.doubts))


def reason_of(fault: Fault, *names: str) -> str:
    """How people read a fault, and of what."""
    return KINDS[fault].reason + (f': {", ".join(names)}' if names else '')


def joined(faults: object) -> Fault:
    """All of some faults as one value."""
    found = NONE
    for fault in faults:    # type: ignore[attr-defined]
        found |= fault
    return found


class ObserverStatus(IntEnum):
    """Trust in a state estimate; the values are those of HydraulicState.msg."""

    OK = 0
    STARTING = 1
    COASTING = 2
    LOST = 3


class PayloadStatus(IntEnum):
    """Why the payload mass is or is not updated; the values are those of PayloadEstimate.msg."""

    UPDATING = 0
    TOO_SLOW = 1
    NO_DATA = 2
    NOT_OBSERVABLE = 3
    OUTSIDE_STROKE = 4
    ACCELERATING = 5
    IMPLAUSIBLE = 6
    CHANGING = 7
    CONTACT = 8


JUDGED = PayloadStatus.UPDATING, PayloadStatus.IMPLAUSIBLE     # of a mass that a state has just given
GATES = {
    'open': (PayloadStatus.UPDATING, ''),
    'too slow': (PayloadStatus.TOO_SLOW, 'piston too slow: friction is not known near standstill'),
    'not observable': (PayloadStatus.NOT_OBSERVABLE, 'the mass does not show in the cylinder force here'),
    'outside the stroke': (PayloadStatus.OUTSIDE_STROKE, 'piston at or beyond an end of its stroke'),
    'accelerating': (PayloadStatus.ACCELERATING, 'machine accelerates too much'),
}
GATED = tuple(status for status, _ in GATES.values())


class Measured(IntEnum):
    """What became of a channel's sample; the values are those of LinkageState.msg."""

    MISSING = 0
    USED = 1
    REJECTED = 2


@dataclass(frozen=True)
class Health:
    """Over the last innovations: ``mean_nis`` per measurement, ``whiteness`` (p-value of Ljung-Box), NaN while there
    are too few; ``rank`` of ``size`` directions that the sensors see, -1 while not known."""

    mean_nis: float = float('nan')
    whiteness: float = float('nan')
    rank: int = -1
    size: int = -1
