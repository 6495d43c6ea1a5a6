# SPDX-License-Identifier: Apache-2.0
"""Long logs: the same results in threads as in one, nothing kept, errors and early ends leave nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mbse_ros.bags.reader import SampleReader
from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import SampleError
from mbse_ros.machine import Machine, load_machine
from mbse_ros.offline.long_log import LongLog, ahead
from mbse_ros.simulation.crane import SimulatedCrane
from mbse_ros.streams.interpolation import InterpolationSettings, Interpolator
from mbse_ros.streams.pipeline import Pipeline


@pytest.fixture(scope='module')
def machine() -> Machine:
    return load_machine('patu655_lift')


@pytest.fixture(scope='module')
def bag(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4.05 s of the crane, no whole number of segments, with a stamp that repeats."""
    path = tmp_path_factory.mktemp('long') / 'bag'
    with BagWriter(path) as writer:
        for frame in SimulatedCrane(machine).advance(4_050_000_000):
            writer.write_samples(frame.stamp_ns, frame.samples, frame.commands)
        writer.write_pressure(frame.stamp_ns, 'lift_rod', 1e6)
    return path


@pytest.fixture(scope='module')
def laps(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five laps of 1.2 s with pauses, short and long, after which the estimate starts again."""
    path, frames = tmp_path_factory.mktemp('laps') / 'bag', list(SimulatedCrane(machine).advance(1_200_000_000))
    with BagWriter(path) as writer:
        for start in (0, 1_700_000_000, 4_300_000_000, 6_000_000_000, 9_000_000_000):
            for frame in frames:
                writer.write_samples(frame.stamp_ns + start, frame.samples, frame.commands)
    return path


def check_as_in_one_thread(log: LongLog, pipeline: Pipeline, bag: Path) -> int:
    """All outputs, and what is known at the end; how often the estimate started."""
    machine, expected, refused = pipeline.machine, [], 0
    found = list(log)
    for sample in SampleReader(bag, machine.channels, machine.commands):
        try:
            expected += pipeline.add(*sample)
        except SampleError:
            refused += 1
    expected += pipeline.flush()
    assert len(found) == len(expected) > 30 and refused == sum(log.dropped.counts().values())
    for one, other in zip(found, expected):
        assert repr(one.payload) == repr(other.payload) and one.segment.sequence == other.segment.sequence
        for field in ('mean', 'covariance', 'weighing', 'innovation', 'innovation_stddev', 'measured'):
            assert getattr(one.state, field).tobytes() == getattr(other.state, field).tobytes(), field
        assert (one.state.status, one.state.reason, one.state.nis) == (
            other.state.status, other.state.reason, other.state.nis)
    assert log.samples == sum(1 for _ in SampleReader(bag, machine.channels, machine.commands))
    return sum(output.state.restart for output in found)


@pytest.mark.parametrize('segment', [0.0, 0.1])
def test_the_same_as_in_one_thread(machine: Machine, bag: Path, segment: float) -> None:
    log = LongLog(SampleReader(bag, machine.channels, machine.commands), machine, {}, segment=segment)
    check_as_in_one_thread(log, Pipeline(machine, segment=segment), bag)
    assert log.dropped.counts() == {'pressure/lift_rod': 1}


def test_logs_with_pauses(machine: Machine, laps: Path) -> None:
    log = LongLog(SampleReader(laps, machine.channels, machine.commands), machine, {})
    assert check_as_in_one_thread(log, Pipeline(machine, segment=0.1), laps) == 5


def test_many_samples_at_once_are_interpolated_as_one_by_one() -> None:
    """Whatever comes: NaN, infinity, repeats, jumps back and ahead, silences, strangers, with and without a delay."""
    for seed in range(6):
        random = np.random.default_rng(seed)
        settings = InterpolationSettings(delay=0.02 * (seed % 3 == 2))
        names, samples, clock = ['a', 'b', 'c', 'd'], [], 0
        for _ in range(700):
            clock += int(random.choice([10_000_000, 9_000_000, 11_000_000, 300_000_000, 900_000_000, -400_000_000],
                                       p=[0.6, 0.17, 0.2, 0.01, 0.01, 0.01]))
            for name in names[:int(random.choice([1, 4], p=[0.05, 0.95]))]:
                samples.append((name if random.random() > 0.002 else 'stranger', clock + int(random.integers(0, 3)),
                                float(random.choice([random.normal(), np.nan, np.inf], p=[0.97, 0.02, 0.01]))))
        one, many = (Interpolator(['a', 'b', 'c'], ['d'], settings) for _ in range(2))
        expected, refused, again = [], [], []
        for sample in samples:
            try:
                expected += one.add(*sample)
            except SampleError as error:
                refused.append(str(error))
        found = [segment for first in range(0, len(samples), 97)
                 for segment in many.add_all(samples[first:first + 97], lambda error: again.append(str(error)))]
        assert again == refused and len(found) == len(expected) > 100
        for new, old in zip(found, expected):
            assert (new.sequence, new.start_ns, new.restart) == (old.sequence, old.start_ns, old.restart)
            assert new.values.tobytes() == old.values.tobytes() and new.repeats.tobytes() == old.repeats.tobytes()
            assert new.command_values.tobytes() == old.command_values.tobytes()
        assert (many.dropped, many.waiting_for, many.clocks.words) == (one.dropped, one.waiting_for, one.clocks.words)


def test_errors_come_through_and_an_early_end_ends_all(machine: Machine, laps: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    before, interval = threading.active_count(), sys.getswitchinterval()
    outputs = iter(LongLog(SampleReader(laps, machine.channels, machine.commands), machine, {}, segment=0.0))
    next(outputs)
    outputs.close()
    assert threading.active_count() == before and sys.getswitchinterval() == interval

    def broken(reader: SampleReader) -> Iterator:
        yield from real(reader)
        raise OSError('the disk is gone')
    real, found = SampleReader.blocks, []
    monkeypatch.setattr(SampleReader, 'blocks', broken)
    with pytest.raises(OSError, match='the disk is gone'):
        found.extend(LongLog(SampleReader(laps, machine.channels, machine.commands), machine, {}))
    assert len(found) > 50 and threading.active_count() == before


class OneByOne:
    """A reader that gives samples one by one, as that of a map."""

    def __init__(self, reader: SampleReader) -> None:
        self._reader = reader

    def __iter__(self) -> Iterator:
        return iter(self._reader)


def test_a_reader_of_single_samples(machine: Machine, bag: Path) -> None:
    reader = SampleReader(bag, machine.channels, machine.commands)
    first, second = (LongLog(given, machine, {}, segment=0.0) for given in (reader, OneByOne(reader)))
    one, other = list(first), list(second)
    assert [repr(o.payload) for o in one] == [repr(o.payload) for o in other] and len(one) == len(other) > 300
    assert (first.samples, first.dropped.counts()) == (second.samples, second.dropped.counts())


def test_ahead_keeps_order_and_bound() -> None:
    """No more than the depth, one in hand and one offered are made before anybody takes."""
    made, third = [], threading.Event()

    def numbers() -> Iterator[int]:
        for k in range(50):
            made.append(k)
            if k == 2:
                third.set()
            yield k
    items = ahead(numbers(), 2)
    assert next(items) == 0 and third.wait(30.0) and len(made) <= 5
    assert list(items) == list(range(1, 50))


def test_ahead_closes_its_source() -> None:
    closed = threading.Event()

    def forever() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()
    items = ahead(forever(), 1)
    next(items)
    items.close()
    assert closed.is_set()
