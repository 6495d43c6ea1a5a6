# SPDX-License-Identifier: Apache-2.0
"""Write a run as a folder: ``index.html``, one page that opens without a network, plots as PNG, the machine as PNG and
GIF. In the page charts are figures of plotly.js: plain dictionaries, arrays packed as 32-bit floats."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from plotly.offline import get_plotlyjs

from ..resources import write_whole
from .charts import charts_of
from .crane import FRAME_RATE, Scene, scene_of, write_crane_gif, write_still
from .data import Band, Chart, Clock, Curve, Panel, Run, Strip, Table, Timed
from .plots import write_png
from .series import band_outline, break_holes, decimate, finite_runs
from .text import mass_answer, wall_time

_FOOTER = 'Drag in a plot to zoom: all time axes follow. A double click shows the whole run again'
_MOVES = ', a click moves the animation to that moment'
_GAPS = '. Gaps in the data are gaps in the curves.'
_FILES = ' The same plots are next to this page as PNG files.'
LEAST = 1.0      # of the axis's unit: a shorter axis has labels of many digits
MARGIN = 0.02
MOST = 60_000       # points of a curve, those of ten minutes at 100 Hz: many times what is drawn
LINE_POINTS = 6000     # points of a curve: two per 15 ms in a run of 30 s
BAND_POINTS = 3000     # points round a band
_PANEL, _GAP, _TOP, _BOTTOM, _LINE = 190, 46, 84, 46, 20   # px


def page(run: Run, charts: Sequence[Chart], scene: Scene | None, span: tuple[float, float],
         pictures: bool = True) -> str:
    """The whole page as HTML; every text of the run is escaped; ``pictures``: whether PNGs are beside it.

    plotly.js is inside as plotly's Python package carries it: its only bundle, 4.8 MB of about 6.
    """
    top = _answer(run) + (_crane(scene) if scene else '')
    body = [f'<section class="top">{top}</section>'] if top else []
    body += [_table(table) for table in run.tables]
    body += [_chart(chart) for chart in charts]
    return Template(_resource('page.html')).substitute(
        title=escape(run.title), machine=escape(run.machine), style=_resource('page.css'), body='\n'.join(body),
        footer=_FOOTER + _MOVES * (scene is not None) + _GAPS + _FILES * pictures, files=_FILES * pictures,
        plotly=get_plotlyjs(),
        charts=_json({chart.name: figure(chart, span, run.clock) for chart in charts}),
        scene=_json(scene_json(scene) if scene else None), script=_resource('charts.js') + _resource('scene.js'))


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding='utf-8')


def _json(value: Any) -> str:
    """JSON that cannot end the script element around it."""
    return json.dumps(value, separators=(',', ':'), allow_nan=False).replace('<', '\\u003c')


def _answer(run: Run) -> str:
    """The card with the mass, if there is one, the facts and the notes."""
    head, headline = '', run.headline
    if headline is None and run.payload is not None:
        headline = ('Payload mass', *mass_answer(run.payload))
    if headline is not None:
        title, answer, lines = headline
        head = f'<h2>{escape(title)}</h2><p class="mass">{escape(answer)}</p>'
        head += ''.join(f'<p class="line">{escape(line)}</p>' for line in lines)
    head += ''.join(f'<p><b>{escape(what)}:</b> {escape(text)}</p>' for what, text in run.summary.items())
    rows = ''.join(f'<tr><th scope="row">{escape(key)}</th><td>{escape(value)}</td></tr>'
                   for key, value in run.facts.items())
    facts = f'<table class="facts"><tbody>{rows}</tbody></table>' if rows else ''
    notes = ''.join(f'<li>{escape(note)}</li>' for note in run.notes)
    card = head + facts + (f'<ul class="notes">{notes}</ul>' if notes else '')
    return f'<div class="card answer">{card}</div>' if card else ''


def _table(table: Table) -> str:
    heads = ''.join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    rows = ''.join('<tr>' + ''.join(f'<td>{escape(cell)}</td>' for cell in row) + '</tr>' for row in table.rows)
    return (f'<section class="card"><h2>{escape(table.title)}</h2><div class="wide"><table><thead><tr>{heads}</tr>'
            f'</thead><tbody>{rows}</tbody></table></div></section>')


def _chart(chart: Chart) -> str:
    return (f'<section class="card"><h2>{escape(chart.title)}</h2><p class="caption">{escape(chart.caption)}</p>'
            f'<div class="chart" id="chart-{chart.name}"><div class="plot"></div><div class="cursor"></div></div>'
            '</section>')


def _crane(scene: Scene) -> str:
    ghost = '<span class="swatch measured"></span>measured' if scene.measured else ''
    speeds = ''.join(f'<option value="{s}"{" selected" if s == 1 else ""}>{s} ×</option>' for s in (0.2, 0.5, 1, 2, 5))
    above = '<svg id="above" role="img" aria-label="The machine from above"></svg>' if scene.above else ''
    side = 'from its own side and from above' if scene.above else 'from the side'
    return f'''<div class="card crane">
<h2>Machine, {side}<small class="caption">{ghost}<span class="swatch"></span>estimated</small></h2>
<svg id="machine" role="img" aria-label="The machine, measured and estimated"></svg>{above}
<div class="readout"><b id="caption"></b><span id="gap"></span></div>
<div class="controls"><button id="play" type="button">Play</button>
<input id="slider" type="range" step="0.01" aria-label="time"><output id="clock"></output>
<select id="speed" aria-label="speed">{speeds}</select></div>
</div>'''


def write_report(run: Run, folder: str | Path, pictures: bool = True) -> Path:
    """Write the report of a run into a folder, made if need be; returns the path of ``index.html``.

    Files: ``index.html`` (needs no other file and no network), one PNG per chart (``payload.png``, ``motion.png``,
    ..., named after the chart), ``crane.png`` and ``crane.gif`` if there is an animation; without ``pictures`` the
    page alone. Files of these names are replaced. Same run, same bytes. Raises OSError if the folder cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    charts, span = charts_of(run, MOST), time_span(run)
    for chart in charts if pictures else ():
        write_png(chart, span, folder / f'{chart.name}.png', run.clock)
    scene = scene_of(run.animation, FRAME_RATE) if run.animation is not None else None
    if scene is not None and pictures:
        write_still(scene, folder / 'crane.png')
        write_crane_gif(scene, folder / 'crane.gif')
    index = folder / 'index.html'
    write_whole(index, page(run, charts, scene, span, pictures))
    return index


