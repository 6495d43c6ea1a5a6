# SPDX-License-Identifier: Apache-2.0
"""The sections `payload` and `base`."""

from __future__ import annotations

from ..assumptions import level
from ..basics import GROUND, Scalar, Vector
from ..language.entry import Entry
from ..language.quantity import Kind, not_negative
from ..language.references import References
from ..machine_parts import Base, Payload
from .load_support import read_support

MASS = 'payload.mass'
BASE = ('base.roll', 'base.pitch')
STEEPEST = 0.8      # rad
LARGEST = 20.0      # m, radius of gyration of a load
PENDULUM = 0.1, 100.0       # m, lengths at which a load hangs
_OWN = ['contact', 'gyration_radius', 'hanging']


def read_payload(entry: Entry, references: References) -> Payload:
    """At a point of a body, or with its centre in the frame of a body."""
    numbers = references.numbers
    if isinstance(entry.value, dict) and 'point' in entry.value:
        parts = entry.mapping(['point', 'limits'], _OWN)
        ref = references.point(parts['point'], on_body=True)
        body, center, point = ref.body, references.bodies[ref.body].points[ref.point], ref.point
    else:
        parts = entry.mapping(['body', 'center', 'limits'], _OWN)
        body, point = references.body(parts['body']), ''
        center = numbers.vector(parts['center'], Kind('m'), references.dimension)
    low, high = (numbers.number(item, not_negative('kg')) for item in parts['limits'].items('two masses', 2))
    if low >= high:
        raise parts['limits'].error('a lower and a higher mass')
    if not _leads_to_ground(body, references):
        raise entry.error('a body that joints tie to the ground', body, 'point' if point else 'body')
    touched = references.point(parts['contact'], on_body=True) if 'contact' in parts else None
    contact = f'{touched.body}.{touched.point}' if touched else ''
    radius = numbers.optional(parts, 'gyration_radius', not_negative('m', LARGEST))
    hanging = numbers.optional(parts, 'hanging', Kind('m', *PENDULUM))
    if hanging is not None:
        _check_hanging(parts, center, references)
    return Payload(body, center, (low, high), Scalar(0.0, key=MASS), point, contact, radius, hanging)


def read_base(entry: Entry, references: References) -> Base:
    """Roll and pitch of the machine's frame, 0 and uncertain where the file leaves them out, and on what it stands."""
    if references.planar:
        raise entry.error('no base; it can be inclined in space only (dimension: 3)')
    parts = entry.mapping([], ['roll', 'pitch', 'support'])
    kind = Kind('rad', -STEEPEST, STEEPEST)
    roll, pitch = (references.numbers.optional(parts, name, kind, level(name)) for name in ('roll', 'pitch'))
    return Base(roll, pitch, read_support(parts['support'], references) if 'support' in parts else None)


def _check_hanging(parts: dict[str, Entry], center: Vector, references: References) -> None:
    """A load that hangs does not turn with the body, and hangs from a place that is known."""
    if 'gyration_radius' in parts:
        raise parts['gyration_radius'].error('no radius of gyration of a load that is `hanging`: it swings as a point '
                                             'and does not turn with the body')
    if 'center' in parts and any(item.stddev for item in center):
        raise parts['center'].error('a centre without stddev, or no `hanging`: the mass of a load that hangs acts at '
                                    'the pin of the hook')


def _leads_to_ground(body: str, references: References) -> bool:
    """Whether joints lead from a body to the ground."""
    reached, grown = {body}, True
    while grown:
        found = {end for joint in references.joints.values() for end in (joint.parent.body, joint.child.body)
                 if {joint.parent.body, joint.child.body} & reached}
        grown = not found <= reached
        reached |= found
    return GROUND in reached
