# SPDX-License-Identifier: Apache-2.0
"""The most likely numbers of a machine by the balance of forces of many logs, the file's deviations being the prior.

Unknowns are the independent errors u of the numbers, in their standard deviations (``Parameters.factor``), and those of
the loads, so that the prior of each is 0 +- 1. Least squares with exact derivatives (scipy's trust region, large
residuals by Huber), in which the noise of the equations is what the samples and the scatter of the residuals say. Where
a number would leave what the language of the files allows, the unknowns are the numbers themselves, within these
bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from .balance import CalibrationBalance, Moments
from .free import bounds_of

HUBER = 3.0         # standard deviations from which a residual counts by its size
ROUNDS = 3          # of least squares and noise
LEAST = 12          # residuals of an equation from which their scatter is taken
LAGS = 20           # windows over which residuals may depend on each other
AT = 1e-3           # of a deviation, within which a number is at its bound


@dataclass(frozen=True)
class KnownLoad:
    """What a log has on the machine: ``mass`` and ``stddev``, kg; logs with the same ``name`` carry the same load, one
    with '' carries none."""

    name: str = ''
    mass: float = 0.0
    stddev: float = 0.0


@dataclass(frozen=True)
class CalibrationLog:
    """Moments of one bag and its load."""

    name: str
    moments: Moments
    load: KnownLoad = KnownLoad()


@dataclass(frozen=True)
class CalibrationFit:
    """``u`` (k + l,): errors of the numbers, then of the loads ``loads`` (l,), in their standard deviations;
    ``covariance`` of them; ``noise`` (a,): by what the deviations of an equation's residuals are larger than those of
    the samples; ``information`` (k + l, k + l) of the bags alone; ``at_bound``: places of numbers that are at a bound
    of the language, since the bags ask for more."""

    u: np.ndarray
    covariance: np.ndarray
    information: np.ndarray
    noise: np.ndarray
    loads: tuple[str, ...]
    logs: tuple[CalibrationLog, ...]
    at_bound: tuple[int, ...] = ()


class CalibrationProblem:
    """Residuals of logs in standard deviations, and their derivatives by u; ``factor`` (k, k): of the prior."""

    def __init__(self, balance: CalibrationBalance, logs: Sequence[CalibrationLog]) -> None:
        p = balance.machine.parameters
        self.balance, self.logs, self.prior, self.factor = balance, tuple(logs), p.mean, p.factor()
        self.loads = tuple(dict.fromkeys(log.load.name for log in logs if log.load.stddev > 0.0))
        self.size = len(self.prior) + len(self.loads)
        self.noise = np.ones(len(balance.equations))
        self.spread, (self.low, self.high) = p.stddev, bounds_of(balance.machine)
        self._gains = _gains(balance)

    def numbers(self, u: np.ndarray) -> np.ndarray:
        """Numbers of the file (k,), SI."""
        return self.prior + self.factor @ u[:len(self.prior)]

    def at_bound(self, u: np.ndarray) -> tuple[int, ...]:
        """Places of numbers that are at a bound, and were not before."""
        x, near = self.numbers(u), AT * self.spread
        return tuple(np.flatnonzero(((x <= self.low + near) & (self.prior > self.low + near))
                                    | ((x >= self.high - near) & (self.prior < self.high - near))).tolist())

    def mass(self, log: CalibrationLog, u: np.ndarray) -> float:
        """Of a log's load, kg."""
        return log.load.mass + (log.load.stddev * u[self._place(log)] if log.load.stddev > 0.0 else 0.0)

    def _place(self, log: CalibrationLog) -> int:
        return len(self.prior) + self.loads.index(log.load.name)

    def missing(self, log: CalibrationLog, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Forces (n, a), N or N m, that are missing in a log, and their derivatives (n, a, k + l) by u."""
        mass = np.full(len(log.moments.X), self.mass(log, u))
        g, by_numbers, by_mass = self.balance.terms(log.moments, self.numbers(u), mass)
        J = np.zeros((*g.shape, self.size))
        J[:, :, :len(self.prior)] = by_numbers @ self.factor
        if log.load.stddev > 0.0:
            J[:, :, self._place(log)] += by_mass * log.load.stddev
        return g, J

    def residuals(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of all equations that count (r,), in standard deviations, and their derivatives (r, k + l)."""
        parts, slopes = [np.zeros(0)], [np.zeros((0, self.size))]
        for log in self.logs:
            r, J = self.normalised(log, u)
            own = log.moments.counts
            parts.append((r / self.noise)[own])
            slopes.append((J / self.noise[:, None])[own])
        return np.concatenate(parts), np.concatenate(slopes)

    def normalised(self, log: CalibrationLog, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What is missing (n, a) in a log, in standard deviations of its samples, and derivatives (n, a, k + l).

        The noise is that of the samples: where they are those of one effort what is missing counts as they would show
        it, times the gain. A gain that is hardly known would else grow, as that makes their noise smaller.
        """
        g, J = self.missing(log, u)
        sigma, x = np.sqrt(log.moments.variance), self.numbers(u)
        r, J = g / sigma, J / sigma[:, :, None]
        for k, place in self._gains.items():
            share = x[place] / self.prior[place]
            J[:, k] *= share
            J[:, k, :len(self.prior)] += r[:, k, None] * self.factor[place] / self.prior[place]
            r[:, k] *= share
        return r, J

    def solve(self, start: np.ndarray | None = None) -> np.ndarray:
        """The most likely u."""
        last: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

        def both(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            if u.tobytes() not in last:
                last.clear()
                last[u.tobytes()] = self.residuals(u)
            return last[u.tobytes()]

        count = len(both(np.zeros(self.size))[0])

        def loss(z: np.ndarray) -> np.ndarray:
            """Huber's, of the residuals; the prior counts by its square."""
            rho, large = np.vstack([z, np.ones_like(z), np.zeros_like(z)]), z > HUBER ** 2
            large[count:] = False
            root = np.sqrt(z[large])
            rho[:, large] = 2 * HUBER * root - HUBER ** 2, HUBER / root, -0.5 * HUBER / root ** 3
            return rho

        first = np.zeros(self.size) if start is None else start
        found = least_squares(lambda u: np.concatenate([both(u)[0], u]), first,
                              jac=lambda u: np.vstack([both(u)[1], np.eye(self.size)]), loss=loss, x_scale=1.0,
                              max_nfev=30, xtol=1e-6, ftol=1e-8)
        x = self.numbers(found.x)
        if ((self.low <= x) & (x <= self.high)).all():
            return found.x
        # Unknowns w: the numbers' errors in their deviations, which have bounds; u = T w.
        T, low, high = np.eye(self.size), np.full(self.size, -np.inf), np.full(self.size, np.inf)
        k = len(self.prior)
        T[:k, :k] = np.linalg.solve(self.factor, np.diag(self.spread))
        low[:k], high[:k] = (self.low - self.prior) / self.spread, (self.high - self.prior) / self.spread
        first = np.clip(np.linalg.solve(T, found.x), low, high)
        found = least_squares(lambda w: np.concatenate([both(T @ w)[0], T @ w]), first, bounds=(low, high),
                              jac=lambda w: np.vstack([both(T @ w)[1], np.eye(self.size)]) @ T, loss=loss, x_scale=1.0,
                              max_nfev=100, xtol=1e-6, ftol=1e-8)
        return T @ np.where(found.x < low + AT, low, np.where(found.x > high - AT, high, found.x))

    def information(self, u: np.ndarray) -> np.ndarray:
        """Of the bags alone (k + l, k + l); what is far off counts less."""
        r, J = self.residuals(u)
        return (J * np.minimum(1.0, HUBER / np.maximum(np.abs(r), 1e-12))[:, None]).T @ J

    def scatter(self, u: np.ndarray) -> np.ndarray:
        """By what the noise (a,) of the residuals is larger than that of the samples: their spread, and what those that
        depend on each other count less."""
        found = np.ones(len(self.noise))
        for k in range(len(found)):
            series = []
            for log in self.logs:
                own = log.moments.counts[:, k]
                series.append(self.normalised(log, u)[0][own, k])
            together = np.concatenate(series) if series else np.zeros(0)
            if len(together) < LEAST:
                continue
            middle = 1.4826 * np.median(np.abs(together))
            cut = [np.clip(item, -HUBER * middle, HUBER * middle) for item in series]
            variance = np.mean(np.concatenate(cut) ** 2)
            found[k] = np.sqrt(max(variance, 1.0) * max(_depend(cut, variance), 1.0))
        return found


def _gains(balance: CalibrationBalance) -> dict[int, int]:
    """By the place of each equation of one effort: that of its uncertain gain among the numbers."""
    machine, found = balance.machine, {}
    sensors = {channel.name: channel.sensor.name for channel in machine.all_channels if channel.sensor.drive}
    for k, row in enumerate(machine.weighing):
        names = [sensors.get(name, '') for name in machine.push_needs[row]]
        key = f'sensors.{names[0]}.gain'
        if len(names) == 1 and key in machine.parameters.names:
            found[k] = machine.parameters.names.index(key)
    return found


def _depend(series: Sequence[np.ndarray], variance: float) -> float:
    """How many residuals one after the other count as one: the sum of their autocorrelations, up to where it ends."""
    total = 1.0
    for lag in range(1, LAGS + 1):
        pairs = [item[lag:] * item[:-lag] for item in series if len(item) > lag]
        if not pairs or (value := float(np.mean(np.concatenate(pairs))) / variance) <= 0.0:
            break
        total += 2 * value
    return total


def fit(balance: CalibrationBalance, logs: Sequence[CalibrationLog]) -> CalibrationFit:
    """Numbers and loads by all logs."""
    problem = CalibrationProblem(balance, logs)
    u = problem.solve()
    for _ in range(ROUNDS):
        problem.noise = problem.scatter(u)
        u = problem.solve(u)
    information = problem.information(u)
    return CalibrationFit(u, np.linalg.inv(np.eye(problem.size) + information), information, problem.noise,
                          problem.loads, tuple(logs), problem.at_bound(u))


def left_out(balance: CalibrationBalance, whole: CalibrationFit, place: int) -> tuple[CalibrationProblem, np.ndarray]:
    """The problem of one log, and the numbers u (k + l,) that the others give; a load that only it has is as stated."""
    others = [log for k, log in enumerate(whole.logs) if k != place]
    problem, own = CalibrationProblem(balance, others), CalibrationProblem(balance, [whole.logs[place]])
    problem.noise = own.noise = whole.noise
    found = problem.solve()
    u, k = np.zeros(own.size), len(own.prior)
    u[:k] = found[:k]
    for name in own.loads:
        if name in problem.loads:
            u[k + own.loads.index(name)] = found[k + problem.loads.index(name)]
    return own, u


def weighed(problem: CalibrationProblem, u: np.ndarray) -> tuple[float, float]:
    """Mass, kg, that the one log of a problem asks for with numbers u (k + l,), and its scatter's deviation."""
    log = problem.logs[0]
    free = replace(log, load=KnownLoad())
    g, _, by_mass = problem.balance.terms(log.moments, problem.numbers(u), np.zeros(len(log.moments.X)))
    own, sigma = free.moments.counts, np.sqrt(log.moments.variance) * problem.noise
    y, s = (g / sigma)[own], (by_mass / sigma)[own]
    total = float(s @ s)
    return (-float(s @ y) / total, total ** -0.5) if total > 0.0 else (float('nan'), float('nan'))


def rms(problem: CalibrationProblem, u: np.ndarray) -> float:
    """Root mean square of the force that is missing, N at the pistons; NaN where nothing counts."""
    together = np.concatenate([forces(problem, log, u)[log.moments.counts] for log in problem.logs])
    return float(np.sqrt(np.mean(together ** 2))) if len(together) else float('nan')


def forces(problem: CalibrationProblem, log: CalibrationLog, u: np.ndarray) -> np.ndarray:
    """What is missing (n, a) in a log, N at the pistons."""
    return problem.missing(log, u)[0] / np.maximum(log.moments.levers, 1e-12)
