# SPDX-License-Identifier: Apache-2.0
"""Do the intervals of the mass hold where every uncertain number of the machine's file is wrong, and how wide are they?

    tools/environment.sh python benchmarks/wrong_numbers.py --machine zx200 --runs 100 --keep out/frames
    tools/environment.sh python benchmarks/wrong_numbers.py --machine patu655_lift --measured-base --json out/wrong.json

The simulated machine has the numbers of the file. Those of the observer are drawn around them with their standard
deviations, stated or assumed: masses, friction, oil, the base's inclination; the errors of offsets, gains and zeros are
put on the samples. Of each run the mass and its interval at the end count, in every cycle and with both kinds of
valves; a run without a mass counts as one whose interval does not hold. The simulated samples are shared by the runs
(`--seeds` of them a cycle). ``--measured-base``: the base stands as the file says.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from machine_accuracy import CYCLES, PAYLOADS, frames_of
from mbse_ros.machine import load_machine
from mbse_ros.simulation.crane import SensorFrame
from mbse_ros.streams.pipeline import Pipeline


def with_errors(frames: list[SensorFrame], errors: dict[str, tuple[float, float]]) -> list[SensorFrame]:
    """The samples with an offset, SI, and a gain for each channel."""
    return [replace(frame, samples={name: value * errors[name][1] + errors[name][0] if name in errors else value
                                    for name, value in frame.samples.items()}) for frame in frames]


def run(job: tuple) -> dict:
    """One run with numbers drawn by its own seed."""
    name, cycle, valve, number, seeds, payload, keep, measured_base = job
    machine, rng = load_machine(name, valve), np.random.default_rng([number, *name.encode(), *cycle.encode()])
    p, errors = machine.parameters, {}
    mean, drawn = p.mean, p.stddev * rng.standard_normal(len(p.stddev))
    for k, key in enumerate(p.names):
        if key.startswith('sensors.'):
            _, sensor, kind = key.split('.')
            channel = next(c.name for c in machine.all_channels if c.sensor.name == sensor)
            offset, gain = errors.get(channel, (0.0, 1.0))
            errors[channel] = (offset, gain + drawn[k]) if kind == 'gain' else (offset + drawn[k], gain)
        elif not (measured_base and key.startswith('base.')):
            mean[k] -= drawn[k]
    p.assume(mean)
    frames = with_errors(frames_of(name, cycle, 1 + number % seeds, payload, keep), errors)
    pipeline, outputs = Pipeline(machine), []
    for frame in frames:
        for channel, value in [*frame.commands.items(), *frame.samples.items()]:
            if channel in machine.channels or channel in machine.commands:
                outputs += pipeline.add(channel, frame.stamp_ns, value)
    last, causes = outputs[-1].payload, pipeline.payload.budget
    half = last.upper - last.mass
    if measured_base:
        rest = sum(cause.kg ** 2 for cause in causes if not cause.cause.startswith('base.'))
        half *= np.sqrt(rest / sum(cause.kg ** 2 for cause in causes)) if causes else 1.0
    return {'machine': name, 'cycle': cycle, 'valve': valve, 'error': last.mass - frames[-1].payload, 'half': half,
            'cause': causes[0].cause if causes else 'no mass'}


def table(rows: list[dict]) -> None:
    """One line for each machine, cycle and kind of valve, and for each machine."""
    print('machine       cycle   valve     runs  hold    rms kg  half kg  error/dev.  of full scale  largest cause')
    for name in dict.fromkeys(row['machine'] for row in rows):
        low, high = load_machine(name).description.payload.limits
        own = [row for row in rows if row['machine'] == name]
        groups = {(row['cycle'], row['valve']) for row in own}
        for cycle, valve in [*sorted(groups), ('all', 'all')]:
            some = [row for row in own if (row['cycle'], row['valve']) == (cycle, valve) or cycle == 'all']
            error, half = (np.array([row[key] for row in some]) for key in ('error', 'half'))
            hold, known = np.abs(error) <= half, np.isfinite(error)
            causes = [row['cause'] for row in some]
            middle, ratio = np.median(half[known]), 1.96 * error[known] / half[known]
            print(f'{name:13} {cycle:7} {valve:8} {len(some):5}  {hold.mean():5.3f}'
                  f' {np.sqrt(np.mean(error[known] ** 2)):8.2f} {middle:8.2f} {np.sqrt(np.mean(ratio ** 2)):11.2f}'
                  f' {100 * middle / (high - low):12.2f} %  {max(set(causes), key=causes.count)}', flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', nargs='*', default=list(CYCLES))
    parser.add_argument('--cycle', nargs='*', default=[])
    parser.add_argument('--valve', nargs='*', choices=('orifice', 'unknown'), default=['orifice', 'unknown'])
    parser.add_argument('--runs', type=int, default=20, help='of each cycle and kind of valve')
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--measured-base', action='store_true')
    parser.add_argument('--keep', type=Path)
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--json', type=Path)
    args = parser.parse_args()
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    jobs = [(name, cycle, valve, number, args.seeds, PAYLOADS.get(name, 800.0), args.keep, args.measured_base)
            for name in args.machine for cycle in args.cycle or CYCLES.get(name, ('boom', 'random'))
            for valve, number in product(args.valve, range(args.runs))]
    with ProcessPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(run, jobs))
    table(rows)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + '\n')


if __name__ == '__main__':
    main()
