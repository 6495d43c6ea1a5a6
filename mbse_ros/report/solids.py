# SPDX-License-Identifier: Apache-2.0
"""A machine as solids, once for all pictures: the operator's page, the report, its GIF, rerun and RViz.

Bodies are plates, as thick as a share of the longest one, around their outlines; cylinders are barrel and rod; pins
hold them together; a stand holds the pins of the ground; the load is a ball of its mass. Their shapes stay; only where
they are follows from the lines of a pose (`Machine.outline_at`), so that a picture moves what it has made once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

THICK = 0.05            # of the longest body, a body's thickness in the picture's plane
SLIM = 0.35             # of its own length, that of a short one at most
ACROSS, THIN, PIN = 0.8, 0.3, 0.2       # of the thickness: width of bodies and stands, radius of pins
PIN_ACROSS = 1.3        # of a body's width, the length of its pins
WALL = 1.2              # a barrel's outer diameter, of its bore
LEAST_BARREL, LEAST_ROD = 0.45, 0.25            # of the thickness, where a diameter is small or not known
ROUND = math.pi / 4     # rad, of a rounded corner, a side
FOOT = 0.22             # of the longest body, from a pin of the ground to the end of the stand below
DENSITY = 1800.0        # kg/m3 of the load's ball: moist earth, gravel
LEAST_LOAD, MOST_LOAD = 0.35, 3.0       # of the thickness, the ball's radius
GHOST = 1.35            # how much thicker the measured machine is, and (in reverse) narrower: seen around the estimated
UP, FORWARD = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
SQUARE = np.array([[0.0, -0.5], [1.0, -0.5], [1.0, 0.5], [0.0, 0.5]])
DISC = np.array([[math.cos(a), math.sin(a)] for a in np.arange(24) * math.pi / 12])
SIDE = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])     # a view: x to the right, z up
ORDER = ('stand', 'body', 'rod', 'barrel', 'load')      # in a view, from the lowest to the topmost
STAND = 'stand'         # name of what does not move


class Tube(NamedTuple):
    """Diameters of a cylinder's bore and rod, m, and how many lie side by side."""

    bore: float = 0.0
    rod: float = 0.0
    abreast: int = 1


@dataclass(frozen=True)
class Solid:
    """A plate, 'body' or 'stand', by its ``polygon`` (n, 2), m, anticlockwise, in its own x and y, and its width
    ``across``, m; a 'barrel' or 'rod', whose x is stretched to its length, of diameter ``across``; or the 'load', a
    ball of radius 1. ``offsets``, m, along its z: where it is there several times. ``pins`` (k, 2), m, of radius
    ``pin``, go through it.
    """

    name: str
    kind: str
    polygon: np.ndarray
    across: float
    offsets: tuple[float, ...] = (0.0,)
    pins: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))
    pin: float = 0.0

    def triangles(self) -> np.ndarray:
        """Corners (3 t, 3), m, of the faces, anticlockwise as seen from outside; of a barrel or rod of length 1."""
        if self.kind in ('barrel', 'rod'):      # a plate of the same outline as it has from its end, laid on its side
            end = Solid(self.name, 'body', self.across / 2 * DISC, 1.0).triangles()
            return end[:, [2, 0, 1]] + [0.5, 0.0, 0.0]
        front = np.array([0.0, 0.0, self.across / 2])
        flat = np.column_stack([self.polygon, np.zeros(len(self.polygon))])
        faces = flat[np.array(triangulated(self.polygon)).reshape(-1, 3)]
        a, b = flat, np.roll(flat, -1, axis=0)
        sides = np.stack([a - front, b - front, b + front, a - front, b + front, a + front], axis=1)
        return np.concatenate([(faces + front).reshape(-1, 3), (faces[:, ::-1] - front).reshape(-1, 3),
                               sides.reshape(-1, 3)])


