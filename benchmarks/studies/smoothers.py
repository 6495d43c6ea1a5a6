# SPDX-License-Identifier: Apache-2.0
"""Smoothers of a linkage against the filter of the same model: accuracy, honesty of the intervals, cost.

The paper's errors (gravity, start, a noisy gyro on the coupler of the four-bar) of ``estimator_benchmark``; and truths
drawn from the smoother's own model, by which its intervals alone are judged.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from mbse_ros.compiled import Kernel
from mbse_ros.dynamics.model import Model
from mbse_ros.errors import DivergenceError
from mbse_ros.filters.filters import default_noises, default_stddev
from mbse_ros.filters.observer import LinkageEstimates, LinkageObserver
from mbse_ros.graph.estimate import EstimatedMotion
from mbse_ros.graph.smoother import LinkageSmoother, Smoothed
from mbse_ros.report.series import Z95
from mbse_ros.simulation.estimator_benchmark import STEP, BenchmarkScene, rmse, scene_of
from mbse_ros.simulation.three_simulations import noisy

MECHANISM, SENSORS = 'four_bar', ('coupler_gyro',)


def estimation_rows(seeds: int, duration: float, lags: Sequence[float]) -> list[dict[str, Any]]:
    """The filter errorEKF_FE, then the smoother with each lag, s, then with the whole log.

    Per row, means over the seeds: ``rmse_pos``, ``rmse_vel`` over the whole log from its first sample, ``gain`` (the
    filter's rmse_pos through this one), ``coverage_pos`` and ``coverage_vel`` (share of all instants of all seeds at
    which the truth is within 1.96 standard deviations), ``step_us`` of processor time, ``diverged``.
    """
    scene = scene_of(MECHANISM, duration)
    smoother = LinkageSmoother(scene.wrong, SENSORS, STEP)
    ways: dict[str, list[dict[str, float]]] = {
        'errorEKF_FE': [], **{f'lag {lag:g} s': [] for lag in lags}, 'batch': []}
    lost = dict.fromkeys(ways, 0)
    for seed in range(seeds):
        samples, filtered, seconds = filtered_log(scene, seed)
        ways['errorEKF_FE'].append({**_errors(scene, filtered.q[:, scene.truth.z], filtered.qd[:, scene.truth.z],
                                              _stddev(filtered)), 'step_us': seconds})
        for name in [name for name in ways if name != 'errorEKF_FE']:
            try:
                ways[name].append(_smoothed(scene, smoother, samples, filtered, name))
            except DivergenceError:
                lost[name] += 1
    rows = []
    for name, found in ways.items():
        row: dict[str, Any] = {'study': 'estimation', 'mechanism': MECHANISM, 'sensors': list(SENSORS), 'way': name,
                               'seeds': seeds, 'duration': duration, 'diverged': lost[name]}
        row |= {key: float(np.mean([item[key] for item in found])) for key in found[0]} if found else {}
        rows.append(row)
    for row in rows:
        row['gain'] = rows[0]['rmse_pos'] / row['rmse_pos'] if 'rmse_pos' in row else None
    return rows


def filtered_log(scene: BenchmarkScene, seed: int) -> tuple[np.ndarray, LinkageEstimates, float]:
    """Samples (k + 1, s) at t = 0 (none there), dt, ..., the filter's run over them, and its cost, us a step."""
    observer = LinkageObserver(scene.wrong, 'errorEKF_FE', SENSORS, default_noises('errorEKF_FE', MECHANISM),
                               history=True)
    samples = noisy(scene.truth.sensors(SENSORS), observer.stddev, seed)
    observer.start(scene.start, stddev=default_stddev(observer.filter, MECHANISM))
    begin = time.process_time()
    run = observer.run(scene.truth.motion.t[1:], samples)
    seconds = time.process_time() - begin
    return np.vstack([np.full((1, samples.shape[1]), np.nan), samples]), run, 1e6 * seconds / len(samples)


def track_of(scene: BenchmarkScene, run: LinkageEstimates) -> EstimatedMotion:
    """The filter's run with its start, as values to start a smoother from."""
    motion = scene.truth.motion
    first = scene.start, scene.wrong.start.qd, run.qdd[0], np.zeros(run.force.shape[1])
    parts = [np.vstack([start, rest]) for start, rest in zip(first, (run.q, run.qd, run.qdd, run.force))]
    return EstimatedMotion(motion.t, *parts)


def _smoothed(scene: BenchmarkScene, smoother: LinkageSmoother, samples: np.ndarray, run: LinkageEstimates, way: str
              ) -> dict[str, float]:
    begin, t = time.process_time(), scene.truth.motion.t
    if way == 'batch':
        found = smoother.batch(samples, track_of(scene, run))
    else:
        found = smoother.lagged(t, samples, float(way.split()[1]), scene.start, scene.wrong.start.qd)
    seconds, z, g = time.process_time() - begin, scene.truth.z, len(scene.truth.z)
    return {**_errors(scene, found.q[1:, z], found.qd[1:, z], found.stddev[1:, :2 * g]),
            'step_us': 1e6 * seconds / len(t)}


