# SPDX-License-Identifier: Apache-2.0
"""The RViz configuration: structure and classes of RViz 2, topics and frame of the graph; its look needs a screen."""

import pytest
import yaml
from source_tree import ROOT

from mbse_ros.nodes.graph import MARKERS_FRAME, TOPICS

CONFIG = yaml.safe_load((ROOT / 'rviz' / 'crane.rviz').read_text())
MANAGER = CONFIG['Visualization Manager']
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


def test_structure():
    assert {'Panels', 'Visualization Manager', 'Window Geometry'} <= set(CONFIG)
    assert {'Displays', 'Global Options', 'Tools', 'Views'} <= set(MANAGER)
    assert MANAGER['Views']['Current']['Class'] == 'rviz_default_plugins/Orbit'
    shown = {display['Class'] for display in MANAGER['Displays']}
    assert {'rviz_default_plugins/Grid', 'rviz_default_plugins/MarkerArray'} <= shown


@pytest.mark.parametrize('name', sorted({d['Class'] for d in dictionaries(CONFIG) if d.get('Class')}))
def test_classes_are_those_of_rviz_2(name):
    package, _, kind = name.partition('/')
    assert kind in CLASSES[package]


def test_topics_are_those_of_the_graph():
    shown = [d for d in MANAGER['Displays'] if 'Topic' in d]
    assert shown
    for display in shown:
        topic = display['Topic']
        assert {'Value', 'Depth', 'History Policy', 'Reliability Policy', 'Durability Policy'} <= set(topic)
        assert DISPLAYED[TOPICS[topic['Value'].lstrip('/')]] == display['Class']
        assert topic['Durability Policy'] == 'Volatile'     # as it is published


def test_frame_is_that_of_the_markers():
    assert MANAGER['Global Options']['Fixed Frame'] == MARKERS_FRAME


def test_namespaces_are_those_of_the_markers():
    display = next(d for d in MANAGER['Displays'] if d['Class'].endswith('MarkerArray'))
    assert set(display['Namespaces']) == {'measured', 'estimated', 'payload'}
