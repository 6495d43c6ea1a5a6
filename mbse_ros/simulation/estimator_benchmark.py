# SPDX-License-Identifier: Apache-2.0
"""All filters with all sensors of the benchmark of Naya et al., review: its mechanisms, errors and figures, over many
seeds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..compiled import Kernel
from ..dynamics.model import Model, load_model
from ..errors import DivergenceError, MbseError, check_choice
from ..filters.filters import CHOOSY, OF_MECHANISMS, check_options, default_noises, default_stddev
from ..filters.linkage_settings import option_values
from ..filters.observer import LinkageEstimates, LinkageObserver
from ..filters.parts.problem import problem
from ..filters.whiteness import autocorrelation, white_of
from .three_simulations import TrueMotion, noisy, true_motion, wrong_model, wrong_start

SENSORS: dict[str, dict[str, tuple[str, ...]]] = {
    'four_bar': {'encoder': ('encoder',), 'gyro_crank': ('crank_gyro',), 'gyro_coupler': ('coupler_gyro',),
                 'accelerometers': ('crank_tip',)},
    'five_bar': {'encoder': ('encoder_1', 'encoder_2'), 'gyro_crank': ('crank_gyro_1', 'crank_gyro_2'),
                 'gyro_coupler': ('coupler_gyro_1', 'coupler_gyro_2'), 'accelerometers': ('tip_1', 'tip_2')}}
SENSOR_SETS = tuple(SENSORS['four_bar'])
STEP = 5e-3         # s
SETTLED = 2.0       # s, after which the start is forgotten
LOST = 0.5          # rad of position error after 2 s, more than twice that of the start: not an estimate any more
FIGURES = ('rmse_pos', 'rmse_vel', 'rmse_acc', 'rmse_pos_after_2s', 'force_rmse', 'nees', 'nis', 'autocorrelation')


@dataclass(frozen=True)
class BenchmarkCase:
    """One row: a filter with one set of sensors on one mechanism, with ``seeds`` seeds of the sensors' noise;
    ``options`` of the filter in words."""

    mechanism: str
    estimator: str
    sensor: str
    seeds: int = 20
    duration: float = 10.0
    backend: str = 'auto'
    options: str = ''


@dataclass(frozen=True)
class BenchmarkResult:
    """``row``: the figures; ``t`` (k,) and ``error`` (k,): position error of the first coordinate with seed 0."""

    case: BenchmarkCase
    row: dict[str, Any]
    t: np.ndarray
    error: np.ndarray


@dataclass(frozen=True)
class BenchmarkScene:
    """What all cases of a mechanism share: the truth, the wrong model and its start, the force (k, g) it lacks."""

    truth: TrueMotion
    wrong: Model
    start: np.ndarray
    force: np.ndarray


def benchmark_cases(mechanisms: Sequence[str], estimators: Sequence[str], sensors: Sequence[str], seeds: int,
                    duration: float, backend: str = 'auto', options: str = '') -> list[BenchmarkCase]:
    """All combinations, empty sequences standing for all; raises SettingError for unknown names, and for ``options``
    that one of the filters does not have."""
    chosen = []
    known_filters = tuple(name for name in OF_MECHANISMS if name not in CHOOSY)
    for option, names, known in (('mechanism', mechanisms, tuple(SENSORS)), ('sensors', sensors, SENSOR_SETS),
                                 ('estimators', estimators, known_filters)):
        for name in names:
            check_choice(option, name, known)
        chosen.append(list(dict.fromkeys(names)) or list(known))
    for name in chosen[2]:
        check_options(name, option_values(options))
    return [BenchmarkCase(mechanism, estimator, sensor, seeds, duration, backend, options)
            for mechanism in chosen[0] for sensor in chosen[1] for estimator in chosen[2]]


def run_case(case: BenchmarkCase) -> BenchmarkResult:
    """Figures of one case; a filter that is refused, or leaves the finite numbers, is a row too, with its reason."""
    scene = scene_of(case.mechanism, case.duration, case.backend)
    found: list[dict[str, float]] = []
    options: dict[str, Any] = option_values(case.options)
    t, first, seconds, note = scene.truth.motion.t[1:], np.zeros(0), [], ''
    try:
        observer = LinkageObserver(scene.wrong, case.estimator, SENSORS[case.mechanism][case.sensor],
                                   default_noises(case.estimator, case.mechanism), backend=case.backend, history=True,
                                   **options)
    except MbseError as error:
        return BenchmarkResult(case, _row(case, [], [], str(error)), t, first)
    outputs = scene.truth.sensors(observer.sensors)
    for seed in range(case.seeds):
        observer.start(scene.start, stddev=default_stddev(observer.filter, case.mechanism))
        begin = time.process_time()
        try:
            with np.errstate(all='ignore'):
                run = observer.run(t, noisy(outputs, observer.stddev, seed))
        except DivergenceError as error:
            note = note or str(error)
            continue
        seconds.append(time.process_time() - begin)
        found.append(figures(scene, observer, run))
        if seed == 0:
            first = run.q[:, scene.truth.z[0]] - scene.truth.motion.q[1:, scene.truth.z[0]]
    return BenchmarkResult(case, _row(case, found, seconds, note), t, first)


@lru_cache(maxsize=4)
def scene_of(mechanism: str, duration: float, backend: str = 'auto') -> BenchmarkScene:
    """Truth, wrong model, its start and the force it lacks along the independent coordinates."""
    model = load_model(mechanism, backend=backend)
    truth, wrong = true_motion(model, duration, STEP), wrong_model(model)
    return BenchmarkScene(truth, wrong, wrong_start(wrong), missing_force(truth, wrong))


def missing_force(truth: TrueMotion, wrong: Model) -> np.ndarray:
    """Force (k, g) along the independent coordinates with which the wrong model would move as the true one."""
    of, motion = problem(wrong, ()), truth.motion
    kernel, g = Kernel(of.rates, wrong.backend), of.g
    u, p, forces = np.zeros(of.system.u.numel()), np.asarray(wrong.parameters), []
    for k in range(1, len(motion.t)):
        zdd, _, B, *_ = kernel(motion.q[k], motion.qd[k, of.z], u, motion.t[k:k + 1], p)
        lift = B.reshape(2 * g, -1)[g:, -g:]
        forces.append(np.linalg.solve(lift, motion.qdd[k, of.z] - zdd))
    return np.array(forces)


def figures(scene: BenchmarkScene, observer: LinkageObserver, run: LinkageEstimates) -> dict[str, float]:
    """Figures of one run; root mean squares are means over the coordinates; those of consistency are after 2 s.

    ``nees`` of ``[z, zd]``, of mean 2 g, and ``nis``, of mean s, where the covariances are right.
    """
    motion, z = scene.truth.motion, scene.truth.z
    errors = [getattr(run, name)[:, z] - getattr(motion, name)[1:, z] for name in ('q', 'qd', 'qdd')]
    settled = min(int(round(SETTLED / scene.truth.dt)), len(run.q) - 1)
    normalised = run.innovation[settled:] / np.sqrt(np.maximum(run.innovation_variance[settled:], 1e-300))
    force = rmse(run.force - scene.force) if np.any(run.force) else np.nan
    return dict(zip(FIGURES, map(rmse, errors)), rmse_pos_after_2s=rmse(errors[0][settled:]), force_rmse=force,
                nees=nees(observer, run, errors, settled), nis=float(np.mean(run.nis[settled:])),
                autocorrelation=float(np.mean([autocorrelation(column, 1)[0] for column in normalised.T])),
                whiteness=white_of(normalised))


def rmse(error: np.ndarray) -> float:
    """Root mean square of each column of errors (k, g), mean over the columns."""
    return float(np.mean(np.sqrt(np.mean(error ** 2, axis=0))))


def nees(observer: LinkageObserver, run: LinkageEstimates, errors: Sequence[np.ndarray], settled: int) -> float:
    """Mean normalised estimation error squared of ``[z, zd]``; NaN for a filter without a covariance of them."""
    of, P, held = observer.problem, run.covariances, observer.filter.held
    if P is None or P.shape[1] < 2 * of.g:
        return np.nan
    places = [held.index(i) for i in of.z]
    places += [len(held) + place for place in places]
    e, P = np.hstack(errors[:2])[settled:], P[settled:][:, places][:, :, places]
    try:
        return float(np.mean(np.sum(e * np.linalg.solve(P, e[..., None])[..., 0], axis=1)))
    except np.linalg.LinAlgError:
        return np.nan


def _row(case: BenchmarkCase, found: list[dict[str, float]], seconds: list[float], note: str) -> dict[str, Any]:
    """Means over the seeds that were not lost, or over all that stayed finite where all were; None for no value."""
    kept = [item for item in found if item['rmse_pos_after_2s'] < LOST]
    diverged, found = case.seeds - len(kept), kept or found
    values = {name: np.array([item[name] for item in found]) for name in (*FIGURES, 'whiteness')} if found else {}
    step = min(seconds, default=np.nan) / round(case.duration / STEP)
    row: dict[str, Any] = {'mechanism': case.mechanism, 'estimator': case.estimator, 'sensor': case.sensor,
                           'options': case.options, 'seeds': case.seeds}
    row |= {name: _finite(np.mean(values[name])) if found else None for name in FIGURES}
    row |= {'whiteness': _finite(np.median(values['whiteness'])) if found else None}
    row |= {f'{name}_stddev': _finite(np.std(values[name], ddof=1)) if len(found) > 1 else None
            for name in FIGURES[:5]}
    return row | {'cpu_per_s': _finite(step / STEP), 'step_us': _finite(1e6 * step),
                  'diverged': diverged, 'note': note}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
