# SPDX-License-Identifier: Apache-2.0
"""A filtered log of a mechanism, smoothed: all at once, or with a lag."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..description.coordinate_units import unit_of
from ..errors import BagError, DivergenceError, SettingError
from ..filters.linkage_settings import LinkageSettings
from ..graph.estimate import EstimatedMotion
from ..graph.smoother import LinkageSmoother, Smoothed
from ..progress import lengthy
from ..report.data import Panel
from ..report.files import write_table
from ..report.series import Z95, interval, root_mean_square
from ..report.text import cost, cost_line, lag_text
from ..streams.lagged import smoother_noises
from ..streams.records import Measured
from ..streams.start import encoded, moved_to
from .filtered_motion import FilteredMotion
from .motion_estimate import MotionEstimate

FILTER = 'errorEKF_FE'      # whose model is that of the smoother: it gives the values to start from
UNKNOWN = 1.0               # rad/s or m/s, of a start's speeds: beside many samples no knowledge of them, either
UNSEEN = 0.5        # of the standard deviation of the start, above which a position counts as not seen
FALLBACK = 0.2              # s of lag of the estimate from which the whole log starts where the filter's does not do


ENDINGS = {' rate': 'velocity', ' force': 'force'}


@dataclass(frozen=True, repr=False, kw_only=True)
class SmoothedMotion(MotionEstimate):
    """What was ``filtered``, its smoothed stretches (a new one after each restart or hole), and the time they took, s.

    ``place`` (k,): places of the smoothed instants among the filter's; ``lag``, s, None of the whole log.
    """

    filtered: FilteredMotion
    smoother: LinkageSmoother
    stretches: tuple[Smoothed, ...]
    place: np.ndarray
    seconds: float
    lag: float | None

    @property
    def doubts(self) -> Sequence[str]:
        """Those of the filter: what is wrong with the log."""
        return self.filtered.doubts

    @property
    def log_seconds(self) -> float:
        """Length of what was smoothed, s."""
        return len(self.place) * self.filtered.step

    def column(self, values: str) -> np.ndarray:
        """One of the arrays of all stretches (k, ...)."""
        return np.concatenate([getattr(item, values) for item in self.stretches])

    def errors(self) -> dict[str, dict[str, float]]:
        """RMSE of filter and smoother against the truth in the bag, and the share of it within the smoother's 95 %
        interval, by independent coordinate; empty where the bag has no truth."""
        z = self.model.z
        filtered, smoothed = ((q - self.true_q)[:, z] for q in (self.filtered.q[self.place], self.q))
        known = np.isfinite(smoothed).all(axis=1)
        if not known.any():
            return {}
        inside = np.abs(smoothed) <= Z95 * self.stddev[:, :len(z)]
        return {name: {'filter': root_mean_square(filtered[known, k]), 'smoother': root_mean_square(smoothed[known, k]),
                       'coverage': float(np.mean(inside[known, k]))} for k, name in enumerate(self.model.independent)}

    def summary(self) -> list[str]:
        """What was smoothed, how much narrower its intervals are, errors where the truth is known, and the cost."""
        lines = [f'smoothed {self.model.description.name}: {", ".join(self.channels)}; {len(self.place)} instants '
                 f'of {self.filtered.step:g} s, {lag_text(self.lag)}'
                 + (f', in {len(self.stretches)} stretches' if len(self.stretches) > 1 else '')]
        lines += self._distrust
        own, other = np.median(self.stddev, axis=0), np.median(self.filter_stddev, axis=0)
        lines += [f'  {name}: standard deviation {own[k]:.3g}, of the filter {other[k]:.3g} (medians)'
                  for k, name in enumerate(self.model.independent)]
        lines += [f'RMSE against the truth: {name} {row["smoother"]:.3g}, of the filter {row["filter"]:.3g}; '
                  f'{100 * row["coverage"]:.1f} % of the truth within the 95 % interval'
                  for name, row in self.errors().items()]
        return [*lines, cost_line(self.seconds, self.log_seconds, ' smoothed')]

    @property
    def filter_stddev(self) -> np.ndarray:
        """Standard deviations (k, 2g) of the filter's positions and velocities at the smoothed instants."""
        return self.filtered.stddev[self.place, :2 * len(self.model.z)]

    def _values(self, full: bool) -> dict[str, Any]:
        """Deviations of filter and smoother, errors, cost, and in ``full`` every instant."""
        result: dict[str, Any] = {
            'mechanism': self.model.description.name, 'channels': self.channels, 'lag': self.lag,
            'instants': len(self.place), 'stretches': len(self.stretches), 'names': self.smoother.names,
            'median_stddev': np.median(self.stddev, axis=0),
            'median_filter_stddev': np.median(self.filter_stddev, axis=0), 'truth': self.errors(),
            'dropped': self.filtered.stage.dropped, 'cost': cost(self.seconds, self.log_seconds), **self._trust}
        if full:
            result['state'] = {'stamp_ns': self.stamps_ns, 'mean': self.mean, 'stddev': self.stddev,
                               'after': self.column('after')}
        return result

    @property
    def stamps_ns(self) -> np.ndarray:
        """Stamps (k,), ns."""
        return self.filtered.column('stamp_ns')[self.place]

    def report(self, folder: str | Path, pictures: bool = True) -> Path:
        """Picture, with ``pictures``, and stamp, mean and standard deviations of every instant as CSV, SI; gives the
        new folder."""
        from ..report.plots import write_smoothed  # here: slow to import
        place, names = Path(folder), self.smoother.names
        place.mkdir(parents=True)
        if pictures:
            write_smoothed(panels(self), place)
        write_table(place / 'smoothed.csv', ['stamp_ns', *names, *(f'{name} stddev' for name in names), 'after'],
                    [self.stamps_ns, *self.mean.T, *self.stddev.T, self.column('after')])
        return place


