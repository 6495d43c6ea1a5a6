# SPDX-License-Identifier: Apache-2.0
"""Every filter under gaps and faulty sensors: its covariance stays one, and it recovers or says that it is lost.

Long: ``benchmarks/filter_reliability.py``.
"""

import numpy as np
import pytest
from linkage_faults import FAULTS, Machine, course, estimated, observer_of, outcome, soundness

from mbse_ros.filters.filters import OF_MECHANISMS
from mbse_ros.streams.records import ObserverStatus

SLOW = {'UKF', 'SSUKF', 'SCKF', 'DIEKFpm', 'CEKF_penalty', 'dual', 'UKF_acceleration', 'SSUKF_acceleration'}
# Which find themselves again by themselves, whatever the fault.
RECOVER = {'DEKF', 'ADEKF', 'errorEKF', 'errorEKF_EJ', 'errorEKF_FE', 'AerrorEKF_FE', 'errorEKF_FE_SH', 'direct_EJ',
           'direct_FE', 'kinematic', 'joint'}
# Which the gate alone does not find again: the stage of the node does, by the samples that it refuses.
WRONG = {'SCKF', 'DIEKFpm', 'dual'}


@pytest.fixture(scope='module', params=[name for name in OF_MECHANISMS if name != 'CEKF_published'])
def observer(request):
    """In the virtual machine: to compile a filter takes longer than its steps here."""
    return observer_of(request.param, 'vm')


def test_the_covariance_stays_one(observer):
    blocks = 2 if observer.estimator in SLOW else 4
    found = course(observer, Machine(observer), ['gaps'] * blocks, 1250)
    assert found.sound, (found.least, found.asymmetry)


@pytest.mark.parametrize('kind', FAULTS)
def test_faults(observer, kind):
    steps = FAULTS[kind] // (4 if observer.estimator in SLOW else 1)
    found = outcome(observer, kind, steps)
    assert found.sound
    if observer.estimator in RECOVER:
        assert found.end == 'recovered'
    if found.end == 'diverged':         # an error with the time: the stage says LOST and restarts the filter
        assert observer.estimator in WRONG and kind != 'spikes'
    if kind == 'spikes':
        assert found.end == 'recovered' or observer.estimator.endswith('acceleration')
    if kind == 'gap of 30 s' and observer.estimator not in WRONG:
        assert found.spread > 0.5
    if found.end == 'wrong':
        assert observer.estimator in WRONG or kind == 'constant'


@pytest.mark.parametrize('estimator, kind, steps', [
    ('dual', 'constant', 1000), ('dual', 'gap of 30 s', 1500), ('kinematic', 'constant', 1000)])
def test_the_stage_says_lost_and_finds_the_mechanism_again(estimator, kind, steps):
    found = estimated(estimator, kind, steps)
    states, errors = [estimate.status for estimate, _ in found], np.array([error for _, error in found])
    assert ObserverStatus.LOST in states[400:] and errors[400:-200].max() > 0.5
    assert set(states[-200:]) == {ObserverStatus.OK} and errors[-200:].max() < 0.05


def test_an_indefinite_covariance_is_found():
    assert soundness(np.diag([1.0, 2.0]))[0] == pytest.approx(1.0)
    assert soundness(np.array([[1.0, 3.0], [3.0, 4.0]]))[0] < 0
    assert soundness(np.array([[1.0, 0.2], [0.1, 1.0]]))[1] > 0.09
