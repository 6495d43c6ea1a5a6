# SPDX-License-Identifier: Apache-2.0
"""The two ends of the graph: what the plant takes and sends, what is drawn."""

import math
from dataclasses import replace

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_in_process import SECOND, clock, go, make, stamps  # noqa: F401
from nodes_support import joint_state, ros, sent, state
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from visualization_msgs.msg import Marker

from mbse_ros.estimators.hydraulic_model import state_names
from mbse_ros.nodes.messages.markers import payload_text
from mbse_ros.nodes.messages.wire import to_ns
from mbse_ros.nodes.plant_node import PlantNode
from mbse_ros.nodes.visualization_node import VisualizationNode
from mbse_ros.streams.records import PayloadEstimate, PayloadStatus

PAYLOAD = PayloadEstimate(1, 0, 50.04, 1.0, 48.0, 52.04, 50.0, 50.0, 10, PayloadStatus.TOO_SLOW)


@pytest.fixture(scope='module', autouse=True)
def _ros():
    with ros():
        yield


def test_the_plant_keeps_time(make, clock):      # noqa: F811
    node = make(PlantNode, backend='vm', payload=20.0, publish_clock=True, speed=2.0)
    go(node, clock, 0.5)
    expected = [1_000 * SECOND + k * 10_000_000 for k in range(100)]
    for topic in ('sensors/position', 'sensors/pressure/lift_rod', 'sensors/valve_command', 'truth'):
        assert stamps(node.sinks[topic])[:100] == expected, topic
    assert [to_ns(m.clock) for m in node.sinks['/clock'].messages][:100] == expected
    assert node.sinks['truth'].messages[0].payload == 20.0
    assert node.sinks['sensors/position'].messages[0].name == ['lift']


def test_the_plant_ends_after_its_cycles(make, clock):      # noqa: F811
    node = make(PlantNode, exit_at_end=True, rate=20.0)
    go(node, clock, 30.0)
    assert node.exit_status == 0 and stamps(node.sinks['truth'])[-1] == 1_024 * SECOND
    commands = [m.position[0] for m in node.sinks['sensors/valve_command'].messages]
    assert max(commands) == 8.0 and min(commands) < -7.0


def test_the_plant_obeys_a_topic_and_refuses_nonsense(make, clock):      # noqa: F811
    node = make(PlantNode, backend='vm', cycle='topic', exit_at_end=True)
    node.on_command(joint_state(0, 'm', ['lift_valve'], [3.0]))
    go(node, clock, 0.5)
    truth = node.sinks['truth'].messages
    assert truth[-1].position[0] > truth[0].position[0] + 1e-3
    for names, values in ((['lift_valve'], [math.nan]), (['tilt_valve'], [1.0]), (['lift_valve'], [])):
        node.on_command(joint_state(0, 'm', names, values))
    assert len(node.warned) == 1 and 'expected a finite value' in node.warned[0] and node.warnings.total == 3
    go(node, clock, 0.5)
    assert node.sinks['sensors/valve_command'].messages[-1].position[0] == 3.0 and node.exit_status is None


def test_markers(make):      # noqa: F811
    node = make(VisualizationNode)
    estimate = state(1, SECOND, names=state_names(node.machine)[0])
    estimate.mean[-1, 0] = 0.3
    node.on_payload(sent(PAYLOAD))
    node.on_position(serialize_message(joint_state(SECOND, 'm', ['lift'], [0.25])))
    node.on_state(sent(estimate))
    ghost, solid = (message.markers for message in node.sinks['markers'].messages)
    assert {m.ns for m in ghost} == {'measured'} and {m.ns for m in solid} == {'estimated', 'payload'}
    assert all(0 < m.color.a < 1 for m in ghost) and all(m.color.a == 1 for m in solid)
    assert len({(m.ns, m.id) for m in ghost + solid}) == len(ghost + solid)
    assert {m.header.frame_id for m in ghost + solid} == {'machine'}
    eye = [[m.points[-1].z for m in group if m.type == Marker.LINE_STRIP and m.id == 1] for group in (ghost, solid)]
    tips = [max(p.z for m in group for p in m.points) for group in (ghost, solid)]
    assert tips[1] > tips[0] + 0.05 and eye[0] and eye[1]      # 50 mm of piston more: the boom stands higher
    ball = next(m for m in solid if m.type == Marker.SPHERE)
    volume = math.pi / 6 * ball.scale.x ** 3
    assert volume * 7850.0 == pytest.approx(50.04, rel=1e-6)


def test_markers_come_at_their_rate_in_stamps(make):      # noqa: F811
    node = make(VisualizationNode, rate=20.0)
    for k in range(200):
        node.on_position(serialize_message(joint_state(k * 10_000_000, 'm', ['lift'], [0.25])))
    assert len(node.sinks['markers'].messages) == 40
    node.on_position(serialize_message(joint_state(0, 'm', ['lift'], [0.25])))      # time went back
    assert len(node.sinks['markers'].messages) == 41
    assert node.set_parameters([Parameter('rate', value=100.0)])[0].successful
    for k in range(1, 11):
        node.on_position(serialize_message(joint_state(k * 10_000_000, 'm', ['lift'], [0.25])))
    assert len(node.sinks['markers'].messages) == 51


@pytest.mark.parametrize('position', [math.nan, 3.0])
def test_what_cannot_be_drawn_is_not(make, position):      # noqa: F811
    node = make(VisualizationNode)
    node.on_position(serialize_message(joint_state(SECOND, 'm', ['lift'], [position])))
    assert not node.sinks['markers'].messages and bool(node.warned) == math.isfinite(position)


def test_payload_in_words():
    assert payload_text(PAYLOAD) == '50.0 kg\n48.0 to 52.0 kg (95 %)\ntoo slow'
    nothing = PayloadEstimate(1, 0, *[math.nan] * 6, 0, PayloadStatus.NO_DATA)
    assert payload_text(nothing) == 'payload unknown\nno data'
    for status in PayloadStatus:
        assert payload_text(replace(PAYLOAD, status=status)).splitlines()[2] == status.name.lower().replace('_', ' ')
