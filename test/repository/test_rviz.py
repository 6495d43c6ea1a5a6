# SPDX-License-Identifier: Apache-2.0
"""The RViz configuration: structure and classes of RViz 2, topics and frame of the graph, the model in view. How it
looks needs a screen."""

import math

import numpy as np
import pytest
import yaml
from source_tree import ROOT

from mbse_ros.machine import load_machine
from mbse_ros.nodes.graphs.graph import fitted
from mbse_ros.nodes.graphs.linkage_graph import (
    LINKAGE_FRAME,
    LINKAGE_TOPICS,
    LinkageArguments,
    linkage_graph,
    start_box,
)
from mbse_ros.nodes.graphs.machine_graph import MARKERS_FRAME, TOPICS, MachineArguments, machine_graph
from mbse_ros.nodes.messages.outline import LETTER, Box, machine_box

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


def test_panels_are_where_rviz_saves_them(graph):
    """A panel without a state of its own in the window's would fill the window: each dock of the one is in the other,
    as RViz 1.14 saved this window, by its name in UTF-16."""
    panels, window = {panel['Name'] for panel in CONFIGS[graph]['Panels']}, CONFIGS[graph]['Window Geometry']
    state = bytes.fromhex(window['QMainWindow State'])
    docked = {name for name in ('Displays', 'Views', 'Time', 'Selection', 'Tool Properties')
              if name.encode('utf-16-be') in state}
    assert docked == panels == {name for name in window if isinstance(window[name], dict)}
    assert all(window[name] == {'collapsed': False} for name in panels)


def shares(view, points):
    """Where points (n, 3) are in the picture of RViz's orbit camera: (n, 2), beyond 1 outside of it."""
    yaw, pitch = view['Yaw'], view['Pitch']
    back = np.array([math.cos(yaw) * math.cos(pitch), math.sin(yaw) * math.cos(pitch), math.sin(pitch)])
    right = np.array([-math.sin(yaw), math.cos(yaw), 0.0])
    focus = np.array([view['Focal Point'][axis] for axis in 'XYZ'])
    seen = points - focus - view['Distance'] * back
    assert (seen @ back < -view['Near Clip Distance']).all()
    high = -(seen @ back) * math.tan(math.pi / 8)
    return np.column_stack([seen @ right / (1.2 * high), seen @ np.cross(back, right) / high])


def corners(box):
    """The eight of a box."""
    return np.array([[(box.low, box.high)[i][0], (box.low, box.high)[j][1], (box.low, box.high)[k][2]]
                     for i in (0, 1) for j in (0, 1) for k in (0, 1)])


@pytest.mark.parametrize('name', sorted(path.stem for path in (ROOT / 'config' / 'machines').glob('*.yaml')))
def test_machines_are_in_view(name):
    """By the launch file over their whole strokes, and large enough; by the file itself as they start."""
    machine = load_machine(name)
    box = machine_box(machine)
    views = fitted(yaml.safe_load((ROOT / 'rviz' / 'machine.rviz').read_text()), box)['Visualization Manager']['Views']
    there = np.abs(shares(views['Current'], corners(box) * [1, 0, 1]))
    assert 0.5 < there.max() < 1.0
    high = 2 * views['Current']['Distance'] * math.tan(math.pi / 8)     # of the picture, m; 680 pixels
    assert 680 * LETTER * box.size / high > 14
    assert np.abs(shares(views['Current'], box.above[None])).max() < 1.0
    start = np.vstack(list(machine.outline(machine.model.start.q[machine.model.z]).values()))
    assert np.abs(shares(CONFIGS['machine']['Visualization Manager']['Views']['Current'], start)).max() < 1.0


@pytest.mark.parametrize('name', ['five_bar', 'slider_crank', 'spatial_crane', 'pendulum', 'four_bar_spring'])
def test_mechanisms_are_in_view(name):
    box = start_box(name)
    views = fitted(yaml.safe_load((ROOT / 'rviz' / 'linkage.rviz').read_text()), box)['Visualization Manager']['Views']
    there = np.abs(shares(views['Current'], corners(box)))
    assert 0.5 < there.max() < 1.0


def test_what_swings_all_the_way_round_stays_in_view():
    """The pendulum starts to the left of its pin, and comes as far to the right, above and below."""
    box = start_box('pendulum')
    views = fitted(yaml.safe_load((ROOT / 'rviz' / 'linkage.rviz').read_text()), box)['Visualization Manager']['Views']
    around = np.array([[np.cos(angle), 0.0, np.sin(angle)] for angle in np.linspace(0.0, 6.0, 13)])
    assert 0.4 < np.abs(shares(views['Current'], around)).max() < 0.9


@pytest.mark.parametrize('size', [1e-4, 1e-2, 1.0, 1e3])
def test_any_size_is_in_view(size):
    box = Box(np.full(3, -size), np.full(3, size), -size)
    manager = fitted(yaml.safe_load((ROOT / 'rviz' / 'machine.rviz').read_text()), box)['Visualization Manager']
    assert np.abs(shares(manager['Views']['Current'], corners(box) * [1, 0, 1])).max() < 1.0
    grid = next(display for display in manager['Displays'] if display['Class'].endswith('/Grid'))
    assert 5 <= grid['Plane Cell Count'] <= 100


def test_the_graph_starts_rviz_with_the_model_in_view(tmp_path, monkeypatch):
    monkeypatch.setenv('MBSE_CACHE_DIR', str(tmp_path))
    for made in (machine_graph(MachineArguments(rviz=True, machine='lut_simple_crane')),
                 linkage_graph(LinkageArguments(rviz=True))):
        rviz = next(process for process in made.processes if process.name == 'rviz2')
        written = yaml.safe_load(open(rviz.arguments[1]).read())
        assert tmp_path in type(tmp_path)(rviz.arguments[1]).parents
        assert set(written) == set(CONFIGS['machine'])
    (tmp_path / 'file').touch()     # no folder can be made there: the file of the package
    monkeypatch.setenv('MBSE_CACHE_DIR', str(tmp_path / 'file'))
    rviz = next(p for p in machine_graph(MachineArguments(rviz=True)).processes if p.name == 'rviz2')
    assert rviz.arguments[1] == str(ROOT / 'rviz' / 'machine.rviz')
