# SPDX-License-Identifier: Apache-2.0
"""Parameters: declared from the settings with text and range; a wrong value is refused, a good one takes effect."""

from dataclasses import fields

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_support import overrides, ros
from rclpy.exceptions import ParameterException
from rclpy.parameter import Parameter

from mbse_ros.errors import SettingError
from mbse_ros.nodes.base import lifecycle as _lifecycle
from mbse_ros.nodes.graphs.catalogue import NODES
from mbse_ros.nodes.interpolation_node import InterpolationNode
from mbse_ros.nodes.observer_node import ObserverNode
from mbse_ros.nodes.outputs_node import OutputsNode
from mbse_ros.nodes.payload_node import PayloadNode
from mbse_ros.nodes.plant_node import PlantNode
from mbse_ros.nodes.scale_node import ScaleNode
from mbse_ros.nodes.visualization_node import VisualizationNode

KINDS = {'interpolation_node': InterpolationNode, 'observer_node': ObserverNode, 'payload_node': PayloadNode,
         'plant_node': PlantNode, 'visualization_node': VisualizationNode, 'outputs_node': OutputsNode,
         'scale_node': ScaleNode}


@pytest.fixture(scope='module', autouse=True)
def _ros():
    with ros():
        yield


@pytest.fixture
def make(monkeypatch):
    """Makes a node with parameters given at the start."""
    nodes = []

    def build(name, **values):
        init = _lifecycle.LifecycleNode.__init__
        monkeypatch.setattr(_lifecycle.LifecycleNode, '__init__', lambda self, node_name, **more: init(
            self, node_name, parameter_overrides=overrides(**values), **more))
        try:
            nodes.append(KINDS[name]())
        finally:
            monkeypatch.undo()
        return nodes[-1]
    yield build
    for node in nodes:
        node.destroy_node()


@pytest.mark.parametrize('name', KINDS)
def test_every_setting_is_a_described_parameter(make, name):
    node, entry = make(name), NODES[name]
    groups = [(group, True) for group in entry.fixed] + ([(entry.tuned, False)] if entry.tuned else [])
    for group, read_only in groups:
        for item in fields(group):
            described, meta = node.describe_parameter(item.name), item.metadata
            assert node.get_parameter(item.name).value == item.default
            assert described.description.startswith(meta['text']) and meta['unit'] in described.description
            assert described.read_only == read_only
            assert all(choice in described.additional_constraints for choice in meta['choices'])
            ranges = [*described.floating_point_range, *described.integer_range]
            assert [(r.from_value, r.to_value) for r in ranges] == (
                [] if meta['low'] is None else [(meta['low'], meta['high'])])


@pytest.mark.parametrize('name, parameter, value, reason', [
    ('observer_node', 'acceleration_psd', -1.0, 'out of range'),
    ('observer_node', 'acceleration_psd', float('nan'), 'out of range'),
    ('observer_node', 'acceleration_psd', 'fast', 'type'),
    ('observer_node', 'transition', '7', 'one of 0, 1, 2'),
    ('observer_node', 'machine', 'other', 'read-only'),
    ('interpolation_node', 'step', 5.0, 'out of range'),
    ('payload_node', 'window', 0, 'out of range'),
    ('plant_node', 'payload', 20.0, 'read-only'),
    ('visualization_node', 'rate', float('inf'), 'ange'),
    ('outputs_node', 'publish_tf', 'payload', 'read-only'),
])
def test_a_wrong_value_is_refused_with_a_reason(make, name, parameter, value, reason):
    node = make(name)
    before = node.get_parameter(parameter).value
    (result,) = node.set_parameters([Parameter(parameter, value=value)])
    assert not result.successful and reason in result.reason
    assert node.get_parameter(parameter).value == before


@pytest.mark.parametrize('name', KINDS)
def test_a_node_takes_its_own_dump(make, name):
    """`ros2 param load` of what `ros2 param dump` gave: nothing is refused, what is fixed included."""
    node = make(name)
    own = [node.get_parameter(item) for item in node.list_parameters([], 0).names]
    for item in own:        # as the service of parameters does
        assert node.set_parameters_atomically([item]).successful, item.name
    assert len(own) > 3 and node.set_parameters_atomically(own).successful
    other = Parameter('machine', value='another')
    assert 'read-only' in node.set_parameters_atomically([*own, other]).reason


@pytest.mark.parametrize('name, values, reason', [
    ('observer_node', {'acceleration_psd': 1e9}, 'acceleration_psd'),
    ('observer_node', {'acceleration_psd': 'fast'}, 'acceleration_psd'),
    ('observer_node', {'acceleration_psd': 1}, 'decimal point, 1.0'),
    ('observer_node', {'backend': 'fortran'}, 'backend'),
    ('payload_node', {'widow': 5}, 'widow'),
])
def test_a_wrong_start_is_refused(make, name, values, reason):
    with pytest.raises((SettingError, ParameterException), match=reason):
        make(name, **values)


def test_a_parameter_of_another_node_is_let_through(make):
    assert make('observer_node', window=5, use_sim_time=True).tuning == NODES['observer_node'].tuned()


@pytest.mark.parametrize('name, parameter, value, stage', [
    ('interpolation_node', 'step', 0.001, 'interpolator'),
    ('observer_node', 'acceleration_psd', 0.25, 'stage'),
    ('payload_node', 'min_speed', 0.05, 'stage'),
])
def test_a_change_reaches_the_stage(make, name, parameter, value, stage):
    node = make(name, machine='patu655_lift', backend='vm', **{parameter: value * 2})
    assert node.trigger_configure() == _lifecycle.SUCCESS
    assert getattr(getattr(node, stage).settings, parameter) == value * 2
    assert node.set_parameters([Parameter(parameter, value=value)])[0].successful
    assert getattr(getattr(node, stage).settings, parameter) == getattr(node.tuning, parameter) == value


def test_a_change_before_configure_counts(make):
    node = make('payload_node', backend='vm')
    assert node.set_parameters([Parameter('window', value=11)])[0].successful
    assert node.trigger_configure() == _lifecycle.SUCCESS and node.stage.settings.window == 11


def test_what_the_stage_refuses_is_refused(make, monkeypatch):
    node = make('payload_node', backend='vm')
    node.trigger_configure()

    def refuse(settings):
        raise SettingError('window', settings.window, 'another day')
    monkeypatch.setattr(node.stage, 'configure', refuse)
    (result,) = node.set_parameters([Parameter('window', value=11)])
    assert not result.successful and 'another day' in result.reason and node.tuning.window != 11
