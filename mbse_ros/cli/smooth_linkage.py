# SPDX-License-Identifier: Apache-2.0
"""``mbse smooth BAG --mechanism M``."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..dynamics.model import Model, load_model
from ..errors import BagError, DivergenceError, SettingError
from ..graph.estimate import EstimationNoises, Track
from ..graph.smoother import LinkageSmoother, Smoothed, default_estimation_noises
from ..report.chart import Panel
from ..report.series import Z95, root_mean_square
from ..streams.linkage import LinkageSettings, Measured
from ..streams.linkage.settings import numbers
from ..streams.linkage.start import encoded, moved_to
from .estimate_linkage import LinkageLog, estimate_linkage_bag, linkage_settings
from .logs import Answer, LogRequest, cost, cost_line
from .smooth import how, interval, panel, write_panels
from .tables import write_table
from .units import unit_of

UNSEEN = 0.5        # of the standard deviation of the start, above which a position counts as not seen
FILTER = 'errorEKF_FE'      # whose model is that of the smoother: it gives the values to start from
FALLBACK = 0.2              # s of lag of the estimate from which the whole log starts where the filter's does not do


def smooth_linkage(mechanism: str, request: LogRequest) -> Answer:
    """Filter and smooth."""
    settings = linkage_settings(request.words)
    found = smooth_linkage_bag(load_model(mechanism, backend=request.backend), settings, request)
    return Answer([*found.log.warnings, *unseen(found)], summary(found, request), as_json(found, request),
                  lambda folder: write_files(found, folder))


def unseen(found: SmoothedLog) -> list[str]:
    """Positions that no sensor measured, known from the start alone."""
    start = np.broadcast_to(found.smoother.noises.position, len(found.model.z))
    best = found.column('stddev')[:, :len(start)].min(axis=0)
    return [f'{name}: the sensors do not see it: its standard deviation is {low:.2g} at best, that of the start '
            f'{first:.2g}' for name, low, first in zip(found.model.independent, best, start) if low > UNSEEN * first]


def errors(found: SmoothedLog) -> dict[str, dict[str, float]]:
    """RMSE of filter and smoother against the truth in the bag, and the share of it within the smoother's 95 %
    interval, by independent coordinate; empty where the bag has no truth."""
    z, truth = found.model.z, found.log.truth[found.place]
    filtered, smoothed = ((q - truth)[:, z] for q in (found.filtered('q'), found.column('q')))
    known = np.isfinite(smoothed).all(axis=1)
    if not known.any():
        return {}
    inside = np.abs(smoothed) <= Z95 * found.column('stddev')[:, :len(z)]
    return {name: {'filter': root_mean_square(filtered[known, k]), 'smoother': root_mean_square(smoothed[known, k]),
                   'coverage': float(np.mean(inside[known, k]))} for k, name in enumerate(found.model.independent)}


def summary(found: SmoothedLog, request: LogRequest) -> list[str]:
    """What was smoothed, how much narrower its intervals are, errors where the truth is known, and the cost."""
    log = found.log
    lines = [f'smoothed {found.model.description.name}: {", ".join(log.stage.channels)}; {len(found.place)} instants '
             f'of {log.step:g} s, {how(request)}'
             + (f', in {len(found.stretches)} stretches' if len(found.stretches) > 1 else '')]
    own, other = np.median(found.column('stddev'), axis=0), np.median(filter_stddev(found), axis=0)
    lines += [f'  {name}: standard deviation {own[k]:.3g}, of the filter {other[k]:.3g} (medians)'
              for k, name in enumerate(found.model.independent)]
    lines += [f'RMSE against the truth: {name} {row["smoother"]:.3g}, of the filter {row["filter"]:.3g}; '
              f'{100 * row["coverage"]:.1f} % of the truth within the 95 % interval'
              for name, row in errors(found).items()]
    return [*lines, cost_line(found.seconds, found.log_seconds, ' smoothed')]


def filter_stddev(found: SmoothedLog) -> np.ndarray:
    """Standard deviations (k, 2g) of the filter's positions and velocities at the smoothed instants."""
    variance = np.diagonal(found.filtered('covariance'), axis1=1, axis2=2)[:, :2 * len(found.model.z)]
    return np.sqrt(np.maximum(variance, 0.0))


