# SPDX-License-Identifier: Apache-2.0
"""What a node asks of the operating system, and what it says where it does not get it; how late its results are."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from types import SimpleNamespace

import pytest

from mbse_ros.doctor import computer
from mbse_ros.errors import SettingError
from mbse_ros.nodes.base.diagnostics import Latency
from mbse_ros.nodes.base.node_settings import LifecycleSettings, ManagedSettings, ReplaySettings
from mbse_ros.nodes.base.run import RealTime, processors

OWN = sorted(os.sched_getaffinity(0))
BEGUN = '''
import os, threading
from mbse_ros.nodes.base.run import RealTime
from mbse_ros.nodes.base.node_settings import LifecycleSettings
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
found = RealTime([LifecycleSettings({values})])
found.begin()
print(found.words, '|', found.refused)
for tid in sorted(map(int, os.listdir('/proc/self/task'))):
    print(sorted(os.sched_getaffinity(tid)), os.sched_getscheduler(tid), os.sched_getparam(tid).sched_priority)
print(next(line for line in open('/proc/self/status') if line.startswith('VmLck')).split()[1])
stop.set()
'''


def begun(**values: object) -> tuple[list[str], list[str], int]:
    """In a process of its own: what it says, its threads, its locked memory, kB."""
    text = BEGUN.format(values=', '.join(f'{name}={value!r}' for name, value in values.items()))
    lines = subprocess.run([sys.executable, '-c', text], check=True, capture_output=True, text=True).stdout.splitlines()
    return lines[0].split('|'), lines[1:-1], int(lines[-1])


def test_processors_are_those_of_all_threads():
    (words, refused), threads, _ = begun(cpu_affinity=str(OWN[-1]))
    assert words.strip() == f'processors {OWN[-1]}' and not refused.strip()
    assert len(threads) >= 2 and set(threads) == {f'[{OWN[-1]}] {os.SCHED_OTHER} 0'}


def test_priority_and_locked_memory_are_had_or_refused_with_the_way_out():
    """As the system says, whatever this computer's limits are."""
    (words, refused), threads, locked = begun(thread_priority=7, lock_memory=True)
    if 'SCHED_FIFO 7' in words:
        assert all(thread.endswith(f'{os.SCHED_FIFO} 7') for thread in threads)
    else:
        assert 'SCHED_FIFO 7: refused' in refused and 'rtprio 7` in /etc/security' in refused
        assert all(thread.endswith(f'{os.SCHED_OTHER} 0') for thread in threads)
    assert (locked > 10_000) == ('memory locked' in words)
    assert 'memory locked' in words or 'memlock unlimited` in /etc/security' in refused


def test_what_is_refused_is_said(monkeypatch):
    def refuse(*_):
        raise PermissionError(1, 'Operation not permitted')
    monkeypatch.setattr(os, 'sched_setscheduler', refuse)
    monkeypatch.setattr(computer, 'has_capability', lambda bit: False)
    monkeypatch.setattr(resource, 'getrlimit', lambda which: (10 ** 10, 10 ** 10))
    found = RealTime([LifecycleSettings(thread_priority=60, lock_memory=True)])
    found.begin()
    assert found.words == 'none'
    assert found.refused.startswith('SCHED_FIFO 60: refused (Operation not permitted); `')
    assert 'rtprio 60' in found.refused and 'memory locked: refused' in found.refused


@pytest.mark.parametrize('text', ['x', '1-', '-1', '3-1', '0,,1', '1.5', '0-99999999999', '9999', '20000-30000'])
def test_processors_that_are_none(text):
    with pytest.raises(SettingError, match='cpu_affinity.*processors'):
        processors(text)


def test_processors_as_taskset_has_them(monkeypatch):
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: {0, 1, 2, 3, 5})
    assert processors('0,2-3') == {0, 2, 3} and processors(' 5 ') == {5}


def test_nodes_of_a_process_have_one_value():
    a, b = LifecycleSettings(thread_priority=5), ManagedSettings(thread_priority=6)
    with pytest.raises(SettingError, match='5 and 6.*one value'):
        RealTime([a, b])
    found = RealTime([a, ManagedSettings(), ReplaySettings()])
    assert found._priority == 5 and found.words == 'as any other program'


def test_latency_is_that_of_the_last_period():
    latency = Latency()
    assert latency.warning(0.01) == '' and latency.values() == {}
    for k in range(200):
        latency.take(0.001 * (k % 100 + 1))
    assert 'up to 99.0 ms' in (text := latency.warning(0.05)) and 'latency_budget, 50 ms' in text
    assert latency.values() == {'latency, median': '51.0 ms', 'latency, 99 %': '99.0 ms'}
    for budget in (0.0, 0.1):
        latency.take(0.1)
        assert latency.warning(budget) == ''
    assert latency.warning(0.01) == '' and latency.values() == {}


def test_a_late_node_warns_in_its_diagnostics():
    """A node of the graph, in its process, whose samples are an hour old; what was refused is there, too."""
    pytest.importorskip('rclpy')
    pytest.importorskip('mbse_ros.msg')
    from diagnostic_msgs.msg import DiagnosticArray
    from nodes_support import Peer, overrides, ros
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node

    from mbse_ros.nodes.interpolation_node import InterpolationNode
    from mbse_ros.nodes.observer_node import ObserverNode
    init = Node.__init__
    with ros(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Node, '__init__', lambda self, name, **more: init(
            self, name, parameter_overrides=overrides(sensor_reliability='reliable', **(
                {'latency_budget': 0.5} if name == 'observer_node' else {})), **more))
        peer, executor = Peer(**{'/diagnostics': DiagnosticArray}), SingleThreadedExecutor()
        nodes = [ObserverNode(), InterpolationNode()]
        for node in nodes:
            node.real_time = SimpleNamespace(words='none', refused='SCHED_FIFO 5: refused')
            assert node.trigger_configure() and node.trigger_activate()
            executor.add_node(node)

        def statuses(name):
            return [s for m in peer.heard['/diagnostics'] for s in m.status if s.name.startswith(f'{name} process')]
        peer.also = lambda: executor.spin_once(timeout_sec=0.01)
        try:
            for k in range(1, 41):
                peer.samples(k * 10_000_000)
            peer.until(lambda: any('late' in s.message for s in statuses('observer_node'))
                       and statuses('interpolation_node'))
            late = next(s for s in statuses('observer_node') if 'late' in s.message)
            assert late.level == b'\x01' and late.message.startswith('SCHED_FIFO 5: refused; late: results are up to')
            assert {'latency, 99 %', 'real time'} <= {item.key for item in late.values}
            assert 'late' not in statuses('interpolation_node')[-1].message
        finally:
            for node in nodes:
                node.destroy_node()
            executor.shutdown()
            peer.close()
