# SPDX-License-Identifier: Apache-2.0
"""Every filter has noises for every linkage, and with them it finds its start wherever its sensors suffice."""

from functools import lru_cache

import numpy as np
import pytest

from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import SettingError
from mbse_ros.filters.filters import OF_MECHANISMS, default_noises, default_stddev
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.simulation.three_simulations import noisy, true_motion, wrong_model, wrong_start

DT, DURATION, LOST = 0.005, 2.0, 0.5        # s, s, rad
ENCODERS = {'four_bar': ('encoder',), 'five_bar': ('encoder_1', 'encoder_2')}
TIPS = {'four_bar': ('crank_tip',), 'five_bar': ('tip_1', 'tip_2')}
# All on the four-bar; on the five-bar those that the benchmark of all filters does not run, and one that it does.
CASES = [('four_bar', name) for name in OF_MECHANISMS] + [
    ('five_bar', name) for name in ('kinematic', 'joint', 'dual', 'errorEKF_FE')]
FREE = {'four_bar': 'bodies.coupler.mass', 'five_bar': 'bodies.coupler_1.mass'}


@lru_cache(maxsize=2)
def truth(mechanism):
    return true_motion(load_model(mechanism, backend='vm'), DURATION, DT)


@pytest.mark.parametrize('mechanism, estimator', CASES)
def test_defaults_suffice(mechanism, estimator):
    true, tips = truth(mechanism), estimator in ('kinematic', 'dual')
    sensors = ENCODERS[mechanism] + (TIPS[mechanism] if tips else ())
    free = (FREE[mechanism],) if estimator in ('joint', 'dual') else ()
    wrong = load_model(mechanism, free=free, backend='vm') if free else wrong_model(true.model)
    wrong = wrong.with_parameters(1.05 * wrong.parameters)
    observer = LinkageObserver(wrong, estimator, sensors, default_noises(estimator, mechanism))
    observer.start(wrong_start(wrong), stddev=default_stddev(observer.filter, mechanism))
    run = observer.run(true.motion.t[1:], noisy(true.sensors(sensors), observer.stddev, 0))
    error = (run.q - true.motion.q[1:])[200:, true.z]
    assert np.sqrt(np.mean(error ** 2)) < 0.1
    P = run.covariance
    held = observer.filter.held if len(P) >= 2 * len(true.z) else []
    assert all(np.sqrt(P[held.index(i), held.index(i)]) < LOST for i in true.z if held)
    if free:
        assert 0 < observer.filter.parameters.values(run.mean[:, -1:]).min()


def test_there_are_noises_for_all():
    for name in OF_MECHANISMS:
        for mechanism, degrees in (('four_bar', 1), ('five_bar', 2), ('another', 3)):
            assert all(np.size(value) in (1, degrees) for value in default_noises(name, mechanism).values())
    with pytest.raises(SettingError, match='estimator'):
        default_noises('Kalman', 'four_bar')
