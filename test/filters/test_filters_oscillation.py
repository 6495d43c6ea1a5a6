# SPDX-License-Identifier: Apache-2.0
"""A mass that oscillates, as where a boom bends: found by its rhythm, and then no load that changes."""

from __future__ import annotations

import numpy as np
import pytest

from mbse_ros.filters.activity import STEP_TIME
from mbse_ros.filters.mass_information import MEMORY, SIGNIFICANT
from mbse_ros.filters.oscillation import BLOCK, SHARE, WINDOW, MassOscillation, sine_of
from mbse_ros.monitor.faults import Fault
from mbse_ros.simulation.sensor_faults import samples_with
from mbse_ros.studies.fault_cases import fresh_pipeline, machine_of, outputs_of
from mbse_ros.studies.reality_cases import RealityCase, frames_with, run_reality

DT = 1e-3


def rows(masses, stddev=10.0):
    """What 10 ms segments report of the mass: (n, 10, 4)."""
    found = np.zeros((len(masses), 4))
    found[:, 0] = stddev ** -2
    found[:, 1] = masses / stddev ** 2
    return found.reshape(-1, 10, 4)


def looked(masses, stddev=10.0):
    """All oscillations that are found."""
    watch = MassOscillation()
    return [found for part in rows(masses, stddev) if (found := watch.take(part, DT))]


@pytest.mark.parametrize('frequency', [1.3, 2.0, 4.7])
def test_a_sine_is_found_with_frequency_and_amplitude(frequency):
    t, rng = np.arange(4000) * DT, np.random.default_rng(3)
    masses = 500.0 + 20.0 * t + 80.0 * np.cos(2 * np.pi * frequency * t + 1.0) + rng.normal(0.0, 30.0, len(t))
    found = looked(masses, 30.0)
    assert found
    for item in found:
        assert item.frequency == pytest.approx(frequency, abs=0.1)
        # a block averages over its own length
        assert item.amplitude == pytest.approx(80.0 * np.sinc(frequency * BLOCK), rel=0.08)
        assert item.share > 0.9


def test_noise_is_no_oscillation():
    rng, t = np.random.default_rng(5), np.arange(round(WINDOW / BLOCK)) * BLOCK
    shares = [sine_of(t, rng.normal(size=len(t)), np.ones(len(t)))[2] for _ in range(2000)]
    assert max(shares) < SHARE


@pytest.mark.parametrize('load', [
    lambda t: 500.0 * (t > 2.0), lambda t: 500.0 * np.clip((t - 1.0) / 1.5, 0, 1),
    lambda t: 250.0 * (t > 1.6) + 250.0 * (t > 2.6),        # poured in portions, a second apart: a saw about a line
    lambda t: 600.0 - 100.0 * np.floor(t / 0.7),            # shaken off
    lambda t: 500.0 * ((t > 1.5) & (t < 2.5)), lambda t: np.full(len(t), 500.0),
    lambda t: 500.0 + 200.0 * np.sin(2 * np.pi * 0.85 * t)],        # as fast as work moves a machine
    ids=['step', 'ramp', 'portions', 'shaken off', 'to and back', 'constant', 'work'])
def test_a_load_that_changes_is_no_oscillation(load):
    t, rng = np.arange(8000) * DT, np.random.default_rng(7)
    assert not looked(load(t) + rng.normal(0.0, 10.0, len(t)))


def test_with_its_variance_the_trend_of_the_mass_is_not_significant():
    """The trend of ``mass_information``, literally, of a sine without noise."""
    t = np.arange(5000) * DT
    masses = 500.0 + 80.0 * np.sin(2 * np.pi * 2.0 * t)
    found = looked(masses)[-1]
    trend, largest = 0.0, 0.0
    for k, change in enumerate((masses - 500.0) / np.sqrt(found.variance)):
        trend = (1.0 - MEMORY) ** (DT / STEP_TIME) * trend + change
        largest = max(largest, trend ** 2 * (1.0 - (1.0 - MEMORY) ** 2)) if k > 2000 else 0.0     # it has settled
    assert largest == pytest.approx(SIGNIFICANT ** 2, rel=0.1)
    assert found.significance(rows(masses)[0], DT) == pytest.approx(found.variance / 100.0)


def test_a_boom_that_bends_leaves_the_mass_usable():
    """Most of the motion was without a mass before, as that of a load that changes."""
    case = ('patu655_lift', 'boom_bends', 'orifice', 1, 24.0)
    weighed, fixed = run_reality(RealityCase(*case)), run_reality(RealityCase(*case, ('observer.force_error=0',)))
    assert fixed.row['seconds_unknown'] > 0.5 * fixed.moved
    assert weighed.row['seconds_unknown'] < 0.3 * weighed.moved
    assert weighed.row['holds'] and weighed.row['seconds_wrong'] <= 1.0


def test_the_reason_names_the_frequency_and_a_rigid_boom_has_none():
    for effect, expected in (('boom_bends', True), ('none', False)):
        machine = machine_of('patu655_lift', 'orifice')
        frames = frames_with('patu655_lift', effect, 1, 24.0)
        outputs, _ = outputs_of(fresh_pipeline('patu655_lift', 'orifice'), samples_with({}, machine, frames, 0.0, 1))
        reasons = [output.state.reason for output in outputs if Fault.FORCE_BALANCE in output.state.faults]
        assert any('oscillates at 1.9 Hz' in reason or 'oscillates at 2.0 Hz' in reason
                   for reason in reasons) is expected
