# SPDX-License-Identifier: Apache-2.0
"""The smoother beside the filter as processes over DDS, and its refusals."""

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_support import overrides, own_domain, ros
from std_srvs.srv import Trigger
from test_nodes_linkage import TOPICS, Watched

from mbse_ros.msg import LinkageState
from mbse_ros.nodes.base import lifecycle as _lifecycle
from mbse_ros.nodes.linkage_node import LinkageNode
from mbse_ros.nodes.messages.wire import to_ns
from mbse_ros.nodes.smoother_node import SmootherNode

COUNT = 400         # instants of 2 s
LATE = 0.5          # s that one topic may come after another on a busy machine; as late as samples count at all
SILENCE = 3.0       # s: longer than a busy machine stops a process, whose sensor then counts as silent


@pytest.fixture(scope='module')
def watched():
    """Two seconds of motion and the silence after it."""
    with pytest.MonkeyPatch.context() as patch, own_domain():
        patch.setitem(TOPICS, 'smoothed_state', LinkageState)
        graph = Watched({'smoother_node': {'silence': SILENCE, 'delay': LATE, 'coast_after': SILENCE},
                         'linkage_plant_node': {'exit_at_end': False}}, smoother='true', lag='0.1', duration='2.0',
                        mechanism='four_bar', sensors='encoder coupler_gyro', seed='3')
        try:
            graph.until(lambda: len(graph.heard('smoothed_state')) >= COUNT and len(
                {to_ns(m.header.stamp) for m in graph.heard('linkage_state')}) >= COUNT, paced=False)
        finally:
            graph.close()
        yield graph


def test_every_instant_is_published_once_the_rest_of_the_window_after_the_silence(watched):
    smoothed, filtered = watched.heard('smoothed_state'), watched.heard('linkage_state')
    assert [m.sequence for m in smoothed] == list(range(1, COUNT + 1)) and {m.revision for m in smoothed} == {0}
    stamps = [to_ns(m.header.stamp) for m in smoothed]
    assert set(np.diff(stamps)) == {5_000_000}
    assert stamps == sorted({to_ns(m.header.stamp) for m in filtered})
    assert [m.restart for m in smoothed].count(True) == 1 and {m.dropped for m in smoothed} == {0}
    assert all(list(m.measured) == [m.USED, m.USED] for m in smoothed[50:])
    assert {(m.status, m.reason) for m in smoothed[30:]} == {(LinkageState.OK, '')}


def test_it_is_nearer_to_the_truth_than_the_filter(watched):
    truth = {to_ns(m.header.stamp): dict(zip(m.name, m.position))['theta'] for m in watched.heard('truth/joint_states')}

    def errors(topic):
        last = {to_ns(m.header.stamp): m.mean[0] for m in watched.heard(topic)}
        return np.array([value - truth[stamp] for stamp, value in list(last.items())[100:] if stamp in truth])
    smoothed, filtered = errors('smoothed_state'), errors('linkage_state')
    assert len(smoothed) == len(filtered) > 100         # the truth may join late
    assert np.sqrt(np.mean(smoothed ** 2)) < 0.9 * np.sqrt(np.mean(filtered ** 2))
    m = watched.heard('smoothed_state')[200]
    assert m.estimator == 'smoother' and list(m.names) == ['position/theta', 'velocity/theta', 'force/theta']
    assert list(m.force_names) == ['theta'] and m.force[0] == m.mean[2] and m.force_stddev[0] > 0
    assert np.linalg.eigvalsh(np.array(m.covariance).reshape(3, 3)).min() > 0


def test_its_status_is_published_beside_that_of_the_filter(watched):
    statuses = {status.name: status for m in watched.heard('/diagnostics') for status in m.status}
    assert {'smoother_node: four_bar', 'linkage_node: four_bar'} <= set(statuses)
    assert statuses['smoother_node: four_bar'].message == 'OK'


@pytest.mark.parametrize('kind', [SmootherNode, LinkageNode])
def test_a_reset_forgets_the_state(monkeypatch, kind):
    with ros():
        init = _lifecycle.LifecycleNode.__init__
        monkeypatch.setattr(_lifecycle.LifecycleNode, '__init__', lambda self, node, **more: init(
            self, node, parameter_overrides=overrides(mechanism='four_bar', backend='vm'), **more))
        node, request = kind(), Trigger.Request()
        assert not node.on_reset(request, Trigger.Response()).success        # nothing there to forget
        assert node.trigger_configure() == node.trigger_activate() == _lifecycle.SUCCESS
        start, published = node.machine.start.q[node.machine.z[0]], []
        monkeypatch.setattr(node, 'publish_estimate', published.append)
        for stamp in (10 ** 9, 2 * 10 ** 9):
            node.take(stamp, {'encoder': float(start)})
            node.take(stamp + 5_000_000, {'encoder': float(start)})
            if kind is SmootherNode:
                node.do_rest()      # as at its end: the rest of the window
            assert [estimate.restart for estimate in published] == [True, False], stamp
            published.clear()
            answer = node.on_reset(request, Trigger.Response())
            assert answer.success and 'forgotten' in answer.message
        node.destroy_node()


@pytest.mark.parametrize('name, value, text', [
    ('estimator', 'DEKF', 'errorEKF_FE'), ('noises', 'nose=1', 'acceleration'), ('delay', 3.0, 'delay_window')])
def test_what_cannot_be_smoothed_is_refused_at_configure(monkeypatch, name, value, text):
    with ros():
        init = _lifecycle.LifecycleNode.__init__
        monkeypatch.setattr(_lifecycle.LifecycleNode, '__init__', lambda self, node, **more: init(
            self, node, parameter_overrides=overrides(mechanism='four_bar', **{name: value}), **more))
        node, logged = SmootherNode(), []
        monkeypatch.setattr(type(node.get_logger()), 'fatal', lambda self, line, **_: logged.append(line))
        assert node.trigger_configure() == _lifecycle.FAILURE
        assert text in logged[0] and 'Traceback' not in logged[0]
        node.destroy_node()
