# SPDX-License-Identifier: Apache-2.0
"""The whole chain on streams with gaps, dying sensors, NaN and restarts; run to run it is the same to the bit."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from core_support import VALVES, crane, cycle_run, feed, work_cycle

from mbse_ros.errors import SampleError
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.simulation.crane import SensorFrame
from mbse_ros.streams.pipeline import Merger, Output, Pipeline
from mbse_ros.streams.records import ObserverStatus, PayloadStatus, Segment

SECOND = 1_000_000_000
POSITION, PISTON = 'position/lift', 'pressure/lift_piston'


def between(start: float, stop: float) -> list[SensorFrame]:
    return [f for f in work_cycle() if start * SECOND <= f.stamp_ns < stop * SECOND]


def without(frames: list[SensorFrame], channel: str) -> list[SensorFrame]:
    """The same frames with a sensor that is silent."""
    return [replace(f, samples={c: v for c, v in f.samples.items() if c != channel}) for f in frames]


def spoilt(frames: list[SensorFrame], *channels: str) -> list[SensorFrame]:
    """The same frames with sensors that send NaN."""
    return [replace(f, samples=f.samples | dict.fromkeys(channels, float('nan'))) for f in frames]


def statuses(outputs: list[Output]) -> Counter:
    return Counter(o.state.status for o in outputs)


def same(a: Output, b: Output) -> None:
    """To the bit, NaN included."""
    for one, two in ((a.state, b.state), (a.payload, b.payload)):
        np.testing.assert_equal(vars(one), vars(two))


@pytest.mark.parametrize('valve', VALVES)
def test_twice_the_same_to_the_bit(valve: str) -> None:
    frames = between(0, 3)
    runs = [feed(Pipeline(crane(valve)), frames) for _ in range(2)]
    assert len(runs[0]) == len(runs[1]) == 299
    for a, b in zip(*runs):
        same(a, b)


def test_one_segment_per_sensor_period() -> None:
    outputs = cycle_run('orifice').outputs
    assert len(outputs) == 2400 and {len(o.segment.values) for o in outputs} == {10}
    assert [o.state.sequence for o in outputs] == [o.payload.sequence for o in outputs] == list(range(1, 2401))
    assert [o.payload.stamp_ns for o in outputs] == [k * 10_000_000 for k in range(1, 2401)]
    assert statuses(outputs) == {ObserverStatus.STARTING: 20, ObserverStatus.OK: 2380}


def test_a_gap_of_two_seconds() -> None:
    """The estimate starts again after it; the mass so far stays and goes on."""
    whole = feed(Pipeline(crane()), between(0, 4.0) + between(6.0, 12.0))
    restart = [k for k, o in enumerate(whole) if o.state.restart]
    assert len(restart) == 2 and restart[0] == 0
    before, after = whole[restart[1] - 1], whole[restart[1]]
    assert before.state.stamp_ns < 4 * SECOND and after.state.stamp_ns > 6 * SECOND
    assert after.segment.restart and after.state.status is ObserverStatus.STARTING
    assert after.payload.status is PayloadStatus.NO_DATA and after.payload.mass == before.payload.mass
    truth = {f.stamp_ns: f for f in work_cycle()}
    for o in whole[restart[1] + 30:restart[1] + 60]:
        assert o.state.mean[-1, 0] == pytest.approx(truth[o.state.stamp_ns].position[0], abs=5e-4)
    assert whole[-1].payload.samples > before.payload.samples
    assert whole[-1].payload.mass == pytest.approx(50.0, abs=0.5)


@pytest.mark.parametrize('valve', VALVES)
def test_a_pressure_sensor_that_dies_and_returns(valve: str) -> None:
    """It is given up after 0.5 s, the state coasts, the mass is held; then all goes on."""
    outputs = feed(Pipeline(crane(valve)), between(0, 5) + without(between(5, 8), PISTON) + between(8, 14))
    dead = [o for o in outputs if 5.0 * SECOND < o.state.stamp_ns <= 8.0 * SECOND]
    assert {o.state.status for o in dead[2:]} == {ObserverStatus.COASTING}
    assert {o.payload.status for o in dead[2:]} == {PayloadStatus.NO_DATA}
    assert len({o.payload.mass for o in dead[2:]}) == 1 and all(PISTON in o.payload.reason for o in dead[2:])
    assert outputs[-1].state.status is ObserverStatus.OK
    assert outputs[-1].payload.mass == pytest.approx(50.0, abs=1.5)
    stamps = [o.state.stamp_ns for o in outputs]
    assert all(b - a <= 12_000_000 for a, b in zip(stamps, stamps[1:]))       # nothing of the log is left out


def test_a_position_sensor_that_dies_for_good() -> None:
    """Flows unknown: coasting, then lost; never a mass from it, never an exception."""
    outputs = feed(Pipeline(crane('unknown')), between(0, 3) + without(between(3, 12), POSITION))
    late = [o for o in outputs if o.state.stamp_ns > 9 * SECOND]
    assert late and ObserverStatus.OK not in {o.state.status for o in late}
    assert {o.payload.status for o in late} == {PayloadStatus.NO_DATA}
    held = next(o.payload.mass for o in reversed(outputs) if o.state.stamp_ns <= 3 * SECOND)
    assert {o.payload.mass for o in late} == {held}


@pytest.mark.parametrize('channels', [(POSITION,), (PISTON,), (POSITION, PISTON)])
def test_samples_that_are_nan(channels: tuple[str, ...]) -> None:
    """0.3 s of NaN in a lift: both intervals that touch one are missing; truth stays within 5 deviations."""
    outputs = feed(Pipeline(crane()), between(0, 2) + spoilt(between(2, 2.3), *channels) + between(2.3, 4))
    truth = {f.stamp_ns: f for f in work_cycle()}
    gone = [o for o in outputs if o.state.status is ObserverStatus.COASTING]
    assert len(gone) == 31 and not any(o.state.restart for o in outputs[1:])
    for o in outputs[20:]:
        error = o.state.mean[-1, [0, 3, 4]] - [*truth[o.state.stamp_ns].position, *truth[o.state.stamp_ns].pressure]
        assert (np.abs(error) < 5 * np.sqrt(np.diag(o.state.covariance))[[0, 3, 4]]).all()


def test_all_sensors_nan_is_lost_and_starts_again() -> None:
    outputs = feed(Pipeline(crane()), between(0, 2) + spoilt(between(2, 2.5), *crane().channels) + between(2.5, 4))
    lost = [k for k, o in enumerate(outputs) if o.state.status is ObserverStatus.LOST]
    assert len(lost) >= 49
    again = outputs[lost[-1] + 1]
    assert again.state.restart and again.state.status is ObserverStatus.STARTING
    assert outputs[-1].state.status is ObserverStatus.OK


def test_bad_samples_are_refused_and_the_rest_goes_on() -> None:
    """Unknown channel, infinite value, repeated, backward stamps: each an error, and no bit of the result differs."""
    clean, dirty = feed(Pipeline(crane()), between(0, 2)), []
    pipeline, refused = Pipeline(crane()), 0
    for f in between(0, 2):
        for channel, value in (*f.samples.items(), *f.commands.items()):
            dirty += pipeline.add(channel, f.stamp_ns, value)
            for bad in ((channel, f.stamp_ns, value), (channel, f.stamp_ns - 3_000_000, value),
                        (channel, f.stamp_ns + 1_000_000, float('inf')), ('pressure/none', f.stamp_ns, 1.0)):
                with pytest.raises(SampleError):
                    pipeline.add(*bad)
                refused += 1
    assert refused == 200 * 4 * 4 and len(dirty) == len(clean)
    for a, b in zip(clean, dirty):
        same(a, b)


def test_commands_nobody_needs_are_ignored() -> None:
    """Valve unknown: its command is neither an input nor an error."""
    pipeline = Pipeline(crane('unknown'))
    assert pipeline.add('command/lift_valve', 5, 3.0) == () and pipeline.add('command/other', 1, 1.0) == ()
    assert Pipeline(crane()).add('command/other', 1, 1.0) == ()
    with pytest.raises(SampleError):
        pipeline.add('position/other', 1, 1.0)


def test_order_of_the_channels_within_a_stamp_does_not_matter() -> None:
    frames = between(0, 2)
    turned = [replace(f, samples=dict(reversed(f.samples.items()))) for f in frames]
    for a, b in zip(feed(Pipeline(crane()), frames), feed(Pipeline(crane()), turned)):
        same(a, b)


def test_tuning_while_running() -> None:
    pipeline = Pipeline(crane())
    before = feed(pipeline, between(0, 2))[-1]
    pipeline.observer.configure(ObserverSettings(transition='4', acceleration_psd=100.0))
    after = feed(pipeline, between(2, 3))
    assert not after[0].state.restart and after[5].state.covariance[2, 2] > before.state.covariance[2, 2]


@pytest.mark.parametrize('valve', VALVES)
def test_joined_segments_give_the_same_states(valve: str) -> None:
    """0.1 s segments: states to the bit; with a gap, NaN and an end in the middle of one.

    The mass may differ by the samples of the segment in which the settling after a start, or the second after a doubt,
    ends, or in which a sample is missing: they count as a whole or not at all, up to 0.1 s of 5 s each time.
    """
    frames = between(0, 3.0) + spoilt(between(3.0, 3.1), PISTON) + between(3.1, 5.003) + between(7.0, 12.034)
    frames += spoilt(between(12.034, 12.2), *crane().channels) + between(12.2, 15.0)
    short, pipeline = feed(Pipeline(crane(valve)), frames), Pipeline(crane(valve), segment=0.1)
    joined = feed(pipeline, frames)
    joined += pipeline.flush()
    assert pipeline.flush() == () and len(joined) < 0.4 * len(short)
    by_stamp = {o.state.stamp_ns: o for o in short}
    np.testing.assert_array_equal(np.concatenate([o.state.mean for o in joined]),
                                  np.concatenate([o.state.mean for o in short]))
    for o in joined:
        one = by_stamp[o.state.stamp_ns]
        np.testing.assert_array_equal(o.state.covariance, one.state.covariance)
        np.testing.assert_array_equal(o.state.innovation, one.state.innovation)
        assert (o.state.status, o.state.sequence) == (one.state.status, one.state.sequence)
        assert abs(o.payload.samples - one.payload.samples) <= 200
    assert joined[-1].state.stamp_ns == short[-1].state.stamp_ns
    assert joined[-1].payload.mass == pytest.approx(short[-1].payload.mass, abs=0.05)


@pytest.mark.parametrize('valve', VALVES)
def test_joined_segments_give_the_same_mass(valve: str) -> None:
    """The work cycle, which starts at rest: the same at every output but for rounding."""
    run, pipeline = cycle_run(valve), Pipeline(crane(valve), segment=0.1)
    joined = [*feed(pipeline, run.frames), *pipeline.flush()]
    short = {o.state.stamp_ns: o.payload for o in run.outputs}
    assert len(joined) == 240
    for o in joined:
        one = short[o.state.stamp_ns]
        assert o.payload.samples == one.samples
        if o.payload.samples:
            assert o.payload.mass == pytest.approx(one.mass, rel=1e-9)


def plain(k: int, **changes: object) -> Segment:
    made = Segment(k, k * 10_000_000, 1_000_000, False, ('a',), np.full((10, 1), float(k)), np.array([10.0]), (),
                   np.zeros((10, 0)))
    return replace(made, **changes)


def test_merger_joins_up_to_its_duration() -> None:
    merger = Merger(30_000_000)
    out = [s for k in range(7) for s in merger.add(plain(k))]
    assert [len(s.values) for s in out] == [30, 30] and [s.sequence for s in out] == [2, 5]
    assert [s.stamp_ns for s in out] == [30_000_000, 60_000_000] and out[1].values[10, 0] == 4.0
    assert [len(s.values) for s in merger.flush()] == [10] and merger.flush() == ()


@pytest.mark.parametrize('changes', [{'restart': True}, {'start_ns': 25_000_000}, {'step_ns': 2_000_000},
                                     {'repeats': np.array([5.0])}, {'values': np.full((10, 1), np.nan)}])
def test_merger_begins_again_where_segments_do_not_fit(changes: dict) -> None:
    merger = Merger(100_000_000)
    assert merger.add(plain(0)) == merger.add(plain(1)) == ()
    out = [*merger.add(plain(2, **changes)), *merger.flush()]
    assert [len(s.values) for s in out] == [20, 10]
    assert out[1].restart == bool(changes.get('restart', False))


@pytest.mark.parametrize('valve', VALVES)
def test_a_position_that_is_nan_now_and_then_leaves_the_mass_known(valve: str) -> None:
    frames = [spoilt([frame], POSITION)[0] if k % 10 == 9 else frame for k, frame in enumerate(between(0, 10))]
    outputs = feed(Pipeline(crane(valve)), frames)
    last = outputs[-1].payload
    assert last.stddev < 5.0 and last.lower < 50.0 < last.upper
    assert statuses(outputs)[ObserverStatus.OK] > 0.7 * len(outputs)
