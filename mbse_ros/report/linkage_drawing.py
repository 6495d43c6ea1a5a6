# SPDX-License-Identifier: Apache-2.0
"""Linkages drawn by matplotlib: a still with names, and an animated GIF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from .linkage import Linkage, extent, flat, floor, project
from .linkage_labels import Labels
from .linkage_symbols import (ACTUATOR, SPRING, center_mark, draw_element, draw_joint, draw_part, draw_support,
                              draw_triad, gravity_arrow, part_color)
from .png import INK, new_figure, plain, set_margins, style_axes

_WIDTH, _DPI = 9.0, 120
_GIF_WIDTH, _GIF_DPI, _GIF_RATE, _GIF_FRAMES = 5.5, 72, 15, 75    # inches, dots/inch, frames/s, frames
_MOST_NAMES = 40       # of bodies and joints together; more would be a heap of letters


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
    figure.savefig(path)


def write_animation(linkages: Sequence[Linkage], t: np.ndarray, path: Path) -> None:
    """A small looping GIF of the poses at times ``t`` (k,), s, equally spaced; it tells when it is not in real time."""
    chosen = np.unique(np.linspace(0, len(t) - 1, min(_GIF_FRAMES, len(t))).round().astype(int))
    speed = (t[-1] - t[0]) * _GIF_RATE / max(1, len(chosen) - 1)
    figure, ax = _canvas(linkages, _GIF_WIDTH, _GIF_DPI)
    note = '' if 0.95 < speed < 1.05 else f'   ({speed:.2g} × real time)'
    figure.canvas.draw()
    still = figure.canvas.copy_from_bbox(figure.bbox)      # axes are drawn once, each pose over them
    images: list[Image.Image] = []
    for k in chosen:
        figure.canvas.restore_region(still)
        artists = _draw(ax, flat(linkages[k]))
        artists.append(ax.text(0.02, 0.97, plain(f't = {t[k]:.2f} s{note}'), transform=ax.transAxes, va='top',
                               fontsize=10, color=INK))
        for artist in sorted(artists, key=lambda artist: artist.get_zorder()):
            ax.draw_artist(artist)
            artist.remove()
        image = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert('RGB')
        images.append(image.quantize(48, dither=0) if not images else image.quantize(palette=images[0], dither=0))
    images[0].save(path, save_all=True, append_images=images[1:], duration=round(1000 / _GIF_RATE), loop=0)


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
        ax.set_xlabel('x [m]', color=INK)
        ax.set_ylabel('y [m]', color=INK)
    return figure, ax


def _symbol(ax: Axes, linkage: Linkage) -> float:
    """Size of a joint's symbol, m: of the picture, and less where many short bodies fill it."""
    (x_min, x_max), (y_min, y_max) = ax.get_xlim(), ax.get_ylim()
    size = 0.0125 * float(np.hypot(x_max - x_min, y_max - y_min)) / np.sqrt(2.0)
    lengths = [float(np.linalg.norm(np.ptp(part.outline, axis=0))) for part in linkage.parts]
    usual = float(np.median([length for length in lengths if length > 0] or [np.inf]))
    return min(size, 0.12 * usual)


def _draw(ax: Axes, linkage: Linkage) -> list:
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
    labels.keep_off(*(part.outline for part in linkage.parts))
    labels.keep_off(*(np.array([item.start, item.end]) for item in (*linkage.elements, *linkage.joints)))
    labels.keep_off(*(np.array([item.start, item.end]) + size * np.array(shift) for item in linkage.elements
                      for shift in ([0.8, 0], [-0.8, 0], [0, 0.8], [0, -0.8])))
    labels.keep_off(*(part.center_of_mass + size * np.array([[-1, -1], [1, 1], [1, -1], [-1, 1]])
                      for part in linkage.parts))
    labels.keep_off(*(place + size * np.array([[-1, 0], [1, 0], [0, 1], [0, -1]]) for joint in linkage.joints
                      for place in (joint.start, joint.end)))
    grounded = [joint.start for joint in linkage.joints if joint.grounded] + list(linkage.anchors)
    labels.keep_off(*(place - size * np.array([[0, 1], [1.5, 2.5], [-1.5, 2.5]]) for place in grounded))
    for joint in linkage.joints:
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
