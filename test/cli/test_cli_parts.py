# SPDX-License-Identifier: Apache-2.0
"""Parts of the command line: agreement and latency, truth at other instants, time, processor time, findings."""

import os
import time
from types import SimpleNamespace

import numpy as np
import pytest

from mbse_ros.bags.series import TruthSeries
from mbse_ros.bags.writer import BagWriter
from mbse_ros.nodes.measuring import demo as module
from mbse_ros.nodes.measuring.demo import agreement, latencies
from mbse_ros.offline.checks.log_verdict import fit_lines, sample_lines
from mbse_ros.offline.log_samples import LogSamples
from mbse_ros.offline.track import Track, truth_at
from mbse_ros.streams.pipeline import Output
from mbse_ros.streams.records import ObserverStatus, PayloadEstimate, PayloadStatus, Segment, StateEstimate
from mbse_ros.studies.many import machine_name
from studies import timing

MS = 1_000_000


def online(stamps, masses):
    return SimpleNamespace(stamp_ns=np.array(stamps), mass=np.array(masses))


def offline(stamps, masses):
    return SimpleNamespace(track=SimpleNamespace(stamp_ns=np.array(stamps)),
                           states=SimpleNamespace(mass=np.array(masses)))


def test_agreement_is_bit_for_bit():
    same = agreement(online([1, 2, 3], [np.nan, 50.0, 51.0]), offline([1, 2, 3], [np.nan, 50.0, 51.0]))
    assert same.agree and str(same) == 'identical in all 3 payload messages'
    near = agreement(online([1, 2], [50.0, 51.0]), offline([1, 2], [50.0, np.nextafter(51.0, 52.0)]))
    assert not near.agree and 0.0 < near.largest < 1e-13
    assert not agreement(online([1, 2], [50.0, np.nan]), offline([1, 2], [50.0, 51.0])).agree
    fewer = agreement(online([1, 3, 4], [50.0, 50.0, 50.0]), offline([1, 2], [50.0, 50.0]))
    assert (fewer.common, fewer.only_online, fewer.only_offline, fewer.agree) == (1, 2, 1, False)
    assert str(fewer).startswith('DIFFERENT: 1 payloads at common stamps differ by up to 0 kg; 2 only online, 1 only')
    assert not agreement(online([1], [50.0]), offline([2], [50.0])).agree      # nothing in common is not an agreement


def test_latencies_are_those_of_the_recorder(tmp_path):
    from mbse_ros.bags.messages import record_message
    with BagWriter(tmp_path / 'bag') as writer:
        for k in range(100):
            record = PayloadEstimate(k, k * 10 * MS, 50.0, 1.0, 48.0, 52.0, 50.0, 50.0, k, PayloadStatus.UPDATING)
            msgtype, message = record_message(record, '')
            writer.write('payload', msgtype, record.stamp_ns + (12 if k == 50 else 3) * MS, message)
    median, tail = latencies(tmp_path / 'bag')
    assert median == pytest.approx(3.0) and tail == pytest.approx(3.09)


def truth(stamps):
    stamps = np.array(stamps)
    line = stamps[:, None] * 1e-9
    return TruthSeries(stamps, ('lift',), line, 2 * line, 3 * line, ('a', 'b'), np.hstack([line, -line]), line[:, 0])


MACHINE = SimpleNamespace(coordinates=('lift',), volumes=('a', 'b'))


