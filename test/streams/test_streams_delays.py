# SPDX-License-Identifier: Apache-2.0
"""Sensors whose stamps are later than what they measure: their samples count when that was."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from machine_variants import changed, exact_sensors
from streams_samples import BASE, CHANNELS, COMMANDS, INPUTS, MS, Sample, feed, row, rows, same

from mbse_ros.errors import SampleError
from mbse_ros.machine import Machine
from mbse_ros.simulation.crane import CraneSettings, SimulatedCrane
from mbse_ros.streams.interpolation import InterpolationSettings, Interpolator
from mbse_ros.streams.pipeline import Output, Pipeline
from mbse_ros.streams.regular import SegmentBlock

DELAYS = {CHANNELS[1]: 7 * MS, CHANNELS[2]: 23 * MS}
NAME = 'patu655_lift'


def late(samples: list[Sample]) -> list[Sample]:
    """As sensors with delays send them, in the order of their stamps."""
    return sorted(((name, stamp + DELAYS.get(name, 0), value) for name, stamp, value in samples),
                  key=lambda sample: sample[1])


def delayed(**settings: float) -> Interpolator:
    return Interpolator(CHANNELS, COMMANDS, InterpolationSettings(**settings), DELAYS)


def test_delayed_samples_are_those_without_the_delay() -> None:
    """One by one, many, in blocks: all segments as of the same samples in time, bit for bit."""
    samples = rows(0, 400)
    expected = feed(Interpolator(CHANNELS, COMMANDS), samples)
    given = late(samples)
    assert same(feed(delayed(), given), expected) and len(expected) > 35
    assert same(delayed().add_all(given, pytest.fail), expected)
    at = [INPUTS.index(name) for name, *_ in given]
    found = delayed().add_block(INPUTS, np.array(at), np.array([s[1] for s in given]), np.array([s[2] for s in given]),
                                pytest.fail)
    segments = [s for item in found for s in (item.segments() if isinstance(item, SegmentBlock) else [item])]
    assert same(segments, expected)


@pytest.mark.parametrize('delays', [DELAYS, dict.fromkeys(CHANNELS, 7 * MS)])
def test_rows_of_one_stamp_are_of_the_times_measured(delays: dict[str, int]) -> None:
    """Also where all are as late, and rows could be taken at once."""
    samples = rows(0, 400, CHANNELS)
    moved = sorted(((n, s - delays.get(n, 0), v) for n, s, v in samples), key=lambda sample: sample[1])
    expected = feed(Interpolator(CHANNELS), moved)
    at = np.array([CHANNELS.index(name) for name, *_ in samples])
    stamps, values = np.array([s[1] for s in samples]), np.array([s[2] for s in samples])
    found = Interpolator(CHANNELS, delays=delays).add_block(CHANNELS, at, stamps, values, pytest.fail)
    segments = [s for item in found for s in (item.segments() if isinstance(item, SegmentBlock) else [item])]
    assert same(segments, expected) and len(segments) > 30


def test_the_window_for_late_samples_is_that_of_the_stamps_as_sent() -> None:
    """5 ms of disorder are put right, though a sensor is late by 23 ms."""
    given = late(rows(0, 400))
    shuffled = sorted(given, key=lambda sample: (sample[1] - BASE + (sample[1] // MS % 3) * 2 * MS, sample[0]))
    assert shuffled != given
    one, other = delayed(delay=0.005), delayed()
    assert same([*feed(one, shuffled), *one.flush()], feed(other, given)) and not one.dropped


def test_a_late_sensor_is_not_a_silent_one() -> None:
    """A delay of more than ``lost_after`` is waited for; a sensor that stops is given up after that time."""
    slow = {CHANNELS[2]: 80 * MS}
    interpolator = Interpolator(CHANNELS, COMMANDS, InterpolationSettings(lost_after=0.05), slow)
    samples = [(n, s + slow.get(n, 0), v) for n, s, v in rows(0, 1000)]
    for sample in sorted(samples, key=lambda sample: sample[1]):
        interpolator.add(*sample)
        assert interpolator.lost == ()
    last = [sample for ms in range(1010, 1300, 10) for sample in row(BASE + ms * MS, [CHANNELS[0], CHANNELS[1],
                                                                                  *COMMANDS])]
    found = feed(interpolator, last)
    assert interpolator.lost == (CHANNELS[2],) and len(found) > 10


def test_errors_have_the_stamps_as_sent() -> None:
    interpolator = delayed()
    interpolator.add(CHANNELS[2], BASE, 0.0)
    with pytest.raises(SampleError, match=f'{BASE}.*a stamp after {BASE} ns'):
        interpolator.add(CHANNELS[2], BASE, 0.0)


# A machine

@cache
def machine(stddev: str = '0 ms', **delays: str) -> Machine:
    """The lift with exact sensors and these delays; every delay uncertain by ``stddev``."""
    exact = exact_sensors(NAME)
    return changed(NAME, {**exact, **{f'sensors/{name}': {**exact[f'sensors/{name}'], 'delay': {
        'value': delay, 'stddev': stddev}} for name, delay in delays.items()}})


@cache
def pipeline_of(machine: Machine) -> Pipeline:
    return Pipeline(machine, backend='vm')


def fresh(machine: Machine) -> Pipeline:
    """Of a machine, as new."""
    pipeline = pipeline_of(machine)
    pipeline.interpolator = Interpolator(machine.channels, machine.commands, delays=machine.delays)
    pipeline.observer.reset()
    pipeline.payload.reset()
    return pipeline


def samples_of(machine: Machine, rate: float = 100.0, count: int = 250) -> list[tuple[str, int, float]]:
    crane = SimulatedCrane(machine, 200.0, settings=CraneSettings(rate=rate, noise=0.0))
    return [(name, frame.stamp_ns, value) for frame in (crane.frame() for _ in range(count))
            for name, value in (*frame.commands.items(), *frame.samples.items())]


LATE = {'lift_piston': '20 ms', 'lift_rod': '10 ms'}
UNCERTAIN = {'lift_stroke': '20 ms', 'lift_rod': '20 ms'}


def test_a_machine_with_late_pressures_is_estimated_as_one_without_a_delay() -> None:
    """By whole periods: the same samples of the same times, so the same states and masses, bit for bit."""
    found, expected = (outputs(own, samples_of(own)) for own in (machine(**LATE), machine()))
    assert len(expected) - len(found) == 2
    for one, other in zip(found, expected):
        assert one.state.stamp_ns == other.state.stamp_ns
        np.testing.assert_array_equal(one.state.mean, other.state.mean)
        assert one.payload.mass == other.payload.mass or one.payload.samples == other.payload.samples == 0


def outputs(machine: Machine, samples: list[tuple[str, int, float]]) -> list[Output]:
    pipeline = fresh(machine)
    return [output for sample in samples for output in pipeline.add(*sample)]


def states(samples: list[tuple[str, int, float]], channel: str = '', more_ns: int = 0
           ) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """By stamp the state, SI, and its derivatives (nx, k) by the delays, 1/s, as the observer carries them; as if the
    file's delay of a channel were larger."""
    own = machine('5 ms', **UNCERTAIN)
    pipeline, found = fresh(own), {}
    observer = pipeline.observer._observer
    places = [own.parameters.consider_names.index(f'sensors.{name}.delay') for name in UNCERTAIN]
    for name, stamp, value in samples:
        for output in pipeline.add(name, stamp - more_ns * (name == channel), value):
            state, scale = observer.running.state, observer.model.scale[:, None]
            found[output.state.stamp_ns] = (state[observer._mean].copy(), state[observer.filter.slopes][:, places]
                                            * scale / 5e-3)
    return found


