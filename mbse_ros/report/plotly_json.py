# SPDX-License-Identifier: Apache-2.0
"""Charts as figures of plotly.js: plain dictionaries, arrays packed as 32-bit floats."""

from __future__ import annotations

import base64
from html import escape
from typing import Any

import numpy as np

from .chart import Band, Chart, Curve, Panel, Strip
from .series import band_outline, break_holes, decimate, finite_runs

LINE_POINTS = 6000     # points of a curve: two per 15 ms in a run of 30 s
BAND_POINTS = 3000     # points round a band
_PANEL, _GAP, _TOP, _BOTTOM = 190, 46, 84, 46   # px


def figure(chart: Chart, span: tuple[float, float]) -> dict[str, Any]:
    """The chart as ``{'data': ..., 'layout': ...}``; all panels share one x axis that shows ``span`` (s)."""
    data: list[dict[str, Any]] = []
    for k, panel in enumerate(chart.panels):
        data += [{**trace, 'xaxis': 'x', 'yaxis': _axis('y', k)} for trace in _traces(panel)]
    named: set[str] = set()
    for trace in data:
        trace['showlegend'] = trace['legendgroup'] not in named
        named.add(trace['legendgroup'])
    return {'data': data, 'layout': _layout(chart, span)}


def packed(array: np.ndarray) -> dict[str, Any]:
    """A float array in the binary form that plotly.js reads: little-endian 32-bit, base64."""
    data = np.ascontiguousarray(array, dtype='<f4')
    return {'dtype': 'f4', 'bdata': base64.b64encode(data.tobytes()).decode('ascii')}


def _axis(letter: str, k: int) -> str:
    return letter if k == 0 else f'{letter}{k + 1}'


def _traces(panel: Panel) -> list[dict[str, Any]]:
    """Dots lowest, then areas, then curves on top of them."""
    areas = [_band(band) for band in panel.bands] + [_strip(strip) for strip in panel.strips]
    dots = [_curve(curve) for curve in panel.curves if curve.kind in ('dots', 'samples')]
    return dots + areas + [_curve(curve) for curve in panel.curves if curve.kind in ('line', 'dashes', 'points')]


def _curve(curve: Curve) -> dict[str, Any]:
    trace = {'type': 'scatter', 'name': escape(curve.label), 'legendgroup': curve.label, 'connectgaps': False}
    if curve.kind in ('dots', 'points') or curve.kind == 'samples' and _has_lone_points(curve.y):
        t, y = decimate(curve.t, curve.y, LINE_POINTS)
        size = 8 if curve.kind == 'points' else 3
        trace.update(mode='markers', marker={'size': size, 'color': curve.color, 'opacity': 0.75})
    else:
        t, y = break_holes(curve.t, curve.y)
        t, y = decimate(t, y, LINE_POINTS)
        trace.update(mode='lines', line={'width': 1.0 if curve.kind == 'samples' else 1.6, 'color': curve.color,
                                         'dash': 'dash' if curve.kind == 'dashes' else 'solid'})
    return {**trace, 'x': packed(t), 'y': packed(y)}


def _has_lone_points(y: np.ndarray) -> bool:
    """Whether a line would lose points that have a gap on both sides; else it is far quicker than dots."""
    return any(run.stop - run.start == 1 for run in finite_runs(y))


def _band(band: Band) -> dict[str, Any]:
    return _area(band.label, band_outline(band.t, band.lower, band.upper, BAND_POINTS), band.color, 0.22)


def _strip(strip: Strip) -> dict[str, Any]:
    boxes = [np.array([(a, 0), (a, 1), (b, 1), (b, 0), (a, 0)]) for a, b in strip.stretches]
    return {**_area(strip.label, boxes, strip.color, 1.0), 'legend': 'legend2'}


def _area(label: str, outlines: list[np.ndarray], color: str, opacity: float) -> dict[str, Any]:
    gap = np.full((1, 2), np.nan)
    points = np.vstack([part for outline in outlines for part in (outline, gap)] or [gap])
    red, green, blue = (int(color[i:i + 2], 16) for i in (1, 3, 5))
    return {'type': 'scatter', 'name': escape(label), 'legendgroup': label, 'mode': 'lines', 'fill': 'toself',
            'line': {'width': 0}, 'fillcolor': f'rgba({red},{green},{blue},{opacity})', 'hoverinfo': 'skip',
            'x': packed(points[:, 0]), 'y': packed(points[:, 1])}


def _layout(chart: Chart, span: tuple[float, float]) -> dict[str, Any]:
    heights = np.array([_PANEL * panel.height for panel in chart.panels])
    plot = float(heights.sum() + _GAP * (len(heights) - 1))
    tops = plot - np.concatenate([[0], np.cumsum(heights[:-1] + _GAP)])
    layout: dict[str, Any] = {
        'height': round(plot + _TOP + _BOTTOM), 'margin': {'l': 74, 'r': 18, 't': _TOP, 'b': _BOTTOM},
        'paper_bgcolor': 'rgba(0,0,0,0)', 'plot_bgcolor': 'rgba(0,0,0,0)', 'hovermode': 'x', 'hoverdistance': 30,
        'legend': {'orientation': 'h', 'x': 0, 'y': 1 + 26 / plot, 'yanchor': 'bottom', 'groupclick': 'togglegroup',
                   'itemsizing': 'constant'},
        'xaxis': {'title': {'text': chart.panels[-1].x_label}, 'range': list(span),
                  'anchor': _axis('y', len(heights) - 1), 'hoverformat': '.3f', 'zeroline': False},
        'modebar': {'bgcolor': 'rgba(0,0,0,0)', 'color': '#8b929c', 'activecolor': '#2a7de1'}, 'annotations': []}
    for k, (panel, top, height) in enumerate(zip(chart.panels, tops, heights)):
        layout[_axis('yaxis', k)] = _value_axis(panel, (float(top - height) / plot, float(top) / plot))
        layout['annotations'] += _headings(panel, float(top) / plot)
        if panel.strips:
            layout['legend2'] = {**layout['legend'], 'x': 1, 'xanchor': 'right', 'y': float(top) / plot}
    return layout


def _value_axis(panel: Panel, domain: tuple[float, float]) -> dict[str, Any]:
    axis: dict[str, Any] = {'domain': [max(0.0, domain[0]), min(1.0, domain[1])], 'anchor': 'x', 'zeroline': False,
                            'hoverformat': '.5~g', 'title': {'text': escape(panel.unit)}, 'nticks': 6}
    if panel.limits:
        axis['range'] = list(panel.limits)
    if not panel.curves:   # a strip: its height means nothing
        axis.update(showticklabels=False, showgrid=False, fixedrange=True)
    return axis


def _headings(panel: Panel, y: float) -> list[dict[str, Any]]:
    common = {'xref': 'paper', 'yref': 'paper', 'y': y, 'yanchor': 'bottom', 'showarrow': False}
    title = {**common, 'x': 0, 'xanchor': 'left', 'text': f'<b>{escape(panel.title)}</b>'}
    note = {**common, 'x': 1, 'xanchor': 'right', 'text': escape(panel.note)}
    return [title, note] if panel.note else [title]
