# SPDX-License-Identifier: Apache-2.0
"""A graph that is killed leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from source_tree import ROOT

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from mbse_ros.nodes.graphs import run_graph as room
from mbse_ros.nodes.graphs.graph import Process

LIMIT = 60.0        # s, on a machine with much else to do
DEAF = ('import os, signal, time; signal.signal(15, signal.SIG_IGN); print("born", os.getpid(), flush=True); '
        'time.sleep(300)')
GRAPH = f"""
import os, sys
os.environ['PATH'] = os.path.dirname(sys.executable) + os.pathsep + os.environ['PATH']
from mbse_ros.nodes.graphs.graph import Graph, Process
from mbse_ros.nodes.graphs.run_graph import up
up(Graph(tuple(Process(os.path.basename(sys.executable), name, package='elsewhere', arguments=('-c', {DEAF!r}))
               for name in 'ab')), lambda line: print(line, flush=True))
"""


def lives(pid):
    """Whether a process runs; one that has ended and that nobody has asked about does not."""
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


def test_no_process_outlives_a_graph_that_is_killed():
    parent = subprocess.Popen([sys.executable, '-c', GRAPH], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    children = []
    try:
        while len(children) < 2:
            line = parent.stdout.readline()
            assert line, 'the graph has ended'
            children += [int(line.split()[-1])] if 'born' in line else []
        assert all(map(lives, children))
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        end = time.monotonic() + LIMIT
        while any(map(lives, children)):
            assert time.monotonic() < end, 'a child lives on'
            time.sleep(0.01)
    finally:
        parent.kill()
        for pid in filter(lives, children):
            os.kill(pid, signal.SIGKILL)


def test_it_is_not_even_started_once_its_parent_is_dead(tmp_path):
    words = [sys.executable, '-I', '-S', str(room.CHILD), str(os.getpid()), '9']
    done = tmp_path / 'done'
    assert subprocess.run([*words, 'touch', str(done)]).returncode == 0 and done.exists()
    done.unlink()
    words[4] = '1'
    assert subprocess.run([*words, 'touch', str(done)]).returncode == 1 and not done.exists()


def test_a_recorder_may_close_its_bag():
    numbers = [room.with_parent(Process(name, name))[-1] for name in ('observer_node', 'recorder_node')]
    assert numbers == [str(int(signal.SIGKILL)), str(int(signal.SIGTERM))]