def test_the_derivatives_by_a_delay_are_those_of_other_delays() -> None:
    """What the observer says that a delay of 1 s more would do, against runs with 2 ms more and less: of position,
    acceleration and mass. A pressure changes its rate within 2 ms, where a valve opens."""
    samples = samples_of(machine('5 ms', **UNCERTAIN), 500.0, 700)
    middle = states(samples)
    for k, channel, entries, share in ((0, 'position/lift', (0, 2, -1), 0.2), (1, 'pressure/lift_rod', (-1,), 0.4)):
        more, less = (states(samples, channel, sign * 2 * MS) for sign in (1, -1))
        stamps = sorted(set(more) & set(less) & set(middle))[60:]
        assert len(stamps) > 400
        for entry in entries:
            expected = np.array([(more[s][0][entry] - less[s][0][entry]) / 4e-3 for s in stamps])
            found = np.array([middle[s][1][entry, k] for s in stamps])
            assert np.sqrt(np.mean((found - expected) ** 2)) < share * np.sqrt(np.mean(expected ** 2)), (channel, entry)


def test_an_uncertain_delay_is_in_the_interval() -> None:
    """Of the mass, with its key in the budget, and of the motion: a speed that pressures tell is as wrong as they."""
    exact, uncertain = machine(), machine('5 ms', **UNCERTAIN)
    one, other = (outputs(own, samples_of(own))[100:] for own in (exact, uncertain))
    assert one[-1].payload.stddev < other[-1].payload.stddev
    causes = {cause.cause: cause.kg for cause in pipeline_of(uncertain).payload.budget}
    assert causes['sensors.lift_stroke.delay'] > 0 and causes['sensors.lift_rod.delay'] > 0
    speeds = [np.array([output.state.covariance[1, 1] for output in own]) for own in (one, other)]
    assert np.max(speeds[1][:len(speeds[0])] / speeds[0][:len(speeds[1])]) > 1.1
