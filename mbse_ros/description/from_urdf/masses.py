# SPDX-License-Identifier: Apache-2.0
"""Masses of the links of a URDF: which are none of a real machine, and what is typical instead.

Of machines with cylinders, shares of the operating mass are those of ``templates.kinds``. Of arms they are those of the
UR10e (its maker's numbers): shares of the moving mass along the chain, spread over as many joints as the arm has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..templates.kinds import CENTER_SPREAD, INERTIA_SPREAD, KINDS, MASS_SPREAD
from ..templates.write import UPPER
from .chain import ChainBody, RobotChain
from .forms import Moves
from .plane import end_of

LIGHTEST = 0.01                 # kg; less is a placeholder
THINNEST = 0.5                  # kg/m3 of the cube of the length: a boom of 2 m and 4 kg
GYRATION = 0.02, 1.5            # of a link's length: radius of gyration outside of this is a placeholder
KNOWN_CENTER = 0.02             # of a link's length: deviation of a centre of mass that the URDF gives
SHORT = 0.05                    # m: length of a link whose joints nearly coincide
SMALL = 1e-9                    # kg m2
UNLIKE = 1.5                    # ratio of lengths of two links, whose numbers cannot be the same
UR10E = (7.369, 13.051, 3.989, 2.1, 1.98, 0.615)    # kg, from the shoulder outwards; the base 4.0 kg
ARM_BASE = 4.0
OTHERS = 'cylinder', 'linkage'
COLUMN = 0.3                    # of a crane


@dataclass(frozen=True)
class LinkMass:
    """Mass, kg, centre (3,), m, and tensor (3, 3), kg m2, about it, in the frame of the link; deviations: of the mass
    and of moments as shares (0: those of the URDF), of the centre in m; whether they are ``assumed``."""

    mass: float
    center: np.ndarray
    inertia: np.ndarray
    spread: float
    center_spread: float
    inertia_spread: float
    assumed: bool


def length_of(chain: RobotChain, count: int) -> float:
    """From the joint of a body to the next one, or to the tool, m."""
    return float(np.linalg.norm(end_of(chain, count)))


def placeholders(chain: RobotChain, moves: Mapping[str, Moves]) -> dict[str, str]:
    """Bodies whose mass is none of a real machine, with the reason: missing, 1e-3 kg, the same as of others, or none of
    their size, alone or all together. One before the first joint that a cylinder moves may weigh anything."""
    bodies, found = chain.bodies, {}
    reach, whole = sum(length_of(chain, k) for k in range(len(bodies))), sum(body.mass for body in bodies)
    if whole < THINNEST * reach ** 3:
        return {body.name: f'{whole:.3g} kg in all for {reach:.3g} m' for body in bodies}
    hydraulic = [k for k, body in enumerate(bodies) if moves[body.joint.name] in OTHERS]
    for k, body in enumerate(bodies):
        lengths = [max(length_of(chain, i), 1e-3) / max(length_of(chain, k), 1e-3) for i in range(len(bodies))]
        twins = [other.name for other, ratio in zip(bodies, lengths) if other.mass == body.mass and np.allclose(
            other.inertia, body.inertia, rtol=1e-9, atol=1e-15) and not 1.0 / UNLIKE < ratio < UNLIKE]
        if body.mass < LIGHTEST:
            found[body.name] = f'{body.mass:g} kg'
        elif twins:
            found[body.name] = f'the same numbers as {twins[0]}'
        elif k in hydraulic and body.mass < THINNEST * length_of(chain, k) ** 3:
            found[body.name] = f'{body.mass:g} kg for {length_of(chain, k):.3g} m'
    return found


def masses_of(chain: RobotChain, moves: Mapping[str, Moves], whole: float, known: float) -> list[LinkMass]:
    """Of all bodies; ``whole``: mass of the machine, kg, for those without; ``known``: deviation of the others."""
    light, found = placeholders(chain, moves), []
    first = next((k for k, body in enumerate(chain.bodies) if moves[body.joint.name] in OTHERS), 0)
    for k, body in enumerate(chain.bodies):
        length = max(length_of(chain, k), SHORT)
        center, radius, share = _typical(chain, moves, k)
        slender = 0.9 if k >= first else 0.0
        if body.name in light:
            mass = whole * share
            found.append(LinkMass(mass, _center(chain, k, center), _rod(chain, k, mass, radius, slender), MASS_SPREAD,
                                  CENTER_SPREAD * length, INERTIA_SPREAD, True))
            continue
        bad = _no_inertia(body, length if moves[body.joint.name] in OTHERS else math.inf)
        inertia, spread = (_rod(chain, k, body.mass, radius, slender), INERTIA_SPREAD) if bad else (body.inertia, 0.0)
        found.append(LinkMass(body.mass, body.center, inertia, known, KNOWN_CENTER * length, spread, False))
    return found


def _center(chain: RobotChain, count: int, typical: np.ndarray) -> np.ndarray:
    """That of the URDF, which may be of the shape, where it is one: not 0, of its size, and no other link's."""
    own, length = chain.bodies[count].center, length_of(chain, count)
    copied = any(np.allclose(own, body.center) for k, body in enumerate(chain.bodies) if k != count)
    return typical if copied or not 0.05 * length < float(np.linalg.norm(own)) < 1.5 * length else own


