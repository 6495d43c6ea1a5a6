# SPDX-License-Identifier: Apache-2.0
"""``mbse doctor`` with real ROS 2: environment, one message, and graphs with the faults that it is there to find."""

import os
import time

import pytest
from nodes_support import Peer, held, joint_state, own_domain
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import FluidPressure, JointState

from mbse_ros.bags.topics import FLUID_PRESSURE, JOINT_STATE, SEGMENT
from mbse_ros.doctor.checks import FAILS, OK, WARNING
from mbse_ros.doctor.traffic import Expected, Heard, traffic_checks
from mbse_ros.errors import BagError
from mbse_ros.machine import load_machine
from mbse_ros.nodes.checks import ros_checks as doctor
from mbse_ros.nodes.checks.listening import Listener, listen
from mbse_ros.nodes.checks.probe import loopback, messages
from mbse_ros.nodes.messages.wire import to_time

LIFT, ROD, PISTON = 'sensors/position', 'sensors/pressure/lift_rod', 'sensors/pressure/lift_piston'
COMMAND = 'sensors/valve_command'
EXPECTED = Expected({LIFT: JOINT_STATE, ROD: FLUID_PRESSURE, PISTON: FLUID_PRESSURE, COMMAND: JOINT_STATE},
                    {'segment': SEGMENT}, ('position/lift', 'pressure/lift_rod', 'pressure/lift_piston'),
                    frozenset({COMMAND}))


kept = []   # contexts of listeners that have left, with what keeps their participants: see nodes_support.held


@pytest.fixture(scope='module', autouse=True)
def domain():
    with own_domain() as number:
        yield number
        for context, holder in kept:
            holder.destroy_node()
            context.try_shutdown()
        kept.clear()


@pytest.fixture
def peer():
    """A machine's driver."""
    peer = Peer()
    yield peer
    peer.close()


@pytest.fixture
def listener(request):
    """Who listens to the default machine in the namespace that the graph shows."""
    listener = Listener(load_machine('patu655_lift'), EXPECTED, getattr(request, 'param', None))
    kept.append((listener.context, held(listener.context)))
    yield listener
    listener._turns.remove_node(listener)
    listener._turns.shutdown()
    listener.destroy_node()


def judged(listener):
    return {check.name: check for check in traffic_checks(listener.result(1.0), EXPECTED)}


def until(peer, listener, topic, count):
    """Listen until so many messages of a topic have come."""
    peer.also = listener.step
    peer.until(lambda: topic in listener._heard and len(listener._heard[topic].arrivals) >= count)


def test_the_environment_of_the_tests(domain):
    found = {check.name: check for check in doctor.ros_checks()}
    assert {found[name].status for name in ('rclpy', 'messages', 'RMW', 'ROS_DOMAIN_ID', 'discovery',
                                            'DDS loopback')} == {OK}
    assert found['ROS_DOMAIN_ID'].found == str(domain) and 'DDS profile' not in found


def test_one_message_within_the_limit_and_no_node_left(peer):
    assert 0.0 < loopback() < 5.0
    peer.until(lambda: not [name for name in peer.node.get_node_names() if name.startswith('mbse_doctor')])


def test_no_message_without_discovery():
    """Inside one participant it would arrive all the same."""
    probed, said = doctor.probe({**os.environ, 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'OFF'})
    check = doctor.loopback_check(probed, said)
    if os.environ.get('ROS_DISTRO') == 'humble':
        pytest.skip('Humble has no such range')
    assert check.status == FAILS and 'did not arrive' in check.found and 'multicast' in check.mend


@pytest.mark.parametrize('name, value, failing', [
    ('RMW_IMPLEMENTATION', 'rmw_no_such_cpp', 'rclpy'), ('ROS_DOMAIN_ID', 'abc', 'ROS_DOMAIN_ID'),
    ('FASTDDS_DEFAULT_PROFILES_FILE', '/no/such/file.xml', 'DDS profile')])
def test_what_would_end_the_process(name, value, failing):
    found = {check.name: check for check in doctor.ros_checks({**os.environ, name: value})}
    assert found[failing].status == FAILS and found[failing].mend
    assert name == 'FASTDDS_DEFAULT_PROFILES_FILE' or 'DDS loopback' not in found or (
        found['DDS loopback'].status == FAILS)


@pytest.mark.parametrize('text, status', [('', OK), ('0', OK), ('101', OK), ('102', WARNING), ('233', FAILS),
                                          ('-1', FAILS), ('²', FAILS), ('x\n', FAILS)])
def test_domains(text, status):
    assert doctor.domain_check({'ROS_DOMAIN_ID': text}).status == status


@pytest.mark.parametrize('text, old, status, single', [
    ('', '', OK, False), ('SUBNET', '', OK, False), ('LOCALHOST', '', OK, True), ('OFF', '', FAILS, True),
    ('HOME', '', FAILS, False), ('SUBNET', '1', WARNING, True)])
