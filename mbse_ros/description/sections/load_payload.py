# SPDX-License-Identifier: Apache-2.0
"""The sections `payload`, `payloads` and `base`, with the polygon on which a machine stands and the mass that does not
move."""

from __future__ import annotations

from ..assumptions import level
from ..basics import GROUND, Scalar, Vector
from ..language.entry import Entry
from ..language.quantity import ValueKind, not_negative
from ..language.references import References
from ..machine_parts import Base, Payload, Support

MASS = 'payload.mass'
BASE = ('base.roll', 'base.pitch')
STEEPEST = 0.8      # rad
LARGEST = 20.0      # m, radius of gyration of a load
PENDULUM = 0.1, 100.0       # m, lengths at which a load hangs
_OWN = ['contact', 'gyration_radius', 'hanging']
_AMONG_SEVERAL = ['gyration_radius']
Corner = tuple[float, float]
FARTHEST = 100.0    # m
LEAST = 1e-3        # m: a polygon that is narrower is a line


def read_payloads(entry: Entry, references: References) -> dict[str, Payload]:
    """Several, by name: each as `payload`, rigid, at a place of its own."""
    found: dict[str, Payload] = {}
    for name, item in entry.named('payloads').items():
        with item.kept():
            if name == 'payload':
                raise entry.error('another name: `payload` is the section, and the topic, of one', name, name)
            payload = read_payload(item, references, f'{item.key}.mass', _AMONG_SEVERAL)
            for other, known in found.items():
                if _together(payload, known):
                    raise item.error(f'another place than that of {other}: no force distinguishes masses at one place')
            found[name] = payload
    if len(found) < 2:
        raise entry.error('two payloads or more; of one: the section `payload`')
    return found


def _together(one: Payload, other: Payload) -> bool:
    """Whether no motion distinguishes the masses of two payloads."""
    def values(item: Payload) -> tuple[object, ...]:
        return item.body, [place.value for place in item.center], item.gyration_radius and item.gyration_radius.value
    return values(one) == values(other)


def read_payload(entry: Entry, references: References, mass: str = MASS, own: list[str] = _OWN) -> Payload:
    """At a point of a body, or with its centre in the frame of a body; ``mass``: key of its mass, ``own``: keys that
    it may have."""
    numbers = references.numbers
    if isinstance(entry.value, dict) and 'point' in entry.value:
        parts = entry.mapping(['point', 'limits'], own)
        ref = references.point(parts['point'], on_body=True)
        body, center, point = ref.body, references.bodies[ref.body].points[ref.point], ref.point
    else:
        parts = entry.mapping(['body', 'center', 'limits'], own)
        body, point = references.body(parts['body']), ''
        center = numbers.vector(parts['center'], ValueKind('m'), references.dimension)
    low, high = (numbers.number(item, not_negative('kg')) for item in parts['limits'].items('two masses', 2))
    if low >= high:
        parts['limits'].wrong('a lower and a higher mass')
    if entry.file_sound and not _leads_to_ground(body, references):
        raise entry.error('a body that joints tie to the ground', body, 'point' if point else 'body')
    touched = references.point(parts['contact'], on_body=True) if 'contact' in parts else None
    contact = f'{touched.body}.{touched.point}' if touched else ''
    radius = numbers.optional(parts, 'gyration_radius', not_negative('m', LARGEST))
    hanging = numbers.optional(parts, 'hanging', ValueKind('m', *PENDULUM))
    if hanging is not None:
        _check_hanging(parts, center, references)
    return Payload(body, center, (low, high), Scalar(0.0, key=mass), point, contact, radius, hanging)


def read_base(entry: Entry, references: References) -> Base:
    """Roll and pitch of the machine's frame, 0 and uncertain where the file leaves them out, and on what it stands."""
    if references.planar:
        raise entry.error('no base; it can be inclined in space only (dimension: 3)')
    parts = entry.mapping([], ['roll', 'pitch', 'support'])
    kind = ValueKind('rad', -STEEPEST, STEEPEST)
    roll, pitch = (references.numbers.optional(parts, name, kind, level(name)) for name in ('roll', 'pitch'))
    support = parts['support'].tried(lambda: read_support(parts['support'], references), None
                                     ) if 'support' in parts else None
    return Base(roll, pitch, support)


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


def read_support(entry: Entry, references: References) -> Support:
    """Corners in any order: those inside the polygon of the others carry nothing, and are left out."""
    parts = entry.mapping(['corners'], ['height', 'mass', 'center_of_mass'])
    numbers, length = references.numbers, ValueKind('m', -FARTHEST, FARTHEST)
    corners = [(x, y) for x, y in (numbers.numbers(item, length, 2)
                                   for item in parts['corners'].items('corners, [x, y] each'))]
    hull = convex_hull(corners)
    if _width(hull) < LEAST:
        raise parts['corners'].error('at least three corners that are not on one line')
    height = numbers.number(parts['height'], length) if 'height' in parts else 0.0
    mass = numbers.number(parts['mass'], not_negative('kg')) if 'mass' in parts else 0.0
    if ('center_of_mass' in parts) != (mass > 0.0):
        raise entry.error('`mass` above 0 and `center_of_mass`, both or none', key='center_of_mass')
    x, y, z = numbers.numbers(parts['center_of_mass'], length, 3) if mass else (0.0, 0.0, 0.0)
    return Support(tuple(hull), height, mass, (x, y, z))


def convex_hull(points: list[Corner]) -> list[Corner]:
    """Corners of the convex polygon round points, counterclockwise (Andrew's monotone chain, 1979)."""
    ordered = sorted(set(points))

    def half(way: list[Corner]) -> list[Corner]:
        kept: list[Corner] = []
        for point in way:
            while len(kept) > 1 and _left(kept[-2], kept[-1], point) <= 0.0:
                kept.pop()
            kept.append(point)
        return kept[:-1]
    return half(ordered) + half(ordered[::-1])


def _left(a: Corner, b: Corner, c: Corner) -> float:
    """Twice the area of a triangle, m^2, positive where c lies to the left of the way from a to b."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _width(hull: list[Corner]) -> float:
    """Least distance, m, between two parallel lines that have a convex polygon between them; 0 of a line."""
    edges = list(zip(hull, hull[1:] + hull[:1]))
    return min((max(_left(a, b, c) for c in hull) / ((b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2) ** 0.5
                for a, b in edges), default=0.0) if len(hull) > 2 else 0.0
