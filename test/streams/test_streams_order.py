# SPDX-License-Identifier: Apache-2.0
"""Random streams: the order of arrival changes nothing, lines stay lines, no information is lost."""

from __future__ import annotations

import math
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st
from streams_samples import BASE, CHANNELS, COMMANDS, INPUTS, MS, Sample, check_lines, feed, row, rows, same, signal

from mbse_ros.streams.interpolation import InterpolationSettings, Interpolator

SEEDS = st.integers(0, 2 ** 32)
PATIENT = InterpolationSettings(lost_after=60.0, command_wait=60.0)
WAIT = 20 * MS
BRIEF = InterpolationSettings(command_wait=WAIT * 1e-9)


def stream(random: Random, name: str, gap: bool, faults: bool) -> list[Sample]:
    """Samples of one input over 0.2 s at its own rate, jitter and phase, if wanted with NaN and a hole of 8 samples.

    A command is about as frequent as the channels. With ``gap`` all inputs are silent for 0.3 s in the middle.
    """
    command = name in COMMANDS
    period, jitter = random.choice((5, 10) if command else (5, 10, 15.4, 20)) * MS, random.choice((0.0, 0.02, 0.4))
    phase, count = random.randint(0, 10) * MS, round(200 * MS / period)
    stamps = [BASE + phase + round(period * (k + jitter * random.random())) for k in range(count)]
    stamps = [stamp + 300 * MS * (gap and stamp > BASE + 100 * MS) for stamp in stamps]
    faults = faults and not command and random.random() < 0.5
    missing = set(random.sample(range(3, count), 2)) if faults else ()
    hole = random.randint(3, count) if faults else count
    return [(name, stamp, math.nan if k in missing else signal(name, stamp)) for k, stamp in enumerate(stamps)
            if not hole <= k < hole + 8]


def streams(random: Random, faults: bool) -> list[list[Sample]]:
    """Samples of all inputs."""
    gap = faults and random.random() < 0.5
    return [stream(random, name, gap, faults) for name in INPUTS]


def by_time(inputs: list[list[Sample]]) -> list[Sample]:
    return sorted((sample for samples in inputs for sample in samples), key=lambda sample: sample[1])


@settings(max_examples=100)
@given(SEEDS)
@example(138202377)     # all sensors aim across a gap while a command is still to come before it
@example(43)            # a command whose rate is learnt again after a gap
def test_order_of_arrival_changes_nothing(seed: int) -> None:
    random = Random(seed)
    inputs = streams(random, faults=True)
    reference = feed(Interpolator(CHANNELS, COMMANDS, PATIENT), by_time(inputs))
    queues = [iter(samples) for samples in inputs]
    turns = [queue for queue, samples in zip(queues, inputs) for _ in samples]
    random.shuffle(turns)
    shuffled = [next(queue) for queue in turns]
    one_by_one = [sample for samples in inputs for sample in samples]
    for samples in (shuffled, one_by_one):
        assert same(reference, feed(Interpolator(CHANNELS, COMMANDS, PATIENT), samples))


@settings(max_examples=100)
@given(SEEDS)
def test_commands_that_are_not_later_than_they_are_waited_for_change_nothing(seed: int) -> None:
    random = Random(seed)
    inputs = streams(random, faults=False)
    reference = feed(Interpolator(CHANNELS, COMMANDS, PATIENT), by_time(inputs))
    delay = {name: random.randrange(WAIT) if name in COMMANDS else 0 for name in INPUTS}
    arrivals = sorted(by_time(inputs), key=lambda sample: sample[1] + delay[sample[0]])
    found = feed(Interpolator(CHANNELS, COMMANDS, BRIEF), arrivals)
    assert len(found) >= len(reference) and same(reference, found[:len(reference)])


def bursts(random: Random, end: int) -> list[Sample]:
    """A command that is only sent while it changes, ms after BASE; a last one at the end."""
    times, now = [], 0
    while now < end:
        count = random.randint(1, 8)
        times += range(now, now + 10 * count, 10)
        now = times[-1] + random.randint(30, 400)
    sent = [(COMMANDS[0], BASE + ms * MS + 300_000, float(ms)) for ms in times if ms < end]
    return sent + row(BASE + end * MS, COMMANDS)


@settings(max_examples=50)
@given(SEEDS)
def test_commands_that_are_sent_when_they_change_do_not_stop_the_stream(seed: int) -> None:
    random = Random(seed)
    samples = by_time([rows(0, 2000, CHANNELS[:2]), bursts(random, 2010)])
    reference = feed(Interpolator(CHANNELS[:2], COMMANDS, PATIENT), samples)
    interpolator, found = Interpolator(CHANNELS[:2], COMMANDS, BRIEF), []
    for sample in samples:
        for segment in interpolator.add(*sample):
            assert sample[1] - segment.stamp_ns <= WAIT + 10 * MS
            found.append(segment)
    assert same(reference, found) and found[-1].stamp_ns >= BASE + 1990 * MS


@settings(max_examples=100)
@given(SEEDS)
def test_lines_come_out_as_lines_on_one_grid_with_all_information(seed: int) -> None:
    inputs = streams(Random(seed), faults=False)
    interpolator = Interpolator(CHANNELS, COMMANDS)
    segments = feed(interpolator, by_time(inputs))
    check_lines(segments)
    early = [sum(stamp <= segments[0].start_ns for _, stamp, _ in samples) - 1 for samples in inputs[:3]]
    assert sum(interpolator.dropped.values()) == sum(max(count, 0) for count in early)
    assert [segment.restart for segment in segments] == [True] + [False] * (len(segments) - 1)
    assert segments[0].start_ns == max(samples[0][1] for samples in inputs)
    for before, after in zip(segments, segments[1:]):
        assert after.start_ns == before.stamp_ns
    assert segments[-1].stamp_ns > min(samples[-1][1] for samples in inputs) - 45 * MS
    assert max(len(segment.values) for segment in segments) <= 45
    for column, samples in enumerate(inputs[:3]):
        inside = sum(segments[0].start_ns <= stamp <= segments[-1].stamp_ns for _, stamp, _ in samples)
        information = sum(len(segment.values) / segment.repeats[column] for segment in segments)
        assert abs(information - inside) <= 2