def check_filter(settings: LinkageSettings) -> None:
    """Raise SettingError for a filter of another model."""
    if settings.estimator != FILTER:
        raise SettingError('estimator', settings.estimator, f'{FILTER}, the filter of the same model')


@lengthy('smoothing')
def smooth_motion(log: FilteredMotion, settings: LinkageSettings, lag: float | None = None, backend: str = 'auto',
                       source: str = 'samples') -> SmoothedMotion:
    """Smooth a log that was filtered with ``settings``: all at once, or with a lag, s. Samples that the filter rejected
    stay out. ``source`` names the log in errors. Raises BagError, SettingError, DivergenceError with the step.
    """
    samples, inputs = gridded(log)
    noises = smoother_noises(log.model, log.stage.sensors, settings, min(settings.start_velocity, UNKNOWN))
    smoother = LinkageSmoother(log.model, log.stage.sensors, log.step, noises, backend)
    begin = time.perf_counter()
    places = [place for place in stretches_of(log) if len(place) > 1]
    if not places:
        raise BagError(source, 'nothing to smooth: expected at least two instants without a gap between them')
    found = [_smooth(smoother, log, place, samples[place], inputs[place], lag, k == 0)
             for k, place in enumerate(places)]
    return _as_motion(log, smoother, found, np.concatenate(places), time.perf_counter() - begin, lag)


def _as_motion(log: FilteredMotion, smoother: LinkageSmoother, found: Sequence[Smoothed], at: np.ndarray,
               seconds: float, lag: float | None) -> SmoothedMotion:
    """The smoothed instants, ``at`` these places of the filter's; what it made of the samples stays beside them."""
    columns = {name: np.concatenate([getattr(item, name) for item in found])
               for name in ('mean', 'stddev', 'q', 'qd', 'qdd', 'force')}
    return SmoothedMotion(
        **columns, model=log.model, estimator='smoother', t=log.t[at],
        names=tuple(_entry(name) for name in smoother.names), force_names=log.model.independent, channels=log.channels,
        innovation=log.innovation[at], innovation_stddev=log.innovation_stddev[at], used=log.used[at],
        true_q=log.true_q[at], status=tuple(log.status[k] for k in at),
        warnings=(*log.warnings, *_unseen(smoother, columns['stddev'])), filtered=log, smoother=smoother,
        stretches=tuple(found), place=at, seconds=seconds, lag=lag)


def _unseen(smoother: LinkageSmoother, stddev: np.ndarray) -> list[str]:
    """Positions that no sensor measured, known from the start alone, by deviations (k, n): a line each."""
    names = smoother.model.independent
    start = np.broadcast_to(smoother.noises.position, len(names))
    best = stddev[:, :len(start)].min(axis=0)
    return [f'{name}: the sensors do not see it: its standard deviation is {low:.2g} at best, that of the start '
            f'{first:.2g}' for name, low, first in zip(names, best, start) if low > UNSEEN * first]


def _entry(name: str) -> str:
    """'position/theta' of 'theta', 'velocity/theta' of 'theta rate', and so on, as the filters name them."""
    if name.endswith(' bias'):
        return f'bias/{name.removesuffix(" bias")}'
    kind = next((kind for ending, kind in ENDINGS.items() if name.endswith(ending)), 'position')
    return f'{kind}/{name.removesuffix(" rate").removesuffix(" force")}'


