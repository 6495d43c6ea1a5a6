# SPDX-License-Identifier: Apache-2.0
"""Bad samples, holes, sensors that die, clocks that jump: reported, nothing lost, the stream goes on."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from streams_samples import BASE, CHANNELS, COMMANDS, INPUTS, MS, check_lines, feed, row, rows, same, span

from mbse_ros.errors import SampleError
from mbse_ros.streams.interpolation import InterpolationSettings, Interpolator


def test_refused_samples_leave_the_rest_as_it_is() -> None:
    good = rows(0, 100)
    expected = feed(Interpolator(CHANNELS, COMMANDS), good)
    interpolator = Interpolator(CHANNELS, COMMANDS)
    name, command = CHANNELS[1], COMMANDS[0]
    bad = {('pressure/other', BASE + 45 * MS, 1.0): 'one of position/lift, pressure/lift_piston',
           (name, BASE + 40 * MS, 1.0): f'a stamp after {BASE + 40 * MS} ns',
           (name, BASE + 39 * MS, 1.0): f'a stamp after {BASE + 40 * MS} ns',
           (name, BASE + 45 * MS, math.inf): 'a finite number, or NaN where missing',
           (name, BASE + 45 * MS, -math.inf): 'a finite number, or NaN where missing',
           (command, BASE + 45 * MS, math.nan): 'a finite number',
           (command, 0, 0.0): 'a stamp after',                          # a header that nobody filled, again and again
           (command, 0, 1.0): 'a stamp after'}
    segments = feed(interpolator, good[:20])
    for sample, expectation in bad.items():
        with pytest.raises(SampleError) as error:
            interpolator.add(*sample)
        assert error.value.expected.startswith(expectation)
        assert (error.value.channel, error.value.stamp_ns) == sample[:2]
    segments += feed(interpolator, good[20:])
    assert same(segments, expected)
    assert interpolator.dropped == {'unknown channel': 1, 'repeated': 1, 'backward': 3, 'not finite': 3}


def test_stamps_must_be_integers() -> None:
    with pytest.raises(TypeError):
        Interpolator(CHANNELS).add(CHANNELS[0], 1.5e18, 0.0)    # type: ignore[arg-type]


def test_nan_makes_both_its_intervals_missing_and_delays_nothing() -> None:
    interpolator = Interpolator(CHANNELS, COMMANDS)
    samples = [(name, stamp, math.nan if name == CHANNELS[1] and stamp == BASE + 20 * MS else value)
               for name, stamp, value in rows(0, 50)]
    segments = feed(interpolator, samples)
    assert [span(segment) for segment in segments] == [(ms, ms + 10) for ms in range(0, 50, 10)]
    missing = [np.isnan(segment.values).all(axis=0).tolist() for segment in segments]
    assert missing == [[False] * 3, [False, True, False], [False, True, False], [False] * 3, [False] * 3]
    assert not np.isnan(segments[3].values).any() and interpolator.lost == ()


def test_after_a_gap_of_two_seconds_all_starts_again() -> None:
    interpolator = Interpolator(CHANNELS, COMMANDS)
    segments = feed(interpolator, rows(0, 30))
    after = rows(2033, 2063)
    assert feed(interpolator, after[:4]) == []          # the first samples after the gap
    segments += feed(interpolator, after[4:])
    assert [span(segment) for segment in segments[2:5]] == [(20, 30), (2033, 2043), (2043, 2053)]
    assert [segment.restart for segment in segments[2:]] == [False, True, False, False]
    assert [segment.sequence for segment in segments] == [1, 2, 3, 4, 5, 6]
    assert interpolator.lost == () and sum(interpolator.dropped.values()) == 0
    check_lines(segments)


def test_a_hole_of_one_channel_is_missing_and_costs_the_others_nothing() -> None:
    """0.3 s, longer than is interpolated, shorter than a loss."""
    interpolator = Interpolator(CHANNELS, COMMANDS)
    samples = [sample for sample in rows(0, 500)
               if not (sample[0] == CHANNELS[0] and BASE + 100 * MS < sample[1] < BASE + 400 * MS)]
    segments = feed(interpolator, samples)
    assert [span(segment) for segment in segments[10:14]] == [(100, 200), (200, 300), (300, 400), (400, 410)]
    assert not any(segment.restart for segment in segments[1:])
    missing = np.isnan(np.concatenate([segment.values[:, 0] for segment in segments]))
    assert missing[100:400].all() and not missing[:100].any() and not missing[400:].any()
    assert not any(np.isnan(segment.values[:, 1:]).any() for segment in segments)
    assert interpolator.dropped.get('before a restart', 0) == 0


def test_a_short_dropout_is_bridged_with_the_weight_of_one_interval() -> None:
    samples = [sample for sample in rows(0, 100) if not (sample[0] == CHANNELS[0] and sample[1] == BASE + 40 * MS)]
    segments = feed(Interpolator(CHANNELS, COMMANDS), samples)
    check_lines(segments)
    bridged = next(segment for segment in segments if span(segment) == (30, 50))
    assert bridged.repeats.tolist() == [20.0, 10.0, 10.0]


def test_a_sensor_that_dies_and_returns() -> None:
    interpolator = Interpolator(CHANNELS, COMMANDS)
    dead, others = CHANNELS[0], INPUTS[1:]
    segments = feed(interpolator, rows(0, 100))
    assert feed(interpolator, rows(110, 590, others)) == []
    assert interpolator.waiting_for == (dead,) and interpolator.lost == ()
    caught_up = feed(interpolator, rows(600, 610, others))
    assert interpolator.lost == (dead,)
    assert max(len(segment.values) for segment in caught_up) <= 100
    segments += caught_up
    for ms in range(620, 1000, 10):                     # from now on nobody waits
        segments += feed(interpolator, row(BASE + ms * MS, others))
        assert span(segments[-1]) == (ms - 10, ms)
    assert feed(interpolator, rows(990, 990, (dead,))) == []        # last of its stamp: released, but a beginning
    assert interpolator.lost == () and interpolator.waiting_for == (dead,)
    segments += feed(interpolator, rows(1000, 1100))
    assert not +Counter(interpolator.dropped)
    assert not any(segment.restart for segment in segments[1:])
    for before, after in zip(segments, segments[1:]):
        assert after.start_ns == before.stamp_ns and after.sequence == before.sequence + 1
    values = np.concatenate([segment.values for segment in segments])
    assert len(values) == 1100 and not np.isnan(values[:, 1:]).any()
    assert np.isnan(values[100:990, 0]).all()
    assert not np.isnan(values[:100, 0]).any() and not np.isnan(values[990:, 0]).any()
    assert all(1.0 <= segment.repeats.min() and np.isfinite(segment.repeats).all() for segment in segments)


def test_no_step_is_left_out_when_a_sensor_dies_between_two_grid_points() -> None:
    """Samples of the dead sensor that are newer than the last segment are still used."""
    interpolator = Interpolator(CHANNELS[:2], (), InterpolationSettings(lost_after=0.1))
    samples = sorted(rows(0, 400, CHANNELS[:1]) + rows(0, 64, CHANNELS[1:2], 4), key=lambda sample: sample[1])
    values = np.concatenate([segment.values for segment in feed(interpolator, samples)])
    assert interpolator.lost == CHANNELS[1:2]
    assert np.isnan(values[:, 1]).tolist() == [False] * 64 + [True] * (len(values) - 64)
    assert len(values) == 400 and not np.isnan(values[:, 0]).any()


def test_a_channel_that_never_sends_is_awaited_and_memory_is_bounded() -> None:
    interpolator = Interpolator(CHANNELS, COMMANDS)
    assert interpolator.waiting_for == INPUTS
    assert feed(interpolator, rows(0, 20_000, (CHANNELS[0], CHANNELS[1], COMMANDS[0]))) == []
    assert interpolator.waiting_for == (CHANNELS[2],) and interpolator.lost == ()
    assert interpolator.dropped['before the start'] > 3800
    assert max(len(buffer.stamps) for buffer in interpolator._inputs.values()) < 60
    segments = feed(interpolator, rows(20_010, 20_050))
    assert span(segments[0]) == (20_010, 20_020) and len(segments) == 4
    check_lines(segments)


def test_commands_alone_make_no_segments_and_fill_no_memory() -> None:
    interpolator = Interpolator(CHANNELS, COMMANDS)
    feed(interpolator, rows(0, 100))
    interpolator.add(*row(BASE + 110 * MS)[0])
    assert feed(interpolator, rows(110, 30_000, COMMANDS)) == []
    assert max(len(buffer.stamps) for buffer in interpolator._inputs.values()) < 60
    assert interpolator.dropped['before a restart'] == 1 and interpolator.lost == ()
    segments = feed(interpolator, rows(30_010, 30_040))
    assert [span(segment) for segment in segments] == [(30_010, 30_020), (30_020, 30_030), (30_030, 30_040)]
    assert segments[0].restart


def test_a_clock_that_goes_back_restarts_all_without_loss() -> None:
    """A bag in a loop: the second round is like the first; the first sample of each input is refused, then used."""
    interpolator = Interpolator(CHANNELS, COMMANDS)
    first = feed(interpolator, rows(0, 500))
    second, refused = [], []
    for sample in rows(0, 500):
        try:
            second += interpolator.add(*sample)
        except SampleError as error:
            refused.append(error.channel)
    assert refused == list(INPUTS)
    assert second[0].restart and [span(segment) for segment in second] == [span(segment) for segment in first]
    assert all(a.values.tobytes() == b.values.tobytes() for a, b in zip(first, second))
    assert sum(interpolator.dropped.values()) == 0


def test_stamps_far_back_one_at_a_time_are_no_clock_that_goes_back() -> None:
    interpolator = Interpolator(CHANNELS, COMMANDS)
    segments = []
    for ms in range(0, 100, 10):
        segments += feed(interpolator, row(BASE + ms * MS))
        with pytest.raises(SampleError):
            interpolator.add(CHANNELS[0], ms * MS, 0.0)
    assert same(segments, feed(Interpolator(CHANNELS, COMMANDS), rows(0, 90)))
    assert interpolator.dropped == {'backward': 10}


def test_one_stamp_far_in_the_future_heals() -> None:
    interpolator = Interpolator(CHANNELS, COMMANDS)
    feed(interpolator, rows(0, 100))
    interpolator.add(CHANNELS[0], BASE + 10 ** 15, 0.0)
    segments = []
    for sample in rows(110, 300):
        try:
            segments += interpolator.add(*sample)
        except SampleError:
            pass
    assert segments[0].restart and span(segments[-1]) == (290, 300)
    check_lines(segments)
