# SPDX-License-Identifier: Apache-2.0
"""The bucket of a wheel loader, which a Z-bar linkage turns: the tilt cylinder pushes the upper end of a bellcrank on
the boom, whose lower end pulls the bucket by a link."""

from __future__ import annotations

import math

from .answers import Answers
from .geometry import TAPE, NoTriangleError, Point, between, direction, lever, moved
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

BELLCRANK = ChainLink('bellcrank', '', 0.008, (0.1, 0.0), 0.4, 1, 1)
ZERO = ((0.0, 0.0), (0.0, 0.0))


def add_loader_bucket(found: MachineLayout, link: ChainLink, boom: PinnedBody) -> None:
    """Bellcrank, link and bucket; raises DescriptionError with the answers that do not fit together."""
    answers, name, raised = found.answers, boom.link.name, found.joints[0]
    near, far, across = answers.several('bucket')
    hung = vertex(answers, 'bucket', far, near, across, link.eye)
    upper, lower, side = _bellcrank(answers)
    size, sizes = answers.length('link'), answers.several('tilt_cylinder')
    x, z = answers.several('tilt_base')
    boom.points['bellcrank_pin'] = pin_of(answers, 'bellcrank_pin', name, boom.length, 1)[:2]
    pivot, pin = boom.points['bellcrank_pin'][0], (boom.length, 0.0)
    found.ground['tilt_base'] = x, z

    def pose(stroke: float, angle: float = raised.start) -> tuple[float, float, float]:
        """Angles of bellcrank and bucket against the boom, and of the link against the bellcrank."""
        turned = lever(pivot, moved((0.0, 0.0), -angle, (x, z)), upper, stroke, -1)
        end = moved(pivot, turned, side)
        hook = between(end, size, pin, near, 1)
        return turned, direction(pin, hook) - direction((0.0, 0.0), hung), direction(end, hook) - turned

    keys = ['tilt_base', 'bellcrank_pin', 'bellcrank', 'link', 'bucket', 'tilt_cylinder']
    turned, bucket, hinged = swept(answers, keys, sizes, pose)
    middle, ways = 0.5 * (sizes[2] + sizes[3]), list(bucket)
    for angle in raised.limits or ():
        try:
            shift = math.remainder(pose(middle, angle)[1] - bucket[len(bucket) // 2], 2 * math.pi)
        except NoTriangleError as error:
            raise OpenLoopError(
                answers.entries['link'].file, 'link', f'{size:.4g} m',
                f'a linkage that closes at both ends of the boom, by {", ".join(keys)}: {error}', keys) from None
        ways += [value + shift for value in bucket]
    found.bodies += [
        PinnedBody(link, far, {'pin': ZERO, 'link_pin': (hung, spread_of(far, near, across, link.eye)),
                               'teeth': ((far, 0.0), (TAPE, 0.0))}),
        PinnedBody(BELLCRANK, upper + lower, {'pin': ZERO, 'tilt_eye': ((upper, 0.0), (TAPE, 0.0)),
                                              'link_pin': (side, (TAPE, TAPE))}),
        PinnedBody(bar('link'), size, {'pin': ZERO, 'end': ((size, 0.0), (TAPE, 0.0))})]
    start = turning('bucket_joint', f'{name}.end', 'bucket.pin', ways).limits
    found.joints += [Turning('bucket_joint', f'{name}.end', 'bucket.pin', bucket[len(bucket) // 2], start),
                     turning('bellcrank_joint', f'{name}.bellcrank_pin', 'bellcrank.pin', turned, False),
                     turning('link_joint', 'bellcrank.link_pin', 'link.pin', hinged, False),
                     Turning('linkage_joint', 'link.end', 'bucket.link_pin', math.nan)]
    found.cylinders.append(PlacedCylinder('tilt', 'ground.tilt_base', 'bellcrank.tilt_eye', sizes))


def _bellcrank(answers: Answers) -> tuple[float, float, Point]:
    """From its pin to the eye of the cylinder and to the pin of the link, m, and where this is, x towards the eye: its
    ends lean back to the machine."""
    upper, lower, across = answers.several('bellcrank')
    return upper, lower, vertex(answers, 'bellcrank', upper, lower, across, 1)
