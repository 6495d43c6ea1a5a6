# SPDX-License-Identifier: Apache-2.0
"""Recorder and player: what was sent is in the bag, what is in the bag is sent, in time."""

import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_support import MATCH, Executor, Peer, joint_state, overrides, own_domain, ros
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import FluidPressure, JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool

from mbse_ros.bags.bag import Bag
from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import BagError, MbseError, SettingError
from mbse_ros.machine import load_machine
from mbse_ros.nodes import recorder_node, replay_node
from mbse_ros.nodes.base.middleware import sensor_input
from mbse_ros.nodes.base.node_settings import RecorderSettings
from mbse_ros.nodes.graphs.machine_graph import machine_topics
from mbse_ros.nodes.messages.wire import header, stamp_of, to_ns
from mbse_ros.nodes.recorder_node import wanted_topics

PERIOD = 10_000_000
JOINTS = 'sensor_msgs/msg/JointState'


def run(node, **parameters):
    """A node as a process."""
    words = [word for name, value in parameters.items() for word in ('-p', f'{name}:={value}')]
    return subprocess.Popen([sys.executable, '-m', f'mbse_ros.nodes.{node}', '--ros-args', *words],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture
def bag(tmp_path):
    """A bag of 100 positions in one second."""
    with BagWriter(tmp_path / 'bag') as writer:
        for k in range(100):
            writer.write_position(10 ** 9 + k * PERIOD, {'lift': 0.001 * k})
    return tmp_path / 'bag'


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_what_is_sent_is_in_the_bag(tmp_path, storage):
    begin = time.time_ns()
    with own_domain():
        process = run('recorder_node', bag=tmp_path / 'bag', storage=storage, sensor_reliability='reliable',
                      topics='"sensors/position chatter:std_msgs/msg/String"')
        peer = Peer()
        try:
            for k in range(50):
                peer.publish(JointState, 'sensors/position', joint_state(k * PERIOD, 'm', ['lift'], [0.001 * k]))
                peer.publish(String, 'chatter', String(data=str(k)))
            peer.settle('recorder_node', 50)
        finally:
            peer.close()
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=MATCH)
    assert process.returncode == 0 and '100 messages recorded' in output and 'Traceback' not in output
    messages = list(Bag(tmp_path / 'bag').messages())
    heard = [deserialize_message(bytes(m.data), JointState) for m in messages if m.topic == '/sensors/position']
    assert [to_ns(m.header.stamp) for m in heard] == [k * PERIOD for k in range(50)]
    assert [m.position[0] for m in heard] == [0.001 * k for k in range(50)]
    assert all(begin < message.stamp_ns < time.time_ns() for message in messages) and len(messages) == 100


def test_a_recorder_that_cannot_write_says_so(bag):
    with own_domain():
        process = run('recorder_node', bag=bag)
        output, _ = process.communicate(timeout=MATCH)
    assert process.returncode == 2 and 'exists already' in output and 'Traceback' not in output


def test_topics_to_record():
    everything = machine_topics(load_machine('patu655_lift'))
    assert wanted_topics(RecorderSettings()) == (everything, set()) and 'sensors/pressure/lift_rod' in everything
    assert wanted_topics(RecorderSettings(topics='state x:a_msgs/msg/B')) == ({
        'state': 'mbse_ros/msg/HydraulicState', 'x': 'a_msgs/msg/B'}, set())
    with pytest.raises(SettingError, match='topic:package/msg/Type'):
        wanted_topics(RecorderSettings(topics='nowhere'))


def test_what_is_in_the_bag_is_sent(bag):
    with own_domain():
        peer = Peer(**{'sensors/position': JointState, '/clock': Clock})
        process = run('replay_node', bag=bag, rate=2.0, wait_subscribers=1)
        try:
            peer.until(lambda: process.poll() is not None)
            peer.until(lambda: len(peer.heard['sensors/position']) >= 100 and len(peer.heard['/clock']) >= 100)
        finally:
            process.kill()
            output, _ = process.communicate()
            peer.close()
    assert process.returncode == 0 and '100 messages played' in output
    heard = peer.heard['sensors/position']
    assert [to_ns(m.header.stamp) for m in heard] == [10 ** 9 + k * PERIOD for k in range(100)]
    assert [m.position[0] for m in heard] == [0.001 * k for k in range(100)]
    assert to_ns(peer.heard['/clock'][-1].clock) == 10 ** 9 + 99 * PERIOD


