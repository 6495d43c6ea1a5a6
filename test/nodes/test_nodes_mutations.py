# SPDX-License-Identifier: Apache-2.0
"""What mutations and kills have found in the nodes, one case each."""

import sqlite3
import subprocess
import sys
import time

import pytest
from source_tree import ROOT

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_in_process import SECOND, make  # noqa: F401
from nodes_support import overrides, ros, sent, state
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.node import Node

from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import MbseError
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.nodes.graphs import run_graph as room
from mbse_ros.nodes.graphs.graph import Graph, Process, parse_arguments
from mbse_ros.nodes.graphs.machine_graph import MachineArguments, machine_graph
from mbse_ros.nodes.graphs.run_graph import RunningGraph
from mbse_ros.nodes.interpolation_node import InterpolationNode
from mbse_ros.nodes.messages.wire import message_class
from mbse_ros.nodes.plant_node import ValveCommands
from mbse_ros.nodes.recorder_node import free_folder
from mbse_ros.nodes.replay_node import ReplayNode
from mbse_ros.nodes.visualization_node import VisualizationNode

LIMIT = 60.0        # s, on a machine with much else to do


@pytest.fixture(scope='module', autouse=True)
def _ros():
    with ros():
        yield


@pytest.mark.parametrize('kind, word', [(SetParameters, 'set_parameters'),
                                        (SetParametersAtomically, 'set_parameters_atomically')])
def test_a_parameter_of_no_type_is_refused(make, kind, word):      # noqa: F811
    """One call ended any node."""
    node = make(InterpolationNode)
    service, = [s for s in node.services if s.srv_name.endswith(f'/{word}')]
    request = kind.Request(parameters=[Parameter(name='step', value=ParameterValue(type=77))])
    answer = service.callback(request, kind.Response())
    result = answer.result if word.endswith('atomically') else answer.results[0]
    assert not result.successful and 'step: type 77, expected one of 0, 1' in result.reason


@pytest.mark.parametrize('name', ['', 'x', './msg/X', '.os/msg/X', 'os/../msg/X', 'std_msgs/msg/__doc__', 'a\nb/msg/X',
                                  'sensor_msgs/msg/'])
def test_what_is_no_type_is_not_imported(name):
    """Types of a bag were imported as they came."""
    with pytest.raises(MbseError, match='expected package/msg/Type') as caught:
        message_class(name)
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize('change', ["UPDATE topics SET type = './msg/X' WHERE id = 1",
                                    "UPDATE topics SET name = '/a`b' WHERE id = 1",
                                    'UPDATE messages SET timestamp = 4611686018427387904 WHERE id > 2'])
def test_the_player_plays_what_is_left(tmp_path, monkeypatch, change):
    """A topic, a type or a time that ROS does not know ended it."""
    with BagWriter(tmp_path / 'bag', 'sqlite3') as writer:
        for k in range(10):
            writer.write_samples(k * 10_000_000, {'position/lift': 0.1, 'pressure/lift_piston': 1e6})
    with sqlite3.connect(next((tmp_path / 'bag').glob('*.db3'))) as database:
        database.executescript('DROP TABLE mbse_ros_checksums;' + change)
    database.close()
    init = Node.__init__
    with monkeypatch.context() as patch:
        patch.setattr(Node, '__init__', lambda self, name, **more: init(
            self, name, **more, parameter_overrides=overrides(bag=str(tmp_path / 'bag'))))
        node = ReplayNode()
    try:
        node._position = 1e12
        while node.tick() is not None:
            pass
        assert node._count == (20 if 'timestamp' in change else 10)
    finally:
        node.destroy_node()


def test_a_name_of_a_command_is_escaped():
    lines = []
    ValveCommands(['lift_valve'], lines.append).take(['\x1b[31m\n'], [1.0])
    assert len(lines) == 1 and lines[0].isprintable() and 'lift_valve' in lines[0]


