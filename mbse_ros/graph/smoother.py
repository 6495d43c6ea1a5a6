# SPDX-License-Identifier: Apache-2.0
"""``LinkageSmoother``: the most likely motion of a log, all at once or with a fixed lag, with its covariances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..compiled import Kernel
from ..dynamics.model import Model
from ..errors import DivergenceError, SettingError
from ..filters.filters import START, default_noises
from ..filters.parts.problem import problem
from .estimate import EstimatedMotion, EstimationNoises
from .factors.sensor_factors import wraps
from .solvers.chain import Chain, ChainPoints, Gaussian, Swept
from .window import ChainWindow

ITERATIONS = 60
TOLERANCE = 1e-6        # of a standard deviation: the last step of a whole log
FEASIBLE = 1e-8         # of what holds exactly, at the end


@dataclass(frozen=True)
class Smoothed(EstimatedMotion):
    """Smoothed motion at instants t (k,): with ``mean`` (k, l) of z, zd, force and biases named ``names`` and its
    ``covariance`` (k, l, l). ``after`` (k,): seconds of data after each instant that its estimate knows."""

    names: tuple[str, ...]
    mean: np.ndarray
    covariance: np.ndarray
    after: np.ndarray
    log_evidence: float = float('nan')      # of the samples of a whole log, of the Gaussian about the motion (Laplace)

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
            self.chain.move(points, swept)
            if swept.size <= TOLERANCE and swept.gap <= FEASIBLE:
                evidence = swept.log_evidence(points.y, start.covariance, start.mean - points.x[0],
                                              self.problem.angular, self.chain.variance)
                return replace(self._smoothed(points, swept, points.t[-1] - points.t), log_evidence=evidence)
        raise DivergenceError('smoother', iterations, f'the last step is {swept.size:.3g} standard '
                              f'deviations, constraints {swept.gap:.3g}', False)

    def check(self, k: int, samples: np.ndarray, inputs: np.ndarray | None) -> None:
        """Raise SettingError for samples and inputs that are not of k instants."""
        for name, given, columns in (('samples', samples, self.channels), ('inputs', inputs, self.model.inputs)):
            if given is not None and np.shape(given) != (k, len(columns)):
                raise SettingError(name, np.shape(given), f'{k} instants of {", ".join(columns) or "none"}')

    def _points(self, samples: np.ndarray, guess: EstimatedMotion, inputs: np.ndarray | None) -> ChainPoints:
        k, of = len(guess.t), self.problem
        self.check(k, samples, inputs)
        y = np.asarray(samples, dtype=float)
        u = np.zeros((k, len(self.model.inputs))) if inputs is None else np.asarray(inputs, dtype=float)
        x = np.hstack([guess.q[:, of.z], guess.qd[:, of.z], guess.force, np.zeros((k, len(self._biased)))])
        return ChainPoints(guess.q.copy(), x, y, u, np.asarray(guess.t, dtype=float))

    def prior(self, q: np.ndarray, qd: np.ndarray) -> Gaussian:
        """What is known of the first instant at a start q, qd (n,)."""
        z, rest = self.problem.z, self.chain.size - 2 * self.problem.g
        return Gaussian(np.concatenate([q[z], qd[z], np.zeros(rest)]), np.diag(self._start ** 2))

    def _smoothed(self, points: ChainPoints, swept: Swept, after: np.ndarray) -> Smoothed:
        g = self.problem.g
        return Smoothed(points.t, swept.q, swept.qd, swept.qdd, points.x[:, 2 * g:3 * g], self.names, points.x,
                        swept.covariance, after)

    def window(self, lag: float, q: np.ndarray | None = None, qd: np.ndarray | None = None) -> ChainWindow:
        """A window of ``lag``, s, without instants yet; start at q, qd (n,), default the model's."""
        first = self.model.start
        q = np.asarray(first.q if q is None else q, dtype=float)
        return ChainWindow(self.chain, max(1, round(lag / self.dt)), self.prior(q, first.qd if qd is None else qd), q)

    def lagged(self, t: np.ndarray, samples: np.ndarray, lag: float, q: np.ndarray | None = None,
               qd: np.ndarray | None = None, inputs: np.ndarray | None = None) -> Smoothed:
        """Each instant as estimated ``lag``, s, after it: a window that slides over the log.

        What leaves the window stays as a prior of its first instant. The instants of the last window know less of what
        comes after them (``after``). Start at q, qd (n,), default the model's. Raises DivergenceError with the step.
        """
        u = np.zeros((len(t), len(self.model.inputs))) if inputs is None else np.asarray(inputs, dtype=float)
        window, g = self.window(lag, q, qd), self.problem.g
        out: list[tuple[np.ndarray, ...]] = []
        for i in range(len(t)):
            out += window.extend(i, [(t[i], samples[i], u[i])])
        out += window.rest()
        t, q, qd, qdd, mean, covariance, after = (np.array(column) for column in zip(*out))
        return Smoothed(t, q, qd, qdd, mean[:, 2 * g:3 * g], self.names, mean, covariance, after)


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
