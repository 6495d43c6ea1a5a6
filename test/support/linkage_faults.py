# SPDX-License-Identifier: Apache-2.0
"""Filters under faulty measurements for as long as one likes: what their covariance and their mean become."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import casadi as ca
import numpy as np

from mbse_ros.compiled import Scan
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.errors import DivergenceError
from mbse_ros.filters.filters import default_noises, default_stddev
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.filters.parts.model_step import advance, rates
from mbse_ros.filters.parts.problem import Problem
from mbse_ros.streams.linkage import LinkageEstimate, LinkageSettings, LinkageStage

DT = 0.005
GATE = 0.999999
PARAMETERS = ('joint', 'dual')
SENSORS = {'kinematic': ('encoder', 'crank_tip'), 'dual': ('encoder', 'crank_tip')}     # others: the encoder
FAULTS = {'spikes': 2000, 'constant': 1000, 'gap of 30 s': 6000}       # steps
EPS = 1e-9          # of a correlation matrix: rounding of a semidefinite one


@dataclass(frozen=True)
class Course:
    """After each block: least eigenvalue of the correlation matrix of P (b,), largest asymmetry (b,), whether all is
    finite (b,), position error (b,), rad, and its standard deviation (b,)."""

    least: np.ndarray
    asymmetry: np.ndarray
    finite: np.ndarray
    error: np.ndarray
    stddev: np.ndarray

    @property
    def sound(self) -> bool:
        """Nothing non-finite, covariance symmetric and without a negative eigenvalue, throughout."""
        return bool(self.finite.all() and (self.least > -EPS).all() and (self.asymmetry <= 1e-12).all())


def four_bar(estimator: str, backend: str = 'auto') -> Model:
    """The four-bar linkage; filters of parameters estimate the coupler's mass."""
    return load_model('four_bar', free=('bodies.coupler.mass',) if estimator in PARAMETERS else (), backend=backend)


def observer_of(estimator: str, backend: str = 'auto', gate: float = GATE) -> LinkageObserver:
    """The filter with its default noises."""
    observer = LinkageObserver(four_bar(estimator, backend), estimator, SENSORS.get(estimator, ('encoder',)),
                               default_noises(estimator, 'four_bar'), gate=gate, backend=backend)
    observer.start(stddev=default_stddev(observer.filter, 'four_bar'))
    return observer


class Machine:
    """The true motion, a block of samples at a time; it goes on for ever."""

    def __init__(self, observer: LinkageObserver, seed: int = 0) -> None:
        self.observer, self.rng, self.k = observer, np.random.default_rng(seed), 0
        problem, model = observer.problem, observer.model
        self.scan = true_scan(observer)
        self.state = np.concatenate([model.start.q, model.start.qd[problem.z]])
        self.p = np.concatenate([[DT], np.asarray(model.parameters)])

    def block(self, steps: int, kind: str = 'gaps') -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times (k,), samples (k, s) with faults of one kind, and the true independent coordinates (k, g).

        'gaps': a fifth of the samples and half of the stretches of 0.1 s are missing; 'spikes': each 50th is off by 1e6
        standard deviations; 'constant': the sensors stay as they were; 'gap of 30 s': nothing at all comes.
        """
        t = (self.k + 1 + np.arange(steps)) * DT
        self.k += steps
        self.state, y = self.scan(self.state, t[:, None], self.p)
        g, stddev = self.observer.problem.g, self.observer.stddev
        measured = y[:, g:] + self.rng.normal(size=y[:, g:].shape) * stddev
        if kind == 'gaps':
            measured[self.rng.random(measured.shape) < 0.2] = np.nan
            measured[np.repeat(self.rng.random(steps // 20 + 1) < 0.5, 20)[:steps]] = np.nan
        elif kind == 'spikes':
            measured[::50] += 1e6 * stddev * self.rng.choice([-1, 1], size=measured[::50].shape)
        elif kind == 'constant':
            measured[:] = measured[0]
        elif kind == 'gap of 30 s':
            measured[:] = np.nan
        return t, measured, y[:, :g]


@lru_cache(maxsize=1)
def true_scan(observer: LinkageObserver) -> Scan:
    """Steps of the true motion, which keep nothing between calls: the tests of one filter share them."""
    return Scan(truth_step(observer.problem), observer.backend)


def truth_step(problem: Problem) -> ca.Function:
    """``(x = [q, zd], t, [dt, p]) -> (x, [z, h])``: the model's trapezoidal step without inputs."""
    n, g = problem.n, problem.g
    x, t, p = (problem.symbol(name, size) for name, size in (
        ('x', n + g), ('u', 1), ('p', 1 + problem.system.values.symbol.numel())))
    u, none = problem.zeros(problem.system.u.numel() - g), problem.zeros(g)
    q, zd, _ = advance(problem, 'trapezoid', x[:n], x[n:], u, none, t, p[0], p[1:])
    zdd = rates(problem, q, zd, u, none, t, p[1:]).zdd
    h = problem.sensors(q, zd, zdd, ca.vertcat(u, none), t, p[1:])[0]
    return ca.Function('truth', [x, t, p], [ca.vertcat(q, zd), ca.vertcat(*(q[i] for i in problem.z), h)])


