# SPDX-License-Identifier: Apache-2.0
"""Other people's messages over real DDS into the interpolation node, by a map alone; wrong maps are errors in words."""

import math
import subprocess
import sys
import time

import domains
import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from base_poses import KINDS, NOISE, pose_message
from base_poses import MAP as BASE_MAP
from base_poses import machine as base_machine
from geometry_msgs.msg import PoseWithCovarianceStamped, Quaternion
from nodes_in_process import make  # noqa: F401
from nodes_support import Peer, joint_state, overrides, ros
from rclpy.node import Node
from sensor_msgs.msg import FluidPressure, Imu, JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension, MultiArrayLayout, String

from mbse_ros.bags.bag import open_bag
from mbse_ros.bags.messages import typestore
from mbse_ros.errors import DescriptionError, MbseError
from mbse_ros.machine import load_machine
from mbse_ros.nodes.base.foreign_inputs import ClockTime, node_sources
from mbse_ros.nodes.base.middleware import Waiting, _Executor
from mbse_ros.nodes.checks.listening import Surveyor
from mbse_ros.nodes.graphs.graph import parse_arguments
from mbse_ros.nodes.graphs.machine_graph import MachineArguments, machine_graph
from mbse_ros.nodes.interpolation_node import InterpolationNode
from mbse_ros.nodes.messages.wire import class_fields, message_type, to_ns
from mbse_ros.nodes.recorder_node import RecorderNode
from mbse_ros.sources.fields import store_fields
from mbse_ros.sources.machine import for_machine
from mbse_ros.sources.map import parse_sources
from mbse_ros.sources.propose import propose
from mbse_ros.sources.topic_samples import TopicSamples

MAP = '''
format: mbse/sources/1
channels:
  position/lift: {topic: plc/strokes, path: 'position[name=main]', unit: mm, offset: -820 mm}
  pressure/lift_piston: {topic: /plc/pressures, path: 'data[layout.dim.label=A]', unit: bar, stamp: arrival, rate: 9 Hz}
  pressure/lift_rod: {topic: /plc/pressures, path: 'data[layout.dim.label=B]', unit: bar, stamp: arrival}
'''
STROKE, PISTON, ROD = 1100.0, 31.0, 22.0        # mm pin to pin, bar
DOMAINS = range(200, 220)
PATIENT = {'max_gap': 10.0, 'lost_after': 60.0}      # stamps are those of a machine that may be busy


@pytest.fixture(scope='module', autouse=True)
def _ros():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(domains, 'domains', lambda: list(DOMAINS))
        with ros():
            yield


@pytest.fixture
def peer():
    """The other people's driver."""
    peer = Peer()
    yield peer
    peer.close()


def sources(folder, text=MAP):
    path = folder / 'plc.yaml'
    path.write_text(text)
    return str(path)


def pressures(labels, values):
    dims = [MultiArrayDimension(label=label) for label in labels]
    return Float64MultiArray(layout=MultiArrayLayout(dim=dims), data=[float(value) for value in values])


def attended(peer, node):
    """The node has its turn whenever the peer has."""
    executor = _Executor()
    executor.add_node(node)

    def also():
        node.tick()
        executor.spin_once(timeout_sec=0.0)
    peer.also = also


def drive(peer, count, spoil=lambda k: None, readers=1):
    """So many instants of both topics; ``spoil(k)`` may give other pressures."""
    for k in range(count):
        stamp = time.time_ns()
        peer.publish(JointState, 'plc/strokes', joint_state(stamp, '', ['other', 'main'], [9.0, STROKE]), readers)
        peer.publish(Float64MultiArray, '/plc/pressures', spoil(k) or pressures('AB', [PISTON, ROD]), readers)
        peer.step()


