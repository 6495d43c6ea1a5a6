# SPDX-License-Identifier: Apache-2.0
"""Where ROS 2 is missing, the graph does not start: one line says what to do."""

import subprocess
import sys

import pytest
from cli_support import refused
from source_tree import ROOT

from mbse_ros.errors import MbseError
from mbse_ros.nodes.graphs.graph import Graph, Process
from mbse_ros.nodes.graphs.run_graph import check_ros

MAIN = 'import sys; sys.modules[{!r}] = None; from mbse_ros.cli import main; main()'
LIMIT = 120.0       # s, on a machine with much else to do


@pytest.mark.parametrize('missing', ['rclpy', 'mbse_ros.msg'])
@pytest.mark.parametrize('graph', ['machine', 'linkage'])
def test_up_is_refused(missing, graph, monkeypatch):
    if missing == 'mbse_ros.msg':
        pytest.importorskip('rclpy')
    monkeypatch.setitem(sys.modules, missing, None)
    assert f'need {missing}, which is not found' in refused('up', graph)


def test_up_ends_at_once():
    done = subprocess.run([sys.executable, '-c', MAIN.format('rclpy'), 'up', 'linkage'], cwd=ROOT, capture_output=True,
                          text=True, timeout=LIMIT)
    assert done.returncode == 2 and done.stdout == ''
    assert done.stderr.count('\n') == 1 and 'need rclpy, which is not found' in done.stderr


def test_processes_of_others_need_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, 'rclpy', None)
    check_ros(Graph((Process('rviz2', 'rviz2', package='rviz2'),)))
    with pytest.raises(MbseError, match='rclpy'):
        check_ros(Graph((Process('observer_node', 'observer_node'),)))
