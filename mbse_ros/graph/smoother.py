# SPDX-License-Identifier: Apache-2.0
"""``LinkageSmoother``: the most likely motion of a log, all at once or with a fixed lag, with its covariances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..compiled import Kernel
from ..dynamics.model import Model
from ..errors import DivergenceError, SettingError
from ..estimators.filters.defaults import START, default_noises
from ..estimators.filters.parts.problem import problem
from .estimate import EstimatedMotion, EstimationNoises
from .factors.sensor_factors import wraps
from .solvers.chain import Chain, ChainPoints, Gaussian, Swept

ITERATIONS = 60
TOLERANCE = 1e-6        # of a standard deviation: the last step of a whole log
FEASIBLE = 1e-8         # of what holds exactly, at the end
LONGEST = 0.2           # rad or m of an independent coordinate in one step
LAGGED = 3              # Gauss-Newton steps of the window with each solution, at most
SMALL = 1e-2            # of a standard deviation: a step in a window that is small enough
LARGE = 1.0             # of a standard deviation: a last step that is too large where it comes again and again:
FEWEST = 5              # for so many samples, or half of the window

Row = tuple[float, np.ndarray, np.ndarray]      # t, samples (s,), inputs (u,)


@dataclass(frozen=True)
class Smoothed(EstimatedMotion):
    """Smoothed motion at instants t (k,): with ``mean`` (k, l) of z, zd, force and biases named ``names`` and its
    ``covariance`` (k, l, l). ``after`` (k,): seconds of data after each instant that its estimate knows."""

    names: tuple[str, ...]
    mean: np.ndarray
    covariance: np.ndarray
    after: np.ndarray

    @property
    def stddev(self) -> np.ndarray:
        """Standard deviations (k, l) of the mean."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance, axis1=1, axis2=2), 0.0))


