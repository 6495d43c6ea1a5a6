# SPDX-License-Identifier: Apache-2.0
"""Plots of studies as PNG: several axes in one picture, linear, logarithmic or two-sided logarithmic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from .png import INK, name_axes, new_figure, plain, set_margins, style_axes
from .series import decimate
from .text import number

# Told apart by people who do not see red and green.
PALETTE = ('#2a7de1', '#e8590c', '#0ca678', '#9c36b5', '#e0a100', '#1098ad', '#d6336c', '#795548', '#495057', '#74b816')
_POINTS = 4000
_WIDTH, _HEIGHT = 9.6, 3.1      # of the picture, and of one pair of axes, inches


@dataclass(frozen=True)
class Line:
    """A curve of ``x`` and ``y`` (k,); ``style`` of matplotlib: '-', '--', 'o-', 'o'. Gaps where not finite."""

    label: str
    x: np.ndarray
    y: np.ndarray
    style: str = '-'
    color: str = ''

    def __post_init__(self) -> None:
        for name in ('x', 'y'):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=float))


@dataclass(frozen=True)
class Plot:
    """One pair of axes, scales of matplotlib. ``threshold``: of a symlog axis, between whose signs it is linear;
    ``limits`` bound y."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line] = field(default_factory=tuple)
    x_scale: str = 'linear'
    y_scale: str = 'linear'
    threshold: float = 1.0
    limits: tuple[float, float] | None = None
    note: str = ''


def write_plots(plots: Sequence[Plot], path: Path) -> None:
    """Draw the plots one below the other into a PNG; one legend for all where they have the same labels."""
    same = len({tuple(line.label for line in plot.lines) for plot in plots}) == 1
    shared = same and (len(plots) > 1 or len(plots[0].lines) > 4)
    entries = len(plots[0].lines) if shared else 0
    legend = 0.26 * -(-entries // 5) + 0.1 if entries > 1 else 0.0
    figure = new_figure(_WIDTH, _HEIGHT * (1.35 if len(plots) == 1 else len(plots)) + 0.55 + legend)
    axes = figure.subplots(len(plots), 1, squeeze=False)[:, 0]
    set_margins(figure, 0.95, 0.2, 0.55, 0.4 + legend, gap=0.38)
    for plot, ax in zip(plots, axes):
        _draw(plot, ax, not shared)
    if entries > 1:
        figure.legend(*axes[0].get_legend_handles_labels(), loc='upper center', ncol=5, frameon=False, fontsize=9)
    figure.align_ylabels(axes)
    figure.savefig(path)


def _draw(plot: Plot, ax: Axes, legend: bool) -> None:
    style_axes(ax)
    for k, line in enumerate(plot.lines):
        x, y = _thinned(line)
        style, marker = ('none', 'o') if line.style == 'o' else (line.style.replace('o', ''), 'o' * ('o' in line.style))
        ax.plot(x, y, linestyle=style, marker=marker or None, markersize=4.5, linewidth=1.3,
                color=line.color or PALETTE[k % len(PALETTE)], label=plain(line.label))
    _scale(ax, plot)
    name_axes(ax, plot.title, plot.x_label, plot.y_label, plot.note)
    if legend and any(line.label for line in plot.lines):
        ax.legend(fontsize=8, framealpha=0.85, edgecolor='none', ncol=1 + len(plot.lines) // 6)


def _scale(ax: Axes, plot: Plot) -> None:
    ax.set_xscale(plot.x_scale)
    ax.set_yscale(plot.y_scale, **({'linthresh': plot.threshold, 'linscale': 0.4} if plot.y_scale == 'symlog' else {}))
    if plot.y_scale == 'symlog':
        for sign in (-1, 1):
            ax.axhline(sign * plot.threshold, color=INK, linewidth=0.7, linestyle=(0, (4, 4)), zorder=1)
    if plot.limits:
        ax.set_ylim(*plot.limits)


def _thinned(line: Line) -> tuple[np.ndarray, np.ndarray]:
    """Long curves over time keep their envelope; others are drawn as they are."""
    if line.x.size <= _POINTS or np.any(np.diff(line.x) < 0):
        return line.x, line.y
    return decimate(line.x, line.y, _POINTS)


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
