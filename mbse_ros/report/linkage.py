# SPDX-License-Identifier: Apache-2.0
"""A linkage in one pose, as arrays to draw; its flat projection when it is spatial; and by matplotlib its symbols:
bodies, joints by type, springs, actuators, centre of mass, gravity.

All positions are metres in the machine frame, (2,) in a plane, (3,) in space; arrays of points have them as rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.path import Path as Outline

from .data import ReportError
from .plots import INK

JOINTS = ('revolute', 'prismatic', 'slot', 'cylindrical', 'spherical', 'universal', 'fixed', 'distance')
AZIMUTH, ELEVATION = np.radians(-62.0), np.radians(22.0)     # of the eye that looks at a spatial linkage
# Distinguishable for people who do not see red and green, and dark enough for names.
_COLORS = ('#2a7de1', '#c4520a', '#0b8a63', '#8a3fa0', '#9a7400', '#0f7f92', '#b82d5e', '#6a4a3d')
SPRING, ACTUATOR, GROUND = '#b3261e', '#4a5361', '#c3c8d0'


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


def part_color(k: int) -> str:
    """Colour of the k-th body."""
    return _COLORS[k % len(_COLORS)]


def draw_part(ax: Axes, part: Part, color: str, size: float) -> list[Artist]:
    """A bar, an area, or a disc for a body of one point."""
    x, y = np.atleast_2d(part.outline).T
    if len(x) == 1:
        turn = np.linspace(0, 2 * np.pi, 41)
        x, y = part.outline[0][:, None] + 1.9 * size * np.array([np.cos(turn), np.sin(turn)])
        return [*ax.fill(x, y, color=color, alpha=0.16, linewidth=0, zorder=2),
                *ax.plot(x, y, color=color, linewidth=2.0, alpha=0.85, zorder=3)]
    artists = ax.fill(x, y, color=color, alpha=0.16, linewidth=0, zorder=2) if part.closed else []
    return [*artists, *ax.plot(x, y, '-', color=color, linewidth=3.2, solid_capstyle='round', solid_joinstyle='round',
                               alpha=0.85, zorder=3)]


def draw_joint(ax: Axes, joint: Link, size: float) -> list[Artist]:
    """The joint's symbol; on the ground it stands on a hatched support."""
    if joint.kind == 'distance':
        return (_line(ax, [joint.start, joint.end], '--', INK, 1.6, 4)
                + _dots(ax, [joint.start, joint.end], 0.55 * size))
    if joint.kind in ('prismatic', 'slot', 'cylindrical'):
        return _slider(ax, joint, size)
    artists = draw_support(ax, joint.start, size) if joint.grounded else []
    if joint.kind == 'revolute' and joint.axis is not None:      # in space: the axis shows how it turns
        artists += _line(ax, [joint.start - 2.6 * size * joint.axis, joint.start + 2.6 * size * joint.axis], '-.', INK,
                         1.0, 5)
    if joint.kind == 'fixed':
        return artists + _box(ax, joint.start, np.array([1.0, 0.0]), 0.8 * size, 0.8 * size, INK)
    artists += _dots(ax, [joint.start], size)
    if joint.kind == 'spherical':
        artists += _dots(ax, [joint.start], 0.5 * size, INK)
    if joint.kind == 'universal':
        d = 0.7 * size
        artists += _line(ax, [joint.start - [d, d], joint.start + [d, d]], '-', INK, 1.0, 7)
        artists += _line(ax, [joint.start - [d, -d], joint.start + [d, -d]], '-', INK, 1.0, 7)
    return artists


def _slider(ax: Axes, joint: Link, size: float) -> list[Artist]:
    """The axis from the parent's point, rails where the child is; a block on them, a pin (slot) or both."""
    length = 1.0 if joint.axis is None else float(np.linalg.norm(joint.axis))
    axis = np.array([1.0, 0.0]) if joint.axis is None or length < 1e-9 else joint.axis / length
    normal = np.array([-axis[1], axis[0]])
    along = float((joint.end - joint.start) @ axis)
    foot = joint.start + min(0.0, along) * axis
    artists = _line(ax, [foot, joint.start + max(0.0, along) * axis], '-.', INK, 0.7, 1.5)
    width, reach = (0.95 if joint.kind == 'slot' else 1.2) * size, 4.0 * size
    for side in (-width, width):
        artists += _line(ax, [joint.end - reach * axis + side * normal, joint.end + reach * axis + side * normal], '-',
                         INK, 1.1, 3.5)
    if joint.grounded:
        artists += _hatch(ax, joint.end - reach * axis - width * normal, axis, -normal, 2 * reach, size)
    if joint.kind != 'slot':
        artists += _box(ax, joint.end, axis, 1.8 * size, 1.0 * size, 'white')
    return artists + (_dots(ax, [joint.end], 0.8 * size) if joint.kind != 'prismatic' else [])


def draw_element(ax: Axes, element: Link, size: float) -> list[Artist]:
    """A zigzag, a spiral, or a cylinder with its rod."""
    if element.kind == 'coil':
        turn = np.linspace(0, 5 * np.pi, 120)
        radius = size * (1.2 + 1.6 * turn / turn[-1])
        return [*ax.plot(element.start[0] + radius * np.cos(turn), element.start[1] + radius * np.sin(turn), '-',
                         color=SPRING, linewidth=1.2, zorder=4)]
    if element.kind == 'actuator':
        middle = element.start + 0.55 * (element.end - element.start)
        return (_line(ax, [element.start, middle], '-', ACTUATOR, 8, 2.5)
                + _line(ax, [middle, element.end], '-', '#9aa3af', 3.5, 2.4)
                + _dots(ax, [element.start, element.end], 0.7 * size))
    return _zigzag(ax, element.start, element.end, size)


