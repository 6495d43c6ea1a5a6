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
from matplotlib.ticker import MaxNLocator
from PIL import Image

from ..resources import write_whole
from .data import COLORS, PALETTE, Band, Chart, Clock, Curve, Panel
from .series import break_holes, decimate
from .text import number, time_of_day

_GAP = 0.42               # inches between two panels
_MANY = 6                 # panels, beyond which they are small ones
_POINTS = 8000            # of a curve: more than the picture has columns
_LINES = {'line': '-', 'dashes': '--', 'dotted': ':', 'marks': '-'}
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


def write_png(chart: Chart, span: tuple[float, float], path: Path, clock: Clock | None = None) -> None:
    """Draw the chart over the time ``span`` into a PNG file; many panels are small ones in two columns."""
    panels, many = chart.panels, len(chart.panels) > _MANY and all(panel.curves for panel in chart.panels)
    columns, tall, gap = (2, 1.1, 0.5) if many else (1, 1.75, _GAP)
    heights = [panel.height for panel in panels[::columns]]
    bottom, top = 0.55 + 0.15 * (clock is not None), 0.65 + 0.15 * many
    figure = new_figure(9.6, tall * sum(heights) + gap * (len(heights) - 1) + bottom + top)
    axes = figure.subplots(len(heights), columns, sharex=True, squeeze=False, gridspec_kw={'height_ratios': heights})
    set_margins(figure, 0.85, 0.15 if clock is None else 0.4, bottom, top,
                gap=gap / (tall * sum(heights) / len(heights)))
    for panel, ax in zip(panels, axes.flat):
        draw_panel(panel, ax)
        if many:        # the note below the title
            ax.set_title('', loc='right')
            ax.set_title(plain(f'{panel.title}\n{panel.note}'.rstrip()), loc='left', fontsize=8, color=INK)
            ax.tick_params(labelsize=8)
            ax.xaxis.set_major_locator(MaxNLocator(5))
    axes.flat[0].set_xlim(*span)
    used = axes.flat[:len(panels)]
    for ax in axes.flat[len(panels):]:
        ax.set_visible(False)
    for ax in used[-columns:]:
        ax.tick_params(labelbottom=True)
        ax.set_xlabel(panels[-1].x_label + (', UTC' if clock else ''), color=INK)
        if clock is not None:
            show_clock(ax, clock, span[1] - span[0])
    for column in axes.T:
        figure.align_ylabels(column)
    _add_legend(figure, [ax for panel, ax in zip(panels, used) if panel.curves])
    write_whole(path, figure.savefig)


def show_clock(ax: Axes, clock: Clock, span: float) -> None:
    """The time of day below each number of a time axis, whose length is ``span``."""
    ax.xaxis.set_major_formatter(lambda value, _: f'{value:.10g}\n{time_of_day(clock, value, span)}')


def _add_legend(figure: Figure, axes: Iterable[Axes]) -> None:
    """One legend at the top for all axes, each label once."""
    handles: dict[str, Artist] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc='upper left', ncol=max(1, len(handles)), frameon=False,
                  fontsize=9)


def with_fonts(figure: Figure) -> Figure:
    """The figure, which embeds its fonts as TrueType in PDF and PS, and keeps text in SVG."""
    from matplotlib import rc_context  # here, as a picture needs it seldom
    save = figure.savefig

    def savefig(*arguments: Any, **options: Any) -> None:
        with rc_context({'pdf.fonttype': 42, 'ps.fonttype': 42, 'svg.fonttype': 'none'}):
            save(*arguments, **options)
    figure.savefig = savefig        # type: ignore[method-assign]
    return figure


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
        under = curve.kind == 'dashes' and len(t) > 2       # wide and pale, so that what lies on it is seen on it
        look = {'linestyle': '-', 'linewidth': 3.5, 'alpha': 0.5, 'zorder': 2.5} if under else {
            'linestyle': _LINES[curve.kind], 'marker': 'o' if curve.kind == 'marks' else '', 'linewidth': 1.2,
            'zorder': 3}
        ax.plot(t, y, color=color, markersize=4.5, label=label, **look)


def corner_text(ax: Axes, text: str, size: float) -> Text:
    """A text in the upper left corner."""
    return ax.text(0.02, 0.97, plain(text), transform=ax.transAxes, va='top', fontsize=size, color=INK)


