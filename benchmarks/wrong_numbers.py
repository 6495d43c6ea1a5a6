# SPDX-License-Identifier: Apache-2.0
"""Do the intervals of the mass hold, with right and with wrong numbers in the machine's file, and how wide are they?

    tools/environment.sh python benchmarks/wrong_numbers.py --machine zx200 --runs 100
    tools/environment.sh python benchmarks/wrong_numbers.py --machine patu655_lift --numbers wide --measured-base
    tools/environment.sh python benchmarks/wrong_numbers.py --numbers exact --noise 0.5 1 2 --json out/right.json

The simulated machine has the numbers of the file. Those of the observer are drawn around them with the standard
deviations that ``--numbers`` gives them: as the file states or as assumed; `exact`, none but the load's centre where
the file calls it uncertain; `wide`, those of a machine of which little is known (see ``machine_changes``). Errors of
offsets, gains and zeros are put on the samples. Of each run the mass and its interval at the end count, in every cycle
and with both kinds of valves; a run without a mass counts as one whose interval does not hold. ``--noise``: factors on
the sensors' noise, of the simulated machine and of the observer's file. ``--measured-base``: the base stands as the
file says, and its share of the interval is taken out. `bias` is the mean error over the standard error of that mean.
Last column: errors of the load's centre, RMS by the axis, where it is estimated.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from pathlib import Path

import numpy as np
from machine_accuracy import CYCLES, PAYLOADS
from machine_changes import NUMBERS, changed_machine

from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine
from mbse_ros.payload.mass import center_of
from mbse_ros.simulation.crane import CraneSettings, SensorFrame, SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.simulation.plant import Plant
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.studies.many import add_workers, many


@dataclass(frozen=True)
class Job:
    """One simulated log, and how it is estimated."""

    machine: str
    cycle: str
    number: int
    seeds: int
    payload: float
    numbers: str
    noise: float
    valves: tuple[str, ...]
    measured_base: bool
    psd: float | None


@cache
def plant(name: str) -> Plant:
    """The simulated machine, compiled once."""
    return plant_of(changed_machine(name))


@lru_cache(maxsize=8)
def frames_of(name: str, cycle: str, seed: int, payload: float, noise: float) -> list[SensorFrame]:
    """Samples and truth."""
    machine = changed_machine(name)
    return SimulatedCrane(machine, payload, seed, cycle_by_name(cycle, machine, seed), CraneSettings(noise=noise),
                          plant=plant(name)).run()


def with_errors(frames: list[SensorFrame], errors: dict[str, tuple[float, float]]) -> list[SensorFrame]:
    """The samples with an offset, SI, and a gain for each channel."""
    return [replace(frame, samples={name: value * errors[name][1] + errors[name][0] if name in errors else value
                                    for name, value in frame.samples.items()}) for frame in frames]


def run(job: Job) -> list[dict]:
    """One log with numbers drawn by its own seed, with each kind of valve."""
    frames = frames_of(job.machine, job.cycle, 1 + job.number % job.seeds, job.payload, job.noise)
    return [estimate(job, valve, frames) for valve in job.valves]


def draw(machine: Machine, rng: np.random.Generator, right: str = '-'
         ) -> tuple[np.ndarray, dict[str, tuple[float, float]]]:
    """Uncertain numbers (k,) of an observer, each wrong by its deviation, but for those whose names begin with
    ``right``; an offset, SI, and a gain of each channel."""
    p, errors = machine.parameters, {}
    mean, drawn = p.mean.copy(), p.stddev * rng.standard_normal(len(p.stddev))
    for k, key in enumerate(p.names):
        if key.startswith('sensors.'):
            _, sensor, kind = key.split('.')
            channel = next(c.name for c in machine.all_channels if c.sensor.name == sensor)
            offset, gain = errors.get(channel, (0.0, 1.0))
            errors[channel] = (offset, gain + drawn[k]) if kind == 'gain' else (offset + drawn[k], gain)
        elif not key.startswith(right):
            mean[k] -= drawn[k]
    return mean, errors


def estimate(job: Job, valve: str, frames: list[SensorFrame]) -> dict:
    """Mass and interval at the end."""
    machine = changed_machine(job.machine, valve, job.numbers, job.noise)
    rng = np.random.default_rng([job.number, *job.machine.encode(), *job.cycle.encode()])
    p = machine.parameters
    right, (mean, errors) = p.mean.copy(), draw(machine, rng, 'base.' if job.measured_base else '-')
    drawn = right - mean
    p.assume(mean)
    settings = ObserverSettings() if job.psd is None else ObserverSettings(acceleration_psd=job.psd)
    pipeline, outputs = Pipeline(machine, observer=settings), []
    for frame in with_errors(frames, errors):
        for channel, value in [*frame.commands.items(), *frame.samples.items()]:
            if channel in machine.channels or channel in machine.commands:
                outputs += pipeline.add(channel, frame.stamp_ns, value)
    last, causes = outputs[-1].payload, pipeline.payload.budget
    half = last.upper - last.mass
    if job.measured_base:
        rest = sum(cause.kg ** 2 for cause in causes if not cause.cause.startswith('base.'))
        half *= np.sqrt(rest / sum(cause.kg ** 2 for cause in causes)) if causes else 1.0
    state, off = outputs[-1].state, {}
    if frames[-1].payload > 0:
        found = center_of(machine, state.names, state.mean[-1], state.covariance)
        off = {axis: found[axis][0] - machine.description.payload.center['xyz'.index(axis)].value - drawn[place]
               for axis, place in machine.parameters.center.items()}     # from the place that the numbers drawn give
    p.assume(right)
    return {'machine': job.machine, 'cycle': job.cycle, 'valve': valve, 'noise': job.noise, 'load': job.payload,
            'number': job.number, 'error': last.mass - frames[-1].payload, 'half': half, 'centre': off,
            'cause': causes[0].cause if causes else 'no mass'}


def line(title: tuple, rows: list[dict]) -> str:
    """Figures of some runs."""
    low, high = changed_machine(rows[0]['machine']).description.payload.limits
    error, half = (np.array([row[key] for row in rows]) for key in ('error', 'half'))
    hold, known = np.abs(error) <= half, np.isfinite(error)
    error, half, causes = error[known], half[known], [row['cause'] for row in rows]
    middle, ratio = np.median(half), 1.96 * error / half
    standard = error.std(ddof=1) / np.sqrt(len(error)) if len(error) > 1 else np.nan
    centre = {axis: 100 * np.sqrt(np.mean([row['centre'][axis] ** 2 for row in rows if axis in row['centre']]))
              for axis in {axis for row in rows for axis in row['centre']}}
    return (f'{title[0]:12} {title[1]:6} {title[2]:8} {title[3]!s:4} {len(rows):4}  {hold.mean():5.3f}'
            f' {error.mean():7.2f} {error.mean() / standard:5.1f} {np.sqrt(np.mean(error ** 2)):7.2f} {middle:8.2f}'
            f' {np.sqrt(np.mean(ratio ** 2)):7.2f} {100 * middle / (high - low):6.2f} %'
            f'  {max(set(causes), key=causes.count)}'
            + ''.join(f' {axis} {value:.1f} cm' for axis, value in centre.items()))


def table(rows: list[dict]) -> None:
    """One line for each machine, cycle, kind of valve and noise, and for each machine."""
    print('machine      cycle  valve    noise runs  hold   mean kg  bias  rms kg  half kg err/dev of full'
          '  largest cause')
    for name in dict.fromkeys(row['machine'] for row in rows):
        own = [row for row in rows if row['machine'] == name]
        keys = 'cycle', 'valve', 'noise'
        for group in sorted({tuple(row[key] for key in keys) for row in own}):
            print(line((name, *group), [row for row in own if tuple(row[key] for key in keys) == group]))
        for noise in sorted({row['noise'] for row in own}):
            print(line((name, 'all', 'all', noise), [row for row in own if row['noise'] == noise]))
        print(line((name, 'all', 'all', 'all'), own), flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', nargs='*', default=list(CYCLES))
    parser.add_argument('--cycle', nargs='*', default=[])
    parser.add_argument('--valve', nargs='*', choices=('orifice', 'unknown'), default=['orifice', 'unknown'])
    parser.add_argument('--runs', type=int, default=20, help='of each cycle and kind of valve')
    parser.add_argument('--seeds', type=int, default=3, help='simulated logs that the runs of a cycle share')
    parser.add_argument('--numbers', choices=NUMBERS, default='file')
    parser.add_argument('--noise', type=float, nargs='*', default=[1.0])
    parser.add_argument('--load', type=float, nargs='*', default=[], help='kg; default: 800, cranes 50 and 100')
    parser.add_argument('--psd', type=float, help='acceleration_psd of the observer')
    parser.add_argument('--measured-base', action='store_true')
    add_workers(parser, 2)
    parser.add_argument('--json', type=Path)
    args = parser.parse_args()
    jobs = [Job(name, cycle, number, args.seeds, load, args.numbers, noise, tuple(args.valve), args.measured_base,
                args.psd)
            for name in args.machine for cycle in args.cycle or CYCLES.get(name, ('boom', 'random'))
            for load, noise in product(args.load or [PAYLOADS.get(name, 800.0)], args.noise)
            for number in sorted(range(args.runs), key=lambda k: k % args.seeds)]
    rows = [row for some in many(run, jobs, args.jobs, args.cluster) for row in some]
    table(rows)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + '\n')


if __name__ == '__main__':
    main()
