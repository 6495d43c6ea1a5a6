# SPDX-License-Identifier: Apache-2.0
"""errorEKF_FE_SH whitens: gravity that is wrong (Naya et al., review, Fig. 5), a coloured torque, and coloured noise of
an encoder, that the model knows nothing of."""

import numpy as np
import pytest
from linear_mechanism import linear_model

from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import SettingError
from mbse_ros.filters.filters import default_noises, default_stddev
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.simulation.estimator_benchmark import SENSORS, figures, scene_of
from mbse_ros.simulation.three_simulations import TrueMotion, noisy, true_motion, wrong_model, wrong_start

DT, STEPS, MEMORY = 0.005, 800, float(np.exp(-0.05))       # Gauss-Markov, correlation time 0.1 s


def ljung_box(series: np.ndarray, lags: int = 20) -> float:
    n = len(series)
    r = [np.sum(series[lag:] * series[:-lag]) / np.sum(series ** 2) for lag in range(1, lags + 1)]
    return float(n * (n + 2) * np.sum(np.square(r) / (n - np.arange(1, lags + 1))))


def gauss_markov(stddev: float, seed: int) -> np.ndarray:
    random, values = np.random.default_rng(seed), [0.0]
    for _ in range(STEPS):
        values.append(MEMORY * values[-1] + stddev * np.sqrt(1 - MEMORY ** 2) * random.normal())
    return np.array(values)


@pytest.fixture(scope='module')
def truth() -> TrueMotion:
    torque = DT * np.cumsum(gauss_markov(200.0, 1))         # whose rate is Gauss-Markov
    model = load_model('four_bar')
    motion = simulate(model, STEPS * DT, DT, 'trapezoid',
                      inputs=lambda t, q, qd: np.array([torque[min(round(t / DT), STEPS)]]))
    return TrueMotion(model, motion, DT)


def run(truth, estimator, sensor, noises, measured, **options):
    """Ljung-Box statistic of the innovations, RMSE of position and acceleration, mean NIS, after 1 s."""
    observer = LinkageObserver(truth.model, estimator, (sensor,), noises, **options)
    observer.start(stddev=1e-2)
    found = observer.run(truth.motion.t[1:], measured)
    white = (found.innovation / np.sqrt(found.innovation_variance))[200:, 0]
    away = [np.sqrt(np.mean((values[:, truth.z] - true[1:, truth.z])[200:] ** 2))
            for values, true in ((found.q, truth.motion.q), (found.qdd, truth.motion.qdd))]
    return ljung_box(white), *away, found.nis[200:].mean()


def test_plant_color_is_whitened(truth):
    """With the same noise driving both, the shaped one follows what the other lags behind."""
    variance = 3e-4
    measured = noisy(truth.sensors(('crank_gyro',)), np.array([983.943e-6]), 0)
    plain = run(truth, 'errorEKF_FE', 'crank_gyro', {'acceleration': variance / DT}, measured)
    shaped = run(truth, 'errorEKF_FE_SH', 'crank_gyro', {'acceleration': 0.0, 'color_walk': variance / DT}, measured)
    assert shaped[0] < 0.5 * plain[0] and shaped[2] < 0.7 * plain[2]
    assert abs(np.log(shaped[3])) < abs(np.log(plain[3]))


@pytest.mark.parametrize('color', ['measurement', 'both'])
def test_measurement_color_is_whitened(truth, color):
    """The position is no better (4 % worse), but its covariance is right: NIS 1.1 instead of 36."""
    sensor, stddev, colored = 'encoder', 2e-3, 0.02
    measured = noisy(truth.sensors((sensor,)), np.array([stddev]), 0) + gauss_markov(colored, 2)[1:, None]
    plain = run(truth, 'errorEKF_FE', sensor, {'acceleration': 2.0}, measured, stddev=[stddev])
    noises = {'acceleration': 2.0, 'sensor_memory': MEMORY, 'sensor_color': colored ** 2 * (1 - MEMORY ** 2)}
    noises |= {'color_walk': 1e-4 / DT} if color == 'both' else {}
    shaped = run(truth, 'errorEKF_FE_SH', sensor, noises, measured, stddev=[stddev], color=color)
    assert shaped[0] < 0.5 * plain[0] and shaped[0] < 60 and shaped[2] < plain[2]
    assert 0.7 < shaped[3] < 1.4


FIG_5 = ('four_bar', 'accelerometers'), ('five_bar', 'gyro_coupler')


def benchmark(mechanism: str, sensor: str, estimator: str, **options) -> tuple[float, float, np.ndarray]:
    """RMSE of the force, size of the innovations' lag-1 autocorrelation (means of two seeds) and the last W."""
    scene = scene_of(mechanism, 10.0)
    observer = LinkageObserver(scene.wrong, estimator, SENSORS[mechanism][sensor],
                               default_noises(estimator, mechanism), history=True, states=True, **options)
    outputs, found = scene.truth.sensors(observer.sensors), []
    for seed in range(2):
        observer.start(scene.start, stddev=default_stddev(observer.filter, mechanism))
        run = observer.run(scene.truth.motion.t[1:], noisy(outputs, observer.stddev, seed))
        of = figures(scene, observer, run)
        found.append((of['force_rmse'], of['autocorrelation']))
    force, correlation = np.mean(found, axis=0)
    places = observer.filter.state.places
    return force, abs(correlation), observer.state[places['W']] if 'W' in places else np.zeros(0)


