# SPDX-License-Identifier: Apache-2.0
"""``LinkageObserver``: one filter at work on one mechanism, online sample by sample or over a whole log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..compiled.of_scipy import gate_limit
from ..dynamics.model import Model
from ..errors import DivergenceError, SettingError
from .cekf_penalty import tangents
from .filters import make_filter, noises_of
from .parts.problem import problem
from .parts.step import Filter, RunningFilter

EVEN = 1e-6     # largest deviation of a step, as a share of it

Noises = Mapping[str, float | Sequence[float] | np.ndarray]
STEP = 0.005        # s, before a log tells it


@dataclass(frozen=True)
class LinkageEstimates:
    """Estimates over a log of k samples, SI.

    ``mean`` (k, l) of the filter's state, ``covariance`` (l, l) at the end, ``q``, ``qd``, ``qdd`` (k, n) of all
    coordinates, ``force`` (k, g) added along the independent coordinates, ``innovation`` (k, s), 0 where missing,
    ``innovation_variance`` (k, s) its variance given the measurements before it in the same sample, ``used`` (k, s).
    ``covariances`` (k, l, l) of every sample, where the observer keeps them.
    """

    mean: np.ndarray
    covariance: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    force: np.ndarray
    innovation: np.ndarray
    innovation_variance: np.ndarray
    used: np.ndarray
    covariances: np.ndarray | None = None

    @property
    def nis(self) -> np.ndarray:
        """Normalised innovation squared of each sample (k,); its mean is the number of measurements used."""
        return np.sum(self.used * self.innovation ** 2 / self.innovation_variance, axis=1)


@dataclass(frozen=True)
class FilterTuning:
    """Numbers of a filter: its ``flat`` tuning, ``threshold`` of one normalised innovation squared, beyond which the
    gate leaves a sample out, and ``stddev`` (s,) of the sensors."""

    flat: np.ndarray
    threshold: float
    stddev: np.ndarray

    @cached_property
    def deviations(self) -> list[float]:
        """``stddev`` as numbers."""
        return list(map(float, self.stddev))


def tuning_of(filter_: Filter, noises: Noises, gate: float, stddev: np.ndarray, dt: float) -> FilterTuning:
    """Tuning of a filter with step ``dt``, s: each of its noises, a number or one for each entry, the ``gate``'s
    probability (1: none), standard deviations (s,) of its sensors. Raises SettingError."""
    parts = filter_.tuning.parts
    if set(noises) != set(filter_.noises):
        raise SettingError('noises', list(noises), 'values for ' + ', '.join(filter_.noises))
    if not 0 < gate <= 1:
        raise SettingError('gate', gate, 'a probability above 0 and up to 1')
    values = {}
    for name, given in noises.items():
        value, size = np.atleast_1d(np.asarray(given, dtype=float)), parts[name][0]
        if value.shape not in ((1,), (size,)):
            raise SettingError(f'noises: {name}', value.tolist(), f'1 or {size} values')
        if not (np.isfinite(value).all() and (value >= 0).all()):
            raise SettingError(name, value.tolist(), 'numbers from 0 up')
        values[name] = np.broadcast_to(value, (size,))
    threshold = gate_limit(gate)
    flat = filter_.tuning.flat(dt=[dt], gate=[threshold], variance=stddev ** 2,
                               p=np.asarray(filter_.problem.model.parameters), **values)
    return FilterTuning(flat, threshold, stddev)


class LinkageObserver(RunningFilter[Filter]):
    """Filter ``estimator`` (``filters.OF_MECHANISMS``) of a model with some of its sensors.

    ``noises``: the filter's process noises by name, each a number or one per independent coordinate, default
    ``noises_of``; ``stddev`` of the sensors replaces the file's; ``gate``: probability beyond which an innovation is
    left out (1: none is); ``history``: keep the covariance of every sample; ``states``: the whole state; ``dt``, s,
    until a log tells it; ``options`` go to the filter. Raises SettingError.
    """

    def __init__(self, model: Model, estimator: str, sensors: Sequence[str], noises: Noises | None = None,
                 stddev: Sequence[float] | None = None, gate: float = 1.0, backend: str = 'auto', history: bool = False,
                 states: bool = False, dt: float = STEP, **options: object) -> None:
        self.model, self.problem = model, problem(model, sensors)
        filter_ = make_filter(estimator, self.problem, **options)
        self.estimator, self.sensors, self.channels = estimator, tuple(sensors), self.problem.channels
        self.stddev = np.array(self.problem.stddev if stddev is None else stddev, dtype=float)
        if self.stddev.shape != self.problem.stddev.shape or not np.all(self.stddev > 0):
            raise SettingError('stddev', list(self.stddev), f'positive numbers for {", ".join(self.channels)}')
        super().__init__(filter_, backend, tuple(filter_.state.parts) if states else ('P',) if history else ())
        self.dt, self._t = dt, 0.0
        self.tune(noises_of(filter_) if noises is None else noises, gate)

    @property
    def names(self) -> tuple[str, ...]:
        """Entries (l,) of the mean."""
        return self.filter.names

    def tune(self, noises: Noises, gate: float = 1.0) -> None:
        """Take other noises and another gate from the next sample on; the state stays."""
        tuned = tuning_of(self.filter, noises, gate, self.stddev, self.dt)
        self.tuning, self.threshold = tuned.flat, tuned.threshold

    def start(self, q: np.ndarray | None = None, qd: np.ndarray | None = None,
              stddev: float | np.ndarray = np.radians(5.0)) -> None:
        """State from coordinates (n,) and velocities (n,), default the model's start; ``stddev`` of the mean."""
        q = self.model.start.q if q is None else q
        qd = self.model.start.qd if qd is None else qd
        self.resume(self.filter.start(np.asarray(q, dtype=float), np.asarray(qd, dtype=float), stddev), 0.0)

    def resume(self, flat: np.ndarray, t: float) -> None:
        """Continue from a flat state at a time, s."""
        self.state, self._t = flat, t

    @property
    def flat(self) -> tuple[np.ndarray, np.ndarray]:
        """Flat state and, for the last step used, flat tuning."""
        return self.state.copy(), self.tuning.copy()

    @cached_property
    def tangents(self) -> ca.Function | None:
        """Of a filter whose mean is of all coordinates: how they follow the independent ones; else None."""
        return tangents(self.problem) if len(self.filter.held) > self.problem.g else None

    @cached_property
    def _estimated(self) -> Kernel | None:
        space = self.filter.parameters
        return None if space is None else Kernel(space.function, self.backend)

    def parameters(self, mean: np.ndarray, variance: np.ndarray) -> dict[str, tuple[float, float]]:
        """Estimated parameters, value and standard deviation in SI, of a mean (l,) and its variances; none for most."""
        space, estimated = self.filter.parameters, self._estimated
        if space is None or estimated is None:
            return {}
        r = len(space.names)
        values, slopes = estimated(mean[-r:], self.tuning[self.filter.tuning.places['p']])
        stddev = np.abs(slopes) * np.sqrt(np.fmax(variance[-r:], 0.0))
        return dict(zip(space.names, zip(values[list(space.places)].tolist(), stddev.tolist())))

    def run(self, t: np.ndarray, measured: np.ndarray, inputs: np.ndarray | None = None) -> LinkageEstimates:
        """Over a log: times (k,), s, evenly spaced by the step, measurements (k, s), NaN where missing, inputs (k, u).

        The first sample lies one step after the state; a single one is so far from the last (after a start, from 0).
        Raises DivergenceError with the step.
        """
        self.dt, self._t = float(t[1] - t[0]) if len(t) > 1 else float(t[0]) - self._t, float(t[-1])
        self.tuning[self.filter.tuning.places['dt']] = self.dt
        y, kept = self.advance(np.column_stack([
            measured, np.zeros((len(t), len(self.model.inputs))) if inputs is None else inputs, t]))
        bad = np.flatnonzero(~(np.isfinite(y).all(axis=1) & np.isfinite(kept).all(axis=1)))
        if bad.size:
            raise DivergenceError(self.estimator, int(bad[0]), f'at t = {t[bad[0]]:.6g} s')
        out = self.filter.outputs.arrays(y)
        return LinkageEstimates(out['x'], self.covariance(self.state), out['q'], out['qd'], out['qdd'],
                                out['force'], out['innovation'], out['innovation_variance'], out['used'],
                                self.kept.arrays(kept).get('P'))


def check_even(t: np.ndarray) -> None:
    """Raise SettingError unless times (k,), s, are rising in even steps."""
    steps = np.diff(t)
    if t.ndim != 1 or not t.size or not np.isfinite(t).all() or steps.size and not (
            steps[0] > 0 and np.max(np.abs(steps - steps[0])) <= EVEN * steps[0]):
        raise SettingError('t', t.shape, 'times in even steps, with NaN where a sample is missing (mbse_ros.estimate '
                                         'takes samples at any times)')