def as_json(found: SmoothedLog, request: LogRequest) -> dict[str, Any]:
    """Deviations of filter and smoother, errors, cost, and in ``full`` every instant."""
    own = found.column('stddev')
    result: dict[str, Any] = {
        'mechanism': found.model.description.name, 'channels': found.log.stage.channels, 'lag': request.lag,
        'instants': len(found.place), 'stretches': len(found.stretches), 'names': found.smoother.names,
        'median_stddev': np.median(own, axis=0), 'median_filter_stddev': np.median(filter_stddev(found), axis=0),
        'truth': errors(found), 'dropped': found.log.stage.dropped, 'cost': cost(found.seconds, found.log_seconds)}
    if request.full:
        result['state'] = {'stamp_ns': found.filtered('stamp_ns'), 'mean': found.column('mean'), 'stddev': own,
                           'after': found.column('after')}
    return result


def write_files(found: SmoothedLog, folder: Path) -> None:
    """Picture, and stamp, mean and standard deviations of every instant as CSV, SI."""
    folder.mkdir(parents=True)
    write_panels(panels(found), folder)
    names = found.smoother.names
    write_table(folder / 'smoothed.csv', ['stamp_ns', *names, *(f'{name} stddev' for name in names), 'after'],
                [found.filtered('stamp_ns'), *found.column('mean').T, *found.column('stddev').T, found.column('after')])


def panels(found: SmoothedLog) -> list[Panel]:
    """Of each coordinate position, error against the truth (else filter less smoother), velocity, and the force that
    the model lacks."""
    t, g, wide, narrow = found.column('t'), len(found.model.z), filter_stddev(found), found.column('stddev')
    drawn = []
    for k, (name, z) in enumerate(zip(found.model.independent, found.model.z)):
        unit, zero, truth = unit_of(found.model.description, name), np.zeros(len(t)), found.log.truth[found.place, z]
        (q, q_s), (v, v_s) = ((found.filtered(kind)[:, z], found.column(kind)[:, z]) for kind in ('q', 'qd'))
        f, f_s = found.filtered('force')[:, k], found.column('force')[:, k]
        known = bool(np.isfinite(truth).any())
        base = truth if known else q_s
        limit = 6 * float(np.nanmedian(np.abs(q - base)) + np.median(narrow[:, k]))
        drawn += [
            panel(name, unit, t, {'filter': q, 'smoother': q_s, **({'truth': truth} if known else {})},
                  {'filter': interval(q, wide[:, k]), 'smoother': interval(q_s, narrow[:, k])}),
            panel(f'{name}, {"error" if known else "less the smoothed one"}', unit, t,
                  {'filter': q - base, **({'smoother': q_s - base} if known else {})},
                  {'filter': interval(zero, wide[:, k]), 'smoother': interval(zero, narrow[:, k])}, (-limit, limit)),
            panel(f'{name}, velocity', f'{unit}/s', t, {'filter': v, 'smoother': v_s},
                  {'filter': interval(v, wide[:, g + k]), 'smoother': interval(v_s, narrow[:, g + k])}),
            panel(f'force along {name} that the model lacks', 'N m' if unit == 'rad' else 'N', t,
                  {'filter': f, 'smoother': f_s}, {'smoother': interval(f_s, narrow[:, 2 * g + k])})]
    return drawn


