# SPDX-License-Identifier: Apache-2.0
"""The machine from the side, and from above where it swings: thinned to what a screen shows, drawn by matplotlib as a
still with several poses and as an animated GIF."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from ..resources import write_whole
from .data import COLORS, FILLS, Animation
from .plots import INK, corner_text, name_axes, new_figure, plain, set_margins, spread_frames, style_axes, write_gif
from .solids import DISC, GHOST, ORDER, SIDE, SQUARE, Solids, seen_above, seen_from

FRAME_RATE = 30.0      # Hz, of the web page; the page draws between the frames
FROM_AXIS = 'distance from the axis of the swing'
_GHOST, _BODY, _GHOST_SHARE = COLORS['measured'], COLORS['estimated'], 0.45
_WORDS, _RIGHT = 24, 0.9     # characters of a line beside a pose; from where on in the picture it ends there
_GIF_FRAMES, _GIF_RATE = 90, 12     # frames, frames/s


@dataclass(frozen=True)
class SolidView:
    """A solid in a view: its ``kind``, the ``polygon`` (n, 2) in its own x and y, and where origin, x and y are in the
    picture, ``places`` (frames, 3, 2), m; of the measured machine a ``ghost``; its ``pins`` (k, 2), of radius ``pin``.
    """

    kind: str
    polygon: np.ndarray
    places: np.ndarray
    ghost: bool = False
    pins: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))
    pin: float = 0.0

    def at(self, frame: int) -> np.ndarray:
        """Corners (n, 2), m."""
        origin, x, y = self.places[frame]
        return np.asarray(origin + self.polygon[:, :1] * x + self.polygon[:, 1:] * y)

    def pins_at(self, frame: int) -> list[np.ndarray]:
        """Outlines (n, 2), m."""
        origin, x, y = self.places[frame]
        return [origin + a * x + b * y + self.pin * DISC for a, b in self.pins]


@dataclass(frozen=True)
class Scene:
    """One view of an animation: its solids from the lowest to the topmost, and per part (frames, k, 2) points in m.

    From the side they are x and z, or the distance from the swing's axis instead of x where the machine has one (then
    ``above`` is the view from above, x and y). ``labels`` name the two axes, ``extent`` is (left, right, low, high) of
    all that is drawn.
    """

    t: np.ndarray
    solids: tuple[SolidView, ...]
    estimated: dict[str, np.ndarray]
    measured: dict[str, np.ndarray]
    captions: tuple[str, ...]
    extent: tuple[float, float, float, float]
    labels: tuple[str, str] = ('x', 'z')
    above: Scene | None = None


def scene_of(animation: Animation, rate: float) -> Scene | None:
    """The animation at no more than ``rate`` frames a second; None if nothing finite is in it."""
    kept = _thin(animation.t, rate)
    sides = [{name: points[kept] for name, points in (lines or {}).items()}
             for lines in (animation.estimated, animation.measured)]
    solids, radii = animation.shapes, animation.radii[kept]
    if solids is None:
        return None
    captions = tuple(animation.captions[k] for k in kept) if animation.captions else ()
    t, places = animation.t[kept], [solids.placed(side) if side else None for side in sides]
    if animation.turn is None:
        return _view(t, _drawn(solids, places, radii, SIDE), [_seen(side, [0, 2]) for side in sides], captions,
                     ('x', 'z'))
    above = _view(t, _drawn(solids, places, radii, None), [_seen(side, [0, 1]) for side in sides], (), ('x', 'y'))
    angle, axis = np.asarray(animation.turn.angle)[kept], np.array(animation.turn.axis)
    turned = [{name: _turned(points, angle, axis) for name, points in side.items()} for side in sides]
    moved = [None if place is None else _placed_turned(place, solids, angle, axis) for place in places]
    return _view(t, _drawn(solids, moved, radii, SIDE), [_seen(side, [0, 2]) for side in turned], captions,
                 (FROM_AXIS, 'z'), above)


def _drawn(solids: Solids, places: list[np.ndarray | None], radii: np.ndarray, view: np.ndarray | None
           ) -> tuple[SolidView, ...]:
    """Stand, measured and estimated solids in a view, from above where it is None."""
    found: list[tuple[int, SolidView]] = []
    for ghost, parts, place in ((False, solids.parts, places[0]), (True, solids.ghost, places[1])):
        if place is None:
            continue
        flat = seen_above(parts, place) if view is None else seen_from(place, view)
        for k, part in enumerate(parts):
            if ghost and part.kind == 'stand':
                continue
            rank = 0 if part.kind == 'stand' else 1 if ghost else 2 + ORDER.index(part.kind)
            if part.kind == 'load':
                own = flat[:, k].copy()
                own[:, 1:] = np.eye(2) * (radii + (GHOST - 1.0) / 2 * solids.thick * ghost)[:, None, None]
                found.append((rank, SolidView(part.kind, part.polygon, own, ghost)))
            elif view is not None:
                found.append((rank, SolidView(part.kind, part.polygon, flat[:, k], ghost, part.pins, part.pin)))
            else:
                for offset in part.offsets:
                    own = flat[:, k].copy()
                    own[:, 0] += offset / part.across * own[:, 2]
                    found.append((rank, SolidView(part.kind, SQUARE, own, ghost)))
    return tuple(drawn for _, drawn in sorted(found, key=lambda item: item[0]))


def _view(t: np.ndarray, solids: tuple[SolidView, ...], sides: list[dict[str, np.ndarray]], captions: tuple[str, ...],
          labels: tuple[str, str], above: Scene | None = None) -> Scene | None:
    corners = [drawn.places[:, :1] + drawn.polygon[:, :1] * drawn.places[:, 1:2] + drawn.polygon[:, 1:]
               * drawn.places[:, 2:] for drawn in solids]
    moving = [part.reshape(-1, 2) for part, drawn in zip(corners, solids) if drawn.kind != 'stand']
    if not any(np.isfinite(part).all(axis=1).any() for part in moving):
        return None
    points = np.concatenate([part.reshape(-1, 2) for part in corners])
    points = points[np.isfinite(points).all(axis=1)]
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.06 * float(np.max(high - low)) or 0.5
    extent = float(low[0] - margin), float(high[0] + margin), float(low[1] - margin), float(high[1] + margin)
    return Scene(t, solids, sides[0], sides[1], captions, extent, labels, above)


def _seen(side: dict[str, np.ndarray], axes: list[int]) -> dict[str, np.ndarray]:
    return {name: points[:, :, axes] for name, points in side.items()}


def _turned(points: np.ndarray, angle: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Points (frames, k, 3) as seen from the axis (x, y), turned by ``angle`` (frames,), rad."""
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    x, y = points[:, :, 0] - axis[0], points[:, :, 1] - axis[1]
    return np.stack([c * x + s * y, c * y - s * x, points[:, :, 2]], axis=2)


