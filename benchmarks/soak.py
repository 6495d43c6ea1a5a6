# SPDX-License-Identifier: Apache-2.0
"""The whole graph at 100 Hz for long, random faults on its samples: does memory grow, is anything lost between nodes?

    python benchmarks/soak.py [--seconds 3600] [--machines patu655_lift,patu655,zx200] [--seed 0] [--json F]

The simulated machine sends to topics of its own; this process hands its messages on, and every few seconds spoils one
sensor for a while: NaN, spikes, one value again and again, an offset, nothing, late, other bytes. Each process's memory
is that of its last fifth of the time against the first after the warm-up; segments, states and payloads must be as
many, here and in the recorded bag. The exit status is 1 where memory grows by 5 % or more, or something was lost.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import deque
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / name) for name in ('test', 'test/support', 'benchmarks'))]
import conftest  # noqa: E402, F401  (the environment of DDS)
import numpy as np  # noqa: E402
from fuzz.raw import mutate_bytes  # noqa: E402
from nodes_support import Peer, own_domain  # noqa: E402
from rclpy.qos import QoSProfile  # noqa: E402
from watched_graph import heard  # noqa: E402

from mbse_ros.bags.bag import Bag  # noqa: E402
from mbse_ros.bags.messages import typestore  # noqa: E402
from mbse_ros.bags.topics import FLUID_PRESSURE, JOINT_STATE  # noqa: E402
from mbse_ros.machine import load_machine  # noqa: E402
from mbse_ros.nodes.graphs.graph import Graph, parse_arguments  # noqa: E402
from mbse_ros.nodes.graphs.machine_graph import TOPICS, MachineArguments, machine_graph, sensor_topics  # noqa: E402
from mbse_ros.nodes.graphs.run_graph import RunningGraph  # noqa: E402
from mbse_ros.nodes.messages.wire import message_class, unpacked  # noqa: E402

GROWTH, LOOK, DRAIN, START = 0.05, 2.0, 30.0, 180.0     # share; s
RECORDS = ('segment', 'state', 'payload')
FAULTS = ('nan', 'spike', 'stuck', 'offset', 'silent', 'late', 'bytes')
LATE = 0.2      # s


class Relay:
    """Hands sensors' messages on, one of them spoilt now and then."""

    def __init__(self, peer: Peer, topics: dict[str, str], random: Random) -> None:
        self._peer, self._random, self._kinds = peer, random, topics
        self._fault, self._victim, self._until, self._next = '', '', 0.0, time.monotonic() + 10.0
        self._held: bytes | None = None
        self._late: deque[tuple[float, str, bytes]] = deque()
        self.passed, self.spoilt, self.sorts = 0, 0, dict.fromkeys(FAULTS, 0)
        self._outputs = {topic: peer.node.create_publisher(message_class(kind), topic, QoSProfile(depth=1000))
                         for topic, kind in topics.items()}
        for topic, kind in topics.items():
            peer.node.create_subscription(message_class(kind), f'clean/{topic}', partial(self.take, topic),
                                          QoSProfile(depth=1000), raw=True)

    def take(self, topic: str, cdr: bytes) -> None:
        """One message of the plant."""
        now = time.monotonic()
        if now >= self._next:
            self._fault, self._victim = self._random.choice(FAULTS), self._random.choice([*self._kinds])
            self._until = now + self._random.uniform(0.1, 3.0)
            self._next, self._held = self._until + self._random.uniform(2.0, 6.0), None
            self.sorts[self._fault] += 1
        while self._late and self._late[0][0] <= now:
            self._send(*self._late.popleft()[1:])
        if topic == self._victim and now < self._until:
            self.spoilt += 1
            self._spoil(topic, cdr, now)
        else:
            self._send(topic, cdr)

    def _spoil(self, topic: str, cdr: bytes, now: float) -> None:
        fault, random = self._fault, self._random
        if fault == 'late':
            self._late.append((now + LATE, topic, cdr))
        elif fault == 'bytes':
            self._send(topic, cdr[:12] + mutate_bytes(cdr[12:], random))    # its stamp stays
        elif fault != 'silent':
            self._send(topic, self._other(topic, cdr))

    def _other(self, topic: str, cdr: bytes) -> bytes:
        """The message with other values."""
        kind = self._kinds[topic]
        message = unpacked(topic, kind, cdr)
        field = {JOINT_STATE: 'position', FLUID_PRESSURE: 'fluid_pressure'}.get(kind)
        if field is None:
            return cdr
        values = np.atleast_1d(getattr(message, field)).astype(float)
        if self._held is None:
            self._held = values.copy()
        values = {'nan': values * np.nan, 'spike': values * (1.0 + 3.0 * (self._random.random() < 0.2)),
                  'stuck': self._held, 'offset': values * 1.2}[self._fault]
        setattr(message, field, values if kind == JOINT_STATE else float(values[0]))
        return bytes(typestore().serialize_cdr(message, kind))

    def _send(self, topic: str, cdr: bytes) -> None:
        self.passed += 1
        self._outputs[topic].publish(cdr)


