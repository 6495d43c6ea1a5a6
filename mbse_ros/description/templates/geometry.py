# SPDX-License-Identifier: Apache-2.0
"""Pins from lengths, in the plane of a machine: x along a line of two pins, z to its left; m, rad.

A triangle of which one point is nearly on the line of the others closes within what a tape measure leaves, or not at
all: within ``SLACK`` it is put on the line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Point = tuple[float, float]
TAPE = 5e-3         # m: standard deviation of a length by tape measure, from pin to pin
SLACK = 4 * TAPE    # by how much two sides may be shorter than the third


class NoTriangleError(ValueError):
    """Three lengths that make no triangle."""


def apex(base: float, first: float, second: float, side: int, slack: float = SLACK) -> Point:
    """The point that is ``first`` from (0, 0) and ``second`` from (base, 0), to the left (``side`` 1) or to the right
    (-1) of the line. Raises NoTriangleError where a length is more than ``slack``, m, too long."""
    sides = sorted((base, first, second))
    if sides[0] + sides[1] < sides[2] - slack:
        raise NoTriangleError(f'{base:.4g}, {first:.4g} and {second:.4g} m make no triangle: the longest is '
                              f'{1e3 * (sides[2] - sides[0] - sides[1]):.0f} mm longer than the others together')
    x = 0.5 * (base + (first - second) * (first + second) / base)
    return x, side * math.sqrt(max((first - x) * (first + x), 0.0))


def between(first: Point, a: float, second: Point, b: float, side: int) -> Point:
    """The point ``a`` from one and ``b`` from another, to the left of the way between them or to the right. Raises
    NoTriangleError."""
    away = second[0] - first[0], second[1] - first[1]
    return moved(first, math.atan2(away[1], away[0]), apex(math.hypot(*away), a, b, side))


def moved(origin: Point, angle: float, point: Point) -> Point:
    """A point of a frame, in the frame that has its origin there and is turned by so much, rad."""
    c, s = math.cos(angle), math.sin(angle)
    return origin[0] + c * point[0] - s * point[1], origin[1] + s * point[0] + c * point[1]


def direction(start: Point, end: Point) -> float:
    """Angle of the way from one point to another, rad."""
    return math.atan2(end[1] - start[1], end[0] - start[0])


def lever(pivot: Point, base: Point, arm: float, length: float, sense: int) -> float:
    """Angle, rad, of a lever ``arm`` m long about a pivot whose end is ``length`` from the base of its cylinder; a
    longer cylinder turns it to the left (``sense`` 1) or to the right. Raises NoTriangleError."""
    x, z = apex(math.dist(pivot, base), arm, length, sense)
    return direction(pivot, base) + math.atan2(z, x)


def deviations(function: Callable[[Sequence[float]], Point], lengths: Sequence[float], stddev: float = TAPE) -> Point:
    """Standard deviations of x and z from those of the lengths, by central differences."""
    total = [0.0, 0.0]
    for k in range(len(lengths)):
        ends = [function([value + sign * stddev * (i == k) for i, value in enumerate(lengths)]) for sign in (-1, 1)]
        for axis in range(2):
            total[axis] += (0.5 * (ends[1][axis] - ends[0][axis])) ** 2
    return math.sqrt(total[0]), math.sqrt(total[1])
