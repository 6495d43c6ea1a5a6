# SPDX-License-Identifier: Apache-2.0
"""The machine drawn by matplotlib: a still with several poses and an animated GIF."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .chart import COLORS
from .png import INK, corner_text, name_axes, new_figure, plain, set_margins, spread_frames, style_axes, write_gif
from .scene import Scene, kind_of

_GHOST, _BODY, _TUBE, _LOAD = COLORS['measured'], COLORS['estimated'], '#4a5361', COLORS['true']
_GIF_FRAMES, _GIF_RATE = 90, 12     # frames, frames/s


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
            ax.plot([], [], color=color, linewidth=width, alpha=1.0 if width == 2 else 0.45, label=label)
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
        drawn += ax.plot(x, z, 'o-' if kind_of(name) == 'payload' else '-', color=_GHOST, alpha=0.45 * alpha,
                         linewidth=11, markersize=21, markeredgewidth=0, solid_capstyle='round', zorder=2)
    for name, points in scene.estimated.items():
        drawn += _draw_part(ax, kind_of(name), points[frame, :, 0], points[frame, :, 1], alpha)
    return drawn


def _draw_part(ax: Axes, kind: str, x: np.ndarray, z: np.ndarray, alpha: float) -> list[Artist]:
    if kind == 'payload':
        return [*ax.plot(x, z, 'o', color=_LOAD, markersize=13, alpha=alpha, zorder=5)]
    if kind == 'cylinder':
        return [*ax.plot(x[1:], z[1:], color='#9aa3af', linewidth=3, alpha=alpha, zorder=3),
                *ax.plot(x[:2], z[:2], color=_TUBE, linewidth=7, alpha=alpha, solid_capstyle='butt', zorder=3)]
    closed = len(x) > 3 and np.allclose((x[0], z[0]), (x[-1], z[-1]))
    fill = ax.fill(x, z, color=_BODY, alpha=0.25 * alpha, linewidth=0, zorder=4) if closed else []
    return [*fill, *ax.plot(x, z, 'o-', color=_BODY, linewidth=2.5, markersize=4, alpha=alpha, zorder=4,
                            solid_joinstyle='round')]


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
        caption = f'\n{scene.captions[frame]}' if scene.captions else ''
        ax.annotate(plain(f't = {scene.t[frame]:.1f} s{caption}'), (x, z), xytext=(0, -15), ha='center', va='top',
                    textcoords='offset points', fontsize=9, color=INK, zorder=6,
                    bbox={'facecolor': 'white', 'edgecolor': 'none', 'alpha': 0.7, 'pad': 1})
