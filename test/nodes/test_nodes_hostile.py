# SPDX-License-Identifier: Apache-2.0
"""Messages no sound sender would send: refused with a reason, bounded in what they cost, and the node goes on."""

import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from builtin_interfaces.msg import Time
from nodes_in_process import SECOND, make  # noqa: F401
from nodes_support import joint_state, ros, segment, sent, state
from rclpy.serialization import serialize_message
from sensor_msgs.msg import FluidPressure

from mbse_ros.bags.messages import packed_record
from mbse_ros.bags.topics import JOINTS
from mbse_ros.errors import LONGEST, SampleError, shown
from mbse_ros.filters.hydraulic_state import MASS, state_names
from mbse_ros.machine import load_machine
from mbse_ros.nodes.base.diagnostics import Strangers
from mbse_ros.nodes.interpolation_node import InterpolationNode
from mbse_ros.nodes.linkage_node import LinkageNode
from mbse_ros.nodes.messages.wire import header, packed_joints
from mbse_ros.nodes.observer_node import ObserverNode
from mbse_ros.nodes.payload_node import PayloadNode
from mbse_ros.nodes.visualization_node import VisualizationNode

PERIOD = 10_000_000
NAMES = (*state_names(load_machine('patu655_lift'))[0], MASS)
HOUR = 3600 * SECOND
LAST = Time(sec=2 ** 31 - 1, nanosec=2 ** 32 - 1)


@pytest.fixture(scope='module', autouse=True)
def _ros():
    with ros():
        yield


def estimate(sequence, stamp_ns, names=NAMES, **more):
    """State of the machine that says nothing of the mass."""
    return replace(state(sequence, stamp_ns, names=names), weighing=np.zeros((0, 3)), **more)


def give(node, *numbers, ahead=0, **more):
    """States with these numbers, contiguous in time; how many came out."""
    before = len(node.sinks['payload'].messages)
    for k in numbers:
        node.on_record(sent(estimate(k, k * PERIOD + ahead, **more)))
    return len(node.sinks['payload'].messages) - before


@pytest.fixture
def payload(make):      # noqa: F811
    """A payload node in the middle of a stream."""
    node = make(PayloadNode, backend='vm')
    assert give(node, 1, 2) == 2 and not node.warned
    return node


def test_each_message_names_its_machine(payload):
    message = payload.sinks['payload'].messages[-1]
    assert message.header.frame_id == 'patu655_lift' and message.machine == payload.fingerprint
    assert len(message.machine) == 8


@pytest.mark.parametrize('frame, machine, reason', [
    ('zx200', '', 'got .zx200 \\(\\)'), ('patu655_lift', '00000000', 'got .patu655_lift \\(00000000\\)'),
    ('x' * 10 ** 6, 'y' * 10 ** 6, 'got .xxxxx')])
def test_another_machine_is_refused(payload, frame, machine, reason):
    payload.on_record(packed_record(estimate(3, 3 * PERIOD), frame, machine))
    assert len(payload.sinks['payload'].messages) == 2
    assert re.search(reason, payload.warned[0])
    assert 'expected patu655_lift' in payload.warned[0] and len(payload.warned[0]) < 1000
    assert give(payload, 3) == 1


@pytest.mark.parametrize('names', [(), tuple('abcdefg'), NAMES[::-1], ('a\nb' * 10 ** 5, *NAMES[1:])])
def test_a_state_with_other_entries_is_refused(payload, names):
    payload.on_record(sent(estimate(3, 3 * PERIOD, names, status=0)))
    assert len(payload.sinks['payload'].messages) == 2 and 'state.names' in payload.warned[0]
    assert len(payload.warned[0]) < 3000 and '\n' not in payload.warned[0]
    assert give(payload, 3) == 1


@pytest.mark.parametrize('ahead', [HOUR, 5 * SECOND, -HOUR])
def test_one_wrong_stamp_does_not_silence_it(payload, ahead):
    """What is reported comes once; at most one state of the stream is lost by it."""
    payload.on_record(sent(estimate(3, 3 * PERIOD + ahead)))
    assert give(payload, 3, 4, 5, 6) >= 3 and payload.warned


def test_a_far_stamp_is_not_believed_until_the_next_one_follows(payload):
    assert give(payload, 3, ahead=HOUR) == 0 and 'after the end of number 2' in payload.warned[0]
    assert give(payload, 3) == 1
    assert give(payload, 4, 5, 6, ahead=HOUR) == 2
    assert any('time went on 3600' in line and 'starting a' in line for line in payload.warned)


def test_time_that_goes_back_restarts_it(payload):
    assert give(payload, 500, 501) == 2
    assert give(payload, 20, 21, 22) == 2
    assert any('time went back 4.8' in line and 'starting a' in line for line in payload.warned)


def test_a_segment_at_the_end_of_time_does_not_end_the_observer(make):      # noqa: F811
    node = make(ObserverNode, backend='vm')
    for start in (2 ** 63 - 2 * PERIOD, 2 ** 31 * SECOND, -2 ** 62):
        cdr = bytearray(sent(segment(1, 0, restart=True)))
        place = cdr.index((10 ** 6).to_bytes(4, 'little'))      # of step_ns; start_ns stands before it
        cdr[place - 8:place] = start.to_bytes(8, 'little', signed=True)
        node.on_record(bytes(cdr))
    assert not node.sinks['state'].messages and 'segment.start_ns' in node.warned[0]
    node.on_record(sent(segment(1, 0, restart=True)))
    assert len(node.sinks['state'].messages) == 1