class Solids:
    """Solids of a machine whose lines (k, 3), or (k, 2) in x and z, stand in any one pose; ``tubes`` of its cylinders;
    ``pins`` (k, 3), m, of the ground, on one stand that reaches to the height ``ground``, or each on its own.

    ``convex``: the points of a body are in any order. ``thick``: of a body, m; ``parts``: all but the ghost's, the
    order of ``placed``; ``ghost``: the same, thicker and narrower, so that they show around them. The shapes do not
    depend on the pose.
    """

    def __init__(self, lines: Mapping[str, np.ndarray], tubes: Mapping[str, Tube] | None = None,
                 pins: np.ndarray | None = None, ground: float | None = None, convex: bool = False) -> None:
        self.names, points = tuple(lines), {name: spatial(line) for name, line in lines.items()}
        lengths = {name: _extent(line) for name, line in points.items() if kind_of(name) != 'cylinder'}
        self.size = max(lengths.values(), default=0.0) or max(map(_extent, points.values()), default=0.0) or 1.0
        self.thick, self._convex = THICK * self.size, convex
        every = np.concatenate(list(points.values()) or [np.zeros((1, 3))])
        self._flat = bool(np.ptp(every[:, 2]) < 1e-9 * self.size)       # a machine in the plane of x and y
        self._far = int(np.argmax(np.linalg.norm(every[:, :2] - every[0, :2], axis=1)))     # it is in a plane with this
        self.pins = np.empty((0, 3)) if pins is None else np.reshape(np.asarray(pins, dtype=float), (-1, 3))
        self._middle = float(self.pins[:, 1].mean()) if len(self.pins) else 0.0
        first = np.cumsum([0, *(len(line) for line in points.values())])
        parts: list[Solid] = list(self._stands(ground))
        corners: list[tuple[int, int, int]] = []        # of each that moves: points of its origin, x, plane
        self._fixed, seen = len(parts), list[np.ndarray]()
        for (name, line), at in zip(points.items(), first):
            for solid, places in self._of(name, line, (tubes or {}).get(name.partition('/')[2], Tube()), seen):
                parts.append(solid)
                a, b, c = (-1 if place < 0 else int(at) + place for place in places)
                corners.append((a, b, c))
        self.parts = tuple(parts)
        self._corners = np.array(corners, dtype=int).reshape(-1, 3)
        self._stretched = np.array([solid.kind in ('barrel', 'rod') for solid in self.parts[self._fixed:]], dtype=bool)
        self.ghost = tuple(self._halo(solid, points) for solid in self.parts)

    def placed(self, lines: Mapping[str, np.ndarray]) -> np.ndarray:
        """Where each part is, (..., parts, 4, 3), m, at the lines (..., k, d) of a pose: its origin, its x, y and z."""
        points = np.concatenate([spatial(lines[name]) for name in self.names], axis=-2)
        origin, tip, third = (points[..., self._corners[:, k], :] for k in range(3))
        along = tip - origin
        length = np.linalg.norm(along, axis=-1, keepdims=True)
        x = np.where(length > 0.0, along / np.where(length > 0.0, length, 1.0), FORWARD)
        level = UP if self._flat else np.cross(points[..., self._far, :] - points[..., 0, :], UP)[..., None, :]
        straight = level - np.sum(level * x, axis=-1, keepdims=True) * x        # a bar is as wide across as the machine
        z = np.where(self._corners[:, 2:] >= 0, np.cross(x, third - origin), straight)
        size = np.linalg.norm(z, axis=-1, keepdims=True)
        z = np.where(size > 1e-6 * self.size, z / np.maximum(size, 1e-300), np.cross(x, UP))
        size = np.linalg.norm(z, axis=-1, keepdims=True)
        z = np.where(size > 1e-6, z / np.maximum(size, 1e-300), np.cross(x, FORWARD))
        y = np.cross(z, x)
        moving = np.stack([origin, np.where(self._stretched[:, None], along, x), y, z], axis=-2)
        still = np.array([[0.0, self._middle, 0.0], FORWARD, UP, np.cross(FORWARD, UP)])
        still = np.broadcast_to(still, (*moving.shape[:-3], self._fixed, 4, 3))
        return np.concatenate([still, moving], axis=-3)

    @property
    def still(self) -> np.ndarray:
        """Corners (k, 3), m, of what does not move."""
        flat = np.vstack([part.polygon for part in self.parts[:self._fixed]] or [np.empty((0, 2))])
        return spatial(flat) + [0.0, self._middle, 0.0]

    def load_radius(self, mass: float) -> float:
        """Of the ball, m: that of its mass, kg; a small one where that is unknown."""
        volume = max(mass, 0.0) / DENSITY if not math.isnan(mass) else 0.0
        least, most = LEAST_LOAD * self.thick, MOST_LOAD * self.thick
        return min(max((3.0 * volume / (4.0 * math.pi)) ** (1.0 / 3.0), least), most)

    def _stands(self, ground: float | None) -> list[Solid]:
        """Feet under the pins of the ground."""
        foot, top, (flat, across) = FOOT * self.size, 0.7 * self.thick, (self.pins[:, ::2], THIN * self.thick)
        if not len(flat):
            return []
        if ground is None:      # each its own: a small one
            return [Solid(STAND, 'stand', hull(np.array([[x - top, z], [x + top, z], [x - 2 * top, z - 3 * top],
                                                         [x + 2 * top, z - 3 * top]])), across) for x, z in flat]
        low = min(ground, float(flat[:, 1].min()) - top)
        feet = [[[x - top, z], [x + top, z], [x - foot, low], [x + foot, low]] for x, z in flat]
        return [Solid(STAND, 'stand', hull(np.array(feet).reshape(-1, 2)), THIN * self.thick)]

    def _of(self, name: str, line: np.ndarray, tube: Tube, seen: list[np.ndarray]
            ) -> list[tuple[Solid, tuple[int, int, int]]]:
        """Solids of a line, and the places of their points in it; ``seen``: pins that another body has already."""
        kind, wide = kind_of(name), ACROSS * self.thick
        if kind == 'payload':
            return [(Solid(name, 'load', DISC, 1.0), (0, 0, -1))]
        if name.startswith('payload/'):
            return [(Solid(name, 'rod', SQUARE, 0.15 * self.thick), (0, len(line) - 1, -1))]
        if kind == 'cylinder' and len(line) == 3:
            barrel = max(WALL * tube.bore, LEAST_BARREL * self.thick)
            rod = min(max(tube.rod, LEAST_ROD * self.thick), 0.8 * barrel)
            shift = 0.55 * (wide + barrel)
            sides = (0.0,) if tube.abreast < 2 else tuple(np.linspace(-shift, shift, tube.abreast))
            return [(Solid(name, 'rod', SQUARE * [1.0, rod], rod, sides), (1, 2, -1)),
                    (Solid(name, 'barrel', SQUARE * [1.0, barrel], barrel, sides), (0, 1, -1))]
        if len(line) < 2 or _extent(line) == 0.0:
            return []
        places, flat = _plane(line)
        polygon = self._plate(line)
        own = []
        for point, place in zip(line, flat):
            if all(np.linalg.norm(point - other) > 1e-6 * self.size for other in seen):
                seen.append(point)
                own.append(place)
        slim = len(flat) == 2 and _extent(line) * SLIM < self.thick     # a link beside what it holds
        wide *= 1.15 if slim else 1.0 - 0.08 * (self.names.index(name) % 2)      # no two faces in one plane
        return [(Solid(name, 'body', polygon, wide, pins=np.reshape(own, (-1, 2)),
                       pin=PIN * min(self.thick, SLIM * _extent(line))), places)]

    def _plate(self, line: np.ndarray, times: float = 1.0) -> np.ndarray:
        """Polygon (n, 2) around a line (k, 3), in its plane, so many ``times`` as thick."""
        flat, radius = _plane(line)[1], times * min(self.thick, SLIM * _extent(line)) / 2
        return rounded(hull(flat) if self._convex and len(flat) > 2 else flat, radius, self._convex)

    def _halo(self, solid: Solid, points: Mapping[str, np.ndarray]) -> Solid:
        """The same of the measured machine."""
        if solid.kind == 'body':
            return Solid(solid.name, 'body', self._plate(points[solid.name], GHOST), solid.across / GHOST)
        if solid.kind in ('barrel', 'rod'):
            return Solid(solid.name, solid.kind, solid.polygon * [1.0, GHOST], solid.across * GHOST, solid.offsets)
        return solid


