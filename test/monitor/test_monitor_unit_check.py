# SPDX-License-Identifier: Apache-2.0
"""Pressures in another unit are known by their noise, samples of mechanisms by what is predicted."""

import numpy as np
import pytest

from mbse_ros.machine import load_machine
from mbse_ros.monitor.units import FAINT, LARGEST, SAMPLES, UnitCheck, UnitRatio


@pytest.fixture(scope='module')
def machine():
    return load_machine('patu655_lift', 'unknown')


def found(machine, piston, rod=None):
    """Names of what is found after samples (k,) of the piston's pressure, Pa, beside a sound rod's."""
    faint, names = UnitCheck(machine), machine.channels
    rng = np.random.default_rng(3)
    for k, value in enumerate(piston):
        samples = [0.0] * len(names)
        samples[names.index('pressure/lift_piston')] = float(value)
        samples[names.index('pressure/lift_rod')] = float(2e5 + 8e3 * rng.standard_normal() if rod is None else rod[k])
        faint.take(samples, samples)
    return [names[place] for place in faint.found]


def pressure(k=60, seed=1, stddev=12e3):
    """A chamber in motion, Pa: a swing of 1 MPa at 2 Hz on 8 MPa, and the noise of its sensor."""
    t = np.arange(k) * 0.01
    return 8e6 + 1e6 * np.sin(2 * np.pi * 2.0 * t) + stddev * np.random.default_rng(seed).standard_normal(k)


@pytest.mark.parametrize('unit', (1e5, 1e3, 1e6))
def test_another_unit_is_found_in_motion(machine, unit):
    assert found(machine, pressure() / unit) == ['pressure/lift_piston']


def test_a_chamber_at_the_tank_or_empty_is_none(machine):
    noise = 12e3 * np.random.default_rng(2).standard_normal(400)
    for level in (0.0, 2e4, 1e5):
        assert found(machine, level + noise, 8e3 * np.random.default_rng(5).standard_normal(400)) == []


def test_a_good_sensor_with_a_generous_deviation_and_one_that_repeats_are_none(machine):
    quiet = 3.0 * FAINT * 12e3 * np.random.default_rng(2).standard_normal(100)
    assert found(machine, 1e4 + quiet) == []
    assert found(machine, np.full(100, 1e4)) == []          # a coarse one, or one that is stuck: not this rule's
    assert found(machine, 2 * LARGEST + 1e-3 * quiet) == []  # a reading that no unit explains


def test_it_is_believed_again_when_it_is_mended(machine):
    wrong, right = pressure() / 1e5, pressure()
    assert found(machine, wrong) == ['pressure/lift_piston']
    assert found(machine, [*wrong, right[0]]) == []
    assert found(machine, [*right, *wrong[:SAMPLES - 1]]) == []
    assert found(machine, [*right, *wrong[:SAMPLES]]) == ['pressure/lift_piston']


@pytest.mark.parametrize('level, noise, is_found', [
    (38e3, 12.0, True), (42e3, 12.0, False),        # 40 kPa: the largest reading that 40 MPa in kPa give
    (1e4, 48.0, True), (1e4, 150.0, False)])        # 0.005 of 12 kPa are 60 Pa
def test_both_sides_of_a_limit(machine, level, noise, is_found):
    samples = level + noise * np.random.default_rng(4).standard_normal(60)
    assert found(machine, samples) == ['pressure/lift_piston'] * is_found


def test_it_takes_twenty_samples_and_a_step_of_600_pa_to_change_it(machine):
    wrong = pressure() / 1e5
    assert found(machine, wrong[:19]) == [] and found(machine, wrong[:20]) == ['pressure/lift_piston']
    assert found(machine, [*wrong, wrong[-1] + 550.0]) == ['pressure/lift_piston']
    assert found(machine, [*wrong, wrong[-1] + 650.0]) == []


@pytest.mark.parametrize('amplitude, is_found', [(24.5, True), (25.1, False)])
def test_noise_is_measured_by_second_differences(machine, amplitude, is_found):
    """To and fro by a they are 4 a, and 1.652 deviations of white noise: 99.1 Pa at the limit of 60 Pa."""
    samples = 1e4 + amplitude * (-1.0) ** np.arange(40)
    assert found(machine, samples) == ['pressure/lift_piston'] * is_found


