# SPDX-License-Identifier: Apache-2.0
"""An excavator through the whole graph as processes over DDS, commanded by a topic, recorded and estimated again."""

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from diagnostic_msgs.msg import DiagnosticArray
from nodes_support import joint_state, own_domain
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray
from watched_graph import watched_machine

from mbse_ros.bags.series import read_payload
from mbse_ros.machine import load_machine
from mbse_ros.msg import HydraulicState, MachineTruth, PayloadEstimate, SensorSegment
from mbse_ros.nodes.measuring.demo import AS_ONLINE, agreement
from mbse_ros.nodes.messages.wire import to_ns
from mbse_ros.offline.bag import estimate_bag, parse_tuning

TOPICS = {'segment': SensorSegment, 'state': HydraulicState, 'payload': PayloadEstimate, 'truth': MachineTruth,
          'estimated/joint_states': JointState, 'markers': MarkerArray, 'sensors/position': JointState,
          'sensors/valve_command': JointState, '/diagnostics': DiagnosticArray}
COMMANDS = {'boom_valve': 3.0, 'swing_joint': 0.2, 'bucket_valve': 4.0}
QUEUE = 200     # messages that may wait in a node


@pytest.fixture(scope='module')
def watched(tmp_path_factory):
    with own_domain():
        bag = tmp_path_factory.mktemp('zx200') / 'bag'
        graph = watched_machine(TOPICS, machine='zx200', payload='800', cycle='topic', record=str(bag))
        graph.bag = bag
        try:
            yield graph
        finally:
            graph.close()


def newest(watched, topic):
    watched.until(lambda: watched.heard(topic))
    return watched.heard(topic)[-1]


def test_valves_and_drives_obey_each_its_own_command(watched):
    watched.until(lambda: len(watched.heard('payload')) >= 30)
    rest = newest(watched, 'truth')
    watched.until(lambda: watched.peer.node.count_subscribers('valve_command') >= 1)
    for name, value in COMMANDS.items():        # one a message: the others keep theirs
        watched.peer.publish(JointState, 'valve_command', joint_state(0, 'm', [name], [value]))
    valves = {name: value for name, value in COMMANDS.items() if name.endswith('valve')} | {'arm_valve': 0.0}
    watched.until(lambda: dict(zip(newest(watched, 'sensors/valve_command').name,
                                   newest(watched, 'sensors/valve_command').position)) == valves)
    count = len(watched.heard('truth'))
    watched.until(lambda: len(watched.heard('truth')) >= count + 150)
    moved = newest(watched, 'truth')
    change = dict(zip(moved.cylinders, np.array(moved.position) - rest.position))
    assert change['swing_joint'] > 0.15 and change['boom'] > 0.05 and change['bucket'] > 0.1
    assert abs(change['arm']) < 0.02


def test_nothing_is_lost_and_the_state_follows_the_truth(watched):
    for topic in ('segment', 'state', 'payload'):
        sequence = [message.sequence for message in watched.heard(topic)]
        assert sequence == list(range(1, len(sequence) + 1)), topic
    assert [message.restart for message in watched.heard('state')].count(True) == 1
    truth = {to_ns(m.header.stamp): m for m in watched.heard('truth')}
    last = [m for m in watched.heard('state') if to_ns(m.header.stamp) in truth][-1]
    assert last.status == last.OK, last.reason
    at, values = truth[to_ns(last.header.stamp)], dict(zip(last.names, np.array(last.mean)[-len(last.names):]))
    assert [values[f'position/{name}'] for name in at.cylinders] == pytest.approx(at.position, abs=5e-3)
    assert [values[f'pressure/{name}'] for name in at.volumes] == pytest.approx(at.pressure, abs=4e5)