def kind_of(name: str) -> str:
    """How a part is drawn: cylinder, payload or body."""
    return 'cylinder' if name.startswith('cylinder/') else 'payload' if name == 'payload' else 'body'


def spatial(points: np.ndarray) -> np.ndarray:
    """Points (..., 3), of (..., 2) in x and z as they stand on a screen."""
    points = np.asarray(points, dtype=float)
    return points if points.shape[-1] == 3 else np.stack(
        [points[..., 0], np.zeros(points.shape[:-1]), points[..., 1]], axis=-1)


def seen_from(placed: np.ndarray, view: np.ndarray) -> np.ndarray:
    """Origin, x and y (..., parts, 3, 2) of parts in a picture whose right and up are the rows of ``view`` (2, 3)."""
    return placed[..., :3, :] @ np.asarray(view).T


def seen_above(parts: tuple[Solid, ...], placed: np.ndarray) -> np.ndarray:
    """Origin, x and y (..., parts, 3, 2) of the rectangles, of the shape SQUARE, that upright parts are from above."""
    found = []
    for k, part in enumerate(parts):
        origin, x, y, z = np.moveaxis(placed[..., k, :, :2], -2, 0)
        if part.kind == 'load':
            found.append(np.stack([origin, np.broadcast_to([1.0, 0.0], origin.shape),
                                   np.broadcast_to([0.0, 1.0], origin.shape)], axis=-2))
            continue
        across = z / np.maximum(np.linalg.norm(z, axis=-1, keepdims=True), 1e-9)
        ahead = np.stack([across[..., 1], -across[..., 0]], axis=-1)
        corners = (x[..., None, :] * part.polygon[:, :1] + y[..., None, :] * part.polygon[:, 1:])
        reach = np.einsum('...ni,...i->...n', corners, ahead)
        low, high = reach.min(axis=-1, keepdims=True), reach.max(axis=-1, keepdims=True)
        found.append(np.stack([origin + low * ahead, (high - low) * ahead, part.across * across], axis=-2))
    return np.stack(found, axis=-3)