def write_gif(figure: Figure, frames: Iterable[int], draw: Callable[[int], list[Artist]], rate: float,
              colors: int, path: Path) -> None:
    """A looping GIF, ``rate`` frames a second: what is on the figure is drawn once, the artists that ``draw`` makes of
    each frame over it; in the colours of the middle frame, so that they do not flicker."""
    canvas: Any = figure.canvas
    images: list[Image.Image] = []
    canvas.draw()
    still = canvas.copy_from_bbox(figure.bbox)
    for frame in frames:
        canvas.restore_region(still)
        for artist in sorted(draw(frame), key=lambda artist: artist.get_zorder()):
            figure.draw_artist(artist)
            artist.remove()
        images.append(Image.fromarray(np.asarray(canvas.buffer_rgba())).convert('RGB'))
    palette = images[len(images) // 2].quantize(colors)
    first, *rest = (image.quantize(colors, palette=palette, dither=0) for image in images)  # type: ignore[arg-type]
    write_whole(path, lambda part: first.save(part, save_all=True, append_images=rest, duration=round(1000 / rate),
                                              loop=0))


def spread_frames(count: int, most: int) -> np.ndarray:
    """At most so many of ``count`` frames, evenly spread, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(int))


def write_plots(panels: Sequence[Panel], path: Path) -> None:
    """Draw panels, each with an x axis of its own, into a PNG; one legend for all where they have the same labels."""
    write_whole(path, draw_plots(panels).savefig)


def draw_plots(panels: Sequence[Panel], new: Callable[[float, float], Figure] = new_figure) -> Figure:
    """The same as a figure; ``new`` makes one of a size in inches."""
    same = len({tuple(curve.label for curve in panel.curves) for panel in panels}) == 1
    shared = same and (len(panels) > 1 or len(panels[0].curves) > 4)
    entries = len(panels[0].curves) if shared else 0
    legend = 0.26 * -(-entries // 5) + 0.1 if entries > 1 else 0.0
    names = [] if shared else [name for panel in panels for name in (
        *(curve.label for curve in panel.curves), *(band.label for band in panel.bands)) if name]
    beside = 0.6 + 0.062 * max(map(len, names)) if names else 0.0       # inches to the right: no legend over data
    figure = new(_WIDTH, _HEIGHT * (1.35 if len(panels) == 1 else len(panels)) + 0.55 + legend)
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    set_margins(figure, 0.95, 0.2 + beside, 0.55, 0.4 + legend, gap=0.38)
    for panel, ax in zip(panels, axes):
        draw_panel(panel, ax)
        ax.set_xlabel(plain(panel.x_label), color=INK)
        if not shared and any(curve.label for curve in panel.curves):
            ax.legend(fontsize=8, frameon=False, loc='upper left', bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
    if entries > 1:
        figure.legend(*axes[0].get_legend_handles_labels(), loc='upper center', ncol=5, frameon=False, fontsize=9)
    figure.align_ylabels(axes)
    return figure


@dataclass(frozen=True)
class Bars:
    """Horizontal bars: for each of the ``labels`` (k,) one of each of the ``series``, (k,) by name, None for no bar.
    Dots where the axis is logarithmic."""

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
    write_whole(path, figure.savefig)


def _draw_bars(item: Bars, ax: Axes) -> None:
    style_axes(ax)
    thickness = 0.8 / len(item.series)
    for k, (name, values) in enumerate(item.series.items()):
        places = np.arange(len(item.labels)) + (k - (len(item.series) - 1) / 2) * thickness
        widths = np.array([np.nan if value is None else value for value in values], dtype=float)
        color = PALETTE[k % len(PALETTE)]
        if item.log:        # a bar's length means nothing there
            ax.plot(widths, places, 'o', color=color, markersize=5, label=plain(name))
        else:
            ax.barh(places, np.nan_to_num(widths), thickness * 0.9, color=color, label=plain(name))
        for place, width in zip(places, widths):
            if np.isfinite(width):
                ax.annotate(number(float(width)), (width, place), (6 if item.log else 3, 0), va='center',
                            textcoords='offset points', fontsize=7.5, color=INK)
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
