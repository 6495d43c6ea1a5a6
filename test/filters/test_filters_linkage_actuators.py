# SPDX-License-Identifier: Apache-2.0
"""The estimated force kept to chosen actuators: a five-bar linkage whose first motor the model knows nothing of."""

import numpy as np
import pytest

from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import SettingError
from mbse_ros.filters.ekf import on_actuators
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.simulation.three_simulations import TrueMotion, noisy

pytestmark = pytest.mark.usefixtures('vm')

DT = 0.005
SENSORS = ('encoder_1', 'encoder_2', 'crank_gyro_1', 'crank_gyro_2')


@pytest.fixture(scope='module')
def truth() -> TrueMotion:
    model = load_model('five_bar')
    return TrueMotion(model, simulate(model, 3.0, DT, 'trapezoid', inputs=lambda t, q, qd: np.array([torque(t), 0])),
                      DT)


def torque(t):
    return 8 * np.sin(2 * t)


@pytest.mark.parametrize('estimator', ['errorEKF_FE', 'AerrorEKF_FE'])
def test_an_unknown_motor_is_found(truth, estimator):
    t, z, position = truth.motion.t[1:], truth.z, {}
    measured = noisy(truth.sensors(SENSORS), _stddev(truth), 0)
    for actuators in ((), ('torque_1',)):
        observer = LinkageObserver(truth.model, estimator, SENSORS, {'acceleration': 20.0}, actuators=actuators)
        observer.start(stddev=1e-2)
        found = observer.run(t, measured)
        position[actuators] = np.sqrt(np.mean((found.q - truth.motion.q[1:])[100:, z] ** 2))
        assert np.sqrt(np.mean((found.force[100:, 0] - torque(t[100:])) ** 2)) < 0.15
    assert observer.filter.forces == ('torque_1',) and found.force.shape == (len(t), 1)
    assert position['torque_1',] < 0.6 * position[()]        # nothing is left to the other crank


def test_all_actuators_are_all_forces(truth):
    """With one actuator along each coordinate nothing is projected away."""
    t = truth.motion.t[1:101]
    measured = noisy(truth.sensors(SENSORS), _stddev(truth), 1)[:100]
    found = []
    for actuators in ((), ('torque_1', 'torque_2')):
        observer = LinkageObserver(truth.model, 'errorEKF_FE', SENSORS, {'acceleration': 20.0}, actuators=actuators)
        observer.start()
        found.append(observer.run(t, measured))
    np.testing.assert_allclose(found[1].q, found[0].q, atol=1e-9)
    np.testing.assert_allclose(found[1].force, found[0].force, atol=1e-6)
    np.testing.assert_allclose(found[1].covariance, found[0].covariance, atol=1e-9)


def test_projection():
    random = np.random.default_rng(0)
    half, D = random.normal(size=(3, 3)), random.normal(size=(3, 2))
    inverse = np.linalg.inv(half @ half.T + np.eye(3))
    G, onto = (np.array(item) for item in on_actuators(3, 2)(inverse, inverse @ D))
    np.testing.assert_allclose(G @ (inverse @ D), np.eye(2), atol=1e-12)          # what actuators do is found again
    np.testing.assert_allclose(onto @ onto, onto, atol=1e-12)
    error = random.normal(size=3)
    left = np.linalg.solve(inverse, error - onto @ error)                         # and what is left is orthogonal to it
    np.testing.assert_allclose((inverse @ D).T @ left, 0, atol=1e-12)


@pytest.mark.parametrize('actuators', [('motor',), ('torque_1', 'torque_1')])
def test_unknown_actuators_are_refused(truth, actuators):
    with pytest.raises(SettingError, match='actuators'):
        LinkageObserver(truth.model, 'errorEKF_FE', SENSORS, {'acceleration': 1.0}, actuators=actuators)


def _stddev(truth: TrueMotion) -> np.ndarray:
    return np.array([truth.model.description.sensors[name].stddev for name in SENSORS])
