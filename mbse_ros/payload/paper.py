# SPDX-License-Identifier: Apache-2.0
"""The mass apart from the motion, after Pyrhönen et al., mass estimation, section 3.3: samples by inverse dynamics,
gates, guard time, low-pass and triangular window, and an interval from the scatter of batches.

The guard time: the observer's acceleration lags; when the machine brakes, the force has changed already while the gates
still see nothing. So a sample waits for the guard time and is dropped when a gate closes meanwhile; after a gate has
opened again, the same time passes before samples are taken.
"""

from __future__ import annotations

from math import exp, inf, nan, sqrt

import numpy as np

from ..filters.unweighed import UnweighedMotion
from ..machine import Machine
from .estimator import causes, other_filters
from .filter import MassFilter, t_quantile
from .gates import GATES
from .inverse_dynamics import InverseDynamics
from .mass import NORMAL, Cause, Mass
from .payload_settings import PayloadSettings


class PaperEstimator:
    """A ``PayloadEstimator`` for an observer of the motion alone."""

    def __init__(self, machine: Machine, settings: PayloadSettings, backend: str = 'auto') -> None:
        self.machine, self.settings = machine, settings
        self._dynamics, self._unweighed = InverseDynamics(machine, backend), UnweighedMotion(machine)
        self._dynamics.configure(settings)
        self._stddev = machine.parameters.stddev
        self._variance = (self._stddev ** 2).tolist()
        low, high = machine.payload_data.limits
        self._span = high - low
        self.reset()

    @property
    def kept(self) -> float:
        """See ``PayloadEstimator``; so the others."""
        return self._filter.kept

    def configure(self, settings: PayloadSettings) -> None:
        """Take new tuning from the next segment on."""
        changed, self.settings = other_filters(settings, self.settings), settings
        self._dynamics.configure(settings)
        if changed:
            self._filter.tune(settings, self._filter.dt)

    def reset(self) -> None:
        """Forget the mass."""
        self._dynamics.reset()
        self._unweighed.reset()
        self._guard = GuardInterval(2 + len(self._variance))
        self._filter = MassFilter(len(self._variance), self.settings)

    def restart(self, pause: float = 0.0) -> None:
        """The state starts again; the mass stays."""
        self._dynamics.reset()
        self._guard.clear()

    def process(self, mean: np.ndarray, covariance: np.ndarray, dt: float, reported: np.ndarray | None = None,
                share: float = 1.0) -> Mass:
        """Take the states of a segment; nothing is ``reported``."""
        if dt != self._filter.dt:
            self._filter.tune(self.settings, dt)
        samples, before = self._dynamics.process(mean, covariance), self._filter.samples
        if samples.clean:
            clean = None if samples.clean == len(samples.rows) else samples.closed == 0
            released = self._guard.release(samples.rows, clean, round(self.settings.guard_time / dt))
            if len(released):
                self._filter.take(released)
        else:
            self._guard.clear()
        if not self._unweighed.whole:
            self._forget_unweighed(mean[-1], bool(samples.clean))
        information, weighted = samples.rows[-1, :2].tolist()
        return self._result(weighted / information if information > 0 else nan, GATES[int(samples.closed[-1])],
                            self._filter.samples - before)

    def _forget_unweighed(self, mean: np.ndarray, weighs: bool) -> None:
        """Forget what was known of the mass as far as cylinders have moved that no equation weighs."""
        noise = self._result(nan, GATES[0]).noise
        if noise == noise:
            share, _ = self._unweighed.take(mean[:len(self.machine.coordinates)], np.array([weighs]),
                                            (noise / self._span) ** 2)
            self._filter.forget(exp(share))

    def hold(self, reported: np.ndarray | None = None) -> Mass:
        """The mass so far."""
        self._guard.clear()
        return self._result(nan, GATES[0])

    def doubt(self) -> None:
        """Nothing: what a sample adds is hardly anything, and gates and guard time have left out what is doubtful."""

    def difference(self, new: Mass, old: Mass) -> tuple[float, float]:
        """By how much two masses differ, kg; what uncertain numbers make of another pose is not known."""
        return new.mass - old.mass, 0.0

    def budget(self, noise: float) -> tuple[Cause, ...]:
        """What makes the mass uncertain, the largest first."""
        if self._filter.value is None:
            return ()
        some = np.flatnonzero(self._stddev)
        return causes(self.machine, noise, np.abs(self._filter.value[1 + some]) * self._stddev[some])

    def _result(self, raw: float, gate: str, taken: int = 0) -> Mass:
        value, samples = self._filter.value, self._filter.samples
        if value is None:
            return Mass(nan, nan, nan, raw, nan, 0, gate, nan)
        variance, freedom = self._filter.variance
        if variance == inf:      # not two batches yet: as uncertain as one sample by the observer's covariance
            variance, freedom = samples / self._filter.total, inf
        systematic = sum(s * s * v for s, v in zip(value[1:].tolist(), self._variance))
        half = sqrt(t_quantile(freedom) ** 2 * variance + NORMAL ** 2 * systematic)
        return Mass(float(value[0]), sqrt(variance + systematic), half, raw, float(self._filter.low_passed[0]), samples,
                    gate, sqrt(variance), taken)


class GuardInterval:
    """Lets rows (m,) pass, delayed, that have only clean neighbours within the guard on both sides."""

    def __init__(self, width: int) -> None:
        self._rows = np.empty((256, width))
        self.clear()

    def clear(self) -> None:
        """Drop what waits."""
        self._begin = self._end = 0
        self._run = 0       # clean samples since the last rejected one

    def release(self, rows: np.ndarray, clean: np.ndarray | None, guard: int) -> np.ndarray:
        """Rows (k, m) released by the samples ``rows`` (n, m), of which ``clean`` (n,) may count; None: all.

        ``guard`` is in samples. The result is valid until the next call.
        """
        if clean is None:
            return self._append(rows, guard)
        released, begin = [rows[:0]], 0
        for k in np.flatnonzero(~clean):
            if k > begin:
                released.append(self._append(rows[begin:k], guard).copy())
            self.clear()
            begin = int(k) + 1
        if begin < len(rows):
            released.append(self._append(rows[begin:], guard).copy())
        return np.concatenate(released)

    def _append(self, rows: np.ndarray, guard: int) -> np.ndarray:
        """Add clean rows; those older than the guard leave."""
        young = guard - self._run       # so many are too soon after a rejected sample
        self._run += len(rows)
        if young > 0:
            rows = rows[young:]
        n = len(rows)
        if self._end + n > len(self._rows):
            self._make_room(n)
        self._rows[self._end:self._end + n] = rows
        self._end += n
        begin, self._begin = self._begin, max(self._begin, self._end - guard)
        return self._rows[begin:self._begin]

    def _make_room(self, n: int) -> None:
        """Move what waits to the front, into a larger buffer where that is not enough."""
        waiting = self._rows[self._begin:self._end].copy()
        if 2 * (len(waiting) + n) > len(self._rows):
            self._rows = np.empty((4 * (len(waiting) + n), self._rows.shape[1]))
        self._rows[:len(waiting)] = waiting
        self._begin, self._end = 0, len(waiting)
