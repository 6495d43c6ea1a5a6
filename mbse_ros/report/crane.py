# SPDX-License-Identifier: Apache-2.0
"""The machine from the side, and from above where it swings: thinned to what a screen shows, drawn by matplotlib as a
still with several poses and as an animated GIF."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import wrap

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from .data import COLORS, Animation, kind_of
from .plots import INK, corner_text, name_axes, new_figure, plain, set_margins, spread_frames, style_axes, write_gif

FRAME_RATE = 30.0      # Hz, of the web page; the page draws between the frames
FROM_AXIS = 'distance from the axis of the swing'
_FIXED = 1e-6          # m: a point that moves less is a pin of the ground
_GHOST, _BODY, _TUBE, _LOAD = COLORS['measured'], COLORS['estimated'], '#4a5361', COLORS['true']
_ROD, _GHOST_SHARE = '#66707c', 0.45        # a colour that is seen on that of the measured machine, a share of white's
_WORDS, _RIGHT = 24, 0.9     # characters of a line beside a pose; from where on in the picture it ends there
_GIF_FRAMES, _GIF_RATE = 90, 12     # frames, frames/s


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


def write_still(scene: Scene, path: Path) -> None:
    """A PNG of up to three poses, lowest to highest: the estimate in colour over the measured machine in grey."""
    figure = _canvas(_views(scene), 9.0, 120)
    ax = figure.axes[0]
    poses = _poses(scene)
    for k, frame in enumerate(poses):
        for axes, view in zip(figure.axes, _views(scene)):
            _draw_frame(axes, view, frame, 0.45 + 0.55 * (k + 1) / len(poses))
        _label_pose(ax, scene, frame)
    for color, width, label in ((_BODY, 2, 'estimated'), (_GHOST, 7, 'measured')):
        if label == 'estimated' or scene.measured:
            ax.plot([], [], color=color, linewidth=width, alpha=1.0 if width == 2 else _GHOST_SHARE, label=label)
    ax.legend(loc='upper left', frameon=False, fontsize=9)
    figure.savefig(path)


def write_crane_gif(scene: Scene, path: Path) -> None:
    """A small looping GIF of the whole run; when it is faster than the run, it says how many times."""
    frames = spread_frames(scene.t.size, _GIF_FRAMES)
    speed = (scene.t[-1] - scene.t[0]) / (frames.size / _GIF_RATE)
    figure, suffix = _canvas(_views(scene), 6.0, 80), f'   ({speed:.1f} × real time)' if speed > 1.05 else ''

    def draw(frame: int) -> list[Artist]:
        drawn = [artist for ax, view in zip(figure.axes, _views(scene)) for artist in _draw_frame(ax, view, frame, 1.0)]
        caption = f'   {scene.captions[frame]}' if scene.captions else ''
        return drawn + [corner_text(figure.axes[0], f't = {scene.t[frame]:.1f} s{caption}{suffix}', 11)]
    write_gif(figure, frames, draw, _GIF_RATE, 64, path)


def _views(scene: Scene) -> list[Scene]:
    """From the side, and from above where there is such a view."""
    return [scene] if scene.above is None else [scene, scene.above]


def _canvas(views: list[Scene], width: float, dpi: int) -> Figure:
    """Axes of equal scales, one below the other; those of several views are as wide as the widest."""
    widest = max(view.extent[1] - view.extent[0] for view in views)
    shares = [(view.extent[3] - view.extent[2]) / widest for view in views]
    if len(views) == 1:
        shares = [float(np.clip(shares[0], 0.45, 1.1))]
    inner = width - 0.77
    heights = [share * inner for share in shares]
    figure = new_figure(width, sum(heights) + 0.62 * len(views), dpi)
    axes = figure.subplots(len(views), 1, squeeze=False, gridspec_kw={'height_ratios': heights})[:, 0]
    set_margins(figure, 0.65, 0.12, 0.5, 0.12, 0.62 * len(views) / sum(heights))
    for ax, view in zip(axes, views):
        _frame(ax, view, widest if len(views) > 1 else 0.0)
    return figure


def _frame(ax: Axes, view: Scene, widest: float) -> None:
    """Axes with the pins of the ground; ``widest``, m, of all views that share the width."""
    left, right, low, high = view.extent
    right = max(right, left + widest)
    style_axes(ax)
    ax.set_aspect('equal', adjustable='box')
    ax.set(xlim=(left, right), ylim=(low, high))
    name_axes(ax, '', *(f'{label} [m]' for label in view.labels))
    size = 0.03 * max(right - left, high - low)
    for x, z in view.pins:
        ax.fill([x, x - size, x + size], [z, z - 1.6 * size, z - 1.6 * size], color='#c3c8d0', zorder=1)
        ax.plot([x - 1.5 * size, x + 1.5 * size], [z - 1.6 * size] * 2, color=INK, linewidth=1.5, zorder=1)


def _draw_frame(ax: Axes, scene: Scene, frame: int, alpha: float) -> list[Artist]:
    """Draw one pose; the artists come back so that an animation can remove them."""
    drawn: list[Artist] = []
    for name, points in scene.measured.items():
        x, z = points[frame].T
        drawn += ax.plot(x, z, 'o-' if kind_of(name) == 'payload' else '-', color=_GHOST, alpha=_GHOST_SHARE * alpha,
                         linewidth=16, markersize=21, markeredgewidth=0, solid_capstyle='round', zorder=2)
    for name, points in scene.estimated.items():
        drawn += _draw_part(ax, kind_of(name), points[frame, :, 0], points[frame, :, 1], alpha)
    return drawn


def _draw_part(ax: Axes, kind: str, x: np.ndarray, z: np.ndarray, alpha: float) -> list[Artist]:
    if kind == 'payload':
        return [*ax.plot(x, z, 'o', color=_LOAD, markersize=13, alpha=alpha, zorder=5)]
    if kind == 'cylinder':
        return [*ax.plot(x[1:], z[1:], color=_ROD, linewidth=3.5, alpha=alpha, zorder=4),
                *ax.plot(x[:2], z[:2], color=_TUBE, linewidth=6.5, alpha=alpha, solid_capstyle='butt', zorder=4)]
    closed = len(x) > 3 and np.allclose((x[0], z[0]), (x[-1], z[-1]))
    shade, edge = (tuple(1.0 - share * alpha * (1.0 - np.array(to_rgb(color)))) for share, color in (
        (0.75, _BODY), (1.0, INK)))         # opaque, also where it is pale
    line = partial(ax.plot, x, z, zorder=3, solid_joinstyle='round', solid_capstyle='round')
    return [*line(color=edge, linewidth=8.5), *(ax.fill(x, z, color=shade, linewidth=0, zorder=3) if closed else []),
            *line(color=shade, linewidth=6.5), *ax.plot(x, z, 'o', color=edge, markersize=2.5, zorder=3)]


def _heights(scene: Scene) -> np.ndarray:
    """Height (frames,) of the payload, or of the whole machine's middle where there is none."""
    parts = [scene.estimated['payload']] if 'payload' in scene.estimated else list(scene.estimated.values())
    return np.mean(np.concatenate([part[:, :, 1] for part in parts], axis=1), axis=1)


def _poses(scene: Scene) -> list[int]:
    """Up to three frames: lowest, middle, highest."""
    heights = _heights(scene)
    finite = np.flatnonzero(np.isfinite(heights))
    if finite.size == 0:
        return []
    targets = np.linspace(heights[finite].min(), heights[finite].max(), 3)
    return list(dict.fromkeys(int(finite[np.argmin(np.abs(heights[finite] - target))]) for target in targets))


def _label_pose(ax: Axes, scene: Scene, frame: int) -> None:
    part = scene.estimated.get('payload', next(iter(scene.estimated.values())))
    x, z = part[frame, -1]
    if np.isfinite(x + z):
        lines = [f't = {scene.t[frame]:.1f} s', *(wrap(scene.captions[frame], _WORDS) if scene.captions else ())]
        left, right = ax.get_xlim()
        side = 'right' if x > left + _RIGHT * (right - left) else 'center'
        ax.annotate(plain('\n'.join(lines)), (x, z), xytext=(0, -15), ha=side, va='top',
                    textcoords='offset points', fontsize=9, color=INK, zorder=6,
                    bbox={'facecolor': 'white', 'edgecolor': 'none', 'alpha': 0.7, 'pad': 1})
