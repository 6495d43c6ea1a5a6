# SPDX-License-Identifier: Apache-2.0
"""The section `cylinders`: each one also becomes a coordinate of its name, the position of its piston."""

from __future__ import annotations

from ..basics import ZERO, Scalar
from ..language.entry import Entry
from ..language.quantity import Kind, not_negative, positive
from ..language.references import References
from ..language.scalar import Numbers
from ..machine_parts import Cylinder, EndStop, Friction
from ..model import Coordinate

MOST = 8        # cylinders side by side
NO_FRICTION = Friction(ZERO, ZERO, Scalar(1.0), ZERO, ZERO, ZERO, Scalar(1.0))


def read_cylinders(entry: Entry, references: References, pushed: bool = True) -> dict[str, Cylinder]:
    """Cylinders by name; their coordinates join those of ``references``; ``pushed``: the file says by which hydraulics,
    so that their friction counts."""
    found = {}
    for name, item in entry.named('cylinders').items():
        if name in references.coordinates or name in references.joints:
            raise item.error('another name, there is a joint or a coordinate of this name', name)
        found[name] = cylinder = _cylinder(name, item, references, pushed)
        references.coordinates[name] = Coordinate(name, 'piston', points=(cylinder.base, cylinder.rod_eye),
                                                  closed_length=cylinder.closed_length)
    return found


def _cylinder(name: str, entry: Entry, references: References, pushed: bool) -> Cylinder:
    numbers = references.numbers
    parts = entry.mapping(['base', 'rod_eye', 'bore', 'rod', 'closed_length', 'stroke', *['friction'] * pushed],
                          [*['friction'] * (not pushed), 'end_stop', 'count', 'barrel_mass', 'rod_mass'])
    base, rod_eye = references.point(parts['base']), references.point(parts['rod_eye'])
    if base.body == rod_eye.body:
        raise parts['rod_eye'].error(f'a point of another body than the base, {base.body}')
    if references.same_place(base, rod_eye):
        raise parts['rod_eye'].error('a point whose distance from the base can change')
    bore, rod = (numbers.scalar(parts[key], Kind('m', 1e-3, 5.0)) for key in ('bore', 'rod'))
    if rod.value >= bore.value:
        raise parts['rod'].error(f'a rod thinner than the bore, {bore.value:g} m')
    closed, stroke = (numbers.scalar(parts[key], positive('m', 100.0)) for key in ('closed_length', 'stroke'))
    masses = [numbers.optional(parts, key, not_negative('kg')) for key in ('barrel_mass', 'rod_mass')]
    end_stop = _end_stop(parts['end_stop'], numbers, stroke.value) if 'end_stop' in parts else None
    count = 1
    if 'count' in parts:
        count = int(parts['count'].choice([str(k) for k in range(1, MOST + 1)], 'how many cylinders work side by side'))
    friction = _friction(parts['friction'], numbers) if 'friction' in parts else NO_FRICTION
    return Cylinder(name, base, rod_eye, bore, rod, closed, stroke, friction, end_stop, count, *masses)


def _friction(entry: Entry, numbers: Numbers) -> Friction:
    """Pressure terms default to none, the common scale to 1."""
    parts = entry.mapping(['coulomb', 'static', 'transition_velocity', 'viscous'],
                          ['pressure_difference', 'pressure_rod', 'scale'])
    coulomb, static = (numbers.scalar(parts[key], not_negative('N')) for key in ('coulomb', 'static'))
    if static.value < coulomb.value:
        raise parts['static'].error(f'no less than the Coulomb friction, {coulomb.value:g} N')
    difference, rod = (numbers.optional(parts, key, not_negative('m^2'), ZERO)
                       for key in ('pressure_difference', 'pressure_rod'))
    scale = numbers.optional(parts, 'scale', not_negative('1'), Scalar(1.0))
    return Friction(coulomb, static, numbers.scalar(parts['transition_velocity'], positive('m/s')),
                    numbers.scalar(parts['viscous'], not_negative('N*s/m')), difference, rod, scale)


def _end_stop(entry: Entry, numbers: Numbers, stroke: float) -> EndStop:
    parts = entry.mapping(['stiffness', 'damping', 'length'])
    return EndStop(numbers.scalar(parts['stiffness'], positive('N/m')),
                   numbers.scalar(parts['damping'], not_negative('N*s/m')),
                   numbers.scalar(parts['length'], positive('m', 0.5 * stroke)))
