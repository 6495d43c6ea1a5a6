# SPDX-License-Identifier: Apache-2.0
"""Samples that measure nothing, by their reason."""

from __future__ import annotations

import numpy as np
import pytest
from machine_variants import variant

from mbse_ros.machine import load_machine
from mbse_ros.monitor.bounds import RangeCheck, StateBounds, machine_ends
from mbse_ros.monitor.faults import Fault
from mbse_ros.streams.stages import ObserverStage

CHANNELS = 'position/lift', 'pressure/lift_piston', 'pressure/lift_rod'
USUAL = 0.2, 4e6, 3e6


def limits(**changes: object) -> RangeCheck:
    machine = variant('patu655_lift', **changes)
    assert machine.channels == CHANNELS
    return RangeCheck(machine_ends(machine))


@pytest.mark.parametrize('changes, samples, found', [
    ({}, USUAL, {}),
    ({}, (0.2, -70e3, 3e6), {}),                    # 12 kPa of noise: 6 deviations are 72 kPa
    ({}, (0.2, -75e3, 3e6), {Fault.VACUUM: [1]}),
    ({'sensors__lift_piston__reference': 'gauge'}, (0.2, -170e3, 3e6), {}),
    ({'sensors__lift_piston__reference': 'gauge'}, (0.2, -180e3, 3e6), {Fault.VACUUM: [1]}),
    ({'sensors__lift_rod__range': ['0 MPa', '3 MPa']}, USUAL, {Fault.SATURATED: [2]}),
    ({'sensors__lift_rod__range': ['0 MPa', '3.01 MPa']}, USUAL, {}),
    ({'sensors__lift_rod__range': ['3.04 MPa', '9 MPa']}, USUAL, {}),           # 8 kPa of noise
    ({'sensors__lift_rod__range': ['3.05 MPa', '9 MPa']}, USUAL, {Fault.SATURATED: [2]}),
    ({}, (-0.05, 4e6, 3e6), {}),                    # of a stroke of 0.535 m
    ({}, (-0.06, 4e6, 3e6), {Fault.FAR: [0]}),
    ({}, (0.59, 4e6, 3e6), {Fault.FAR: [0]}),
    ({}, (0.2, 33e6, 3e6), {Fault.FAR: [1]}),              # pump 10 MPa, areas 1.46 to 1, a load that stops: 29 MPa
    ({}, (np.nan, np.nan, np.nan), {})])
def test_one_sample(changes: dict, samples: tuple, found: dict) -> None:
    assert limits(**changes).take(samples) == found


@pytest.mark.parametrize('entry, value, said', [
    ('position/lift', 0.58, ''), ('position/lift', 0.6, 'lift at 0.600 m, far outside'),
    ('position/lift', -0.06, 'lift at -0.060 m'), ('velocity/lift', 1.5, ''),
    ('velocity/lift', -2.0, 'lift at -2 m/s'), ('pressure/lift_rod', 31e6, ''),
    ('pressure/lift_rod', 40e6, 'pressure of lift_rod at 40 MPa'),
    ('pressure/lift_rod', -4e6, 'pressure of lift_rod at -4 MPa')])
def test_one_state(entry: str, value: float, said: str) -> None:
    """A tenth of a range beyond it is borne; of speeds and pressures also 6 of their deviations."""
    names = 'position/lift', 'velocity/lift', 'acceleration/lift', 'pressure/lift_piston', 'pressure/lift_rod'
    mean, bounds = np.array([0.2, 0.0, 0.0, 4e6, 3e6]), StateBounds(variant('patu655_lift'), names)
    mean[names.index(entry)] = value
    found = bounds.broken(mean, np.array([1e-8, 1e-4, 1.0, 1e8, 1e8]))
    assert found is None and not said or found[0].startswith(said or '-') and found[1] is Fault.OUT_OF_RANGE
    wide = bounds.broken(mean, np.array([1e-8, 1.0, 1.0, 1e14, 1e14]))
    assert bool(wide) is (bool(said) and entry == 'position/lift')
    vague = bounds.broken(mean * (entry != 'position/lift'), np.array([1.0, 0, 0, 0, 0]))
    assert 'not known to 0.054' in vague[0] and vague[1] is Fault.VAGUE or said


def test_a_swing_that_is_too_fast_has_the_unit_of_an_angle() -> None:
    machine = load_machine('zx200')
    names = tuple(f'{kind}/swing_joint' for kind in ('position', 'velocity', 'acceleration'))
    said, fault = StateBounds(machine, names).broken(np.array([0.0, 1e3, 0.0]), np.array([1e-8, 1e-4, 1.0]))
    assert said.startswith('swing_joint at 1e+03 rad/s, far faster') and fault is Fault.OUT_OF_RANGE


def test_a_jump_far_outside_has_one_reason_and_is_forgotten() -> None:
    it = ObserverStage(variant('patu655_lift'))._monitor
    assert it._unusable(0.0, list(USUAL)) == {}
    assert it._unusable(0.01, [0.3, 4e6, 3e6]) == {Fault.JUMPED: [0]}
    assert it._unusable(0.02, [0.9, 4e6, -1e6]) == {Fault.FAR: [0], Fault.VACUUM: [2]}
    it.forget_samples()
    assert it._unusable(0.03, [0.3, 4e6, 3e6]) == {}
