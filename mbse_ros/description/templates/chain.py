# SPDX-License-Identifier: Apache-2.0
"""A machine from its answers, body by body from the foot outwards, and the bucket of an excavator with its linkage."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...errors import DescriptionError
from .answers import Answers
from .geometry import TAPE, NoTriangleError, Point, apex, between, deviations, direction, lever, moved
from .kinds import ChainLink
from .layout import (
    MachineLayout,
    OpenLoopError,
    PinnedBody,
    PlacedCylinder,
    Turning,
    bar,
    pin_of,
    spread_of,
    swept,
    turning,
    vertex,
)
from .likely import likely
from .loader import add_loader_bucket

PLAY = 0.01         # m: of a telescope's limits beyond its stroke


def layout_of(answers: Answers) -> MachineLayout:
    """Pins, joints and cylinders; raises DescriptionError with the answers that do not fit together, and what would
    fit."""
    found, error = begun(answers)
    if error is not None:
        raise error
    return found


def begun(answers: Answers) -> tuple[MachineLayout, DescriptionError | None]:
    """As much of a machine as some answers give, and why there is no more: None where answers are missing."""
    found = MachineLayout(answers=answers)
    try:
        _add_bodies(found)
    except KeyError:        # not answered yet
        return found, None
    except OpenLoopError as error:
        return found, likely(answers, error, lambda other: _add_bodies(MachineLayout(answers=other)))
    except DescriptionError as error:
        return found, error
    return found, None


def _add_bodies(found: MachineLayout) -> None:
    answers, before = found.answers, None
    for link in answers.kind.links:
        before = _slid(found, link, before) if link.slides and before else _chained(found, link, before)
    if answers.kind.bucket is not None and before is not None:
        add = {'rocker': _bucket, 'bellcrank': add_loader_bucket}[answers.kind.linkage]
        add(found, answers.kind.bucket, before)


def _chained(found: MachineLayout, link: ChainLink, before: PinnedBody | None) -> PinnedBody:
    """The next body of the chain, which a cylinder moves from the body before."""
    answers, key = found.answers, link.cylinder
    length, sizes = answers.length(link.name), answers.several(f'{key}_cylinder')
    last_one = link is answers.kind.links[-1]
    from_base = last_one and answers.kind.linkage == 'rocker'
    eye, eye_spread = (_seen_from_base(answers, f'{key}_eye', length) if from_base else
                       pin_of(answers, f'{key}_eye', link.name, length, link.eye)[:2])
    last = 'tip' if last_one and not answers.kind.bucket else 'end'
    points = {'pin': ((0.0, 0.0), (0.0, 0.0)), f'{key}_eye': (eye, eye_spread), last: ((length, 0.0), (TAPE, 0.0))}
    body = PinnedBody(link, length, points)
    if before is None:
        x, z = answers.several(f'{key}_base')
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
    found.cylinders.append(PlacedCylinder(key, names[1], f'{link.name}.{key}_eye', sizes, answers.count(key)))
    return body


def _slid(found: MachineLayout, link: ChainLink, outer: PinnedBody) -> PinnedBody:
    """A telescope along the line of pins of the body before; its frame is that of the outer one where it is retracted.
    Where on this line its cylinder is does not count."""
    answers, key = found.answers, link.cylinder
    sizes, zero = answers.several(f'{key}_cylinder'), ((0.0, 0.0), (0.0, 0.0))
    reach = sizes[3] - sizes[2]
    last = 'tip' if link is answers.kind.links[-1] else 'end'
    body = PinnedBody(link, outer.length, {'pin': zero, f'{key}_eye': ((sizes[2], 0.0), (0.0, 0.0)),
                                           last: ((outer.length, 0.0), (TAPE, 0.0))})
    found.bodies.append(body)
    found.joints.append(Turning(f'{link.name}_joint', f'{outer.link.name}.pin', f'{link.name}.pin', 0.5 * reach,
                                (-PLAY, reach + PLAY), True))
    found.cylinders.append(PlacedCylinder(key, f'{outer.link.name}.pin', f'{link.name}.{key}_eye', sizes))
    return body


def _bucket(found: MachineLayout, link: ChainLink, arm: PinnedBody) -> None:
    """The bucket, and the linkage by which its cylinder turns it."""
    answers, name = found.answers, arm.link.name
    near, far, across = answers.several('bucket')
    hung = vertex(answers, 'bucket', far, near, across, link.eye)
    rocker, size, sizes = answers.length('rocker'), answers.length('link'), answers.several('bucket_cylinder')
    arm.points['bucket_base'] = pin_of(answers, 'bucket_base', name, arm.length, 1)[:2]
    back, up = answers.several('rocker_pin')
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
