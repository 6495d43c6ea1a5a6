# SPDX-License-Identifier: Apache-2.0
"""Plots of studies as PNG: curves over any axes, and bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .chart import COLORS, PALETTE, Band, Chart, Curve, Panel
from .png import INK, draw_panel, name_axes, new_figure, plain, set_margins, style_axes, write_png
from .text import number

_WIDTH, _HEIGHT = 9.6, 3.1      # of the picture, and of one pair of axes, inches
LOOKS = {'filter': COLORS['estimated'], 'smoother': COLORS['low_passed'], 'truth': COLORS['true']}


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
