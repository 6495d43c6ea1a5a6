# SPDX-License-Identifier: Apache-2.0
"""Write a run as a folder: the page ``index.html``, its plots as PNG, the machine as PNG and GIF."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .chart import Curve
from .charts import charts_of
from .crane import write_crane_gif, write_still
from .data import Run, Timed
from .page import page
from .png import write_png
from .scene import FRAME_RATE, scene_of

MARGIN = 0.02
MOST = 60_000       # points of a curve, those of ten minutes at 100 Hz: many times what is drawn


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
    edge = MARGIN * (end - start) if run.charts else 0.0      # points at the ends are seen whole
    return start - edge, (end if end > start else start + 1.0) + edge
