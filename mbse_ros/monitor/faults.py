# SPDX-License-Identifier: Apache-2.0
"""The kinds of faults that states and masses are reported with, as bits, and what each means and does.

Whatever decides looks at a ``Fault``. The ``reason`` beside it says the same to people, and nothing reads it.
"""

from __future__ import annotations

from enum import IntFlag
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

    @property
    def words(self) -> tuple[str, ...]:
        """The names of its kinds in small letters, () for none; of what a newer version sends: only those known."""
        return tuple(kind.name.lower() for kind in KINDS if kind in self)   # type: ignore[union-attr]


NONE = Fault(0)


class Kind(NamedTuple):
    """How the ``reason`` of a fault begins, what it ``means``, what it ``does``, and whether it ``doubts`` the state:
    then what was learnt of the mass a moment ago is left out, too."""

    reason: str
    means: str
    does: str
    doubts: bool = False


KINDS = {
    Fault.MISSING: Kind('missing', 'a sensor sends nothing', 'COASTING: the other sensors carry the state'),
    Fault.STUCK: Kind('constant', 'a sensor sends one value while the state moves on',
                      'COASTING: left out until its value changes', True),
    Fault.REJECTED: Kind('rejected', 'samples farther from the prediction than the gate allows',
                         'left out; COASTING after `doubt_after`, LOST after `lost_after` for half of the sensors',
                         True),
    Fault.JUMPED: Kind('jumped', 'a position faster than any machine from one sample to the next',
                       'COASTING: left out until as much is jumped back', True),
    Fault.VACUUM: Kind('below vacuum', 'a pressure that no fluid has', 'COASTING: left out', True),
    Fault.SATURATED: Kind('at the end of its range', 'a sample at an end of the range that the file states',
                          'COASTING: left out', True),
    Fault.FAR: Kind('far outside its range', 'a position far beyond the stroke, or beyond the limits of a joint',
                    'COASTING: left out', True),
    Fault.UNIT: Kind('hardly any noise near zero (another unit?)',
                     'a pressure near zero whose noise is far too small: in another unit, or without supply',
                     'COASTING: left out', True),
    Fault.RARE: Kind('samples too rare for this motion', 'what moves between two samples shows in none of them',
                     'the mass counts less; it is held instead of blaming the load or the file'),
    Fault.UNMEASURED: Kind('nothing is measured', 'no sensor gives a sample that can be used',
                           'LOST, or COASTING for a mechanism'),
    Fault.NOT_FINITE: Kind('the state left the finite numbers', 'infinite numbers, or a negative variance',
                           'LOST: starts again', True),
    Fault.OUT_OF_RANGE: Kind('where it cannot be', 'a coordinate is estimated where the machine cannot be',
                             'LOST: starts again', True),
    Fault.VAGUE: Kind('not known', 'a coordinate is known no better than a share of its range', 'LOST'),
    Fault.SETTLING: Kind('settling after a start', 'the state has started a moment ago', 'STARTING'),
    Fault.RESTARTED: Kind('starts again', 'a coordinate starts at what the sensor says that alone sees it', 'LOST'),
    Fault.UNCHECKED: Kind('nothing checks', 'samples are predicted so badly that any value would fit', 'COASTING'),
    Fault.MISFIT: Kind('the model or the stated noise does not fit',
                       'innovations far larger than stated, for long', 'COASTING; the noise of the motion is raised'),
    Fault.OUTSIDE_FORCE: Kind('outside force: the forces do not balance: contact with something, or a sensor is wrong',
                              'the force balance has a force that no load explains', 'CONTACT: the mass is held', True),
    Fault.UNSOLVED: Kind('not solved', 'the smoother found no solution, or is too far behind', 'LOST'),
    Fault.DOUBTED: Kind('observer not trusted', 'the state was in doubt a moment ago', 'NO_DATA: the mass is held'),
    Fault.FIRST_MASS: Kind('the first mass does not agree yet with the one half a second before',
                           'no load is known yet', 'CHANGING'),
    Fault.PAUSED: Kind('after a pause of all sensors the load may be another one, and is not known yet',
                       'no sensor has sent for long, and no mass is known since', 'NO_DATA: the mass is held'),
    Fault.UNSEEN: Kind('the load may be another', 'cylinders moved that nothing weighs', 'CHANGING'),
    Fault.LIMITS: Kind('the mass is not within', 'beyond `payload.limits` by 3 standard deviations', 'IMPLAUSIBLE'),
    Fault.CONTRADICTION: Kind('masses of different poses contradict each other',
                              "no error that the file states explains them: a sensor or the machine's file is wrong",
                              'IMPLAUSIBLE'),
    Fault.LOAD_CHANGES: Kind('the load changes', 'the force balance shows another mass', 'CHANGING'),
    Fault.SURPRISE: Kind('masses of these poses contradict those before',
                         'the machine has moved, or a sensor has become wrong', 'CHANGING'),
    Fault.NOT_TRUSTED: Kind('not trusted yet', 'the masses looked well for too short a time after alarms',
                            'IMPLAUSIBLE until they agree for a while of motion'),
    Fault.SINGULAR: Kind('the position cannot be solved', 'the estimated pose is singular, or cannot be reached',
                         'OUTSIDE_STROKE: the mass is held'),
    Fault.UNWEIGHED: Kind('no sensors weigh', 'no cylinder has all sensors that a weighing takes',
                          'NOT_OBSERVABLE: no mass'),
    Fault.EXCHANGED: Kind('the forces balance only with these exchanged (swapped hoses, or one of them is wrong)',
                          'no load explains the two pressures of a cylinder as they are, and one does the other way',
                          'IMPLAUSIBLE'),
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
