# SPDX-License-Identifier: Apache-2.0
"""A bag in a loop through the real graph, with pauses and jumps of its time: is each restart said, no stale state used,
memory flat?

    python benchmarks/looped_bag.py [--seconds 7200] [--machine patu655_lift] [--seed 0] [--json F]

A simulated work cycle is written as a bag, and played by this process, 100 Hz: again and again, so that time goes back
once a round, and in each round with a pause (nothing is sent, the stamps stand still), a small step (below max_gap), a
hole (the stamps go on without samples) and a jump back. Each restart must be in `segment`, in `state` and in the log;
each state that is OK must be where the bag's sensor was at that stamp, in this round; masses that are updated must hold
the true one. The exit status is 1 where one of these fails, or memory grows by 5 % or more.
"""

from __future__ import annotations

import argparse
import json
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from functools import partial
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / name) for name in ('test', 'test/support', 'benchmarks'))]
import conftest  # noqa: E402, F401  (the environment of DDS)
from nodes_support import Peer, own_domain  # noqa: E402
from rclpy.qos import QoSProfile  # noqa: E402
from soak import GROWTH, START, growth, resident  # noqa: E402

from mbse_ros.bags.play import Playback  # noqa: E402
from mbse_ros.bags.topics import TopicMap  # noqa: E402
from mbse_ros.machine import load_machine  # noqa: E402
from mbse_ros.nodes.graphs.machine_graph import TOPICS, MachineArguments, machine_graph, sensor_topics  # noqa: E402
from mbse_ros.nodes.graphs.run_graph import RunningGraph  # noqa: E402
from mbse_ros.nodes.messages.wire import message_class, stamp_of, unpacked  # noqa: E402

SECOND = 10 ** 9
PAYLOAD = 50.0          # kg
NEAR = 0.005            # m: some deviations of the stroke's sensor, and what a stale state is beyond in this cycle
EVENTS = {'pause': 3.0, 'step': 5.0, 'hole': 8.0, 'back': 16.0}        # s of the round, further apart than warnings
KEPT = 4000             # samples whose places are remembered
LOOK, DRAIN = 2.0, 3.0  # s


class Player:
    """Plays the sensors of a bag; ``restarts`` counts what must start again, ``places`` are the newest positions."""

    def __init__(self, peer: Peer, bag: Path, topics: dict[str, str], random: Random) -> None:
        names = [f'/{topic}' for topic in topics]
        playback = Playback(bag, names=names)
        self._messages = [(due.due_s, due.stamp_ns, due.topic[1:], due.cdr) for due in playback]
        self._random, self._topics = random, topics
        self._outputs = {topic: peer.node.create_publisher(message_class(kind), topic, QoSProfile(depth=1000))
                         for topic, kind in topics.items()}
        self.restarts, self.places = Counter(), {}
        self._order: deque[int] = deque()
        self._round = -1
        self._begin()

    def _begin(self) -> None:
        self._round += 1
        self.restarts['loop' if self._round else 'start'] += 1
        self._next, self._shift, self._events = 0, 0, list(EVENTS)
        self._zero = time.monotonic() + 0.2

    @property
    def matched(self) -> bool:
        """Whether all sensors are read."""
        return all(output.get_subscription_count() for output in self._outputs.values())

    def play(self) -> None:
        """Send what is due."""
        now = time.monotonic() - self._zero
        while self._next < len(self._messages) and self._messages[self._next][0] <= now:
            due, stamp, topic, cdr = self._messages[self._next]
            if self._events and due >= EVENTS[self._events[0]]:
                self._meet(self._events.pop(0))
                return
            self._next += 1
            self._send(stamp + self._shift, topic, cdr)
        if self._next == len(self._messages):
            self._begin()

    def _meet(self, event: str) -> None:
        random = self._random
        if event == 'pause':
            self._zero += random.uniform(0.5, 3.0)
        elif event == 'step':
            self._shift += round(random.uniform(0.02, 0.07) * SECOND)
        elif event == 'hole':
            self._shift += round(random.uniform(0.3, 100.0) * SECOND)
            self.restarts[event] += 1
        else:
            self._shift -= round(random.uniform(0.3, 10.0) * SECOND)
            self.restarts[event] += 1

    def _send(self, stamp: int, topic: str, cdr: bytes) -> None:
        data = bytearray(cdr)
        struct.pack_into('<iI', data, 4, *divmod(stamp, SECOND))
        if topic == TopicMap().position:
            self.places[stamp] = float(unpacked(topic, self._topics[topic], bytes(data)).position[0])
            self._order.append(stamp)
            if len(self._order) > KEPT:
                self.places.pop(self._order.popleft(), None)
        self._outputs[topic].publish(bytes(data))


