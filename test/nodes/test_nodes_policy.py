# SPDX-License-Identifier: Apache-2.0
"""The SROS2 policy: of its format, and what the real nodes say over DDS is allowed, no less and no more."""

import xml.etree.ElementTree as ElementTree
from fnmatch import fnmatchcase
from importlib.util import find_spec

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_support import Peer, overrides, ros
from rclpy.node import Node
from source_tree import ROOT
from visualization_msgs.msg import MarkerArray

from mbse_ros.bags.writer import BagWriter
from mbse_ros.machine import load_machine
from mbse_ros.nodes.base.lifecycle import SUCCESS, ManagedNode
from mbse_ros.nodes.display_node import DisplayNode
from mbse_ros.nodes.errorekf_node import ErrorEkfNode
from mbse_ros.nodes.estimator_node import EstimatorNode
from mbse_ros.nodes.graphs.catalogue import NODES
from mbse_ros.nodes.graphs.linkage_graph import SMOOTHED, linkage_topics
from mbse_ros.nodes.graphs.machine_graph import OUTPUTS, SCALE, machine_topics
from mbse_ros.nodes.interpolation_node import InterpolationNode
from mbse_ros.nodes.linkage_node import LinkageNode
from mbse_ros.nodes.linkage_plant_node import LinkagePlantNode
from mbse_ros.nodes.observer_node import ObserverNode
from mbse_ros.nodes.outputs_node import OutputsNode
from mbse_ros.nodes.payload_node import PayloadNode
from mbse_ros.nodes.plant_node import PlantNode
from mbse_ros.nodes.recorder_node import RecorderNode
from mbse_ros.nodes.replay_node import ReplayNode
from mbse_ros.nodes.scale_node import ScaleNode
from mbse_ros.nodes.smoother_node import SmootherNode
from mbse_ros.nodes.trajectory_node import TrajectoryNode
from mbse_ros.nodes.visualization_node import VisualizationNode

POLICY = ROOT / 'config' / 'security' / 'policy.xml'
ASKS = {'publish': Node.get_publisher_names_and_types_by_node, 'subscribe': Node.get_subscriber_names_and_types_by_node,
        'reply': Node.get_service_names_and_types_by_node, 'request': Node.get_client_names_and_types_by_node}
CHILDREN = {'topics': ('topic', {'publish', 'subscribe'}), 'services': ('service', {'reply', 'request'}),
            'actions': ('action', {'call', 'execute'})}
# What it takes to execute an action.
ACTION = {'publish': ('feedback', 'status'), 'reply': ('cancel_goal', 'get_result', 'send_goal')}
# Of ROS 2 from Jazzy on; of one with tf2_msgs; of one with control_msgs.
NOT_EVERYWHERE = {'~/get_type_description', *([] if find_spec('tf2_msgs') else ['/tf']), *(
    [] if find_spec('control_msgs') else [f'~/follow_joint_trajectory/_action/{name}' for names in ACTION.values()
                                          for name in names])}
TIME = {'use_sim_time': True}
IMU = 'boom_imu: {kind: gyro, body: boom, stddev: 0.1 deg/s}'
SUPPORT = 'support: {corners: [[2, 1], [2, -1], [-2, 0]]}'


@pytest.fixture(scope='module')
def machine(tmp_path_factory):
    """A machine with an IMU, that says on what it stands and where it touches."""
    path = tmp_path_factory.mktemp('machine') / 'crane_imu.yaml'
    text = (ROOT / 'config' / 'machines' / 'patu655_lift.yaml').read_text()
    assert text.count('\nsensors:\n') == 1
    assert text.count('\nbase: {') == 1
    text = text.replace('point: boom.tip\n', 'point: boom.tip\n  contact: boom.tip\n')
    text = text.replace('\nbase: {', f'\nbase: {{{SUPPORT}, ')
    path.write_text(text.replace('\nsensors:\n', f'\nsensors:\n  {IMU}\n'))
    return path


@pytest.fixture(scope='module')
def topics(machine):
    """All topics of both graphs."""
    return {**machine_topics(load_machine(machine)), **linkage_topics('five_bar'), **linkage_topics('pendulum'),
            **SMOOTHED, **SCALE}


@pytest.fixture(scope='module')
def runs(machine, topics, tmp_path_factory):
    """Each node with the parameters by which it speaks on most topics."""
    folder = tmp_path_factory.mktemp('bags')
    with BagWriter(folder / 'all') as writer:
        for topic, kind in topics.items():
            writer.write(topic, kind, 0, {})
    crane = {'machine': str(machine), **TIME}
    linkage = {'mechanism': 'five_bar', 'backend': 'vm', **TIME}
    recorded = ' '.join(f'{topic}:{kind}' for topic, kind in {**topics, **OUTPUTS}.items())
    return [
        (InterpolationNode, crane), (VisualizationNode, crane), (OutputsNode, crane),
        (ScaleNode, {**crane, 'records': 'none'}), (DisplayNode, {**crane, 'port': 0}),
        (EstimatorNode, crane),
        (ObserverNode, {**crane, 'backend': 'vm', 'predict_rate': 1.0}), (PayloadNode, {**crane, 'backend': 'vm'}),
        (TrajectoryNode, crane), (TrajectoryNode, {**crane, 'state': 'state/predicted'}),
        (PlantNode, {'machine': str(machine), 'backend': 'vm', 'cycle': 'topic', 'publish_clock': True}),
        (LinkageNode, {**linkage, 'unstamped': 'encoder_1'}), (ErrorEkfNode, {**linkage, 'unstamped': 'encoder_1'}),
        (SmootherNode, {**linkage, 'unstamped': 'encoder_1'}),
        (LinkagePlantNode, {'mechanism': 'five_bar', 'backend': 'vm', 'publish_clock': True}),
        (LinkagePlantNode, {'mechanism': 'pendulum', 'backend': 'vm'}),
        (RecorderNode, {'bag': str(folder / 'bag'), 'topics': recorded}), (ReplayNode, {'bag': str(folder / 'all')})]


