# SPDX-License-Identifier: Apache-2.0
"""A machine's graph as `mbse up` starts it, fed in real time: latency, losses, share of the processor.

No ROS is needed to import it. A process of its own feeds simulated samples; this one hears what comes out. A node
that only passes messages on is measured at the same rate after the graph: neither takes the processor from the other.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from ...bags.messages import record_message, typestore
from ...bags.topics import PAYLOAD, SEGMENT
from ...description.model import fingerprint
from ...errors import MbseError, SettingError
from ...machine import Machine, load_machine
from ...simulation.crane import CraneSettings, SensorFrame, SimulatedCrane, cycle_by_name, plant_of
from ...streams.interpolation import Interpolator
from ..graphs.graph import Graph, Process
from ..graphs.machine_graph import MachineArguments, machine_graph, sensor_topics
from ..graphs.run_graph import RunningGraph, check_ros, cpu_seconds, dds_profile

if TYPE_CHECKING:
    from .publisher import Arrivals

SPACE = 'mbse_benchmark'
WAYS = {'composed': 'one process', 'separate': 'processes', 'compiled': 'compiled'}      # and how a line names them
WARM_UP = 2.0           # s that do not count: the first functions called, the first state
START = 180.0           # s until all runs, compilation included
QUIET = 3.0             # s without a message after which nothing more is expected
SHARE = 0.2             # of the largest payload that hangs on the machine
TAIL = 10               # lines of the log in an error
PASS_IN, PASS_OUT = 'segment_in', 'segment_out'
SECOND, GRID_NS = 1_000_000_000, 1_000_000
Sets = dict[str, np.ndarray]    # 'topic type' -> bytes of its messages (sets, size)


@dataclass(frozen=True)
class GraphCost:
    """One run: instants ``due`` and those that the publisher ``sent`` in time, its delay (99 %), what came of it.

    ``latency_ms``: from the stamp to the arrival; ``share``: of a core, by process.
    """

    due: int
    sent: int
    publisher_late_ms: float
    lost: int
    latency_ms: np.ndarray
    share: dict[str, float]


def check_rates(rates: Iterable[int]) -> None:
    """Raise SettingError for a rate whose period is no multiple of the observer's step: a segment ends on its grid."""
    for rate in rates:
        if SECOND % rate or SECOND // rate % GRID_NS:
            raise SettingError('rates', rate, '1000 Hz divided by a whole number: the observer has steps of 1 ms')


def measure_graph(machine: str, sets: Sets, rate: int, way: str) -> GraphCost:
    """The machine's estimation, in one of the `WAYS`, with samples of `sensor_sets`."""
    graph = machine_graph(MachineArguments(machine=machine, simulate=False, composed=way == 'composed',
                                           compiled=way == 'compiled', compiled_rate=float(rate), visualization=False,
                                           sensor_reliability='reliable', namespace=SPACE))
    return _measured(graph.processes, sets, rate, 'payload', PAYLOAD)


def measure_pass_through(sets: Sets, rate: int) -> GraphCost:
    """A node of rclpy that takes a segment and publishes it, with messages of `segment_sets`."""
    return _measured((Process('measuring.pass_through', 'pass_through', SPACE),), sets, rate, PASS_OUT, SEGMENT)


def sensor_sets(machine: Machine, rate: int, seconds: float) -> Sets:
    """Serialized samples of the simulated machine, all valves moving at random."""
    from ...bags.channel_samples import SensorFields
    from ..messages.wire import packed  # here, because it needs ROS
    fields, kinds = SensorFields(machine.channels, machine.valves), sensor_topics(machine)
    found: dict[str, list[bytes]] = {}
    for frame in _frames(machine, rate, _count(rate, seconds)):
        for topic, values in fields.spread(frame.samples | frame.commands).items():
            found.setdefault(f'{topic} {kinds[topic]}', []).append(packed(kinds[topic], 0, machine.name, values))
    return {name: _rows(messages) for name, messages in found.items()}


def segment_sets(machine: Machine, rate: int, seconds: float) -> Sets:
    """A serialized segment of that rate, again and again."""
    interpolator = Interpolator(machine.channels, machine.commands, delays=machine.delays)
    segments = [segment for frame in _frames(machine, rate, 10)
                for channel, value in (*frame.samples.items(), *frame.commands.items())
                for segment in interpolator.add(channel, frame.stamp_ns, value)]
    kind, message = record_message(segments[-1], machine.name, fingerprint(machine.description))
    cdr = bytes(typestore().serialize_cdr(message, kind))
    return {f'{PASS_IN} {kind}': np.tile(_rows([cdr]), (_count(rate, seconds), 1))}


def _frames(machine: Machine, rate: int, count: int) -> Iterable[SensorFrame]:
    cycle = cycle_by_name('random', machine, 1)
    period = SECOND // rate
    cycle = cycle.repeated(1 + int(count * period * 1e-9 / cycle.duration))
    load = SHARE * machine.payload_data.limits[1]
    crane = SimulatedCrane(machine, load, 1, cycle, CraneSettings(rate=float(rate)), plant=plant_of(machine))
    return crane.advance((count - 1) * period)


