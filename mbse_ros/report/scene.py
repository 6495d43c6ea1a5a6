# SPDX-License-Identifier: Apache-2.0
"""The animated machine from the side, and from above where it swings: thinned to what a screen shows, extents, pins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .data import Animation
from .plotly_json import packed

FRAME_RATE = 30.0      # Hz, of the web page; the page draws between the frames
FROM_AXIS = 'distance from the axis of the swing'
_FIXED = 1e-6          # m: a point that moves less is a pin of the ground


@dataclass(frozen=True)
class Scene:
    """One view of an animation: per part (frames, k, 2) points in m, and what frames it.

    From the side they are x and z, or the distance from the swing's axis instead of x where the machine has one (then
    ``above`` is the view from above, x and y). ``labels`` name the two axes, ``extent`` is (left, right, low, high) of
    all that is drawn, ``pins`` (n, 2) the points that never move.
    """

    t: np.ndarray
    estimated: dict[str, np.ndarray]
    measured: dict[str, np.ndarray]
    captions: tuple[str, ...]
    extent: tuple[float, float, float, float]
    pins: np.ndarray
    labels: tuple[str, str] = ('x', 'z')
    above: Scene | None = None


def kind_of(name: str) -> str:
    """How a part is drawn: cylinder, payload or body."""
    return 'cylinder' if name.startswith('cylinder/') else 'payload' if name == 'payload' else 'body'


def scene_of(animation: Animation, rate: float) -> Scene | None:
    """The animation at no more than ``rate`` frames a second; None if nothing finite is in it."""
    kept = _thin(animation.t, rate)
    sides = [{name: points[kept] for name, points in (lines or {}).items()}
             for lines in (animation.estimated, animation.measured)]
    captions = tuple(animation.captions[k] for k in kept) if animation.captions else ()
    t, still = animation.t[kept], _pins(sides[0])
    if animation.turn is None:
        return _view(t, [_seen(side, [0, 2]) for side in sides], captions, still[:, [0, 2]], ('x', 'z'))
    above = _view(t, [_seen(side, [0, 1]) for side in sides], (), np.empty((0, 2)), ('x', 'y'))
    angle, axis = np.asarray(animation.turn.angle)[kept], np.array(animation.turn.axis)
    turned = [{name: _turned(points, angle, axis) for name, points in side.items()} for side in sides]
    pins = np.column_stack([still[:, 0] - axis[0], still[:, 2]])
    on_axis = np.linalg.norm(still[:, :2] - axis, axis=1) < _FIXED
    return _view(t, [_seen(side, [0, 2]) for side in turned], captions, pins[on_axis], (FROM_AXIS, 'z'), above)


def _view(t: np.ndarray, sides: list[dict[str, np.ndarray]], captions: tuple[str, ...], pins: np.ndarray,
          labels: tuple[str, str], above: Scene | None = None) -> Scene | None:
    points = np.concatenate([part.reshape(-1, 2) for side in sides for part in side.values()] or [np.empty((0, 2))])
    points = points[np.isfinite(points).all(axis=1)]
    if points.size == 0:
        return None
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.08 * float(np.max(high - low)) or 0.5
    extent = float(low[0] - margin), float(high[0] + margin), float(low[1] - margin), float(high[1] + margin)
    return Scene(t, sides[0], sides[1], captions, extent, pins, labels, above)


def _seen(side: dict[str, np.ndarray], axes: list[int]) -> dict[str, np.ndarray]:
    return {name: points[:, :, axes] for name, points in side.items()}


def _turned(points: np.ndarray, angle: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Points (frames, k, 3) as seen from the axis (x, y), turned by ``angle`` (frames,), rad."""
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    x, y = points[:, :, 0] - axis[0], points[:, :, 1] - axis[1]
    return np.stack([c * x + s * y, c * y - s * x, points[:, :, 2]], axis=2)


def scene_json(scene: Scene) -> dict[str, Any]:
    """The scene for the script of the page; points as packed floats, frame by frame."""
    parts = [{'name': name, 'kind': kind_of(name), 'count': points.shape[1], 'estimated': packed(points)['bdata'],
              'measured': packed(scene.measured[name])['bdata'] if name in scene.measured else None}
             for name, points in scene.estimated.items()]
    return {'t': packed(scene.t)['bdata'], 'parts': parts, 'captions': list(scene.captions),
            'extent': list(scene.extent), 'pins': scene.pins.round(6).tolist(), 'labels': list(scene.labels),
            'above': scene_json(scene.above) if scene.above else None}


def _thin(t: np.ndarray, rate: float) -> np.ndarray:
    """Indices of the first frame in each period of 1/rate, and of the last frame."""
    if t.size == 0:
        return np.empty(0, dtype=int)
    period = np.floor((t - t[0]) * rate + 1e-6)
    return np.unique(np.append(np.unique(period, return_index=True)[1], t.size - 1))


def _pins(parts: dict[str, np.ndarray]) -> np.ndarray:
    """Points (n, 3) of bodies and cylinders that stand still over all frames, each once."""
    tracks = [points[:, k] for name, points in parts.items() if kind_of(name) != 'payload'
              for k in range(points.shape[1])]
    tracks = [track[np.isfinite(track).all(axis=1)] for track in tracks]
    still = [track[0] for track in tracks if len(track) > 1 and np.all(np.ptp(track, axis=0) < _FIXED)]
    moves = any(len(track) > 1 and np.any(np.ptp(track, axis=0) >= _FIXED) for track in tracks)
    return np.unique(np.round(still, 6), axis=0) if still and moves else np.empty((0, 3))
