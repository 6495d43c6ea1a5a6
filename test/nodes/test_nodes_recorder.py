# SPDX-License-Identifier: Apache-2.0
"""The recorder: what a bag says of its topics; its disk, foreseen in log and diagnostics, the bag closed in time, the
process stays."""

import itertools
import json
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
import yaml

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from diagnostic_msgs.msg import DiagnosticArray
from nodes_support import MATCH, Peer, joint_state, overrides, own_domain, ros
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from mbse_ros.bags.bag import Bag
from mbse_ros.bags.storage import disk_room as room
from mbse_ros.errors import DiskError, SettingError
from mbse_ros.nodes.base.node_settings import RecorderSettings
from mbse_ros.nodes.recorder_node import RecorderNode, shortage, wanted_topics

OK, WARN, ERROR = b'\x00', b'\x01', b'\x02'
MB = 1_000_000
TOPIC = 'chatter:std_msgs/msg/String'


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    """A recorder in the test's process, on a disk whose free room, bytes, is a number."""
    disk, init, nodes = [5000 * MB], Node.__init__, []
    real = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(room.shutil, 'disk_usage', lambda path: real._replace(free=disk[0]))
    with ros():
        peer, executor = Peer(**{'/diagnostics': DiagnosticArray}), SingleThreadedExecutor()
        peer.also = lambda: executor.spin_once(timeout_sec=0.01)

        def make(**values):
            given = overrides(**{'bag': str(tmp_path / 'bag'), 'topics': TOPIC, **values})
            monkeypatch.setattr(Node, '__init__', lambda self, name, **more: init(
                self, name, parameter_overrides=given, **more))
            node = RecorderNode()
            monkeypatch.setattr(Node, '__init__', init)
            nodes.append(node)
            executor.add_node(node)
            peer.near = node,
            return node

        def last():
            found = [s for m in peer.heard['/diagnostics'] for s in m.status if s.name.startswith('recorder_node')]
            return found[-1] if found else SimpleNamespace(level=None)
        yield SimpleNamespace(make=make, disk=disk, peer=peer, last=last, bag=tmp_path / 'bag')
        executor.shutdown()
        for node in nodes:
            node.destroy_node()
        peer.close()


@pytest.fixture
def lines(monkeypatch):
    """Warnings and errors in the log."""
    found = []
    for severity in ('warning', 'error'):
        monkeypatch.setattr('rclpy.impl.rcutils_logger.RcutilsLogger.' + severity,
                            lambda self, text, severity=severity, **_: found.append((severity, text)))
    return found


def test_a_disk_that_fills_is_foreseen_and_the_bag_closed(recorder, lines):
    node, peer = recorder.make(), recorder.peer
    peer.until(lambda: recorder.last().level == OK)
    peer.publish(String, 'chatter', String(data='1'))
    peer.until(lambda: node._writer.count == 1)
    recorder.disk[0] = 700 * MB
    peer.until(lambda: recorder.last().level == WARN)
    assert recorder.last().message == '700 MB of the disk are free'
    assert not (recorder.bag / 'metadata.yaml').exists()
    recorder.disk[0] = 49 * MB
    peer.until(lambda: recorder.last().level == ERROR)
    said = f'recording has ended: {recorder.bag}: 49 MB of the disk are free, 50 MB must stay free: it is closed, ' \
           'with 1 messages'
    assert recorder.last().message == said
    assert lines == [('warning', '700 MB of the disk are free'), ('error', said)]
    assert [len(Bag(recorder.bag).warnings), len(list(Bag(recorder.bag).messages()))] == [0, 1]
    recorder.disk[0] = 5000 * MB        # too late
    before = len(peer.heard['/diagnostics'])
    peer.publish(String, 'chatter', String(data='2'))
    peer.until(lambda: len(peer.heard['/diagnostics']) > before + 1)
    assert recorder.last().level == ERROR and node._writer.count == 1 and node.exit_status is None
    node.finish()
    assert node.exit_status == 1 and len(lines) == 2


