# SPDX-License-Identifier: Apache-2.0
"""The linkage's graph as processes over DDS: nothing is lost, filters change live, a killed node returns."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from diagnostic_msgs.msg import DiagnosticArray
from nodes_support import PATIENCE, asked, own_domain
from rcl_interfaces.srv import GetParameters, SetParameters, SetParametersAtomically
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray
from watched_graph import WatchedGraph

from mbse_ros.msg import LinkageState
from mbse_ros.nodes.graphs import run_graph as up
from mbse_ros.nodes.graphs.graph import Graph, parse_arguments
from mbse_ros.nodes.graphs.linkage_graph import LinkageArguments, linkage_graph
from mbse_ros.nodes.messages.wire import to_ns

TOPICS = {'linkage_state': LinkageState, 'truth/joint_states': JointState, 'estimated/joint_states': JointState,
          'sensors/joint_states': JointState, 'markers': MarkerArray, '/diagnostics': DiagnosticArray}

SERVICES = {'set_parameters': SetParameters, 'set_parameters_atomically': SetParametersAtomically,
            'get_parameters': GetParameters}


class Watched(WatchedGraph):
    """The running graph of a linkage, with the parameters of nodes by their names."""

    def __init__(self, parameters=None, **arguments):
        described = linkage_graph(parse_arguments(arguments, LinkageArguments))
        super().__init__(Graph(tuple(replace(p, parameters={**p.parameters, **(parameters or {}).get(p.name, {})})
                                     for p in described.processes)), TOPICS, 'linkage_state', 'linkage_plant_node')
        # From the start on: an answer does not come to a client that the node has not met yet.
        self.clients = {name: self.peer.node.create_client(kind, f'linkage_node/{name}')
                        for name, kind in SERVICES.items()}
        self.start()

    def set(self, **values):
        """Results of setting parameters of the linkage node."""
        return self._call('set_parameters', SetParameters.Request(parameters=_messages(values))).results

    def set_at_once(self, **values):
        """Result of setting parameters that belong together."""
        return self._call('set_parameters_atomically',
                          SetParametersAtomically.Request(parameters=_messages(values))).result

    def get(self, *names):
        """Values of text parameters of the linkage node."""
        answer = self._call('get_parameters', GetParameters.Request(names=list(names)))
        return [value.string_value for value in answer.values]

    def _call(self, service, request):
        self.until(self.clients[service].service_is_ready)
        future = asked(self.clients[service], request)
        self.until(future.done)
        return future.result()


def _messages(values):
    return [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]


def first_published(states):
    """States without those that come once more, corrected by an input that came late."""
    return [state for state in states if not state.revision]


@pytest.fixture(scope='module')
def watched():
    with own_domain():
        graph = Watched(prepared='DEKF', seed='3', free='bodies.coupler_1.mass')
        try:
            yield graph
        finally:
            graph.close()


def test_nothing_is_lost_at_200_hz(watched):
    watched.until(lambda: len(watched.heard('sensors/joint_states')) >= 600 and len(
        first_published(watched.heard('linkage_state'))) >= 600)
    states = first_published(watched.heard('linkage_state'))
    assert [m.sequence for m in states] == list(range(1, len(states) + 1))
    assert set(np.diff([to_ns(m.header.stamp) for m in states])) == {5_000_000}
    sensed = [to_ns(m.header.stamp) for m in watched.heard('sensors/joint_states')][:600]
    assert [to_ns(m.header.stamp) for m in states][:600] == sensed
    assert {m.dropped for m in states} == {0} and [m.restart for m in states].count(True) == 1
    assert all(list(m.measured) == [m.USED, m.USED] for m in states[100:600])        # later ones the gate may reject


def test_it_follows_the_truth(watched):
    watched.until(lambda: len(watched.heard('truth/joint_states')) > 400)
    truth = {to_ns(m.header.stamp): dict(zip(m.name, m.position)) for m in watched.heard('truth/joint_states')}
    pairs = [(m, truth[to_ns(m.header.stamp)]) for m in watched.heard('linkage_state')[200:]
             if to_ns(m.header.stamp) in truth]
    error = [[m.mean[0] - at['theta1'], m.mean[1] - at['theta2']] for m, at in pairs]
    assert len(error) > 100 and np.sqrt(np.mean(np.square(error))) < 0.01
    last = watched.heard('linkage_state')[-1]
    assert last.status == last.OK and list(last.force_names) == ['theta1', 'theta2']
    size = len(last.names)
    assert np.linalg.eigvalsh(np.array(last.covariance).reshape(size, size)).min() > 0
    joints = watched.heard('estimated/joint_states')[-1]
    assert 'theta2' in joints.name and len(joints.velocity) == len(joints.name) == len(joints.effort)


def test_it_is_drawn_and_its_health_published(watched):
    def published():        # once it looked at the observability
        found = [s for m in watched.heard('/diagnostics') for s in m.status if s.name == 'linkage_node: five_bar']
        return [s for s in found if 'not known yet' not in [item.value for item in s.values]]

    def drawn():        # the truth once the node, which reads it for viewers alone, has met it
        return {m.ns for message in watched.heard('markers') for m in message.markers}
    watched.until(lambda: len(published()) >= 2 and len(watched.heard('markers')) >= 10 and 'true' in drawn())
    assert drawn() == {'estimated', 'measured', 'true'}
    for message in watched.heard('markers'):        # what is compared is of one instant
        added = [m for m in message.markers if m.action == m.ADD]      # others go where no estimate came for long
        assert len({(m.header.stamp.sec, m.header.stamp.nanosec) for m in added}) == 1
        assert 'estimated' in {m.ns for m in message.markers}
    status = published()[-1]
    values = {item.key: item.value for item in status.values}
    assert status.level == b'\x00' and values['observability'] == '6 of 6 directions seen'
    assert 0.3 < float(values['mean NIS per measurement']) < 2


def test_the_filter_and_a_noise_change_live(watched):
    count = len(watched.heard('linkage_state'))
    result, = watched.set(estimator='DEKF')
    assert result.successful, result.reason
    watched.until(lambda: watched.heard('linkage_state')[-1].estimator == 'DEKF')
    result, = watched.set(noises='acceleration=5')
    assert result.successful, result.reason
    watched.until(lambda: len(watched.heard('linkage_state')) > count + 400)
    after = first_published(watched.heard('linkage_state')[count:])
    assert np.all(np.diff([m.sequence for m in after]) == 1) and not any(m.restart for m in after)
    first = next(m for m in after if m.estimator == 'DEKF')
    before = [m for m in after if m.estimator != 'DEKF' and m.sequence < first.sequence] or [first]
    assert np.abs(np.subtract(first.mean[:2], before[-1].mean[:2])).max() < 0.1


def test_a_filter_is_compiled_while_the_other_goes_on(watched):
    """joint, whose parameters are published."""
    count = len(watched.heard('linkage_state'))
    result = watched.set_at_once(estimator='joint', options='parameters=bodies.coupler_1.mass', noises='')
    assert result.successful and 'compiled' in result.reason and 'DEKF continues' in result.reason
    watched.until(lambda: watched.heard('linkage_state')[-1].estimator == 'joint')
    states = first_published(watched.heard('linkage_state')[count:])
    assert np.all(np.diff([m.sequence for m in states]) == 1) and not any(m.restart for m in states)
    last = states[-1]
    assert list(last.parameters) == ['bodies.coupler_1.mass'] and last.names[-1] == 'parameter/bodies.coupler_1.mass'
    assert 0.7 < last.parameter_values[0] < 1.3 and 0 < last.parameter_stddev[0] < 0.15


def test_what_cannot_be_compiled_is_taken_back(watched):
    result = watched.set_at_once(estimator='DEKF', options='transition=nose')
    assert result.successful and 'compiled' in result.reason
    watched.until(lambda: any('DEKF cannot be used' in line for line in watched.log))
    assert watched.get('estimator', 'options') == ['joint', 'parameters=bodies.coupler_1.mass']
    assert watched.heard('linkage_state')[-1].estimator == 'joint'
    result = watched.set_at_once(estimator='errorEKF_FE', options='actuators=torque_2')
    assert result.successful
    watched.until(lambda: watched.heard('linkage_state')[-1].estimator == 'errorEKF_FE')
    assert list(watched.heard('linkage_state')[-1].force_names) == ['torque_2']
    assert watched.set_at_once(estimator='DEKF', options='').successful


@pytest.mark.parametrize('name, value, text', [
    ('estimator', 'nose', 'one of'), ('noises', 'nose=1', 'acceleration'), ('gate', 2.0, ''),
    ('stddev', 'a=1', 'encoder'),
    ('options', 'nose=1', 'options of DEKF'), ('mechanism', 'four_bar', '')])
def test_bad_parameters_are_refused(watched, name, value, text):
    result, = watched.set(**{name: value})
    assert not result.successful and text in result.reason


def test_a_killed_node_returns(watched):
    plant = watched.graph.children['linkage_plant_node'].pid
    killed, count = watched.graph.children['linkage_node'].pid, len(watched.heard('linkage_state'))
    os.kill(killed, signal.SIGKILL)
    watched.until(lambda: watched.graph.children.get('linkage_node') is None, paced=False)

    def returned():
        """What comes after the last words of the killed one."""
        messages = watched.heard('linkage_state')[count - 1:]
        back = [k for k, pair in enumerate(zip(messages, messages[1:]), 1) if pair[1].sequence <= pair[0].sequence]
        return messages[back[0]:] if back else []
    watched.until(returned, paced=False)
    watched.until(lambda: len(returned()) > 200 and returned()[-1].status == LinkageState.OK)
    assert returned()[0].restart and returned()[0].sequence == 1
    assert watched.graph.children['linkage_node'].pid != killed
    assert watched.graph.children['linkage_plant_node'].pid == plant


def test_it_ends_cleanly(watched, monkeypatch):
    monkeypatch.setattr(up, 'ESCALATION', PATIENCE)
    children = dict(watched.graph.children)
    watched.graph.stop()
    assert all(child.returncode == 0 for child in children.values()), watched.log