def test_a_foreign_driver_feeds_the_node(make, peer, tmp_path):     # noqa: F811
    node = make(InterpolationNode, machine='patu655_lift', valve='unknown', sources=sources(tmp_path), **PATIENT)
    assert not [s for s in node.subscriptions if '/sensors/' in s.topic_name]       # nothing of ours is waited for
    attended(peer, node)
    wrong = {10: pressures('AB', [math.nan, ROD]), 11: pressures('CD', [1.0, 2.0]), 12: pressures('', [])}
    start = time.time_ns()
    drive(peer, 60, wrong.get)
    segments = node.sinks['segment'].messages
    peer.until(lambda: node._foreign.left_out['pressure/lift_rod: no such element'] == 2 and len(segments) >= 20)
    values = np.concatenate([np.reshape(m.values, (-1, len(m.channels))) for m in segments])
    machine = load_machine('patu655_lift', 'unknown')
    assert segments[0].channels == list(machine.channels) and np.isfinite(values).any(axis=0).all()
    expected = {'position/lift': 1e-3 * STROKE - 0.82, 'pressure/lift_piston': 1e5 * PISTON,
                'pressure/lift_rod': 1e5 * ROD}
    for column, name in enumerate(machine.channels):
        np.testing.assert_allclose(values[np.isfinite(values[:, column]), column], expected[name], rtol=1e-12)
    assert start <= to_ns(segments[0].header.stamp) <= time.time_ns()       # arrival is the time of this computer
    left = node._foreign.left_out
    assert left['pressure/lift_piston: not finite'] == 1
    assert left['pressure/lift_piston: no such element'] == left['pressure/lift_rod: no such element'] == 2
    assert any('there are: C, D' in line for line in node.warned)
    diagnosed = {v.key: v.value for v in node._diagnostics().status[0].values}
    assert diagnosed['left out, pressure/lift_rod: no such element'] == '2'


def test_what_the_map_leaves_out_comes_on_our_own_topics(make, peer, tmp_path):     # noqa: F811
    text = '\n'.join(line for line in MAP.splitlines() if 'position' not in line)
    node = make(InterpolationNode, machine='patu655_lift', valve='unknown', sources=sources(tmp_path, text),
                **PATIENT)
    attended(peer, node)
    for _ in range(40):
        peer.publish(JointState, 'sensors/position', joint_state(time.time_ns(), '', ['lift'], [0.3]))
        peer.publish(Float64MultiArray, '/plc/pressures', pressures('AB', [PISTON, ROD]))
        peer.step()
    peer.until(lambda: node.sinks['segment'].messages)
    assert set(np.reshape(node.sinks['segment'].messages[0].values, (-1, 3))[:, 0]) == {0.3}


def test_a_topic_that_comes_late_and_one_of_another_type(make, peer, tmp_path):     # noqa: F811
    text = MAP.replace('unit: mm,', 'unit: mm, type: sensor_msgs/JointState,')
    node = make(InterpolationNode, machine='patu655_lift', valve='unknown', sources=sources(tmp_path, text),
                **PATIENT)
    attended(peer, node)
    assert 'no publisher of /plc/pressures' in node._foreign.missing()
    stranger = Peer()
    stranger.publish(String, '/plc/pressures', String(data='x'), readers=0)
    peer.until(lambda: node._foreign.fault)
    assert 'channels.pressure/lift_piston.path' in node._foreign.fault
    assert 'it is a string, not an array (messages of /plc/pressures: std_msgs/msg/String)' in node._foreign.fault
    assert node._diagnostics().status[0].level == b'\x02'
    stranger.close()
    peer.until(lambda: not node.get_publishers_info_by_topic('/plc/pressures'))
    drive(peer, 30)
    peer.until(lambda: node.sinks['segment'].messages)
    assert not node._foreign.fault


def send_until(peer, condition):
    """Strokes, again and again."""
    def enough():
        peer.publish(JointState, 'plc/strokes', joint_state(time.time_ns(), '', ['main'], [STROKE]))
        return condition()
    peer.until(enough)


def test_a_recorder_takes_the_topics_of_the_map(peer, tmp_path, monkeypatch):
    """Of a type that only the publisher knows; ours it leaves out, but for what the map does not name."""
    init, text = Node.__init__, MAP.replace('rate: 9 Hz', '').rsplit('  pressure/lift_rod', 1)[0]
    monkeypatch.setattr(Node, '__init__', lambda self, name, **more: init(
        self, name, parameter_overrides=overrides(bag=str(tmp_path / 'bag'), sources=sources(tmp_path, text),
                                                  sensor_reliability='reliable'), **more))
    node = RecorderNode()
    monkeypatch.undo()
    attended(peer, node)
    try:
        heard = {s.topic_name for s in node.subscriptions}
        assert '/sensors/pressure/lift_rod' in heard and '/sensors/position' not in heard and '/state' in heard
        send_until(peer, lambda: node._counts.get('/plc/strokes', 0) >= 5)
        node.finish()
    finally:
        node.destroy_node()
    bag = open_bag(tmp_path / 'bag')
    assert bag.topics['/plc/strokes'] == 'sensor_msgs/msg/JointState' and '/plc/pressures' not in bag.topics
    assert sum(message.topic == '/plc/strokes' for message in bag.messages()) >= 5