def test_a_million_names_are_a_few_lines(make):      # noqa: F811
    """Joints of others are no warning; what is remembered of them is bounded."""
    node = make(InterpolationNode)
    names = [f'lift_{k}\n' for k in range(10 ** 6)]
    node.on_message('sensors/position', packed_joints(SECOND, 'm', names, np.zeros(len(names))))
    assert node.warnings.total == 0 and not node.warned and len(node.warnings._held) == 0


def test_cut_messages_of_sensors_are_a_warning_and_the_next_ones_count(make):      # noqa: F811
    node = make(InterpolationNode)
    sound = {'valve_command': joint_state(SECOND, 'm', ['lift_valve'], [0.0]),
             'position': joint_state(SECOND, 'm', ['lift'], [0.2675]),
             **{f'pressure/{volume}': FluidPressure(header=header(SECOND, 'm'), fluid_pressure=2e6)
                for volume in ('lift_piston', 'lift_rod')}}
    for topic, message in sound.items():
        cdr = serialize_message(message)
        for size in range(len(cdr) // 2):
            node.on_message(f'sensors/{topic}', cdr[:size])
    assert node.warned and not node.interpolator.dropped
    for later in (0, PERIOD):
        for topic, message in sound.items():
            message.header.stamp.nanosec = later
            node.on_message(f'sensors/{topic}', serialize_message(message))
    assert len(node.sinks['segment'].messages) == 1


def test_names_in_messages_are_escaped_in_the_log():
    """Of a stranger, and of one that is nearly ours."""
    warned, said = [], []
    strangers = Strangers(['lift', 'tilt_boom'], warned.append, said.append)
    for name in ('x\x1b[31m\n', 'y\n', 'tilt_boon\n'):
        strangers('sensors/position', name)
    assert len(warned) == len(said) == 1 and 'did you mean tilt_boom' in warned[0]
    assert not any(sign in line for line in warned + said for sign in ('\n', '\x1b'))


def test_a_long_name_is_cut_and_escaped():
    text = str(SampleError('a' * 10 ** 6 + '\x1b[31m', 0, 'b\n' * 10 ** 6, 'less'))
    assert len(text) < 4 * LONGEST and '\n' not in text
    assert shown('a\x1b[31mb\n') == 'a\\x1b[31mb\\n' and shown('Ölzylinder') == 'Ölzylinder'


@pytest.mark.parametrize('stamp', [LAST, Time(sec=2 ** 31 - 1, nanosec=999_999_999), Time(sec=-2 ** 31)])
def test_a_stamp_that_is_no_time_is_refused_by_all(make, stamp):      # noqa: F811
    message = joint_state(0, 'm', ['lift', 'theta1', 'theta2'], [0.2675, 0.0, 0.0])
    message.header.stamp = stamp
    crane = make(InterpolationNode)
    linkage = make(LinkageNode, mechanism='five_bar', backend='vm')
    crane.on_message('sensors/position', serialize_message(message))
    linkage.on_message(JOINTS, serialize_message(message))
    linkage.on_truth(message)
    for node in (crane, linkage):
        assert 'a stamp' in node.warned[0] and not any(sink.messages for sink in node.sinks.values())


def test_cut_messages_do_not_end_the_drawing(make):      # noqa: F811
    node = make(VisualizationNode)
    made = estimate(1, SECOND)
    made.mean[-1, 0] = made.measured[made.channels.index('position/lift')] = 0.25
    cdr = sent(made)
    for size in [*range(40), *range(40, len(cdr) // 2, 7)]:
        node.on_state(cdr[:size])
    assert node.warned and not node.sinks['markers'].messages
    node.on_state(cdr)
    message, = node.sinks['markers'].messages
    assert {m.ns for m in message.markers} == {'measured', 'estimated'}


def test_a_bag_that_loops_restarts_the_segments_with_a_line(make):      # noqa: F811
    node = make(InterpolationNode)
    for start in (100 * SECOND, 0):
        for k in range(20):
            stamp = start + k * PERIOD
            for topic, message in (
                    ('valve_command', joint_state(stamp, 'm', ['lift_valve'], [0.0])),
                    ('position', joint_state(stamp, 'm', ['lift'], [0.2675])),
                    *((f'pressure/{volume}', FluidPressure(header=header(stamp, 'm'), fluid_pressure=2e6))
                      for volume in ('lift_piston', 'lift_rod'))):
                node.on_message(f'sensors/{topic}', serialize_message(message))
    segments = node.sinks['segment'].messages
    assert [k for k, message in enumerate(segments) if message.restart][0] == 0
    assert sum(message.restart for message in segments) == 2 and len(segments) > 30
    assert any('time went back' in line and 'start again' in line for line in node.warned)


def test_a_mechanism_restarts_with_a_line(make):      # noqa: F811
    node = make(LinkageNode, mechanism='five_bar', backend='vm', sensors='encoder_1 encoder_2')
    start = dict(zip(node.machine.names, node.machine.start.q))
    for origin in (100 * SECOND, 0):
        for k in range(8):
            message = joint_state(origin + k * PERIOD, 'm', ['theta1', 'theta2'], [start['theta1'], start['theta2']])
            node.on_message(JOINTS, serialize_message(message))
    assert sum(message.restart for message in node.sinks['linkage_state'].messages) == 2
    assert any('started again' in line and 'before the last' in line for line in node.warned)
