# SPDX-License-Identifier: Apache-2.0
"""Sensors of every kind and commands of every valve: from the plant's messages to the state, in one process."""

import math
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from source_tree import ROOT

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_in_process import SECOND, clock, go, hand_clock, make, making  # noqa: F401
from nodes_support import Peer, asked, joint_state, ros
from rclpy.duration import Duration
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from mbse_ros.bags.channel_samples import SensorFields, topic_readers
from mbse_ros.bags.messages import segment_record
from mbse_ros.bags.topics import SEGMENT, TopicMap
from mbse_ros.machine import load_machine
from mbse_ros.nodes.base.middleware import _Executor
from mbse_ros.nodes.graphs.machine_graph import sensor_topics
from mbse_ros.nodes.interpolation_node import InterpolationNode
from mbse_ros.nodes.linkage_node import LinkageNode
from mbse_ros.nodes.linkage_plant_node import LinkagePlantNode
from mbse_ros.nodes.messages.wire import message_class, packed, to_ns, unpacked
from mbse_ros.nodes.observer_node import ObserverNode
from mbse_ros.nodes.plant_node import PlantNode, ValveCommands
from mbse_ros.nodes.visualization_node import VisualizationNode
from mbse_ros.streams.interpolation import Interpolator

MORE = '''
  swing_rate: {kind: rate, coordinate: swing_joint, stddev: 0.002 rad/s}
  boom_gyro: {kind: gyro, body: boom, stddev: 0.002 rad/s}
  boom_specific_force: {kind: accelerometer, point: boom.arm_pin, stddev: 0.1 m/s^2}
  pump: {kind: pressure, supply: pump, stddev: 100 kPa}
'''
CHANNELS = ('position/boom', 'position/arm', 'velocity/arm', 'velocity/swing_joint', 'gyro/boom_imu.x',
            'gyro/boom_imu.z', 'accelerometer/boom_imu.y', 'gyro/upper', 'pressure/boom_rod', 'pressure/pump')

PERIOD = 10_000_000     # ns
TIPS_FIRST = 'sensors/imu/tip_1', 'sensors/imu/tip_2', 'sensors/joint_states'


@pytest.fixture(scope='module', autouse=True)
def _ros():
    with ros():
        yield


@pytest.fixture(scope='module')
def with_imu(tmp_path_factory) -> Path:
    """The excavator with a rate, a gyro, an accelerometer and a measured supply."""
    file = tmp_path_factory.mktemp('machine') / 'zx200_imu.yaml'
    file.write_text((ROOT / 'config' / 'machines' / 'zx200.yaml').read_text().rstrip() + MORE)
    return file


def written(stamp_ns, samples, channels, valves):
    """Serialized messages by topic, as the plant sends them."""
    fields = SensorFields(channels, valves)
    return {topic: packed(fields.topics[topic], stamp_ns, 'm', values)
            for topic, values in fields.spread(samples).items()}


def samples_of(messages, channels, commands):
    """Samples of serialized messages by topic, read as the interpolation reads them."""
    refused, found = [], {}
    readers = topic_readers(channels, commands, TopicMap(), refused.append)
    assert set(readers) == set(messages)
    for topic, cdr in messages.items():
        for sample in readers[topic].samples(topic, deserialize_message(cdr, message_class(readers[topic].msgtype))):
            found[sample.channel] = sample
    assert not refused
    return found


def test_what_is_written_is_read():
    valves = ('boom_valve', 'arm_valve')
    values = {name: 0.1 + k for k, name in enumerate((*CHANNELS, *(f'command/{v}' for v in valves)))}
    messages = written(7 * SECOND + 5, values, CHANNELS, valves)
    found = samples_of(messages, CHANNELS, tuple(f'command/{v}' for v in valves))
    assert {name: sample.value for name, sample in found.items()} == values
    assert {sample.stamp_ns for sample in found.values()} == {7 * SECOND + 5}