@pytest.fixture(scope='module')
def spoken(runs):
    """What each node publishes, hears, serves and calls, as another process sees it: names by node and kind."""
    found = {name: {kind: set() for kind in ASKS} for name in NODES}
    for kind, values in runs:
        name, own = _of_one(kind, values)
        for ask, names in own.items():
            found[name][ask] |= names
    return found


def _of_one(kind, values, tries=3):
    """Name of a node, and what it says; two participants of Fast DDS 3 in one process have missed each other for good
    (in 3 of 24 runs of this file on Kilted), so in another domain again."""
    with ros(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Node, '__init__', _given(Node.__init__, values))
        node = kind()
        patch.undo()
        name = node.get_name()
        peer = Peer(markers=MarkerArray)
        try:
            _activated(node, peer)
            peer.until(lambda: _alone(peer.node, name) and _alone(node, name)
                       and _spoken(peer.node, name) == _spoken(node, name), 20.0)
            return name, _spoken(node, name)
        except AssertionError:
            if tries == 1:
                raise
        finally:
            peer.close()
            node.destroy_node()
    return _of_one(kind, values, tries - 1)


def _alone(seer, name):
    """Whether nobody else in the domain has the name."""
    return seer.get_node_names().count(name) == 1


def _spoken(seer, name):
    return {ask: _names(seer, ask, name) for ask in ASKS}


def _given(init, values):
    return lambda self, name, **more: init(self, name, parameter_overrides=overrides(**values), **more)


def _activated(node, peer):
    """With all inputs; a viewer of the markers makes linkage_node hear the truth."""
    if isinstance(node, ManagedNode):
        assert node.trigger_configure() == node.trigger_activate() == SUCCESS
    if isinstance(node, DisplayNode):
        node.server.count = 1       # as with a viewer
        node._follow_viewers()
    if isinstance(node, LinkageNode):
        peer.until(lambda: node._markers.get_subscription_count() > 0)
        node._follow_viewers()


def _names(node, ask, of):
    try:
        return {name for name, _ in ASKS[ask](node, of, '/')}
    except Exception as error:
        if type(error).__name__ != 'NodeNameNonExistentError':
            raise
        return set()


@pytest.fixture(scope='module')
def policy():
    return ElementTree.parse(POLICY).getroot()


def allowed(policy):
    """Expressions of full names by node and kind."""
    found = {}
    for profile in policy.iter('profile'):
        node, rules = profile.get('node'), {kind: set() for kind in ASKS}
        for group in profile:
            for kind in group.attrib:
                if kind == 'execute':
                    for way, names in ACTION.items():
                        rules[way] |= {full(f'{item.text}/_action/{name}', node) for item in group for name in names}
                else:
                    rules[kind] |= {full(item.text, node) for item in group}
        found[node] = rules
    return found


def full(name, node):
    """As sros2 does it, in the namespace /."""
    return name if name.startswith('/') else f'/{node}{name[1:]}' if name.startswith('~') else f'/{name}'


def test_the_format_is_that_of_sros2(policy):
    """policy.xsd of sros2, version 0.2.0, as far as it is used here."""
    assert (policy.tag, policy.attrib) == ('policy', {'version': '0.2.0'})
    enclaves, = policy
    enclave, = enclaves
    profiles, = enclave
    assert [enclaves.tag, enclave.tag, profiles.tag] == ['enclaves', 'enclave', 'profiles']
    assert enclave.attrib == {'path': '/'}
    for profile in profiles:
        assert profile.tag == 'profile' and set(profile.attrib) == {'ns', 'node'} and profile.get('ns') == '/'
        for group in profile:
            item, kinds = CHILDREN[group.tag]
            assert len(group) and group.attrib and set(group.attrib) <= kinds
            assert set(group.attrib.values()) == {'ALLOW'}
            names = [child.text for child in group]
            assert all(child.tag == item and not child.attrib and not len(child) for child in group)
            assert names == sorted(set(names)) and all(name == name.strip() for name in names)


def test_each_node_has_a_profile(policy):
    assert [profile.get('node') for profile in policy.iter('profile')] == sorted(NODES)


@pytest.mark.parametrize('node', sorted(NODES))
def test_nothing_that_a_node_does_is_missing(policy, spoken, node):
    rules = allowed(policy)[node]
    missing = {f'{kind} {name}' for kind, names in spoken[node].items() for name in names
               if not any(fnmatchcase(name, rule) for rule in rules[kind])}
    assert not missing


@pytest.mark.parametrize('node', sorted(NODES))
def test_nothing_is_allowed_that_no_node_does(policy, spoken, node):
    elsewhere = {full(name, node) for name in NOT_EVERYWHERE}
    unused = {f'{kind} {rule}' for kind, rules in allowed(policy)[node].items() for rule in rules - elsewhere
              if not any(fnmatchcase(name, rule) for name in spoken[node][kind])}
    assert not unused


def test_a_wildcard_is_for_names_out_of_files_alone(policy):
    found = {item.text for group in policy.iter() if group.tag in CHILDREN for item in group if '*' in item.text}
    assert found == {'sensors/imu/*', 'sensors/pressure/*', 'sensors/value/*'}
