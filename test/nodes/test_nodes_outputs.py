# SPDX-License-Identifier: Apache-2.0
"""The standard outputs: what goes out, and what must not, in the test's own process."""

import logging
import math
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from machine_frames import EXACT, LEVEL_SENSORS, chained, frames_of
from machine_variants import changed
from nodes_in_process import SECOND, Sink, make, stamps  # noqa: F401
from nodes_support import ros, sent
from nodes_support import state as made_up
from rclpy.parameter import Parameter
from transforms3d.euler import euler2mat
from transforms3d.quaternions import quat2mat

from mbse_ros.bags.messages import packed_record
from mbse_ros.bags.topics import TOOL_FORCE
from mbse_ros.errors import MbseError
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.machine.frames import LOAD, MachineFrames, Transform
from mbse_ros.nodes import outputs_node
from mbse_ros.nodes.base.node_settings import OutputsNodeSettings
from mbse_ros.nodes.base.timing import Pairs
from mbse_ros.nodes.messages.wire import TF_MESSAGE, packed_tool_force, to_ns, unpacked
from mbse_ros.nodes.observer_node import JointStates
from mbse_ros.nodes.outputs_node import FrameNames, OutputsNode
from mbse_ros.payload.tool_force import ToolForce
from mbse_ros.streams.records import ObserverStatus, PayloadEstimate, PayloadStatus

PERIOD = 10_000_000
KNOWN = {'UPDATING', 'TOO_SLOW', 'NOT_OBSERVABLE', 'OUTSIDE_STROKE', 'ACCELERATING'}


@pytest.fixture(scope='module', autouse=True)
def _ros():
    with ros():
        yield


def payload(stamp_ns=SECOND, mass=800.0, status=PayloadStatus.UPDATING):
    return PayloadEstimate(1, stamp_ns, mass, 5.0, mass - 10, mass + 10, mass, mass, 10, status)


def state(machine, stamp_ns=SECOND, z=None, **entries):
    """State of a machine at independent coordinates (g,), by default those of its start."""
    names, _ = state_names(machine, True)
    mean = np.zeros((10, len(names)))
    mean[-1, :len(machine.coordinates)] = machine.model.start.q[machine.model.z] if z is None else z
    for name, value in entries.items():
        mean[-1, names.index(name.replace('__', '/'))] = value
    found = replace(made_up(1, stamp_ns, names=names), mean=mean, status=ObserverStatus.OK)
    return replace(found, covariance=1e-6 * np.diag(1.0 + np.arange(len(names))))


class Tf(Sink):
    """TFMessage as the typestore reads it: the class itself need not be installed."""

    def __init__(self):
        super().__init__(None)

    def publish(self, message):
        """Kept as transforms."""
        self.messages.append(unpacked('/tf', TF_MESSAGE, message).transforms)

    def newest(self):
        """Transforms of the last message."""
        return [Transform(t.header.frame_id, t.child_frame_id, np.array([*vars_of(t.transform.translation, 'xyz')]),
                          np.array([*vars_of(t.transform.rotation, 'wxyz')])) for t in self.messages[-1]]


def vars_of(item, names):
    return [getattr(item, name) for name in names]


