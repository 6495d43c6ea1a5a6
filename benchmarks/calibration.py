# SPDX-License-Identifier: Apache-2.0
"""Does a calibration by the procedure's bags make new lifts right, and do the intervals hold, before and after?

    tools/environment.sh python benchmarks/calibration.py --machine patu655_lift --runs 50
    tools/environment.sh python benchmarks/calibration.py --machine zx200 --runs 3 --json out/calibration.json

The simulated machine differs from the file at random: friction 30 %, masses 5 %, offsets of the pressures 50 kPa,
inclination of the base 1 deg, all other uncertain numbers as the file states (`--stated`: all of them), 1 sigma each.
It goes through the procedure of `mbse calibrate --plan` (each pose approached from below and above, cylinder after
cylinder; empty, then two poses with a load known to 0.5 %); then it is calibrated with these deviations as the prior.
New lifts, each with a load of 10 to 80 % of full scale, are weighed with the file as it is, with the file that states
these deviations, and with the calibrated one; a lift without a mass counts as one whose interval does not hold. Last:
how far the numbers found are off, the mean of the squares in their covariance (1 expected), and s of a calibration.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from mbse_ros.calibration.balance import CalibrationBalance
from mbse_ros.calibration.fit import KnownLoad
from mbse_ros.calibration.plan import CandidateMotion, Plan, plan
from mbse_ros.description.load import parse_mechanism
from mbse_ros.errors import BagError
from mbse_ros.machine import Machine
from mbse_ros.monitor.faults import GATED, PayloadStatus
from mbse_ros.offline.calibration.calibrated_file import prior_machine
from mbse_ros.offline.calibration.calibration_bags import Recording, calibrated
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name, plant_of, valves_by_cylinder
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.simulation.plant import Plant
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.studies.many import add_workers, many

WRONG = ('cylinders.*.friction.scale=30 %', 'bodies.*.mass=5 %', 'sensors.*.offset=50 kPa', 'base.*=1 deg')
KNOWN = 0.005           # of the load of the procedure
TRAVEL, SLOW = 8.0, 4.0         # V
AROUND, CLOSE = 0.06, 0.01      # of the stroke: approach of a pose; how near to it a cylinder is stopped
LONGEST, PAUSE = 15.0, 0.5      # s of a move, and of rest after it
LIFTS = {'patu655_lift': 'lift_hold_lower', 'patu655': 'random', 'zx200': 'random'}
FILES = 'shipped', 'stated', 'calibrated'


@cache
def parts(name: str, stated: bool = False) -> tuple[str, Machine, Machine, Plant, Plan, CalibrationBalance]:
    """Text and machine of the prior, the machine of the shipped file, the plant, the procedure."""
    text, prior = prior_machine(name, () if stated else WRONG)
    balance = CalibrationBalance(prior)
    return text, prior, prior_machine(name)[1], plant_of(prior), plan(balance), balance


def truth(machine: Machine, rng: np.random.Generator) -> np.ndarray:
    """Numbers (k,) of the plant."""
    p = machine.parameters
    numbers = p.mean + p.stddev * rng.standard_normal(len(p.stddev))
    positive = [k for k, name in enumerate(p.names) if name.endswith(('friction.scale', 'volume', 'mass'))]
    numbers[positive] = np.maximum(numbers[positive], 0.2 * p.mean[positive])
    return numbers


def procedure(crane: SimulatedCrane, poses: Sequence[CandidateMotion]) -> list[SensorFrame]:
    """Frames of the machine as it goes through poses, an operator at its levers."""
    machine, frames = crane.machine, []
    valves, stroke = valves_by_cylinder(machine), machine.stroke[:, 1] - machine.stroke[:, 0]

    def move(cylinder: int, share: float, command: float) -> None:
        """One cylinder to a share of its stroke, then a rest."""
        start = len(frames)
        valve = valves[machine.cylinders[cylinder]]
        while len(frames) - start < LONGEST / (crane.period_ns * 1e-9):
            left = share - crane.coordinates[machine.pistons[cylinder]] / stroke[cylinder]
            if np.sign(left) != np.sign(command):
                break
            frames.append(crane.frame({valve: command}))
        frames.extend(crane.frame(0.0) for _ in range(round(PAUSE / (crane.period_ns * 1e-9))))

    for pose in sorted(poses, key=lambda item: tuple(item.pistons)):
        shares = np.clip(pose.pistons / stroke, 0.03 + AROUND, 0.97 - AROUND)
        for k, share in enumerate(shares):
            here = crane.coordinates[machine.pistons[k]] / stroke[k]
            if abs(share - here) > CLOSE:
                move(k, share, TRAVEL * np.sign(share - here))
        for k, share in enumerate(shares):
            move(k, share - AROUND, -SLOW)
            move(k, share + AROUND, SLOW)
            move(k, share - AROUND, -SLOW)
            move(k, share, SLOW)
    return frames


def recording(machine: Machine, frames: list[SensorFrame], name: str) -> Recording:
    """The samples as a bag has them."""
    t = np.array([frame.stamp_ns for frame in frames]) * 1e-9
    return Recording(name, {channel: (t, np.array([frame.samples[channel] for frame in frames]))
                            for channel in machine.channels}, '2026-01-01')


def weigh(machine: Machine, frames: list[SensorFrame]) -> tuple[float, float]:
    """Mass and half-width of its interval, kg, the last of the lift that its status says to use; NaN without one."""
    pipeline, outputs = Pipeline(machine), []
    for frame in frames:
        for channel in machine.commands:
            outputs += pipeline.add(channel, frame.stamp_ns, frame.commands[channel])
        for channel in machine.channels:
            outputs += pipeline.add(channel, frame.stamp_ns, frame.samples[channel])
    counts = [item.payload for item in outputs if item.payload.status in (PayloadStatus.UPDATING, *GATED)]
    return (counts[-1].mass, counts[-1].upper - counts[-1].mass) if counts else (np.nan, np.nan)


def run(job: tuple[str, int, int, bool], files: Sequence[str] = FILES) -> dict:
    """One machine that differs from its file; ``files`` by which the lifts are weighed."""
    name, number, lifts, stated = job
    text, prior, shipped, plant, steps, balance = parts(name, stated)
    rng = np.random.default_rng([number, *Path(name).stem.encode()])
    numbers, (low, high) = truth(prior, rng), prior.description.payload.limits
    still = WorkCycle(0.3, (Move(0.0, 1.0),))
    known = steps.load * (1 + KNOWN * rng.standard_normal())
    frames = {}
    for k, (label, load, poses) in enumerate((('empty', 0.0, steps.poses), ('load', known, steps.loaded))):
        crane = SimulatedCrane(prior, load, 1000 * number + k, still, parameters=numbers, plant=plant)
        frames[label] = procedure(crane, poses)
    begin = time.perf_counter()
    found = calibrated(prior, text, [recording(prior, item, label) for label, item in frames.items()],
                       {'load': KnownLoad('known', steps.load, KNOWN * steps.load)}, balance)
    seconds = time.perf_counter() - begin
    if found.trouble:
        raise BagError(name, found.trouble)
    machines = dict(zip(FILES, (shipped, prior, Machine(parse_mechanism(found.text, name)))))
    weighed = []
    for k in range(lifts):
        load, seed = low + rng.uniform(0.1, 0.8) * (high - low), 1000 * number + 500 + k
        cycle = cycle_by_name(LIFTS.get(name, 'random'), prior, seed)
        lift = SimulatedCrane(prior, load, seed, cycle, parameters=numbers, plant=plant).run()
        weighed.append({key: (mass - load, half) for key, machine in machines.items() if key in files
                        for mass, half in [weigh(machine, lift)]})
    z = np.linalg.solve(np.linalg.cholesky(found.covariance), numbers - [item.after for item in found.parameters])
    return {'number': number, 'lifts': weighed, 'nees': float(z @ z / len(z)), 'seconds': seconds,
            'procedure': {label: len(item) * 0.01 for label, item in frames.items()},
            'rms': (found.residual_rms_before, found.residual_rms_after)}


def table(name: str, rows: list[dict]) -> None:
    """Errors and coverage with each file."""
    low, high = parts(name)[1].description.payload.limits
    before, after = np.mean([row['rms'] for row in rows], axis=0)
    duration = np.mean([sum(row['procedure'].values()) for row in rows])
    print(f'{name}: {len(rows)} machines, {sum(len(row["lifts"]) for row in rows)} lifts; full scale '
          f'{high - low:g} kg; procedure {duration:.0f} s; missing force {before:.0f} N before, {after:.0f} N after; '
          f'NEES {np.mean([row["nees"] for row in rows]):.2f}; '
          f'{np.mean([row["seconds"] for row in rows]):.1f} s a calibration')
    print('file         hold   mean kg  mean |e| kg  of full   rms kg   half kg (median)')
    for key in rows[0]['lifts'][0]:
        error, half = np.array([lift[key] for row in rows for lift in row['lifts']]).T
        hold, there = np.abs(error) <= half, np.isfinite(error)
        size = np.abs(error[there])
        share = 100 * size.mean() / (high - low)
        print(f'{key:11} {hold.mean():6.3f} {error[there].mean():8.2f} {size.mean():11.2f} {share:8.2f} % '
              f'{np.sqrt(np.mean(size ** 2)):8.2f} {np.median(half[there]):9.2f}', flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', nargs='*', default=list(LIFTS))
    parser.add_argument('--runs', type=int, default=20)
    parser.add_argument('--lifts', type=int, default=2, help='new lifts of each machine')
    parser.add_argument('--stated', action='store_true', help='the deviations of the file alone, as of `mbse new`')
    add_workers(parser)
    parser.add_argument('--json', type=Path)
    args = parser.parse_args()
    result = {}
    for name in args.machine:
        jobs = [(name, number, args.lifts, args.stated) for number in range(args.runs)]
        result[name] = many(run, jobs, args.jobs, args.cluster)
        table(name, result[name])
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + '\n')


if __name__ == '__main__':
    main()
