# SPDX-License-Identifier: Apache-2.0
"""The two ends of the graph: what the plant takes and sends, what is drawn."""

import math
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_in_process import SECOND, clock, go, make, stamps  # noqa: F401
from nodes_support import joint_state, ros, sent, state
from rclpy.parameter import Parameter
from transforms3d.quaternions import quat2mat
from visualization_msgs.msg import Marker

from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.nodes.base.timing import Silence
from mbse_ros.nodes.messages.markers import DARK, STONE, TEXT, payload_text
from mbse_ros.nodes.messages.wire import to_ns
from mbse_ros.nodes.plant_node import PlantNode
from mbse_ros.nodes.visualization_node import VisualizationNode
from mbse_ros.report.crane import scene_of
from mbse_ros.report.data import Animation
from mbse_ros.report.solids import DENSITY
from mbse_ros.streams.records import ObserverStatus, PayloadEstimate, PayloadStatus

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


def seen(machine, stamp_ns, place, measured=None, status=ObserverStatus.OK, reason='', sequence=1):
    """A state of patu655_lift with the cylinder at a place, and where its sensor says it is."""
    made = state(sequence, stamp_ns, names=state_names(machine)[0])
    made.mean[-1, 0] = place
    made.measured[made.channels.index('position/lift')] = place if measured is None else measured
    return sent(replace(made, status=status, reason=reason))


def groups(node):
    """The markers that the newest message draws, by namespace."""
    found = {}
    for marker in node.sinks['markers'].messages[-1].markers:
        found.setdefault(marker.ns, []).append(marker)
    return found


def colour(marker):
    """Its red, green and blue."""
    return round(marker.color.r, 3), round(marker.color.g, 3), round(marker.color.b, 3)


def test_markers(make):      # noqa: F811
    node = make(VisualizationNode)
    node.on_payload(sent(PAYLOAD))
    node.on_state(seen(node.machine, SECOND, 0.3, measured=0.25))
    message, = node.sinks['markers'].messages
    ghost, solid = ([m for m in message.markers if (m.ns == 'measured') is there] for there in (True, False))
    assert ghost and {m.ns for m in solid} == {'estimated', 'payload'}
    assert all(0 < m.color.a < 1 for m in ghost) and all(m.color.a == 1 for m in solid)
    assert len({(m.ns, m.id) for m in ghost + solid}) == len(ghost + solid)
    assert {m.header.frame_id for m in ghost + solid} == {'machine'}
    booms = [max((corners(m) for m in group if m.points), key=lambda c: np.ptp(c[:, 0])) for group in (ghost, solid)]
    tips = [boom[:, 2].max() for boom in booms]
    assert tips[1] > tips[0] + 0.05      # 50 mm of piston more: the boom stands higher
    ball = next(m for m in solid if m.type == Marker.SPHERE)
    volume = math.pi / 6 * ball.scale.x ** 3
    assert volume * DENSITY == pytest.approx(50.04, rel=1e-6)


def test_the_triangles_are_those_of_the_page(make):      # noqa: F811
    """And barrel and rod, seen from the side: RViz shows what page, report and GIF do."""
    node = make(VisualizationNode)
    node.on_state(seen(node.machine, SECOND, 0.3))
    machine = node.machine
    lines = {name: line[None] for name, line in machine.outline(np.array([0.3])).items()}
    scene = scene_of(Animation(np.array([0.0]), lines, lines, solids=machine.solids), 10.0)
    for ns, ghost in (('estimated', False), ('measured', True)):
        drawn = [m for m in groups(node)[ns] if colour(m) != DARK]     # no pins
        solids = [one for one in scene.solids if one.ghost is ghost and one.kind != 'load']
        assert len(drawn) == len(solids) == 4 - ghost
        for kind, found in ((Marker.TRIANGLE_LIST, ('body', 'stand')), (Marker.CYLINDER, ('barrel', 'rod'))):
            ends = [sorted(map(tuple, np.unique(corners(m)[:, ::2].round(6), axis=0))) for m in drawn if m.type == kind]
            expected = [sorted(map(tuple, np.unique(one.at(0).round(6), axis=0)))
                        for one in solids if one.kind in found]
            np.testing.assert_allclose(np.vstack(sorted(ends)), np.vstack(sorted(expected)), atol=3e-6)