def _errors(scene: BenchmarkScene, position: np.ndarray, velocity: np.ndarray, stddev: np.ndarray) -> dict[str, float]:
    """RMSE and coverage of positions and velocities (k, g) from the first sample on; ``stddev`` (k, 2g)."""
    motion, z = scene.truth.motion, scene.truth.z
    found: dict[str, float] = {}
    for k, (name, own, true) in enumerate((('pos', position, motion.q), ('vel', velocity, motion.qd))):
        error, sigma = own - true[1:, z], stddev[:, k * len(z):(k + 1) * len(z)]
        found[f'rmse_{name}'] = rmse(error)
        found[f'coverage_{name}'] = float(np.mean(np.abs(error) <= Z95 * sigma))
    return found


def _stddev(run: LinkageEstimates) -> np.ndarray:
    return np.sqrt(np.maximum(np.diagonal(np.asarray(run.covariances), axis1=1, axis2=2), 0.0))


def length_rows(lengths: Sequence[float], lag: float) -> list[dict[str, Any]]:
    """Processor time of logs of several lengths, s: with a lag, and at once, which starts from the estimate with it."""
    rows = []
    for length in lengths:
        scene = scene_of(MECHANISM, length)
        smoother, samples = LinkageSmoother(scene.wrong, SENSORS, STEP), filtered_log(scene, 0)[0]
        t, start = scene.truth.motion.t, (scene.start, scene.wrong.start.qd)
        guess = smoother.lagged(t, samples, lag, *start)        # compiles
        began = time.process_time()
        smoother.lagged(t, samples, lag, *start)
        middle = time.process_time()
        smoother.batch(samples, guess, None, *start)
        rows.append({'study': 'length', 'mechanism': MECHANISM, 'length': length, 'steps': len(t), 'lag': lag,
                     'lagged_s': middle - began, 'batch_s': time.process_time() - middle})
    return rows


def own_model_rows(seeds: int, duration: float, lag: float) -> list[dict[str, Any]]:
    """Coverage by coordinate where the truth is drawn from the smoother's own model, start and force included: what an
    honest interval makes 95 % of. Position, velocity and force, with a lag and at once."""
    model = scene_of(MECHANISM, duration).wrong
    smoother = LinkageSmoother(model, SENSORS, STEP)
    inside: dict[str, list[np.ndarray]] = {f'lag {lag:g} s': [], 'batch': []}
    for seed in range(seeds):
        truth, samples = drawn(smoother, model, round(duration / STEP), seed)
        for way in inside:
            found: Smoothed = smoother.lagged(truth.t, samples, lag)
            if way == 'batch':
                found = smoother.batch(samples, found, None, model.start.q, model.start.qd)
            x = np.hstack([truth.q[:, model.z], truth.qd[:, model.z], truth.force])
            inside[way].append(np.abs(found.mean - x) <= Z95 * found.stddev)
    return [{'study': 'own model', 'mechanism': MECHANISM, 'way': way, 'seeds': seeds, 'duration': duration,
             **{f'coverage of {name}': float(share) for name, share in zip(
                 smoother.names, np.mean(found, axis=(0, 1)))}} for way, found in inside.items()]


def drawn(smoother: LinkageSmoother, model: Model, steps: int, seed: int) -> tuple[EstimatedMotion, np.ndarray]:
    """A motion drawn from the smoother's model around the model's start, and samples of its sensors."""
    rng, of, dt, g = np.random.default_rng(seed), smoother.problem, smoother.dt, smoother.problem.g
    kernel, sensors, p = Kernel(of.rates), Kernel(of.sensors), np.asarray(model.parameters)
    walk, stddev = np.broadcast_to(smoother.noises.force_walk, g), np.sqrt(smoother.chain.variance)
    start = [np.broadcast_to(value, g) * rng.normal(size=g) for value in (
        smoother.noises.position, smoother.noises.velocity, smoother.noises.force)]
    z, zd, f = model.start.q[of.z] + start[0], model.start.qd[of.z] + start[1], start[2]
    q, u, rows, samples = model.position(z, model.start.q), np.zeros(len(model.inputs)), [], []

    def at(q: np.ndarray, zd: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, ...]:
        zdd, _, _, qdd, _, qd = kernel(q, zd, np.concatenate([u, f]), np.zeros(1), p)
        return zdd.copy(), qd.copy(), qdd.copy()
    for k in range(steps + 1):
        zdd, qd, qdd = at(q, zd, f)
        h = sensors(q, zd, zdd, np.concatenate([u, f]), np.zeros(1), p)[0]
        rows.append((k * dt, q, qd, qdd, f))
        samples.append(h + stddev * rng.normal(size=len(h)) if k else np.full(len(h), np.nan))
        f, first, ahead, place = f + np.sqrt(walk * dt) * rng.normal(size=g), zdd, zdd, q
        for _ in range(4):         # the trapezoidal rule by repetition: dt is small
            faster = zd + dt / 2 * (first + ahead)
            place = model.position(z + dt / 2 * (zd + faster), place)
            ahead = at(place, faster, f)[0]
        z, zd, q = z + dt / 2 * (zd + faster), faster, place
    return EstimatedMotion(*(np.array(column) for column in zip(*rows))), np.array(samples)