class LinkageSmoother:
    """Smoother of a model with some of its sensors in steps of ``dt``, s.

    It solves the graph of ``estimation_graph`` in independent coordinates, which is the same problem in fewer unknowns
    (``chain``). ``noises``: default ``default_estimation_noises``; its ``parameters`` need the graph itself.
    Raises SettingError.
    """

    def __init__(self, model: Model, sensors: Sequence[str], dt: float, noises: EstimationNoises | None = None,
                 backend: str = 'auto') -> None:
        self.model, self.sensors, self.dt = model, tuple(sensors), float(dt)
        self.noises = default_estimation_noises(model) if noises is None else noises
        of = problem(model, sensors)
        wrapping = tuple(wraps(model.description, channel.split('.')[0]) for channel in of.channels)
        of = replace(of, angular=wrapping)
        self.problem, g = of, of.g
        if self.noises.parameters:
            raise SettingError('parameters', list(self.noises.parameters), 'none here: estimation_graph estimates them')
        owners = [channel.split('.')[0] for channel in of.channels]
        stddev = np.array([self.noises.stddev.get(owner, sigma) for owner, sigma in zip(owners, of.stddev)])
        self._biased = tuple(i for i, owner in enumerate(owners) if owner in self.noises.biases)
        start: list[np.ndarray | list[float]] = [
            *(np.broadcast_to(value, g) for value in (self.noises.position, self.noises.velocity, self.noises.force)),
            [self.noises.biases[owners[i]] for i in self._biased]]
        self._start = np.concatenate(start).astype(float)
        _positive('stddev', stddev)
        _positive('start', self._start)
        walk = np.broadcast_to(np.asarray(self.noises.force_walk, dtype=float), g)
        self.chain = Chain(of, self.dt, stddev ** 2, walk, self._biased, backend)
        z = [of.system.names[i] for i in of.z]
        self.names = (*z, *(f'{name} rate' for name in z), *(f'{name} force' for name in z),
                      *(f'{of.channels[i]} bias' for i in self._biased))

    @property
    def channels(self) -> tuple[str, ...]:
        """What the columns of the samples are."""
        return self.problem.channels

    def batch(self, samples: np.ndarray, guess: EstimatedMotion, inputs: np.ndarray | None = None,
              q: np.ndarray | None = None, qd: np.ndarray | None = None, iterations: int = ITERATIONS) -> Smoothed:
        """All instants of ``guess`` (k) at once, from there: ``samples`` (k, s), NaN where missing, ``inputs`` (k, u).

        ``q``, ``qd`` (n,): mean of the start, default the guess's. Raises DivergenceError with the instant that is not
        finite, or with the iterations where it does not converge.
        """
        points = self._points(samples, guess, inputs)
        start = self.prior(guess.q[0] if q is None else q, guess.qd[0] if qd is None else qd)
        for _ in range(iterations):
            swept = self.chain.sweep(points, start)
            self.move(points, swept)
            if swept.size <= TOLERANCE and swept.gap <= FEASIBLE:
                return self._smoothed(points, swept, points.t[-1] - points.t)
        raise DivergenceError('smoother', iterations, f'the last step is {swept.size:.3g} standard '
                              f'deviations, constraints {swept.gap:.3g}', False)

    def _points(self, samples: np.ndarray, guess: EstimatedMotion, inputs: np.ndarray | None) -> ChainPoints:
        k, of = len(guess.t), self.problem
        y = np.asarray(samples, dtype=float)
        if y.shape != (k, len(of.channels)):
            raise SettingError('samples', y.shape, f'{k} instants of {", ".join(of.channels)}')
        u = np.zeros((k, len(self.model.inputs))) if inputs is None else np.asarray(inputs, dtype=float)
        x = np.hstack([guess.q[:, of.z], guess.qd[:, of.z], guess.force, np.zeros((k, len(self._biased)))])
        return ChainPoints(guess.q.copy(), x, y, u, np.asarray(guess.t, dtype=float))

    def prior(self, q: np.ndarray, qd: np.ndarray) -> Gaussian:
        """What is known of the first instant at a start q, qd (n,)."""
        z, rest = self.problem.z, self.chain.size - 2 * self.problem.g
        return Gaussian(np.concatenate([q[z], qd[z], np.zeros(rest)]), np.diag(self._start ** 2))

    def move(self, points: ChainPoints, swept: Swept) -> None:
        """Take a step, a long one in part; the points are changed."""
        g = self.problem.g
        longest = np.abs(swept.step[:, :g]).max()
        points.q[...] = swept.q
        points.x += swept.step * min(1.0, LONGEST / max(longest, 1e-300))

    def _smoothed(self, points: ChainPoints, swept: Swept, after: np.ndarray) -> Smoothed:
        g = self.problem.g
        return Smoothed(points.t, swept.q, swept.qd, swept.qdd, points.x[:, 2 * g:3 * g], self.names, points.x,
                        swept.covariance, after)

    def lagged(self, t: np.ndarray, samples: np.ndarray, lag: float, q: np.ndarray | None = None,
               qd: np.ndarray | None = None, inputs: np.ndarray | None = None) -> Smoothed:
        """Each instant as estimated ``lag``, s, after it: a window that slides over the log.

        What leaves the window stays as a prior of its first instant. The instants of the last window know less of what
        comes after them (``after``). Start at q, qd (n,), default the model's. Raises DivergenceError with the step.
        """
        u = np.zeros((len(t), len(self.model.inputs))) if inputs is None else np.asarray(inputs, dtype=float)
        window, g = StridedWindow(self, lag, q, qd), self.problem.g
        out: list[tuple[np.ndarray, ...]] = []
        for i in range(len(t)):
            out += window.extend(i, [(t[i], samples[i], u[i])])
        out += window.rest()
        t, q, qd, qdd, mean, covariance, after = (np.array(column) for column in zip(*out))
        return Smoothed(t, q, qd, qdd, mean[:, 2 * g:3 * g], self.names, mean, covariance, after)