def corners(marker):
    """Of its triangles, or of a cylinder's outline across, (n, 3), m, where it is."""
    p, q, s = marker.pose.position, marker.pose.orientation, marker.scale
    local = np.array([[k.x, k.y, k.z] for k in marker.points])
    if marker.type == Marker.CYLINDER:       # its own y, as that of the part, is across its length in the plane
        local = np.array([[i * s.x / 2, 0.0, k * s.z / 2] for i in (-1, 1) for k in (-1, 1)])
    return np.array([p.x, p.y, p.z]) + local @ quat2mat([q.w, q.x, q.y, q.z]).T


def test_measured_and_estimated_machine_are_of_one_message(make):      # noqa: F811
    """So how far apart they are is what the state does not explain, at any speed; without the sample there is no
    ghost."""
    node = make(VisualizationNode)
    place, apart = 0.3, 1e-5
    for k in range(40):
        node.on_state(seen(node.machine, k * 50_000_000, place + 0.001 * k, place + 0.001 * k + apart, sequence=k + 1))
        ghost, solid = groups(node)['measured'], groups(node)['estimated']
        assert {to_ns(m.header.stamp) for m in ghost + solid} == {k * 50_000_000}
        for one, other in zip(ghost, [m for m in solid if colour(m) not in (DARK, STONE)]):
            a, b = one.pose.position, other.pose.position
            assert math.dist((a.x, a.y, a.z), (b.x, b.y, b.z)) < 1e-3
    node.sinks['markers'].messages.clear()
    node.on_state(seen(node.machine, 3 * SECOND, place, measured=math.nan))
    assert {m.ns for group in groups(node).values() for m in group if m.action == Marker.ADD} == {'estimated'}


def test_markers_come_at_their_rate_in_stamps(make):      # noqa: F811
    node = make(VisualizationNode, rate=20.0)
    drawn = node.sinks['markers'].messages

    def states(stamps_ns):
        drawn.clear()
        for stamp in stamps_ns:
            node.on_state(seen(node.machine, stamp, 0.25))
        return len(drawn)

    assert states(range(0, 2 * SECOND, 10_000_000)) == 40
    assert states([0]) == 1         # time went back
    assert node.set_parameters([Parameter('rate', value=100.0)])[0].successful
    assert states(range(10_000_000, 110_000_000, 10_000_000)) == 10


@pytest.mark.parametrize('position', [math.nan, 3.0])
def test_what_cannot_be_drawn_is_not(make, position):      # noqa: F811
    node = make(VisualizationNode)
    node.on_state(seen(node.machine, SECOND, position))
    assert not node.sinks['markers'].messages and bool(node.warned) == math.isfinite(position)


def test_no_status_looks_like_another(make):      # noqa: F811
    node = make(VisualizationNode)
    looks = {}
    for k, status in enumerate(ObserverStatus):
        node.on_state(seen(node.machine, k * SECOND, 0.3, status=status, reason='because'))
        bodies = [m for m in groups(node)['estimated'] if m.type == Marker.TRIANGLE_LIST]
        texts = [m.text for m in groups(node)['estimated'] if m.type == Marker.TEXT_VIEW_FACING]
        assert texts == ([] if status is ObserverStatus.OK else [f'{status.name}: because'])
        looks[status] = tuple(map(colour, bodies))
    assert len(set(looks.values())) == len(ObserverStatus)
    node.on_state(seen(node.machine, 9 * SECOND, math.nan, status=ObserverStatus.LOST, reason='not finite'))
    last = node.sinks['markers'].messages[-1].markers
    assert 'LOST: not finite' in [m.text for m in last]
    assert {colour(m) for m in last if not m.text and m.action == Marker.ADD} == {(0.7, 0.7, 0.75)}