def soaked(machine: str, seconds: float, warm_up: float, random: Random) -> dict:
    """Figures of one machine."""
    with tempfile.TemporaryDirectory() as folder:
        bag = Path(folder) / 'bag'
        topics = sensor_topics(load_machine(machine))
        graph = heard(machine_graph(parse_arguments({'machine': machine, 'cycle': 'random', 'record': str(bag)},
                                                    MachineArguments)))
        graph = Graph(tuple(replace(p, remappings={topic: f'clean/{topic}' for topic in topics},
                                    parameters={**p.parameters, 'wait_subscribers': 1})
                            if p.name == 'plant_node' else p for p in graph.processes))
        log: list[str] = []
        peer, sizes, seen = Peer(), {}, {topic: [] for topic in RECORDS}
        relay, running = Relay(peer, topics, random), RunningGraph(graph, log.append)
        for topic in RECORDS:
            peer.node.create_subscription(message_class(TOPICS[topic]), topic, partial(_note, seen[topic], topic),
                                          QoSProfile(depth=5000), raw=True)
        running.start()
        try:
            end = time.monotonic() + START
            while not seen['payload'] and time.monotonic() < end:
                running.step(), peer.step()
            pids, began, due = {name: child.pid for name, child in running.children.items()}, time.monotonic(), 0.0
            while (now := time.monotonic()) < began + seconds:
                running.step(), peer.step()
                if now >= due:
                    due = now + LOOK
                    for name, pid in pids.items():
                        sizes.setdefault(name, []).append((now - began, resident(pid)))
            restarted = [name for name, pid in pids.items() if name not in running.children
                         or running.children[name].pid != pid]
            relay._until = 0.0
            os.kill(pids['plant_node'], 15)
            end = time.monotonic() + DRAIN
            while time.monotonic() < end and len({seen[topic][-1] for topic in RECORDS}) > 1:
                peer.step()     # what waits in a node that is behind is not lost
        finally:
            running.stop()
            peer.close()
        recorded = {topic: 0 for topic in RECORDS}
        for message in Bag(bag).messages([f'/{topic}' for topic in RECORDS]):
            recorded[message.topic[1:]] += 1
        return {'machine': machine, 'seconds': seconds, 'messages_to_nodes': relay.passed, 'spoilt': relay.spoilt,
                'faults': relay.sorts, 'seen': {topic: len(found) for topic, found in seen.items()},
                'holes': {topic: holes(found) for topic, found in seen.items()}, 'recorded': recorded,
                'died': restarted, 'tracebacks': sum('Traceback' in line for line in log), 'log_lines': len(log),
                'memory': {name: growth(found, warm_up, seconds) for name, found in sizes.items()}}


def _note(found: list[int], topic: str, cdr: bytes) -> None:
    found.append(unpacked(topic, TOPICS[topic], cdr).sequence)


def holes(sequence: list[int]) -> int:
    """Numbers that are missing."""
    return sum(later - one - 1 for one, later in zip(sequence, sequence[1:]) if later > one + 1)


def growth(found: list[tuple[float, int]], warm_up: float, seconds: float) -> dict:
    """MB in the first and last fifth of the time after the warm-up, and the share by which they differ."""
    fifth = (seconds - warm_up) / 5
    first = np.mean([size for t, size in found if warm_up <= t < warm_up + fifth])
    last = np.mean([size for t, size in found if t >= seconds - fifth])
    return {'first_MB': round(first / 1e6, 1), 'last_MB': round(last / 1e6, 1), 'growth': round(last / first - 1, 4)}


def resident(pid: int) -> int:
    """Bytes of a process in memory."""
    try:
        return int(Path(f'/proc/{pid}/statm').read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE')
    except OSError:
        return 0


def failures(report: dict) -> list[str]:
    """What must not be."""
    grown = [f'{name} grows by {item["growth"]:.1%}' for name, item in report['memory'].items()
             if not item['growth'] < GROWTH]
    lost = [f'{count} of {topic} are missing' for topic, count in report['holes'].items() if count]
    counts = {*report['seen'].values(), *report['recorded'].values()}
    lost += [f'counts differ: {report["seen"]}, recorded {report["recorded"]}'] if len(counts) > 1 else []
    return [*grown, *lost, *(f'{name} died' for name in report['died']), *['traceback'] * bool(report['tracebacks'])]


def main() -> int:
    """Print the figures of each machine; 1 where something must not be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seconds', type=float, default=3600.0, help='of all machines together')
    parser.add_argument('--warm-up', type=float, default=60.0, help='s of each machine that do not count')
    parser.add_argument('--machines', default='patu655_lift,patu655,zx200')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--json', type=Path)
    options = parser.parse_args()
    names, reports, failed = options.machines.split(','), [], 0
    for name in names:
        with own_domain():
            report = soaked(name, options.seconds / len(names), options.warm_up, Random(f'{options.seed} {name}'))
        report['failures'] = failures(report)
        failed += len(report['failures'])
        reports.append(report)
        print(json.dumps(report), flush=True)
        if options.json:
            options.json.write_text(json.dumps(reports, indent=2) + '\n', encoding='utf-8')
    return int(failed > 0)


if __name__ == '__main__':
    sys.exit(main())
