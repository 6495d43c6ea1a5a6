# SPDX-License-Identifier: Apache-2.0
"""Linkages drawn by matplotlib: a still with names, and an animated GIF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..resources import write_whole
from .linkage import (
    ACTUATOR,
    SPRING,
    Linkage,
    center_mark,
    draw_element,
    draw_joint,
    draw_part,
    draw_support,
    draw_triad,
    extent,
    flat,
    floor,
    gravity_arrow,
    part_color,
    project,
)
from .plots import INK, corner_text, name_axes, new_figure, plain, set_margins, spread_frames, style_axes, write_gif

_WIDTH, _DPI = 9.0, 120
_GIF_WIDTH, _GIF_DPI, _GIF_RATE, _GIF_FRAMES = 5.5, 72, 15, 75    # inches, dots/inch, frames/s, frames
_MOST_NAMES = 40       # of bodies and joints together; more would be a heap of letters
_POINTS_PER_LETTER, _HEIGHT = 0.54, 1.25     # size of a text in units of its font size
_DIRECTIONS = np.radians([35, 145, -35, -145, 0, 180, 90, -90])
_CROSS = np.array([[-1, 0], [1, 0], [0, 1], [0, -1]])
_CLEARANCE = 7.0                             # points between a text and what it names
_REACHES, _NEAR = (1, 2, 4, 6, 8), 2         # of it, tried one after the other; beyond the first two a line leads there
_TEXT = 6.0                                  # how much worse it is to cover a name than a line


def write_linkage(linkage: Linkage, path: Path) -> None:
    """A PNG of one pose with names, joints, springs, actuators, centres of mass and the direction of gravity."""
    figure, ax = _canvas([linkage], _WIDTH, _DPI)
    drawn = flat(linkage)
    _draw(ax, drawn)
    size = _symbol(ax, drawn)
    if len(drawn.parts) <= _MOST_NAMES:
        center_mark(ax, np.array([part.center_of_mass for part in drawn.parts]))
    gravity_arrow(ax, drawn.gravity)
    if linkage.dimension == 3:
        draw_triad(ax, project(np.eye(3)))
    _names(ax, drawn, size)
    ax.set_title(plain(linkage.title), loc='left', fontsize=11, fontweight='bold', color=INK)
    write_whole(path, figure.savefig)


def write_animation(linkages: Sequence[Linkage], t: np.ndarray, path: Path) -> None:
    """A small looping GIF of the poses at times ``t`` (k,), s, equally spaced; it says so when not in real time."""
    chosen = spread_frames(len(t), _GIF_FRAMES)
    speed = (t[-1] - t[0]) * _GIF_RATE / max(1, len(chosen) - 1)
    figure, ax = _canvas(linkages, _GIF_WIDTH, _GIF_DPI)
    note = '' if 0.95 < speed < 1.05 else f'   ({speed:.2g} × real time)'
    write_gif(figure, chosen, lambda k: [*_draw(ax, flat(linkages[k])), corner_text(ax, f't = {t[k]:.2f} s{note}', 10)],
              _GIF_RATE, 48, path)


def _canvas(linkages: Sequence[Linkage], width: float, dpi: int) -> tuple[Figure, Axes]:
    """Axes of equal scales round all poses."""
    x_min, x_max, y_min, y_max = extent(linkages)
    spatial = linkages[0].dimension == 3
    left, right, bottom, top = (0.15, 0.15, 0.15, 0.35) if spatial else (0.8, 0.15, 0.5, 0.35)
    inner = width - left - right
    height = float(np.clip(inner * (y_max - y_min) / (x_max - x_min), 0.35 * inner, inner))
    figure = new_figure(width, height + bottom + top, dpi)
    ax = figure.subplots()
    set_margins(figure, left, right, bottom, top)
    style_axes(ax)
    scale = max((x_max - x_min) / inner, (y_max - y_min) / height)       # metres an inch
    ax.set(xlim=(x_min + x_max) / 2 + scale * inner * np.array([-0.5, 0.5]),
           ylim=(y_min + y_max) / 2 + scale * height * np.array([-0.5, 0.5]), autoscale_on=False)
    if spatial:
        ax.axis('off')
        for line in floor(linkages):
            ax.plot(*line.T, color='#d9dde3', linewidth=0.8, zorder=0)
    else:
        name_axes(ax, '', 'x [m]', 'y [m]')
    return figure, ax


def _symbol(ax: Axes, linkage: Linkage) -> float:
    """Size of a joint's symbol, m: of the picture, and less where many short bodies fill it."""
    (x_min, x_max), (y_min, y_max) = ax.get_xlim(), ax.get_ylim()
    size = 0.0125 * float(np.hypot(x_max - x_min, y_max - y_min)) / np.sqrt(2.0)
    lengths = [float(np.linalg.norm(np.ptp(part.outline, axis=0))) for part in linkage.parts]
    usual = float(np.median([length for length in lengths if length > 0] or [np.inf]))
    return min(size, 0.12 * usual)


def _draw(ax: Axes, linkage: Linkage) -> list[Artist]:
    """One pose without names; the artists come back so that an animation can remove them."""
    size, artists = _symbol(ax, linkage), []
    for k, part in enumerate(linkage.parts):
        artists += draw_part(ax, part, part_color(k), size)
    for anchor in linkage.anchors:
        artists += draw_support(ax, anchor, size)
    for element in linkage.elements:
        artists += draw_element(ax, element, size)
    for joint in linkage.joints:
        artists += draw_joint(ax, joint, size)
    return artists


