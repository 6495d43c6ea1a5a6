# SPDX-License-Identifier: Apache-2.0
"""Payload mass of the crane's factor graph, whole logs: accuracy and honesty of the interval over many simulated runs.

    python benchmarks/graph_crane.py wrong --runs 50     # the plant's uncertain numbers drawn from the file's prior
    python benchmarks/graph_crane.py true --runs 50      # the plant's numbers as in the file, which is sure of them
    python benchmarks/graph_crane.py random --runs 50    # as wrong, with random cycles and payloads of 0 to 200 kg

Run it in the environment of `make environment` (tools/environment.sh python benchmarks/graph_crane.py ...).
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mbse_ros.graph.crane import CraneLog
from mbse_ros.graph.crane_factors import CraneKinds, crane_kinds
from mbse_ros.graph.crane_smoother import smooth_crane
from mbse_ros.machine import Machine, load_machine
from mbse_ros.mechanism.description.model import Quantity
from mbse_ros.simulation.crane import SimulatedCrane
from mbse_ros.simulation.cycle import Move, WorkCycle, lift_hold_lower, random_cycle
from mbse_ros.simulation.plant import Plant

SHORT = WorkCycle(0.3, (Move(0.0, 0.5), Move(4.0, 2.2), Move(0.0, 0.6), Move(-4.0, 2.4, until=0.3), Move(0.0, 0.3)))


def certain(item: Any) -> Any:
    """A description without standard deviations: all its numbers are known."""
    if isinstance(item, Quantity):
        return replace(item, stddev=0.0)
    if isinstance(item, dict):
        return {key: certain(value) for key, value in item.items()}
    if isinstance(item, tuple):
        return tuple(certain(value) for value in item)
    if is_dataclass(item):
        return replace(item, **{f.name: certain(getattr(item, f.name)) for f in fields(item) if f.name != 'sensors'})
    return item


def one_run(study: str, seed: int, long: bool, machine: Machine, kinds: CraneKinds, plant: Plant) -> dict:
    """Simulate, smooth, compare."""
    rng = np.random.default_rng([seed, 5])
    payload, cycle = 50.0, lift_hold_lower() if long else SHORT
    if study == 'random':
        payload, cycle = float(rng.uniform(0.0, 200.0)), random_cycle(rng)
    known = plant.machine.parameters
    drawn = known.mean + (study != 'true') * known.stddev * rng.standard_normal(len(known.mean))
    frames = SimulatedCrane(plant.machine, payload, seed, cycle, parameters=drawn, plant=plant).run()
    log = CraneLog(np.array([f.stamp_ns for f in frames]) * 1e-9,
                   np.array([[f.samples[c] for c in machine.channels] for f in frames]))
    begin = time.process_time()
    found = smooth_crane(machine, log, kinds=kinds)
    error, stddev = float(found.mass[-1]) - payload, float(found.mass_stddev[-1])
    return {'study': study, 'seed': seed, 'payload': payload, 'error': error, 'stddev': stddev, 'force': found.force,
            'inside': bool(found.lower[-1] <= payload <= found.upper[-1]), 'seconds': time.process_time() - begin}


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
    args = parser.parse_args()
    nominal = load_machine('patu655_lift')
    machine = Machine(certain(nominal.description)) if args.study == 'true' else nominal
    kinds, plant, rows = crane_kinds(machine), Plant(nominal), []
    for seed in range(args.runs):
        rows.append(one_run(args.study, seed, args.long, machine, kinds, plant))
        if args.json:
            args.json.write_text(json.dumps(rows, indent=1) + '\n')
    print(summary(rows))


if __name__ == '__main__':
    main()