RNG = np.random.default_rng(5)
SLOW = 0.02 * np.arange(60.0)       # rad: a prediction that moves
DT, LOST_AFTER = 0.014, 0.5         # s: a quarter of lost_after is 9 intervals of samples, not 8


def named(values, predicted, unit='rad', variance=1e-4, angular=False, used=0, dt=DT):
    """What the samples of a sensor are in that the gate refuses, after ``used`` more that it does not."""
    watch = UnitRatio(unit, angular)
    for k, (value, at) in enumerate(zip(values, predicted)):
        watch.take(k * dt, float(value), float(at), variance, True, LOST_AFTER)
    for k in range(used):
        watch.take((len(values) + k) * dt, 0.0, 0.0, variance, False, LOST_AFTER)
    return watch.found


@pytest.mark.parametrize('unit, factor, name', [
    ('rad', 180 / np.pi, 'degrees'), ('rad/s', 30 / np.pi, 'turns a minute'), ('m', 1e3, 'millimetres'),
    ('m/s', 3.6, 'kilometres an hour'), ('m/s^2', 1 / 9.80665, 'g'), ('N', 180 / np.pi, '')])
def test_a_unit_by_what_is_predicted(unit, factor, name):
    """By samples at rest, and in motion where the prediction has another zero; as long at any rate, but by three."""
    assert named([factor * 1.2] * 10, [1.2] * 10, unit) == name and named([factor * 1.2] * 9, [1.2] * 9, unit) == ''
    for dt, count in ((0.002, 64), (0.05, 4), (0.1, 3), (0.2, 3)):
        assert named([factor * 1.2] * count, [1.2] * count, unit, dt=dt) == name
        assert named([factor * 1.2] * (count - 1), [1.2] * (count - 1), unit, dt=dt) == ''
    assert named(factor * (SLOW + 3.0) + factor * 0.01 * RNG.standard_normal(60), SLOW, unit, 1e9) == name
    for count, found in ((9, ''), (10, name)):        # by its changes alone, and after samples of no unit
        assert named(factor * (SLOW[:count] + 3.0), SLOW[:count], unit, 1e9) == found
        assert named([5.0] * 20 + [factor * 1.2] * count, [1.2] * (20 + count), unit) == found


@pytest.mark.parametrize('factor, name', [(1.09, 'degrees'), (1.11, ''), (0.91, 'degrees'), (0.89, '')])
def test_a_factor_is_that_of_a_unit_to_a_tenth(factor, name):
    values = np.degrees(factor * 1.2) * np.ones(20)
    assert named(values, [1.2] * 20) == name and named(np.degrees(factor * SLOW), SLOW, 'rad', 1e9) == name
    assert named(values, [1.2] * 20, 'rad', 0.13 ** 2) == ''        # what is predicted is not known to a tenth


def test_what_is_no_unit():
    """A jump, a motion that the prediction does not explain, a ratio to a prediction that is near zero."""
    assert named(0.5 + SLOW, SLOW) == '' and named(0.5 + 1e-3 * RNG.standard_normal(60), 1e-3 * np.ones(60)) == ''
    assert named(30.0 * RNG.standard_normal(300), RNG.standard_normal(300)) == ''
    for share, name in ((0.2, 'degrees'), (0.26, '')):      # not explained of the changes: 0.04, 0.063
        rest = SLOW.std() * share * np.tile([1.0, -1.0], 30)
        assert named(np.degrees(SLOW + rest), SLOW, 'rad', 1e9) == name


def test_an_angle_that_wraps_and_a_sensor_that_is_right_again():
    at = SLOW + 3.0
    assert named(np.degrees(at), (at + np.pi) % (2 * np.pi) - np.pi, angular=True, variance=1e9) == 'degrees'
    assert named(np.degrees(at), at, used=9) == 'degrees' and named(np.degrees(at), at, used=10) == ''
