# SPDX-License-Identifier: Apache-2.0
"""The RViz configuration: structure and classes of RViz 2, topics and frame of the graph; its look needs a screen."""

import pytest
import yaml
from source_tree import ROOT

from mbse_ros.nodes.graphs.linkage_graph import LINKAGE_FRAME, LINKAGE_TOPICS
from mbse_ros.nodes.graphs.machine_graph import MARKERS_FRAME, TOPICS

CONFIGS = {name: yaml.safe_load((ROOT / 'rviz' / f'{name}.rviz').read_text()) for name in ('machine', 'linkage')}
GRAPHS = {'machine': (TOPICS, MARKERS_FRAME, {'measured', 'estimated', 'payload'}),
          'linkage': (LINKAGE_TOPICS, LINKAGE_FRAME, {'measured', 'estimated', 'true'})}
CLASSES = {
    'rviz_common': {'Displays', 'Views', 'Time', 'Selection', 'Tool Properties', 'Group'},
    'rviz_default_plugins': {'Grid', 'Axes', 'MarkerArray', 'Marker', 'TF', 'Orbit', 'XYOrbit', 'TopDownOrtho', 'FPS',
                             'MoveCamera', 'Select', 'FocusCamera', 'Measure', 'Interact'},
}
DISPLAYED = {'visualization_msgs/msg/MarkerArray': 'rviz_default_plugins/MarkerArray'}


def dictionaries(item):
    """All mappings in a document."""
    if isinstance(item, dict):
        yield item
    for value in item.values() if isinstance(item, dict) else item if isinstance(item, list) else ():
        yield from dictionaries(value)


@pytest.fixture(params=sorted(CONFIGS))
def graph(request):
    return request.param


@pytest.fixture
def manager(graph):
    return CONFIGS[graph]['Visualization Manager']


def test_structure(graph, manager):
    assert {'Panels', 'Visualization Manager', 'Window Geometry'} <= set(CONFIGS[graph])
    assert {'Displays', 'Global Options', 'Tools', 'Views'} <= set(manager)
    assert manager['Views']['Current']['Class'] == 'rviz_default_plugins/Orbit'
    shown = {display['Class'] for display in manager['Displays']}
    assert {'rviz_default_plugins/Grid', 'rviz_default_plugins/MarkerArray'} <= shown


@pytest.mark.parametrize('name', sorted({d['Class'] for d in dictionaries(list(CONFIGS.values())) if d.get('Class')}))
def test_classes_are_those_of_rviz_2(name):
    package, _, kind = name.partition('/')
    assert kind in CLASSES[package]


def test_topics_are_those_of_the_graph(graph, manager):
    shown = [d for d in manager['Displays'] if 'Topic' in d]
    assert shown
    for display in shown:
        topic = display['Topic']
        assert {'Value', 'Depth', 'History Policy', 'Reliability Policy', 'Durability Policy'} <= set(topic)
        assert DISPLAYED[GRAPHS[graph][0][topic['Value'].lstrip('/')]] == display['Class']
        assert topic['Durability Policy'] == 'Volatile'     # as it is published


def test_frames_of_the_machine_are_shown():
    """TF comes with outputs:=true; without it the display is empty."""
    shown = [d['Class'] for d in CONFIGS['machine']['Visualization Manager']['Displays'] if d['Enabled']]
    assert 'rviz_default_plugins/TF' in shown


def test_frame_is_that_of_the_markers(graph, manager):
    assert manager['Global Options']['Fixed Frame'] == GRAPHS[graph][1]


def test_namespaces_are_those_of_the_markers(graph, manager):
    display = next(d for d in manager['Displays'] if d['Class'].endswith('MarkerArray'))
    assert set(display['Namespaces']) == GRAPHS[graph][2]