def write_page(run: Run, path: str | Path) -> None:
    """Write the page of a run alone, without PNGs, as the file ``path``. Raises OSError."""
    write_whole(path, page(run, charts_of(run, MOST), None, time_span(run), pictures=False))


def time_span(run: Run) -> tuple[float, float]:
    """First and last time of all that the run holds; all time axes show it."""
    holders: list[Timed | Curve | None] = [run.payload, run.nis, run.animation, *run.innovations]
    holders += [series for s in run.signals for series in (s.measured, s.estimated, s.true)]
    holders += [curve for chart in run.charts for panel in chart.panels for curve in panel.curves]
    times = [holder.t for holder in holders if holder is not None and holder.t.size]
    if not times:
        return 0.0, 1.0
    start, end = min(float(np.min(t)) for t in times), max(float(np.max(t)) for t in times)
    if not run.charts:
        return start, end if end > start else start + 1.0
    start, end = min(start, 0.0), max(end, 0.0)     # from where the run begins, also where all points are at one time
    end = max(end, start + LEAST)
    edge = MARGIN * (end - start)       # points at the ends are seen whole
    return start - edge, end + edge


def figure(chart: Chart, span: tuple[float, float], clock: Clock | None = None) -> dict[str, Any]:
    """The chart as ``{'data': ..., 'layout': ...}``; all panels share one x axis that shows ``span`` (s)."""
    data: list[dict[str, Any]] = []
    for k, panel in enumerate(chart.panels):
        data += [{**trace, 'xaxis': 'x', 'yaxis': _axis('y', k)} for trace in _traces(panel)]
    named: set[str] = set()
    for trace in data:
        trace['showlegend'] = trace['legendgroup'] not in named
        named.add(trace['legendgroup'])
    return {'data': data, 'layout': _layout(chart, span, clock)}


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


def _layout(chart: Chart, span: tuple[float, float], clock: Clock | None) -> dict[str, Any]:
    heights = np.array([_PANEL * panel.height for panel in chart.panels])
    plot = float(heights.sum() + _GAP * (len(heights) - 1))
    tops = plot - np.concatenate([[0], np.cumsum(heights[:-1] + _GAP)])
    zero = f'<br>0 is {wall_time(clock.zero_ns)}' if clock is not None else ''      # a line: a phone is narrow
    bottom = _BOTTOM + (_LINE if zero else 0)
    layout: dict[str, Any] = {
        'height': round(plot + _TOP + bottom), 'margin': {'l': 74, 'r': 18, 't': _TOP, 'b': bottom},
        'paper_bgcolor': 'rgba(0,0,0,0)', 'plot_bgcolor': 'rgba(0,0,0,0)', 'hovermode': 'x', 'hoverdistance': 30,
        'legend': {'orientation': 'h', 'x': 0, 'y': 1 + 26 / plot, 'yanchor': 'bottom', 'groupclick': 'togglegroup',
                   'itemsizing': 'constant'},
        'xaxis': {'title': {'text': chart.panels[-1].x_label + zero}, 'range': list(span),
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


def scene_json(scene: Scene) -> dict[str, Any]:
    """The scene for the script of the page; points as packed floats, frame by frame."""
    solids = [{'kind': one.kind, 'ghost': one.ghost, 'polygon': one.polygon.round(6).tolist(),
               'pins': one.pins.round(6).tolist(), 'pin': one.pin, 'places': packed(one.places)['bdata']}
              for one in scene.solids]
    points = {side: packed(lines['payload'])['bdata'] for side, lines in (
        ('estimated', scene.estimated), ('measured', scene.measured)) if 'payload' in lines}
    return {'t': packed(scene.t)['bdata'], 'solids': solids, 'payload': points, 'captions': list(scene.captions),
            'extent': list(scene.extent), 'labels': list(scene.labels),
            'above': scene_json(scene.above) if scene.above else None}
