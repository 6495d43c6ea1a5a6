# SPDX-License-Identifier: Apache-2.0
"""Where the pins of a machine are, from its answers: frames start at the first pin of a body, x points to its last one.

Angles of joints are those of these lines, positive upwards: 0 where two bodies are a straight line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...errors import DescriptionError
from .answers import Answers
from .geometry import SLACK, NoTriangleError, Point, apex, deviations
from .kinds import ChainLink, MachineKind

STEPS = 41          # of a stroke, over which every loop must close
MARGIN = math.radians(2.0)      # of a joint's limits beyond what the stroke reaches


class OpenLoopError(DescriptionError):
    """A loop does not close: ``keys`` of the answers whose lengths are in it."""

    def __init__(self, file: str, key: str, value: object, expected: str, keys: Sequence[str]) -> None:
        super().__init__(file, key, value, expected)
        self.keys = tuple(keys)


@dataclass(frozen=True)
class PinnedBody:
    """A body: its typical numbers, length and pins (x, z) with their deviations, m."""

    link: ChainLink
    length: float
    points: dict[str, tuple[Point, Point]]


@dataclass(frozen=True)
class Turning:
    """A joint about -y, or one that ``slides`` along x: its pins, start and limits, rad or m (None: no limits)."""

    name: str
    parent: str
    child: str
    start: float
    limits: tuple[float, float] | None = None
    slides: bool = False


@dataclass(frozen=True)
class PlacedCylinder:
    """Pins; bore, rod, closed and extended length, m; how many are side by side."""

    name: str
    base: str
    eye: str
    sizes: list[float]
    count: int = 1


@dataclass
class PlanarLayout:
    """A machine in its plane, m and rad."""

    bodies: list[PinnedBody] = field(default_factory=list)
    joints: list[Turning] = field(default_factory=list)
    cylinders: list[PlacedCylinder] = field(default_factory=list)
    ground: dict[str, Point] = field(default_factory=dict)      # bases of cylinders, from the foot of the first body


@dataclass
class MachineLayout(PlanarLayout):
    """A machine from its answers."""

    answers: Answers = field(kw_only=True)

    @property
    def kind(self) -> MachineKind:
        """The kind of machine."""
        return self.answers.kind


def bar(name: str) -> ChainLink:
    """A uniform bar."""
    return ChainLink(name, '', 0.0, (0.5, 0.0), 0.29, 1, 1)


def pin_of(answers: Answers, key: str, body: str, length: float, side: int) -> tuple[Point, Point, int]:
    """A point of a body by its distances from the first and the last pin, its deviations, and the side of the line."""
    distances, side = answers.point(key, side)
    first, second = distances
    return vertex(answers, key, length, first, second, side, body), spread_of(length, first, second, side), side


def spread_of(base: float, first: float, second: float, side: int) -> Point:
    """Deviations of the apex of a triangle."""
    return deviations(lambda sides: apex(sides[0], sides[1], sides[2], side, 2.0 * SLACK), (base, first, second))


def vertex(answers: Answers, key: str, base: float, first: float, second: float, side: int, body: str = '') -> Point:
    """The third point of a triangle; raises DescriptionError."""
    try:
        return apex(base, first, second, side)
    except NoTriangleError as error:
        raise answers.entries[key].error(f'lengths that make a triangle{f" with {body}" if body else ""}: {error}'
                                         ) from None


def swept(answers: Answers, keys: list[str], sizes: list[float],
           pose: Callable[[float], tuple[float, ...]]) -> list[list[float]]:
    """Angles of joints over the stroke, rad, each without jumps."""
    closed, extended = sizes[2:]
    rows: list[tuple[float, ...]] = []
    for k in range(STEPS):
        length = closed + (extended - closed) * k / (STEPS - 1)
        try:
            found = pose(length)
        except NoTriangleError as error:
            raise OpenLoopError(
                answers.entries[keys[-1]].file, keys[-1], f'{length:.4g} m from pin to pin',
                f'a machine that closes over the whole stroke, by {", ".join(keys)}: {error}', keys) from None
        if rows:
            found = tuple(math.remainder(new - old, 2 * math.pi) + old for new, old in zip(found, rows[-1]))
        rows.append(found)
    middle = rows[STEPS // 2]
    shift = [2 * math.pi * round(angle / (2 * math.pi)) for angle in middle]
    return [[row[k] - shift[k] for row in rows] for k in range(len(middle))]


def turning(name: str, parent: str, child: str, angles: list[float], limited: bool = True) -> Turning:
    """A joint from its angles over a stroke."""
    limits = (min(angles) - MARGIN, max(angles) + MARGIN) if limited else None
    return Turning(name, parent, child, angles[STEPS // 2], limits)