def _zigzag(ax: Axes, start: np.ndarray, end: np.ndarray, size: float) -> list[Artist]:
    length = float(np.linalg.norm(end - start))
    if length == 0.0:
        return []
    axis = (end - start) / length
    normal = np.array([-axis[1], axis[0]])
    along = np.concatenate([[0.0, 0.15], 0.15 + 0.7 * (np.arange(12) + 0.5) / 12, [0.85, 1.0]])
    across = np.concatenate([[0.0, 0.0], np.tile([1.0, -1.0], 6), [0.0, 0.0]]) * 1.1 * size
    return _line(ax, start + along[:, None] * length * axis + across[:, None] * normal, '-', SPRING, 1.4, 4)


def draw_support(ax: Axes, place: np.ndarray, size: float) -> list[Artist]:
    """A point of the ground: triangle on a hatched line."""
    x, y = place
    low = y - 2.3 * size
    artists = ax.fill([x, x - 1.5 * size, x + 1.5 * size], [y, low, low], facecolor=GROUND, edgecolor=INK,
                      linewidth=0.9, zorder=1)
    return [*artists, *_hatch(ax, np.array([x - 2.2 * size, low]), np.array([1.0, 0.0]), np.array([0.0, -1.0]),
                              4.4 * size, size)]


def _hatch(ax: Axes, start: np.ndarray, axis: np.ndarray, outward: np.ndarray, length: float,
           size: float) -> list[Artist]:
    """A line with short slanted strokes on its outer side."""
    artists = _line(ax, [start, start + length * axis], '-', INK, 1.4, 1.6)
    for s in np.arange(0.45 * size, length, 0.9 * size):
        foot = start + s * axis
        artists += _line(ax, [foot, foot + 0.75 * size * (outward - axis)], '-', INK, 0.7, 1.0)
    return artists


def _line(ax: Axes, points: object, style: str, color: str, width: float, zorder: float) -> list[Artist]:
    x, y = np.asarray(points, dtype=float).T
    return [*ax.plot(x, y, style, color=color, linewidth=width, zorder=zorder, solid_capstyle='butt')]


def _dots(ax: Axes, places: object, radius: float, color: str = 'white') -> list[Artist]:
    """Circles of a radius in metres."""
    turn = np.linspace(0, 2 * np.pi, 25)
    return [patch for x, y in np.asarray(places, dtype=float)
            for patch in ax.fill(x + radius * np.cos(turn), y + radius * np.sin(turn), facecolor=color, edgecolor=INK,
                                 linewidth=1.3, zorder=6)]


def _box(ax: Axes, center: np.ndarray, axis: np.ndarray, half_length: float, half_width: float,
         color: str) -> list[Artist]:
    normal = np.array([-axis[1], axis[0]])
    corners = np.array([center + a * half_length * axis + b * half_width * normal
                        for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
    return [*ax.fill(*corners.T, facecolor=color, edgecolor=INK, linewidth=1.3, zorder=5)]


def center_mark(ax: Axes, places: np.ndarray) -> None:
    """The quartered circle of draughtsmen at centres of mass (k, 2)."""
    quarters = Outline.make_compound_path(Outline.wedge(0, 90), Outline.wedge(180, 270))
    x, y = places.T
    ax.plot(x, y, 'o', color='white', markeredgecolor=INK, markeredgewidth=0.9, markersize=8, zorder=7)
    ax.plot(x, y, linestyle='none', marker=quarters, color=INK, markersize=8, markeredgewidth=0, zorder=7.1)


def gravity_arrow(ax: Axes, gravity: np.ndarray) -> None:
    """An arrow in the upper right corner, where there is gravity on paper."""
    size = float(np.linalg.norm(gravity))
    if size < 1e-9:
        return
    (x, y), place = gravity / size, (0.965, 0.93)
    ax.annotate('', place, (34 * x, 34 * y), xycoords='axes fraction', textcoords='offset points',
                arrowprops={'arrowstyle': '<|-', 'color': INK, 'linewidth': 1.4, 'shrinkA': 0, 'shrinkB': 0})
    ax.annotate('g', place, (-9 * x, -9 * y), xycoords='axes fraction', textcoords='offset points', ha='center',
                va='center', color=INK, fontsize=10, style='italic')


def draw_triad(ax: Axes, axes: np.ndarray) -> None:
    """The machine frame's axes (3, 2) on paper in the lower left corner, with the length of a scale bar."""
    (x_min, x_max), (y_min, _) = ax.get_xlim(), ax.get_ylim()
    span = x_max - x_min
    length = round_length(0.12 * span)
    origin = x_min + 0.07 * span, y_min + 0.05 * span
    for name, axis in zip('xyz', axes):
        tip = origin + length * axis
        ax.annotate('', tip, origin, arrowprops={'arrowstyle': '-|>', 'color': INK, 'linewidth': 1.2})
        ax.annotate(name, tip, 7 * (axis / np.linalg.norm(axis)), textcoords='offset points', color=INK, fontsize=9,
                    ha='center', va='center')
    ax.annotate(f'axes: {length:g} m', origin, (0, -11), textcoords='offset points', ha='center', va='center',
                color=INK, fontsize=8)
