# SPDX-License-Identifier: Apache-2.0
"""A shift of a simulated excavator that loads trucks: is each load counted once, and is the total right?

    tools/environment.sh python benchmarks/simulated_shift.py --loads 300 --hours 4
    tools/environment.sh python benchmarks/simulated_shift.py --loads 12 --hours 0.1 --wrong 0.3

The plant digs against soil, lifts, swings, dumps and comes back, with pauses; loads are of three types, some spill,
some are let go where they were dug, some leave the bucket in several shakes. Its samples go through the whole chain and
into the scale's journal on disk, which is left without a word and opened again three times, as by a killed process.
``--wrong``: how far the true machine is from its file, in the file's deviations (0: a machine calibrated perfectly).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from mbse_ros.machine import load_machine
from mbse_ros.scale.stage import ScaleStage
from mbse_ros.scale.store import RecordStore
from mbse_ros.simulation.crane import SimulatedCrane, plant_of, valves_by_cylinder
from mbse_ros.simulation.cycle import Move, WorkCycle, dig
from mbse_ros.streams.pipeline import Pipeline
from studies.shifts import Bucket, working_day

SOIL = 15e3         # N
TRUCK = 6           # loads
KILLS = 3
SPILL = 5.8         # s in a cycle: the boom lifts until 7.8; what is lost later does not show, friction holds as much


def shares(bucket: Bucket) -> tuple[list[tuple[float, float]], float]:
    """What hangs on the machine over a cycle of `dig`, s and kg, and what of it the truck gets."""
    mass, begin = bucket.mass, [(0.0, 0.0), (3.0, 0.0), (5.0, bucket.mass)]
    if bucket.aborted:
        return [*begin, (6.6, mass), (7.4, 0.0)], 0.0
    if bucket.spilt:
        begin += [(SPILL, mass), (SPILL + 0.4, mass - bucket.spilt)]
        mass -= bucket.spilt
    if bucket.shaken:
        return [*begin, (11.0, mass), (11.4, 0.55 * mass), (12.0, 0.55 * mass), (12.4, 0.2 * mass),
                (13.0, 0.2 * mass), (13.4, 0.0)], mass
    return [*begin, (11.0, mass), (12.5, 0.0)], mass


def shift(cycle: WorkCycle, buckets: list[Bucket], pause: float) -> tuple[WorkCycle, list[float], float]:
    """The cycle again and again with its loads, kg; what each truck load is; the length of one."""
    length = cycle.duration + pause
    once = WorkCycle(cycle.start, (*cycle.moves, Move(0.0, pause)), cycle.others, timed=True, soil=cycle.soil)
    again, load, delivered = once.repeated(len(buckets)), [], []
    for k, bucket in enumerate(buckets):
        hanging, got = shares(bucket)
        load += [(k * length + t, mass) for t, mass in hanging]
        delivered.append(got)
    return WorkCycle(again.start, again.moves, again.others, tuple(load), True, again.soil), delivered, length


def run(name: str, count: int, hours: float, wrong: float, seed: int, path: Path) -> None:
    """The whole shift, with a line every 20 loads."""
    machine, rng = load_machine(name), np.random.default_rng(seed)
    plant = plant_of(machine)
    p, buckets = plant.machine.parameters, working_day(count, seed)
    dug = dig(valves_by_cylinder(machine), plant.drives)
    pause = max(1.0, hours * 3600.0 / len(buckets) - dug.duration)
    cycle, delivered, length = shift(dug, buckets, pause)
    crane = SimulatedCrane(machine, 1.0, seed, cycle, plant=plant, soil=SOIL,
                           parameters=p.mean + wrong * p.stddev * rng.standard_normal(len(p.mean)))
    pipeline, stage, begin = Pipeline(machine), ScaleStage(machine, journal=RecordStore(path, name)), time.time()
    kills = {round((k + 0.4) * len(buckets) / KILLS) for k in range(KILLS)}
    for k in range(len(buckets)):
        if k % TRUCK == 0:
            stage.new_truck(f'truck {k // TRUCK + 1}')
        for frame in crane.advance(round(1e9 * length * (k + 1)) - 1):
            for channel in machine.commands:
                outputs = pipeline.add(channel, frame.stamp_ns, frame.commands[channel])
            for channel in machine.channels:
                outputs = pipeline.add(channel, frame.stamp_ns, frame.samples[channel])
                for output in outputs:
                    stage.process(output.state, output.payload)
        if k in kills:      # nobody closes it
            stage = ScaleStage(machine, journal=RecordStore(path, name))
        if k % 20 == 19 or k == len(buckets) - 1:
            total, true = stage.book.all, sum(delivered[:k + 1])
            lower, upper = total.mass.interval
            holds = 'holds' if lower <= true <= upper else 'does not hold'
            print(f'{(k + 1) * length / 3600:.2f} h: {sum(map(bool, delivered[:k + 1]))} loads and {true:.0f} kg '
                  f'delivered; {total.count} and {total.mass.value:.0f} kg counted '
                  f'({100 * (total.mass.value / true - 1):+.3f} %), interval {lower:.0f} to {upper:.0f} {holds}; '
                  f'{time.time() - begin:.0f} s', flush=True)
    print('trucks:', ', '.join(f'{name} {tally.count} {tally.mass.value:.0f} kg'
                               for name, tally in stage.book.trucks.items()))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', default='zx200')
    parser.add_argument('--loads', type=int, default=300)
    parser.add_argument('--hours', type=float, default=4.0)
    parser.add_argument('--wrong', type=float, default=0.0)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(args.machine, args.loads, args.hours, args.wrong, args.seed, Path(folder) / 'loads.db')


if __name__ == '__main__':
    main()