def test_joints_of_the_urdf_and_both_machines_are_there(watched):
    machine = load_machine('zx200')
    assert set(newest(watched, 'estimated/joint_states').name) == set(machine.model.names)
    plates = [part for part in machine.solids.parts if part.kind in ('body', 'stand')]
    watched.until(lambda: {m.ns for array in watched.heard('markers') for m in array.markers}
                  >= {'measured', 'estimated', 'payload'})
    drawn = newest(watched, 'markers').markers
    assert len([m for m in drawn if m.ns == 'estimated' and m.points]) == len(plates)
    assert len({(m.header.stamp.sec, m.header.stamp.nanosec) for m in drawn}) == 1


def test_the_nodes_publish_their_health(watched):
    def statuses():
        return {s.name: s for array in watched.heard('/diagnostics') for s in array.status}
    names = {f'{node}: zx200' for node in ('interpolation_node', 'observer_node', 'payload_node')}
    watched.until(lambda: names <= set(statuses()))
    watched.until(lambda: statuses()['observer_node: zx200'].message == 'OK')
    assert all(value.value == '0' for s in statuses().values() for value in s.values if 'dropped' in value.key)


def differing(messages, outputs):
    """Sequence and channels of the segments whose samples are not those that were made of the recorded ones."""
    ours, found = {o.segment.stamp_ns: o.segment for o in outputs}, {}
    for message in messages:
        segment = ours.get(to_ns(message.header.stamp))
        if segment is None or len(message.values) != segment.values.size:
            found[message.sequence] = 'not there'
            continue
        values = np.reshape(message.values, segment.values.shape)
        same = ((values == segment.values) | np.isnan(values) & np.isnan(segment.values)).all(axis=0)
        if not same.all():
            found[message.sequence] = [name for name, alike in zip(segment.channels, same) if not alike]
        elif message.command_values.tolist() != segment.command_values.ravel().tolist():
            found[message.sequence] = list(segment.commands)
    return found


def test_offline_is_online_bit_for_bit(watched):
    plant = watched.graph.children['plant_node']
    plant.terminate()
    watched.until(lambda: watched.graph.children.get('plant_node') is None)
    # The nodes may be seconds behind, and so may the peer: first all samples are estimated, then all is heard.
    watched.peer.settle('interpolation_node', QUEUE)
    watched.until(lambda: to_ns(newest(watched, 'payload').header.stamp)
                  == to_ns(newest(watched, 'sensors/position').header.stamp))
    watched.peer.settle('recorder_node', QUEUE)
    watched.graph.stop()
    assert watched.graph.status == 0, watched.log
    online, outputs = read_payload(watched.bag), []
    offline = estimate_bag(watched.bag, load_machine('zx200'), parse_tuning(AS_ONLINE), take=outputs.append)
    # On a busy computer the recorder may lose samples, which the nodes had: equal is what came before.
    lost = differing(watched.heard('segment'), outputs)
    end = min((to_ns(m.header.stamp) for m in watched.heard('segment') if m.sequence in lost), default=np.inf)

    def before(pairs):
        return {stamp: value for stamp, value in pairs if stamp < end}
    masses = before((o.payload.stamp_ns, o.payload.mass) for o in outputs)
    assert len(masses) >= 200, (lost, watched.log, offline.warnings)
    for found in (before(zip(online.stamp_ns.tolist(), online.mass.tolist())),
                  before((to_ns(m.header.stamp), m.mass) for m in watched.heard('payload'))):
        assert found.keys() == masses.keys(), sorted(found.keys() ^ masses.keys())
        np.testing.assert_array_equal([found[stamp] for stamp in masses], list(masses.values()))
    assert lost or agreement(online, offline).agree
    states = {o.state.stamp_ns: o.state for o in outputs}
    for message in [m for m in watched.heard('state') if to_ns(m.header.stamp) < end][::20]:
        state = states[to_ns(message.header.stamp)]
        np.testing.assert_array_equal(np.array(message.mean).reshape(state.mean.shape), state.mean)
        np.testing.assert_array_equal(np.array(message.covariance).reshape(state.covariance.shape), state.covariance)