def with_tf(make, **values):    # noqa: F811
    """The node, its TF as a sink; another one is made where TF is not wanted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outputs_node, 'message_class', lambda name: name)
        patch.setattr('nodes_in_process.Sink', lambda kind: Tf() if kind == TF_MESSAGE else Sink(kind))
        return make(OutputsNode, **values)


def messages(node, topic):
    return node.sinks[topic].messages


def test_tf_of_every_frame_is_that_of_the_model(make):       # noqa: F811
    node, frames = with_tf(make, machine='zx200'), frames_of('zx200')
    machine = frames.machine
    z = machine.model.start.q[machine.model.z] + [0.3, 0.02, -0.01, 0.015]
    node.on_state(sent(state(machine, z=z), 'zx200'))
    found = node.sinks['/tf'].newest()
    q = machine.position(z)
    expected = chained([*frames.transforms(q), frames.load_transform(frames.load(q), q)])
    got = chained([item._replace(parent='ground' if item.parent == 'machine' else item.parent) for item in found])
    assert set(got) == {'ground', *machine.description.bodies, 'payload'}
    for name, (place, rotation) in got.items():
        np.testing.assert_allclose(place, expected[LOAD if name == 'payload' else name][0], rtol=0, atol=EXACT)
        np.testing.assert_allclose(rotation, expected[LOAD if name == 'payload' else name][1], rtol=0, atol=EXACT)
    assert {(item.parent, item.child) for item in found} == {
        ('machine', 'upper'), ('upper', 'boom'), ('boom', 'arm'), ('arm', 'bucket'), ('arm', 'rocker'),
        ('rocker', 'link'), ('bucket', 'payload')}
    assert {to_ns(t.header.stamp) for t in messages(node, '/tf')[0]} == {SECOND}


def test_the_load_alone_is_in_the_machines_frame(make):      # noqa: F811
    node = with_tf(make, machine='zx200', publish_tf='payload', frame_id='base_link', frame_prefix='zx200/',
                   payload_frame='load')
    machine = node.machine
    node.on_state(sent(state(machine), 'zx200'))
    item, = node.sinks['/tf'].newest()
    assert (item.parent, item.child) == ('zx200/base_link', 'zx200/load')
    place, = machine.outline_at(machine.model.start.q)['payload']
    np.testing.assert_allclose(item.translation, place, rtol=0, atol=EXACT)
    pose, = messages(node, 'payload/pose')
    assert pose.header.frame_id == 'zx200/base_link'
    assert vars_of(pose.pose.pose.position, 'xyz') == pytest.approx(place, abs=EXACT)
    node.on_payload(sent(payload(), 'zx200'))
    assert messages(node, 'payload/wrench')[0].header.frame_id == 'zx200/load'


def test_no_tf_where_it_is_not_wanted(make):        # noqa: F811
    assert '/tf' not in with_tf(make, machine='zx200', publish_tf='none').sinks


def test_without_tf2_msgs_a_line_says_so_and_all_else_goes_on(make, monkeypatch):       # noqa: F811
    def missing(name):
        raise MbseError(f'message type {name} is not installed')
    lines = []
    monkeypatch.setattr(outputs_node, 'message_class', missing)
    monkeypatch.setattr(OutputsNode, 'get_logger', lambda self: type('Log', (), {
        'warning': lines.append, 'info': logging.debug, 'fatal': lines.append})())
    node = make(OutputsNode)
    assert len(lines) == 1 and 'no TF' in lines[0] and 'tf2_msgs' in lines[0]
    node.on_state(sent(state(node.machine)))
    node.on_payload(sent(payload()))
    assert '/tf' not in node.sinks
    assert all(len(messages(node, f'payload/{topic}')) == 1 for topic in ('pose', 'wrench', 'mass'))


def test_weight_and_mass_of_the_load(make):       # noqa: F811
    """On a base that is inclined the weight still points to the ground."""
    machine = changed('zx200', LEVEL_SENSORS)
    node = with_tf(make, machine='zx200')
    node._machine, node._frames = machine, MachineFrames(machine)
    record = state(machine, inclination__roll=0.1, inclination__pitch=-0.2)
    node.on_state(packed_record(record, node.machine.name, node.fingerprint))
    assert not messages(node, 'payload/wrench')
    node.on_payload(sent(payload(), 'zx200'))
    wrench, = messages(node, 'payload/wrench')
    pose, = messages(node, 'payload/pose')
    rotation = quat2mat(vars_of(pose.pose.pose.orientation, 'wxyz'))
    force = euler2mat(0.1, -0.2, 0.0, 'sxyz') @ rotation @ vars_of(wrench.wrench.force, 'xyz')
    assert force == pytest.approx([0.0, 0.0, -800.0 * 9.81], abs=1e-6)
    assert vars_of(wrench.wrench.torque, 'xyz') == [0.0, 0.0, 0.0]
    assert (wrench.header.frame_id, to_ns(wrench.header.stamp)) == ('payload', SECOND)
    assert [m.data for m in messages(node, 'payload/mass')] == [800.0]


def test_the_weight_waits_for_the_attitude_of_its_instant(make):        # noqa: F811
    node = with_tf(make, rate=1000.0)
    for k in (1, 2, 3):
        node.on_payload(sent(payload(k * PERIOD, 100.0 * k)))
    assert not messages(node, 'payload/wrench') and len(messages(node, 'payload/mass')) == 3
    for k in (2, 3, 4, 5):
        node.on_state(sent(state(node.machine, k * PERIOD)))
    for k in (4, 4, 5):         # on a busy computer it comes later than the next states
        node.on_payload(sent(payload(k * PERIOD, 100.0 * k)))
    assert stamps(node.sinks['payload/wrench']) == [k * PERIOD for k in (2, 3, 4, 5)]
    weights = [np.linalg.norm(vars_of(m.wrench.force, 'xyz')) for m in messages(node, 'payload/wrench')]
    assert weights == pytest.approx(9.8066 * np.array([200.0, 300.0, 400.0, 500.0]), rel=1e-9)


def test_what_waits_for_its_pair_is_not_kept_for_ever():
    pairs = Pairs()
    for k in range(1000):
        assert pairs.take(0, k, 'place') is None
    assert pairs.take(1, 0, 'mass') is None and pairs.take(1, 999, 'mass') == ('place', 'mass')
    assert pairs.take(0, 0, 'place') == ('place', 'mass') and pairs.take(1, 999, 'mass') is None


@pytest.mark.parametrize('status', PayloadStatus)
def test_a_mass_that_nobody_may_count_on_is_silence(make, status):        # noqa: F811
    node = with_tf(make)
    node.on_state(sent(state(node.machine)))
    node.on_payload(sent(payload(status=status)))
    assert [len(messages(node, topic)) for topic in ('payload/mass', 'payload/wrench')] == [status.name in KNOWN] * 2


def test_no_mass_yet_is_silence(make):        # noqa: F811
    node = with_tf(make)
    node.on_state(sent(state(node.machine)))
    node.on_payload(sent(payload(mass=math.nan)))
    assert not messages(node, 'payload/mass') and not messages(node, 'payload/wrench') and not node.warned
    node.on_payload(sent(payload()))
    node.on_payload(sent(payload(SECOND + PERIOD, math.nan)))
    node.on_state(sent(state(node.machine, 2 * SECOND)))
    assert len(messages(node, 'payload/wrench')) == 1


@pytest.mark.parametrize('lost', [True, False])
def test_a_state_that_is_lost_or_has_no_position_places_nothing(make, lost):      # noqa: F811
    node = with_tf(make)
    record = state(node.machine)
    node.on_state(sent(replace(record, status=ObserverStatus.LOST) if lost else
                       replace(record, mean=np.full(record.mean.shape, np.nan))))
    assert not messages(node, '/tf') and not messages(node, 'payload/pose') and not node.warned


def test_a_position_out_of_reach_places_nothing(make):      # noqa: F811
    node = with_tf(make)
    node.on_state(sent(state(node.machine, z=[3.0])))
    assert not messages(node, '/tf') and 'dropped' in node.warned[0]
    node.on_state(sent(state(node.machine, 2 * SECOND)))
    assert len(messages(node, '/tf')) == 1


def test_another_machine_is_refused(make):      # noqa: F811
    node, other = with_tf(make), frames_of('zx200').machine
    node.on_state(sent(state(other), 'zx200'))
    node.on_payload(sent(payload(), 'zx200'))
    node.on_state(packed_record(state(node.machine), node.machine.name, 'another file'))
    node.on_payload(b'\0\1\0\0')
    assert not any(sink.messages for sink in node.sinks.values())
    assert 'the same file' in node.warned[0] and node.warnings.total == 4
    node.on_state(sent(state(node.machine)))        # the wrong ones have not taken its turn
    assert len(messages(node, '/tf')) == 1


def test_messages_come_at_their_rate(make):      # noqa: F811
    node = with_tf(make, rate=20.0)
    for k in range(100):
        node.on_state(sent(state(node.machine, k * PERIOD)))
        node.on_payload(sent(payload(k * PERIOD)))
    assert {topic: len(sink.messages) for topic, sink in node.sinks.items()} == {
        **dict.fromkeys(node.sinks, 20), '/diagnostics': 1, 'valve_feed_forward': 0}
    assert node.set_parameters([Parameter('rate', value=100.0)])[0].successful
    for k in range(100, 110):
        node.on_state(sent(state(node.machine, k * PERIOD)))
    assert len(messages(node, '/tf')) == 30


def test_what_nobody_reads_is_not_computed(make, monkeypatch):      # noqa: F811
    monkeypatch.setattr(Sink, 'get_subscription_count', lambda self: 0)
    monkeypatch.setattr(outputs_node, 'received', None)
    node = with_tf(make)
    node.on_state(sent(state(node.machine)))
    node.on_payload(sent(payload()))
    assert not any(sink.messages for sink in node.sinks.values()) and not node.warned


def test_covariance_of_the_load_is_that_of_the_coordinates(make):      # noqa: F811
    node, frames = with_tf(make, machine='zx200'), frames_of('zx200')
    record = state(frames.machine)
    node.on_state(sent(record, 'zx200'))
    jacobian = frames.load(frames.machine.model.start.q).jacobian
    got = np.array(messages(node, 'payload/pose')[0].pose.covariance).reshape(6, 6)
    np.testing.assert_allclose(got, jacobian @ record.covariance[:4, :4] @ jacobian.T, rtol=1e-6, atol=1e-15)
    assert (got == got.T).all()
    node.on_state(sent(replace(record, stamp_ns=2 * SECOND, covariance=np.nan * record.covariance), 'zx200'))
    assert len(messages(node, 'payload/pose')) == 1 and len(messages(node, '/tf')) == 2 and not node.warned


@pytest.mark.parametrize('given, name', [
    ({'frame_id': 'boom'}, 'frame_id'), ({'payload_frame': 'bucket'}, 'payload_frame'), ({'frame_id': ''}, 'frame_id'),
    ({'payload_frame': 'machine'}, 'payload_frame'), ({'frame_id': '/map'}, 'frame_id'),
    ({'frame_prefix': '/a/'}, 'frame_prefix')])
def test_names_of_frames_that_tf_cannot_take_are_refused(given, name):
    with pytest.raises(MbseError, match=f'^{name}: got'):
        FrameNames(frames_of('zx200').machine, OutputsNodeSettings(**given))


@pytest.mark.parametrize('name', ['zx200', 'zx200_can'])
def test_joints_have_the_names_of_the_robot_model_and_what_the_cylinders_do(name):
    machine = frames_of(name).machine
    joints = JointStates(machine)
    pressures = {f'pressure__{volume}': 1e6 * (1 + k) for k, volume in enumerate(machine.volumes)}
    rates = {f'velocity__{c}': 0.1 * (1 + k) for k, c in enumerate(machine.coordinates)}
    position, velocity, effort = (dict(zip(joints.names, values)) for values in joints(
        state(machine, **pressures, **rates)))
    urdf = {'swing_joint', 'boom_joint', 'arm_joint', 'bucket_joint'}
    assert urdf | set(machine.cylinders) | {'rocker_joint', 'link_joint'} == set(joints.names)
    assert np.isfinite([*position.values(), *velocity.values()]).all()
    assert {key for key, value in effort.items() if math.isnan(value)} == {'swing_joint', 'rocker_joint', 'link_joint'}
    power = [sum(effort[key] * velocity[key] for key in keys) for keys in (
        machine.cylinders, urdf - {'swing_joint'})]
    assert power[0] == pytest.approx(power[1], rel=1e-9) and abs(power[0]) > 1.0


def test_the_force_at_the_tool_goes_over_the_wire(make):      # noqa: F811
    """As the payload node sends it, with its covariance; as a wrench about the origin of the tool's frame."""
    node = with_tf(make, machine='zx200', frame_prefix='zx200/')
    P, nothing = np.diag([400.0, math.nan, 900.0]), math.nan
    force = ToolForce('bucket', np.array([1.2, 0.0, -0.8]), np.array([5e3, nothing, 9e3]), P, np.array([0.6, 0.0, 0.8]),
                      10.2e3, 15.0, 800.0, 0.3, 'no cylinder that weighs shows y', SECOND - 20_000_000)
    record = replace(payload(), tool_force=force)
    cdr = packed_tool_force(record, 'zx200', node.fingerprint)
    message = unpacked('tool_force/estimate', TOOL_FORCE, cdr)
    assert (message.body, message.held, message.reason, message.mass) == ('bucket', 0.3, force.reason, 800.0)
    np.testing.assert_array_equal(message.covariance.reshape(3, 3), P)
    np.testing.assert_array_equal([message.component, message.component_stddev], [10.2e3, 15.0])
    node.on_force(cdr)
    node.on_force(packed_tool_force(record, 'zx200', 'another'))
    wrench, = messages(node, 'tool_force')
    assert (wrench.header.frame_id, to_ns(wrench.header.stamp)) == ('zx200/bucket', SECOND - 20_000_000)
    np.testing.assert_array_equal(vars_of(wrench.wrench.force, 'xyz'), force.force)
    assert wrench.wrench.torque.y == pytest.approx(-0.8 * 5e3 - 1.2 * 9e3)      # z Fx - x Fz
    assert 'tool_force' not in with_tf(make).sinks      # a crane without `payload.contact`
