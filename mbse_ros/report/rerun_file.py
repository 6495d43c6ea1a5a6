# SPDX-License-Identifier: Apache-2.0
"""A run for the viewer of rerun (rerun-sdk, extra ``view``): the machine in 3D, its charts over time, the answer in
words. Whole columns at once: a log of minutes takes a second."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import MbseError, MissingModuleError
from .charts import charts_of
from .data import COLORS, FILLS, PALETTE, Animation, Chart, Panel, PayloadTrack, Run
from .series import equal_runs
from .solids import Solid, quaternions
from .text import slug

APPLICATION = 'mbse_ros'
MACHINE, CHARTS, STATUS, ANSWER = 'machine', 'charts', 'status', 'answer'
GHOST_ALPHA = 110       # of 255


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
        """Solids of both machines, each made once and then moved; a pose that is not known is not there."""
        rr, solids = self._rr, animation.shapes
        self._recording.log(MACHINE, rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
        if solids is None:
            return
        for which, parts, lines in (('estimated', solids.parts, animation.estimated),
                                    ('measured', solids.ghost, animation.measured)):
            places = solids.placed(lines) if lines else np.empty((0, len(parts), 4, 3))
            for k, part in enumerate(parts if lines else ()):
                place = f'{MACHINE}/{which}/{part.name}' + f'/{part.kind}' * (part.kind in ('barrel', 'rod'))
                color = _color(COLORS['measured'] if which == 'measured' else FILLS[part.kind])
                if part.kind == 'load':
                    known = np.isfinite(places[:, k]).all(axis=(1, 2))
                    self._recording.log(place, rr.Points3D.from_fields(colors=color), static=True)
                    self._send(place, animation.t, rr.Points3D.columns(
                        positions=places[known, k, 0], radii=animation.radii[known]).partition(known.astype(int)))
                elif which == 'estimated' or part.kind != 'stand':
                    for number, offset in enumerate(part.offsets):
                        self._solid(place + f'/{number}' * (len(part.offsets) > 1), animation.t, part,
                                    places[:, k], offset, (*color, GHOST_ALPHA if which == 'measured' else 255))

    def _solid(self, place: str, t: np.ndarray, part: Solid, places: np.ndarray, offset: float,
               color: tuple[int, ...]) -> None:
        """Its mesh, and where it is, (frames, 4, 3); of no size where that is not known."""
        rr, mesh = self._rr, part.triangles()
        self._recording.log(place, rr.Mesh3D(
            vertex_positions=mesh, triangle_indices=np.arange(len(mesh)).reshape(-1, 3), albedo_factor=color,
            vertex_normals=np.repeat(np.cross(mesh[1::3] - mesh[::3], mesh[2::3] - mesh[::3]), 3, axis=0)), static=True)
        known = np.isfinite(places).all(axis=(1, 2))
        axes = np.where(known[:, None, None], places[:, 1:], np.eye(3))
        length = np.linalg.norm(axes[:, 0], axis=1)
        axes[:, 0] /= np.maximum(length, 1e-12)[:, None]
        scale = known[:, None] * np.column_stack([length, np.ones((len(length), 2))])
        origin = np.where(known[:, None], places[:, 0] + offset * axes[:, 2], 0.0)
        self._send(place, t, rr.Transform3D.columns(translation=origin, quaternion=quaternions(axes), scale=scale))

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