def course(observer: LinkageObserver, machine: Machine, kinds: list[str], steps: int) -> Course:
    """What the filter becomes over blocks of so many steps with these faults."""
    found = []
    for kind in kinds:
        t, measured, z = machine.block(steps, kind)
        run = observer.run(t, measured)
        least, asymmetry = soundness(run.covariance)
        error = np.abs(wrapped(run.q[-1, observer.problem.z] - z[-1])).max()
        found.append((least, asymmetry, np.isfinite(run.mean).all() and np.isfinite(run.covariance).all(), error,
                      np.sqrt(max(run.covariance[0, 0], 0.0))))
    return Course(*(np.array(column) for column in zip(*found)))


def soundness(P: np.ndarray) -> tuple[float, float]:
    """Least eigenvalue of the correlation matrix and largest relative asymmetry of a covariance (l, l)."""
    scale = np.sqrt(np.maximum(np.diag(P), 1e-300))
    correlation = P / np.outer(scale, scale)
    return float(np.linalg.eigvalsh(correlation)[0]), float(np.abs(correlation - correlation.T).max())


def wrapped(angle: np.ndarray) -> np.ndarray:
    """Angles between -pi and pi."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


@dataclass(frozen=True)
class Outcome:
    """After 2 s without faults, the fault, and 5 s without: whether the covariance was ``sound`` all along; ``spread``,
    rad, of the position when the fault ended; ``end``: 'recovered' (within 5 standard deviations of the truth), 'lost'
    (its standard deviation exceeds 0.5 rad), 'wrong', or 'diverged' (DivergenceError)."""

    sound: bool
    spread: float
    end: str


def outcome(observer: LinkageObserver, kind: str, steps: int) -> Outcome:
    """What becomes of a filter with a fault that lasts so many steps."""
    observer.start(stddev=default_stddev(observer.filter, 'four_bar'))
    machine, courses = Machine(observer), []
    try:
        for fault, length in (('none', 400), (kind, steps), ('none', 1000)):
            courses.append(course(observer, machine, [fault], length))
    except DivergenceError:
        return Outcome(all(item.sound for item in courses), np.inf, 'diverged')
    error, stddev = courses[-1].error[-1], courses[-1].stddev[-1]
    end = 'lost' if stddev > 0.5 else 'recovered' if error < 5 * stddev + 0.02 else 'wrong'
    return Outcome(all(item.sound for item in courses), float(courses[1].stddev[-1]), end)


def estimated(estimator: str, kind: str, steps: int) -> list[tuple[LinkageEstimate, float]]:
    """What the stage of the node says, with its position error, rad, sample by sample through ``outcome``'s course."""
    observer = observer_of(estimator, 'vm')
    stage = LinkageStage(observer.model, LinkageSettings(estimator=estimator, gate=GATE), observer.sensors, DT, 'vm')
    machine, found = Machine(observer), []
    for fault, length in (('none', 400), (kind, steps), ('none', 1000)):
        for t, sample, z in zip(*machine.block(length, fault)):
            for estimate in stage.add(round(t * 1e9), dict(zip(stage.channels, sample))):
                found.append((estimate, float(np.abs(wrapped(estimate.q[observer.problem.z] - z)).max())))
    return found