def test_what_is_not_measured_is_not_there():
    messages = written(0, {'position/boom': 1.0, 'velocity/arm': 2.0, 'gyro/a': 3.0, 'command/v': 4.0},
                       ('position/boom', 'velocity/arm', 'gyro/a'), ('v',))
    joints = deserialize_message(messages['sensors/position'], message_class('sensor_msgs/msg/JointState'))
    assert joints.name == ['boom', 'arm'] and math.isnan(joints.position[1]) and math.isnan(joints.velocity[0])
    imu = deserialize_message(messages['sensors/imu/a'], message_class('sensor_msgs/msg/Imu'))
    assert imu.orientation_covariance[0] == imu.linear_acceleration_covariance[0] == -1.0
    assert imu.angular_velocity_covariance[0] == 0.0 and imu.angular_velocity.z == 3.0


def test_commands_are_each_their_own():
    warned = []
    commands = ValveCommands(('boom_valve', 'arm_valve', 'swing_joint'), warned.append)
    commands.take(['arm_valve', 'swing_joint'], [2.0, 0.3])
    commands.take(['boom_valve'], [-1.0])
    assert commands.values == {'boom_valve': -1.0, 'arm_valve': 2.0, 'swing_joint': 0.3} and not warned
    commands.take(['boom_valve', 'arm_valve', 'tracks'], [math.nan, 4.0, 1.0])
    commands.take(['boom_valve', 'arm_valve'], [5.0])
    assert commands.values == {'boom_valve': -1.0, 'arm_valve': 4.0, 'swing_joint': 0.3}
    assert 'boom_valve dropped' in warned[0] and 'tracks dropped' in warned[1] and '2 names and 1' in warned[2]


class Chain:
    """Plant, interpolation, observer and viewer of a machine; what one sends goes to the next at once."""

    def __init__(self, make, clock, machine, **plant):      # noqa: F811
        self.machine = load_machine(machine)
        self.clock, name = clock, {'machine': str(machine)}
        self.plant = make(PlantNode, **name, **plant)
        self.interpolation, self.observer, self.viewer = (
            make(kind, **name) for kind in (InterpolationNode, ObserverNode, VisualizationNode))
        self.readers = topic_readers(self.machine.channels, self.machine.commands, TopicMap(),
                                     self.interpolation._refuse)
        self.done = dict.fromkeys(self.readers, 0)

    def go(self, seconds):
        """Let the plant's time run; its samples go in topic by topic."""
        go(self.plant, self.clock, seconds)
        segments = self.interpolation.sinks['segment'].messages
        before = len(segments)
        waiting = {topic: self.plant.sinks[topic].messages[self.done[topic]:] for topic in self.readers}
        for k in range(max(map(len, waiting.values()))):
            for topic, messages in waiting.items():
                if k < len(messages):
                    self.interpolation.on_message(topic, serialize_message(messages[k]))
                    self.done[topic] += 1
        for message in segments[before:]:
            self.observer.on_record(serialize_message(message))

    def truth_at(self, stamp_ns):
        """Truth of an instant."""
        return next(m for m in self.plant.sinks['truth'].messages if to_ns(m.header.stamp) == stamp_ns)


@pytest.fixture(scope='module', params=['zx200_can', 'zx200_imu'])
def chain(request, with_imu):
    machine = with_imu if request.param == 'zx200_imu' else request.param
    with making() as build, hand_clock() as now:
        yield Chain(build, now, machine, cycle='topic', payload=400.0)


def test_from_the_plant_to_the_state(chain):
    chain.go(0.5)
    chain.plant.on_command(joint_state(0, 'm', ['boom_valve', 'swing_joint'], [4.0, 0.25]))
    chain.plant.on_command(joint_state(0, 'm', ['bucket_valve'], [3.0]))
    chain.go(1.5)
    sent = chain.plant.sinks['sensors/valve_command'].messages[-1]
    assert dict(zip(sent.name, sent.position)) == {'boom_valve': 4.0, 'arm_valve': 0.0, 'bucket_valve': 3.0}
    last, machine = chain.observer.sinks['state'].messages[-1], chain.machine
    truth, first = chain.truth_at(to_ns(last.header.stamp)), chain.plant.sinks['truth'].messages[0]
    assert truth.cylinders == list(machine.coordinates) and len(truth.position) == 4
    moved = dict(zip(truth.cylinders, np.abs(np.array(truth.position) - first.position)))
    arm = max(value for name, value in moved.items() if 'arm' in name)
    assert min(value for name, value in moved.items() if 'arm' not in name) > 10 * arm
    assert last.status == last.OK, last.reason
    values = dict(zip(last.names, np.array(last.mean).reshape(last.steps, -1)[-1]))
    for name, position, velocity in zip(truth.cylinders, truth.position, truth.velocity):
        assert values[f'position/{name}'] == pytest.approx(position, abs=5e-3), name
        assert values[f'velocity/{name}'] == pytest.approx(velocity, abs=5e-2), name
    for volume, pressure in zip(truth.volumes, truth.pressure):
        assert values[f'pressure/{volume}'] == pytest.approx(pressure, abs=4e5), volume
    assert not chain.interpolation.warned and not chain.observer.warned


