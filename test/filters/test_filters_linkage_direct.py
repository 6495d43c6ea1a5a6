# SPDX-License-Identifier: Apache-2.0
"""Direct forms: the same estimates as the indirect ones, over whole logs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.filters.observer import LinkageEstimates, LinkageObserver
from mbse_ros.simulation.three_simulations import TrueMotion, noisy, true_motion, wrong_model, wrong_start

pytestmark = pytest.mark.usefixtures('vm')

DT = 5e-3
CASES = [('four_bar', ('crank_gyro', 'crank_tip')), ('five_bar', ('encoder_1', 'coupler_gyro_2', 'tip_1'))]


@lru_cache(maxsize=2)
def world(mechanism: str) -> tuple[TrueMotion, Model]:
    model = load_model(mechanism)
    return true_motion(model, 3.0, DT), wrong_model(model)


def estimates(mechanism: str, sensors: tuple[str, ...], estimator: str, density: float,
              gate: float = 1.0) -> LinkageEstimates:
    truth, model = world(mechanism)
    observer = LinkageObserver(model, estimator, sensors, {'acceleration': density}, gate=gate)
    measured = noisy(truth.sensors(sensors), observer.stddev, 5)
    measured[np.random.default_rng(1).random(measured.shape) < 0.1] = np.nan
    observer.start(wrong_start(model))
    return observer.run(truth.motion.t[1:], measured)


@pytest.mark.parametrize('mechanism, sensors', CASES)
@pytest.mark.parametrize('kind, density', [('EJ', 0.09), ('FE', 0.5)])
def test_direct_equals_indirect(mechanism, sensors, kind, density):
    direct = estimates(mechanism, sensors, f'direct_{kind}', density)
    indirect = estimates(mechanism, sensors, f'errorEKF_{kind}', density)
    for name in ('q', 'qd', 'qdd', 'force', 'innovation', 'innovation_variance', 'used'):
        expected = getattr(indirect, name)
        np.testing.assert_allclose(getattr(direct, name), expected, rtol=0, atol=1e-10 * max(1, np.abs(expected).max()))
    size = 2 * len(world(mechanism)[1].z)
    np.testing.assert_allclose(direct.mean[:, :size], indirect.mean[:, :size], rtol=0, atol=1e-10)
    np.testing.assert_allclose(direct.covariance[:size, :size], indirect.covariance[:size, :size], rtol=1e-9,
                               atol=1e-14)


def test_the_third_state_is_the_acceleration_of_the_mechanism():
    found = estimates('five_bar', CASES[1][1], 'direct_FE', 0.5)
    truth, model = world('five_bar')
    np.testing.assert_allclose(found.mean[:, 4:], found.qdd[:, model.z], atol=1e-12)
    error = found.mean[-1, 4:] - truth.motion.qdd[-1, model.z]
    spread = found.covariance[4:, 4:]
    assert error @ np.linalg.solve(spread, error) < 13.8          # chi2 of 2, 99.9 %
    assert np.linalg.eigvalsh(found.covariance).min() > 0
