# SPDX-License-Identifier: Apache-2.0
"""The sections `nonholonomic`, blades and wheels that do not slip, and `quasi_velocities`."""

from __future__ import annotations

from ..basics import GROUND
from ..language.entry import Entry
from ..language.quantity import positive
from ..language.references import References
from ..model import NonHolonomic, QuasiVelocity


def read_nonholonomic(entry: Entry, references: References) -> dict[str, NonHolonomic]:
    """Constraints on velocities, by name."""
    return {name: _constraint(name, item, references) for name, item in entry.named('nonholonomic').items()}


def _constraint(name: str, entry: Entry, references: References) -> NonHolonomic:
    entry.mapping([], ['point', 'along', 'rolls', 'radius', 'axis', 'on'])
    if entry.one_of(('point', 'rolls')) == 'point':
        parts = entry.mapping(['point', 'along'])
        point = references.point(parts['point'], on_body=True)
        return NonHolonomic(name, point, references.numbers.direction(parts['along'], references.dimension))
    parts = entry.mapping(['rolls', 'radius'], ['on'] if references.planar else ['axis', 'on'])
    ground = references.point(parts['on']) if 'on' in parts else None
    if ground is not None and ground.body != GROUND:
        raise parts['on'].error('a point of the ground: the wheel rolls on what is level there')
    return NonHolonomic(name, references.point(parts['rolls'], on_body=True),
                        radius=references.numbers.scalar(parts['radius'], positive('m', 100.0)), on=ground,
                        axis=references.numbers.direction(parts['axis'], 3) if 'axis' in parts else ())


def read_quasi_velocities(entry: Entry, references: References) -> dict[str, QuasiVelocity]:
    """Names of velocities that are derivatives of no coordinates."""
    found: dict[str, QuasiVelocity] = {}
    for name, item in entry.named('quasi_velocities').items():
        if name in references.known_coordinates():
            raise item.error('another name, this one is of a coordinate', name)
        item.mapping([], ['point', 'body', 'along'])
        kind = item.one_of(('point', 'body'))
        parts = item.mapping([kind] if references.planar and kind == 'body' else [kind, 'along'])
        along = references.numbers.direction(parts['along'], references.dimension) if 'along' in parts else ()
        point = references.point(parts['point'], on_body=True) if kind == 'point' else None
        body = references.body(parts['body']) if point is None else point.body
        found[name] = QuasiVelocity(name, body, along, point)
    return found