def test_segments_are_those_of_the_samples_alone(chain):
    """The way over the messages changes no bit."""
    chain.plant.on_command(joint_state(0, 'm', ['arm_valve'], [-3.0]))
    chain.go(0.3)
    machine, sinks = chain.machine, chain.plant.sinks
    assert set(sensor_topics(machine)) <= set(sinks)
    alone, found = Interpolator(machine.channels, machine.commands), []
    for k in range(chain.done['sensors/position']):
        for topic, reader in chain.readers.items():
            for sample in reader.samples(topic, sinks[topic].messages[k]):
                found += alone.add(*sample)
    segments = [segment_record(unpacked('segment', SEGMENT, serialize_message(m)))
                for m in chain.interpolation.sinks['segment'].messages]
    assert len(segments) == len(found) >= 28 and segments[0].channels == machine.channels
    for ours, theirs in zip(segments, found):
        np.testing.assert_array_equal(ours.values, theirs.values)
        np.testing.assert_array_equal(ours.command_values, theirs.command_values)
    assert segments[-1].command_values[-1, 1] == -3.0


def test_joint_states_are_all_joints_and_pistons(chain):
    chain.plant.on_command(joint_state(0, 'm', ['boom_valve', 'bucket_valve'], [2.0, 3.0]))
    chain.go(0.5)
    machine, message = chain.machine, chain.observer.sinks['estimated/joint_states'].messages[-1]
    assert message.name[:4] == list(machine.coordinates) and set(message.name) == set(machine.model.names)
    state = chain.observer.sinks['state'].messages[-1]
    z = np.array(state.mean).reshape(state.steps, -1)[-1, :4]
    exact = dict(zip(machine.model.names, machine.position(z)))
    assert dict(zip(message.name, message.position)) == pytest.approx(exact, abs=1e-7)
    earlier = chain.observer.sinks['estimated/joint_states'].messages[-11]
    change = (np.array(message.position) - earlier.position) / 0.1
    np.testing.assert_allclose(message.velocity, change, atol=0.05)
    forces = {name for name, effort in zip(message.name, message.effort) if math.isfinite(effort)}
    assert forces == {'boom', 'arm', 'bucket', 'boom_joint', 'arm_joint', 'bucket_joint'}
    assert dict(zip(message.name, message.effort))['boom'] > 1e5      # it carries boom, arm and load


def test_both_machines_are_drawn_with_their_loops(chain):
    chain.plant.on_command(joint_state(0, 'm', ['bucket_valve', 'swing_joint'], [-4.0, 0.4]))
    chain.go(1.0)
    for message in chain.observer.sinks['state'].messages:
        chain.viewer.on_state(serialize_message(message))
    drawn = chain.viewer.sinks['markers'].messages
    assert len(drawn) >= 19 and not chain.viewer.warned
    stamp, = {to_ns(m.header.stamp) for m in drawn[-1].markers}
    places = chain.machine.solids.placed(chain.machine.outline(np.array(chain.truth_at(stamp).position)))
    names = [(part.name, place[0]) for part, place in zip(chain.machine.solids.parts, places) if part.kind == 'body']
    assert {'link', 'rocker', 'bucket', 'upper'} <= {name for name, _ in names}
    for ns in ('measured', 'estimated'):
        found = [m.pose.position for m in drawn[-1].markers if m.ns == ns and m.points][-len(names):]
        for (name, origin), p in zip(names, found):
            np.testing.assert_allclose([p.x, p.y, p.z], origin, atol=0.05, err_msg=name)


