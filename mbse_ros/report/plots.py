# SPDX-License-Identifier: Apache-2.0
"""Charts, plots of studies and bars as PNG, drawings as GIF, by matplotlib; a picture changes no state outside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from .data import COLORS, PALETTE, Band, Chart, Curve, Panel
from .series import break_holes, decimate
from .text import number

_GAP = 0.42               # inches between two panels
_POINTS = 8000            # of a curve: more than the picture has columns
_STYLES = {'line': '-', 'dashes': '--', 'dotted': ':', 'marks': 'o-'}
INK = '#30353d'
_WIDTH, _HEIGHT = 9.6, 3.1      # of the picture, and of one pair of axes, inches
LOOKS = {'filter': COLORS['estimated'], 'smoother': COLORS['low_passed'], 'truth': COLORS['true']}


def new_figure(width: float, height: float, dpi: int = 120) -> Figure:
    """An empty white figure of that size in inches, drawn by Agg."""
    figure = Figure(figsize=(width, height), dpi=dpi, facecolor='white')
    FigureCanvasAgg(figure)
    return figure


def set_margins(figure: Figure, left: float, right: float, bottom: float, top: float, gap: float = 0.0) -> None:
    """Margins round the axes, and the gap between them as a share of their mean height; margins in inches."""
    width, height = figure.get_size_inches()
    figure.subplots_adjust(left=left / width, right=1 - right / width, bottom=bottom / height, top=1 - top / height,
                           hspace=gap)


def plain(text: str) -> str:
    """The text as matplotlib shows it literally: a dollar sign would start a formula."""
    return text.replace('$', r'\$')


def write_png(chart: Chart, span: tuple[float, float], path: Path) -> None:
    """Draw the chart over the time ``span`` into a PNG file."""
    heights = [panel.height for panel in chart.panels]
    axes_height = 1.75 * sum(heights) + _GAP * (len(heights) - 1)
    figure = new_figure(9.6, axes_height + 1.15)
    axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, gridspec_kw={'height_ratios': heights})[:, 0]
    set_margins(figure, 0.85, 0.15, 0.5, 0.65, gap=_GAP / (1.75 * sum(heights) / len(heights)))
    for panel, ax in zip(chart.panels, axes):
        draw_panel(panel, ax)
    axes[-1].set_xlim(*span)
    axes[-1].set_xlabel(chart.panels[-1].x_label, color=INK)
    figure.align_ylabels(axes)
    _add_legend(figure, axes[[bool(panel.curves) for panel in chart.panels]])
    figure.savefig(path)


def _add_legend(figure: Figure, axes: Iterable[Axes]) -> None:
    """One legend at the top for all axes, each label once."""
    handles: dict[str, Artist] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc='upper left', ncol=max(1, len(handles)), frameon=False,
                  fontsize=9)


def style_axes(ax: Axes) -> None:
    """Light grid, no box."""
    ax.grid(True, color='#e3e6ea', linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[['top', 'right']].set_visible(False)
    ax.tick_params(labelsize=9, colors=INK)


def name_axes(ax: Axes, title: str, x_label: str = '', y_label: str = '', note: str = '') -> None:
    """Title on the left, note on the right, labels."""
    ax.set_xlabel(plain(x_label), color=INK)
    ax.set_ylabel(plain(y_label), color=INK)
    ax.set_title(plain(title), loc='left', fontsize=10, fontweight='bold', color=INK)
    ax.set_title(plain(note), loc='right', fontsize=9, color=INK)


def draw_panel(panel: Panel, ax: Axes) -> None:
    """Draw one pair of axes."""
    style_axes(ax)
    for band in panel.bands:
        t, lower, upper = break_holes(band.t, band.lower, band.upper)
        ax.fill_between(t, lower, upper, color=band.color, alpha=0.22, linewidth=0, label=plain(band.label), zorder=2)
    for strip in panel.strips:
        ax.broken_barh([(a, b - a) for a, b in strip.stretches], (0, 1), color=strip.color, label=plain(strip.label))
    for k, curve in enumerate(panel.curves):
        _draw_curve(curve, ax, curve.color or PALETTE[k % len(PALETTE)])
    ax.set_xscale(panel.x_scale)
    if panel.y_scale == 'symlog':
        ax.set_yscale('symlog', linthresh=panel.threshold, linscale=0.4)
        for height in (-panel.threshold, panel.threshold):
            ax.axhline(height, color=INK, linewidth=0.7, linestyle=(0, (4, 4)), zorder=1)
    else:
        ax.set_yscale(panel.y_scale)
    if panel.limits:
        ax.set_ylim(*panel.limits)
    if not panel.curves:   # a strip: its height means nothing
        ax.set_yticks([])
        many = len(panel.strips) > 4      # beside the title
        ax.legend(loc='lower right', bbox_to_anchor=(1, 1), ncol=len(panel.strips), frameon=False,
                  fontsize=7 if many else 9, columnspacing=1.0 if many else 2.0,
                  borderpad=0)
        ax.spines['left'].set_visible(False)
    name_axes(ax, panel.title, '', panel.unit, panel.note)


def _draw_curve(curve: Curve, ax: Axes, color: str) -> None:
    t, y, label = curve.t, curve.y, plain(curve.label)
    if curve.kind in ('dots', 'samples', 'points'):
        t, y = decimate(t, y, _POINTS)
        ax.plot(t, y, '.', color=color, markersize=9.0 if curve.kind == 'points' else 2.5, label=label, zorder=1.5)
    else:
        if curve.kind != 'marks':
            t, y = break_holes(t, y)
            t, y = decimate(t, y, _POINTS)
        ax.plot(t, y, _STYLES[curve.kind], color=color, linewidth=1.3, markersize=4.5, label=label, zorder=3)


def corner_text(ax: Axes, text: str, size: float) -> Text:
    """A text in the upper left corner."""
    return ax.text(0.02, 0.97, plain(text), transform=ax.transAxes, va='top', fontsize=size, color=INK)


def write_gif(figure: Figure, frames: Iterable[int], draw: Callable[[int], list[Artist]], rate: float,
              colors: int, path: Path) -> None:
    """A looping GIF, ``rate`` frames a second: what is on the figure is drawn once, the artists that ``draw`` makes of
    each frame over it; in the colours of the first frame, so that they do not flicker."""
    canvas: Any = figure.canvas
    images: list[Image.Image] = []
    canvas.draw()
    still = canvas.copy_from_bbox(figure.bbox)
    for frame in frames:
        canvas.restore_region(still)
        for artist in sorted(draw(frame), key=lambda artist: artist.get_zorder()):
            figure.draw_artist(artist)
            artist.remove()
        image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert('RGB')
        images.append(image.quantize(colors, palette=next(iter(images), None), dither=0))  # type: ignore[arg-type]
    images[0].save(path, save_all=True, append_images=images[1:], duration=round(1000 / rate), loop=0)


def spread_frames(count: int, most: int) -> np.ndarray:
    """At most so many of ``count`` frames, evenly spread, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(int))


