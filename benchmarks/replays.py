# SPDX-License-Identifier: Apache-2.0
"""A bag at 0.5 to 4 times its speed beside busy processes: are the masses those of the bag read at once, and is each
difference counted in the diagnostics?

    python benchmarks/replays.py [--rates 0.5,1,2,4] [--busy 2] [--seconds 12] [--machine patu655_lift] [--json F]

A simulated random cycle is written as a bag, read at once by the pipeline, and played by ``replay_node`` to the graph
of the machine in one process, then to estimator_node. A payload differs where its status or its faults are others, or
its mass by more than 1e-9 of the range. The exit status is 1 where payloads are absent or differ and no diagnostics
count why.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / name) for name in ('test', 'test/support'))]
import conftest  # noqa: E402, F401  (the environment of DDS)
from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from nodes_support import Peer, own_domain  # noqa: E402

from mbse_ros.bags.channel_samples import SensorFields  # noqa: E402
from mbse_ros.bags.messages import header  # noqa: E402
from mbse_ros.bags.writer import BagWriter  # noqa: E402
from mbse_ros.machine import Machine, load_machine  # noqa: E402
from mbse_ros.msg import PayloadEstimate  # noqa: E402
from mbse_ros.nodes.graphs.graph import Graph, Process  # noqa: E402
from mbse_ros.nodes.graphs.machine_graph import MachineArguments, machine_graph, sensor_topics  # noqa: E402
from mbse_ros.nodes.graphs.run_graph import RunningGraph  # noqa: E402
from mbse_ros.nodes.messages.wire import to_ns  # noqa: E402
from mbse_ros.simulation.crane import CraneSettings, SimulatedCrane, cycle_by_name, plant_of  # noqa: E402
from mbse_ros.streams.pipeline import Pipeline  # noqa: E402

BEGIN, PERIOD = 10 ** 9, 10_000_000     # ns
SHARE, CLOSE = 0.2, 1e-9                # of the range of the payload: the load, and what is the same mass
QUIET = 4.0                             # s without a payload, after which none is expected: three diagnostics
COUNTED = 'missing', 'dropped', 'late,', 'instants', 'ticks', 'commands', 'left out'     # how such values begin
Expected = dict[int, tuple[int, int, float]]       # by stamp, ns: status, faults, mass
Result = dict[str, Any]


def recorded(machine: Machine, folder: Path, seconds: float) -> Expected:
    """A bag of a random cycle, and what the pipeline makes of its samples."""
    count, fields, kinds = round(seconds * 1e9 / PERIOD), SensorFields(machine.channels, machine.valves), sensor_topics(
        machine)
    crane = SimulatedCrane(machine, SHARE * machine.payload_data.limits[1], 1, cycle_by_name('random', machine, 1),
                           CraneSettings(rate=1e9 / PERIOD), plant=plant_of(machine))
    pipeline, found = Pipeline(machine), {}
    with BagWriter(folder) as writer:
        for frame in crane.advance((count - 1) * PERIOD):
            stamp, samples = BEGIN + frame.stamp_ns, frame.samples | frame.commands
            for topic, values in fields.spread(samples).items():
                writer.write(f'/{topic}', kinds[topic], stamp, {'header': header(stamp, machine.name), **values})
            for channel, value in samples.items():
                for output in pipeline.add(channel, stamp, value):
                    mass = output.payload
                    found[mass.stamp_ns] = int(mass.status), int(mass.faults), mass.mass
    return found


def played(machine: Machine, bag: Path, rate: float, compiled: bool, expected: Expected) -> Result:
    """Payloads that are absent or differ when the bag is played, and what the diagnostics counted."""
    graph = machine_graph(MachineArguments(machine=machine.name, simulate=False, visualization=False,
                                           compiled=compiled, sensor_reliability='reliable'))
    player = Process('replay_node', 'replay_node', parameters={
        'bag': str(bag), 'rate': rate, 'wait_subscribers': 1, 'wait_time': 120.0, 'publish_clock': False})
    peer, running = Peer(payload=PayloadEstimate), RunningGraph(Graph((*graph.processes, player)), lambda line: None)
    diagnosed: list[DiagnosticArray] = []
    peer.node.create_subscription(DiagnosticArray, '/diagnostics', diagnosed.append, 1000)
    running.start()
    try:
        heard, quiet = peer.heard['payload'], time.monotonic() + 180.0
        known = 0
        while time.monotonic() < quiet:
            peer.step()
            running.step()
            if len(heard) > known:
                known, quiet = len(heard), time.monotonic() + QUIET
    finally:
        running.stop()
        peer.close()
    low, high = machine.payload_data.limits
    found = {to_ns(message.header.stamp): message for message in heard}
    other = 0
    for stamp, (status, faults, mass) in expected.items():
        got = found.get(stamp)
        if got is not None:
            apart = abs(got.mass - mass) > CLOSE * (high - low) or (got.mass == got.mass) is not (mass == mass)
            other += (got.status, got.faults) != (status, faults) or apart
    counted = {item.key: item.value for message in diagnosed for status in message.status for item in status.values
               if item.key.startswith(COUNTED) and item.value not in ('0', '')}
    return {'rate': rate, 'way': 'compiled' if compiled else 'composed', 'expected': len(expected),
            'absent': sum(stamp not in found for stamp in expected), 'differ': other, 'counted': counted}


def main() -> None:
    """Print a line a run."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--rates', default='0.5,1,2,4')
    parser.add_argument('--busy', type=int, default=2)
    parser.add_argument('--seconds', type=float, default=12.0)
    parser.add_argument('--machine', default='patu655_lift')
    parser.add_argument('--json', type=Path)
    given, rows = parser.parse_args(), []
    machine = load_machine(given.machine)
    busy = [subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(given.busy)]
    try:
        with tempfile.TemporaryDirectory() as folder, own_domain():
            expected = recorded(machine, Path(folder) / 'bag', given.seconds)
            for compiled in (False, True):
                for rate in map(float, given.rates.split(',')):
                    rows.append(played(machine, Path(folder) / 'bag', rate, compiled, expected))
                    print(json.dumps(rows[-1]), flush=True)
    finally:
        for process in busy:
            process.kill()
    if given.json:
        given.json.write_text(json.dumps({'rows': rows}, indent=2) + '\n')
    sys.exit(any((item['absent'] or item['differ']) and not item['counted'] for item in rows))


if __name__ == '__main__':
    main()
