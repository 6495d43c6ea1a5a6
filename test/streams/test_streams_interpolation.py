# SPDX-License-Identifier: Apache-2.0
"""Samples to segments: values, release, rates, commands, settings."""

from __future__ import annotations

import numpy as np
import pytest
from streams_samples import BASE, CHANNELS, COMMANDS, MS, check_lines, feed, row, rows, same, signal, span

from mbse_ros.errors import SettingError
from mbse_ros.streams.interpolation import InterpolationSettings, Interpolator


def test_common_stamps_give_one_segment_per_period_with_the_last_sample() -> None:
    interpolator = Interpolator(CHANNELS, COMMANDS)
    assert feed(interpolator, row(BASE)) == []
    segments = []
    for ms in range(10, 60, 10):
        *early, last = row(BASE + ms * MS)
        assert feed(interpolator, early) == []
        segments += interpolator.add(*last)
        assert span(segments[-1]) == (ms - 10, ms)
    check_lines(segments)
    assert [segment.sequence for segment in segments] == [1, 2, 3, 4, 5]
    assert [segment.restart for segment in segments] == [True, False, False, False, False]
    for segment in segments:
        assert segment.values.shape == (10, 3) and segment.command_values.shape == (10, 1)
        assert segment.values.flags.c_contiguous
        assert segment.repeats.tolist() == [10.0, 10.0, 10.0]
        for column, name in enumerate(CHANNELS):        # at a sample: the sample itself
            assert segment.values[-1, column] == signal(name, segment.stamp_ns)
    assert interpolator.dropped == {} and interpolator.lost == ()


