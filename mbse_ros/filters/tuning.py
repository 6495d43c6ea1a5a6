# SPDX-License-Identifier: Apache-2.0
"""Process noises by maximum likelihood of the innovations over logs, and what the innovations are like with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import DivergenceError, SettingError
from .observer import LinkageEstimates, LinkageObserver
from .whiteness import autocorrelation, ljung_box

DECADES = 8         # around the start that are searched
FIRST = 3.0         # decades around the start that are tried with all noises together first
BEND = 0.1          # decades, for the curvature of the likelihood at its top
WORST = 1e15        # instead of a likelihood that is not finite


@dataclass(frozen=True)
class Log:
    """Measurements (k, s) at times (k,), s, NaN where missing, inputs (k, u) or none; where the filter starts: ``q``
    and ``qd`` (n,), ``stddev`` of its mean."""

    t: np.ndarray
    measured: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    stddev: float | np.ndarray
    inputs: np.ndarray | None = None


@dataclass(frozen=True)
class Quality:
    """Innovations of all logs with some noises: log-likelihood, mean NIS (``expected`` where the noises are right),
    and of each channel the Ljung-Box probability (least of the logs) and the lag-1 autocorrelation (mean)."""

    noises: dict[str, list[float]]
    log_likelihood: float
    nis: float
    expected: float
    ljung_box: dict[str, float]
    autocorrelation: dict[str, float]


@dataclass(frozen=True)
class TuningResult:
    """``stddev_log10``: of the logarithm of each noise, by the curvature of the likelihood; NaN where it is flat, so
    that the log does not determine that noise. ``converged``: whether the search ended by itself."""

    before: Quality
    after: Quality
    stddev_log10: dict[str, list[float]]
    converged: bool


def log_likelihood(run: LinkageEstimates, first: int = 0) -> float:
    """``-1/2 sum(log v + innovation^2 / v)`` over the used measurements from sample ``first`` on, v: their
    ``innovation_variance``."""
    used, variance = run.used[first:] > 0, run.innovation_variance[first:]
    if np.any(variance[used] <= 0):
        return -WORST
    with np.errstate(all='ignore'):
        value = float(-0.5 * np.sum(np.log(variance[used]) + run.innovation[first:][used] ** 2 / variance[used]))
    return value if np.isfinite(value) else -WORST


def tune(observer: LinkageObserver, logs: Sequence[Log], noises: Mapping[str, float | Sequence[float] | np.ndarray],
         skip: float = 0.0) -> TuningResult:
    """Find the noises, of which those that are 0 stay; ``skip`` seconds at the start of each log do not count.

    Sets the observer's noises to what was found. Raises SettingError where there is nothing to find.
    """
    from scipy.optimize import minimize  # here: slow to import
    parts = observer.filter.tuning.parts
    start = {name: np.broadcast_to(np.asarray(noises[name], dtype=float), parts[name][:1]) for name in noises}
    places = [(name, i) for name, values in start.items() for i in range(len(values)) if values[i] > 0]
    if not places:
        raise SettingError('noises', dict(noises), 'one above 0 to begin with')
    centre = np.log10([start[name][i] for name, i in places])

    def filled(x: np.ndarray) -> dict[str, np.ndarray]:
        values = {name: np.array(value) for name, value in start.items()}
        for (name, i), exponent in zip(places, np.clip(x, centre - DECADES, centre + DECADES)):
            values[name][i] = 10.0 ** exponent
        return values

    def cost(x: np.ndarray) -> float:
        observer.tune(filled(x))
        try:
            return -sum(log_likelihood(run_of(observer, log), _first(log, skip)) for log in logs)
        except DivergenceError:
            return WORST

    begin = min((centre + shift for shift in np.arange(-FIRST, FIRST + 1)), key=cost)
    simplex = np.vstack([begin, *(begin + 0.5 * row for row in np.eye(len(begin)))])
    found = minimize(cost, begin, method='Nelder-Mead', options={
        'initial_simplex': simplex, 'xatol': 2e-3, 'fatol': 1e-3, 'maxiter': 150 * len(begin)})
    spread = dict.fromkeys(places, np.nan) | dict(zip(places, _spread(cost, found.x)))
    before, after = (quality(observer, logs, values, skip) for values in (start, filled(found.x)))
    return TuningResult(before, after, {name: [float(spread.get((name, i), 0.0)) for i in range(len(values))]
                                        for name, values in start.items()}, bool(found.success))


def quality(observer: LinkageObserver, logs: Sequence[Log], noises: Mapping[str, np.ndarray],
            skip: float = 0.0) -> Quality:
    """Innovations with these noises, which the observer keeps. Raises DivergenceError."""
    observer.tune(noises)
    channels, value, nis, p, r = observer.problem.channels, 0.0, [], [], []
    used = 0.0
    for log in logs:
        run, first = run_of(observer, log), _first(log, skip)
        value += log_likelihood(run, first)
        series = np.where(run.used > 0, run.innovation / np.sqrt(np.maximum(run.innovation_variance, 1e-300)),
                          np.nan)[first:]
        nis.append(run.nis[first:])
        used += float(np.sum(run.used[first:]))
        p.append([ljung_box(column) for column in series.T])
        r.append([autocorrelation(column, 1)[0] for column in series.T])
    samples = sum(map(len, nis))
    return Quality({name: np.atleast_1d(values).tolist() for name, values in noises.items()}, value,
                   float(np.mean(np.concatenate(nis))), used / samples,
                   dict(zip(channels, np.min(p, axis=0).tolist())), dict(zip(channels, np.mean(r, axis=0).tolist())))


def run_of(observer: LinkageObserver, log: Log) -> LinkageEstimates:
    """The observer over a log, from its start. Raises DivergenceError."""
    observer.start(log.q, log.qd, log.stddev)
    with np.errstate(all='ignore'):
        return observer.run(log.t, log.measured, log.inputs)


def _first(log: Log, skip: float) -> int:
    """First sample that counts; raises SettingError where none would."""
    first = int(np.searchsorted(log.t - log.t[0], skip - 1e-9))
    if len(log.t) - first < 10:
        raise SettingError('skip', skip, f'a time that leaves 10 samples of a log of {log.t[-1] - log.t[0]:g} s')
    return first


def _spread(cost: Callable[[np.ndarray], float], x: np.ndarray) -> np.ndarray:
    """Standard deviations (p,) by the curvature of the cost at its minimum; NaN where it hardly bends."""
    eye = BEND * np.eye(len(x))
    H = np.array([[(cost(x + a + b) - cost(x + a - b) - cost(x - a + b) + cost(x - a - b)) / (4 * BEND ** 2)
                   for b in eye] for a in eye])
    try:
        np.linalg.cholesky(H)
        spread = np.sqrt(np.diag(np.linalg.inv(H)))
    except np.linalg.LinAlgError:
        spread = np.array([bend ** -0.5 if bend > 0 else np.inf for bend in np.diag(H)])
    return np.where(spread < DECADES, spread, np.nan)
