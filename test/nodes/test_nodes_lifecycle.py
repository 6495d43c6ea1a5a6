# SPDX-License-Identifier: Apache-2.0
"""Transitions of the nodes: all of them and back, impossible ones, failures."""

from threading import Event
from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from nodes_support import MATCH, Peer, ros, segment, sent
from rclpy.executors import SingleThreadedExecutor
from std_srvs.srv import Trigger

from mbse_ros.msg import HydraulicState, SensorSegment
from mbse_ros.nodes import plant_node as _plant
from mbse_ros.nodes.base import lifecycle as _lifecycle
from mbse_ros.nodes.base.lifecycle import FAILURE, SUCCESS
from mbse_ros.nodes.observer_node import ObserverNode
from mbse_ros.nodes.plant_node import RealTimePlant

PERIOD = 10_000_000


@pytest.fixture(scope='module', autouse=True)
def _ros():
    with ros():
        yield


@pytest.fixture
def node():
    node = ObserverNode()
    yield node
    node.destroy_node()


def label(node):
    return node._state_machine.current_state[1]


def test_up_and_down_twice(node):
    for _ in range(2):
        assert node.trigger_configure() == SUCCESS and label(node) == 'inactive'
        assert node.trigger_activate() == SUCCESS and label(node) == 'active'
        assert [s.topic_name for s in node.subscriptions if 'segment' in s.topic_name] == ['/segment']
        assert node.trigger_deactivate() == SUCCESS and label(node) == 'inactive'
        assert not [s for s in node.subscriptions if 'segment' in s.topic_name]
        assert node.trigger_activate() == SUCCESS and node.trigger_deactivate() == SUCCESS
        assert node.trigger_cleanup() == SUCCESS and label(node) == 'unconfigured'
        assert not [p for p in node.publishers if 'state' == p.topic_name.split('/')[-1]]
    assert node.trigger_shutdown() == SUCCESS and label(node) == 'finalized'


def test_a_machine_that_cannot_be_used_fails(monkeypatch, node):
    logged = []
    monkeypatch.setattr(type(node.get_logger()), 'fatal', lambda self, text, **_: logged.append(text))
    monkeypatch.setattr('mbse_ros.nodes.base.node_settings.load_machine',
                        lambda *_: (_ for _ in ()).throw(ZeroDivisionError))
    assert node.trigger_configure() == FAILURE and label(node) == 'unconfigured'
    assert 'ZeroDivisionError' in logged[0] and 'Traceback' in logged[0]
    monkeypatch.undo()
    assert node.trigger_configure() == SUCCESS


def test_an_activation_that_fails_leaves_it_inactive(monkeypatch, node):
    node.trigger_configure()
    monkeypatch.setattr(node, 'connect', lambda: 1 / 0)
    assert node.trigger_activate() == FAILURE and label(node) == 'inactive' and not node.active
    monkeypatch.undo()
    assert node.trigger_activate() == SUCCESS


def test_over_the_wire(node):
    """Services of a node that runs, an impossible transition among them, and its silence while inactive."""
    peer = Peer(state=HydraulicState)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    peer.also = lambda: executor.spin_once(timeout_sec=0.01)
    try:
        def change(number):
            return peer.call(ChangeState, 'observer_node/change_state',
                             ChangeState.Request(transition=Transition(id=number))).success
        assert not change(Transition.TRANSITION_ACTIVATE)       # not from unconfigured
        assert change(Transition.TRANSITION_CONFIGURE)
        assert peer.call(GetState, 'observer_node/get_state', GetState.Request()).current_state.label == 'inactive'
        assert change(Transition.TRANSITION_ACTIVATE)
        peer.until(lambda: peer.node.count_publishers('state') == 1)
        peer.publish(SensorSegment, 'segment', sent(segment(1, restart=True)))
        peer.until(lambda: peer.heard['state'])
        assert change(Transition.TRANSITION_DEACTIVATE)
        readers = peer.outputs['segment'].get_subscription_count
        peer.until(lambda: readers() == 0)
        peer.publish(SensorSegment, 'segment', sent(segment(2, 10_000_000)))
        assert change(Transition.TRANSITION_ACTIVATE)
        peer.until(lambda: readers() == 1)
        peer.publish(SensorSegment, 'segment', sent(segment(3, 20_000_000)))
        peer.until(lambda: len(peer.heard['state']) > 1)
        assert [message.sequence for message in peer.heard['state']] == [1, 3]
    finally:
        peer.close()


