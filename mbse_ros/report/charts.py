# SPDX-License-Identifier: Apache-2.0
"""From a run to its charts: payload, signals, errors, innovations, NIS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import TypeGuard

import numpy as np

from .data import (
    COLORS,
    HELD_COLORS,
    Band,
    Chart,
    Curve,
    Innovation,
    Nis,
    Panel,
    PayloadTrack,
    Run,
    Series,
    Signal,
    Strip,
)
from .series import Z95, envelope, equal_runs, resample, root_mean_square, share_inside
from .text import number, percent, slug


def charts_of(run: Run, most: int | None = None) -> list[Chart]:
    """The charts that the run has data for, in the order of the page; their names are unique. Of curves with more than
    ``most`` points envelopes are left, so that a long run takes the memory of one chart."""
    charts = (chart if most is None else _thinned(chart, most) for chart in _charts(run) if chart.panels)
    return _uniquely_named(list(charts))


def _charts(run: Run) -> Iterator[Chart]:
    if run.payload is not None and run.payload.t.size:
        yield payload_chart(run.payload)
    groups = dict.fromkeys(signal.group for signal in run.signals)
    for group in groups:
        yield signal_chart(group, [s for s in run.signals if s.group == group])
    yield error_chart(run.signals)
    yield innovation_chart(run.innovations)
    if run.nis is not None and run.nis.t.size:
        yield nis_chart(run.nis)
    yield from run.charts


def _thinned(chart: Chart, most: int) -> Chart:
    """The chart with the least and the largest of ``most / 2`` bins in place of more than ``most`` points."""
    def curve(item: Curve) -> Curve:
        if item.t.size <= most:
            return item
        first, middle, low, high = envelope(item.y, item.y, most // 2)
        return replace(item, t=np.column_stack([item.t[first], item.t[middle]]).ravel(),
                       y=np.column_stack([low, high]).ravel())

    def band(item: Band) -> Band:
        if item.t.size <= most:
            return item
        first, _, low, high = envelope(item.lower, item.upper, most // 2)
        return replace(item, t=item.t[first], lower=low, upper=high)

    return replace(chart, panels=tuple(replace(panel, curves=tuple(map(curve, panel.curves)),
                                               bands=tuple(map(band, panel.bands))) for panel in chart.panels))


def _uniquely_named(charts: Sequence[Chart]) -> list[Chart]:
    """Number the names that occur again; ``crane`` is the name of the machine's picture."""
    taken, named = {'crane'}, []
    for chart in charts:
        candidates = (chart.name if k == 1 else f'{chart.name}_{k}' for k in count(1))
        name = next(candidate for candidate in candidates if candidate not in taken)
        taken.add(name)
        named.append(replace(chart, name=name))
    return named


def signal_chart(group: str, signals: Sequence[Signal]) -> Chart:
    """Measured, estimated and true values of a group of signals, one panel each."""
    panels = tuple(panel for panel in map(_signal_panel, signals) if panel.curves)
    shown = {c.label for p in panels for c in p.curves} | {b.label for p in panels for b in p.bands}
    words = {'measured': 'measured samples (grey)', 'estimated': 'the estimate (blue)', '95 % band': 'its 95 % band',
             'true': 'the truth (orange)'}
    caption = ', '.join(text for label, text in words.items() if label in shown)
    return Chart(group, slug(group), panels, caption[:1].upper() + caption[1:] + '.')


def _signal_panel(signal: Signal) -> Panel:
    curves, bands = [], []
    if _has_points(signal.measured):
        curves.append(_curve('measured', signal.measured, signal.scale, 'samples'))
    if _has_points(signal.estimated):
        curves.append(_curve('estimated', signal.estimated, signal.scale, 'line'))
        bands += _band(signal.estimated, signal.scale)
    if _has_points(signal.true):
        curves.append(_curve('true', signal.true, signal.scale, 'dashes'))
    return Panel(signal.name, signal.unit, tuple(curves), tuple(bands))


def _has_points(series: Series | None) -> TypeGuard[Series]:
    return series is not None and bool(np.isfinite(series.value).any())


def _curve(role: str, series: Series, scale: float, kind: str) -> Curve:
    return Curve(role, series.t, scale * series.value, COLORS[role], kind)


def _band(series: Series, scale: float) -> list[Band]:
    if series.stddev is None:
        return []
    middle, half = scale * series.value, Z95 * scale * series.stddev
    return [Band('95 % band', series.t, middle - half, middle + half, COLORS['estimated'])]


def error_chart(signals: Sequence[Signal]) -> Chart:
    """Estimate minus truth with the estimator's own 95 % band: is it as good as it says?"""
    panels = (_error_panel(s, s.estimated, s.true) for s in signals if _has_points(s.true) and _has_points(s.estimated))
    return Chart('Estimation error', 'errors', tuple(panels),
                 'Estimate minus truth, and the 95 % band that the estimator gives itself. '
                 'A consistent band contains the error about 95 % of the time.')


def _error_panel(signal: Signal, estimated: Series, true: Series) -> Panel:
    t, error = estimated.t, signal.scale * (estimated.value - resample(estimated.t, true.t, true.value))
    note, shown = f'RMSE {number(root_mean_square(error))} {signal.unit}', [error]
    bands: tuple[Band, ...] = ()
    if estimated.stddev is not None:
        half = Z95 * signal.scale * estimated.stddev
        bands = (Band('95 % band', t, -half, half, COLORS['estimated']),)
        note += f', {percent(share_inside(error, -half, half))} inside the band'
        shown += [-half, half]
    curve = Curve('estimated − true', t, error, COLORS['estimated'])
    return Panel(signal.name, signal.unit, (curve,), bands, note=note, limits=_robust_limits(shown, 0.5, 99.5))


