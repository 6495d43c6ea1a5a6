# SPDX-License-Identifier: Apache-2.0
"""What every node reports of its process: a second graph in its namespace, numbers, whatever node it is."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from diagnostic_msgs.msg import DiagnosticArray
from nodes_support import Peer, overrides, ros
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from mbse_ros.compiled import compiler as room
from mbse_ros.msg import HydraulicState, SensorSegment
from mbse_ros.nodes.base.diagnostics import Warnings
from mbse_ros.nodes.interpolation_node import InterpolationNode
from mbse_ros.nodes.linkage_node import LinkageNode
from mbse_ros.nodes.payload_node import PayloadNode
from mbse_ros.nodes.recorder_node import RecorderNode

PERIOD = 10_000_000     # ns


@pytest.fixture(scope='module', autouse=True)
def _ros():
    with ros():
        yield


@pytest.fixture
def bench():
    """A peer that hears the diagnostics while the nodes of the test's process have their turn."""
    peer, nodes, executor = Peer(**{'/diagnostics': DiagnosticArray}), [], SingleThreadedExecutor()
    peer.also = lambda: executor.spin_once(timeout_sec=0.01)

    def run(kind):
        nodes.append(kind())
        executor.add_node(nodes[-1])
        return nodes[-1]

    def status(name):
        return [s for m in peer.heard['/diagnostics'] for s in m.status if s.name.startswith(name)]
    yield SimpleNamespace(peer=peer, run=run, status=status)
    for node in nodes:
        node.destroy_node()
    peer.close()


def test_a_second_graph_in_the_namespace_is_reported(bench, monkeypatch):
    lines = []
    node = bench.run(InterpolationNode)
    monkeypatch.setattr(type(node.get_logger()), 'warning', lambda self, text, **_: lines.append(text))
    node.trigger_configure()
    bench.peer.until(lambda: len(bench.status('interpolation_node process')) >= 3)
    last = bench.status('interpolation_node process')[-1]
    assert last.level == b'\x00' and last.hardware_id == 'patu655_lift' and not lines
    other = bench.peer.node.create_publisher(SensorSegment, 'segment', 10)
    bench.peer.until(lambda: bench.status('interpolation_node process')[-1].level == b'\x01')
    assert '2 publishers of /segment' in bench.status('interpolation_node process')[-1].message
    assert len(lines) == 1 and 'another graph' in lines[0]
    bench.peer.node.destroy_publisher(other)
    bench.peer.until(lambda: bench.status('interpolation_node process')[-1].level == b'\x00')


def test_a_node_of_a_mechanism_says_which(bench):
    node = bench.run(LinkageNode)
    node.trigger_configure()
    bench.peer.until(lambda: bench.status('linkage_node process'))
    last = bench.status('linkage_node process')[-1]
    assert last.hardware_id == 'five_bar' and last.name == 'linkage_node process: five_bar'


def test_two_sources_of_an_input_are_reported(bench):
    node = bench.run(PayloadNode)
    node.trigger_configure()
    for _ in range(2):
        bench.peer.node.create_publisher(HydraulicState, 'state', 10)
    bench.peer.until(lambda: any('2 publishers of /state' in s.message for s in bench.status('payload_node process')))


def test_a_node_without_a_machine_reports_too(bench, tmp_path, monkeypatch):
    init = Node.__init__
    monkeypatch.setattr(Node, '__init__', lambda self, name, **more: init(
        self, name, parameter_overrides=overrides(bag=str(tmp_path / 'bag')), **more))
    node = bench.run(RecorderNode)
    bench.peer.until(lambda: bench.status('recorder_node process'))
    values = {item.key: item.value for item in bench.status('recorder_node process')[-1].values}
    assert values.pop('free on the disk').endswith('B')
    assert values == {'bag': str(tmp_path / 'bag'), 'messages': values['messages']}
    node.finish()


def test_slow_functions_are_in_the_log_and_in_the_diagnostics(bench, monkeypatch):
    lines = []
    monkeypatch.setattr(room, '_REMARKS', {})
    monkeypatch.setattr('mbse_ros.compiled.compiler.have_compiler', lambda: False)
    node = bench.run(PayloadNode)
    monkeypatch.setattr(type(node.get_logger()), 'warning', lambda self, text, **_: lines.append(text))
    node.trigger_configure()
    assert any('virtual machine' in line and 'no C compiler' in line for line in lines)
    bench.peer.until(lambda: any('virtual machine' in item.value for s in bench.status('payload_node process')
                                 for item in s.values))


def test_samples_that_do_not_come_are_counted(bench, monkeypatch):
    """The middleware does not say what it has lost; the stamps do."""
    init, lines = Node.__init__, []
    monkeypatch.setattr(Node, '__init__', lambda self, name, **more: init(
        self, name, parameter_overrides=overrides(sensor_reliability='reliable'), **more))
    node = bench.run(InterpolationNode)
    node.warnings = Warnings(lines.append, 0.0)
    assert node.trigger_configure() and node.trigger_activate()
    for k in range(1, 101):
        if not 60 <= k < 63:
            bench.peer.samples(k * PERIOD)
    bench.peer.until(lambda: all(buffer.newest == 100 * PERIOD for buffer in node.interpolator._inputs.values()))

    def told():
        node.tick()
        return [s for s in bench.status('interpolation_node: ') if '3 of 99 samples of position/lift' in s.message]
    bench.peer.until(told)
    status = told()[0]
    assert status.level == b'\x01'
    assert {'missing, position/lift': '3', 'missing, pressure/lift_rod': '3'}.items() <= {
        item.key: item.value for item in status.values}.items()
    assert len(lines) == 1 and 'are missing' in lines[0] and 'sensor_reliability' not in lines[0]
    node.settings = replace(node.settings, sensor_reliability='best_effort')
    node._gaps.take('position/lift', 105 * PERIOD)
    node._log_missing()
    assert lines[1].startswith('4 of 5 samples of position/lift') and 'reliable asks for what gets lost' in lines[1]


NODE = """
from mbse_ros.compiled.cache import keep
from mbse_ros.errors import SettingError
from mbse_ros.nodes.base.run import run
def node():
    print(keep('library.so', b'x'), flush=True)
    raise SettingError('machine', 'x', 'another one')
run(node)
"""


def test_the_temporary_folder_goes_with_the_process_of_a_node(tmp_path):
    """It does not end as the interpreter does, which would remove it."""
    (tmp_path / 'file').write_text('')
    done = subprocess.run([sys.executable, '-c', NODE], capture_output=True, text=True, check=False, env={
        **os.environ, 'TMPDIR': str(tmp_path), 'MBSE_CACHE_DIR': str(tmp_path / 'file' / 'cache')})
    assert done.returncode == 2 and 'expected another one' in done.stderr
    assert Path(done.stdout.strip()).is_relative_to(tmp_path) and not list(tmp_path.glob('mbse_ros-*'))
