# SPDX-License-Identifier: Apache-2.0
"""Which pressure sensors of a machine suffice to weigh: the table of docs/sensors.md.

python benchmarks/sensor_sets.py [--machine zx200] [--seeds 2] [--first 1] [--sets boom,arm]

Each set weighs simulated cycles of a machine whose uncertain numbers are drawn from the file: loads whose 95 % interval
holds the true mass at the end of the cycle, and the middle of their half-widths.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import date
from itertools import product

import numpy as np

from mbse_ros.bags.channel_samples import Sample
from mbse_ros.estimators.sight.mass_accuracy import mass_accuracy
from mbse_ros.machine import Machine, load_machine
from mbse_ros.machine.equations import cylinders_of, missing_pressures, why_unweighed
from mbse_ros.offline.bag import estimate_samples
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name, plant_of

CYCLES, SHARES = ('boom', 'random'), (0.0, 0.16, 0.8)       # of the largest load


def reduced(machine: Machine, cylinders: tuple[str, ...], sides: tuple[str, ...] = ('piston', 'rod')) -> Machine:
    """The machine with the pressure sensors of these cylinders alone."""
    kept = {name for name, volume in machine.hydraulics.volumes.items()
            if all(cylinder in cylinders and side in sides for cylinder, side in volume.chambers)}
    d = machine.description
    return Machine(replace(d, sensors={name: sensor for name, sensor in d.sensors.items()
                                       if sensor.kind != 'pressure' or sensor.volume in kept}))


def cycles(machine: Machine, seeds: range) -> list[tuple[float, list[SensorFrame]]]:
    """True load, kg, and samples of each cycle."""
    plant, p, found = plant_of(machine), machine.parameters, []
    for name, share, seed in product(CYCLES, SHARES, seeds):
        drawn = p.mean + p.factor() @ np.random.default_rng([seed, 7]).standard_normal(p.factor().shape[1])
        load = share * machine.payload_data.limits[1]
        crane = SimulatedCrane(machine, load, seed, cycle_by_name(name, machine, seed), parameters=drawn, plant=plant)
        found.append((load, crane.run()))
    return found


def weighed(machine: Machine, frames: list[SensorFrame]) -> tuple[float, float]:
    """Interval at the end, kg."""
    inputs = {*machine.channels, *machine.commands}
    samples = [Sample(name, frame.stamp_ns, value) for frame in frames
               for name, value in {**frame.samples, **frame.commands}.items() if name in inputs]
    payload = estimate_samples(samples, machine, {}, every=0.1).last.payload
    return payload.lower, payload.upper


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', default='zx200')
    parser.add_argument('--seeds', type=int, default=2)
    parser.add_argument('--first', type=int, default=1)
    args = parser.parse_args()
    machine = load_machine(args.machine)
    every = tuple(machine.cylinders)
    sets = {'all pressures': reduced(machine, every),
            **{f'both pressures of {name}': reduced(machine, (name,)) for name in every if len(every) > 1},
            f'the piston side of {every[0]}': reduced(machine, every[:1], ('piston',)),
            'no pressure': reduced(machine, ())}
    runs = cycles(machine, range(args.first, args.first + args.seeds))
    print(f'{machine.name}, all positions measured, {len(runs)} cycles, {date.today()}\n')
    print('| pressure sensors | equations that weigh | half-width in a usual pose | intervals that hold | half-width '
          'at the end of a cycle | what is lost |\n|---|---|---|---|---|---|')
    for name, chosen in sets.items():
        if why_unweighed(chosen):
            print(f'| {name} | none | | | | the mass: motion alone |')
            continue
        found = np.array([weighed(chosen, frames) for _, frames in runs])
        loads, middle = np.array([load for load, _ in runs]), np.median(found[:, 1] - found[:, 0]) / 2
        holds = (found[:, 0] <= loads) & (loads <= found[:, 1])
        owners, lost = cylinders_of(chosen), ' and '.join(missing_pressures(chosen))
        print(f'| {name} | {", ".join(" and ".join(owners[k]) for k in chosen.weighing)} '
              f'| {mass_accuracy(chosen).all:.0f} kg | {holds.sum()} of {len(holds)} | {middle:.0f} kg '
              f'| {f"a load that changes while {lost} alone move is seen late" if lost else ""} |', flush=True)


if __name__ == '__main__':
    main()