def test_nearly_equal_stamps_are_not_waited_for_twice() -> None:
    """Two drivers that stamp 20 us apart: a segment per period, at once."""
    interpolator = Interpolator(CHANNELS[:2])
    segments = []
    for ms in range(0, 100, 10):
        for offset, name in ((20_000, CHANNELS[0]), (0, CHANNELS[1])):
            stamp = BASE + ms * MS + offset * (-1) ** (ms // 10)
            segments += interpolator.add(name, stamp, signal(name, stamp))
        assert len(segments) >= ms // 10 and all(len(segment.values) in (9, 10, 11) for segment in segments)
        assert not segments or segments[-1].stamp_ns >= BASE + ms * MS - 1.1 * MS
    check_lines(segments)


@pytest.mark.parametrize('phase', [0, 1, 4, 5, 6, 9])
def test_a_phase_between_sensors_costs_no_more_than_itself(phase: int) -> None:
    interpolator = Interpolator(CHANNELS[:2])
    samples = sorted(rows(0, 500, CHANNELS[:1]) + rows(phase, 500, CHANNELS[1:2]), key=lambda sample: sample[1])
    segments = []
    for sample in samples:
        segments += interpolator.add(*sample)
        if segments:
            assert sample[1] - segments[-1].stamp_ns <= 11 * MS
    assert len(segments) <= 52
    check_lines(segments)


def test_rates_of_200_100_and_50_hz() -> None:
    """One segment per sample of the slowest; each channel says how many steps share a sample."""
    interpolator = Interpolator(CHANNELS, COMMANDS)
    samples = rows(0, 200, CHANNELS[:1], 20) + rows(0, 200, CHANNELS[1:], 5) + rows(0, 200, COMMANDS, 10)
    segments = feed(interpolator, sorted(samples, key=lambda sample: sample[1]))
    assert [span(segment) for segment in segments] == [(ms, ms + 20) for ms in range(0, 200, 20)]
    assert all(segment.repeats.tolist() == [20.0, 5.0, 5.0] for segment in segments)
    check_lines(segments)


@pytest.mark.parametrize('phase', [0, 1, 2, 3, 4])
@pytest.mark.parametrize('first', [0, 1])
def test_a_slow_and_a_fast_sensor_give_a_segment_per_slow_sample(phase: int, first: int) -> None:
    """50 and 200 Hz."""
    slow, fast = rows(phase, 600, CHANNELS[:1], 20), rows(10 * first, 600, CHANNELS[1:2], 5)
    segments = feed(Interpolator(CHANNELS[:2]), sorted(slow + fast, key=lambda sample: sample[1]))
    assert 28 <= len(segments) <= 31
    check_lines(segments)


def test_commands_are_held_and_awaited() -> None:
    interpolator = Interpolator(CHANNELS[:1], COMMANDS, InterpolationSettings(command_wait=0.03))
    assert feed(interpolator, rows(0, 30, CHANNELS[:1])) == []
    assert interpolator.waiting_for == COMMANDS
    interpolator.reset()
    commands = [(COMMANDS[0], BASE + ms * MS + 300_000, float(ms)) for ms in (-5, 4, 15, 24)]
    segments = feed(interpolator, rows(0, 20, CHANNELS[:1]) + commands)
    assert [span(segment) for segment in segments] == [(0, 10), (10, 15), (15, 20)]
    held = np.concatenate([segment.command_values[:, 0] for segment in segments])
    assert held.tolist() == [-5.0] * 4 + [4.0] * 11 + [15.0] * 5


def test_a_late_command_and_one_in_time_bound_the_same_segments() -> None:
    sensors = rows(0, 20, CHANNELS[:1])
    commands = [(COMMANDS[0], BASE + ms * MS, float(ms)) for ms in (-8, 6, 10, 20)]
    orders = (sensors + commands, commands + sensors, sensors[:1] + commands[:3] + sensors[1:] + commands[3:])
    patient = InterpolationSettings(command_wait=0.03)
    late, early, mixed = (feed(Interpolator(CHANNELS[:1], COMMANDS, patient), samples) for samples in orders)
    assert same(late, early) and same(mixed, early)
    assert [span(segment) for segment in early] == [(0, 6), (6, 20)]


def test_a_command_that_came_once_is_held_without_waiting() -> None:
    interpolator = Interpolator(CHANNELS[:1], COMMANDS, InterpolationSettings(command_wait=0.02))
    interpolator.add(COMMANDS[0], BASE - 900_000 * MS, 2.0)
    segments = feed(interpolator, rows(0, 30, CHANNELS[:1]))    # it could be one of many; it is long silent, too
    assert [span(segment) for segment in segments] == [(0, 10), (10, 20), (20, 30)]
    assert feed(interpolator, rows(40, 520, CHANNELS[:1]))[-1].stamp_ns == BASE + 520 * MS
    assert interpolator.lost == COMMANDS
    assert interpolator.add(COMMANDS[0], BASE + 515 * MS, 3.0) == ()        # late: counts from the next segment
    segments = feed(interpolator, row(BASE + 530 * MS, CHANNELS[:1]))
    interpolator.add(COMMANDS[0], BASE + 534 * MS, 4.0)
    segments += feed(interpolator, row(BASE + 540 * MS, CHANNELS[:1]))
    assert np.concatenate([segment.command_values[:, 0] for segment in segments]).tolist() == [3.0] * 13 + [4.0] * 7
    assert interpolator.lost == ()
    assert sum(interpolator.dropped.values()) == 0


def test_rare_commands_are_not_waited_for() -> None:
    """5 Hz beside 100 Hz: only until the rate is known."""
    interpolator = Interpolator(CHANNELS[:1], COMMANDS)
    samples = sorted(rows(0, 2000, CHANNELS[:1]) + rows(0, 2000, COMMANDS, 200), key=lambda sample: sample[:2][::-1])
    for sample in samples:
        segments = interpolator.add(*sample)
        if sample[0] == CHANNELS[0] and sample[1] > BASE + 200 * MS:
            assert segments[-1].stamp_ns == sample[1]


def test_settings_change_from_the_next_segment_on() -> None:
    interpolator = Interpolator(CHANNELS, COMMANDS)
    segments = feed(interpolator, rows(0, 50))
    interpolator.configure(InterpolationSettings(step=0.002))
    segments += feed(interpolator, rows(60, 70))
    interpolator.configure(InterpolationSettings(step=0.0005))
    segments += feed(interpolator, rows(80, 120))
    check_lines(segments)
    assert [span(segment) for segment in segments[5:]] == [(50, 60), (60, 70)] + [
        (ms, ms + 10) for ms in range(70, 120, 10)]
    assert segments[5].repeats.tolist() == [5.0] * 3 and segments[-1].repeats.tolist() == [20.0] * 3
    assert not any(segment.restart for segment in segments[1:])
    with pytest.raises(SettingError):
        InterpolationSettings(step=0.0)
    with pytest.raises(SettingError, match='0.002'):        # beyond, a linearised fluid is predicted for too long
        InterpolationSettings(step=0.005)


def test_reset_starts_again_and_counts_on() -> None:
    interpolator = Interpolator(CHANNELS, COMMANDS)
    last = feed(interpolator, rows(0, 50))[-1]
    interpolator.reset()
    first = feed(interpolator, rows(20, 50))[0]
    assert first.restart and first.sequence == last.sequence + 1 and span(first) == (20, 30)


def test_a_command_that_ends_is_waited_for_a_moment_and_then_lost() -> None:
    """What the sensors' period adds to the wait is seen by how far the segments are behind."""
    interpolator = Interpolator(CHANNELS[:1], COMMANDS, InterpolationSettings(command_wait=0.02))
    samples = sorted(rows(0, 1000, CHANNELS[:1]) + rows(0, 200, COMMANDS), key=lambda sample: sample[1])
    behind = {stamp: stamp - segment.stamp_ns for name, stamp, value in samples
              for segment in interpolator.add(name, stamp, value)}
    assert {late for stamp, late in behind.items() if BASE + 230 * MS <= stamp < BASE + 700 * MS} == {20 * MS}
    assert {late for stamp, late in behind.items() if stamp > BASE + 730 * MS} == {0}
    assert interpolator.lost == COMMANDS
