# SPDX-License-Identifier: Apache-2.0
"""What is kept of a log: the numbers of its Outputs and samples, in memory that its steps do not fill."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from cli_support import START_NS, mbse, recorded

import mbse_ros
from mbse_ros.bags.reader import SampleReader
from mbse_ros.bags.series import read_payload
from mbse_ros.errors import MbseError, SettingError
from mbse_ros.machine import load_machine
from mbse_ros.offline import track as tracks
from mbse_ros.offline.bag import estimate_bag
from mbse_ros.offline.log_samples import LogSamples
from mbse_ros.offline.track import Track
from mbse_ros.streams.pipeline import Output


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4 s of the crane without samples from 2 to 2.5 s: the estimate starts twice."""
    return recorded(tmp_path_factory.mktemp('track') / 'bag', lambda _, t, message: None if 2 < t < 2.5 else message,
                    until=4.0)


@pytest.fixture(scope='module')
def outputs(bag: Path) -> list[Output]:
    found: list[Output] = []
    estimate_bag(bag, load_machine('patu655_lift'), {}, take=found.append)
    return found


def test_fewer_results_are_some_of_all(bag: Path) -> None:
    """At their stamps the motion is the same, bit for bit, and the mass by a small part of what it is uncertain by."""
    machine = load_machine('patu655_lift')
    every, each = (estimate_bag(bag, machine, {}, every=seconds) for seconds in (0.1, 0.0))
    rows = np.searchsorted(each.track.stamp_ns, every.track.stamp_ns)
    assert 30 < len(every.track) < len(each.track) / 8
    np.testing.assert_array_equal(each.track.stamp_ns[rows], every.track.stamp_ns)
    np.testing.assert_array_equal(each.states.mean[rows], every.states.mean)
    stddev = (each.last.payload.upper - each.last.payload.lower) / 4
    assert 0.0 < abs(every.last.payload.mass - each.last.payload.mass) < 0.1 * stddev
    with pytest.raises(SettingError, match='every: got 0.1, expected no such option here: it is for a machine'):
        mbse_ros.estimate(bag, 'four_bar', every=0.1)


@pytest.mark.parametrize('chunk', [1, 7, 100_000])
def test_rows_are_the_outputs(outputs: list[Output], chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many become rows at once."""
    monkeypatch.setattr(tracks, 'CHUNK', chunk)
    track, states = Track.of(outputs), [o.state for o in outputs]
    assert track.states is not None and track.last is outputs[-1] and len(track) == len(outputs) > 300
    for name, expected in (('mean', [s.mean[-1] for s in states]),
                           ('variance', [np.diag(s.covariance) for s in states]),
                           ('measured', [s.measured for s in states]), ('innovation', [s.innovation for s in states]),
                           ('nis', [s.nis for s in states]), ('mass', [o.payload.mass for o in outputs]),
                           ('low_passed', [o.payload.low_passed for o in outputs])):
        np.testing.assert_array_equal(getattr(track.states, name), expected, name)
    assert track.stamp_ns.tolist() == [s.stamp_ns for s in states]
    assert track.restart.tolist() == [o.segment.restart for o in outputs] and track.restart.sum() == 2
    assert [track.reasons[code] for code in track.reason] == [o.payload.reason for o in outputs]
    assert [track.reasons[code] for code in track.observer_reason] == [s.reason for s in states]
    assert track.length_ns.sum() == sum(o.segment.stamp_ns - o.segment.start_ns for o in outputs)
    ratio = np.nan_to_num(np.abs([s.innovation / s.innovation_stddev for s in states]))
    np.testing.assert_array_equal(track.worst, ratio.max(axis=0))
    np.testing.assert_array_equal(track.worst_at, ratio.argmax(axis=0))
    np.testing.assert_array_equal(track.far, (ratio > tracks.FAR).sum(axis=0))


def test_memory_of_a_row(outputs: list[Output]) -> None:
    """Without states 40 bytes and 10 more while columns are joined; with them 8 for each number."""
    kept = vars(Track.of(outputs).states)
    numbers = sum(np.size(values) for values in (*kept.pop('numbers').values(), *kept.values())) / len(outputs)
    for states, most in ((False, 64.0), (True, 64.0 + 8 * numbers)):
        tracemalloc.start()
        tracker = tracks.Tracker(states)
        for _ in range(40):
            for output in outputs:
                tracker.add(output)
        taken = tracemalloc.get_traced_memory()[0] / (40 * len(outputs))
        tracemalloc.stop()
        assert taken < 1.1 * most, (states, taken)


def test_the_answer_needs_no_states(bag: Path, outputs: list[Output], tmp_path: Path) -> None:
    machine = load_machine('patu655_lift')
    whole, short = (estimate_bag(bag, machine, {}, states=states) for states in (True, False))
    assert short.warnings == whole.warnings and repr(short.last.payload) == repr(whole.last.payload)
    assert 'started again' in ' '.join(short.warnings)
    with pytest.raises(MbseError, match='states of the log were not kept'):
        print(short.states)
    assert mbse('estimate', bag, '-o', tmp_path / 'out', '--json', tmp_path / 'x.json').status == 0
    written = read_payload(tmp_path / 'out')
    assert written is not None and written.stamp_ns.tolist() == [o.payload.stamp_ns for o in outputs]


def test_samples_by_channel(bag: Path) -> None:
    """Of a bag in blocks as one by one; what was refused is of the block added last."""
    machine = load_machine('patu655_lift')
    reader = SampleReader(bag, machine.channels, machine.commands)
    blocks, single = LogSamples.read(reader), LogSamples.of(reader)
    samples = list(reader)
    assert set(blocks.names) == set(single.names) and blocks.count == single.count == len(samples)
    assert blocks.span_ns == single.span_ns == (START_NS, max(sample.stamp_ns for sample in samples))
    for name in machine.channels:
        own = [sample for sample in samples if sample.channel == name]
        for log in blocks, single:
            assert log[name].stamps.tolist() == [sample.stamp_ns for sample in own] and log[name].used.all()
            np.testing.assert_array_equal(log[name].values, [sample.value for sample in own])
    log = LogSamples()
    log.add_single([('b', 1, 1.0), ('a', 1, np.nan)])
    log.refuse(0)
    log.add_single([('a', 2, 2.0), ('b', 2, np.inf), ('c', 9, 3.0)])
    assert (log.by_first('used'), log.by_first('finite'), log.by_first('missing')) == (
        ('a', 'b', 'c'), ('b', 'a', 'c'), ('a',))
    assert log['b'].used.tolist() == [False, True] and not log['none'].stamps.size and log.names == ('b', 'a', 'c')
    assert log.span_ns == (1, 9)
