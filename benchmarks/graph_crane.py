# SPDX-License-Identifier: Apache-2.0
"""Payload mass of a machine's factor graph, whole logs: accuracy and honesty of the interval over many simulated runs.

    python benchmarks/graph_crane.py wrong --runs 50     # the plant's uncertain numbers drawn from the file's prior
    python benchmarks/graph_crane.py true --runs 50      # the plant's numbers as in the file, which is sure of them
    python benchmarks/graph_crane.py random --runs 50    # as wrong, with random cycles and payloads (crane: to 200 kg)
    python benchmarks/graph_crane.py true --machine zx200 --payload 800 --cycle dig --rate 50 --runs 5

Run it in the environment of `make environment` (tools/environment.sh python benchmarks/graph_crane.py ...).
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from mbse_ros.description.basics import Scalar
from mbse_ros.graph.factors.machine_factors import MachineKinds, machine_kinds
from mbse_ros.graph.machines.machine_log import MachineLog
from mbse_ros.graph.machines.machine_smoother import smooth_machine
from mbse_ros.machine import Machine, load_machine
from mbse_ros.simulation.crane import CraneSettings, SimulatedCrane, cycle_by_name
from mbse_ros.simulation.cycle import Move, WorkCycle, lift_hold_lower, random_cycle
from mbse_ros.simulation.plant import Plant
from mbse_ros.studies.many import add_workers, many

SHORT = WorkCycle(0.3, (Move(0.0, 0.5), Move(4.0, 2.2), Move(0.0, 0.6), Move(-4.0, 2.4, until=0.3), Move(0.0, 0.3)))


def certain(item: Any) -> Any:
    """A description without standard deviations: all its numbers are known."""
    if isinstance(item, Scalar):
        return replace(item, stddev=0.0)
    if isinstance(item, dict):
        return {key: certain(value) for key, value in item.items()}
    if isinstance(item, tuple):
        return tuple(certain(value) for value in item)
    if is_dataclass(item):
        return replace(item, **{f.name: certain(getattr(item, f.name)) for f in fields(item) if f.name != 'sensors'})
    return item


def task(args: argparse.Namespace, seed: int, machine: Machine, rng: np.random.Generator) -> tuple[float, WorkCycle]:
    """Payload, kg, and cycle of a run; the payload hangs on the machine all the time."""
    several = len(machine.cylinders) > 1
    payload, cycle = args.payload, lift_hold_lower() if args.long else SHORT
    if args.study == 'random':
        payload = float(rng.uniform(0.0, args.most))
        cycle = cycle_by_name('random', machine, seed) if several else random_cycle(rng)
    elif args.cycle:
        cycle = cycle_by_name(args.cycle, machine, seed)
    return payload, replace(cycle, load=((0.0, 1.0),))


@cache
def models(name: str, study: str) -> tuple[Machine, MachineKinds, Plant]:
    """The machine that the smoother believes, what it has compiled of it, and the true one."""
    nominal = load_machine(name, 'orifice')
    machine = Machine(certain(nominal.description)) if study == 'true' else nominal
    return machine, machine_kinds(machine), Plant(nominal)


def one_run(args: argparse.Namespace, seed: int) -> dict:
    """Simulate, smooth, compare."""
    machine, kinds, plant = models(args.machine, args.study)
    rng = np.random.default_rng([seed, 5])
    payload, cycle = task(args, seed, machine, rng)
    known = plant.machine.parameters
    drawn = known.mean + (args.study != 'true') * known.stddev * rng.standard_normal(len(known.mean))
    frames = SimulatedCrane(plant.machine, payload, seed, cycle, CraneSettings(rate=args.rate), drawn, plant).run()
    log = MachineLog(np.array([f.stamp_ns for f in frames]) * 1e-9,
                     np.array([[f.samples[c] for c in machine.channels] for f in frames]))
    begin = time.process_time()
    found = smooth_machine(machine, log, kinds=kinds)
    error, stddev = float(found.mass[-1]) - payload, float(found.mass_stddev[-1])
    return {'study': args.study, 'seed': seed, 'payload': payload, 'error': error, 'stddev': stddev,
            'force': found.force, 'inside': bool(found.lower[-1] <= payload <= found.upper[-1]),
            'seconds': time.process_time() - begin}


def summary(rows: list[dict]) -> str:
    """Coverage, width and errors."""
    error, stddev = np.array([r['error'] for r in rows]), np.array([r['stddev'] for r in rows])
    z = error / stddev
    inside = 100 * np.mean([r['inside'] for r in rows])
    return (f'{rows[0]["study"]}: {len(rows)} runs; in the 95 % interval {inside:.1f} %; error '
            f'RMS {np.sqrt(np.mean(error ** 2)):.3f}, mean {error.mean():+.3f}, largest '
            f'{np.abs(error).max():.3f} kg; half-width {1.96 * np.median(stddev):.3f} kg; error/stddev mean '
            f'{z.mean():+.2f}, std {z.std():.2f}; {np.median([r["seconds"] for r in rows]):.1f} s of processor a log')


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('study', choices=('wrong', 'true', 'random'))
    parser.add_argument('--runs', type=int, default=50)
    parser.add_argument('--long', action='store_true', help='the work cycle of 24 s instead of one lift of 6 s')
    parser.add_argument('--json', type=Path)
    parser.add_argument('--machine', default='patu655_lift')
    parser.add_argument('--payload', type=float, default=50.0, help='kg')
    parser.add_argument('--most', type=float, default=200.0, help='largest payload of the study random, kg')
    parser.add_argument('--cycle', help='boom, dig, lift_hold_lower, in place of one lift')
    parser.add_argument('--rate', type=float, default=100.0, help='of the sensors, Hz')
    add_workers(parser)
    args = parser.parse_args()
    rows = many(partial(one_run, args), range(args.runs), args.jobs, args.cluster)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + '\n')
    print(summary(rows))


if __name__ == '__main__':
    main()