def _placed_turned(places: np.ndarray, solids: Solids, angle: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Places (frames, parts, 4, 3) likewise; the stand, which does not swing, is only moved."""
    still = np.array([part.kind == 'stand' for part in solids.parts])
    found = places.copy()
    found[:, ~still, 0] = _turned(places[:, ~still, 0], angle, axis)
    found[:, still, 0, :2] -= axis
    for row in (1, 2, 3):
        found[:, ~still, row] = _turned(places[:, ~still, row], angle, np.zeros(2))
    return found


def _thin(t: np.ndarray, rate: float) -> np.ndarray:
    """Indices of the first frame in each period of 1/rate, and of the last frame."""
    if t.size == 0:
        return np.empty(0, dtype=int)
    period = np.floor((t - t[0]) * rate + 1e-6)
    return np.unique(np.append(np.unique(period, return_index=True)[1], t.size - 1))


def write_still(scene: Scene, path: Path) -> None:
    """A PNG of up to three poses, lowest to highest: the estimate in colour over the measured machine in grey."""
    figure = _canvas(_views(scene), 9.0, 120)
    ax = figure.axes[0]
    poses = _poses(scene)
    for k, frame in enumerate(poses):
        for axes, view in zip(figure.axes, _views(scene)):
            _draw_frame(axes, view, frame, 0.45 + 0.55 * (k + 1) / len(poses))
        _label_pose(ax, scene, frame)
    for color, label in ((_BODY, 'estimated'), (_GHOST, 'measured')):
        if label == 'estimated' or scene.measured:
            ax.fill([], [], color=color, alpha=1.0 if color == _BODY else _GHOST_SHARE, label=label)
    ax.legend(loc='upper left', frameon=False, fontsize=9)
    write_whole(path, figure.savefig)


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
    """Axes; ``widest``, m, of all views that share the width."""
    left, right, low, high = view.extent
    right = max(right, left + widest)
    style_axes(ax)
    ax.set_aspect('equal', adjustable='box')
    ax.set(xlim=(left, right), ylim=(low, high))
    name_axes(ax, '', *(f'{label} [m]' for label in view.labels))


def _draw_frame(ax: Axes, scene: Scene, frame: int, alpha: float) -> list[Artist]:
    """Draw one pose; the artists come back so that an animation can remove them."""
    found: list[Artist] = []
    for solid in scene.solids:
        x, y = solid.at(frame).T
        if not np.isfinite(x + y).all():
            continue
        if solid.ghost:
            found += ax.fill(x, y, color=_GHOST, alpha=_GHOST_SHARE * alpha, linewidth=0, zorder=2)
            continue
        face, edge = (tuple(1.0 - alpha * (1.0 - np.array(to_rgb(color)))) for color in (FILLS[solid.kind], INK))
        above = 3 + ORDER.index(solid.kind) / 10
        found += ax.fill(x, y, facecolor=face, edgecolor=edge, linewidth=0.8, zorder=above)
        for pin in solid.pins_at(frame):
            found += ax.fill(*pin.T, color=edge, linewidth=0, zorder=above + 0.05)
    return found


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
