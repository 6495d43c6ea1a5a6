# SPDX-License-Identifier: Apache-2.0
"""``LinkageObserver``: one filter at work on one mechanism, online sample by sample or over a whole log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...compiled import Scan
from ...dynamics.model import Model
from ...errors import DivergenceError, SettingError
from .filters import make_filter
from .parts.layout import Layout
from .parts.problem import problem


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


class LinkageObserver:
    """Filter ``estimator`` (``filters.FILTERS``) of a model with some of its sensors.

    ``noises``: the filter's process noises by name, each a number or one per independent coordinate; ``stddev`` of the
    sensors replaces the file's; ``gate``: probability beyond which an innovation is left out (1: none is); ``history``:
    keep the covariance of every sample; ``options`` go to the filter. Raises SettingError.
    """

    def __init__(self, model: Model, estimator: str, sensors: Sequence[str],
                 noises: Mapping[str, float | Sequence[float] | np.ndarray], stddev: Sequence[float] | None = None,
                 gate: float = 1.0, backend: str = 'auto', history: bool = False, **options: object) -> None:
        self.model, self.problem = model, problem(model, sensors)
        self.filter = make_filter(estimator, self.problem, **options)
        self.estimator, self.sensors, self.backend = estimator, tuple(sensors), backend
        self.stddev = np.array(self.problem.stddev if stddev is None else stddev, dtype=float)
        if self.stddev.shape != self.problem.stddev.shape or not np.all(self.stddev > 0):
            raise SettingError('stddev', list(self.stddev), f'positive numbers for {", ".join(self.problem.channels)}')
        self._history = history
        self._scan = Scan(self.filter.step(history), backend)
        self.tune(noises, gate)
        self._x = np.zeros(0)
        self._dt, self._t = 0.005, 0.0

    def tune(self, noises: Mapping[str, float | Sequence[float] | np.ndarray], gate: float = 1.0) -> None:
        """Take other noises and another gate from the next sample on; the state stays."""
        from scipy.special import gammaincinv  # here: slow to import
        if set(noises) != set(self.filter.noises):
            raise SettingError('noises', list(noises), 'values for ' + ', '.join(self.filter.noises))
        if not 0 < gate <= 1:
            raise SettingError('gate', gate, 'a probability above 0 and up to 1')
        parts = self.filter.tuning.parts
        values = {name: np.broadcast_to(np.asarray(value, dtype=float), parts[name][:1])
                  for name, value in noises.items()}
        for name, value in values.items():
            if not (np.isfinite(value).all() and (value >= 0).all()):
                raise SettingError(name, list(value), 'numbers from 0 up')
        threshold = np.inf if gate == 1 else 2 * float(gammaincinv(0.5, gate))      # chi-squared, one degree of freedom
        self._tuning: dict[str, ArrayLike] = dict(values, gate=[min(threshold, 1e300)], variance=self.stddev ** 2,
                                                  p=np.asarray(self.model.parameters))

    def start(self, q: np.ndarray | None = None, qd: np.ndarray | None = None,
              stddev: float | np.ndarray = np.radians(5.0)) -> None:
        """State from coordinates (n,) and velocities (n,), default the model's start; ``stddev`` of the mean."""
        q = self.model.start.q if q is None else q
        qd = self.model.start.qd if qd is None else qd
        self._x, self._t = self.filter.start(np.asarray(q, dtype=float), np.asarray(qd, dtype=float), stddev), 0.0

    @property
    def flat(self) -> tuple[np.ndarray, np.ndarray]:
        """Flat state and, for the last step used, flat tuning: what ``smoother.smooth`` starts from."""
        return self._x.copy(), self.filter.tuning.flat(dt=[self._dt], **self._tuning)

    def resume(self, flat: np.ndarray, t: float) -> None:
        """Continue from a flat state at a time, s."""
        self._x, self._t = flat, t

    @property
    def threshold(self) -> float:
        """Normalised innovation squared beyond which the gate leaves a sample out."""
        return float(np.ravel(self._tuning['gate'])[0])

    def run(self, t: np.ndarray, measured: np.ndarray, inputs: np.ndarray | None = None) -> LinkageEstimates:
        """Over a log: times (k,), s, evenly spaced by the step, measurements (k, s), NaN where missing, inputs (k, u).

        The first sample lies one step after the state; a single one is so far from the last (after a start, from 0).
        Raises DivergenceError with the step.
        """
        dt = float(t[1] - t[0]) if len(t) > 1 else float(t[0]) - self._t
        self._dt, self._t = dt, float(t[-1])
        us = np.column_stack([measured, np.zeros((len(t), len(self.model.inputs))) if inputs is None else inputs, t])
        self._x, y = self._scan(self._x, us, self.filter.tuning.flat(dt=[dt], **self._tuning))
        bad = np.flatnonzero(~np.isfinite(y).all(axis=1))
        if bad.size:
            raise DivergenceError(self.estimator, int(bad[0]), f'at t = {t[bad[0]]:.6g} s')
        out = self.filter.outputs.arrays(y)
        covariance = self.filter.state.arrays(self._x)['P']
        kept = None
        if self._history:
            kept = Layout({'P': self.filter.state.parts['P']}).arrays(y[:, self.filter.outputs.size:])['P']
        return LinkageEstimates(out['x'], covariance, out['q'], out['qd'], out['qdd'], out['force'],
                                out['innovation'], out['innovation_variance'], out['used'], kept)
