# SPDX-License-Identifier: Apache-2.0
"""Write a run as a folder: ``index.html``, one page that opens without a network, plots as PNG, the machine as PNG and
GIF."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from plotly.offline import get_plotlyjs

from .chart import Chart, Curve
from .charts import charts_of
from .crane import write_crane_gif, write_still
from .data import Run, Table, Timed
from .plotly_json import figure
from .png import write_png
from .scene import FRAME_RATE, Scene, scene_json, scene_of
from .text import mass_answer

_FOOTER = ('Drag in a plot to zoom: all time axes follow. A double click shows the whole run again, a click moves the '
           'animation to that moment. Gaps in the data are gaps in the curves. The same plots are next to this page as '
           'PNG files.')
LEAST = 0.01     # of the largest time: the span of a time axis, whose labels have few digits then
MARGIN = 0.02
MOST = 60_000       # points of a curve, those of ten minutes at 100 Hz: many times what is drawn


def page(run: Run, charts: Sequence[Chart], scene: Scene | None, span: tuple[float, float]) -> str:
    """The whole page as HTML; every text of the run is escaped.

    plotly.js is inside as plotly's Python package carries it: its only bundle, 4.8 MB of about 6.
    """
    top = _answer(run) + (_crane(scene) if scene else '')
    body = [f'<section class="top">{top}</section>'] if top else []
    body += [_table(table) for table in run.tables]
    body += [_chart(chart) for chart in charts]
    return Template(_resource('page.html')).substitute(
        title=escape(run.title), machine=escape(run.machine), style=_resource('page.css'), body='\n'.join(body),
        footer=_FOOTER, plotly=get_plotlyjs(), charts=_json({chart.name: figure(chart, span) for chart in charts}),
        scene=_json(scene_json(scene) if scene else None), script=_resource('charts.js') + _resource('scene.js'))


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding='utf-8')


def _json(value: Any) -> str:
    """JSON that cannot end the script element around it."""
    return json.dumps(value, separators=(',', ':'), allow_nan=False).replace('<', '\\u003c')


def _answer(run: Run) -> str:
    """The card with the mass, if there is one, the facts and the notes."""
    head = ''
    if run.payload is not None:
        mass, lines = mass_answer(run.payload)
        head = f'<h2>Payload mass</h2><p class="mass">{escape(mass)}</p>'
        head += ''.join(f'<p class="line">{escape(line)}</p>' for line in lines)
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


def write_report(run: Run, folder: str | Path) -> Path:
    """Write the report of a run into a folder, made if need be; returns the path of ``index.html``.

    Files: ``index.html`` (needs no other file and no network), one PNG per chart (``payload.png``, ``motion.png``,
    ..., named after the chart), ``crane.png`` and ``crane.gif`` if there is an animation. Files of these names are
    replaced. Same run, same bytes. Raises OSError if the folder cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    charts, span = charts_of(run, MOST), time_span(run)
    for chart in charts:
        write_png(chart, span, folder / f'{chart.name}.png')
    scene = scene_of(run.animation, FRAME_RATE) if run.animation is not None else None
    if scene is not None:
        write_still(scene, folder / 'crane.png')
        write_crane_gif(scene, folder / 'crane.gif')
    index = folder / 'index.html'
    index.write_text(page(run, charts, scene, span), encoding='utf-8')
    return index


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
    lacks = max(0.0, LEAST * (max(abs(start), abs(end)) or 1.0) - (end - start)) / 2      # points at one time: amid it
    edge = MARGIN * (end - start) + lacks       # points at the ends are seen whole
    return start - edge, end + edge
