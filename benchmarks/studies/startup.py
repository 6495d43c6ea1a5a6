# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark startup``: how long one waits for a short command, and for nodes to be ready."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import typer

from mbse_ros.bags.writer import BagWriter, write_frame
from mbse_ros.errors import MbseError
from mbse_ros.machine import load_machine
from mbse_ros.report.files import check_file, write_json
from mbse_ros.report.text import print_table, wide_console
from mbse_ros.simulation.work import frame_count, working_machine

TAIL = 5        # lines of a command that failed
COMMAND = "import sys\nfrom mbse_ros.cli import main\nsys.argv = ['mbse', *{words!r}]\nmain()"
# The three nodes of a machine, in one process as `mbse up` starts them, until they take samples.
NODES = '''
import os
import rclpy
from mbse_ros.nodes.machine_nodes import linked_nodes
rclpy.init(args=['--ros-args', '-r', '__ns:=/mbse_benchmark', '-p', 'machine:={machine}'])
nodes = linked_nodes()
for node in nodes:
    node.start()
os._exit(0 if all(node.active for node in nodes) else 1)
'''


class Cost(NamedTuple):
    """Time on the clock and of the processor, children included, s."""

    seconds: float
    processor: float


def run_startup(json_file: Path | None, machine: str, rounds: int) -> None:
    """Each case in processes of its own: once with an empty cache, then ``rounds`` times with it; the fastest counts.

    Raises MbseError where a case fails. Without ROS there is no `node_ready`.
    """
    check_file(json_file)
    with TemporaryDirectory(prefix='mbse_startup_') as folder:
        place = Path(folder)
        write_log(machine, place / 'bag')
        programs = cases(machine, place)
        cold = {name: run(name, program(0), place / f'cache_{name}') for name, program in programs.items()}
        warm: dict[str, list[Cost]] = {name: [] for name in programs}
        for turn in range(1, rounds + 1):       # in turn, so that all see the same load of the computer
            for name, program in programs.items():
                warm[name].append(run(name, program(turn), place / f'cache_{name}'))
    best = {name: Cost(*map(min, zip(*found))) for name, found in warm.items()}
    write_json(json_file, {'machine': machine, 'cases': [
        {'name': name, 'cold_s': cold[name].seconds, 'warm_s': best[name].seconds,
         'cold_cpu_s': cold[name].processor, 'warm_cpu_s': best[name].processor} for name in programs]})
    _show(cold, best, rounds)


def cases(machine: str, place: Path) -> dict[str, Callable[[int], str]]:
    """Programs by the name of their case, each of the number of its turn: outputs are not written twice."""
    def command(*words: object) -> str:
        return COMMAND.format(words=[str(word) for word in words])

    found: dict[str, Callable[[int], str]] = {
        'estimate_24s_bag': lambda _: command('estimate', place / 'bag', '--machine', machine),
        'check': lambda _: command('check', 'four_bar'),
        'simulate': lambda turn: command('simulate', 'four_bar', '--duration', 0.01, '-o', place / f'motion_{turn}')}
    if find_spec('rclpy') is not None:
        found['node_ready'] = lambda _: NODES.format(machine=machine)
    return found


def write_log(machine: str, folder: Path) -> None:
    """A bag of the machine's usual cycle (24 s of `patu655_lift`), as `mbse simulate` writes it."""
    described = load_machine(machine)
    crane = working_machine(described)
    with BagWriter(folder, frame=described.name) as writer:
        for _ in range(frame_count(crane)):
            write_frame(writer, described, crane.frame())


def run(name: str, program: str, cache: Path) -> Cost:
    """A program in a process of its own; raises MbseError with the end of what it said where it fails."""
    environment = {**os.environ, 'MBSE_CACHE_DIR': str(cache), 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
    before, start = os.times(), time.perf_counter()
    done = subprocess.run([sys.executable, '-c', program], env=environment, capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - start, os.times()
    if done.returncode:
        said = '; '.join((done.stderr or done.stdout).strip().splitlines()[-TAIL:])
        raise MbseError(f'{name}: ended with status {done.returncode}: {said}')
    return Cost(seconds, after.children_user + after.children_system - before.children_user - before.children_system)


def _show(cold: Mapping[str, Cost], warm: Mapping[str, Cost], rounds: int) -> None:
    rows = [(name, *(f'{value:.2f}' for value in (*cold[name], *warm[name]))) for name in cold]
    print_table(wide_console(), 'From the start of a process to its end, s',
                ('case', 'cold', 'of the processor', 'warm', 'of the processor'), rows)
    typer.echo(f'cold: with an empty cache of compiled functions; warm: fastest of {rounds} with it')
    if 'node_ready' not in cold:
        typer.echo('node_ready: not measured, there is no ROS 2 (rclpy)')
