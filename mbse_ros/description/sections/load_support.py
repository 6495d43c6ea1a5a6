# SPDX-License-Identifier: Apache-2.0
"""The section `base.support`: the polygon on which a machine stands, and the mass that does not move."""

from __future__ import annotations

from ..language.entry import Entry
from ..language.quantity import Kind, not_negative
from ..language.references import References
from ..machine_parts import Support

Corner = tuple[float, float]
FARTHEST = 100.0    # m
LEAST = 1e-3        # m: a polygon that is narrower is a line


def read_support(entry: Entry, references: References) -> Support:
    """Corners in any order: those inside the polygon of the others carry nothing, and are left out."""
    parts = entry.mapping(['corners'], ['height', 'mass', 'center_of_mass'])
    numbers, length = references.numbers, Kind('m', -FARTHEST, FARTHEST)
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
