# SPDX-License-Identifier: Apache-2.0
"""Which sign of an axis of the base's accelerometer is likelier, by masses that follow its error or do not."""

from __future__ import annotations

import numpy as np
import pytest

from mbse_ros.description.load import known_machines, parse_mechanism
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.filters.mass_information import MassInformation
from mbse_ros.machine import Machine
from mbse_ros.payload.joint import JointEstimator
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.payload.signs import AxisSigns

IMU = 'base_imu: {kind: accelerometer, body: ground, stddev: 0.05 m/s^2}'
MACHINE = Machine(parse_mechanism(known_machines()['patu655_lift'].read_text().replace(
    '\nsensors:\n', f'\nsensors:\n  {IMU}\n')))
NAMES, NUMBERS = state_names(MACHINE, True)[0], MACHINE.parameters.consider_names
DT, MASS, SLOPE = 1e-3, 300.0, 25.0     # s; kg; kg by which a zero of 1 m/s^2 along x makes a mass larger
SAID = 'accelerometer/base_imu.x (sign, or another axis)'


def take(signs: AxisSigns, a: np.ndarray, information: float, follows: float, used: bool = True) -> None:
    """Steps with accelerations along x of a carrier, and masses of so much information each that are off by ``follows``
    times what such a zero does to them: 0 where the sign is right, -2 where it is wrong."""
    n, zero = len(a), NUMBERS.index('sensors.base_imu.bias[0]')
    mean, slopes = np.zeros((n, len(NAMES))), np.zeros((n, len(NUMBERS)))
    mean[:, NAMES.index('base_acceleration/x')] = a
    stddev = MACHINE.parameters.stddev[MACHINE.parameters.names.index(NUMBERS[zero])]
    slopes[:, zero] = information * SLOPE * stddev
    found = MassInformation(np.full(n, information), information * (MASS + follows * SLOPE * a), np.zeros(n), slopes,
                            np.zeros(n))
    signs.take(mean, found, np.full(n, used), MASS, DT)


SWAY = np.tile([1.0, -1.0], 50)     # m/s2


def per_step(size: float) -> float:
    """Information of each mass, 1/kg2, with which the masses of SWAY say ``size`` of the sum of I (D a)^2."""
    return size / (SLOPE ** 2 * len(SWAY))


@pytest.mark.parametrize('size, follows, wrong', [(14.0, -2.0, False), (16.0, -2.0, True), (16.0, 0.0, False),
                                                  (16.0, 2.0, False), (29.0, -1.5, False), (31.0, -1.5, True)])
def test_a_ratio_of_likelihoods_of_exp_30_says_it(size: float, follows: float, wrong: bool) -> None:
    """It is 2 S with the wrong sign, and S where the masses follow by 1.5 times."""
    signs = AxisSigns(MACHINE)
    take(signs, SWAY, per_step(size), follows)
    assert signs.wrong == SAID * wrong
    signs.reset()
    assert signs.wrong == ''


def test_steps_that_measure_no_mass_say_nothing() -> None:
    signs = AxisSigns(MACHINE)
    take(signs, SWAY, per_step(100.0), -2.0, used=False)
    assert signs.wrong == ''


def test_masses_that_are_off_by_far_more_count_as_three_times() -> None:
    """A blow is no sign: 4 S."""
    signs = AxisSigns(MACHINE)
    take(signs, SWAY, per_step(7.0), -100.0)
    assert signs.wrong == ''
    take(signs, SWAY, per_step(1.0), -100.0)
    assert signs.wrong == SAID


def test_a_tilt_that_stays_says_nothing_after_seconds() -> None:
    """Of 1 m/s2, for 10 s, from one step to the next: masses that are off by it say S of the first two seconds."""
    signs = AxisSigns(MACHINE)
    take(signs, np.zeros(10), 1e-9, 0.0)
    for _ in range(1000):
        take(signs, np.ones(10), 0.003 / SLOPE ** 2, -2.0)
    assert signs.wrong == ''
    for _ in range(100):        # as much of a sway
        take(signs, SWAY, 0.003 / SLOPE ** 2, -2.0)
    assert signs.wrong == SAID


def test_after_a_minute_of_other_masses_it_is_forgotten() -> None:
    """Of 60 there is 36 left after 30 s, 22 after a minute."""
    signs = AxisSigns(MACHINE)
    take(signs, SWAY, per_step(30.0), -2.0)
    for wrong in (True, False):
        for _ in range(30):
            take(signs, np.zeros(1000), 1e-9, 0.0)
        assert signs.wrong == SAID * wrong


def test_a_new_start_of_the_mass_forgets_it() -> None:
    estimator = JointEstimator(MACHINE, PayloadSettings())
    take(estimator._signs, SWAY, per_step(30.0), -2.0)
    assert estimator._signs.wrong == SAID
    estimator.reset()
    assert estimator._signs.wrong == ''
