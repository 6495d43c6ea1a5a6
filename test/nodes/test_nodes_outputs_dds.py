# SPDX-License-Identifier: Apache-2.0
"""The standard outputs as processes over DDS, in a namespace, under other names."""

from importlib.util import find_spec
from itertools import count

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from geometry_msgs.msg import PoseWithCovarianceStamped, WrenchStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from machine_frames import EXACT, chained, frames_of
from nodes_support import Peer, own_domain, segment, sent
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64
from test_nodes_outputs import PERIOD, payload, state, vars_of

from mbse_ros.machine.frames import LOAD, Transform
from mbse_ros.msg import HydraulicState, PayloadEstimate, SensorSegment
from mbse_ros.nodes.graphs.graph import Graph, Process, parse_arguments
from mbse_ros.nodes.graphs.machine_graph import MachineArguments, machine_graph
from mbse_ros.nodes.graphs.run_graph import RunningGraph
from mbse_ros.nodes.messages.wire import to_ns

AT = '/site/zx200'
TOPICS = {f'{AT}/load/kg': Float64, f'{AT}/payload/wrench': WrenchStamped,
          f'{AT}/payload/pose': PoseWithCovarianceStamped, f'{AT}/joint_states': JointState}
HAS_TF = find_spec('tf2_msgs') is not None
if HAS_TF:
    from tf2_msgs.msg import TFMessage
    TOPICS['/site/tf'] = TFMessage
FAR = 1_000_000      # number of an instant after all those of the start
READERS = 60.0      # s, until which the node waits for the readers of its main output


class Running:
    """Processes, and a peer that speaks to them and hears them."""

    def __init__(self, *processes):
        self.log, self.peer = [], Peer(**TOPICS)
        self.graph = RunningGraph(Graph(processes), self.log.append)
        self.graph.start()

    def until(self, condition):
        """Look after the processes until the condition holds."""
        def check():
            self.graph.step()
            return condition()
        try:
            self.peer.until(check, 3 * READERS)
        except AssertionError:
            raise AssertionError('\n'.join(['waited in vain', *self.log])) from None

    def heard(self, topic):
        """Messages of a topic so far."""
        return self.peer.heard[topic]

    def send(self, kind, topic, message):
        """To all who read it: at the first time one must be there."""
        self.peer.publish(kind, topic, message)

    def close(self):
        """End all."""
        self.graph.stop()
        self.peer.close()


@pytest.fixture(scope='module')
def running():
    with own_domain():
        process = Process('outputs_node', 'outputs_node', AT, {
            'machine': 'zx200', 'frame_prefix': 'zx200/', 'frame_id': 'base_link', 'rate': 1000.0,
            'wait_subscribers': 1, 'wait_time': READERS},
            {'payload/mass': 'load/kg', '/tf': '/site/tf'}, respawn=True)
        found = Running(process)
        try:
            all_are_heard(found)
            yield found
        finally:
            found.close()


def send(running, k, z=None):
    """Send state and payload of an instant."""
    machine = frames_of('zx200').machine
    running.send(HydraulicState, f'{AT}/state', sent(state(machine, k * PERIOD, z), 'zx200'))
    running.send(PayloadEstimate, f'{AT}/payload', sent(payload(k * PERIOD), 'zx200'))


def instant(running, k, z=None):
    """The same, and wait until it has gone through."""
    send(running, k, z)
    running.until(lambda: [m for m in running.heard(f'{AT}/payload/wrench') if to_ns(m.header.stamp) == k * PERIOD])


def all_are_heard(running):
    """Send instants until each output has found its reader: what nobody reads is not published."""
    numbers = count(1)

    def heard():
        send(running, next(numbers))
        return all(running.heard(topic) for topic in TOPICS if not topic.endswith('joint_states'))
    running.until(heard)


def test_names_are_those_of_namespace_and_remapping(running):
    assert running.heard(f'{AT}/load/kg')[-1].data == 800.0
    assert running.heard(f'{AT}/payload/wrench')[-1].header.frame_id == 'zx200/payload'
    assert running.heard(f'{AT}/payload/pose')[-1].header.frame_id == 'zx200/base_link'
    assert not running.peer.node.count_publishers('/payload/mass') and not running.peer.node.count_publishers('/tf')


