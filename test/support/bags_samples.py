# SPDX-License-Identifier: Apache-2.0
"""Records and small bags that the tests of the bags share."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mbse_ros.bags.messages import header
from mbse_ros.bags.topics import JOINT_STATE, TopicMap
from mbse_ros.bags.writer import BagWriter
from mbse_ros.monitor.faults import Fault
from mbse_ros.streams.records import ObserverStatus, PayloadEstimate, PayloadStatus, Segment, StateEstimate

PERIOD_NS = 10_000_000
CHANNELS = ('position/lift', 'pressure/lift_piston', 'pressure/lift_rod')
COMMANDS = ('command/lift_valve',)
NAMES = ('position/lift', 'velocity/lift', 'pressure/lift_piston')


def segment(sequence: int) -> Segment:
    """Two steps; the first has a missing pressure."""
    start = (sequence - 1) * PERIOD_NS
    values = np.arange(6.0).reshape(2, 3) + sequence
    values[0, 1] = np.nan
    return Segment(sequence, start, PERIOD_NS // 2, sequence == 1, CHANNELS, values, np.array([2.0, 1.0, 2.0]),
                   COMMANDS, np.full((2, 1), -0.5 * sequence))


def state(sequence: int) -> StateEstimate:
    """Two steps of three states."""
    stamp = sequence * PERIOD_NS
    mean = np.arange(6.0).reshape(2, 3) * 1e5 + sequence
    return StateEstimate(sequence, stamp, PERIOD_NS // 2, sequence == 1, NAMES, mean,
                         np.diag([1.0, 4.0, 9.0]) * sequence, CHANNELS, np.array([0.1, np.nan, 2e6]),
                         np.array([1e-4, np.nan, -3.0]), np.array([4e-4, 1e4, 8e3]), 1.5 * sequence, 2,
                         ObserverStatus.COASTING, 'missing: pressure/lift_piston', mean * 1e-6, Fault.MISSING)


def payload(sequence: int) -> PayloadEstimate:
    """Held, with the raw sample missing."""
    return PayloadEstimate(sequence, sequence * PERIOD_NS, 50.0 + sequence, 0.5, 49.0, 51.0, np.nan, 50.2, 2 ** 40,
                           PayloadStatus.TOO_SLOW, 'zu langsam: ±0 m/s')


def write_bag(folder: Path, storage: str = 'mcap', count: int = 20, namespace: str = '/crane') -> Path:
    """A bag with all topics of the crane graph; returns its folder."""
    with BagWriter(folder, storage, namespace, 'patu655') as writer:
        for sequence in range(1, count + 1):
            write_instant(writer, sequence)
    return folder


def write_instant(writer: BagWriter, sequence: int) -> None:
    """All topics at one instant."""
    stamp = sequence * PERIOD_NS
    samples = {'position/lift': 0.1 * sequence, 'pressure/lift_piston': 1e6 + sequence, 'pressure/lift_rod': np.nan}
    writer.write_samples(stamp, samples, {'command/lift_valve': -0.5})
    for record in (segment(sequence), state(sequence), payload(sequence)):
        writer.write_record(record)
    writer.write(TopicMap().joint_states, JOINT_STATE, stamp, {
        'header': header(stamp, writer.frame), 'name': ['lift'], 'position': [0.1], 'velocity': [0.01 * sequence],
        'effort': [1e4]})
    writer.write_truth(stamp, ['lift'], [0.1], [0.2], [0.3], ['lift_piston', 'lift_rod'], [1e6, 2e6], 50.0)


def assert_equal(first: object, second: object) -> None:
    """The records are equal, NaN to NaN, arrays in shape too."""
    assert type(first) is type(second)
    for name, value in vars(first).items():
        other = getattr(second, name)
        if isinstance(value, (np.ndarray, float)):
            assert np.shape(value) == np.shape(other), name
            np.testing.assert_array_equal(value, other, err_msg=name)
        else:
            assert value == other, name
