# SPDX-License-Identifier: Apache-2.0
"""A run for the viewer of rerun (rerun-sdk, extra ``view``): the machine in 3D, its charts over time, the answer in
words. Whole columns at once: a log of minutes takes a second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import MbseError, MissingModuleError
from .charts import charts_of
from .data import COLORS, PALETTE, Animation, Chart, Panel, PayloadTrack, Run, kind_of
from .series import equal_runs
from .text import slug

APPLICATION = 'mbse_ros'
MACHINE, CHARTS, STATUS, ANSWER = 'machine', 'charts', 'status', 'answer'
_THICK = {'barrel': 0.045, 'rod': 0.02, 'cylinder': 0.03, 'payload': 0.06, 'body': 0.02}   # m, radius of a line, point
CYLINDER_POINTS = 3     # of its outline: eye of the barrel, its end, eye of the rod
_BEHIND = 0.6                                                   # share of it of the measured machine


class ViewerError(MbseError):
    """The viewer of rerun did not start."""


def show_run(run: Run, start_ns: int, path: Path | None = None) -> None:
    """Write a recording, .rrd, or without a path hand the run to the viewer, which is started.

    ``start_ns``: stamp of the time 0 of the run; the recording has both, ``time`` and ``stamp``. A file is replaced.
    Raises MissingModuleError, ViewerError, OSError.
    """
    rr = viewer()
    layout = _layout(run)
    recording = rr.RecordingStream(APPLICATION)
    try:
        if path is None:
            recording.spawn(default_blueprint=layout)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            recording.save(str(path), default_blueprint=layout)
    except RuntimeError as error:
        raise ViewerError(f"rerun's viewer cannot be started ({error}): write a file (-o) and open it with `rerun FILE`"
                          ) from error
    sink = _Sink(rr, recording, start_ns)
    if run.animation is not None and run.animation.t.size:
        sink.machine(run.animation)
    for chart in charts_of(run):
        for panel in chart.panels:
            sink.panel(f'{CHARTS}/{chart.name}/{slug(panel.title)}', panel)
    if run.payload is not None and run.payload.t.size:
        sink.status(run.payload)
    recording.log(ANSWER, rr.TextDocument(_answer(run), media_type='text/markdown'), static=True)
    recording.flush()
    if path is not None:
        recording.disconnect()


def viewer() -> ModuleType:
    """The package rerun; raises MissingModuleError."""
    try:
        import rerun
    except ImportError as error:
        raise MissingModuleError('rerun', 'mbse view', "`pip install 'mbse_ros[view]'` (rerun-sdk, 170 MB)",
                                 str(error)) from None
    return rerun


class _Sink:
    """Puts parts of a run into a recording."""

    def __init__(self, rr: ModuleType, recording: Any, start_ns: int) -> None:
        self._rr, self._recording, self._start = rr, recording, np.datetime64(start_ns, 'ns')

    def machine(self, animation: Animation) -> None:
        """Lines and points of both machines, in m; a part that is not known at a time is not there."""
        rr = self._rr
        self._recording.log(MACHINE, rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
        for which, lines in (('estimated', animation.estimated), ('measured', animation.measured or {})):
            for name, points, part in _parts(lines):
                kind, place = kind_of(name), f'{MACHINE}/{which}/{name}' + f'/{part}' * bool(part)
                size = _THICK[part or kind] * (1.0 if which == 'estimated' else _BEHIND)
                color = COLORS['true'] if kind == 'payload' and which == 'estimated' else COLORS[which]
                shape = rr.Points3D if points.shape[1] == 1 else rr.LineStrips3D
                self._recording.log(place, shape.from_fields(radii=size, colors=_color(color)), static=True)
                known = np.isfinite(points).all(axis=(1, 2))
                items = {'positions': points[known, 0]} if shape is rr.Points3D else {'strips': points[known]}
                self._send(place, animation.t, shape.columns(**items).partition(known.astype(int)))

    def panel(self, place: str, panel: Panel) -> None:
        """Each curve, and the two edges of each band, in the unit shown; nothing at a gap breaks the line."""
        curves = [(curve.label, curve.color or PALETTE[k % len(PALETTE)], 2.0, curve.t, curve.y)
                  for k, curve in enumerate(panel.curves)]
        curves += [(f'{band.label}, {edge}', band.color, 1.0, band.t, y)
                   for band in panel.bands for edge, y in (('lower', band.lower), ('upper', band.upper))]
        for label, color, width, t, y in curves:
            known, entity = np.isfinite(y), f'{place}/{slug(label)}'
            name = f'{label} [{panel.unit}]' if panel.unit else label
            self._recording.log(entity, self._rr.SeriesLines(names=name, colors=_color(color), widths=width),
                                static=True)
            self._send(entity, t, self._rr.Scalars.columns(scalars=y[known]).partition(known.astype(int)))

    def status(self, payload: PayloadTrack) -> None:
        """A line where what becomes of the mass changes."""
        times, _, codes = zip(*equal_runs(payload.t, payload.status.astype(int)))
        words = [payload.status_names[code] for code in codes]
        levels = ['INFO' if code == payload.updating else 'WARN' for code in codes]
        self._send(STATUS, np.array(times), self._rr.TextLog.columns(text=words, level=levels))

    def _send(self, place: str, t: np.ndarray, columns: Any) -> None:
        stamps = self._start + np.round(1e9 * t).astype('timedelta64[ns]')
        rr = self._rr
        rr.send_columns(place, [rr.TimeColumn('time', duration=t), rr.TimeColumn('stamp', timestamp=stamps)],
                        columns, recording=self._recording, strict=True)


def _parts(lines: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray, str]]:
    """Names and points (frames, k, 3) of what is one line or point; of a cylinder apart 'barrel' and 'rod'."""
    for name, points in lines.items():
        if kind_of(name) == 'cylinder' and points.shape[1] == CYLINDER_POINTS:
            yield from ((name, points[:, :2], 'barrel'), (name, points[:, 1:], 'rod'))
        else:
            yield name, points, ''


def _color(text: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(text[1:]))


def _layout(run: Run) -> Any:
    """Machine and answer on the left, a tab for each chart on the right."""
    from rerun import blueprint as rrb

    def tab(chart: Chart) -> Any:
        # the viewer has no names of axes: the unit stands in the name of the view, too
        views = [rrb.TimeSeriesView(origin=f'/{CHARTS}/{chart.name}/{slug(panel.title)}',
                                    name=f'{panel.title} [{panel.unit}]' if panel.unit else panel.title)
                 for panel in chart.panels if panel.curves]
        return rrb.Vertical(*views, name=chart.title)
    left = rrb.Vertical(rrb.Spatial3DView(origin=f'/{MACHINE}', name=run.machine),
                        rrb.Tabs(rrb.TextDocumentView(origin=f'/{ANSWER}', name='Answer'),
                                 rrb.TextLogView(origin=f'/{STATUS}', name='Status of the mass')), row_shares=[3, 2])
    return rrb.Blueprint(rrb.Horizontal(left, rrb.Tabs(*map(tab, charts_of(run)))), rrb.TimePanel(timeline='time'),
                         collapse_panels=True)


def _answer(run: Run) -> str:
    """Facts, tables and remarks as Markdown."""
    lines = [f'# {run.title}', '', '| | |', '|---|---|', *(f'| {key} | {value} |' for key, value in run.facts.items())]
    for table in run.tables:
        lines += ['', f'## {table.title}', '', f'| {" | ".join(table.columns)} |', '|---' * len(table.columns) + '|',
                  *(f'| {" | ".join(row)} |' for row in table.rows)]
    return '\n'.join([*lines, '', *(f'- {note}' for note in run.notes)])