def quaternions(axes: np.ndarray) -> np.ndarray:
    """x, y, z, w (n, 4) of right-handed axes (n, 3, 3), one a row: the largest row of 4 q q^T (Shepperd)."""
    x, y, z = np.moveaxis(axes, -2, 0)
    (xx, yx, zx), (xy, yy, zy), (xz, yz, zz) = x.T, y.T, z.T        # yx: row y, column x of the rotation
    one = np.ones_like(xx)
    square = np.array([[one + xx - yy - zz, xy + yx, xz + zx, zy - yz],
                       [xy + yx, one - xx + yy - zz, yz + zy, xz - zx],
                       [xz + zx, yz + zy, one - xx - yy + zz, yx - xy],
                       [zy - yz, xz - zx, yx - xy, one + xx + yy + zz]])
    best = np.argmax(np.einsum('iin->in', square), axis=0)
    rows = square[best, :, np.arange(len(axes))]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def rounded(line: np.ndarray, radius: float, closed: bool = False) -> np.ndarray:
    """Polygon (n, 2), anticlockwise, around a line (k, 2) that is ``radius`` thick to each side, its corners round; the
    hull around it where it crosses itself. It is an area if ``closed``, or if it ends where it begins."""
    if len(line) > 3 and np.allclose(line[0], line[-1], atol=1e-9, rtol=0.0):
        closed, line = True, line[:-1]
    closed = closed and len(line) > 2
    loop = line if closed else np.concatenate([line, line[-2:0:-1]])
    loop = loop[np.linalg.norm(loop - np.roll(loop, 1, axis=0), axis=1) > 1e-9 * _extent(line)]
    if closed and _area(loop) < 0.0:
        loop = loop[::-1]
    found = _around(loop, radius)
    cut = sum(_area(found[list(corners)]) for corners in triangulated(found, strict=True))
    whole = _area(found) > 0.0 and math.isclose(cut, _area(found), rel_tol=1e-9)
    return found if whole else _around(hull(line), radius)


