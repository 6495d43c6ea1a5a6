# SPDX-License-Identifier: Apache-2.0
"""Late and out-of-order samples, samples beyond the gate, sensors that send one value only."""

import numpy as np
import pytest

from mbse_ros.errors import SampleError
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import load_machine
from mbse_ros.simulation.crane import SimulatedCrane
from mbse_ros.streams.channel_buffer import Reorder
from mbse_ros.streams.interpolation import InterpolationSettings, Interpolator
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import ObserverStatus

MS = 1_000_000


@pytest.fixture(scope='module')
def crane_samples():
    """Six seconds of the default crane: (stamp, channel, value) in order, and the machine."""
    machine = load_machine('patu655_lift')
    samples = []
    for frame in SimulatedCrane(machine, 100.0, seed=4).advance(6_000 * MS):
        samples += [(frame.stamp_ns, name, value) for name, value in {**frame.commands, **frame.samples}.items()]
    return machine, samples


def run(machine, samples, **interpolation):
    pipeline, outputs, refused = Pipeline(machine, InterpolationSettings(**interpolation)), [], []
    for stamp, channel, value in samples:
        try:
            outputs += pipeline.add(channel, stamp, value)
        except SampleError as error:
            refused.append(error)
    return [*outputs, *pipeline.flush()], refused


def shuffled(samples, largest, seed=0):
    """The samples in an order of arrival that differs by up to ``largest`` ns from that of their stamps."""
    rng = np.random.default_rng(seed)
    arrival = [stamp + rng.uniform(0, largest) for stamp, _, _ in samples]
    return [samples[k] for k in np.argsort(arrival, kind='stable')]


def test_out_of_order_samples_give_the_same_estimates(crane_samples):
    machine, samples = crane_samples
    straight, _ = run(machine, samples)
    mixed, refused = run(machine, shuffled(samples, 45 * MS), delay=0.05)
    assert not refused
    assert [o.state.stamp_ns for o in mixed] == [o.state.stamp_ns for o in straight]
    for one, other in zip(straight, mixed):
        assert np.array_equal(one.state.mean, other.state.mean)
        assert np.array_equal(one.payload.mass, other.payload.mass, equal_nan=True)


def test_without_a_window_they_are_refused(crane_samples):
    machine, samples = crane_samples
    assert run(machine, shuffled(samples, 45 * MS))[1]


def test_the_window_has_an_end():
    reorder = Reorder(10)
    assert reorder.add('a', 100, 1.0) == []
    assert reorder.add('a', 95, 2.0) == []
    assert reorder.add('a', 106, 3.0) == [('a', 95, 2.0)]
    assert reorder.add('a', 94, 4.0) == [('a', 94, 4.0)]       # too late: whoever reads it refuses it
    assert reorder.flush() == [('a', 100, 1.0), ('a', 106, 3.0)]


def test_a_clock_that_goes_back_empties_the_window():
    reorder = Reorder(10)
    for stamp in (1000, 1010, 1020):
        reorder.add('a', stamp, 0.0)
    assert reorder.add('a', 500, 7.0) == [('a', 1020, 0.0), ('a', 500, 7.0)]


def test_an_unknown_channel_is_refused_at_once():
    interpolator = Interpolator(('a',), (), InterpolationSettings(delay=0.1))
    with pytest.raises(SampleError, match='one of a'):
        interpolator.add('b', 0, 1.0)


def faulty(samples, channel, fault, begin=4_000 * MS, end=10_000 * MS):
    return [(stamp, name, fault(value) if name == channel and begin <= stamp < end else value)
            for stamp, name, value in samples]


def test_a_wild_sample_is_rejected_and_named(crane_samples):
    machine, samples = crane_samples
    wild = faulty(samples, 'pressure/lift_piston', lambda p: p + 3e6, 4_000 * MS, 4_010 * MS)
    outputs, _ = run(machine, wild)
    found = [o.state for o in outputs if 'rejected: pressure/lift_piston' in o.state.reason]
    assert len(found) == 1 and found[0].status is ObserverStatus.OK
    clean, _ = run(machine, samples)
    before, after = clean[-1].state, outputs[-1].state
    stddev = np.sqrt(np.diag(before.covariance))
    assert (np.abs(after.mean[-1] - before.mean[-1]) < stddev).all()


def test_without_a_gate_it_is_believed(crane_samples):
    machine, samples = crane_samples
    wild = faulty(samples, 'pressure/lift_piston', lambda p: p + 3e6, 4_000 * MS, 4_010 * MS)
    pipeline = Pipeline(machine, observer=ObserverSettings(gate=1.0))
    states = [o.state for stamp, channel, value in wild for o in pipeline.add(channel, stamp, value)]
    assert not any('rejected' in state.reason for state in states)
    assert max(np.nanmax(np.abs(s.innovation / s.innovation_stddev)) for s in states) > 20


def test_a_lasting_contradiction_holds_the_mass(crane_samples):
    machine, samples = crane_samples
    outputs, _ = run(machine, faulty(samples, 'pressure/lift_piston', lambda p: -p))
    late = [o for o in outputs if o.state.stamp_ns > 4_500 * MS]
    assert all(o.state.status is not ObserverStatus.OK for o in late)
    assert all('below vacuum: pressure/lift_piston' in o.state.reason for o in late)


def test_health_of_a_model_that_fits_and_of_one_that_does_not(crane_samples):
    machine, samples = crane_samples
    figures = []
    for of in (samples, [(t, c, v * 1.1 if c.startswith('pressure') else v) for t, c, v in samples]):
        pipeline = Pipeline(machine)
        assert np.isnan(pipeline.observer.health().mean_nis)
        for stamp, channel, value in of:
            pipeline.add(channel, stamp, value)
        health = pipeline.observer.health()
        figures.append((health.mean_nis, health.whiteness))
    (fits, white), (wrong, _) = figures
    assert 0.2 < fits < 2.0 and 0 <= white <= 1
    assert np.isfinite(wrong)
