# SPDX-License-Identifier: Apache-2.0
"""Processes of a machine's graph killed at random moments: how long until all is well again, and what is said.

    python benchmarks/kills.py [--machine patu655_lift] [--times 50] [--only NODE,...] [--apart] [--json F]
    python benchmarks/kills.py --up 50         # `mbse up` itself is killed: how long its children live

Each node in turn is killed with SIGKILL. All is well where every topic brings messages of samples after the kill, the
observer is OK and the bag grows. The exit status is 1 where that takes longer than 5 s (children: 2 s), or where the
payload goes on as if nothing had been lost.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / 'test'), str(ROOT / 'test' / 'support')]
import conftest  # noqa: E402, F401  (the environment of DDS)
from nodes_support import Peer, own_domain  # noqa: E402
from visualization_msgs.msg import MarkerArray  # noqa: E402

from mbse_ros.msg import HydraulicState, PayloadEstimate, SensorSegment  # noqa: E402
from mbse_ros.nodes.graphs.graph import parse_arguments  # noqa: E402
from mbse_ros.nodes.graphs.machine_graph import MachineArguments, machine_graph  # noqa: E402
from mbse_ros.nodes.graphs.run_graph import RunningGraph  # noqa: E402
from mbse_ros.nodes.messages.wire import to_ns  # noqa: E402

WELL, CHILDREN, START = 5.0, 2.0, 120.0     # s
TOPICS = {'segment': SensorSegment, 'state': HydraulicState, 'payload': PayloadEstimate, 'markers': MarkerArray}
# Whose death the mass feels.
LOSSES = ('machine_nodes', 'interpolation_node', 'observer_node', 'payload_node', 'plant_node')


class Watch:
    """The graph, its log, and what it has brought since the last kill."""

    def __init__(self, machine: str, bag: Path, composed: str) -> None:
        self.log: list[str] = []
        self.peer, self.bag = Peer(**TOPICS), bag
        self.graph = RunningGraph(machine_graph(parse_arguments({
            'machine': machine, 'cycle': 'random', 'cycles': '0', 'record': str(bag), 'composed': composed},
            MachineArguments)), self.log.append)
        self.graph.start()

    def step(self) -> None:
        """Look after the graph and listen for a moment."""
        self.graph.step()
        self.peer.step()

    def forget(self) -> None:
        """Drop what was heard."""
        for heard in self.peer.heard.values():
            heard.clear()

    def size(self) -> int:
        """Bytes of all bags so far."""
        return sum(path.stat().st_size for path in self.bag.parent.rglob('*.mcap'))

    def well(self, since_ns: int, victim: str, pid: int, size: int) -> bool:
        """Whether all is as it should be, with samples after ``since_ns``, and the victim is another process."""
        heard = self.peer.heard
        child = self.graph.children.get(victim)
        if child is None or child.pid == pid or not all(heard.values()):
            return False
        fresh = all(to_ns(heard[topic][-1].header.stamp) > since_ns for topic in ('segment', 'state', 'payload'))
        drawn = to_ns(heard['markers'][-1].markers[0].header.stamp) > since_ns
        state = heard['state'][-1]
        written = victim != 'recorder_node' or self.size() > size
        return fresh and drawn and written and state.status == state.OK and len(self.graph.children) == len(
            self.graph._processes)


def said(payloads: list, victim: str) -> str:
    """How the payload says that something was lost; '' where it does not, though it must."""
    if victim not in LOSSES:
        return 'nothing is lost of it'
    for message in payloads:
        unknown = math.isnan(message.mass)
        if unknown or message.status in (message.NO_DATA, message.CHANGING):
            return f'{message.reason}; {"mass unknown" if unknown else "mass held"}'
    return ''


def nodes_killed(options: argparse.Namespace) -> tuple[dict, int]:
    """Times until all is well by victim, and what failed."""
    random, failed, found, loads = Random(options.seed), 0, {}, []
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch(options.machine, Path(folder) / 'bag', str(not options.apart).lower())
        victims = options.only.split(',') if options.only else [*watch.graph._processes]
        try:
            wait(watch, lambda: watch.well(0, victims[0], -1, 0), START)
            for turn in range(options.times * len(victims)):
                victim = victims[turn % len(victims)]
                end = time.monotonic() + random.uniform(*options.gap)
                wait(watch, lambda end=end: time.monotonic() > end, START)
                if victim not in watch.graph.children:
                    wait(watch, lambda v=victim: v in watch.graph.children, START)
                size, pid = watch.size(), watch.graph.children[victim].pid
                mark = len(watch.log)
                watch.forget()
                since, began = time.time_ns(), time.monotonic()
                os.kill(pid, signal.SIGKILL)
                took = wait(watch, lambda v=victim, p=pid, n=since, s=size: watch.well(n, v, p, s), 60.0) - began
                words = said(watch.peer.heard['payload'], victim)
                heard = {topic: len(messages) for topic, messages in watch.peer.heard.items()}
                if took > WELL or not words:
                    failed += 1
                    print(f'--- {heard}', *watch.log[mark:], sep='\n    ')
                found.setdefault(victim, []).append((took, words))
                loads.append(os.getloadavg()[0])
                print(f'{turn} {victim} {took:.2f} s {words}; load {loads[-1]:.1f}', flush=True)
        finally:
            watch.graph.stop()
            watch.peer.close()
    figures = {victim: {'kills': len(items), 'longest_s': round(max(t for t, _ in items), 2),
                        'median_s': round(sorted(t for t, _ in items)[len(items) // 2], 2),
                        'over_5_s': sum(t > WELL for t, _ in items),
                        'said': sorted({words for _, words in items})[:5]} for victim, items in found.items()}
    return {'load': round(sum(loads) / len(loads), 1), **figures}, failed


def wait(watch: Watch, condition, limit: float) -> float:
    """Step until the condition holds; when that was, or the limit."""
    end = time.monotonic() + limit
    while not condition() and time.monotonic() < end:
        watch.step()
    return time.monotonic()


def up_killed(options: argparse.Namespace) -> tuple[dict, int]:
    """Times that the children of a killed `mbse up` live."""
    random, took, counts = Random(options.seed), [], []
    for turn in range(options.up):
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, '-m', 'mbse_ros.cli', 'up', 'machine', f'machine:={options.machine}',
                     f'record:={folder}/bag']
            parent = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                end = time.monotonic() + START
                while not children_of(parent.pid) and time.monotonic() < end:
                    time.sleep(0.01)
                time.sleep(random.uniform(0.0, 10.0))
                children = children_of(parent.pid)
            finally:
                parent.kill()
                parent.wait()
            began = time.monotonic()
            while any(map(lives, children)) and time.monotonic() < began + 30.0:
                time.sleep(0.01)
            took.append(time.monotonic() - began)
            counts.append(len(children))
            for pid in filter(lives, children):
                os.kill(pid, signal.SIGKILL)
            print(f'{turn} {len(children)} children, {took[-1]:.2f} s', flush=True)
    failed = sum(t > CHILDREN for t in took) + counts.count(0)
    return {'up': {'kills': len(took), 'children': sum(counts), 'longest_s': round(max(took), 2)}}, failed


def children_of(pid: int) -> list[int]:
    """Processes whose parent is a process."""
    found = []
    for path in Path('/proc').glob('[0-9]*/stat'):
        try:
            fields = path.read_text().rpartition(')')[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(path.parent.name))
    return found


def lives(pid: int) -> bool:
    """Whether a process runs."""
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


def main() -> int:
    """Print the figures; 1 where something took too long or nothing was said."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--machine', default='patu655_lift')
    parser.add_argument('--times', type=int, default=50, help='kills of each node')
    parser.add_argument('--gap', type=float, nargs=2, default=(3.0, 9.0), help='s from well to the next kill')
    parser.add_argument('--only', default='')
    parser.add_argument('--apart', action='store_true', help='each node a process of its own')
    parser.add_argument('--up', type=int, default=0, help='kills of `mbse up` in their place')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--json', type=Path)
    options = parser.parse_args()
    with own_domain():
        report, failed = up_killed(options) if options.up else nodes_killed(options)
    print(json.dumps(report, indent=2), f'{failed} failures', sep='\n')
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + '\n', encoding='utf-8')
    return int(failed > 0)


if __name__ == '__main__':
    sys.exit(main())
