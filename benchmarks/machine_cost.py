# SPDX-License-Identifier: Apache-2.0
"""Cost of observer and payload estimator on simulated machines, per step of the observer.

    tools/environment.sh python benchmarks/machine_cost.py --repeat 10
    tools/environment.sh python benchmarks/machine_cost.py --machine zx200 --valve orifice --json cost.json
    tools/environment.sh python benchmarks/machine_cost.py --online --beside TREE --repeat 6 --keep out/frames

Processor time of one core, the least of the repetitions: of the observer's stage, of its compiled step alone, of the
payload's stage, of its gates alone (us per step each), and the share of real time of both stages. A log is simulated
first, the boom's cycle at 100 Hz; the observer runs at 1 kHz (``--step``), in segments of ``--segment`` s. ``--json``
writes masses and intervals after each segment, too; ``--against`` compares them with those of another version's file.

``--online``: instead of these the whole pipeline, sample by sample, segments of one sensor period, as in the nodes: ms
of the processor per s of the log. ``--beside``: the source tree of another version, which runs in turns with this one;
medians of both, and of the ratios of the pairs, which other work on the computer changes least.
"""

from __future__ import annotations

import os

os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')      # else other cores work, too

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
from machine_accuracy import CYCLES, LIMITS, PAYLOADS, frames_of, machine_of

from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.payload.joint import JointEstimator
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.streams.interpolation import InterpolationSettings, Interpolator
from mbse_ros.streams.pipeline import Merger, Pipeline
from mbse_ros.streams.records import PayloadEstimate, Segment, StateEstimate
from mbse_ros.streams.stages import ObserverStage, PayloadStage


def segments_of(name: str, valve: str, duration: float, step: float, keep: Path | None) -> list[Segment]:
    """The log as the observer gets it."""
    machine = machine_of(name, valve)
    interpolator = Interpolator(machine.channels, machine.commands, InterpolationSettings(step=step), machine.delays)
    merger, found = Merger(max(1, round(1e9 * duration))), []
    for frame in frames_of(name, 'boom', 1, PAYLOADS.get(name, 800.0), keep):
        for channel, value in (*((c, frame.commands[c]) for c in machine.commands), *frame.samples.items()):
            if channel in machine.channels + machine.commands:
                for segment in interpolator.add(channel, frame.stamp_ns, value):
                    found += merger.add(segment)
    return found + list(merger.flush())


class Chain:
    """Observer and payload estimator of one machine, made once; each run begins anew."""

    def __init__(self, name: str, valve: str) -> None:
        machine = machine_of(name, valve)
        self.observer, self.payload = ObserverStage(machine), PayloadStage(machine)
        self.states: list[StateEstimate] = []
        self.masses: list[PayloadEstimate] = []

    def observe(self, segments: list[Segment]) -> None:
        """States of all segments."""
        self.observer.reset()
        self.states = [self.observer.process(segment) for segment in segments]

    def weigh(self) -> None:
        """Masses of all states."""
        self.payload.reset()
        self.masses = [self.payload.process(state) for state in self.states]


def compiled_step(name: str, valve: str, segments: list[Segment], step: float) -> Callable[[], None]:
    """The observer's compiled loop alone over inputs like those of the segments."""
    observer = HydraulicObserver(machine_of(name, valve), ObserverSettings())
    observer.start(segments[0].values[0], segments[0].command_values[0])
    _, x, p = observer.step(step)
    blocks = [np.hstack([segment.values, segment.command_values]) for segment in segments[:100]]
    for block, segment in zip(blocks, segments):
        values = block[:, :segment.values.shape[1]]
        values[np.arange(1, len(values) + 1) % int(max(segment.repeats)) != 0] = np.nan

    def run() -> None:
        state = x
        for block in blocks:
            state, *_ = observer.running.steps(state, block, p)
    return run


def gates_of(name: str, valve: str, states: list[StateEstimate]) -> Callable[[], None]:
    """The gates of a payload estimator alone."""
    gates = JointEstimator(machine_of(name, valve), PayloadSettings())._gates

    def run() -> None:
        gates.reset()
        for state in states:
            gates.closed(state.mean)
    return run


def least(call: Callable[[], None], repeat: int) -> float:
    """Processor time of a call, s, the least of some."""
    best = float('inf')
    for _ in range(repeat):
        start = process_time()
        call()
        best = min(best, process_time() - start)
    return best


def cost(name: str, valve: str, duration: float, step: float, repeat: int, keep: Path | None) -> dict:
    """All figures of one machine."""
    segments = segments_of(name, valve, duration, step, keep)
    chain, steps = Chain(name, valve), sum(len(segment.values) for segment in segments)
    observer = least(lambda: chain.observe(segments), repeat)
    payload = least(chain.weigh, repeat)
    compiled = least(compiled_step(name, valve, segments, step), repeat) / sum(len(s.values) for s in segments[:100])
    gates = least(gates_of(name, valve, chain.states), repeat)
    us = {key: 1e6 * value / steps for key, value in (('observer', observer), ('payload', payload), ('gates', gates))}
    return {'machine': name, 'valve': valve, 'steps': steps, 'segment': duration, **us, 'step': 1e6 * compiled,
            'real_time_share': (observer + payload) / (steps * step),
            'masses': [[m.mass, m.upper - m.mass, m.stddev, m.raw, m.samples, m.status.name] for m in chain.masses]}