@pytest.fixture
def player(bag, monkeypatch):
    """Makes a player in the test's process whose time is a number; it notes what it publishes."""
    with ros():
        nodes, init = [], Node.__init__

        def make(**values):
            now = [100.0]
            monkeypatch.setattr(replay_node.time, 'monotonic', lambda: now[0])
            monkeypatch.setattr(Node, '__init__', lambda self, name, **more: init(
                self, name, parameter_overrides=overrides(**{'bag': str(bag), **values}), **more))
            node = replay_node.ReplayNode()
            monkeypatch.setattr(Node, '__init__', init)
            nodes.append(node)
            node.now, node.stamps = now, []
            node._publish = lambda stamp_ns, topic, cdr: node.stamps.append(stamp_ns)
            return node
        yield make
        for node in nodes:
            node.destroy_node()


def go(node, seconds, step=0.005):
    """Let the player's time run."""
    for _ in range(round(seconds / step)):
        node.tick()
        node.now[0] += step
    node.tick()


def test_rate_and_its_change(player):
    node = player(rate=0.5)
    go(node, 0.4)
    assert len(node.stamps) == pytest.approx(21, abs=1)
    assert node.set_parameters([Parameter('rate', value=4.0)])[0].successful
    go(node, 0.1)
    assert len(node.stamps) == pytest.approx(61, abs=2)
    assert not node.set_parameters([Parameter('rate', value=0.0)])[0].successful


@pytest.mark.parametrize('rate, reliability, warned', [(5.0, 'best_effort', True), (5.0, 'reliable', False),
                                                       (1.0, 'best_effort', False)])
def test_a_bag_played_faster_says_who_may_lose_messages(player, monkeypatch, rate, reliability, warned):
    """Of readers that are there when it begins, and when its speed is changed."""
    lines, node = [], player(rate=rate)
    monkeypatch.setattr(node, 'get_logger', lambda: SimpleNamespace(warning=lines.append, info=lines.append))
    reader = node.create_subscription(JointState, 'sensors/position', lambda message: None, sensor_input(reliability))
    node.tick()
    found = [line for line in lines if 'sensor_reliability:=reliable' in line]
    assert [f'{rate:g} times as fast: replay_node may miss' in line for line in found] == [True] * warned
    assert node.set_parameters([Parameter('rate', value=8.0)])[0].successful
    assert any('8 times' in line for line in lines) == (reliability == 'best_effort')
    node.destroy_subscription(reader)


def test_pause(player):
    node = player()
    go(node, 0.2)
    before = len(node.stamps)
    assert node.on_pause(SetBool.Request(data=True), SetBool.Response()).success
    go(node, 5.0)
    assert len(node.stamps) == pytest.approx(before, abs=1) and node.exit_status is None
    assert node.on_pause(SetBool.Request(data=False), SetBool.Response()).message == 'playing'
    go(node, 0.2)
    assert len(node.stamps) == pytest.approx(before + 20, abs=2)


def test_end_and_loop(player):
    node = player(exit_at_end=False)
    go(node, 1.2)
    assert len(node.stamps) == 100 and node.exit_status is None and node.tick() is None
    again = player(loop=True)
    go(again, 2.0)
    assert len(again.stamps) > 140 and again.stamps[100] == again.stamps[0]


@pytest.mark.parametrize('values, error', [({'bag': ''}, SettingError), ({'bag': 'nowhere'}, BagError),
                                           ({'topics': 'nothing'}, BagError), ({'rate': -1.0}, Exception)])
def test_a_wrong_start_is_refused(player, monkeypatch, values, error):
    with pytest.raises(error) as caught:
        player(**values)
    assert isinstance(caught.value, MbseError) or 'rate' in str(caught.value)


def test_what_waits_is_recorded_by_its_stamps(tmp_path, monkeypatch):
    """After a pause of the process one subscription is not emptied before the next."""
    init = Node.__init__
    monkeypatch.setattr(Node, '__init__', lambda self, name, **more: init(
        self, name, parameter_overrides=overrides(bag=str(tmp_path / 'bag'), sensor_reliability='reliable'), **more))
    with ros():
        node, executor = recorder_node.RecorderNode(), Executor()
        monkeypatch.undo()
        peer = Peer()
        executor.add_node(node)
        try:
            for topic, kind, values in (('sensors/position', JointState, {}),
                                        ('sensors/pressure/lift_rod', FluidPressure, {'fluid_pressure': 2e6})):
                for k in range(100):
                    peer.publish(kind, topic, kind(header=header(k * PERIOD, 'm'), **values))
            assert all(output.wait_for_all_acked(Duration(seconds=60)) for output in peer.outputs.values())
            peer.also = lambda: executor.spin_once(timeout_sec=0.01)
            peer.until(lambda: sum(node._counts.values()) == 200)
            node.finish()
        finally:
            executor.shutdown()
            node.destroy_node()
            peer.close()
    stamps = [stamp_of(bytes(message.data)) for message in Bag(tmp_path / 'bag').messages()]
    assert stamps == sorted(stamps) and len(stamps) == 200