def test_ranges(text, old, status, single):
    environment = {'ROS_AUTOMATIC_DISCOVERY_RANGE': text, 'ROS_LOCALHOST_ONLY': old, 'ROS_DISTRO': 'jazzy'}
    assert doctor.range_check(environment).status == status and doctor.alone(environment) is single


def test_distributions_and_middleware():
    assert doctor.distribution_check({'ROS_DISTRO': 'jazzy'}).status == OK
    assert [doctor.distribution_check(some).status for some in ({}, {'ROS_DISTRO': 'foxy'})] == [WARNING] * 2
    assert doctor.rmw_check('rmw_fastrtps_cpp').status == OK and doctor.rmw_check('rmw_other').status == WARNING


def test_messages_that_were_built_from_other_files(monkeypatch):
    assert messages() == {} and doctor.messages_check({}).status == OK

    class Old:
        @staticmethod
        def get_fields_and_field_types():
            return {'header': 'std_msgs/Header'}
    monkeypatch.setattr('mbse_ros.nodes.checks.probe.message_class', lambda name: Old)
    assert doctor.messages_check(messages()).status == FAILS and 'mbse_ros/msg/SensorSegment' in messages()


def test_a_driver_that_works_by_the_clock_of_a_simulation(peer, listener):
    """So that nothing is late on a busy computer."""
    peer.also = listener.step
    peer.publish(Clock, '/clock', Clock(clock=to_time(50_000_000_000)))
    peer.until(lambda: listener._clock_ns is not None)
    for k in range(3):
        peer.samples(49_970_000_000 + 10_000_000 * k)
    for topic in EXPECTED.sensors:
        until(peer, listener, f'/{topic}', 3)
        peer.until(lambda: listener._heard[f'/{topic}'].publishers == ('/peer',))
    found = judged(listener)
    assert {found[f'topic {topic}'].status for topic in EXPECTED.sensors} == {OK}
    assert not [name for name in found if name.startswith(('channel', 'names', 'samples'))]
    assert found['topic segment'].found == 'no publisher' and ', 20 ms old, from /peer' in found[f'topic {LIFT}'].found


def test_late_stamps_names_and_a_stranger(peer, listener):
    peer.also = listener.step
    late = time.time_ns() - 3_000_000_000
    peer.publish(JointState, LIFT, joint_state(late, 'm', ['lfit', 'wheel'], [0.1, 0.2]))
    peer.publish(JointState, COMMAND, joint_state(late, 'm', ['lift_valve'], [0.1, 0.2]))
    peer.node.create_publisher(FluidPressure, 'sensors/pressure/lift_rods', 1)
    for topic in (LIFT, COMMAND):
        until(peer, listener, f'/{topic}', 1)
    peer.until(lambda: getattr(listener._heard.get('/sensors/pressure/lift_rods'), 'publishers', ()))
    found = judged(listener)
    assert found[f'topic {LIFT}'].status == WARNING and ', 3' in found[f'topic {LIFT}'].found
    assert found['channel position/lift'].status == FAILS and found['samples of ' + COMMAND].status == WARNING
    assert found['topic sensors/pressure/lift_rods'].mend == f'did you mean {ROD}? Remap it'
    texts = [check.found for check in traffic_checks(listener.result(1.0), EXPECTED) if check.name == 'names']
    assert 'did you mean lift?' in texts[0] and 'wheel is passed over' in texts[1]


def test_two_publishers_of_one_topic(peer, listener):
    other = Peer()
    try:
        peer.also = listener.step
        peer.publish(JointState, LIFT, joint_state(time.time_ns(), 'm', ['lift'], [0.1]))
        other.node.create_publisher(JointState, LIFT, 1)
        peer.until(lambda: len(listener._heard[f'/{LIFT}'].publishers) == 2)
        assert judged(listener)[f'topic {LIFT}'].status == FAILS
    finally:
        other.close()


@pytest.mark.parametrize('listener', [None, 'left'], indirect=True)
def test_namespaces(peer, listener):
    for side in ('left', 'right'):
        peer.node.create_publisher(JointState, f'/{side}/{LIFT}', 1)
    peer.also = listener.step
    peer.until(lambda: all(listener._heard.get(f'/{side}/{LIFT}', Heard()).publishers == ('/peer',)
                           for side in ('left', 'right')))
    if listener._topics.namespace is None:
        with pytest.raises(BagError, match='/left, /right'):
            listener.result(1.0)
    else:
        assert judged(listener)[f'topic {LIFT}'].found == 'no message in 1 s, from /peer'


def test_a_graph_that_is_empty():
    machine = load_machine('patu655_lift')
    assert listen(machine, EXPECTED, None, 0.0).seconds == 0.0
    check, = doctor.graph_checks(machine, None, 0.0)
    assert check.status == WARNING and 'no publisher' in check.found
