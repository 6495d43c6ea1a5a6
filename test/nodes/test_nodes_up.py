# SPDX-License-Identifier: Apache-2.0
"""The description of the graph, and its processes without ROS launch: started, started again, reported, stopped."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from source_tree import ROOT

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
import rclpy
from rclpy.context import Context
from rclpy.node import Node

from mbse_ros.cli.up import up_graph
from mbse_ros.errors import BagError, DescriptionError, MbseError, ScaleError, SettingError
from mbse_ros.nodes.graphs import run_graph as room
from mbse_ros.nodes.graphs.catalogue import NODES
from mbse_ros.nodes.graphs.graph import Graph, Process, parse_arguments
from mbse_ros.nodes.graphs.machine_graph import MachineArguments, machine_graph
from mbse_ros.nodes.graphs.run_graph import PROFILE_VARIABLES, RunningGraph, command, dds_profile, up

LIMIT = 300.0       # s, on a machine with much else to do
SLEEP = f'import time; time.sleep({LIMIT})'


def names(**arguments):
    return {process.name for process in machine_graph(parse_arguments(arguments, MachineArguments)).processes}


def script(name, code, **more):
    """A process that is a line of Python."""
    return Process(os.path.basename(sys.executable), name, package='elsewhere', arguments=('-c', code), **more)


@pytest.fixture
def steps(monkeypatch):
    """What each look after the processes has found: False last where the graph was over by itself."""
    found, step = [], RunningGraph.step
    monkeypatch.setattr(RunningGraph, 'step', lambda self: found.append(step(self)) or found[-1])
    return found


@pytest.fixture(autouse=True)
def _python_is_found(monkeypatch):
    monkeypatch.setenv('PATH', os.path.dirname(sys.executable) + os.pathsep + os.environ['PATH'])


def test_arguments_choose_the_processes():
    core = {'machine_nodes', 'visualization_node'}
    assert names() == core | {'plant_node'}
    assert names(composed='false') == {'interpolation_node', 'observer_node', 'payload_node', 'visualization_node',
                                       'plant_node'}
    assert names(simulate='false') == core
    assert names(simulate='False', rviz='true', record='bag') == core | {'rviz2', 'recorder_node'}


@pytest.mark.parametrize('composed, readers', [('true', 2), ('false', 3)])
def test_every_parameter_exists_and_the_values_get_there(composed, readers):
    graph = machine_graph(parse_arguments({'payload': '20', 'seed': '7', 'namespace': 'a/b', 'use_sim_time': 'true',
                                         'cycles': '2', 'record': 'x', 'valve': 'unknown', 'autostart': 'false',
                                         'composed': composed}, MachineArguments))
    processes = {process.name: process for process in graph.processes}
    nodes = {name: own for p in graph.processes for name, own in (p.parts or {p.name: p.parameters}).items()}
    for name, parameters in nodes.items():
        assert set(parameters) <= NODES[name].names() | {'use_sim_time'}
    assert {process.namespace for process in graph.processes} == {'a/b'} and len(nodes) == 6
    plant = nodes['plant_node']
    assert (plant['payload'], plant['seed'], plant['cycles'], plant['publish_clock']) == (20.0, 7, 2, True)
    observer = 'machine_nodes' if composed == 'true' else 'observer_node'
    assert processes['plant_node'].final and processes[observer].respawn
    assert all(nodes[name][key] == value for name in ('observer_node', 'interpolation_node')
               for key, value in (('use_sim_time', True), ('valve', 'unknown'), ('autostart', False)))
    assert nodes['observer_node']['wait_subscribers'] == readers    # (payload,) visualization, recorder
    words = command(processes[observer])
    assert ('observer_node:valve:="unknown"' in words) == (composed == 'true')
    assert ('__node:=observer_node' in words) == (composed == 'false') and '__ns:=/a/b' in words


def test_a_file_of_parameters_counts_more_than_arguments(ros_domain, tmp_path):
    """With ROS itself, by the words that a process gets; of two files the later one counts."""
    files = [tmp_path / 'a.yaml', tmp_path / 'b.yaml']
    files[0].write_text('/**:\n  ros__parameters: {valve: unknown, window: 0.5}\n')
    files[1].write_text('observer_node:\n  ros__parameters: {valve: compensated}\n')
    graph = machine_graph(parse_arguments({'params_file': ' '.join(map(str, files)), 'valve': 'orifice',
                                           'preset': 'paper', 'remap': 'state:=/other', 'composed': 'false'},
                                          MachineArguments))
    words = command(next(process for process in graph.processes if process.name == 'observer_node'))
    context = Context()
    rclpy.init(args=words[2:], context=context)
    try:
        node = Node('observer_node', context=context, start_parameter_services=False, enable_rosout=False)
        values = {name: node.declare_parameter(name, default).value for name, default in (
            ('valve', 'none'), ('window', 0.0), ('weighing', 'joint'), ('gate', 0.0))}
        assert values == {'valve': 'compensated', 'window': 0.5, 'weighing': 'apart', 'gate': 1.0}
        assert node.resolve_topic_name('state') == '/other'
        node.destroy_node()
    finally:
        context.try_shutdown()


def test_a_cycle_by_a_topic_has_no_end():
    plants = [next(p for p in machine_graph(MachineArguments(cycle=cycle, cycles=2)).processes
                   if p.name == 'plant_node') for cycle in ('topic', 'boom')]
    assert [(p.final, p.parameters['exit_at_end'], p.parameters['cycle']) for p in plants] == [
        (False, False, 'topic'), (True, True, 'boom')]


def test_up_knows_its_graphs(monkeypatch):
    started = []
    monkeypatch.setattr('mbse_ros.nodes.graphs.run_graph.up', lambda graph, duration: started.append(graph) or 0)
    for name in ('machine', 'crane'):
        assert up_graph(name, ['payload:=70', 'valve:=compensated'], None) == 0
    assert started[0] == started[1]
    assert {own['valve'] for p in started[0].processes for own in (p.parts or {p.name: p.parameters}).values()} == {
        'compensated'}
    with pytest.raises(SettingError, match='machine, crane or linkage'):
        up_graph('tractor', [], None)


@pytest.mark.parametrize('given, error, text', [
    ({'pyload': '20'}, SettingError, 'arguments simulate, .*machine, valve, attachment, estimator, sources, payload'),
    ({'payload': 'heavy'}, SettingError, "'heavy', expected a float"),
    ({'payload': '-1'}, SettingError, 'from 0.0 to'),
    ({'rviz': 'maybe'}, SettingError, 'true or false'),
    ({'valve': 'ball'}, SettingError, 'orifice'),
    ({'attachment': 'hook'}, ScaleError, 'names no attachments'),
    ({'machine': 'no_such'}, DescriptionError, 'patu655_lift'),
    ({'machine': 'five_bar'}, SettingError, 'mbse up linkage mechanism:=five_bar'),
    ({'machine': str(ROOT / 'config' / 'mechanisms' / 'five_bar.yaml')}, DescriptionError, 'cylinders.*hydraulics'),
    ({'machine': 'zx200_can', 'sources': 'zx200_opera'}, SettingError, 'none with simulate:=true.*simulate:=false'),
    ({'cycle': 'walk'}, SettingError, 'lift_hold_lower, random, boom, dig, topic'),
    ({'cycle': 'dig'}, SettingError, 'boom, arm and bucket, not lift'),
    ({'machine': 'patu655_measured', 'simulate': 'true'}, DescriptionError, 'nominal_flow'),
    ({'record': str(ROOT)}, BagError, 'exists already'), ({'record': '/proc/bag'}, SettingError, '^record: got '),
])
def test_a_wrong_argument_is_refused(given, error, text):
    with pytest.raises(error, match=text):
        machine_graph(parse_arguments(given, MachineArguments))


def test_command_line():
    process = Process('observer_node', 'eye', 'crane', {'machine': 'my machine: 1.yaml', 'rate': 2.0, 'on': True},
                      {'state': 'seen'})
    words = command(process)
    assert words[:4] == [sys.executable, '-m', 'mbse_ros.nodes.observer_node', '--ros-args']
    assert ('__node:=eye' in words) and ('__ns:=/crane' in words) and ('state:=seen' in words)
    given = dict(word.split(':=', 1) for before, word in zip(words, words[1:]) if before == '-p')
    assert {name: yaml.safe_load(value) for name, value in given.items()} == dict(process.parameters)
    with pytest.raises(MbseError, match='rviz2.*is not installed'):
        command(Process('rviz2_that_is_not_there', 'rviz2', package='rviz2'))


def test_rviz_is_remapped_into_the_namespace():
    rviz = {p.name: p for p in machine_graph(MachineArguments(rviz=True, namespace='crane')).processes}['rviz2']
    assert rviz.remappings == {'/markers': '/crane/markers'}
    assert rviz.arguments[0] == '-d' and os.path.isfile(rviz.arguments[1])


def test_output_is_forwarded_with_the_name_and_the_end_of_a_final_process_ends_all(steps):
    lines = []
    graph = Graph((script('talker', 'print("hello")', final=True), script('listener', SLEEP)))
    assert up(graph, lines.append, duration=LIMIT) == 0 and steps[-1] is False
    assert '[talker  ] hello' in lines and any('talker ended: the graph is over' in line for line in lines)


def test_nodes_do_what_has_come_one_after_the_other(tmp_path, monkeypatch):
    """The first one takes longest after the signal; the second one, which gets what it publishes, waits for its end."""
    code = ('import pathlib, signal, sys, time; stop = []; signal.signal(signal.SIGTERM, lambda *_: stop.append(1))\n'
            'pathlib.Path(sys.argv[2]).touch()\nwhile not stop: time.sleep(0.01)\n'
            'time.sleep(float(sys.argv[1])); print("done")')
    ready = [tmp_path / name for name in ('first', 'second')]
    ends = f'import pathlib\nwhile not all(map(pathlib.Path.exists, map(pathlib.Path, {[*map(str, ready)]}))): pass'
    own = room.command
    monkeypatch.setattr(room, 'command', lambda p: [sys.executable, '-c', code, *p.arguments] if p.final is False
                        else own(p))
    nodes = [Process(path.name, path.name, arguments=(seconds, str(path))) for path, seconds in zip(ready, '10')]
    lines = []
    assert up(Graph((*nodes, script('plant', ends, final=True))), lines.append, duration=LIMIT) == 0
    assert [line.split()[0].strip('[]') for line in lines if 'done' in line] == ['first', 'second']


def test_a_failure_is_reported_and_remembered():
    lines = []
    assert up(Graph((script('a', 'raise SystemExit(3)'),)), lines.append) == 1
    assert any('a exit status 3; the graph continues without it' in line for line in lines)


@pytest.mark.parametrize('kind', ['respawn', 'final'])
def test_a_node_that_cannot_start_ends_all_with_its_status(steps, kind):
    lines = []
    bad = script('b', f'raise SystemExit({room.BAD_START})', **{kind: True})
    assert up(Graph((bad, script('waits', SLEEP, final=True))), lines.append, duration=LIMIT) == room.BAD_START
    assert steps[-1] is False and not any('starting it again' in line for line in lines)
    assert any('b exit status 2: it cannot start with these arguments; the graph is over' in line for line in lines)


def test_a_node_that_cannot_start_again_leaves_the_others(tmp_path):
    again = (f'import pathlib; been = pathlib.Path({str(tmp_path / "been")!r}); status = 1 + been.exists()\n'
             'been.touch(); raise SystemExit(status)')
    lines = []
    assert up(Graph((script('b', again, respawn=True),)), lines.append, duration=LIMIT) == 1
    assert any('b exit status 2; the graph continues without it' in line for line in lines)


def test_a_killed_process_is_started_again_slower_each_time(monkeypatch):
    now, lines = [100.0], []
    monkeypatch.setattr(room, 'time', SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep))
    graph = RunningGraph(Graph((script('a', SLEEP, respawn=True),)), lines.append)
    graph.start()
    for delay in (room.RESPAWN_DELAY * times for times in (1, 2, 4)):
        graph.children['a'].send_signal(signal.SIGKILL)
        graph.children['a'].wait()
        assert graph.step() and not graph.children
        now[0] += 0.99 * delay
        assert graph.step() and not graph.children
        now[0] += 0.02 * delay
        assert graph.step() and list(graph.children) == ['a']
    graph.stop()
    assert sum('a killed by SIGKILL: starting it again' in line for line in lines) == 3
    assert graph.status == 0


def test_a_deaf_process_is_killed(monkeypatch):
    monkeypatch.setattr(room, 'ESCALATION', ((signal.SIGTERM, 0.3), (signal.SIGKILL, 5.0)))
    lines, heard = [], threading.Event()
    graph = RunningGraph(Graph((script('deaf', 'import signal; signal.signal(15, signal.SIG_IGN); print("deaf now")'
                                               f'\n{SLEEP}'),)), lambda line: (lines.append(line), heard.set()))
    graph.start()
    assert heard.wait(LIMIT)
    graph.stop()
    assert graph.status == 1 and any('SIGTERM was not enough for deaf' in line for line in lines)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it(number, steps):
    """One that comes once the process runs."""
    before = signal.getsignal(number)
    graph = Graph((script('a', f'print("here")\n{SLEEP}'),))
    assert up(graph, lambda line: os.kill(os.getpid(), number) if 'here' in line else None) == 0
    assert steps[-1] is True and signal.getsignal(number) is before


def test_processes_get_our_profile_of_dds_unless_there_is_one(monkeypatch):
    for name in PROFILE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    (name, path), = dds_profile(os.environ).items()
    lines = []
    assert up(Graph((script('a', f'import os; print(os.environ["{name}"])'),)), lines.append) == 0
    assert any(line.endswith(path) for line in lines)
    assert dds_profile({PROFILE_VARIABLES[0]: 'mine.xml'}) == dds_profile({PROFILE_VARIABLES[1]: 'mine.xml'}) == {}


@pytest.mark.parametrize('distribution, name, word', [
    ('humble', PROFILE_VARIABLES[0], 'heartbeatPeriod'), ('jazzy', PROFILE_VARIABLES[0], 'heartbeatPeriod'),
    ('kilted', PROFILE_VARIABLES[1], 'heartbeat_period'), ('rolling', PROFILE_VARIABLES[1], 'heartbeat_period')])
def test_each_fast_dds_gets_the_profile_that_it_reads(distribution, name, word):
    (found, path), = dds_profile({'ROS_DISTRO': distribution}).items()
    assert found == name and f'<{word}>' in Path(path).read_text()


def test_fast_dds_reads_our_profile():
    """Of one that it does not read it writes an error, and goes on without."""
    environment = {name: value for name, value in os.environ.items() if name not in PROFILE_VARIABLES}
    done = subprocess.run([sys.executable, '-c', 'import rclpy; rclpy.init(); rclpy.create_node("some")'],
                          capture_output=True, text=True, env={**environment, **dds_profile(environment)})
    assert (done.returncode, done.stderr, done.stdout) == (0, '', '')


def test_duration_ends_it(steps):
    assert up(Graph((script('a', SLEEP),)), lambda line: None, duration=0.3) == 0 and steps[-1] is True


@pytest.mark.parametrize('parameter, text', [('machine:=no_such', 'patu655_lift'), ('window:=-4', 'window')])
def test_a_node_that_cannot_start_says_why(parameter, text, ros_domain):
    done = subprocess.run([sys.executable, '-m', 'mbse_ros.nodes.payload_node', '--ros-args', '-p', parameter],
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2 and 'FATAL' in done.stderr and text in done.stderr and 'Traceback' not in done.stderr