def test_a_wrong_map_stops_the_node_at_its_start(make, tmp_path):       # noqa: F811
    for text, error in ((MAP.replace('position/lift', 'position/lfit'), 'did you mean position/lift?'),
                        (MAP.replace('unit: bar', 'unit: bra'), 'Pa, kPa, MPa, bar'),
                        (MAP.replace("path: 'position[", "type: sensor_msgs/msg/JointState, path: 'positions["),
                         'did you mean position?')):
        with pytest.raises(DescriptionError, match=error.replace('?', r'\?')):
            node_sources(sources(tmp_path, text), load_machine('patu655_lift', 'unknown'))
    with pytest.raises(AssertionError):
        make(InterpolationNode, machine='patu655_lift', sources=sources(tmp_path, 'format: mbse/sources/2'))


def test_the_graph_hands_the_map_over(tmp_path):
    """A simulation keeps its own topics."""
    path = sources(tmp_path)
    for given, expected in (({}, 'none'), ({'simulate': 'false'}, ''), ({'simulate': 'false', 'sources': path}, path)):
        graph = machine_graph(parse_arguments({'machine': 'patu655_lift', **given}, MachineArguments))
        node, = [p.parts['interpolation_node'] for p in graph.processes if p.parts]
        assert node['sources'] == expected
    with pytest.raises(DescriptionError, match='position/lift'):
        machine_graph(parse_arguments({'machine': 'zx200', 'sources': path}, MachineArguments))


@pytest.mark.parametrize('kind', [JointState, Imu, FluidPressure, Float64MultiArray, MultiArrayLayout])
def test_fields_of_installed_types_are_those_of_the_definitions(kind):
    """Of nested ones, arrays of fixed and of any length, and text."""
    name = f'{kind.__module__.partition(".")[0]}/msg/{kind.__name__}'
    same = {'double': 'float64', 'float': 'float32', 'boolean': 'bool'}
    found = {field: k._replace(base=same.get(k.base, k.base)) for field, k in class_fields(name).items()}
    assert found == store_fields(typestore())(name)




@pytest.mark.parametrize('name', ['this/msg/This', 'os/msg/x', 'a b/msg/X', '/msg/X', 'numpy/msg/X', 'no_msgs/msg/X'])
def test_only_packages_of_messages_are_imported(name):
    """The name of a type comes from whoever publishes."""
    with pytest.raises(MbseError, match='is not installed'):
        message_type(name)
    assert 'this' not in sys.modules


def test_topics_of_the_running_graph(peer):
    """The survey of a bag and that of the graph are one: a map that was proposed here works there."""
    surveyor = Surveyor()
    peer.also = surveyor.step
    try:
        lift = [f'lift_{side}_bar' for side in ('head', 'rod')]
        for k in range(30):
            stamp = time.time_ns()
            peer.publish(JointState, '/rig/strokes', joint_state(stamp, '', ['lift'], [0.1 + 0.01 * k]))
            peer.publish(Float64MultiArray, '/rig/pressures', pressures(lift, [100.0 + 5 * k, 40.0]))
            peer.step()
        topics = surveyor.survey.topics
        peer.until(lambda: {'/rig/strokes', '/rig/pressures'} <= set(topics)
                   and min(topics['/rig/strokes'].count, topics['/rig/pressures'].count) >= 10)
    finally:
        peer.also = lambda: None
        surveyor.close()
    assert topics['/rig/strokes'].stamp == 'header' and topics['/rig/pressures'].stamp == 'arrival'
    assert '/rosout' not in topics
    proposal = propose(topics, load_machine('patu655_lift'))
    found = {name: (guess.candidate.text, guess.fits[0].unit) for name, guess in proposal.guesses.items()}
    assert found == {'position/lift': ('position[name=lift]', 'm'),
                     'pressure/lift_piston': ('data[layout.dim.label=lift_head_bar]', 'bar'),
                     'pressure/lift_rod': ('data[layout.dim.label=lift_rod_bar]', 'bar')}


