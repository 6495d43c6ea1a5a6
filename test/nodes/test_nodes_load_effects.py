# SPDX-License-Identifier: Apache-2.0
"""Feed-forward and tip-over margin as they are published, and as they are not."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
import yaml
from diagnostic_msgs.msg import DiagnosticStatus
from machine_energy import model_of
from machine_frames import SUPPORT
from nodes_in_process import SECOND, Sink, make  # noqa: F401
from nodes_support import ros, sent
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from test_nodes_outputs import PERIOD, messages, payload, state, with_tf

from mbse_ros.bags.messages import packed_record
from mbse_ros.description.load import known_machines
from mbse_ros.machine.tip_over import TipOverMargin
from mbse_ros.machine.valve_commands import ValveFeedForward
from mbse_ros.nodes.messages.wire import to_ns
from mbse_ros.streams.records import ObserverStatus, PayloadStatus

OUTPUTS = ('feed_forward', 'feed_forward/stddev', 'stability/margin', 'stability/zero_moment_point')
EXCAVATOR = {'swing_joint', 'boom_joint', 'arm_joint', 'bucket_joint', 'boom', 'arm', 'bucket'}


@pytest.fixture(scope='module', autouse=True)
def _ros():
    with ros():
        yield


@pytest.fixture(scope='module')
def standing(tmp_path_factory):
    """File of an excavator that says on what it stands."""
    tree = yaml.safe_load(known_machines()['zx200'].read_text(encoding='utf-8'))
    path = tmp_path_factory.mktemp('machine') / 'standing.yaml'
    path.write_text(yaml.safe_dump({**tree, 'base': {'support': SUPPORT}}, sort_keys=False))
    return str(path)


@pytest.fixture
def node(make, standing):       # noqa: F811
    return with_tf(make, machine=standing)


def at(node, k, estimate=None, **entries):
    """Send state and payload of an instant."""
    estimate = estimate or payload()
    for record in (state(node.machine, k * PERIOD, **entries), replace(estimate, stamp_ns=k * PERIOD)):
        call = node.on_payload if record.__class__ is estimate.__class__ else node.on_state
        call(packed_record(record, node.machine.name, node.fingerprint))


def told(node):
    """Newest diagnostics of the load: level, message, values."""
    status, = messages(node, '/diagnostics')[-1].status
    assert status.name == f'outputs_node load: {node.machine.name}'
    return status.level, status.message, {item.key: item.value for item in status.values}


def test_commands_of_valves_for_wanted_speeds(make):       # noqa: F811
    """By the pressures of the newest state; none without a state, for names or numbers that are not understood."""
    node, machine = with_tf(make, machine='zx200'), model_of('zx200')[0]
    wanted = JointState(name=['boom', 'arm'], velocity=[0.05, -0.02])
    node.on_wanted(wanted)
    pressures = dict(zip(machine.volumes, np.linspace(6e6, 12e6, len(machine.volumes))))
    node.on_state(sent(state(machine, **{f'pressure__{name}': value for name, value in pressures.items()}), 'zx200'))
    for bad in (JointState(name=['swing'], velocity=[0.1]), JointState(name=['boom'], velocity=[0.1, 0.2]),
                JointState(name=['boom'], velocity=[float('nan')])):
        node.on_wanted(bad)
    assert not messages(node, 'valve_feed_forward') and len(node.warned) == 1 and node.warnings.total == 4
    node.on_wanted(wanted)
    message, = messages(node, 'valve_feed_forward')
    expected = ValveFeedForward(machine)(np.array([0.05, -0.02, 0.0]), np.array(list(pressures.values())))
    assert tuple(message.name) == machine.valves and list(message.position) == pytest.approx(expected.commands)
    assert to_ns(message.header.stamp) == SECOND and message.position[0] > 0.0 > message.position[1]


def test_efforts_have_the_names_of_joints_and_cylinders(make):       # noqa: F811
    node, (machine, forward, _) = with_tf(make, machine='zx200'), model_of('zx200')
    node.on_state(sent(state(machine), 'zx200'))
    node.on_payload(sent(payload(), 'zx200'))
    found = forward(machine.model.start.q, 800.0, 5.0)
    message, = messages(node, 'feed_forward')
    spread, = messages(node, 'feed_forward/stddev')
    assert set(message.name) == EXCAVATOR and message.name == spread.name
    assert list(message.effort) == pytest.approx([*found.torques, *found.forces], rel=1e-12)
    assert list(spread.effort) == pytest.approx([*found.torques_stddev, *found.forces_stddev], rel=1e-12)
    assert list(message.position) == pytest.approx(machine.model.start.q[machine.system.indices(message.name)])
    assert (message.header.frame_id, to_ns(message.header.stamp)) == ('machine', SECOND)
    assert not [topic for topic in node.sinks if topic.startswith('stability')]
    assert told(node)[0] == DiagnosticStatus.OK and 'base.support' in told(node)[2]['margin to tipping over, m']


@pytest.mark.parametrize('status', [s for s in PayloadStatus if s.name in
                                    ('NO_DATA', 'IMPLAUSIBLE', 'CHANGING', 'CONTACT')])
def test_of_a_load_that_is_not_known_nothing_comes_but_the_reason(node, status):
    at(node, 1, replace(payload(status=status), reason='so it is'))
    assert not any(messages(node, topic) for topic in OUTPUTS)
    level, text, values = told(node)
    assert level == DiagnosticStatus.WARN and text == f'NOT_KNOWN: the mass, {status.name}: so it is'
    assert values['feed-forward'] == 'none'
    at(node, 10)
    assert all(len(messages(node, topic)) == 1 for topic in OUTPUTS) and told(node)[1] == 'OK'


def test_of_a_state_that_is_lost_and_of_a_mass_that_does_not_come(node):
    record = replace(state(node.machine), status=ObserverStatus.LOST, reason='no data')
    node.on_state(packed_record(record, node.machine.name, node.fingerprint))
    assert told(node)[1] == 'NOT_KNOWN: the state, LOST: no data'
    at(node, 200)
    at(node, 210, replace(payload(), upper=np.nan))
    assert 'masses: got nan' in told(node)[1]
    node.on_state(packed_record(state(node.machine, 5 * SECOND), node.machine.name, node.fingerprint))
    assert told(node)[1] == 'NOT_KNOWN: the mass, no estimate of it comes'
    assert len(messages(node, 'stability/margin')) == 1 and not node.warned


def test_the_margin_is_that_of_the_upper_end_of_the_interval(node):
    at(node, 1)
    machine = node.machine
    margin = TipOverMargin(machine)
    expected, measured = (margin(machine.model.start.q, (mass,)) for mass in (810.0, 800.0))
    assert messages(node, 'stability/margin')[0].data == pytest.approx(expected.margin, rel=1e-12)
    assert expected.margin < measured.margin
    point, = messages(node, 'stability/zero_moment_point')
    assert [point.point.x, point.point.y, point.point.z] == pytest.approx(expected.zero_moment_point, abs=1e-12)
    assert point.header.frame_id == 'machine' and to_ns(point.header.stamp) == PERIOD
    assert told(node)[2]['with a load of, kg'] == '810.0'


def test_the_diagnostics_say_how_near_it_is(node):
    tipping = TipOverMargin(node.machine)(node.machine.model.start.q, (0.0,)).tipping_mass
    for k, (share, level, text) in enumerate([
            (0.5, DiagnosticStatus.OK, 'OK'), (0.8, DiagnosticStatus.WARN, 'NEAR_TIPPING: '),
            (1.1, DiagnosticStatus.ERROR, 'TIPPING: with')]):
        at(node, 1 + 10 * k, payload(mass=share * tipping))
        assert told(node)[0] == level and told(node)[1].startswith(text)
    assert messages(node, 'stability/margin')[-1].data < 0.0
    assert node.set_parameters([Parameter('tipping_share', value=0.4)])[0].successful
    at(node, 100, payload(mass=0.5 * tipping))
    assert told(node)[0] == DiagnosticStatus.WARN


def test_motion_counts_where_it_is_asked_for(node):
    fast = {'velocity__swing_joint': 1.0, 'acceleration__swing_joint': 1.0}
    at(node, 1, **fast)
    assert node.set_parameters([Parameter('dynamic', value=True)])[0].successful
    at(node, 10, **fast)
    still, moved = (dict(zip(m.name, m.effort)) for m in messages(node, 'feed_forward'))
    assert still['swing_joint'] == pytest.approx(0.0, abs=1e-6) and moved['swing_joint'] > 1e4      # N m
    points = messages(node, 'stability/zero_moment_point')
    assert abs(points[1].point.x - points[0].point.x) > 0.01


def test_the_diagnostics_alone_cost_little(node, monkeypatch):
    monkeypatch.setattr(Sink, 'get_subscription_count', lambda self: int('Diagnostic' in str(self.kind)))
    for k in range(200):
        at(node, k)
    assert not any(messages(node, topic) for topic in OUTPUTS) and len(messages(node, '/diagnostics')) == 2