@dataclass(frozen=True)
class SmoothedLog:
    """A filtered log, its smoothed stretches (a new one after each restart or hole), and the time they took, s.

    ``place`` (k,): places of the smoothed instants among the filter's.
    """

    log: LinkageLog
    smoother: LinkageSmoother
    stretches: tuple[Smoothed, ...]
    place: np.ndarray
    seconds: float

    @property
    def model(self) -> Model:
        """The mechanism."""
        return self.log.model

    @property
    def log_seconds(self) -> float:
        """Length of what was smoothed, s."""
        return len(self.place) * self.log.step

    def column(self, values: str) -> np.ndarray:
        """One of the arrays of all stretches (k, ...)."""
        return np.concatenate([getattr(item, values) for item in self.stretches])

    def filtered(self, values: str) -> np.ndarray:
        """The filter's values (k, ...) at the smoothed instants."""
        return self.log.column(values)[self.place]


def smooth_linkage_bag(model: Model, settings: LinkageSettings, request: LogRequest) -> SmoothedLog:
    """Filter a bag, then smooth it: all at once, or with a lag. Samples that the filter rejects stay out.

    Raises BagError, SettingError, DivergenceError with the step.
    """
    if settings.estimator != FILTER:
        raise SettingError('estimator', settings.estimator, f'{FILTER}, the filter of the same model')
    log = estimate_linkage_bag(model, settings, request)
    samples, inputs = gridded(log)
    smoother = LinkageSmoother(model, log.stage.sensors, log.step, noises_of(model, log, settings), request.backend)
    begin = time.perf_counter()
    places = [place for place in stretches_of(log) if len(place) > 1]
    if not places:
        raise BagError(str(request.bag), 'nothing to smooth: no two instants without a hole between them')
    found = [_smooth(smoother, log, place, samples[place], inputs[place], request.lag, k == 0)
             for k, place in enumerate(places)]
    return SmoothedLog(log, smoother, tuple(found), np.concatenate(places), time.perf_counter() - begin)


def noises_of(model: Model, log: LinkageLog, settings: LinkageSettings) -> EstimationNoises:
    """The smoother's noises from the settings of the filter."""
    given = numbers('noises', settings.noises, ('acceleration',))
    made = default_estimation_noises(model, settings.start_position, settings.start_velocity, settings.start_other,
                                     given.get('acceleration'))
    stddev = numbers('stddev', settings.stddev, log.stage.sensors)
    return replace(made, stddev={name: float(value[0]) for name, value in stddev.items()})


def gridded(log: LinkageLog) -> tuple[np.ndarray, np.ndarray]:
    """Samples (k, s) at the filter's instants, NaN where missing or not used by it, and inputs (k, u) there."""
    stage, stamps = log.stage, log.column('stamp_ns')
    samples = np.full((len(stamps), len(stage.channels)), np.nan)
    changes: list[list[tuple[int, float]]] = [[] for _ in stage.inputs]
    for stamp, values in log.samples:
        near = max(0, np.searchsorted(stamps, stamp) - 1)
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


def stretches_of(log: LinkageLog) -> list[np.ndarray]:
    """Places of instants that follow each other without a restart or a hole, finite."""
    stamps, finite = log.column('stamp_ns'), np.isfinite(log.column('q')).all(axis=1)
    apart = (np.diff(stamps, prepend=stamps[0]) > 1.5 * log.stage.step_ns) | log.column('restart') | ~finite
    return [part[finite[part]] for part in np.split(np.arange(len(stamps)), np.flatnonzero(apart)) if len(part)]


def _smooth(smoother: LinkageSmoother, log: LinkageLog, place: np.ndarray, samples: np.ndarray, inputs: np.ndarray,
            lag: float | None, first: bool) -> Smoothed:
    """One stretch. The first one starts where the filter did, the others where it was."""
    model = log.model
    t = (log.column('stamp_ns')[place] - log.estimates[0].stamp_ns) * 1e-9
    track = Track(t, *(log.column(name)[place] for name in ('q', 'qd', 'qdd', 'force')))
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