@pytest.mark.skipif(not HAS_TF, reason='tf2_msgs is not installed')
def test_tf_over_dds_is_the_model(running):
    frames = frames_of('zx200')
    machine = frames.machine
    z = machine.model.start.q[machine.model.z] + [-0.4, 0.05, 0.03, -0.02]
    instant(running, FAR, z)

    def found():
        return [m for m in running.heard('/site/tf') if to_ns(m.transforms[0].header.stamp) == FAR * PERIOD]
    running.until(found)
    message = found()[0]
    names = {'zx200/base_link': 'ground', 'zx200/payload': LOAD}

    def own(name):
        return names.get(name, name.removeprefix('zx200/'))
    got = chained([Transform(own(t.header.frame_id), own(t.child_frame_id),
                             np.array(vars_of(t.transform.translation, 'xyz')),
                             np.array(vars_of(t.transform.rotation, 'wxyz'))) for t in message.transforms])
    q = machine.position(z)
    expected = chained([*frames.transforms(q), frames.load_transform(frames.load(q), q)])
    assert set(got) == set(expected)
    for name, poses in expected.items():
        for one, other in zip(got[name], poses):
            np.testing.assert_allclose(one, other, rtol=0, atol=EXACT)


def test_what_is_deactivated_is_silent(running):
    request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_DEACTIVATE))
    assert running.peer.call(ChangeState, f'{AT}/outputs_node/change_state', request).success
    instants = [2 * FAR, 2 * FAR + 1, 3 * FAR]
    for k in instants[:2]:
        running.peer.outputs[f'{AT}/state'].publish(sent(state(frames_of('zx200').machine, k * PERIOD), 'zx200'))
        running.peer.outputs[f'{AT}/payload'].publish(sent(payload(k * PERIOD), 'zx200'))
    request.transition.id = Transition.TRANSITION_ACTIVATE
    assert running.peer.call(ChangeState, f'{AT}/outputs_node/change_state', request).success
    running.until(lambda: running.peer.outputs[f'{AT}/payload'].get_subscription_count() == 1
                  and running.peer.outputs[f'{AT}/state'].get_subscription_count() == 1)
    instant(running, instants[2])
    stamps = {to_ns(m.header.stamp) for m in running.heard(f'{AT}/payload/wrench')}
    assert not stamps & {k * PERIOD for k in instants[:2]}


def test_joints_under_the_name_that_robot_state_publisher_reads():
    """The remap of docs/integration.md."""
    with own_domain():
        process = Process('observer_node', 'observer_node', AT, {'backend': 'vm'},
                          {'estimated/joint_states': 'joint_states'}, respawn=True)
        running = Running(process)
        try:
            running.until(lambda: running.peer.node.count_publishers(f'{AT}/joint_states'))
            running.until(lambda: running.peer.node.count_subscribers(f'{AT}/segment'))
            numbers = count()

            def heard():        # what nobody reads is not published, and the node may meet its reader later
                k = next(numbers)
                running.send(SensorSegment, f'{AT}/segment', sent(segment(k + 1, k * PERIOD)))
                return running.heard(f'{AT}/joint_states')
            running.until(heard)
            joints = running.heard(f'{AT}/joint_states')[-1]
            assert joints.name == ['lift', 'boom_joint']
            assert len(joints.position) == len(joints.velocity) == len(joints.effort) == 2
            assert np.isfinite([*joints.position, *joints.velocity, *joints.effort]).all()
        finally:
            running.close()


@pytest.mark.parametrize('composed', ['true', 'false'])
def test_the_graph_starts_it_where_it_is_asked_for(composed):
    def nodes(**arguments):
        found = machine_graph(parse_arguments({'composed': composed, **arguments}, MachineArguments)).processes
        return {name: own for p in found for name, own in (p.parts or {p.name: p.parameters}).items()}
    plain, more = nodes(), nodes(outputs='true')
    assert set(more) - set(plain) == {'outputs_node'} and more['outputs_node']['frame_prefix'] == ''
    for name in ('observer_node', 'payload_node'):      # nothing is lost at the start
        assert more[name]['wait_subscribers'] == plain[name]['wait_subscribers'] + 1
    for name in ('interpolation_node', 'plant_node', 'visualization_node'):
        assert more[name] == plain[name]


def test_machines_in_namespaces_have_frames_of_their_own():
    found = {p.name: p for p in machine_graph(parse_arguments(
        {'outputs': 'true', 'rviz': 'true', 'namespace': '/site/a/'}, MachineArguments)).processes}
    assert found['outputs_node'].parameters['frame_prefix'] == 'site/a/'
    assert found['visualization_node'].parameters['frame_id'] == 'site/a/machine'
    assert found['rviz2'].arguments[-2:] == ('-f', 'site/a/machine')
