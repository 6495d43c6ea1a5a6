# SPDX-License-Identifier: Apache-2.0
"""Where the pins of a machine are, from its answers: frames start at the first pin of a body, x points to its last one.

Angles of joints are those of these lines, positive upwards: 0 where two bodies are a straight line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...errors import DescriptionError
from .answers import PLACE, Answers, count_of
from .geometry import (
    TAPE,
    NoTriangleError,
    Point,
    apex,
    between,
    deviations,
    direction,
    lever,
    moved,
)
from .kinds import ChainLink, MachineKind

STEPS = 41          # of a stroke, over which every loop must close
MARGIN = math.radians(2.0)      # of a joint's limits beyond what the stroke reaches


@dataclass(frozen=True)
class PinnedBody:
    """A body: its typical numbers, length and pins (x, z) with their deviations, m."""

    link: ChainLink
    length: float
    points: dict[str, tuple[Point, Point]]


@dataclass(frozen=True)
class Turning:
    """A joint about -y: its pins, start and limits, rad (None: no limits)."""

    name: str
    parent: str
    child: str
    start: float
    limits: tuple[float, float] | None = None


@dataclass(frozen=True)
class PlacedCylinder:
    """Pins; bore, rod, closed and extended length, m; how many are side by side."""

    name: str
    base: str
    eye: str
    sizes: list[float]
    count: int = 1


@dataclass
class MachineLayout:
    """A machine from its answers."""

    answers: Answers
    bodies: list[PinnedBody] = field(default_factory=list)
    joints: list[Turning] = field(default_factory=list)
    cylinders: list[PlacedCylinder] = field(default_factory=list)
    ground: dict[str, Point] = field(default_factory=dict)      # bases of cylinders, from the foot of the first body

    @property
    def kind(self) -> MachineKind:
        """The kind of machine."""
        return self.answers.kind


def layout_of(answers: Answers) -> MachineLayout:
    """Pins, joints and cylinders; raises DescriptionError with the answers that do not fit together."""
    from .loader import add_loader_bucket  # here, as it adds to what stands here
    found = MachineLayout(answers)
    before: PinnedBody | None = None
    for link in answers.kind.links:
        before = _chained(found, link, before)
    if answers.kind.bucket is not None and before is not None:
        add = {'rocker': _bucket, 'bellcrank': add_loader_bucket}[answers.kind.linkage]
        add(found, answers.kind.bucket, before)
    answers.swing(), answers.hanging()
    return found


def _chained(found: MachineLayout, link: ChainLink, before: PinnedBody | None) -> PinnedBody:
    """The next body of the chain, which a cylinder moves from the body before."""
    answers, key = found.answers, link.cylinder
    length, sizes = answers.length(link.name), answers.cylinder(f'{key}_cylinder')
    last_one = link is answers.kind.links[-1]
    from_base = last_one and answers.kind.linkage == 'rocker'
    eye, eye_spread = (_seen_from_base(answers, f'{key}_eye', length) if from_base else
                       pin_of(answers, f'{key}_eye', link.name, length, link.eye)[:2])
    last = 'tip' if last_one and not answers.kind.bucket else 'end'
    points = {'pin': ((0.0, 0.0), (0.0, 0.0)), f'{key}_eye': (eye, eye_spread), last: ((length, 0.0), (TAPE, 0.0))}
    body = PinnedBody(link, length, points)
    if before is None:
        x, z = answers.several(f'{key}_base', 'how far ahead of the foot, and how far above it', 2, PLACE)
        pivot, base, sense = (0.0, 0.0), (x, z), 1 if z < 0.0 else -1
        found.ground[f'{key}_base'] = base
        names = 'ground.foot', f'ground.{key}_base'
    else:
        base, spread, side = pin_of(answers, f'{key}_base', before.link.name, before.length, link.base)
        before.points[f'{key}_base'] = base, spread
        pivot, sense = (before.length, 0.0), -side
        names = f'{before.link.name}.end', f'{before.link.name}.{key}_base'
    own = math.atan2(eye[1], eye[0])
    angle = swept(answers, [f'{key}_base', f'{key}_eye', f'{key}_cylinder'], sizes, lambda stroke: (
        lever(pivot, base, math.hypot(*eye), stroke, sense) - own,))[0]
    found.bodies.append(body)
    found.joints.append(turning(f'{link.name}_joint', names[0], f'{link.name}.pin', angle))
    found.cylinders.append(PlacedCylinder(key, names[1], f'{link.name}.{key}_eye', sizes, count_of(answers, key)))
    return body


def _bucket(found: MachineLayout, link: ChainLink, arm: PinnedBody) -> None:
    """The bucket, and the linkage by which its cylinder turns it."""
    answers, name = found.answers, arm.link.name
    near, far, across = answers.several(
        'bucket', 'three lengths: pin to pin of the link, pin to teeth, pin of the link to teeth', 3)
    hung = vertex(answers, 'bucket', far, near, across, link.eye)
    rocker, size, sizes = answers.length('rocker'), answers.length('link'), answers.cylinder('bucket_cylinder')
    arm.points['bucket_base'] = pin_of(answers, 'bucket_base', name, arm.length, 1)[:2]
    back, up = answers.several('rocker_pin', 'how far before the pin of the bucket, and how far above the line', 2,
                               PLACE)
    arm.points['rocker_pin'] = (arm.length - back, up), (TAPE, TAPE)
    base, pivot, pin = arm.points['bucket_base'][0], arm.points['rocker_pin'][0], (arm.length, 0.0)

    def pose(stroke: float) -> tuple[float, float, float]:
        """Angles of rocker and bucket against the arm, and of the link against the rocker."""
        turned = lever(pivot, base, rocker, stroke, -1)
        eye = moved(pivot, turned, (rocker, 0.0))
        end = between(eye, size, pin, near, 1)
        return turned, direction(pin, end) - direction((0.0, 0.0), hung), direction(eye, end) - turned

    turned, bucket, hinged = swept(answers, ['rocker_pin', 'rocker', 'link', 'bucket', 'bucket_cylinder'], sizes, pose)
    zero = ((0.0, 0.0), (0.0, 0.0))
    found.bodies += [
        PinnedBody(link, far, {'pin': zero, 'link_pin': (hung, spread_of(far, near, across, link.eye)),
                         'teeth': ((far, 0.0), (TAPE, 0.0))}),
        *(PinnedBody(bar(part), long, {'pin': zero, 'end': ((long, 0.0), (TAPE, 0.0))})
          for part, long in (('rocker', rocker), ('link', size)))]
    found.joints += [turning('bucket_joint', f'{name}.end', 'bucket.pin', bucket),
                     turning('rocker_joint', f'{name}.rocker_pin', 'rocker.pin', turned, False),
                     turning('link_joint', 'rocker.end', 'link.pin', hinged, False),
                     Turning('linkage_joint', 'link.end', 'bucket.link_pin', math.nan)]
    found.cylinders.append(PlacedCylinder('bucket', f'{name}.bucket_base', 'rocker.end', sizes))


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
    return deviations(lambda sides: apex(sides[0], sides[1], sides[2], side), (base, first, second))


def _seen_from_base(answers: Answers, key: str, length: float) -> tuple[Point, Point]:
    """The arm cylinder's eye from the pin of the boom and that of the bucket cylinder's base: a triangle that is not
    flat; with the last pin of the arm it nearly is."""
    (first, second), side = answers.point('bucket_base', 1)
    (own, across), own_side = answers.point(key, 1)
    vertex(answers, 'bucket_base', length, first, second, side)

    def place(sides: Sequence[float]) -> Point:
        return between((0.0, 0.0), sides[3], apex(sides[0], sides[1], sides[2], side), sides[4], own_side)
    sides = (length, first, second, own, across)
    try:
        return place(sides), deviations(place, sides)
    except NoTriangleError as error:
        raise answers.entries[key].error(f'lengths that make a triangle with bucket_base: {error}') from None


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
            raise DescriptionError(
                answers.entries[keys[-1]].file, keys[-1], f'{length:.4g} m from pin to pin',
                f'a machine that closes over the whole stroke, by {", ".join(keys)}: {error}') from None
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