def payload_chart(track: PayloadTrack) -> Chart:
    """Averaged and low-passed mass with the interval, the raw samples, and why the mass was updated or held."""
    low_passed = Curve('low-passed', track.t, track.low_passed, COLORS['low_passed'])
    true = [] if track.true is None else [Curve('true', track.t, track.true, COLORS['true'], 'dashes')]
    mass = [low_passed, Curve('mass', track.t, track.mass, COLORS['estimated']), *true]
    raw = [Curve('raw sample', track.t, track.raw, COLORS['raw'], 'dots'), low_passed, *true]
    bands = (Band('95 % interval', track.t, track.lower, track.upper, COLORS['estimated']),)
    mass_limits = _robust_limits([track.low_passed, track.mass, track.lower, track.upper], 3, 97, extra=track.true)
    raw_limits = _robust_limits([track.raw, track.low_passed], 2, 98, extra=track.true)
    panels = [Panel('Payload mass', 'kg', _finite(mass), bands, limits=mass_limits, height=1.4),
              Panel('Raw samples', 'kg', _finite(raw), note=_beyond_limits(track.raw, raw_limits), limits=raw_limits),
              Panel('Status', '', strips=_status_strips(track), limits=(0.0, 1.0), height=0.16)]
    return Chart('Payload', 'payload', tuple(panel for panel in panels if panel.curves or panel.strips),
                 'Each raw sample is the mass that inverse dynamics finds from one estimated state. The strip says '
                 'when samples go into the mass, and why it is held otherwise.')


def _finite(curves: Sequence[Curve]) -> tuple[Curve, ...]:
    """The curves that have anything to draw."""
    return tuple(curve for curve in curves if np.isfinite(curve.y).any())


def _beyond_limits(raw: np.ndarray, limits: tuple[float, float] | None) -> str:
    """How many raw samples the axis leaves out: a reader must not take the picture for all of them."""
    if limits is None:
        return ''
    hidden = int(np.sum((raw < limits[0]) | (raw > limits[1])))
    return f'{hidden} of {int(np.isfinite(raw).sum())} raw samples lie outside the axis' if hidden else ''


def _status_strips(track: PayloadTrack) -> tuple[Strip, ...]:
    runs = equal_runs(track.t, track.status.astype(int))
    held = iter(HELD_COLORS * (1 + len(track.status_names) // len(HELD_COLORS)))
    colors = {code: COLORS['updating'] if code == track.updating else next(held) for code in track.status_names}
    strips = []
    for code in track.status_names:
        stretches = np.array([(start, end) for start, end, value in runs if value == code])
        if stretches.size:
            prefix = '' if code == track.updating else 'held: '
            strips.append(Strip(prefix + track.status_names[code], stretches, colors[code]))
    return tuple(strips)


def innovation_chart(innovations: Sequence[Innovation]) -> Chart:
    """Innovations with their 95 % bounds and the share inside."""
    panels = (_innovation_panel(i) for i in innovations if np.isfinite(i.value).any())
    return Chart('Innovations', 'innovations', tuple(panels),
                 'Measured minus predicted, with the bounds ±1.96 σ that the filter expects. '
                 'About 95 % should lie inside, without a trend.')


def _innovation_panel(item: Innovation) -> Panel:
    value, half = item.scale * item.value, Z95 * item.scale * item.stddev
    finite = value[np.isfinite(value)]
    share, mean = percent(share_inside(value, -half, half)), number(float(finite.mean()), 2)
    note = f'{share} inside ±1.96 σ, mean {mean} {item.unit}'
    return Panel(item.channel, item.unit, (Curve('innovation', item.t, value, COLORS['estimated'], 'dots'),),
                 (Band('±1.96 σ', item.t, -half, half, COLORS['bound']),), note=note,
                 limits=_robust_limits([value, -half, half], 0.25, 99.75))


def nis_chart(nis: Nis) -> Chart:
    """Normalised innovation squared between its 95 % bounds."""
    counted = np.isfinite(nis.value) & np.isfinite(nis.dof)
    mean, expected = (float(np.mean(c[counted])) if counted.any() else np.nan for c in (nis.value, nis.dof))
    note = (f'mean {number(mean)}, expected {number(expected)}; '
            f'{percent(share_inside(nis.value, nis.lower, nis.upper))} inside')
    panel = Panel('Normalised innovation squared', '', (Curve('NIS', nis.t, nis.value, COLORS['estimated'], 'dots'),),
                  (Band('95 % bounds', nis.t, nis.lower, nis.upper, COLORS['bound']),), note=note,
                  limits=_robust_limits([nis.value, nis.lower, nis.upper], 0, 99.5, extra=np.zeros(1)))
    return Chart('Consistency', 'nis', (panel,),
                 'Above the bounds too often: the filter trusts itself too much. Below: too little.')


def _robust_limits(columns: Sequence[np.ndarray], low: float, high: float,
                   extra: np.ndarray | None = None) -> tuple[float, float] | None:
    """y limits that hold the given percentiles of each column, and all of ``extra``, with a margin of 10 %."""
    finite = [column[np.isfinite(column)] for column in columns]
    ends = [np.percentile(column, (low, high)) for column in finite if column.size]
    if extra is not None and np.isfinite(extra).any():
        ends.append((np.nanmin(extra), np.nanmax(extra)))
    if not ends:
        return None
    bottom, top = float(np.min(ends)), float(np.max(ends))
    margin = 0.1 * (top - bottom) or 0.1 * abs(top) or 1.0
    return bottom - margin, top + margin
