# SPDX-License-Identifier: Apache-2.0
"""The animated machine seen from the side: frames thinned to what a screen shows, extents, fixed pins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .data import Animation
from .plotly_json import packed

FRAME_RATE = 30.0      # Hz, of the web page; the page draws between the frames
_FIXED = 1e-6          # m: a point that moves less is a pin of the ground


@dataclass(frozen=True)
class Scene:
    """Side view of an animation: per part (frames, k, 2) points x, z in m, and what frames it.

    ``extent`` is (x_min, x_max, z_min, z_max) of all that is drawn, ``pins`` (n, 2) the points that never move.
    """

    t: np.ndarray
    estimated: dict[str, np.ndarray]
    measured: dict[str, np.ndarray]
    captions: tuple[str, ...]
    extent: tuple[float, float, float, float]
    pins: np.ndarray

    def gap(self) -> np.ndarray:
        """Distance (frames,) between the measured and the estimated payload point, m; NaN where one is missing."""
        if 'payload' not in self.estimated or 'payload' not in self.measured:
            return np.full(self.t.shape, np.nan)
        return np.linalg.norm(self.estimated['payload'][:, 0] - self.measured['payload'][:, 0], axis=1)


def kind_of(name: str) -> str:
    """How a part is drawn: cylinder, payload or body."""
    return 'cylinder' if name.startswith('cylinder/') else 'payload' if name == 'payload' else 'body'


def scene_of(animation: Animation, rate: float) -> Scene | None:
    """The animation at no more than ``rate`` frames a second; None if nothing finite is in it."""
    kept = _thin(animation.t, rate)
    sides = [{name: points[kept][:, :, [0, 2]] for name, points in (lines or {}).items()}
             for lines in (animation.estimated, animation.measured)]
    points = np.concatenate([part.reshape(-1, 2) for side in sides for part in side.values()] or [np.empty((0, 2))])
    points = points[np.isfinite(points).all(axis=1)]
    if points.size == 0:
        return None
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.08 * float(np.max(high - low)) or 0.5
    extent = (low[0] - margin, high[0] + margin, low[1] - margin, high[1] + margin)
    captions = tuple(animation.captions[k] for k in kept) if animation.captions else ()
    return Scene(animation.t[kept], *sides, captions, tuple(map(float, extent)), _pins(sides[0]))


def scene_json(scene: Scene) -> dict[str, Any]:
    """The scene for the script of the page; points as packed floats, frame by frame."""
    parts = [{'name': name, 'kind': kind_of(name), 'count': points.shape[1], 'estimated': packed(points)['bdata'],
              'measured': packed(scene.measured[name])['bdata'] if name in scene.measured else None}
             for name, points in scene.estimated.items()]
    return {'t': packed(scene.t)['bdata'], 'parts': parts, 'captions': list(scene.captions),
            'extent': list(scene.extent), 'pins': scene.pins.round(6).tolist()}


def _thin(t: np.ndarray, rate: float) -> np.ndarray:
    """Indices of the first frame in each period of 1/rate, and of the last frame."""
    if t.size == 0:
        return np.empty(0, dtype=int)
    period = np.floor((t - t[0]) * rate + 1e-6)
    return np.unique(np.append(np.unique(period, return_index=True)[1], t.size - 1))


def _pins(parts: dict[str, np.ndarray]) -> np.ndarray:
    """Points of bodies and cylinders that stand still over all frames, each once."""
    tracks = [points[:, k] for name, points in parts.items() if kind_of(name) != 'payload'
              for k in range(points.shape[1])]
    tracks = [track[np.isfinite(track).all(axis=1)] for track in tracks]
    still = [track[0] for track in tracks if len(track) > 1 and np.all(np.ptp(track, axis=0) < _FIXED)]
    moves = any(len(track) > 1 and np.any(np.ptp(track, axis=0) >= _FIXED) for track in tracks)
    return np.unique(np.round(still, 6), axis=0) if still and moves else np.empty((0, 2))
