# SPDX-License-Identifier: Apache-2.0
"""Faults that contradict the machine in one motion and agree in the next: no mass with a good status for long."""

from collections import Counter

import numpy as np
import pytest
from core_support import feed

from mbse_ros.machine import load_machine
from mbse_ros.simulation.crane import CraneSettings, SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import PayloadStatus
from mbse_ros.studies.fault_cases import FaultCase, run_case

WRONG = 'seconds_wrong_while_ok'


@pytest.mark.parametrize('fault, sensor, most', (('in_kPa', 'pressure/lift_rod', 0.0),
                                                 ('swapped', 'pressure/lift_piston', 0.5)))
def test_a_fault_of_the_wiring_is_held(fault, sensor, most):
    """patu655_lift with unknown valves: 1.4 and 1.8 s before trust and noise were looked at."""
    row = run_case(FaultCase('patu655_lift', 'unknown', 1, fault, sensor, 8.0, 10.0))
    assert row['detected_s'] < 1.5
    assert row[WRONG] <= most


@pytest.mark.parametrize('valve, fault, sensor', (('orifice', 'swapped', 'pressure/lift_piston'),
                                                  ('unknown', 'another_line', 'pressure/lift_rod')))
def test_an_error_of_the_model_is_no_excuse_for_a_wrong_sensor(valve, fault, sensor):
    """patu655_lift from the first sample on: 3.1 and 6.1 s were wrong while an error of the model explained them."""
    row = run_case(FaultCase('patu655_lift', valve, 1, fault, sensor, 0.0, 24.0))
    assert row['detected_s'] < 1.5 and row[WRONG] < 0.5


def test_another_unit_is_named_from_the_start():
    row = run_case(FaultCase('patu655_lift', 'unknown', 1, 'in_bar', 'pressure/lift_rod', 8.0, 3.0))
    assert row['isolated'] and row['blamed'] == ['pressure/lift_rod']
    assert row['detected_s'] < 0.5 and 'another unit' in row['reason'] and row['seconds_ok'] == 0.0


def test_an_excavator_that_digs_is_trusted():
    """With unknown valves it takes 5 s until 2000 kg are known; a mass was there for 0.6 s of the first 12."""
    machine, plant, seed = load_machine('zx200_can'), plant_of(load_machine('zx200_can')), 20
    numbers = plant.machine.parameters
    true = numbers.mean + numbers.stddev * np.random.default_rng([seed, 7]).standard_normal(len(numbers.mean))
    frames = list(SimulatedCrane(machine, 2000.0, seed, cycle_by_name('dig', machine, seed), CraneSettings(rate=100.0),
                                 true, plant).advance(12 * 10 ** 9))
    outputs = [output.payload for output in feed(Pipeline(load_machine('zx200_can', 'unknown')), frames)]
    found = Counter(payload.status for payload in outputs)
    assert found[PayloadStatus.UPDATING] > 120 and found[PayloadStatus.IMPLAUSIBLE] < 400
    carried = [payload for payload in outputs if 9.0 < payload.stamp_ns * 1e-9 < 11.0]
    assert len(carried) > 100 and all(payload.lower <= 2000.0 <= payload.upper for payload in carried)