def test_a_machine_that_is_not_measured_by_its_coordinates_has_no_ghost(make, tmp_path):     # noqa: F811
    text = (ROOT / 'config' / 'machines' / 'patu655_lift.yaml').read_text()
    file = tmp_path / 'by_angle.yaml'
    angle = '{kind: inclinometer, body: boom, stddev: 0.06 deg}'
    file.write_text(text.replace('{kind: stroke, cylinder: lift, stddev: 0.4 mm}', angle))
    machine = load_machine(file)
    assert 'position/lift' not in machine.channels
    node = make(VisualizationNode, machine=str(file))
    assert not node._measured.possible


def test_diagnostics(chain):
    chain.go(0.6)
    statuses = [m.status[0] for m in chain.observer.sinks['/diagnostics'].messages]
    assert [s.message.partition(':')[0] for s in statuses][:2] == ['STARTING', 'OK']
    assert statuses[0].hardware_id == chain.machine.name and statuses[0].name == f'observer_node: {chain.machine.name}'
    assert statuses[-1].level == b'\x00' and 'NIS' in {value.key for value in statuses[-1].values}
    count = len(statuses)
    chain.go(2.0)
    assert 1 <= len(chain.observer.sinks['/diagnostics'].messages) - count <= 3      # one a second
    chain.observer.on_record(serialize_message(chain.interpolation.sinks['segment'].messages[-1]))      # once more
    assert chain.observer._inbox.dropped == 1
    chain.interpolation.tick()
    assert chain.interpolation.sinks['/diagnostics'].messages[-1].status[0].message == 'OK'


def test_after_a_pause_no_sensor_seems_dead(make):     # noqa: F811
    """Two seconds of each sensor wait, one subscription after the other."""
    node, peer, executor = make(InterpolationNode, sensor_reliability='reliable'), Peer(), _Executor()
    executor.add_node(node)
    peer.near = node,
    try:
        channels, valves = node.machine.channels, node.machine.valves
        values = {'position/lift': 0.2, 'pressure/lift_piston': 3e6, 'pressure/lift_rod': 2e6,
                  'command/lift_valve': 0.0}
        segments, turn = node.sinks['segment'].messages, lambda: executor.spin_once(timeout_sec=0.01)
        for first, last in ((0, 10), (10, 200), (200, 250)):
            peer.also = lambda: None
            for topic, kind in SensorFields(channels, valves).topics.items():
                for k in range(first, last):
                    peer.publish(message_class(kind), topic, written(k * PERIOD, values, channels, valves)[topic])
            assert all(output.wait_for_all_acked(Duration(seconds=60)) for output in peer.outputs.values())
            if last < 250:
                peer.also = turn
                peer.until(lambda: segments and to_ns(segments[-1].header.stamp) == (last - 1) * PERIOD, why=lambda: (
                    last, len(segments), node.warned, {name: buffer.newest for name, buffer in
                                                       node.interpolator._inputs.items()}))
        node.do_rest()      # what has come before its end counts
        assert to_ns(segments[-1].header.stamp) == 249 * PERIOD
        assert np.isfinite([v for segment in segments for v in segment.values]).all()
        assert [segment.restart for segment in segments].count(True) == 1 and not node.interpolator.lost
    finally:
        executor.shutdown()
        peer.close()


def test_what_waits_for_a_mechanism_corrects_nothing(make):     # noqa: F811
    """Half a second of the sensors waits, then the same of the inputs: taken one after the other these would correct
    every state since."""
    node, peer = make(LinkageNode, mechanism='five_bar', backend='vm', sensor_reliability='reliable'), Peer()
    executor = _Executor()
    executor.add_node(node)
    peer.near = node,
    try:
        angles = dict(zip(node.machine.names, node.machine.start.q))
        for topic, fields in (('sensors/joint_states', {'names': list(angles), 'position': list(angles.values())}),
                              ('sensors/inputs', {'names': node.machine.inputs, 'position': (), 'effort': [0.0, 0.0]})):
            for k in range(100):
                peer.publish(JointState, topic, joint_state(SECOND + k * 5_000_000, 'm', **fields))
        assert all(output.wait_for_all_acked(Duration(seconds=60)) for output in peer.outputs.values())
        states, peer.also = node.sinks['linkage_state'].messages, lambda: executor.spin_once(timeout_sec=0.01)
        peer.until(lambda: len(states) >= 100, why=lambda: (len(states), node.warned))
        node.do_rest()
        assert [(state.sequence, state.revision) for state in states] == [(k, 0) for k in range(1, 101)]
    finally:
        executor.shutdown()
        peer.close()