def test_waits_for_those_who_read_its_output(node, monkeypatch):
    node.settings = type(node.settings)(wait_subscribers=1, wait_time=0.3)
    logged = []
    monkeypatch.setattr(type(node.get_logger()), 'warning', lambda self, text, **_: logged.append(text))
    node.trigger_configure()
    now = [5.0]
    with monkeypatch.context() as patch:
        patch.setattr(_lifecycle, 'time', SimpleNamespace(
            monotonic=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + seconds)))
        assert node.trigger_activate() == SUCCESS and now[0] == pytest.approx(5.3, abs=0.02)
    assert '/state: 0 of 1 subscribers' in logged[0]
    node.trigger_deactivate()
    peer, logged[:] = Peer(state=HydraulicState), []
    try:
        node.settings = type(node.settings)(wait_subscribers=1, wait_time=60.0)
        assert node.trigger_activate() == SUCCESS and not logged
    finally:
        peer.close()


def test_a_long_start_says_why(monkeypatch, node):
    said, build = Event(), node.build
    monkeypatch.setattr(type(node.get_logger()), 'info', lambda self, text, **_: 'compiles' in text and said.set())
    monkeypatch.setattr(_lifecycle, 'SLOW', 0.0)
    monkeypatch.setattr(node, 'build', lambda machine: said.wait(MATCH) and build(machine))
    assert node.trigger_configure() == SUCCESS and said.is_set()


def test_a_simulation_that_falls_behind_says_so(monkeypatch):
    plant, said = RealTimePlant.__new__(RealTimePlant), []
    plant.active, plant.end_ns, plant._begin, plant._outbox = True, None, 100.0, [(SimpleNamespace(publish=id), b'')]
    plant._prepare, plant.warnings = (lambda: None), lambda kind, text: said.append(text)
    for now, due_s, line in ((101.0, 1.2, []), (101.4, 1.0, []), (119.0, 1.0, ['18.0 s behind real time'])):
        monkeypatch.setattr(_plant, 'time', SimpleNamespace(monotonic=lambda now=now: now))
        plant._due_ns = round(due_s * 1e9)
        plant.tick()
        assert [text.partition(':')[0] for text in said] == line


def test_a_reset_forgets_the_state(node):
    peer, executor = Peer(state=HydraulicState), SingleThreadedExecutor()
    executor.add_node(node)
    peer.also = lambda: executor.spin_once(timeout_sec=0.01)
    try:
        assert not peer.call(Trigger, 'observer_node/reset', Trigger.Request()).success      # nothing there to forget
        node.trigger_configure()
        node.trigger_activate()
        peer.until(lambda: peer.node.count_publishers('state') == 1)
        for k in (1, 2):
            peer.publish(SensorSegment, 'segment', sent(segment(k, (k - 1) * PERIOD)))
        peer.until(lambda: len(peer.heard['state']) == 2)
        answer = peer.call(Trigger, 'observer_node/reset', Trigger.Request())
        assert answer.success and 'forgotten' in answer.message
        for k in (3, 4):
            peer.publish(SensorSegment, 'segment', sent(segment(k, (k - 1) * PERIOD)))
        peer.until(lambda: len(peer.heard['state']) == 4)
        assert [message.restart for message in peer.heard['state']] == [True, False, True, False]
    finally:
        peer.close()