@pytest.mark.parametrize('mechanism, sensor', FIG_5)
def test_force_and_whiteness_improve_as_in_figure_5(mechanism, sensor):
    """Measured with 20 seeds: forces 18 and 10 % better, autocorrelation at lag 1 5 times smaller."""
    plain, shaped = (benchmark(mechanism, sensor, name) for name in ('errorEKF_FE', 'errorEKF_FE_SH'))
    assert shaped[0] < 0.95 * plain[0]
    assert shaped[1] < 0.5 * plain[1] and plain[1] > 0.1
    assert shaped[2].max() > 0.1 and shaped[2].min() >= 0.0


def test_the_printed_law_takes_its_own_ground_away():
    """W is what is left of the autocorrelation: neither white nor coloured, where the toolbox's law whitens."""
    printed, taken = (benchmark('five_bar', 'gyro_coupler', 'errorEKF_FE_SH', law=law)
                      for law in ('innovation', 'correction'))
    assert printed[1] > 3 * taken[1] and 0.05 < printed[2].min() and printed[2].max() < 0.4


@pytest.mark.parametrize('dt', [0.001, 0.02, 0.04])
def test_without_colour_the_noise_serves_any_step(dt):
    """Without samples W stays 0, and the acceleration error becomes as uncertain in 0.4 s as that of errorEKF_FE; xi
    acts one step later."""
    found = []
    for estimator, noises in (('errorEKF_FE', {'acceleration': 0.3}),
                              ('errorEKF_FE_SH', {'acceleration': 0.0, 'color_walk': 0.3})):
        observer = LinkageObserver(linear_model(), estimator, ('place',), noises)
        observer.start(stddev=0.0)
        observer.run(dt * np.arange(1, round(0.4 / dt) + 1), np.full((round(0.4 / dt), 1), np.nan))
        found.append(observer.covariance(observer.state)[2, 2])
    assert found[1] / found[0] == pytest.approx(1 - dt / 0.4, rel=1e-9)


def test_the_default_claims_what_it_does_with_longer_steps():
    """NEES, expected 2, with a coupler's gyro sampled each 20 ms: 3 to 4; with the noise of a step of 5 ms 12."""
    model, dt = load_model('four_bar'), 0.02
    truth, wrong = true_motion(model, 6.0, dt), wrong_model(model)
    observer = LinkageObserver(wrong, 'errorEKF_FE_SH', ('coupler_gyro',), dt=dt, history=True)
    observer.start(wrong_start(wrong, np.pi / 16), stddev=default_stddev(observer.filter, 'four_bar'))
    found = observer.run(truth.motion.t[1:], noisy(truth.sensors(('coupler_gyro',)), observer.stddev, 0))
    away = (found.mean[:, :2] - np.column_stack([truth.motion.q[1:, truth.z], truth.motion.qd[1:, truth.z]]))[100:]
    nees = np.einsum('ki,kij,kj->k', away, np.linalg.inv(found.covariances[100:, :2, :2]), away)
    assert nees.mean() < 6


def test_the_printed_law_is_the_autocorrelation_of_the_innovations(truth):
    """At lag 1, of those divided by their deviations, with a memory of the window."""
    window, sensor = 100, 'crank_gyro'
    observer = LinkageObserver(truth.model, 'errorEKF_FE_SH', (sensor,), {'acceleration': 0.0, 'color_walk': 1e-3},
                               law='innovation', window=window)
    observer.start(stddev=1e-2)
    found = observer.run(truth.motion.t[1:], noisy(truth.sensors((sensor,)), observer.stddev, 0))
    white = (found.innovation / np.sqrt(found.innovation_variance))[:, 0]
    memory = (1 - 1 / window) ** np.arange(len(white))[::-1]
    expected = memory[1:] @ (white[1:] * white[:-1]) / (memory @ white ** 2)
    assert expected > 0.05
    assert observer.filter.state.arrays(observer.state)['W'].item() == pytest.approx(expected, rel=1e-9)


def test_a_law_that_is_not_known_is_refused():
    with pytest.raises(SettingError, match='law'):
        LinkageObserver(load_model('four_bar'), 'errorEKF_FE_SH', ('encoder',), law='whitening')


def test_a_variance_per_step_is_refused_by_its_old_name():
    with pytest.raises(SettingError, match='colored.*color_walk'):
        LinkageObserver(load_model('four_bar'), 'errorEKF_FE_SH', ('encoder',), {'colored': 1e-3})
