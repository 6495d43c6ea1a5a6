# SPDX-License-Identifier: Apache-2.0
"""A linkage in one pose, as arrays to draw; and its flat projection when it is spatial.

All positions are metres in the machine frame, (2,) in a plane, (3,) in space; arrays of points have them as rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .data import ReportError

JOINTS = ('revolute', 'prismatic', 'slot', 'cylindrical', 'spherical', 'universal', 'fixed', 'distance')
AZIMUTH, ELEVATION = np.radians(-62.0), np.radians(22.0)     # of the eye that looks at a spatial linkage


@dataclass(frozen=True)
class Part:
    """A body: its ``outline`` (k, d), ``closed`` where it is an area, and the centre of mass (d,)."""

    name: str
    outline: np.ndarray
    center_of_mass: np.ndarray
    closed: bool = False


@dataclass(frozen=True)
class Link:
    """A joint of a ``kind`` out of JOINTS between two points (d,) of its two bodies; a spring ('spring': between the
    two ends; 'coil': torsional, at ``start``) or an actuator ('actuator').

    ``axis`` (d,): unit vector along which it slides or about which it turns, None where it has none; ``grounded``: on
    the ground.
    """

    name: str
    kind: str
    start: np.ndarray
    end: np.ndarray
    axis: np.ndarray | None = None
    grounded: bool = False


@dataclass(frozen=True)
class Linkage:
    """All that is drawn of one pose; ``gravity`` (d,) m/s2, ``dimension`` d is 2 or 3.

    ``anchors``: points (d,) of the ground that carry springs, actuators or rods.
    """

    title: str
    parts: Sequence[Part]
    joints: Sequence[Link] = ()
    elements: Sequence[Link] = ()
    anchors: Sequence[np.ndarray] = ()
    gravity: np.ndarray = field(default_factory=lambda: np.zeros(2))

    @property
    def dimension(self) -> int:
        """2 in a plane, 3 in space."""
        return len(self.gravity)

    @property
    def points(self) -> np.ndarray:
        """All points (k, d) that must be in sight."""
        rows = [part.outline for part in self.parts] + [np.array([part.center_of_mass]) for part in self.parts]
        rows += [np.array([link.start, link.end]) for link in (*self.joints, *self.elements)]
        return np.concatenate(rows) if rows else np.zeros((1, self.dimension))


def flat(linkage: Linkage) -> Linkage:
    """The linkage as seen on paper: a spatial one from the side and from above, in parallel projection."""
    if linkage.dimension == 2:
        return linkage
    return replace(
        linkage, gravity=project(linkage.gravity),
        parts=[replace(p, outline=project(p.outline), center_of_mass=project(p.center_of_mass)) for p in linkage.parts],
        joints=[_flat(joint) for joint in linkage.joints], elements=[_flat(element) for element in linkage.elements],
        anchors=[project(point) for point in linkage.anchors])


def _flat(link: Link) -> Link:
    return replace(link, start=project(link.start), end=project(link.end),
                   axis=None if link.axis is None else project(link.axis))


def project(points: np.ndarray) -> np.ndarray:
    """Paper coordinates (..., 2) of points (..., 3)."""
    right = np.array([-np.sin(AZIMUTH), np.cos(AZIMUTH), 0.0])
    eye = np.array([np.cos(ELEVATION) * np.cos(AZIMUTH), np.cos(ELEVATION) * np.sin(AZIMUTH), np.sin(ELEVATION)])
    return np.asarray(points) @ np.column_stack([right, np.cross(eye, right)])


def floor(linkages: Sequence[Linkage]) -> np.ndarray:
    """Grid (k, 2, 2) on paper of the level under all poses of a spatial linkage: lines at round distances."""
    points = np.concatenate([linkage.points for linkage in linkages])
    points = points[np.isfinite(points).all(axis=1)]
    low, high = points.min(axis=0), points.max(axis=0)
    step = round_length(0.34 * max(float(np.max(high - low)), 1e-3))
    ranges = [np.arange(np.floor(a / step - 0.25), np.ceil(b / step + 0.25) + 1) * step for a, b in zip(low, high)][:2]
    lines = [[(x, ranges[1][0], low[2]), (x, ranges[1][-1], low[2])] for x in ranges[0]]
    lines += [[(ranges[0][0], y, low[2]), (ranges[0][-1], y, low[2])] for y in ranges[1]]
    return project(np.array(lines))


def round_length(size: float) -> float:
    """1, 2 or 5 times a power of ten, not above the size."""
    power = 10.0 ** np.floor(np.log10(size))
    return float(max(k for k in (1, 2, 5) if k * power <= size * (1 + 1e-9)) * power)


def extent(linkages: Sequence[Linkage], margin: float = 0.16) -> tuple[float, float, float, float]:
    """Limits x_min, x_max, y_min, y_max, m, on paper, of all poses, with a margin as a share of the larger side."""
    points = np.concatenate([flat(linkage).points for linkage in linkages])
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) and linkages[0].dimension == 3:
        points = np.concatenate([points, floor(linkages).reshape(-1, 2)])
    if not len(points):
        raise ReportError('linkage', 'no finite point', 'a pose that can be drawn')
    low, high = points.min(axis=0), points.max(axis=0)
    room = margin * max(float(np.max(high - low)), 1e-3)
    return float(low[0] - room), float(high[0] + room), float(low[1] - room), float(high[1] + room)