def differences(row: dict, other: dict) -> tuple[float, float, int]:
    """Largest relative differences of masses and half-widths; how many samples, status or NaN are others."""
    a, b = (np.array([entry[:2] for entry in item['masses']], dtype=float) for item in (row, other))
    odd = sum(x[4:] != y[4:] for x, y in zip(row['masses'], other['masses'])) + int((np.isnan(a) != np.isnan(b)).sum())
    relative = np.nanmax(np.abs(a - b) / np.abs(b), axis=0)
    return float(relative[0]), float(relative[1]), odd


def serve(keep: str | None) -> None:
    """For each line with machine, valve and weighing on the standard input, a run: ms of the processor per s of log."""
    for line in sys.stdin:
        name, valve, weighing = line.split()
        machine = machine_of(name, valve)
        frames = frames_of(name, 'boom', 1, PAYLOADS.get(name, 800.0), Path(keep) if keep else None)
        pipeline = Pipeline(machine, observer=ObserverSettings(weighing=weighing))
        samples = [(channel, frame.stamp_ns, value) for frame in frames
                   for channel, value in {**frame.commands, **frame.samples}.items()
                   if channel in machine.channels + machine.commands]
        start = process_time()
        for sample in samples:
            pipeline.add(*sample)
        print(1e12 * (process_time() - start) / (frames[-1].stamp_ns - frames[0].stamp_ns), flush=True)


def in_turns(cases: list[tuple[str, str, str]], trees: list[Path], repeat: int, keep: Path | None) -> None:
    """Costs of source trees of the package online, in turns, in a process each."""
    here = Path(__file__).resolve().parent
    words = [f'import sys; sys.path[:0] = [{str(tree.resolve())!r}, {str(here)!r}]; '
             f'import machine_cost; machine_cost.serve({keep and str(keep.resolve())!r})' for tree in trees]
    workers = [subprocess.Popen([sys.executable, '-c', code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
               for code in words]

    def ask(k: int, case: tuple[str, str, str]) -> float:
        pipes = workers[k].stdin, workers[k].stdout
        print(*case, file=pipes[0], flush=True)
        return float(pipes[1].readline())
    for case in cases:
        runs = [[ask(k, case) for k in range(len(trees))] for _ in range(repeat + 1)][1:]       # the first one compiles
        ms = ', '.join(f'{median(column):.1f}' for column in zip(*runs))
        print(f'{" ".join(case):32} {ms} ms per s', *(f'ratio {median(run[-1] / run[0] for run in runs):.2f}'
                                                      for _ in trees[1:]), flush=True)
    for worker in workers:
        worker.communicate()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', nargs='*', default=list(CYCLES))
    parser.add_argument('--valve', nargs='*', choices=tuple(LIMITS), default=list(LIMITS))
    parser.add_argument('--segment', type=float, default=0.1, help='s; 0: one sensor period')
    parser.add_argument('--step', type=float, default=0.001, help='s, of the observer')
    parser.add_argument('--repeat', type=int, default=5)
    parser.add_argument('--keep', type=Path, help='directory of simulated samples for the next run')
    parser.add_argument('--json', type=Path)
    parser.add_argument('--against', type=Path, help='what --json of another version wrote')
    parser.add_argument('--online', action='store_true', help='the whole pipeline, sample by sample')
    parser.add_argument('--weighing', nargs='*', choices=('joint', 'apart'), default=['joint'], help='of --online')
    parser.add_argument('--beside', type=Path, metavar='TREE', help='another source tree, in turns, for --online')
    args = parser.parse_args()
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    if args.online:
        trees = [Path(__file__).parents[1], *([args.beside] if args.beside else [])]
        return in_turns(list(product(args.machine, args.valve, args.weighing)), trees, args.repeat, args.keep)
    before = {(row['machine'], row['valve']): row for row in json.loads(args.against.read_text())
              } if args.against else {}
    rows = []
    print('us per step                observer (step alone)  payload (gates alone)   share of real time')
    for name, valve in product(args.machine, args.valve):
        row = cost(name, valve, args.segment, args.step, args.repeat, args.keep)
        rows.append(row)
        print(f'{name:12} {valve:10} {row["observer"]:12.2f} {row["step"]:11.2f} {row["payload"]:10.2f} '
              f'{row["gates"]:11.2f} {100 * row["real_time_share"]:16.2f} %', flush=True)
        if (name, valve) in before:
            print('      against the other: masses {:.1e}, half-widths {:.1e}, {} stamps otherwise'.format(
                *differences(row, before[name, valve])))
    if args.json:
        args.json.write_text(json.dumps(rows) + '\n')


if __name__ == '__main__':
    main()
