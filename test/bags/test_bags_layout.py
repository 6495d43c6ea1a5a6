# SPDX-License-Identifier: Apache-2.0
"""Live messages read by the layout of an earlier one: the same samples as from the reader of single ones, or none."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from test_bags_bulk import COMMANDS, SENSORS, WANTED, cdr_of, random_message

from mbse_ros.bags.bag import RawMessage, decode
from mbse_ros.bags.channel_samples import is_strange, topic_readers
from mbse_ros.bags.message_layout import LAYOUTS, Forms
from mbse_ros.bags.messages import header
from mbse_ros.bags.topics import FLUID_PRESSURE, JOINT_STATE, TopicMap
from mbse_ros.errors import SampleError


class Live:
    """The way of the node: by the forms, else by the reader, from which the forms learn."""

    def __init__(self) -> None:
        self.refused: list[SampleError] = []
        self.readers = topic_readers(WANTED, COMMANDS, TopicMap(), self.refused.append)
        self.forms = {topic: Forms(topic, reader, self.refused) for topic, reader in self.readers.items()}
        self.quick = 0

    def one_by_one(self, topic: str, kind: str, cdr: bytes) -> tuple[list, list[str]]:
        try:
            samples = self.readers[topic].samples(topic, decode(RawMessage(0, topic, kind, cdr)))
        except SampleError as error:
            self.refused.append(error)
            samples = []
        found = [str(error) for error in self.refused]
        self.errors = self.refused.copy()
        self.refused.clear()
        return samples, found

    def take(self, topic: str, kind: str, cdr: bytes) -> tuple[list, list[str]]:
        refused: list[SampleError] = []
        self.quick += self.forms[topic].samples(cdr) is not None
        try:
            samples = self.forms[topic].read(cdr, lambda cdr: decode(RawMessage(0, topic, kind, cdr)), refused.append)
        except SampleError as error:
            samples, refused = [], [error]
        assert not self.refused
        return samples, [str(error) for error in refused]


@pytest.mark.parametrize('seed', [1, 2, 3])
def test_the_same_samples_and_refusals(seed: int) -> None:
    """Of plain and of odd messages: cut, longer, with a bit flipped, big-endian, stamps that are no time."""
    random, live = np.random.default_rng(seed), Live()
    for k in range(1500):
        topic, kind, cdr = random_message(random, 1_000_000 * k)
        expected, refused = live.one_by_one(topic[1:], kind, cdr)
        errors = live.errors
        found, said = live.take(topic[1:], kind, cdr)
        assert said == refused or not said and all(map(is_strange, errors))
        assert [s[:2] + s[3:] for s in found] == [s[:2] + s[3:] for s in expected]
        assert np.array([s.value for s in found]).tobytes() == np.array([s.value for s in expected]).tobytes()
    assert live.quick > 700


def test_positions_and_velocities_of_several_joints() -> None:
    """The samples of a joint are not side by side in the message."""
    live, kind, topic = Live(), JOINT_STATE, SENSORS[0][1:]
    for k in range(3):
        found, _ = live.take(topic, kind, cdr_of(kind, {
            'header': header(k, 'm'), 'name': ['tilt', 'lift'], 'position': [1.0 + k, 2.0], 'velocity': [3.0, 4.0]}))
        assert found == [('position/tilt', k, 1.0 + k, 1.0), ('position/lift', k, 2.0, 1.0),
                         ('velocity/lift', k, 4.0, 1.0)]
    assert live.quick == 2


def test_joints_of_others_cost_nothing() -> None:
    """Their names are refused once, with the first message; a field of another length, each time."""
    live, kind, topic = Live(), JOINT_STATE, SENSORS[0][1:]
    for k in range(3):
        found, refused = live.take(topic, kind, cdr_of(kind, {
            'header': header(k, 'm'), 'name': ['wheel', 'lift'], 'position': [9.0, 2.0 + k]}))
        assert found == [('position/lift', k, 2.0 + k, 1.0)] and len(refused) == (k == 0)
    assert live.quick == 2
    for k in range(3):
        _, refused = live.take(topic, kind, cdr_of(kind, {
            'header': header(k, 'm'), 'name': ['wheel', 'lift'], 'position': [2.0, 2.0], 'velocity': [1.0]}))
        assert len(refused) == 2
    assert live.quick == 2


def test_what_is_behind_a_message_is_no_part_of_it() -> None:
    """A publisher may leave up to eleven bytes there, of any content."""
    live, topic = Live(), SENSORS[1][1:]
    for k in range(4):
        cdr = cdr_of(FLUID_PRESSURE, {'header': header(k, 'm'), 'fluid_pressure': 1e5 * k})
        found, _ = live.take(topic, FLUID_PRESSURE, cdr + struct.pack('<I', 7 * k))
        assert [(s.stamp_ns, s.value) for s in found] == [(k, 1e5 * k)]
    assert live.quick == 3


def test_ever_new_messages_teach_no_more_than_so_many_layouts() -> None:
    live, topic, learnt = Live(), SENSORS[1][1:], 0
    for k in range(50):
        cdr = cdr_of(FLUID_PRESSURE, {'header': header(k, f'{k:03d}'), 'fluid_pressure': float(k)})
        found, _ = live.take(topic, FLUID_PRESSURE, cdr)
        assert [s.value for s in found] == [float(k)]
        learnt += live.forms[topic].samples(cdr) is not None
    assert learnt == LAYOUTS
