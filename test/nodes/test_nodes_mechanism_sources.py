# SPDX-License-Identifier: Apache-2.0
"""Topics of machines and of others over real DDS into the nodes of a mechanism: live as offline; their graph."""

import time

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from geometry_msgs.msg import Vector3
from nodes_in_process import make  # noqa: F401
from nodes_support import Peer, joint_state, ros
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu, JointState

from mbse_ros.bags.writer import BagWriter
from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import DescriptionError, SettingError
from mbse_ros.nodes.base.middleware import _Executor
from mbse_ros.nodes.errorekf_node import ErrorEkfNode
from mbse_ros.nodes.graphs.graph import parse_arguments
from mbse_ros.nodes.graphs.linkage_graph import LinkageArguments, linkage_graph
from mbse_ros.nodes.linkage_node import LinkageNode
from mbse_ros.nodes.messages.wire import header, to_ns
from mbse_ros.nodes.smoother_node import SmootherNode
from mbse_ros.offline.filtered_motion import estimate_linkage_bag
from mbse_ros.sources.map import load_sources
from mbse_ros.streams.linkage import LinkageSettings

LINKAGE = '''
format: mbse/sources/1
channels:
  position/theta: {topic: plc/angles, path: 'position[name=crank]', unit: deg, offset: 10 deg, sign: -1}
  gyro/crank_gyro: {topic: /imu, path: angular_velocity.x, unit: deg/s, delay: 5 ms}
'''


@pytest.fixture(scope='module', autouse=True)
def _ros():
    with ros():
        yield


@pytest.fixture
def peer():
    """The driver of somebody else."""
    peer = Peer()
    yield peer
    peer.close()


def written(folder, text):
    """Path of a map."""
    path = folder / 'map.yaml'
    path.write_text(text)
    return str(path)


def attend(peer, node):
    """The node has its turn whenever the peer has."""
    executor = _Executor()
    executor.add_node(node)

    def also():
        node.tick()
        executor.spin_once(timeout_sec=0.0)
    peer.also = also


@pytest.mark.parametrize('kind', [LinkageNode, ErrorEkfNode, SmootherNode])
@pytest.mark.parametrize('mechanism, text, sensors, published', [
    ('four_bar', LINKAGE, 'encoder crank_gyro', lambda stamp, t: [
        (JointState, 'plc/angles', joint_state(stamp, '', ['other', 'crank'], [9.0, -70.0 - 20.0 * t])),
        (Imu, '/imu', Imu(header=header(stamp, ''), angular_velocity=Vector3(x=20.0)))]),
    ('patu655_lift', '', 'lift_stroke', lambda stamp, t: [
        (JointState, 'sensors/position', joint_state(stamp, '', ['lift'], [0.2 + 0.02 * t]))]),
])
def test_a_mechanism_reads_topics_of_others_live_as_offline(
        make, peer, tmp_path, kind, mechanism, text, sensors, published):     # noqa: F811
    path, step = written(tmp_path, text) if text else '', 0.01
    node = make(kind, mechanism=mechanism, sources=path, sensors=sensors, step=step, backend='vm', noises='',
                sensor_reliability='reliable')
    attend(peer, node)
    peer.near = (node,)
    taken, take, sent = [], node.take, 0
    node.take = lambda stamp, samples: [taken.append((stamp, samples)), take(stamp, samples)]
    start = time.time_ns()
    with BagWriter(tmp_path / 'bag') as writer:
        for k in range(40):
            stamp = start + round(k * step * 1e9)
            for type_, topic, message in published(stamp, k * step):
                peer.publish(type_, topic, message)
                sent += 1
                peer.until(lambda: len(taken) == sent, why=lambda: f'{sent}: {node.warned}')
                name = f'sensor_msgs/msg/{type_.__name__}'
                writer.write_cdr(topic, name, stamp, serialize_message(message))
    assert not node.warned
    model = load_model(mechanism, backend='vm')
    settings = LinkageSettings()
    found = estimate_linkage_bag(tmp_path / 'bag', model, settings, sensors.split(), step, backend='vm',
                                 sources=load_sources(path) if path else None)
    assert found.samples == taken and all(
        line.startswith('input/torque: no sample in the bag') for line in found.warnings)
    if kind is not SmootherNode:
        assert node.get_name() == ('linkage_node' if kind is LinkageNode else 'errorekf_node')
        assert node.stage.estimator == 'errorEKF_FE' == settings.estimator
        last = {to_ns(m.header.stamp): (list(m.mean), list(m.covariance)) for m in node.sinks['linkage_state'].messages}
        assert last == {e.stamp_ns: (e.mean.tolist(), e.covariance.ravel().tolist()) for e in found.estimates}


def test_the_linkage_s_graph_hands_the_map_over(tmp_path):
    path = written(tmp_path, LINKAGE)
    arguments = {'mechanism': 'four_bar', 'sensors': 'encoder crank_gyro', 'smoother': 'true', 'sources': path}
    graph = linkage_graph(parse_arguments({**arguments, 'simulate': 'false'}, LinkageArguments))
    assert [p.parameters['sources'] for p in graph.processes if 'sources' in p.parameters] == [path, path]
    with pytest.raises(SettingError, match='none with simulate:=true: the simulation publishes encoder, crank_gyro'):
        linkage_graph(parse_arguments(arguments, LinkageArguments))
    arguments['record'] = str(tmp_path / 'bag')
    with pytest.raises(DescriptionError, match='position/theta.type: .* the type of plc/angles, to be recorded'):
        linkage_graph(parse_arguments({**arguments, 'simulate': 'false'}, LinkageArguments))
    with pytest.raises(DescriptionError, match='a channel of five_bar'):
        linkage_graph(parse_arguments({'mechanism': 'five_bar', 'simulate': 'false', 'sources': path},
                                      LinkageArguments))
    plain = linkage_graph(parse_arguments({'mechanism': 'four_bar'}, LinkageArguments))
    assert {p.parameters['sources'] for p in plain.processes if 'sources' in p.parameters} == {'none'}
    typed = LINKAGE.replace('{topic: plc', '{type: sensor_msgs/msg/JointState, topic: plc').replace(
        '{topic: /imu', '{type: sensor_msgs/msg/Imu, topic: /imu')
    recorded = linkage_graph(parse_arguments({**arguments, 'simulate': 'false', 'sources': written(tmp_path, typed)},
                                             LinkageArguments))
    words = next(p.parameters['topics'] for p in recorded.processes if p.name == 'recorder_node').split()
    assert {'plc/angles:sensor_msgs/msg/JointState', '/imu:sensor_msgs/msg/Imu',
            'sensors/position:sensor_msgs/msg/JointState'} <= {*words}
