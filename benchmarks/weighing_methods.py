# SPDX-License-Identifier: Apache-2.0
"""The same logs weighed in every way that the package has, with the numbers of the machine's file wrong.

    tools/environment.sh python benchmarks/weighing_methods.py --machine zx200 patu655 --runs 6

Random cycles; the numbers drawn as in ``wrong_numbers``. `apart`: the paper's observer of the motion and inverse
dynamics; `joint, alone`: motion and mass in one estimate, before what the poses tell of the numbers is taken off;
`joint`: as published; with ``--smoother`` the whole log at once (minutes a log). RMS error of the mass at the end, kg,
share of the 95 % intervals that hold, their median half-width, kg, and s of computing for a log.
"""

from __future__ import annotations

import argparse
import time
from itertools import product

import numpy as np
from machine_accuracy import PAYLOADS
from machine_changes import changed_machine
from wrong_numbers import draw, frames_of, with_errors

from mbse_ros.errors import MbseError
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.graph.machines.machine_log import MachineLog
from mbse_ros.graph.machines.machine_smoother import smooth_machine
from mbse_ros.machine import Machine
from mbse_ros.simulation.crane import SensorFrame
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.studies.many import add_workers, many

NORMAL = 1.959964
VALVES = 'orifice', 'unknown'
WAYS = 'apart', 'joint, alone', 'joint', 'smoother'


def filtered(machine: Machine, frames: list[SensorFrame], weighing: str) -> dict[str, tuple[float, float]]:
    """Mass and half-width at the end."""
    pipeline = Pipeline(machine, observer=ObserverSettings(weighing=weighing))
    for frame in frames:
        for channel, value in [*frame.commands.items(), *frame.samples.items()]:
            if channel in machine.channels or channel in machine.commands:
                pipeline.add(channel, frame.stamp_ns, value)
    mass = pipeline.payload._mass
    if weighing == 'apart':
        return {'apart': (mass.mass, mass.half_width)}
    alone = NORMAL * np.sqrt(mass.noise ** 2 + mass.slopes @ mass.slopes)
    return {'joint, alone': (mass.weighed, alone), 'joint': (mass.mass, mass.half_width)}


def smoothed(machine: Machine, log: MachineLog) -> dict[str, tuple[float, float]]:
    """The same of the whole log."""
    found = smooth_machine(machine, log)
    return {'smoother': (float(found.mass[-1]), float(NORMAL * found.mass_stddev[-1]))}


def run(job: tuple[str, str, int, bool]) -> list[dict]:
    """One log in every way."""
    name, valve, number, smoother = job
    load = PAYLOADS.get(name, 800.0)
    machine, frames = changed_machine(name, valve), frames_of(name, 'random', 1 + number, load, 1.0)
    right = machine.parameters.mean.copy()
    mean, errors = draw(machine, np.random.default_rng([number, *name.encode()]))
    machine.parameters.assume(mean)
    frames = with_errors(frames, errors)
    t = np.array([frame.stamp_ns for frame in frames]) * 1e-9
    log = MachineLog(t - t[0], np.array([[frame.samples[c] for c in machine.channels] for frame in frames]))
    rows = []
    ways = {'apart': lambda: filtered(machine, frames, 'apart'), 'joint': lambda: filtered(machine, frames, 'joint')}
    if smoother:
        ways['smoother'] = lambda: smoothed(machine, log)
    for way, function in ways.items():
        begin = time.perf_counter()
        try:
            found = function()
        except MbseError as error:
            print(f'{name} {valve} {number} {way}: {error}', flush=True)
            found = {way: (np.nan, np.nan)}
        seconds = time.perf_counter() - begin
        rows += [{'machine': name, 'valve': valve, 'way': own, 'error': mass - load, 'half': half, 'seconds': seconds}
                 for own, (mass, half) in found.items()]
    machine.parameters.assume(right)
    return rows


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', nargs='*', default=['zx200', 'patu655'])
    parser.add_argument('--runs', type=int, default=4)
    parser.add_argument('--smoother', action='store_true')
    add_workers(parser, 2)
    args = parser.parse_args()
    jobs = [(name, valve, number, args.smoother)
            for name, number, valve in product(args.machine, range(args.runs), VALVES)]
    rows = [row for some in many(run, jobs, args.jobs, args.cluster) for row in some]
    for name, valve, way in product(args.machine, VALVES, WAYS[:4 if args.smoother else 3]):
        own = [row for row in rows if (row['machine'], row['valve'], row['way']) == (name, valve, way)]
        error, half = (np.array([row[key] for row in own]) for key in ('error', 'half'))
        print(f'{name:12} {valve:8} {way:13} {np.isfinite(error).sum():3} of {len(own)}  rms '
              f'{np.sqrt(np.nanmean(error ** 2)):7.2f}  hold {np.mean(np.abs(error) <= half):.2f}  half '
              f'{np.nanmedian(half):7.2f}  {np.median([row["seconds"] for row in own]):.1f} s', flush=True)


if __name__ == '__main__':
    main()