class StridedWindow:
    """The last instants of a log; one that leaves gives its estimate and stays as a prior of others.

    It takes instants one by one, or several at once for a solver that runs less often: a solution serves all that came
    since the last one. ``lag``, s; starts at q, qd (n,), default the model's.
    """

    def __init__(self, smoother: LinkageSmoother, lag: float, q: np.ndarray | None = None,
                 qd: np.ndarray | None = None) -> None:
        first = smoother.model.start
        self._first_q = np.asarray(first.q if q is None else q, dtype=float)
        self.smoother, self.width = smoother, max(1, round(lag / smoother.dt))
        self.start = smoother.prior(self._first_q, first.qd if qd is None else qd)
        self._points = ChainPoints(*[np.zeros(0)] * 5)       # none yet
        self._astray = 0    # samples without convergence
        self._ahead = 0     # instants since the last solution

    def extend(self, step: int, rows: Sequence[Row]) -> list[tuple[np.ndarray, ...]]:
        """Take instants that follow each other, ``step`` the first one's; the estimates of those that leave the window:
        t, q, qd, qdd, mean, covariance, s of data after it.

        Raises DivergenceError with the step, also where it does not converge for half of a window.
        """
        if not len(self._points.t) and len(rows) > 1:      # nothing to continue from yet
            return self.extend(step, rows[:1]) + self.extend(step + 1, rows[1:])
        for row in rows:
            self._append(*row)
        leaving = max(0, len(self._points.t) - self.width)
        try:
            base, ratio = self._solve(leaving + 1)
            self._check_convergence(step, len(rows), ratio)
            for i in range(leaving):        # the first of two instants becomes a prior of the second one
                pair = self._swept if i == 0 else self.smoother.chain.sweep(base.part(slice(i, i + 2)), self.start)
                self.start = Gaussian(base.x[i + 1] + pair.ahead.mean, pair.ahead.covariance)
        except DivergenceError as error:
            raise DivergenceError('smoother', step, error.detail, error.finite) from error
        out = [self._estimate(i) for i in range(leaving)]
        self._points = self._points.part(slice(leaving, None))
        return out

    def rest(self) -> list[tuple[np.ndarray, ...]]:
        """Estimates of the instants that are left."""
        shift = len(self._swept.step) - len(self._points.t)
        return [self._estimate(i + shift) for i in range(len(self._points.t))]

    def _append(self, t: float, y: np.ndarray, u: np.ndarray) -> None:
        """A new instant, by the Taylor series from the last solution."""
        if not len(self._points.t):
            self._points = ChainPoints(self._first_q[None].copy(), self.start.mean[None].copy(), y[None], u[None],
                                       np.array([t]))
            return
        p, dt, g = self._points, self.smoother.dt, self.smoother.problem.g
        last, z = self._swept, self.smoother.problem.z
        self._ahead += 1
        x, ahead = p.x[-1].copy(), self._ahead * dt
        x[:g] += dt * x[g:2 * g] + dt ** 2 / 2 * last.qdd[-1, z]
        x[g:2 * g] += dt * last.qdd[-1, z]
        q = last.q[-1] + ahead * last.qd[-1] + ahead ** 2 / 2 * last.qdd[-1]
        self._points = ChainPoints(np.vstack([p.q, q]), np.vstack([p.x, x]), np.vstack([p.y, y]), np.vstack([p.u, u]),
                                   np.append(p.t, t))

    def _solve(self, kept: int) -> tuple[ChainPoints, float]:
        """Gauss-Newton steps, twice as many where several are new: the first points ``kept`` at the last
        linearisation, and the largest last step in squared standard deviations."""
        points = self._points
        for _ in range(2 * LAGGED if self._ahead > 1 else LAGGED):
            swept = self._swept = self.smoother.chain.sweep(points, self.start)
            base = points.part(slice(kept), copy=True)
            self.smoother.move(points, swept)
            with np.errstate(divide='ignore', invalid='ignore'):     # infinity and NaN do not converge
                ratio = (swept.step ** 2 / np.diagonal(swept.covariance, axis1=1, axis2=2)).max()
            if ratio <= SMALL ** 2:
                break
        self._ahead = 0
        return base, ratio

    def _check_convergence(self, step: int, count: int, ratio: float) -> None:
        """Raise DivergenceError where it has not converged for too long."""
        self._astray = self._astray + count if not ratio <= LARGE ** 2 else 0
        if self._astray > max(FEWEST * count, self.width // 2):
            raise DivergenceError('smoother', step, f'for {self._astray} samples, the last step is '
                                  f'{np.sqrt(ratio):.3g} standard deviations', False)

    def _estimate(self, i: int) -> tuple[np.ndarray, ...]:
        swept, p = self._swept, self._points
        at = i - (len(swept.step) - len(p.t))
        return p.t[at], swept.q[i], swept.qd[i], swept.qdd[i], p.x[at], swept.covariance[i], p.t[-1] - p.t[at]


def default_estimation_noises(model: Model, position: float = START, velocity: float = START,
                              acceleration: float = START, density: float | Sequence[float] | np.ndarray | None = None
                              ) -> EstimationNoises:
    """Those of errorEKF_FE, by which the acceleration is in error, as a force: times the mass that the independent
    coordinates feel at the start.

    Standard deviations at the start, of ``acceleration`` of its error; ``density`` of its random walk, m2/s5 or
    rad2/s5, default the filter's for this mechanism.
    """
    of, start = problem(model, ()), model.start
    kernel, g = Kernel(of.rates, model.backend), of.g
    _, _, B, *_ = kernel(start.q, start.qd[of.z], np.zeros(of.system.u.numel()), np.zeros(1),
                         np.asarray(model.parameters))
    mass = np.diag(np.linalg.inv(B.reshape(2 * g, -1)[g:, -g:]))
    if density is None:
        density = default_noises('errorEKF_FE', model.description.name)['acceleration']
    walk = np.broadcast_to(density, g) * mass ** 2
    return EstimationNoises(position, velocity, tuple((acceleration * mass).tolist()), tuple(walk.tolist()))


def _positive(name: str, values: np.ndarray) -> None:
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise SettingError(name, values.tolist(), 'positive standard deviations')