def test_a_graph_without_topics_is_an_error(monkeypatch, tmp_path):
    """Of `mbse topics`, before it writes a map without channels."""
    monkeypatch.setenv('ROS_DOMAIN_ID', str(DOMAINS[-1]))
    done = subprocess.run([sys.executable, '-m', 'mbse_ros.cli', 'topics', '--seconds', '0.1', '--machine',
                           'patu655_lift', '-o', str(tmp_path / 'map.yaml')], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith(
        f'mbse: no topic of the ROS graph was heard within 0.1 s in domain {DOMAINS[-1]} (ROS_DOMAIN_ID)'), done
    assert not (tmp_path / 'map.yaml').exists()


def test_arrivals_between_two_steps_of_the_clock():
    """/clock goes in steps of 50 ms; what comes every 5 ms is as far apart by its time, however late it is handled."""
    rng, wall = np.random.default_rng(4), [0]
    clock, found = ClockTime(lambda: wall[0]), []
    for k in range(400):
        wall[0] = 5_000_000 * k + int(rng.uniform(0, 4e6))
        found.append(clock(10 ** 9 + 50_000_000 * (wall[0] // 50_000_000), 5_000_000 * k))
    steps = np.diff(found)
    assert steps.min() > 0 and np.median(steps) == 5_000_000
    late = np.array(found[50:]) - (10 ** 9 + 5_000_000 * np.arange(50, 400))
    assert -5e6 < late.min() and late.max() <= 0      # by how late a step was noticed at most
    wall[0] += 10 ** 9
    assert abs(clock(5, wall[0]) - 5) <= 1              # the clock went back: a bag in a loop


class Queue:
    """A subscription in which messages wait, with the times at which the middleware received them."""

    msg_type, raw = None, False

    def __init__(self, *waiting):
        self.handle, self._waiting = self, list(waiting)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def take_message(self, *_):
        return self._waiting.pop(0) if self._waiting else None


def test_when_messages_that_waited_arrived():
    """After a pause: when the middleware received them, and the one handed over before those behind it."""
    found = []
    waiting = Waiting()
    waiting.add('a', Queue((2, {'received_timestamp': 500}), (3, {'received_timestamp': 600})),
                lambda message, received: found.append((message, received)) or [], timed=True)
    waiting.add('b', Queue((7, {'received_timestamp': 0})),
                lambda message, received: found.append((message, received)) or [], timed=True)
    waiting.add('ours', Queue(('x', {})), lambda message: found.append(message) or [])
    assert not list(waiting.items('a', 1))
    assert found == [(1, 499), (2, 500), (3, 600), (7, None), 'x']
    found.clear()
    assert not list(waiting.items('a', 4)) and found == [(4, None)]


@pytest.mark.parametrize('kind', KINDS)
def test_poses_of_the_base_are_read_from_ros_messages(kind):
    """Of the classes that subscriptions give, as of a bag's definitions."""
    like = pose_message(kind, variances=(4 * NOISE ** 2, 0.0))
    turn, message = Quaternion(**vars(like.pose.pose.orientation if hasattr(like, 'pose') else like.orientation)), None
    if kind.endswith('Imu'):
        message = Imu(orientation=turn, orientation_covariance=np.array(like.orientation_covariance, float))
    else:
        odometry = pytest.importorskip('nav_msgs.msg').Odometry if kind.endswith('Odometry') else None
        message = odometry(child_frame_id='base_link') if odometry else PoseWithCovarianceStamped()
        message.pose.pose.orientation, message.pose.covariance = turn, like.pose.covariance
    message.header.stamp.sec, message.header.frame_id = 1, 'odom'
    known = for_machine(parse_sources(BASE_MAP), base_machine()).channels
    ways = [ways[KINDS.index(kind)] for ways in known.values()]
    found = TopicSamples(ways[0].topic, ways, kind, class_fields).samples(message, 5, pytest.fail)
    assert [sample.value for sample in found] == pytest.approx([0.05, -0.1])
    assert [sample.share for sample in found] == [4.0, 1.0]
