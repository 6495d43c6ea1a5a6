# SPDX-License-Identifier: Apache-2.0
"""A filtered log of a mechanism, smoothed: all at once, or with a lag."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ..dynamics.model import Model
from ..errors import BagError, DivergenceError, SettingError
from ..graph.estimate import EstimatedMotion
from ..graph.smoother import LinkageSmoother, Smoothed
from ..streams.linkage import LinkageSettings, Measured
from ..streams.linkage.lagged import smoother_noises
from ..streams.linkage.start import encoded, moved_to
from .linkage import LinkageLog

FILTER = 'errorEKF_FE'      # whose model is that of the smoother: it gives the values to start from
UNKNOWN = 1.0               # rad/s or m/s, of a start's speeds: beside many samples no knowledge of them, either
FALLBACK = 0.2              # s of lag of the estimate from which the whole log starts where the filter's does not do


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


def check_filter(settings: LinkageSettings) -> None:
    """Raise SettingError for a filter of another model."""
    if settings.estimator != FILTER:
        raise SettingError('estimator', settings.estimator, f'{FILTER}, the filter of the same model')


def smooth_linkage_log(log: LinkageLog, settings: LinkageSettings, lag: float | None = None, backend: str = 'auto',
                       source: str = 'samples') -> SmoothedLog:
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
    return SmoothedLog(log, smoother, tuple(found), np.concatenate(places), time.perf_counter() - begin)


def gridded(log: LinkageLog) -> tuple[np.ndarray, np.ndarray]:
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
    track = EstimatedMotion(t, *(log.column(name)[place] for name in ('q', 'qd', 'qdd', 'force')))
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