def test_a_mass_is_green_only_while_it_is_of_now(make):      # noqa: F811
    """By its status, by its age in stamps, and by the status of the state."""
    node = make(VisualizationNode)

    def ball(stamp_ns, status=ObserverStatus.OK):
        node.on_state(seen(node.machine, stamp_ns, 0.3, status=status))
        found = [m for m in groups(node).get('payload', []) if m.action == Marker.ADD]
        return found and (colour(found[0]) == (0.2, 0.7, 0.3), found[1].text)

    node.on_payload(sent(replace(PAYLOAD, stamp_ns=10 * SECOND, status=PayloadStatus.UPDATING)))
    green, text = ball(10 * SECOND)
    assert green and 'old' not in text
    green, text = ball(13 * SECOND)
    assert not green and text.endswith('3.0 s old')
    node.on_payload(sent(replace(PAYLOAD, stamp_ns=14 * SECOND, status=PayloadStatus.UPDATING)))
    assert ball(14 * SECOND)[0] and not ball(14 * SECOND + 100_000_000, ObserverStatus.LOST)[0]
    node.sinks['markers'].messages.clear()
    assert not ball(2 * SECOND)     # a bag that begins again: this mass is of another time


def test_what_is_drawn_ages_when_no_state_comes(make, monkeypatch):      # noqa: F811
    """It goes grey, says for how long, and the rest is removed; what nobody draws any longer ends by its lifetime."""
    now = [100.0]
    monkeypatch.setattr('time.monotonic', lambda: now[0])
    node = make(VisualizationNode)
    node.on_payload(sent(replace(PAYLOAD, stamp_ns=SECOND, status=PayloadStatus.UPDATING)))
    for k in range(5):
        now[0] += 0.05
        node.on_state(seen(node.machine, SECOND + k * 50_000_000, 0.3))
        drawn = [marker for group in groups(node).values() for marker in group]
        assert all(0.1 < m.lifetime.sec + 1e-9 * m.lifetime.nanosec < 1.0 for m in drawn)
    count, ghosts = len(node.sinks['markers'].messages), len(groups(node)['measured'])
    now[0] += 0.2
    assert node.tick() < 1.0 and len(node.sinks['markers'].messages) == count
    now[0] += 2.8
    assert node.tick() == 1.0
    last = node.sinks['markers'].messages[-1].markers
    assert [m.text for m in last if m.text] == ['no estimate for 3 s']
    assert {colour(m) for m in last if not m.text and m.action == Marker.ADD} == {(0.7, 0.7, 0.75)}
    gone = [m.ns for m in last if m.action == Marker.DELETE]
    assert gone.count('measured') == ghosts and gone.count('payload') == 2
    now[0] += 1.0
    node.tick()
    last = node.sinks['markers'].messages[-1].markers
    assert [m.text for m in last if m.text] == ['no estimate for 4 s'] and all(m.action == Marker.ADD for m in last)
    node.on_state(seen(node.machine, 9 * SECOND, 0.3))
    back = groups(node)['estimated']
    assert (0.95, 0.66, 0.15) in map(colour, back) and [m.id for m in back if m.action == Marker.DELETE] == [TEXT]


def test_a_slow_replay_is_not_silent():
    """Patience and lifetimes follow the interval at which states come; one pause does not count."""
    now = [0.0]
    silence = Silence(lambda: now[0])
    for wait in (0.05, 0.05, 60.0, 0.05):
        now[0] += wait
        silence.heard()
        assert silence.patience < 1.0
    for _ in range(3):
        now[0] += 5.0
        silence.heard()
    now[0] += 6.0
    assert silence.look()[0] is None and silence.lifetime > 10.0


def test_payload_in_words():
    assert payload_text(PAYLOAD, 0)[0] == '50.0 kg\n48.0 to 52.0 kg (95 %)\ntoo slow'
    nothing = PayloadEstimate(1, 0, *[math.nan] * 6, 0, PayloadStatus.NO_DATA)
    assert payload_text(nothing, 0) == ('payload unknown\nno data', False)
    for status in PayloadStatus:
        text, updated = payload_text(replace(PAYLOAD, status=status), 0)
        assert text.splitlines()[2] == status.name.lower().replace('_', ' ')
        assert updated is (status is PayloadStatus.UPDATING)
