# SPDX-License-Identifier: Apache-2.0
"""A middleware that is too busy for a message, or for an answer, ends no node."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')

import rclpy
from nodes_support import MATCH, Peer, overrides, ros, segment, sent
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile
from std_msgs.msg import Empty, UInt32

from mbse_ros.bags.bag import Bag
from mbse_ros.msg import SensorSegment
from mbse_ros.nodes.base import middleware as _publishing
from mbse_ros.nodes.base import run as _run
from mbse_ros.nodes.base.middleware import farewell, persistent
from mbse_ros.nodes.graphs.run_graph import PROFILE_VARIABLES
from mbse_ros.nodes.recorder_node import RecorderNode

# A writer that keeps all takes nothing more once it holds this much that a reader has not acknowledged.
FULL = 20_000
ALL = QoSProfile(history=HistoryPolicy.KEEP_ALL)
READER = '''
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile
from std_msgs.msg import UInt32
rclpy.init()
node, seen = Node('reader'), []
node.create_subscription(UInt32, 'numbers', lambda message: seen.append(message.data),
                         QoSProfile(history=HistoryPolicy.KEEP_ALL))
while not seen or seen[-1]:
    rclpy.spin_once(node)
print(seen == [*range(1, len(seen)), 0], flush=True)
'''


def patient(folder):
    """Environment of a process that its peers give up after ten minutes of silence, in place of ten seconds."""
    name = next(name for name in PROFILE_VARIABLES if name in os.environ)
    old, new = '<leaseDuration><sec>10</sec>', '<leaseDuration><sec>600</sec>'
    text = Path(os.environ[name]).read_text()
    assert old in text
    (folder / 'patient.xml').write_text(text.replace(old, new))
    return {**os.environ, name: str(folder / 'patient.xml')}


@pytest.fixture
def stopped_reader(tmp_path):
    """A node, its publisher, and a reader that is stopped, as by a computer without a turn for it."""
    with ros():
        node = Node('writer')
        publisher = node.create_publisher(UInt32, 'numbers', ALL)
        reader = subprocess.Popen([sys.executable, '-c', READER], stdout=subprocess.PIPE, text=True,
                                  env=patient(tmp_path))
        try:
            end = time.monotonic() + MATCH
            while not publisher.get_subscription_count():
                assert time.monotonic() < end and reader.poll() is None
                time.sleep(0.02)
            reader.send_signal(signal.SIGSTOP)
            yield node, publisher, reader
        finally:
            reader.kill()
            reader.wait()
            node.destroy_node()


def numbers(publisher, until):
    """Publish 1, 2, ... until it is enough."""
    for number in range(1, FULL):
        publisher.publish(UInt32(data=number))
        if until():
            return
    raise AssertionError('the middleware was never busy')


def test_a_message_is_published_once_the_middleware_has_time(stopped_reader, monkeypatch):
    _, publisher, reader = stopped_reader
    lines = []

    def wait(seconds):
        reader.send_signal(signal.SIGCONT)
        time.sleep(seconds)
    monkeypatch.setattr(_publishing, 'time', SimpleNamespace(sleep=wait, monotonic=time.monotonic))
    numbers(persistent(publisher, lines.append, patience=MATCH), until=lambda: lines)
    assert '/numbers: the middleware was busy' in lines[0]
    publisher.publish(UInt32(data=0))
    assert reader.communicate(timeout=MATCH)[0] == 'True\n'      # all of them, in order


def test_it_is_an_error_where_the_middleware_stays_busy(stopped_reader):
    _, publisher, _ = stopped_reader
    with pytest.raises(rclpy_implementation.RCLError, match='publish'):
        numbers(persistent(publisher, lambda line: None, patience=0.0), until=lambda: False)


def test_a_node_that_ends_waits_until_its_messages_have_arrived(stopped_reader):
    _, publisher, reader = stopped_reader
    for number in range(1, 10):
        publisher.publish(UInt32(data=number))
    assert not farewell([publisher], 0.1)
    reader.send_signal(signal.SIGCONT)
    assert farewell([publisher], MATCH)
    publisher.publish(UInt32(data=0))
    assert reader.communicate(timeout=MATCH)[0] == 'True\n'


def test_the_recorder_writes_what_has_arrived_when_it_ends(tmp_path, monkeypatch):
    """Of sensors, by their stamps, and of others; no callback has had its turn."""
    init = Node.__init__
    given = overrides(bag=str(tmp_path / 'bag'), machine='patu655_lift', sensor_reliability='reliable')
    with ros():
        peer = Peer()
        monkeypatch.setattr(Node, '__init__', lambda self, name, **more: init(
            self, name, parameter_overrides=given, **more))
        recorder = RecorderNode()
        monkeypatch.setattr(Node, '__init__', init)
        try:
            for k in range(1, 51):
                peer.samples(k * 10_000_000)
                peer.publish(SensorSegment, 'segment', sent(segment(k, k * 10_000_000)))
            assert farewell(peer.outputs.values(), MATCH)
            recorder.finish()
        finally:
            recorder.destroy_node()
            peer.close()
    found = Counter(message.topic for message in Bag(tmp_path / 'bag').messages())
    assert set(found.values()) == {50} and {'/segment', '/sensors/position', '/sensors/pressure/lift_rod'} < set(found)


def test_every_publisher_of_a_node_tries_again():
    class Ours(_run.Runnable, Node):
        pass
    with ros():
        node = Ours('ours')
        try:
            assert node.create_publisher(Empty, 'some', 1).publish.__name__ == 'publish_again'
            assert node._parameter_event_publisher.publish.__name__ == 'publish_again'
        finally:
            node.destroy_node()


def test_what_the_middleware_refuses_in_a_callback_does_not_end_the_node(monkeypatch):
    class Ours(_run.Runnable, Node):
        def __init__(self):
            Node.__init__(self, 'ours')
            self.calls = 0
            self.create_timer(0.01, self.refuse)

        def refuse(self):
            self.calls += 1
            if self.calls == 3:
                self.exit_status = 0
            raise rclpy_implementation.RCLError('cannot publish data')
    with ros():
        node, logged = Ours(), []
        monkeypatch.setattr(type(node.get_logger()), 'error', lambda self, text, **_: logged.append(text))
        try:
            _run._spin([node])
        finally:
            node.destroy_node()
    assert node.calls == 3 and logged == ['the middleware refused: cannot publish data'] * 3


def test_a_tick_has_its_turn_among_callbacks_without_end():
    """A callback is always due: EventsExecutor does not look at the time then."""
    class Ours(_run.Runnable, Node):
        def __init__(self):
            Node.__init__(self, 'ours')
            self.hurried, self.calls, self.ticks = False, 0, 0
            self.create_timer(0.0, self.call)

        def call(self):
            self.calls += 1

        def tick(self):
            self.ticks += 1
            if self.ticks == 4:
                self.exit_status = 0

    with ros():
        node = Ours()
        try:
            _run._spin([node])
        finally:
            node.destroy_node()
    assert node.ticks == 4 and node.calls > 10


def test_without_a_context_it_does():
    class Ours(_run.Runnable, Node):
        def __init__(self):
            Node.__init__(self, 'ours')
            self.create_timer(0.01, self.end)

        def end(self):
            rclpy.shutdown()
            raise rclpy_implementation.RCLError('context is not valid')
    with ros():
        with pytest.raises(rclpy_implementation.RCLError, match='context is not valid'):
            _run._spin([Ours()])
        rclpy.init()