def _count(rate: int, seconds: float) -> int:
    return round(rate * (WARM_UP + seconds))


def _rows(messages: list[bytes]) -> np.ndarray:
    return np.frombuffer(b''.join(messages), np.uint8).reshape(len(messages), -1)


def _measured(processes: Iterable[Process], sets: Sets, rate: int, output: str, kind: str) -> GraphCost:
    """Start, feed, listen, stop; raises MbseError where a process dies or nothing comes."""
    # A process that waits to replace another one would begin to import in the middle of the measurement.
    processes = [replace(process, respawn=False) for process in processes]
    check_ros(Graph(tuple(processes)))
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.update(dds_profile(os.environ))
    from .publisher import Arrivals  # here, because it needs ROS
    with TemporaryDirectory() as folder:
        file = Path(folder) / 'sets.npz'
        np.savez(file, **sets)      # type: ignore[arg-type]  # no set is called allow_pickle
        publisher = Process('measuring.publisher', 'publisher', SPACE, arguments=(
            str(file), str(rate), str(round(rate * WARM_UP)), f'/{SPACE}/{output}'))
        arrivals = Arrivals(output, kind, SPACE)
        run = _Measurement(processes, publisher, arrivals)
        try:
            return run.result(rate, len(next(iter(sets.values()))))
        finally:
            run.stop()
            arrivals.close()


class _Measurement:
    """The processes of a measurement, and what they say."""

    def __init__(self, processes: Iterable[Process], publisher: Process, arrivals: Arrivals) -> None:
        self._names = [process.name for process in processes]
        self._log: list[str] = []
        self._arrivals = arrivals
        self._published: dict[str, Any] = {}
        self._running = RunningGraph(Graph((*processes, publisher)), self._hear)
        self.stop = self._running.stop
        self._running.start()

    def result(self, rate: int, sets: int) -> GraphCost:
        """What came of so many sets; raises MbseError."""
        self._until(lambda: 'begin_ns' in self._published, 'the graph to be ready')
        begin, period, first = self._published['begin_ns'], SECOND // rate, round(rate * WARM_UP)
        due = [begin + number * period for number in range(first, sets)]
        before = self._used_at(due[0])
        after = self._used_at(due[-1] + period)
        self._until(lambda: 'due' in self._published, 'the publisher')
        found, newest, quiet = self._arrivals.found, 0, time.monotonic()
        while due[-1] not in found and time.monotonic() < quiet + QUIET:
            self._step()
            if len(found) > newest:
                newest, quiet = len(found), time.monotonic()
        latency = np.array([(found[stamp] - stamp) * 1e-6 for stamp in due if stamp in found])
        if not latency.size:
            raise MbseError(self._explained('nothing came out of the graph'))
        seconds = after.pop('') - before.pop('')
        return GraphCost(self._published['due'], self._published['sent'], self._published['late_ms'],
                         len(due) - latency.size, latency,
                         {name: (after[name] - before[name]) / seconds for name in self._names})

    def _used_at(self, stamp_ns: int) -> dict[str, float]:
        """Processor time of each process at an instant, s; '': the clock."""
        while time.time_ns() < stamp_ns:
            self._step()
        pids = {name: self._running.children[name].pid for name in self._names}
        return {'': time.monotonic(), **{name: cpu_seconds(pid) or 0.0 for name, pid in pids.items()}}

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + START
        while not condition():
            self._step()
            if time.monotonic() > end:
                raise MbseError(self._explained(f'waited {START:g} s for {what} in vain'))

    def _step(self) -> None:
        self._arrivals.step()
        self._running.step()
        ended = [name for name in self._names if name not in self._running.children]
        if self._running.status or ended:
            raise MbseError(self._explained(f'{", ".join(ended) or "the publisher"} ended'))

    def _explained(self, what: str) -> str:
        return '\n'.join([what, *self._log[-TAIL:]])

    def _hear(self, line: str) -> None:
        """A line of a process; those of JSON are the publisher's."""
        name, _, text = line.partition('] ')
        if name.strip() == '[publisher' and text.startswith('{'):
            self._published |= json.loads(text)
        else:
            self._log.append(line)


def benchmark_rows(machine: str, rates: Iterable[int], ways: Iterable[str], seconds: float) -> Iterable[
        tuple[int, str, GraphCost, GraphCost]]:
    """Rate, way, the graph and the pass-through, one after the other."""
    known = load_machine(machine)
    for rate in rates:
        sets = sensor_sets(known, rate, seconds)
        passed = None
        for way in ways:
            graph = measure_graph(machine, sets, rate, way)
            passed = passed or measure_pass_through(segment_sets(known, rate, seconds), rate)
            yield rate, way, graph, passed


def row(rate: int, way: str, graph: GraphCost, passed: GraphCost) -> Mapping[str, object]:
    """A run as the result has it."""
    p50, p99 = np.percentile(graph.latency_ms, [50, 99])
    share, = passed.share.values()
    return {'rate_hz': rate, 'way': way, 'messages': graph.sent, 'lost': graph.lost, 'p50_ms': float(p50),
            'p99_ms': float(p99), 'cpu_share': graph.share, 'passthrough_cpu_share': share}