def test_it_does_not_start_below_the_limit(recorder):
    with pytest.raises(DiskError, match='is not begun: 5.0 GB of the disk are free, 6.0 GB must stay free'):
        recorder.make(least_free=6000)
    assert not recorder.bag.exists()


def test_a_warning_at_the_start(recorder, lines):
    node = recorder.make(low_free=6000)
    assert lines == [('warning', '5.0 GB of the disk are free')]
    node.finish()
    assert node.exit_status is None


@pytest.mark.parametrize('free, size, seconds, text', [
    (5000, 0, 3600.0, ''), (5000, 1000, 5.0, ''), (5000, 1000, 3600.0, ''),
    (999, 0, 0.0, '999 MB of the disk are free'),
    (2050, 2000, 500.0, '2.0 GB of the disk are free: the recording ends in 8 min at this rate'),
    (40, 2000, 500.0, '40 MB of the disk are free: the recording ends in 0 min at this rate')])
def test_what_is_foreseen(free, size, seconds, text):
    assert shortage(free * MB, size * MB, seconds, RecorderSettings()) == text


def test_a_full_disk_is_one_line_of_the_process(tmp_path):
    """A real one, as far as a user may make one: a limit of the size of its files."""
    command = [sys.executable, '-m', 'mbse_ros.nodes.recorder_node', '--ros-args', '-p', f'bag:={tmp_path / "bag"}',
               '-p', f'topics:={TOPIC}', '-p', 'storage:=sqlite3']
    limit = f'import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({2 * MB}, {2 * MB})); ' \
            'os.execv(sys.executable, sys.argv[1:])'
    with own_domain():
        process = subprocess.Popen([sys.executable, '-c', limit, *command], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        peer = Peer(**{'/diagnostics': DiagnosticArray})
        try:
            numbers = itertools.count()

            def full():
                """Whether the recorder has said so; messages go on until then, since any of them may be lost."""
                for _ in range(50):
                    peer.publish(String, 'chatter', String(data=json.dumps(next(numbers)) + 2000 * 'a'))
                return peer.heard['/diagnostics'] and peer.heard['/diagnostics'][-1].status[0].level == ERROR
            peer.until(full, why=lambda: f'after {next(numbers)} messages: {peer.heard["/diagnostics"][-1:]}')
            assert process.poll() is None
        finally:
            peer.close()
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=MATCH)
    assert process.returncode == 1 and 'Traceback' not in output
    assert sum('recording has ended' in line and 'cannot be written' in line for line in output.splitlines()) == 1
    assert len(list(Bag(tmp_path / 'bag').messages())) >= 500


def test_a_bag_has_what_its_publishers_offer(recorder):
    """Each topic its own quality of service, as `ros2 bag record` writes it; a total that was said before, too."""
    kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    early = recorder.peer.node.create_publisher(String, 'scale/totals', kept)
    early.publish(String(data='12 t'))
    loose = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
    sensor = recorder.peer.node.create_publisher(JointState, 'sensors/position', loose)
    node = recorder.make(topics='', also='scale/totals:std_msgs/msg/String', without='markers /diagnostics')
    recorder.peer.until(lambda: sensor.get_subscription_count() == 1 == node._counts['/scale/totals'])
    one = joint_state(1, 'm', ['lift'], [0.2])
    recorder.peer.until(lambda: sensor.publish(one) or node._counts['/sensors/position'])
    recorder.peer.near = ()
    node.finish()
    found = yaml.safe_load((recorder.bag / 'metadata.yaml').read_text())['rosbag2_bagfile_information']
    offered = {item['topic_metadata']['name']: yaml.safe_load(item['topic_metadata']['offered_qos_profiles'])
               for item in found['topics_with_message_count']}
    assert {name: (one['reliability'], one['durability']) for name, (one,) in offered.items()} == {
        '/scale/totals': (1, 1), '/sensors/position': (2, 2)}
    assert '/markers' not in node._counts and '/state' in node._counts


def test_topics_that_are_left_out_are_checked():
    with pytest.raises(SettingError, match="without: got 'marker', expected one of: .*markers"):
        wanted_topics(RecorderSettings(without='marker'))
