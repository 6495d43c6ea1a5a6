# SPDX-License-Identifier: Apache-2.0
"""Interpolation, observer and payload in one process: the same messages, bit for bit, as each in its own."""

import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_support import MATCH, Peer, own_domain, ros
from rclpy.executors import SingleThreadedExecutor
from std_srvs.srv import Trigger

from mbse_ros.msg import HydraulicState, PayloadEstimate, SensorSegment
from mbse_ros.nodes import machine_nodes
from mbse_ros.nodes.base import lifecycle as _lifecycle
from mbse_ros.nodes.base.diagnostics import Warnings
from mbse_ros.nodes.base.lifecycle import SUCCESS

TOPICS = {'segment': SensorSegment, 'state': HydraulicState, 'payload': PayloadEstimate}
PERIOD = 10_000_000
BEGIN, PERIODS = 1_000 * PERIOD, 60


class Composed:
    """The three nodes in this process, and a peer in the place of the machine."""

    def __init__(self, linked, heard=TOPICS):
        self.peer = Peer(**heard)
        self.nodes = linked()
        self.executor = SingleThreadedExecutor()
        for node in self.nodes:
            self.executor.add_node(node)
            assert node.trigger_configure() == SUCCESS and node.trigger_activate() == SUCCESS
        self.peer.also = lambda: self.executor.spin_once(timeout_sec=0.0)
        # who hears each output: the peer, and by DDS the next node where it gets no records in memory
        outputs = [(node._outputs[0], bool(place) and node.receiver is None) for place, node in enumerate(self.nodes)]
        self.peer.until(lambda: all(output.get_subscription_count() >= (output.topic_name.strip('/') in heard) + by_dds
                                    for output, by_dds in outputs))

    def play(self):
        """Some periods of a piston that moves, as fast as they are taken, and what becomes of them."""
        for k in range(1, PERIODS + 1):
            self.peer.samples(BEGIN + k * PERIOD, position=0.2675 + 1e-4 * k, piston=3e6 + 1e4 * k)
            self.peer.step()
        self.peer.until(lambda: all(len(messages) >= PERIODS - 1 for messages in self.peer.heard.values()))

    def close(self):
        self.executor.shutdown()
        for node in self.nodes:
            node.destroy_node()
        self.peer.close()


def apart():
    """The same nodes, which know nothing of each other."""
    nodes = machine_nodes.linked_nodes()
    for node in nodes:
        node.receiver, node.fed = None, False
    return nodes


def played(linked):
    with ros():
        graph = Composed(linked)
        try:
            graph.play()
            return graph.peer.heard
        finally:
            graph.close()


def test_the_messages_are_the_same_bit_for_bit():
    ours, theirs = played(machine_nodes.linked_nodes), played(apart)
    for topic in TOPICS:
        assert [repr(message) for message in ours[topic]] == [repr(message) for message in theirs[topic]], topic
    assert [message.restart for message in ours['state']].count(True) == 1


def test_nothing_is_serialized_that_nobody_reads(monkeypatch):
    packed, pack = [], _lifecycle.packed_record
    monkeypatch.setattr(_lifecycle, 'packed_record', lambda record, *more: packed.append(type(record).__name__)
                        or pack(record, *more))
    with ros():
        graph = Composed(machine_nodes.linked_nodes, {'payload': PayloadEstimate})
        try:
            graph.play()
        finally:
            graph.close()
    assert set(packed) == {'PayloadEstimate'}


def test_a_node_that_is_not_active_takes_nothing_and_starts_again_afterwards():
    with ros():
        graph = Composed(machine_nodes.linked_nodes)
        payload, observer, _ = graph.nodes
        try:
            graph.play()
            assert observer.trigger_deactivate() == SUCCESS
            states, segments = len(graph.peer.heard['state']), len(graph.peer.heard['segment'])
            for k in range(PERIODS, PERIODS + 30):
                graph.peer.samples(BEGIN + (k + 1) * PERIOD)
            graph.peer.until(lambda: len(graph.peer.heard['segment']) >= segments + 30)
            assert len(graph.peer.heard['state']) == states
            assert observer.trigger_activate() == SUCCESS
            for k in range(PERIODS + 30, PERIODS + 60):
                graph.peer.samples(BEGIN + (k + 1) * PERIOD)
            graph.peer.until(lambda: len(graph.peer.heard['state']) >= states + 30)
            assert graph.peer.heard['state'][states].restart and payload.active
            assert graph.peer.call(Trigger, 'payload_node/reset', Trigger.Request()).success
        finally:
            graph.close()


def test_a_reader_that_is_missing_is_waited_for_once(monkeypatch):
    now, lines = [0.0], []
    with ros():
        nodes = machine_nodes.linked_nodes()
        monkeypatch.setattr(_lifecycle, 'time', SimpleNamespace(
            monotonic=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + seconds)))
        for node in nodes:
            node.settings = replace(node.settings, wait_subscribers=1, wait_time=10.0)
            monkeypatch.setattr(type(node.get_logger()), 'warning', lambda self, text, **_: lines.append(text))
            assert node.trigger_configure() == SUCCESS and node.trigger_activate() == SUCCESS
        assert [line.rpartition(' after ')[2] for line in lines] == ['10.0 s', '1.0 s', '1.0 s']
        assert now[0] == pytest.approx(12.0, abs=0.1)
        for node in nodes:
            node.destroy_node()


def test_records_of_another_machine_are_refused():
    """Each node has its own parameters: they may name different files."""
    with ros():
        nodes = machine_nodes.linked_nodes()
        payload, observer, _ = nodes
        warned = []
        observer.settings = replace(observer.settings, machine='patu655_measured')
        observer.warnings = Warnings(warned.append)
        graph = Composed(lambda: nodes, {'segment': SensorSegment, 'state': HydraulicState})
        try:
            for k in range(1, PERIODS):
                graph.peer.samples(BEGIN + k * PERIOD)
            graph.peer.until(lambda: len(graph.peer.heard['segment']) >= PERIODS - 2)
        finally:
            graph.close()
        assert not graph.peer.heard['state'] and 'the same file' in warned[0] and 'patu655_lift' in warned[0]


@pytest.mark.parametrize('words, text', [
    (['-r', '__node:=one'], 'three nodes cannot all be called one'),
    (['-p', 'observer_node:backend:=fortran'], 'backend'),
    (['-p', 'payload_node:no_such:=1.0'], 'no_such')])
def test_what_cannot_start_is_a_line_and_status_2(words, text):
    with own_domain():
        done = subprocess.run([sys.executable, '-m', 'mbse_ros.nodes.machine_nodes', '--ros-args', *words],
                              capture_output=True, text=True, timeout=MATCH)
    assert done.returncode == 2 and text in done.stderr and 'Traceback' not in done.stderr
