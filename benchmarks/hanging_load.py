# SPDX-License-Identifier: Apache-2.0
"""A load that hangs and swings: the mass with and without `payload.hanging` in the machine's file.

    tools/environment.sh python benchmarks/hanging_load.py --seeds 8
    tools/environment.sh python benchmarks/hanging_load.py --machine zx200 --length 1 --file 1.1 --swing 0 --wrong

The simulated machine carries the load as a body of its own on a pin (on a cross of two where the machine swings it in
two directions), let go at ``--swing`` from the vertical; all cylinders move at random. Its commands, and the speed at
which it slews, are ``--pace`` times those of the cycle `random`, with ramps of 0.3 s at least. `rigid`: the observer's
file has a point mass at the hook; `hanging`: it has the length ``--file`` with a deviation of 5 %. ``--wrong``: the
numbers of the observer are drawn around the file's, that length too. Errors at the end, kg; `updating`: share of the
stamps in which the mass is followed.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import degrees, radians
from pathlib import Path

import numpy as np
import yaml
from wrong_numbers import draw, with_errors

from mbse_ros.description.load import known_machines, parse_mechanism
from mbse_ros.machine import Machine
from mbse_ros.machine.find_machine import with_valves
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.simulation.plant import Plant
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import PayloadStatus
from mbse_ros.studies.many import add_workers, many

LOADS = {'patu655_lift': 300.0, 'patu655': 200.0, 'zx200': 800.0}
PACES = {'zx200': 0.3}      # at full pace its load would turn over
VALVES, MODELS = ('orifice', 'unknown'), ('rigid', 'hanging')
GENTLE = 0.3        # s, shortest ramp


@dataclass(frozen=True)
class Job:
    """One log; lengths, m, angle, rad."""

    machine: str
    seed: int
    length: float
    file: float
    swing: float
    pace: float
    wrong: bool


@cache
def machine_of(name: str, valve: str | None, length: float | None, share: float = 0.05) -> Machine:
    """A machine of the package whose load hangs at a length, m, with this share of it as its deviation."""
    tree = yaml.safe_load(known_machines()[name].read_text(encoding='utf-8'))
    if length is not None:
        tree['payload']['hanging'] = {'value': f'{length} m', 'stddev': f'{length * share} m'}
    description = parse_mechanism(yaml.safe_dump(tree, sort_keys=False), f'{name}.yaml')
    return Machine(description if valve is None else with_valves(description, valve))


@cache
def plant(name: str, length: float) -> Plant:
    """The simulated machine, compiled once."""
    return plant_of(machine_of(name, None, length))


def paced(cycle: WorkCycle, pace: float) -> WorkCycle:
    """The same movements, slower."""
    def slower(moves: tuple[Move, ...]) -> tuple[Move, ...]:
        return tuple(replace(move, command=pace * move.command, ramp=max(move.ramp, GENTLE)) for move in moves)
    return replace(cycle, moves=slower(cycle.moves), others={name: slower(m) for name, m in cycle.others.items()})


def simulated(job: Job) -> tuple[list[SensorFrame], float]:
    """Samples, and how far the load swings out, rad."""
    machine = machine_of(job.machine, None, job.length)
    cycle = paced(cycle_by_name('random', machine, job.seed), job.pace)
    crane = SimulatedCrane(machine, LOADS[job.machine], job.seed, cycle, plant=plant(job.machine, job.length),
                           swing=job.swing * (-1) ** job.seed)
    frames, tilt = [], 0.0
    for _ in range(round(cycle.duration * 100)):
        tilt = max(tilt, crane.plant.machine.tilt(crane.coordinates))
        frames.append(crane.frame())
    return frames, tilt


def run(job: Job) -> list[dict]:
    """One log, with both models and each kind of valve."""
    frames, tilt = simulated(job)
    return [estimate(job, valve, model, frames) | {'machine': job.machine, 'valve': valve, 'model': model, 'tilt': tilt}
            for valve, model in product(VALVES, MODELS)]


def estimate(job: Job, valve: str, model: str, frames: list[SensorFrame]) -> dict:
    """Mass and interval at the end."""
    machine = machine_of(job.machine, valve, job.file if model == 'hanging' else None)
    p, right = machine.parameters, machine.parameters.mean
    if job.wrong:
        mean, errors = draw(machine, np.random.default_rng([job.seed, *job.machine.encode()]))
        p.assume(mean)
        frames = with_errors(frames, errors)
    pipeline, outputs = Pipeline(machine), []
    for frame in frames:
        for channel, value in [*frame.commands.items(), *frame.samples.items()]:
            if channel in machine.channels or channel in machine.commands:
                outputs += pipeline.add(channel, frame.stamp_ns, value)
    p.assume(right)
    last, statuses = outputs[-1].payload, [o.payload.status for o in outputs]
    return {'error': last.mass - LOADS[job.machine], 'half': (last.upper - last.lower) / 2,
            'holds': bool(last.lower <= LOADS[job.machine] <= last.upper),
            'updating': statuses.count(PayloadStatus.UPDATING) / len(statuses)}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', nargs='*', choices=list(LOADS), default=list(LOADS))
    parser.add_argument('--seeds', type=int, default=4)
    parser.add_argument('--length', type=float, default=2.0, help='m')
    parser.add_argument('--file', type=float, help='m, of the observer; default: the right one')
    parser.add_argument('--swing', type=float, default=15.0, help='deg')
    parser.add_argument('--pace', type=float, help='default: 1, zx200 0.3')
    parser.add_argument('--wrong', action='store_true')
    add_workers(parser, 2)
    parser.add_argument('--json', type=Path)
    args = parser.parse_args()
    jobs = [Job(name, seed, args.length, args.file or args.length, radians(args.swing),
                args.pace or PACES.get(name, 1.0), args.wrong)
            for name in args.machine for seed in range(1, args.seeds + 1)]
    rows = [row for some in many(run, jobs, args.jobs, args.cluster) for row in some]
    print('machine      load, kg  valve    model    tilt, deg    rms    mean   worst    half  hold  updating')
    for name, valve, model in product(args.machine, VALVES, MODELS):
        own = [row for row in rows if (row['machine'], row['valve'], row['model']) == (name, valve, model)]
        error = np.array([row['error'] for row in own])
        print(f'{name:12} {LOADS[name]:8g}  {valve:8} {model:8} {degrees(max(r["tilt"] for r in own)):9.0f} '
              f'{np.sqrt(np.nanmean(error ** 2)):7.2f} {np.nanmean(error):+7.2f} {np.nanmax(np.abs(error)):7.2f} '
              f'{np.nanmedian([r["half"] for r in own]):7.1f}  {sum(r["holds"] for r in own)}/{len(own)} '
              f'{np.mean([r["updating"] for r in own]):7.2f}', flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + '\n')


if __name__ == '__main__':
    main()
