# SPDX-License-Identifier: Apache-2.0
"""The force balance's error is found where a real machine is not that of its file, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from core_support import crane, simulate
from machine_variants import changed
from spoilt_runs import SPOILT

from mbse_ros.bags.channel_samples import Sample
from mbse_ros.errors import SettingError
from mbse_ros.filters.force_error import BIASED, ForceError, stated_errors
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import load_machine
from mbse_ros.monitor.faults import Fault, ObserverStatus, PayloadStatus
from mbse_ros.offline.bag import estimate_samples, parse_tuning
from mbse_ros.offline.checks.log_verdict import state_lines
from mbse_ros.payload.mass import NOISE, UNBALANCED
from mbse_ros.simulation.crane import SimulatedCrane, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.simulation.effects import EFFECTS, LIFTS
from mbse_ros.simulation.physics import NOTHING
from mbse_ros.streams.machine_monitor import FOLLOWED
from mbse_ros.streams.pipeline import Pipeline

LOAD = 200.0


@lru_cache(maxsize=2)
def frames(damped):
    """Lift, hold, lower of a crane, whose cylinder may have a damper beside it that its file has not."""
    machine = load_machine('patu655_lift')
    plant = plant_of(machine, physics=EFFECTS['parallel_damper'].physics if damped else NOTHING)
    return tuple(SimulatedCrane(machine, LOAD, 1, WorkCycle(0.3, LIFTS[:7], timed=True), plant=plant).run())


def run(damped, valve, force_error=-1.0):
    pipeline = Pipeline(load_machine('patu655_lift', valve), observer=ObserverSettings(force_error=force_error))
    return pipeline, [output for frame in frames(damped) for name, value in (
        *frame.commands.items(), *frame.samples.items()) for output in pipeline.add(name, frame.stamp_ns, value)]


def updating(outputs):
    return [item.payload for item in outputs if item.payload.status is PayloadStatus.UPDATING]


@pytest.mark.parametrize('valve', ['orifice', 'unknown'])
def test_a_force_beside_the_piston_is_found_and_the_interval_holds(valve):
    pipeline, outputs = run(True, valve)
    assert pipeline.payload.budget[0].cause == UNBALANCED + NOISE
    found = [k for k, item in enumerate(outputs) if Fault.FORCE_BALANCE in item.state.faults]
    assert found and 'lift' in outputs[found[0]].state.reason and 'kN' in outputs[found[0]].state.reason
    last, later = outputs[-1].payload, updating(outputs[found[0]:])
    assert last.lower < LOAD < last.upper and last.upper - last.lower < 200.0
    assert len(later) > 300 and all(abs(item.mass - LOAD) < item.upper - item.lower for item in later)
    assert not any(item.payload.faults & (Fault.LOAD_CHANGES | Fault.CONTRADICTION) for item in outputs[found[0]:])
    _, fixed = run(True, valve, force_error=0.0)
    assert not any(Fault.FORCE_BALANCE in item.state.faults for item in fixed)
    last = fixed[-1].payload
    assert not last.lower < LOAD < last.upper       # what is repaired


@pytest.mark.parametrize('valve', ['orifice', 'unknown'])
def test_nothing_changes_on_a_machine_that_is_that_of_its_file(valve):
    (_, adaptive), (_, fixed) = run(False, valve), run(False, valve, force_error=0.0)
    assert all(np.array_equal(a.state.mean, b.state.mean) and np.array_equal(a.state.covariance, b.state.covariance)
               and repr(a.payload) == repr(b.payload) for a, b in zip(adaptive, fixed, strict=True))
    assert not any(Fault.FORCE_BALANCE in item.state.faults for item in adaptive)


@pytest.mark.parametrize(('name', 'stated', 'largest', 'soil'), [
    ('patu655_lift', -1.0, 0.1, False), ('zx200', -1.0, 0.1, True), ('zx200', 0.2, 0.2, False),
    ('patu655_lift', 0.0, 0.0, False)])
def test_where_a_tool_touches_soil_such_a_bias_is_soil_by_default(name, stated, largest, soil):
    error = Pipeline(load_machine(name), observer=ObserverSettings(force_error=stated)).observer._observer._error
    assert error._largest[:-1] == pytest.approx(2.0 * (largest * error._pressure) ** 2 * 0.3)
    assert error._outer == soil


def test_a_largest_error_between_none_and_the_usual_one_is_refused():
    with pytest.raises(SettingError, match='-1, or from 0 to 1'):
        Pipeline(load_machine('patu655_lift'), observer=ObserverSettings(force_error=-0.5))


STATED = {'cylinders/lift/force_error': {'stddev': '4 kN', 'time': '3 s'}}


@pytest.mark.parametrize(('changes', 'density', 'slow'), [
    ({}, 0.0, 0.0), (STATED, 2 * 0.5093 ** 2 * 3.0, 0.0),
    ({'cylinders/lift/force_error': {'stddev': '4 kN'}}, 2 * 0.5093 ** 2 * 0.3, 9.0),
    ({'cylinders/lift/force_error': {'stddev': '4 kN', 'time': '1 s'}}, 2 * 0.5093 ** 2, 2.0),
    ({**STATED, 'cylinders/lift/count': 2}, 2 * 0.5093 ** 2 * 3.0, 0.0)])     # of each of two
def test_what_the_file_states_is_known_from_the_start(changes, density, slow):
    machine = changed('patu655_lift', changes)
    assert stated_errors(machine) == (pytest.approx([density], rel=1e-3), pytest.approx([slow]))
    running = Pipeline(machine, observer=ObserverSettings(force_psd=1e-3)).observer._observer.running
    places = running.filter.tuning.places
    assert running.tuning[places['force_psd']] == pytest.approx([1e-3 + density], rel=1e-3)
    assert running.tuning[places['force_slow']] == pytest.approx([slow])


@pytest.mark.parametrize('name', ['patu655', 'zx200'])
def test_each_cylinder_has_its_own_error(name):
    first, *_ = load_machine(name).description.cylinders
    machine = changed(name, {f'cylinders/{first}/force_error': {'stddev': '1 kN'}})
    density, _ = stated_errors(machine)
    assert density[0] > 0.0 and not density[1:].any()


def test_with_a_stated_error_the_interval_holds_from_the_first_seconds_on():
    machine = changed('patu655_lift', STATED)
    pipeline = Pipeline(machine, observer=ObserverSettings())
    outputs = [output for frame in frames(True) for name, value in (
        *frame.commands.items(), *frame.samples.items()) for output in pipeline.add(name, frame.stamp_ns, value)]
    found = updating(outputs)
    assert len(found) > 500 and all(item.lower < LOAD < item.upper for item in found)
    assert not any(Fault.FORCE_BALANCE in item.state.faults for item in outputs)
    assert any(cause.cause == 'noise of the sensors, cylinders.lift.force_error' for cause in pipeline.payload.budget)
    without = updating(run(True, 'orifice')[1])[:200]
    assert sum(item.lower < LOAD < item.upper for item in without) < 20     # what is repaired


def test_an_estimate_of_a_log_says_it():
    estimate = estimate_samples([Sample(name, frame.stamp_ns, value) for frame in frames(True)[:700]
                                 for name, value in (*frame.commands.items(), *frame.samples.items())],
                                load_machine('patu655_lift'), parse_tuning(()))
    line, = (line for line in estimate.warnings if 'force balance does not fit' in line)
    kg = next(cause.kg for cause in estimate.budget if cause.noise)
    assert 'lift' in line and f'makes {kg:.2g} kg of the mass' in line
    faults = estimate.track.observer_faults.copy()
    faults[-1] = 0      # it holds no longer: the noise of the end is not its
    over, = state_lines(replace(estimate.track, observer_faults=faults), estimate.budget)
    assert 'lift' in over and 'of the mass by now' not in over


def test_an_error_that_is_found_beyond_what_the_file_states_is_named_too():
    little = changed('patu655_lift', {'cylinders/lift/force_error': {'stddev': '100 N'}})
    estimate = estimate_samples([Sample(name, frame.stamp_ns, value) for frame in frames(True)[:700]
                                 for name, value in (*frame.commands.items(), *frame.samples.items())],
                                little, parse_tuning(()))
    noise, = (cause for cause in estimate.budget if cause.noise)
    assert noise.cause == UNBALANCED + 'noise of the sensors, cylinders.lift.force_error'
    assert any(f'makes {noise.kg:.2g} kg of the mass' in line for line in estimate.warnings)


def bands(outputs, frames_):
    """Share of the bands of 95 % of the velocity that hold it, while the payload is UPDATING."""
    found = [(item.state.mean[-1, 1], item.state.covariance[1, 1] ** 0.5, item.state.stamp_ns) for item in outputs
             if item.payload.status is PayloadStatus.UPDATING and item.state.status is ObserverStatus.OK]
    mean, stddev, stamps = map(np.array, zip(*found))
    true = np.interp(stamps, [frame.stamp_ns for frame in frames_], [frame.velocity[0] for frame in frames_])
    return float(np.mean(np.abs(mean - true) < 1.96 * stddev))


def sagging(pressure_error):
    """A crane whose pump sags, and follows the load, as that of its file does not."""
    machine = load_machine('patu655_lift')
    frames_ = SimulatedCrane(machine, LOAD, 1, WorkCycle(0.3, LIFTS[:4], timed=True), plant=plant_of(
        machine, physics=EFFECTS['load_sensing'].physics)).run()
    pipeline = Pipeline(machine, observer=ObserverSettings(pressure_error=pressure_error))
    return frames_, [output for frame in frames_ for name, value in (
        *frame.commands.items(), *frame.samples.items()) for output in pipeline.add(name, frame.stamp_ns, value)]


def test_an_error_of_the_pump_is_found_and_pressures_follow_their_samples():
    frames_, outputs = sagging(1000.0)
    reasons = [item.state.reason for item in outputs if Fault.FORCE_BALANCE in item.state.faults]
    assert reasons and all(reason.startswith(FOLLOWED) for reason in reasons)
    last = outputs[-1].payload
    assert last.lower < LOAD < last.upper and last.upper - last.lower < 60.0
    assert len(updating(outputs)) > 100 and bands(outputs, frames_) > 0.9
    _, fixed = sagging(0.0)
    assert not any(Fault.FORCE_BALANCE in item.state.faults for item in fixed)
    assert not updating(fixed)      # what is repaired: its samples are refused, and there is no mass


def test_a_wrong_valve_is_no_error_of_the_force_balance():
    pipeline, outputs = run(False, 'compensated')
    ratios = np.array([item.state.innovation / item.state.innovation_stddev for item in outputs[100:]])
    sums = np.nansum(ratios.reshape(len(ratios), -1)[:100], axis=0) / 10.0
    assert np.abs(sums).max() > BIASED              # its bias is there
    assert not any('force balance' in item.state.reason for item in outputs)
    assert not pipeline.observer._observer._error.density.any()


def test_a_load_that_is_taken_and_dropped_is_no_error_of_the_force_balance():
    machine = load_machine('patu655_lift')
    moves = tuple(Move(v, 1.5) for _ in range(4) for v in (4.0, -4.0))
    cycle = WorkCycle(0.3, moves, load=((0.0, 0.0), (2.4, 0.0), (2.5, 0.5), (5.9, 0.5), (6.0, 0.0), (9.4, 0.0),
                                        (9.5, 1.0), (12.0, 1.0)))
    frames_ = SimulatedCrane(machine, 400.0, 1, cycle, plant=plant_of(machine)).run()
    pipeline = Pipeline(machine, observer=ObserverSettings())
    outputs = [output for frame in frames_ for name, value in (*frame.commands.items(), *frame.samples.items())
               for output in pipeline.add(name, frame.stamp_ns, value)]
    assert not any(Fault.FORCE_BALANCE in item.state.faults for item in outputs)
    last = outputs[-1].payload
    assert last.lower < 400.0 < last.upper and last.upper - last.lower < 60.0


def test_spikes_of_a_pressure_are_no_error_of_the_force_balance():
    channel, change = SPOILT['spikes']
    pipeline = Pipeline(crane('unknown'), observer=ObserverSettings())
    outputs = [output for frame in simulate(200.0, 2)[:500] for name, value in (
        *frame.commands.items(), *frame.samples.items()) for output in pipeline.add(
            name, frame.stamp_ns, change(frame.stamp_ns * 1e-9, value) if name == channel else value)]
    assert any(Fault.REJECTED in item.state.faults for item in outputs)
    assert not any(Fault.FORCE_BALANCE in item.state.faults for item in outputs)


def test_what_was_weighed_before_counts_less_and_the_load_stays_the_same():
    pipeline, _ = run(False, 'orifice')
    estimator = pipeline.payload._estimator
    rows = np.zeros((1, pipeline.payload._columns))
    before, kept = estimator.hold(rows), estimator.kept
    rows[0, -1] = np.log(1e-4)
    after = estimator.hold(rows)
    assert after.noise == pytest.approx(100.0 * before.noise, rel=1e-6) and estimator.kept == pytest.approx(kept)
    rows[0, -1], rows[0, 2] = 0.0, np.log(1e-4)     # a load that changes
    estimator.hold(rows)
    assert estimator.kept < kept - 9.0


def test_the_density_follows_the_residuals_within_its_bounds():
    machine = load_machine('patu655_lift')
    observer = Pipeline(machine).observer._observer
    error: ForceError = observer._error
    error.configure(ObserverSettings(force_error=0.1, pressure_error=100.0))
    largest = 2.0 * (0.1 * error._pressure) ** 2 * 0.3
    error._densities[:], error._peak[:] = (0.01 * largest, 1.0), 1.0
    error._match(np.array([9.0, 16.0]), 0.01)
    assert error.density == pytest.approx(0.09 * largest) and error.walk == pytest.approx(16.0)
    error._match(np.array([1e6, 1e6]), 0.01)
    assert error.density == pytest.approx(largest) and error.walk == pytest.approx(100.0)
    error._peak[:] = 0.0
    for _ in range(40_000):
        error._match(np.array([0.01, 0.01]), 0.01)
    assert error.found is None and not error.density.any() and not error.walk
    error.configure(ObserverSettings(force_error=0.0, pressure_error=0.0))
    assert error.take(observer.running, np.zeros(0), np.zeros((1, 0)), np.zeros((1, 0)), 0.01, True) == 1.0
