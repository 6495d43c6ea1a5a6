# SPDX-License-Identifier: Apache-2.0
"""Accuracy of the payload mass and honesty of its interval, over many simulated runs.

    python benchmarks/payload_study.py accuracy --seeds 20       # masses 0..200 kg, the work cycle
    python benchmarks/payload_study.py random --runs 100                # random cycles: the worst case
    python benchmarks/payload_study.py interval --runs 200              # random cycle, payload, seed, wrong parameters

Run it in the environment of `make environment` (tools/environment.sh python benchmarks/payload_study.py ...).
"""

from __future__ import annotations

import argparse
import json
from functools import cache
from pathlib import Path

import numpy as np

from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine, load_machine
from mbse_ros.simulation.crane import SimulatedCrane
from mbse_ros.simulation.cycle import WorkCycle, lift_hold_lower, random_cycle
from mbse_ros.simulation.plant import Plant
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import PayloadEstimate
from mbse_ros.studies.many import add_workers, many

MASSES = (0.0, 20.0, 50.0, 100.0, 200.0)


@cache
def machine_of(valve: str) -> Machine:
    """The default machine with a valve model."""
    return load_machine('patu655_lift', valve)


@cache
def plant() -> Plant:
    """Its plant, compiled once."""
    return Plant(machine_of('orifice'))


def track(valve: str, weighing: str, payload: float, seed: int, cycle: WorkCycle,
          parameters: np.ndarray | None = None) -> tuple[list[PayloadEstimate], np.ndarray]:
    """Estimates of a run and how long the piston had moved (s) at each."""
    crane = SimulatedCrane(machine_of('orifice'), payload, seed, cycle, parameters=parameters, plant=plant())
    pipeline = Pipeline(machine_of(valve), observer=ObserverSettings(weighing=weighing))
    estimates, moved, time = [], [], 0.0
    for frame in crane.run():
        time += 0.01 * (abs(frame.velocity[0]) > 0.01)
        for channel, value in (*frame.samples.items(), *frame.commands.items()):
            for output in pipeline.add(channel, frame.stamp_ns, value):
                estimates.append(output.payload)
                moved.append(time)
    return estimates, np.array(moved)


def accuracy_run(job: tuple[str, str, float, int]) -> dict:
    """Errors after 3 s of motion and at the end on the work cycle."""
    valve, weighing, payload, seed = job
    estimates, moved = track(valve, weighing, payload, seed, lift_hold_lower())
    return {'valve': valve, 'payload': payload, 'seed': seed, 'end': estimates[-1].mass - payload,
            'after_3s': estimates[int(np.argmax(moved >= 3.0))].mass - payload,
            'half_width': estimates[-1].upper - estimates[-1].mass}


def random_run(job: tuple[str, str, int, bool]) -> dict:
    """Random cycle, payload and noise; with ``wrong`` the plant's uncertain parameters are drawn too."""
    valve, weighing, seed, wrong = job
    rng = np.random.default_rng([seed, 2026])
    payload, cycle = float(rng.uniform(0.0, 200.0)), random_cycle(rng)
    parameters = machine_of('orifice').parameters
    drawn = parameters.mean + wrong * parameters.stddev * rng.standard_normal(len(parameters.mean))
    estimates, moved = track(valve, weighing, payload, seed, cycle, drawn)
    masses = np.array([e.mass for e in estimates])
    late = masses[moved >= 3.0]
    last = estimates[-1]
    return {'valve': valve, 'seed': seed, 'payload': payload, 'end': last.mass - payload, 'wrong': wrong,
            'worst_after_3s': float(np.max(np.abs(late - payload))) if len(late) else float('nan'),
            'half_width': last.upper - last.mass, 'inside': bool(last.lower <= payload <= last.upper),
            'stddev': last.stddev}


def table_of_accuracy(rows: list[dict]) -> None:
    """Largest errors by valve model and mass."""
    for valve in dict.fromkeys(r['valve'] for r in rows):
        for payload in MASSES:
            some = [r for r in rows if r['valve'] == valve and r['payload'] == payload]
            print(f'{valve:8} {payload:5.0f} kg  after 3 s: largest {max(abs(r["after_3s"]) for r in some):.2f}  '
                  f'end: mean {np.mean([r["end"] for r in some]):+.2f} '
                  f'largest {max(abs(r["end"]) for r in some):.2f} kg  '
                  f'half-width {np.median([r["half_width"] for r in some]):.2f}')


def table_of_random(rows: list[dict]) -> None:
    """Coverage, width and the worst run by valve model."""
    for valve in dict.fromkeys(r['valve'] for r in rows):
        some = [r for r in rows if r['valve'] == valve]
        errors = np.abs([r['end'] for r in some])
        worst = some[int(np.argmax(errors))]
        near = [r['half_width'] for r in some if 35 <= r['payload'] <= 65]
        z = np.array([r['end'] / r['stddev'] for r in some])
        print(f'{valve:8} {len(some)} runs  end: RMS {np.sqrt(np.mean(errors ** 2)):.2f} worst {errors.max():.2f} kg '
              f'(seed {worst["seed"]}, {worst["payload"]:.0f} kg)  after 3 s of motion: worst '
              f'{np.nanmax([r["worst_after_3s"] for r in some]):.2f} kg\n'
              f'         in the 95 % interval {100 * np.mean([r["inside"] for r in some]):.1f} %  median half-width '
              f'{np.median([r["half_width"] for r in some]):.2f} kg, near 50 kg {np.median(near):.2f} kg  '
              f'error/stddev: mean {z.mean():+.2f}, std {z.std():.2f}')


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('study', choices=('accuracy', 'random', 'interval'))
    parser.add_argument('--valve', choices=('orifice', 'unknown', 'both'), default='both')
    parser.add_argument('--weighing', choices=('joint', 'apart'), default='joint')
    parser.add_argument('--seeds', type=int, default=20)
    parser.add_argument('--runs', type=int, default=100)
    add_workers(parser, 2)
    parser.add_argument('--json', type=Path)
    args = parser.parse_args()
    valves = ('orifice', 'unknown') if args.valve == 'both' else (args.valve,)
    plant()     # compiled before the processes start
    if args.study == 'accuracy':
        jobs = [(v, args.weighing, m, s) for v in valves for m in MASSES for s in range(1, args.seeds + 1)]
        rows = many(accuracy_run, jobs, args.jobs, args.cluster)
        table_of_accuracy(rows)
    else:
        jobs = [(v, args.weighing, s, args.study == 'interval') for v in valves for s in range(args.runs)]
        rows = many(random_run, jobs, args.jobs, args.cluster)
        table_of_random(rows)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + '\n')


if __name__ == '__main__':
    main()