def test_truth_at_other_instants():
    """Exact where it was recorded, linear between, not known outside and in a hole."""
    known = truth([0, 10 * MS, 20 * MS, 500 * MS, 510 * MS])
    found = truth_at(known, MACHINE, np.array([-MS, 0, 5 * MS, 20 * MS, 100 * MS, 500 * MS, 505 * MS, 511 * MS]))
    expected = np.array([np.nan, 0.0, 0.005, 0.02, np.nan, 0.5, 0.505, np.nan])
    np.testing.assert_allclose(found.position[:, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(found.pressure[:, 1], -expected, rtol=1e-12)
    np.testing.assert_allclose(found.payload, expected, rtol=1e-12)
    assert found.position[3, 0] == known.position[2, 0] and found.pressure.shape == (8, 2)


def test_truth_of_another_machine_is_none():
    other = SimpleNamespace(coordinates=('tilt',), volumes=('a', 'b'))
    assert truth_at(None, MACHINE, np.zeros(1)) is None and truth_at(truth([0, MS]), other, np.zeros(1)) is None
    assert truth_at(truth([5 * MS]), MACHINE, np.array([4, 5]) * MS).payload.tolist()[1] == 0.005
    back = truth_at(truth([10 * MS, 20 * MS, 0, 10 * MS]), MACHINE, np.array([5 * MS]))     # a clock set back
    assert back.payload == pytest.approx(0.005)


def output(start, stop, channels=(), innovation=np.zeros(0)):
    one = np.ones(len(channels))
    segment = Segment(0, start * MS, MS, False, channels, np.tile(one, (stop - start, 1)), one, (), np.zeros(0))
    state = StateEstimate(0, stop * MS, MS, False, ('x',), np.zeros((1, 1)), np.eye(1), channels, one, innovation, one,
                          0.0, 0, ObserverStatus.OK)
    return Output(segment, state, PayloadEstimate(0, stop * MS, *[1.0] * 6, 1, PayloadStatus.UPDATING))


def test_time_goes_on_where_the_clock_was_set_back():
    outputs = [output(100, 110), output(110, 120), output(500, 510), output(200, 210), output(210, 220)]
    assert Track.of(outputs).elapsed == pytest.approx([0.01, 0.02, 0.41, 0.42, 0.43])


def test_samples_that_do_not_fit_are_reported():
    channels = ('position/lift', 'pressure/a')

    def lines(*ratios):
        states = [output(10 * k, 10 * k + 10, channels, np.array([ratio, np.nan]))
                  for k, ratio in enumerate((*ratios, *[1.0] * (100 - len(ratios))))]
        return fit_lines(Track.of(states))

    assert lines() == lines(6.5, -19.0) == []
    assert lines(1.0, -21.0) == ['position/lift: 1 of 100 samples lie more than 6 sigma from their prediction, the '
                                 'farthest 21, at t = 0.02 s: the sensor jumped, or the model does not fit']
    assert len(lines(6.1, -6.1, 6.1)) == 1


def test_pauses_and_missing_values():
    """Channels with the same fate share a line; a refused sample and a lone stamp in the future do not count."""
    def channel(name, *stamps):
        return [(name, stamp * MS, float('nan') if stamp == 20 else 1.0) for stamp in stamps]

    samples = [*channel('a', 0, 10, 20, 500, 510), *channel('b', 0, 10, 20, 500, 510),
               *channel('command/c', 0, 200, 400, 510), *channel('d', 0, 90, 180, 99999, 270, 360, 450, 510),
               *channel('e', 0, 100, 200, 300)]
    log = LogSamples.of(samples)
    log.refuse(len(samples) - 1)
    assert sample_lines(log, 0, 100 * MS) == [
        'a, b: silent for 0.48 s from t = 0.02 s',
        'command/c: silent for 0.20 s from t = 0.00 s, the longest of 3 pauses of more than 0.1 s '
        '(interpolation.max_gap); its last value was held',
        'e: silent from t = 0.20 s to the end',
        'a, b: 1 sample without a value (NaN), the first at t = 0.02 s']


def test_processor_time(monkeypatch):
    """By a clock of the test's own, against what the system says of this process before and after each reading."""
    def used():
        return sum(os.times()[:2])
    now, me = [50.0], {'me': os.getpid()}
    monkeypatch.setattr(module, 'time', SimpleNamespace(monotonic=lambda: now[0]))
    meter = module.CpuMeter()
    now[0] += module.START_UP - 1.0
    meter.update(me)
    assert meter.seconds == 5.0
    while time.process_time() < 0.2:        # the start-up does not count
        pass
    now[0] += 1.0
    first = used()
    meter.update({**me, 'nobody': 2 ** 22 + 1})
    begin, end = used(), time.process_time() + 0.2
    while time.process_time() < end:
        pass
    assert meter.share('me') == 0.0
    now[0] += 2.0
    last = used()
    meter.update(me)
    assert last - begin - 0.03 <= 2.0 * meter.share('me') <= used() - first + 0.03      # s; the system counts in 10 ms
    assert meter.share('nobody') == 0.0


def test_interleaved_calls_take_turns(monkeypatch):
    """The fastest burst of each counts, per call."""
    calls, clock = [], iter([0.0, 6.0, 10.0, 13.0, 20.0, 24.0, 30.0, 35.0])
    monkeypatch.setattr(timing.time, 'perf_counter', lambda: next(clock))
    best = timing.interleaved({'a': (lambda: calls.append('a'), 2), 'b': (lambda: calls.append('b'), 1)}, rounds=2)
    assert ''.join(calls) == 'aabaab' and best == {'a': 2.0, 'b': 3.0}
    assert 'Python 3' in machine_name()