class Judge:
    """What comes out, against what went in."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self.counts: Counter[str] = Counter()
        self.restarts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def take(self, topic: str, cdr: bytes) -> None:
        """A message of the graph."""
        message, stamp = unpacked(topic, TOPICS[topic], cdr), stamp_of(cdr)
        self.counts[topic] += 1
        if topic in ('segment', 'state'):
            self.restarts[topic] += bool(message.restart)
        if topic == 'state' and message.status == 0:        # OK
            self._place(message, stamp)
        if topic == 'payload' and message.status == 0:      # UPDATING
            self.counts['masses'] += 1
            if not message.lower - 3.0 <= PAYLOAD <= message.upper + 3.0:
                self.counts['masses that are wrong'] += 1

    def _place(self, message: object, stamp: int) -> None:
        near = [known for known in (stamp, stamp - 1_000_000, stamp + 1_000_000) if known in self._player.places]
        nearest = near[0] if near else min(self._player.places, key=lambda known: abs(known - stamp), default=None)
        if nearest is None or abs(nearest - stamp) > 20_000_000:
            self._note(f'a state of {stamp} ns, of which no sample was sent')
            return
        self.counts['states compared'] += 1
        size = len(message.mean) // len(message.names) * len(message.names) - len(message.names)
        estimated = float(message.mean[size + list(message.names).index('position/lift')])
        if abs(estimated - self._player.places[nearest]) > NEAR:
            self._note(f'{estimated:.4f} m at {stamp} ns, where the sensor was at {self._player.places[nearest]:.4f} m')

    def _note(self, text: str) -> None:
        self.counts['stale states'] += 1
        if len(self.wrong) < 20:
            self.wrong.append(text)


def looped(machine: str, seconds: float, random: Random, warm_up: float) -> dict:
    """Figures of one run."""
    with tempfile.TemporaryDirectory() as folder:
        bag = Path(folder) / 'bag'
        subprocess.run([sys.executable, '-m', 'mbse_ros.cli', 'simulate', machine, '--payload', str(PAYLOAD), '-o',
                        str(bag)], check=True, stdout=subprocess.DEVNULL)
        topics, log, sizes = sensor_topics(load_machine(machine)), [], {}
        running = RunningGraph(machine_graph(MachineArguments(
            machine=machine, simulate=False, outputs=True, use_sim_time=False)), log.append)
        peer = Peer()
        player = Player(peer, bag, topics, random)
        judge = Judge(player)
        for topic in ('segment', 'state', 'payload'):
            peer.node.create_subscription(message_class(TOPICS[topic]), topic, partial(judge.take, topic),
                                          QoSProfile(depth=5000), raw=True)
        running.start()
        try:
            end = time.monotonic() + START
            while not player.matched and time.monotonic() < end:
                running.step(), peer.step()
            player._zero, began, due = time.monotonic() + 1.0, time.monotonic(), 0.0
            pids = {name: child.pid for name, child in running.children.items()}
            while (now := time.monotonic()) < began + seconds:
                running.step(), player.play()
                peer.executor.spin_once(timeout_sec=0.002)
                if now >= due:
                    due = now + LOOK
                    for name, pid in pids.items():
                        sizes.setdefault(name, []).append((now - began, resident(pid)))
            end = time.monotonic() + DRAIN
            while time.monotonic() < end:
                running.step(), peer.step()
            died = [name for name, pid in pids.items() if running.children[name].pid != pid]
        finally:
            running.stop()
            peer.close()
    said = sum('the segments start again' in line for line in log)
    held = [int(line.rpartition('(')[2].split()[0]) for line in log if 'segments start again (' in line]
    return {'machine': machine, 'seconds': seconds, 'made': dict(player.restarts), 'restarts': dict(judge.restarts),
            'lines of restarts': said + sum(held), 'counts': dict(judge.counts), 'stale': judge.wrong, 'died': died,
            'tracebacks': sum('Traceback' in line for line in log), 'log_lines': len(log),
            'memory': {name: growth(found, warm_up, seconds) for name, found in sizes.items()}}


def failures(report: dict) -> list[str]:
    """What must not be."""
    made = sum(report['made'].values())
    found = [f'{count} restarts of {topic}, {made} made' for topic, count in report['restarts'].items()
             if count != made]
    found += [f'{report["lines of restarts"]} restarts in the log, {made - 1} made'] * (
        report['lines of restarts'] != made - 1)
    found += [f'{name} grows by {item["growth"]:.1%}' for name, item in report['memory'].items()
              if not item['growth'] < GROWTH]
    counts = report['counts']
    found += [f'{counts[key]} {key}' for key in ('stale states', 'masses that are wrong') if counts.get(key)]
    found += ['nothing was estimated'] * (not counts.get('states compared') or not counts.get('masses'))
    return [*found, *(f'{name} died' for name in report['died']), *['traceback'] * bool(report['tracebacks'])]


def main() -> int:
    """Print the figures; 1 where something must not be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seconds', type=float, default=7200.0)
    parser.add_argument('--warm-up', type=float, default=40.0, help='s that do not count for the memory')
    parser.add_argument('--machine', default='patu655_lift', help='with a cylinder `lift`')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--json', type=Path)
    options = parser.parse_args()
    with own_domain():
        report = looped(options.machine, options.seconds, Random(options.seed), options.warm_up)
    report['failures'] = failures(report)
    print(json.dumps(report, indent=1), flush=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + '\n', encoding='utf-8')
    return int(bool(report['failures']))


if __name__ == '__main__':
    sys.exit(main())
