# SPDX-License-Identifier: Apache-2.0
"""Charts as PNG by matplotlib; every picture is its own Figure object, no global state is touched."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from .chart import Chart, Curve, Panel
from .series import break_holes, decimate

_POINTS = 8000            # of a curve: more than the picture has columns
_STYLES = {'line': '-', 'dashes': '--'}
INK = '#30353d'


def new_figure(width: float, height: float, dpi: int = 120) -> Figure:
    """An empty white figure of that size in inches, drawn by Agg."""
    figure = Figure(figsize=(width, height), dpi=dpi, facecolor='white', layout='constrained')
    FigureCanvasAgg(figure)
    return figure


def plain(text: str) -> str:
    """The text as matplotlib shows it literally: a dollar sign would start a formula."""
    return text.replace('$', r'\$')


def write_png(chart: Chart, span: tuple[float, float], path: Path) -> None:
    """Draw the chart over the time ``span`` (s) into a PNG file."""
    heights = [panel.height for panel in chart.panels]
    figure = new_figure(9.6, 1.0 + 1.75 * sum(heights) + 0.2 * len(heights))
    axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for panel, ax in zip(chart.panels, axes):
        _draw(panel, ax)
    axes[-1].set_xlim(*span)
    axes[-1].set_xlabel('time [s]', color=INK)
    handles = {}
    for ax in axes[[bool(panel.curves) for panel in chart.panels]]:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc='outside upper left', ncols=min(6, len(handles)),
                  frameon=False, fontsize=9)
    figure.savefig(path)


def style_axes(ax: Axes) -> None:
    """Light grid, no box."""
    ax.grid(True, color='#e3e6ea', linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[['top', 'right']].set_visible(False)
    ax.tick_params(labelsize=9, colors=INK)


def _draw(panel: Panel, ax: Axes) -> None:
    style_axes(ax)
    for band in panel.bands:
        t, lower, upper = break_holes(band.t, band.lower, band.upper)
        ax.fill_between(t, lower, upper, color=band.color, alpha=0.22, linewidth=0, label=plain(band.label), zorder=2)
    for strip in panel.strips:
        ax.broken_barh([(a, b - a) for a, b in strip.stretches], (0, 1), color=strip.color, label=plain(strip.label))
    for curve in panel.curves:
        _draw_curve(curve, ax)
    if panel.limits:
        ax.set_ylim(*panel.limits)
    if not panel.curves:   # a strip: its height means nothing
        ax.set_yticks([])
        ax.legend(loc='lower right', bbox_to_anchor=(1, 1), ncols=len(panel.strips), frameon=False, fontsize=9,
                  borderpad=0)
        ax.spines['left'].set_visible(False)
    ax.set_ylabel(plain(panel.unit), color=INK)
    ax.set_title(plain(panel.title), loc='left', fontsize=10, fontweight='bold', color=INK)
    ax.set_title(plain(panel.note), loc='right', fontsize=9, color=INK)


def _draw_curve(curve: Curve, ax: Axes) -> None:
    label = plain(curve.label)
    if curve.kind in ('dots', 'samples'):
        t, y = decimate(curve.t, curve.y, _POINTS)
        ax.plot(t, y, '.', color=curve.color, markersize=2.5, label=label, zorder=1.5)
    else:
        t, y = decimate(*break_holes(curve.t, curve.y), _POINTS)
        ax.plot(t, y, _STYLES[curve.kind], color=curve.color, linewidth=1.3, label=label, zorder=3)