def _around(loop: np.ndarray, radius: float) -> np.ndarray:
    """A loop (k, 2) moved outward: arcs at convex corners and turning points, mitres at the others."""
    ahead = np.roll(loop, -1, axis=0) - loop
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    points = []
    for at, before, after in zip(loop, np.roll(ahead, 1, axis=0), ahead):
        turn = math.atan2(before[0] * after[1] - before[1] * after[0], float(before @ after))
        if turn < -math.pi + 1e-6:
            turn = math.pi
        start = math.atan2(-before[0], before[1])
        if turn < 0.0:
            points.append(at + radius / max(math.cos(turn / 2), 0.2) * np.array([math.cos(start + turn / 2),
                                                                               math.sin(start + turn / 2)]))
            continue
        steps = max(1, math.ceil(turn / ROUND - 1e-9)) if turn > 1e-6 else 0
        for angle in (start + turn * np.arange(steps + 1) / steps if steps else [start]):
            points.append(at + radius * np.array([math.cos(angle), math.sin(angle)]))
    return np.array(points)


def triangulated(polygon: np.ndarray, strict: bool = False) -> list[tuple[int, int, int]]:
    """Triangles of an anticlockwise polygon (n, 2) without holes, by cutting ears; ``strict``: none where it cannot be
    cut, instead of a fan of what is left."""
    left, found = list(range(len(polygon))), []
    while len(left) > 3:
        for k in range(len(left)):
            a, b, c = left[k - 1], left[k], left[(k + 1) % len(left)]
            if _area(polygon[[a, b, c]]) > 0.0 and not any(
                    _inside(polygon[other], polygon[[a, b, c]]) for other in left if other not in (a, b, c)):
                found.append((a, b, c))
                del left[k]
                break
        else:
            return [] if strict else found + [(left[0], left[k], left[k + 1]) for k in range(1, len(left) - 1)]
    return [*found, (left[0], left[1], left[2])] if len(left) == 3 else found


def hull(points: np.ndarray) -> np.ndarray:
    """The smallest convex polygon (n, 2), anticlockwise, around points (Andrew's monotone chain)."""
    ordered = sorted(map(tuple, np.asarray(points, dtype=float)))

    def half(row: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
        found: list[tuple[float, ...]] = []
        for point in row:
            while len(found) > 1 and _area(np.array([found[-2], found[-1], point])) <= 0.0:
                found.pop()
            found.append(point)
        return found[:-1]
    return np.array(half(ordered) + half(ordered[::-1]))


def _plane(line: np.ndarray) -> tuple[tuple[int, int, int], np.ndarray]:
    """Places in a line (k, 3) of the origin, a point on x, and one that gives the plane, -1 where it is straight; and
    its points (k, 2) in that plane."""
    tip = int(np.argmax(np.linalg.norm(line - line[0], axis=1)))
    x = (line[tip] - line[0]) / np.linalg.norm(line[tip] - line[0])
    beside = (line - line[0]) - np.outer((line - line[0]) @ x, x)
    off = np.linalg.norm(beside, axis=1)
    third = int(np.argmax(off)) if off.max() > 1e-6 * _extent(line) else -1
    y = beside[third] / off[third] if third >= 0 else np.zeros(3)
    return (0, tip, third), np.column_stack([(line - line[0]) @ x, (line - line[0]) @ y])


def _extent(points: np.ndarray) -> float:
    return float(np.linalg.norm(points[:, None] - points[None], axis=-1).max()) if len(points) else 0.0


def _area(polygon: np.ndarray) -> float:
    x, y = (polygon - polygon[0]).T
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def _inside(point: np.ndarray, corners: np.ndarray) -> bool:
    return all(_area(np.array([corners[k - 1], corners[k], point])) > 0.0 for k in range(3))