def _names(ax: Axes, linkage: Linkage, size: float) -> None:
    if len(linkage.parts) + len(linkage.joints) > _MOST_NAMES:
        return
    labels = Labels(ax)
    for part in linkage.parts:
        labels.keep_off(part.outline, part.center_of_mass + size * np.array([[-1, -1], [1, 1], [1, -1], [-1, 1]]))
    for element in linkage.elements:
        ends = np.array([element.start, element.end])
        labels.keep_off(ends, *(ends + 0.8 * size * shift for shift in _CROSS))
    grounded = [joint.start for joint in linkage.joints if joint.grounded] + list(linkage.anchors)
    labels.keep_off(*(place - size * np.array([[0, 1], [1.5, 2.5], [-1.5, 2.5]]) for place in grounded))
    for joint in linkage.joints:
        labels.keep_off(np.array([joint.start, joint.end]), joint.start + size * _CROSS, joint.end + size * _CROSS)
        at_end = joint.kind in ('prismatic', 'slot', 'cylindrical')
        labels.add(joint.name, 0.5 * (joint.start + joint.end) if joint.kind == 'distance' else
                   joint.end if at_end else joint.start)
    for k, part in enumerate(linkage.parts):
        labels.add(part.name, _beside(part.outline), part_color(k))
    for element in linkage.elements:
        color = ACTUATOR if element.kind == 'actuator' else SPRING
        labels.add(element.name, 0.5 * (element.start + element.end), color, 'italic')
    labels.draw()


def _beside(outline: np.ndarray) -> np.ndarray:
    """A third along the longest side: there the name of a body is off its ends and its centre of mass."""
    if len(outline) == 1:
        return outline[0]
    sides = np.diff(outline, axis=0)
    longest = int(np.argmax(np.linalg.norm(sides, axis=1)))
    return outline[longest] + 0.36 * sides[longest]


@dataclass
class Labels:
    """Texts of one drawing; ``add`` collects them, ``draw`` finds their places when all lines are known."""

    ax: Axes
    size: float = 8.5
    _taken: list[np.ndarray] = field(default_factory=list)          # points (k, 2) in typographic points
    _texts: list[np.ndarray] = field(default_factory=list)          # the same of names
    _wanted: list[tuple[str, np.ndarray, str, str]] = field(default_factory=list)

    def keep_off(self, *polylines: np.ndarray) -> None:
        """Lines (k, 2), m, that no text should cover."""
        for line in polylines:
            pixels = self._to_points(np.asarray(line, dtype=float))
            for a, b in zip(pixels[:-1], pixels[1:]):
                count = max(2, int(np.linalg.norm(b - a) / 4.0))
                self._taken.append(a + np.linspace(0.0, 1.0, count)[:, None] * (b - a))
            self._taken.append(pixels[-1:])

    def add(self, text: str, place: np.ndarray, color: str = INK, style: str = 'normal') -> None:
        """A name beside a place (2,), m."""
        if text:
            self._wanted.append((text, np.asarray(place, dtype=float), color, style))

    def draw(self) -> list[Artist]:
        """Put all texts; the artists come back."""
        return [self._put(*wanted) for wanted in self._wanted]

    def _put(self, text: str, place: np.ndarray, color: str, style: str) -> Artist:
        half = 0.5 * self.size * np.array([_POINTS_PER_LETTER * len(text), _HEIGHT])
        center = self._to_points(place[None])[0]
        unit = np.column_stack([np.cos(_DIRECTIONS), np.sin(_DIRECTIONS)])
        offsets = np.concatenate([unit * (half + reach * _CLEARANCE) for reach in _REACHES])
        taken = np.concatenate(self._taken) if self._taken else np.zeros((0, 2))
        texts = np.concatenate(self._texts) if self._texts else np.zeros((0, 2))
        cost = [self._cost(center + offset, half, taken, texts) + 0.1 * k for k, offset in enumerate(offsets)]
        best = int(np.argmin(cost))
        grid = np.stack(np.meshgrid(np.linspace(-1, 1, 9), (-1.0, 0.0, 1.0)), axis=-1).reshape(-1, 2)
        self._texts.append(center + offsets[best] + grid * half)
        leader = {'arrowstyle': '-', 'color': color, 'linewidth': 0.6, 'shrinkA': 0.0, 'shrinkB': 2.0}
        return self.ax.annotate(
            plain(text), (place[0], place[1]), offsets[best], textcoords='offset points', ha='center', va='center',
            fontsize=self.size, color=color, style=style, zorder=9,
            arrowprops=leader if best >= _NEAR * len(_DIRECTIONS) else None)

    def _cost(self, center: np.ndarray, half: np.ndarray, taken: np.ndarray, texts: np.ndarray) -> float:
        """Number of points under a text and its rim, those of other texts many times, and a high price for leaving the
        picture."""
        covered = sum(weight * np.all(np.abs(points - center) < half + 1.5, axis=1).sum()
                      for weight, points in ((1.0, taken), (_TEXT, texts)))
        box = self.ax.get_window_extent()
        scale = 72.0 / self.ax.figure.dpi
        low, high = np.array([box.x0, box.y0]) * scale, np.array([box.x1, box.y1]) * scale
        return float(covered) + 50.0 * bool(np.any(center - half < low) or np.any(center + half > high))

    def _to_points(self, places: np.ndarray) -> np.ndarray:
        return self.ax.transData.transform(places) * 72.0 / self.ax.figure.dpi