def test_a_position_beyond_all_does_not_end_the_drawing(make):      # noqa: F811
    node = make(VisualizationNode)
    for k, place in enumerate([1e300, 1e200, 0.25]):
        made = state(k + 1, (k + 1) * SECOND, names=state_names(node.machine)[0])
        made.mean[-1, 0] = 0.25
        made.measured[made.channels.index('position/lift')] = place
        node.on_state(sent(made))
    drawn = [sorted({m.ns for m in message.markers}) for message in node.sinks['markers'].messages]
    assert drawn == [['estimated'], ['estimated'], ['estimated', 'measured']] and 'not drawn' in node.warned[0]


@pytest.mark.parametrize('words', [('-p', 'topics:=a`b:std_msgs/msg/String'), ('-r', '__ns:=/a b'), ('-p', 'bag:=[1')])
def test_names_that_ros_refuses_are_a_line_and_no_bag(tmp_path, words):
    done = subprocess.run([sys.executable, '-m', 'mbse_ros.nodes.recorder_node', '--ros-args', '-p',
                           f'bag:={tmp_path / "bag"}', *words], capture_output=True, text=True, timeout=LIMIT, cwd=ROOT)
    assert done.returncode == 2 and 'FATAL' in done.stderr and 'Traceback' not in done.stderr
    assert not (tmp_path / 'bag').exists()


# A node that was killed

def test_a_recorder_that_is_started_again_writes_beside_its_bag(tmp_path):
    graph = machine_graph(parse_arguments({'record': str(tmp_path / 'bag')}, MachineArguments))
    recorder, = [p for p in graph.processes if p.name == 'recorder_node']
    assert recorder.respawn and not recorder.parameters.get('beside') and recorder.once_more().parameters['beside']
    assert free_folder(str(tmp_path / 'bag')) == str(tmp_path / 'bag')
    for expected in ('bag_2', 'bag_3'):
        (tmp_path / ('bag' if expected == 'bag_2' else 'bag_2')).mkdir()
        assert free_folder(f'{tmp_path / "bag"}/') == str(tmp_path / expected)


@pytest.mark.parametrize('cycles, again', [('0', True), ('2', False)])
def test_a_plant_that_goes_on_begins_again(cycles, again):
    graph = machine_graph(parse_arguments({'cycles': cycles}, MachineArguments))
    plant, = [p for p in graph.processes if p.name == 'plant_node']
    assert (plant.respawn, plant.final) == (again, not again)


def test_a_waiting_process_becomes_the_node_that_died(tmp_path, monkeypatch):
    monkeypatch.setattr(room, 'STANDBY_AFTER', 0.0)
    lines = []
    process = Process('recorder_node', 'recorder_node', respawn=True, again={'beside': True},
                      parameters={'bag': str(tmp_path / 'bag'), 'topics': 'chatter:std_msgs/msg/String'})
    graph = RunningGraph(Graph((process,)), lines.append)
    graph.start()
    try:
        until(graph, lambda: any('recording 1 topics' in line for line in lines) and graph._standby is not None)
        standby = graph._standby.pid
        graph.children['recorder_node'].kill()
        until(graph, lambda: sum('recording 1 topics' in line for line in lines) == 2)
        assert graph.children['recorder_node'].pid == standby and (tmp_path / 'bag_2').is_dir()
        assert any('bag_2' in line for line in lines)
    finally:
        graph.stop()
    assert graph.status == 0


def test_a_waiting_process_that_was_killed_is_no_loss(tmp_path, monkeypatch):
    monkeypatch.setattr(room, 'STANDBY_AFTER', 0.0)
    monkeypatch.setattr(room, 'command', lambda process: [sys.executable, '-c', 'import time; time.sleep(300)'])
    graph = RunningGraph(Graph((Process('recorder_node', 'recorder_node', respawn=True),)), lambda line: None)
    graph.start()
    try:
        until(graph, lambda: graph._standby is not None)
        graph._standby.kill()
        graph._standby.wait()
        first = graph.children['recorder_node'].pid
        graph.children['recorder_node'].kill()
        until(graph, lambda: graph.children.get('recorder_node') and graph.children['recorder_node'].pid != first)
    finally:
        graph.stop()


def until(graph, condition):
    end = time.monotonic() + LIMIT
    while not condition():
        assert graph.step() and time.monotonic() < end, 'waited in vain'
        time.sleep(0.01)
