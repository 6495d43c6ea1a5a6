# SPDX-License-Identifier: Apache-2.0
"""The mass apart from the motion, after Pyrhönen et al., mass estimation, section 3.3: samples by inverse dynamics,
gates, guard time, low-pass and triangular window, and an interval from the scatter of batches.

The guard time: the observer's acceleration lags; when the machine brakes, the force has changed already while the gates
still see nothing. So a sample waits for the guard time and is dropped when a gate closes meanwhile; after a gate has
opened again, the same time passes before samples are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, isfinite, nan, sqrt

import casadi as ca
import numpy as np

from ..compiled import Scan
from ..compiled.cache import built
from ..errors import PositionProblemError
from ..filters.hydraulic_state import state_names
from ..filters.unweighed import UnweighedMotion
from ..machine import Machine
from ..machine.machine import NEWTON
from .filter import MassFilter, t_quantile
from .gates import GATE_NUMBERS, GATES, closed_gate, gate_numbers, passed_gates
from .inverse_dynamics import LARGEST_WRITTEN, residual, weighing
from .mass import NORMAL, Cause, Mass, PayloadSettings, causes, other_filters, uncertain_numbers
from .several import seen_words, shown, solved


def sample_step(machine: Machine) -> ca.Function:
    """One sample ``(x, X, p) -> (x+, y)``.

    ``x`` = dependent coordinates, start of the position problem; equations trusted in the sample before, 1 or 0; clean
    samples so far. ``p`` = covariance of X (column by column), gates (speed m/s and in standard deviations, share of
    acceleration, information 1/kg2, margin m), reference masses, kg, uncertain parameters. The weights are taken at the
    reference masses: at a sample's own they would depend on its error, and a mean weighed so is too low. ``y`` =
    information, 1/kg2; information times mass, 1/kg; information times the derivative of the mass with respect to each
    parameter; gate that is closed (0: none). Nothing is divided by G1, which crosses zero in free fall. Of several
    masses x has their counts of clean samples, and y these of each in turn, then L and h: see ``several.shown``.
    """
    r, parameters = residual(machine), machine.parameters.symbol
    n, k, count, masses = r.X.numel(), parameters.numel(), len(machine.coordinates), machine.payload.numel()
    unknowns = ca.SX.sym('m', masses)
    g, seed, a = r.g0 + r.G1 @ unknowns, ca.SX.sym('seed', r.g0.numel()), r.g0.numel()
    arguments = [r.near, r.X, parameters]
    terms = ca.Function('terms', arguments, [r.g0, r.G1, r.share, ca.densify(r.slopes), r.pistons, r.speeds,
                                              ca.densify(r.rates)], {'cse': True})
    slopes = ca.Function('slopes', [*arguments, unknowns, seed],
                         [ca.jtimes(g, r.X, seed, True), ca.jtimes(g, parameters, seed, True)], {'cse': True})
    close = ca.Function('close', arguments, [machine.closed(r.near, r.X[:count])[machine.system.dependent]])
    kind = ca.SX if terms.n_instructions() + 4 * slopes.n_instructions() < LARGEST_WRITTEN else ca.MX
    leading = n * n + GATE_NUMBERS + masses
    x, X, p = kind.sym('x', r.near.numel() + a + masses), kind.sym('X', n), kind.sym('p', leading + k)
    P, gates, values = ca.reshape(p[:n * n], n, n), p[n * n:n * n + GATE_NUMBERS], p[leading:]
    near, before = close(x[:r.near.numel()], X, values), x[r.near.numel():-masses]
    g0, G1, share, steep, pistons, speeds, rates = terms(near, X, values)
    reference = p[n * n + GATE_NUMBERS:leading]
    rows = ca.horzcat(*(slopes(near, X, values, reference, unit)[0] for unit in np.eye(a)))
    passed = passed_gates(machine, r.concerns, n)(pistons, speeds, rates, share, steep, P, gates)
    if masses == 1:
        information, weighted, row, first = weighing(machine, n, a)(g0, G1, rows, P, passed)
        sensitivity = -slopes(near, X, values, first, row)[1]
        closed, trusted = closed_gate(a)(passed, before, information, gates)
        y = ca.vertcat(information, weighted, sensitivity, closed)
    else:
        information, weighted, row, first, closed, trusted = solved(machine, n, a)(
            g0, G1, rows, P, passed, before, gates)
        by_numbers = ca.horzcat(*(slopes(near, X, values, first, unit)[1] for unit in np.eye(a)))
        numbers = ca.DM(machine.parameters.factor()).T @ by_numbers
        L, h = shown(machine, a)(g0, G1, rows.T @ P @ rows + numbers.T @ numbers, trusted)
        y = ca.vertcat(*(part for i in range(masses) for part in (
            information[i], weighted[i], -by_numbers @ row[:, i], closed[i])), ca.vec(L), h)
    x_next = ca.vertcat(near, trusted, x[-masses:] + (closed == 0))
    return ca.Function('mbse_payload', [x, X, p], [x_next, y], ['x', 'u', 'p'], ['x_next', 'y'], {'cse': True})


@dataclass(frozen=True)
class MassSamples:
    """Samples (n,) of a segment: ``rows`` (n, 2 + parameters) = information w, 1/kg2, w times mass, w times the
    derivatives of the mass; ``closed`` (n,) number of the gate that is closed; ``clean`` how many have none closed."""

    rows: np.ndarray
    closed: np.ndarray
    clean: int


class InverseDynamics:
    """Mass samples of one machine; keeps the coordinates between segments as the start of the position problem."""

    seen = ''       # of several masses: the sums of them that the last state shows, in words

    def __init__(self, machine: Machine, backend: str = 'auto') -> None:
        self.machine = machine
        self._backend = backend
        self._scan: Scan | None = None      # an observer that weighs needs none
        self._count = len(state_names(machine)[0])
        self._size = self._count ** 2
        self._least = np.array([item.limits[0] for item in machine.description.every_payload.values()])
        self._leading = self._size + GATE_NUMBERS + len(self._least)
        self._p = np.concatenate([np.zeros(self._leading), machine.parameters.mean])
        p = machine.parameters
        self._mixed = p.factor() / p.stddev if p.correlated else None
        self.reset()

    def configure(self, settings: PayloadSettings) -> None:
        """Set the gates."""
        self._p[self._size:self._size + GATE_NUMBERS] = gate_numbers(self.machine, settings)

    def reset(self) -> None:
        """Forget the coordinates."""
        self._x: np.ndarray | None = None
        self._asked: np.ndarray | None = None       # the states of ``_samples``
        self._samples: tuple[MassSamples, ...] = ()

    def process(self, mean: np.ndarray, covariance: np.ndarray, reference: float | None = None) -> MassSamples:
        """Samples for states (n, nx), SI, with the covariance (nx, nx) of the last; ``reference``: mass, kg, at
        which they are weighed; None: the lower limit of the payload.

        Raises PositionProblemError where the cylinders cannot reach.
        """
        return self._of(self._run(mean, covariance, reference), 0)

    def process_all(self, mean: np.ndarray, covariance: np.ndarray) -> tuple[MassSamples, ...]:
        """The same of each of several masses; once for states that all of them ask for."""
        if self._asked is not mean:
            y, k = self._run(mean, covariance), len(self._least)
            self._samples = tuple(self._of(y, place) for place in range(k))
            self.seen = seen_words(self.machine.description.payloads, y[-1, -k * (k + 1):-k].reshape(k, k), y[-1, -k:])
            self._asked = mean
        return self._samples

    def _run(self, mean: np.ndarray, covariance: np.ndarray, reference: float | None = None) -> np.ndarray:
        """The rows (n, ...) of ``sample_step``."""
        if self._scan is None:
            step = built(('sample', self.machine.made_of), lambda: sample_step(self.machine))
            self._scan = Scan(step, self._backend)
        if self._x is None:
            q = self.machine.position(mean[0, :len(self.machine.coordinates)])
            others = len(self.machine.weighing) + len(self._least)
            self._x = np.concatenate([q[self.machine.system.dependent], np.zeros(others)])
        mean, covariance = mean[:, :self._count], covariance[:self._count, :self._count]
        self._p[:self._size] = covariance.ravel()
        self._p[self._size + GATE_NUMBERS:self._leading] = self._least if reference is None else reference
        self._x[-len(self._least):] = 0.0
        self._x, y = self._scan(self._x, mean, self._p)
        if not isfinite(y[-1, 0] + y[-1, -1]):
            self._x = None
            raise PositionProblemError(float('nan'), NEWTON, mean[-1, :len(self.machine.coordinates)])
        return y

    def _of(self, y: np.ndarray, place: int) -> MassSamples:
        """The samples of a mass by its place."""
        assert self._x is not None      # it is run
        width = 3 + len(self._p) - self._leading
        y = y[:, place * width:(place + 1) * width]
        if self._mixed is not None:     # what errors that depend on each other have in common counts once
            y[:, 2:-1] = y[:, 2:-1] @ self._mixed
        return MassSamples(y[:, :-1], y[:, -1], int(self._x[place - len(self._least)]))


class PaperEstimator:
    """A ``PayloadEstimator`` for an observer of the motion alone; of several payloads of that at ``place``, with the
    ``dynamics`` of all."""

    def __init__(self, machine: Machine, settings: PayloadSettings, backend: str = 'auto', place: int = 0,
                 dynamics: InverseDynamics | None = None) -> None:
        self.machine, self.settings, self._place, self._several = machine, settings, place, dynamics is not None
        self._dynamics, self._unweighed = dynamics or InverseDynamics(machine, backend), UnweighedMotion(machine)
        self._dynamics.configure(settings)
        self._stddev, self._numbers = machine.parameters.stddev, uncertain_numbers(machine)
        self._variance = (self._stddev ** 2).tolist()
        low, high = list(machine.description.every_payload.values())[place].limits
        self._span = high - low
        self.reset()

    @property
    def kept(self) -> float:
        """See ``PayloadEstimator``; so the others."""
        return self._filter.kept

    @property
    def _plain(self) -> bool:
        return self.settings.low_pass == 'plain'

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
        samples = (self._dynamics.process_all(mean, covariance)[self._place] if self._several
                   else self._dynamics.process(mean, covariance))
        before = self._filter.samples
        if samples.clean:
            clean = None if samples.clean == len(samples.rows) else samples.closed == 0
            released = self._guard.release(samples.rows, clean, round(self.settings.guard_time / dt))
            if len(released):
                self._filter.take(self._filter.alike(released) if self._plain else released)
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
        return causes(self._numbers, noise, np.abs(self._filter.value[1 + some]) * self._stddev[some])

    def _result(self, raw: float, gate: str, taken: int = 0) -> Mass:
        value, samples = self._filter.value, self._filter.samples
        if value is None:
            return Mass(nan, nan, nan, raw, nan, 0, gate, nan)
        variance, freedom = self._filter.variance
        # before there are two batches as uncertain as one sample by the observer's covariance; of samples that are
        # alike the first one lingers, which no scatter of the others shows
        stated = (self._filter.first_share ** 2 if self._plain else samples) / self._filter.total
        if variance == inf or self._plain and t_quantile(freedom) ** 2 * variance < NORMAL ** 2 * stated:
            variance, freedom = stated, inf
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