def test_a_reset_in_motion_is_the_same_with_accelerometers_first_and_with_encoders_first(make, clock):  # noqa: F811
    sensors = {'mechanism': 'five_bar', 'sensors': 'tip_1 tip_2 encoder_1 encoder_2'}
    plant = make(LinkagePlantNode, **sensors)
    node = make(LinkageNode, backend='vm', sensor_reliability='reliable', **sensors)
    go(plant, clock, 1.0)
    peer, executor = Peer(), _Executor()
    executor.add_node(node)
    peer.near, peer.also = (node,), lambda: executor.spin_once(timeout_sec=0.001)
    states, topics = node.sinks['linkage_state'].messages, list(TIPS_FIRST)

    def means():
        return [list({m.sequence: m for m in states}.values())[k].mean for k in range(30)]

    def sent(k):
        return [(topic, plant.sinks[topic].messages[k]) for topic in topics]
    try:
        client = peer.node.create_client(Trigger, 'linkage_node/reset')
        for k in range(148, 180):
            if k == 150:
                peer.until(client.service_is_ready)
                answer = asked(client, Trigger.Request())
                peer.until(answer.done)
                states.clear()
            for topic, message in sent(k):
                count = len(states)
                peer.publish(type(message), topic, message)
                peer.until(lambda count=count: len(states) > count, why=lambda: (k, node.warned))
        found = means()
        node.stage.reset()
        states.clear()
        topics.reverse()
        for k in range(150, 180):
            for topic, message in sent(k):
                node.on_message(topic, serialize_message(message))
        np.testing.assert_allclose(found, means(), rtol=0, atol=1e-9)
        truth = {to_ns(m.header.stamp): m.position for m in plant.sinks['truth/joint_states'].messages}
        angles = np.array(truth[to_ns(states[-1].header.stamp)])[plant.machine.z]
        assert answer.result().success and np.abs(found[-1][:2] - angles).max() < 0.2
    finally:
        executor.shutdown()
        peer.close()


def test_commands_that_come_late_are_in_the_diagnostics(make):     # noqa: F811
    node = make(InterpolationNode)
    texts = []
    for k in range(80):
        stamp = k * 10_000_000
        for channel in node.machine.channels:
            node.interpolator.add(channel, stamp, 0.25)
        if k < 20:
            node.interpolator.add('command/lift_valve', stamp, 0.0)
        elif k >= 40:       # 0.2 s late, and each has another value
            node.interpolator.add('command/lift_valve', stamp - 200_000_000, 0.1 * k)
        node._log_late()
        texts.append(node._diagnostics().status[0])
    count = node.interpolator.late['command/lift_valve']
    late = [status for status in texts if 'command/lift_valve came too late for' in status.message]
    assert count > 100 and late and all(status.level == b'\x01' for status in late)
    values = {item.key: item.value for item in texts[-1].values}
    assert values['late, steps with another command/lift_valve'] == str(count)
    assert any('came too late' in line for line in node.warned)


def test_stamps_that_are_not_those_of_the_others_are_named(make, clock):     # noqa: F811
    """By their arrival, in the diagnostics; not when all are late."""
    # 0.3 s, and by how long a message waits on a busy computer
    for topics, words in (({'sensors/pressure/lift_piston'}, r'pressure/lift_piston: stamps are 0\.[234]\d s older'),
                          (None, 'OK')):
        chain = Chain(make, clock, 'patu655_lift', payload=50.0)
        deliver = chain.interpolation.on_message

        def late(topic, cdr, topics=topics, deliver=deliver):
            data = bytearray(cdr)
            stamp = sum(part * scale for part, scale in zip(struct.unpack_from('<iI', data, 4), (SECOND, 1)))
            if topics is None or topic in topics:
                struct.pack_into('<iI', data, 4, *divmod(stamp - 3 * SECOND // 10, SECOND))
            deliver(topic, bytes(data))
        chain.interpolation.on_message = late
        chain.go(5.0)
        chain.interpolation.tick()
        status = chain.interpolation.sinks['/diagnostics'].messages[-1].status[0]
        assert re.match(words, status.message), status.message
        assert status.level == (b'\x00' if topics is None else b'\x01')
