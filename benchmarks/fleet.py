# SPDX-License-Identifier: Apache-2.0
"""``mbse fleet`` on a Dask cluster of this computer: one worker against two, a worker and a scheduler that are killed.

    python benchmarks/fleet.py [--bags 200] [--seconds 60] [--json F]       # where dask.distributed is installed

Bags of a crane that lifts two loads. Prints s with one worker and with two, their ratio, the processor time of workers,
scheduler and ``mbse fleet``, s of one worker for an hour of bags, and whether tables are the same and complete after a
worker was killed (-9), and after the scheduler was killed and started again and the fleet run once more.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / 'test' / 'support')]
from mbse_ros.bags.writer import BagWriter, write_frame  # noqa: E402
from mbse_ros.machine import load_machine  # noqa: E402
from mbse_ros.simulation.crane import SimulatedCrane, plant_of  # noqa: E402
from mbse_ros.simulation.cycle import Move, WorkCycle  # noqa: E402

MACHINE, PORT = 'patu655_lift', 8797
ADDRESS = f'tcp://127.0.0.1:{PORT}'
KINDS = 5           # bags that differ; the others are copies


def write_bags(folder: Path, count: int, seconds: float) -> list[Path]:
    """So many bags of two loads each."""
    machine, rounds = load_machine(MACHINE), max(1, round(seconds / 12.0))
    moves = tuple(Move(v, 1.5) for _ in range(4 * rounds) for v in (4.0, -4.0))
    load = ((2.4, 0.0), (2.5, 0.5), (5.9, 0.5), (6.0, 0.0), (9.4, 0.0), (9.5, 1.0), (11.5, 1.0), (11.6, 0.0))
    for k in range(count):
        if k < KINDS:
            crane = SimulatedCrane(machine, 400.0, k + 1, WorkCycle(0.3, moves, load=load), plant=plant_of(machine))
            with BagWriter(folder / f'{k}', frame=machine.name) as writer:
                for frame in crane.run():
                    write_frame(writer, machine, frame)
        else:
            shutil.copytree(folder / f'{k % KINDS}', folder / f'{k}')
    return sorted(folder.iterdir())


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen]:
    """A process of Dask, until the end."""
    process = subprocess.Popen([sys.executable, '-m', f'distributed.cli.{words[0]}', *words[1:]],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def scheduler() -> object:
    """A scheduler at our port."""
    return started('dask_scheduler', '--host', '127.0.0.1', '--port', str(PORT), '--no-dashboard')


def worker() -> object:
    """A worker of one thread that is not started again."""
    return started('dask_worker', ADDRESS, '--nthreads', '1', '--no-nanny', '--no-dashboard')


def run(bags: Path, output: Path, pattern: str = '*') -> subprocess.Popen:
    """A fleet on the cluster."""
    return subprocess.Popen([sys.executable, '-m', 'mbse_ros.cli', 'fleet', f'{bags}/{pattern}', '--machine', MACHINE,
                             '-o', str(output), '--cluster', ADDRESS],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def tables(output: Path) -> dict[str, bytes]:
    """Content of all tables by their names."""
    return {path.name: path.read_bytes() for path in (output / 'loads').iterdir() if path.suffix == '.csv'}


def partly(output: Path, count: int) -> None:
    """Until so many tables are there."""
    while not (output / 'loads').is_dir() or len(tables(output)) < count:
        time.sleep(0.05)


def used(process: subprocess.Popen) -> float:
    """s of the processor that a process has used."""
    fields = Path(f'/proc/{process.pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def timed(bags: Path, output: Path, warm: Path, scheduler: subprocess.Popen, *workers: subprocess.Popen
          ) -> dict[str, float]:
    """s of a fleet on the clock and of the processor, after the workers have seen some bags."""
    shutil.rmtree(warm, ignore_errors=True)
    run(bags, warm, '?').wait()
    before, begin = [used(process) for process in (scheduler, *workers)], time.perf_counter()
    _, _, usage = os.wait4(run(bags, output).pid, 0)
    clock, after = time.perf_counter() - begin, [used(process) for process in (scheduler, *workers)]
    own = [b - a for a, b in zip(before, after)]
    return {'s': clock, 'workers_cpu_s': sum(own[1:]), 'scheduler_cpu_s': own[0],
            'fleet_cpu_s': usage.ru_utime + usage.ru_stime}


def main() -> None:
    """Print one run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--bags', type=int, default=200)
    parser.add_argument('--seconds', type=float, default=60.0, help='of each bag')
    parser.add_argument('--json', type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        bags, warm = root / 'bags', root / 'warm.csv'
        bags.mkdir()
        write_bags(bags, asked.bags, asked.seconds)
        with scheduler() as head:
            with worker() as first:
                one = timed(bags, root / 'one.csv', warm, head, first)
                with worker() as second:
                    two = timed(bags, root / 'two.csv', warm, head, first, second)
            with worker(), worker() as victim:
                fleet = run(bags, root / 'killed.csv')
                partly(root / 'killed.csv', asked.bags // 4)
                victim.kill()
                fleet.wait()
        expected = tables(root / 'one.csv')
        with scheduler() as first, worker():
            fleet = run(bags, root / 'again.csv')
            partly(root / 'again.csv', asked.bags // 4)
            first.kill()
            fleet.wait()
        before = len(tables(root / 'again.csv'))
        with scheduler(), worker(), worker():
            status = run(bags, root / 'again.csv').wait()
        found = {'bags': asked.bags, 'one_worker': one, 'two_workers': two, 'ratio': one['s'] / two['s'],
                 'worker_s_per_hour': one['s'] * 3600.0 / (asked.bags * asked.seconds),
                 'complete': len(expected) == asked.bags, 'two_the_same': tables(root / 'two.csv') == expected,
                 'after_a_killed_worker_the_same': tables(root / 'killed.csv') == expected,
                 'done_when_the_scheduler_was_killed': before, 'exit_status_after': status,
                 'after_a_killed_scheduler_the_same': tables(root / 'again.csv') == expected}
    print(json.dumps(found, indent=1))
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + '\n')


if __name__ == '__main__':
    main()