def _no_inertia(body: ChainBody, length: float) -> bool:
    """Whether the moments are none of a real body of this mass, and of this length where it is not infinite."""
    largest = float(np.linalg.eigvalsh(body.inertia)[-1])
    if largest < SMALL or math.isinf(length):
        return largest < SMALL
    low, high = (share * length for share in GYRATION)
    return not low ** 2 <= largest / body.mass <= high ** 2


def _rod(chain: RobotChain, count: int, mass: float, radius: float, slender: float) -> np.ndarray:
    """Tensor by the largest radius of gyration, m; along the line of pins it is less by the share ``slender``."""
    end = end_of(chain, count)
    length = float(np.linalg.norm(end))
    along = end / length if length > 1e-3 else np.array([0.0, 0.0, 1.0])
    return mass * radius ** 2 * (np.eye(3) - slender * np.outer(along, along))


def _typical(chain: RobotChain, moves: Mapping[str, Moves], count: int) -> tuple[np.ndarray, float, float]:
    """Centre (3,), m, radius of gyration, m, and share of the mass of the machine."""
    bodies, word = chain.bodies, moves[chain.bodies[count].joint.name]
    end, length = end_of(chain, count), max(length_of(chain, count), SHORT)
    pinned = [k for k, body in enumerate(bodies) if moves[body.joint.name] in OTHERS]
    bucket = 'linkage' in moves.values()
    if not pinned:
        return 0.5 * end, 0.29 * length, _share_of_arm(count, len(bodies))
    if count < pinned[0]:
        radius = UPPER[1] * length_of(chain, pinned[0])
        return 0.0 * end, radius, UPPER[0] if bucket else COLUMN
    kind = KINDS['two_piece_excavator' if len(pinned) > 3 else 'excavator'] if bucket else KINDS[
        'forwarder_crane' if any(bodies[k].slides for k in pinned) else 'loader_crane' if len(pinned) > 1 else
        'one_boom_crane']
    links = [*kind.links, *([kind.bucket] if kind.bucket else [])]
    place = min(pinned.index(count), len(links) - 1) if count in pinned else len(links) - 1
    link = links[-1] if word == 'linkage' else links[place]
    return link.center[0] * end, link.gyration * length, link.share


def _share_of_arm(count: int, joints: int) -> float:
    """Of one link of so many."""
    whole = np.concatenate([[0.0], np.cumsum(UR10E)])
    ends = np.interp(np.array([count, count + 1]) / joints * len(UR10E), np.arange(len(whole)), whole)
    return float(ends[1] - ends[0]) / (whole[-1] + ARM_BASE)