def gridded(log: FilteredMotion) -> tuple[np.ndarray, np.ndarray]:
    """Samples (k, s) at the filter's instants, NaN where missing or not used by it, and inputs (k, u) there."""
    stage, stamps = log.stage, log.column('stamp_ns')
    samples = np.full((len(stamps), len(stage.channels)), np.nan)
    changes: list[list[tuple[int, float]]] = [[] for _ in stage.inputs]
    for stamp, values in log.samples:
        near = max(0, int(np.searchsorted(stamps, stamp)) - 1)
        place = near + int(np.argmin(np.abs(stamps[near:near + 2] - stamp)))
        for channel, value in values.items():
            if channel in stage.inputs:
                changes[stage.inputs.index(channel)].append((stamp, value))
            elif channel in stage.channels and abs(stamps[place] - stamp) <= stage.step_ns:
                samples[place, stage.channels.index(channel)] = value
    used = np.array([[state is Measured.USED for state in e.measured] for e in log.estimates])
    inputs = [_held(change, stamps, stage.step_ns) for change in changes]
    return np.where(used, samples, np.nan), np.column_stack(inputs) if inputs else np.zeros((len(stamps), 0))


def _held(changes: list[tuple[int, float]], stamps: np.ndarray, step: int) -> np.ndarray:
    """An input (k,) that keeps its value until the next: mean of the steps before and after each instant."""
    times, values = (np.array(column) for column in zip(*sorted(changes))) if changes else (np.zeros(0), np.zeros(0))
    series = np.concatenate([[0.0], values])
    before, after = (series[np.searchsorted(times, stamps + shift, 'right')] for shift in (-step // 2, step // 2))
    return (before + after) / 2


def stretches_of(log: FilteredMotion) -> list[np.ndarray]:
    """Places of instants that follow each other without a restart or a hole, finite."""
    stamps, finite = log.column('stamp_ns'), np.isfinite(log.q).all(axis=1)
    apart = (np.diff(stamps, prepend=stamps[0]) > 1.5 * log.stage.step_ns) | log.column('restart') | ~finite
    return [part[finite[part]] for part in np.split(np.arange(len(stamps)), np.flatnonzero(apart)) if len(part)]


def _smooth(smoother: LinkageSmoother, log: FilteredMotion, place: np.ndarray, samples: np.ndarray, inputs: np.ndarray,
            lag: float | None, first: bool) -> Smoothed:
    """One stretch. The first one starts where the filter did, the others where it was."""
    model = log.model
    t = (log.column('stamp_ns')[place] - log.estimates[0].stamp_ns) * 1e-9
    track = EstimatedMotion(t, log.q[place], log.qd[place], log.qdd[place], log.force[place])
    q, qd = track.q[0], track.qd[0]
    if first:
        moved = moved_to(model, encoded(model, log.stage.channels, samples[0]))
        q, qd = model.start.q if moved is None else moved, model.start.qd
    if lag is not None:
        return smoother.lagged(t, samples, lag, q, qd, inputs)
    try:
        return smoother.batch(samples, track, inputs, q, qd)
    except DivergenceError:
        return smoother.batch(samples, smoother.lagged(t, samples, FALLBACK, q, qd, inputs), inputs, q, qd)


def panels(found: SmoothedMotion) -> list[Panel]:
    """Of each coordinate position, error against the truth (else filter less smoother), velocity, and the force that
    the model lacks."""
    from ..report.plots import smoothed_panel
    t, g, before = found.column('t'), len(found.model.z), found.filtered
    drawn, wide, narrow = [], found.filter_stddev, found.stddev
    for k, (name, z) in enumerate(zip(found.model.independent, found.model.z)):
        unit, zero, truth = unit_of(found.model.description, name), np.zeros(len(t)), found.true_q[:, z]
        q, v, f = before.q[found.place, z], before.qd[found.place, z], before.force[found.place, k]
        q_s, v_s, f_s = found.q[:, z], found.qd[:, z], found.force[:, k]
        known = bool(np.isfinite(truth).any())
        base = truth if known else q_s
        limit = 6 * float(np.nanmedian(np.abs(q - base)) + np.median(narrow[:, k]))
        drawn += [
            smoothed_panel(name, unit, t, {'filter': q, 'smoother': q_s, **({'truth': truth} if known else {})},
                  {'filter': interval(q, wide[:, k]), 'smoother': interval(q_s, narrow[:, k])}),
            smoothed_panel(f'{name}, {"error" if known else "less the smoothed one"}', unit, t,
                  {'filter': q - base, **({'smoother': q_s - base} if known else {})},
                  {'filter': interval(zero, wide[:, k]), 'smoother': interval(zero, narrow[:, k])}, (-limit, limit)),
            smoothed_panel(f'{name}, velocity', f'{unit}/s', t, {'filter': v, 'smoother': v_s},
                  {'filter': interval(v, wide[:, g + k]), 'smoother': interval(v_s, narrow[:, g + k])}),
            smoothed_panel(f'force along {name} that the model lacks', 'N m' if unit == 'rad' else 'N', t,
                  {'filter': f, 'smoother': f_s}, {'smoother': interval(f_s, narrow[:, 2 * g + k])})]
    return drawn