def write_plots(panels: Sequence[Panel], path: Path) -> None:
    """Draw panels, each with an x axis of its own, into a PNG; one legend for all where they have the same labels."""
    draw_plots(panels).savefig(path)


def draw_plots(panels: Sequence[Panel], new: Callable[[float, float], Figure] = new_figure) -> Figure:
    """The same as a figure; ``new`` makes one of a size in inches."""
    same = len({tuple(curve.label for curve in panel.curves) for panel in panels}) == 1
    shared = same and (len(panels) > 1 or len(panels[0].curves) > 4)
    entries = len(panels[0].curves) if shared else 0
    legend = 0.26 * -(-entries // 5) + 0.1 if entries > 1 else 0.0
    figure = new(_WIDTH, _HEIGHT * (1.35 if len(panels) == 1 else len(panels)) + 0.55 + legend)
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    set_margins(figure, 0.95, 0.2, 0.55, 0.4 + legend, gap=0.38)
    for panel, ax in zip(panels, axes):
        draw_panel(panel, ax)
        ax.set_xlabel(plain(panel.x_label), color=INK)
        if not shared and any(curve.label for curve in panel.curves):
            ax.legend(fontsize=8, framealpha=0.85, edgecolor='none', ncol=1 + len(panel.curves) // 6)
    if entries > 1:
        figure.legend(*axes[0].get_legend_handles_labels(), loc='upper center', ncol=5, frameon=False, fontsize=9)
    figure.align_ylabels(axes)
    return figure


@dataclass(frozen=True)
class Bars:
    """Horizontal bars: for each of the ``labels`` (k,) one of each of the ``series``, (k,) by name, None for no bar."""

    title: str
    x_label: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[float | None]]
    log: bool = False


def write_bars(bars: Sequence[Bars], path: Path) -> None:
    """Draw groups of bars one below the other into a PNG, the figure at the end of each bar."""
    sizes = [0.1 + 0.15 * len(item.labels) * (len(item.series) + 0.8) for item in bars]
    figure = new_figure(_WIDTH, sum(sizes) + 0.95 * len(bars) + 0.4)
    axes = figure.subplots(len(bars), 1, squeeze=False, gridspec_kw={'height_ratios': sizes})[:, 0]
    longest = max(len(label) for item in bars for label in item.labels)
    set_margins(figure, 0.35 + 0.075 * longest, 0.55, 0.5, 0.85, gap=0.95 * len(bars) / sum(sizes))
    for item, ax in zip(bars, axes):
        _draw_bars(item, ax)
    if len(bars[0].series) > 1:
        figure.legend(*axes[0].get_legend_handles_labels(), loc='upper center', ncol=4, frameon=False, fontsize=8.5)
    figure.savefig(path)


def _draw_bars(item: Bars, ax: Axes) -> None:
    style_axes(ax)
    thickness = 0.8 / len(item.series)
    for k, (name, values) in enumerate(item.series.items()):
        places = np.arange(len(item.labels)) + (k - (len(item.series) - 1) / 2) * thickness
        widths = np.array([np.nan if value is None else value for value in values], dtype=float)
        ax.barh(places, np.nan_to_num(widths), thickness * 0.9, color=PALETTE[k % len(PALETTE)], label=plain(name))
        for place, width in zip(places, widths):
            if np.isfinite(width):
                ax.annotate(number(float(width)), (width, place), (3, 0), textcoords='offset points', va='center',
                            fontsize=7.5, color=INK)
    if item.log:
        ax.set_xscale('log')
    ax.set_yticks(np.arange(len(item.labels)), [plain(label) for label in item.labels])
    ax.set_ylim(len(item.labels) - 0.4, -0.6)
    name_axes(ax, item.title, item.x_label)


def smoothed_panel(title: str, unit: str, t: np.ndarray, curves: Mapping[str, np.ndarray],
                   intervals: Mapping[str, tuple[np.ndarray, np.ndarray]], limits: tuple[float, float] | None = None
                   ) -> Panel:
    """Curves (n,) of filter, smoother and truth, by these names, and 95 % intervals of them."""
    return Panel(title, unit, tuple(Curve(name, t, y, LOOKS[name], 'dashes' if name == 'truth' else 'line')
                                    for name, y in curves.items()),
                 tuple(Band(f'{name}, 95 %', t, *ends, LOOKS[name]) for name, ends in intervals.items()), limits=limits)


def write_smoothed(panels: list[Panel], folder: Path) -> None:
    """The picture of a smoothed log."""
    t = panels[0].curves[0].t
    write_png(Chart('Filter and smoother', 'smoothed', tuple(panels)), (float(t[0]), float(t[-1])),
              folder / 'smoothed.png')
