# SPDX-License-Identifier: Apache-2.0
"""Which sensors of a machine suffice to weigh: the tables of docs/sensors.md.

python benchmarks/sensor_sets.py [--machine zx200] [--seeds 2] [--first 1]
python benchmarks/sensor_sets.py --runs out/sets.json [--machine zx200,zx200_can] [--sets boom,arm+bucket,-arm_rod]
    [--cycles dig,boom,random] [--shares 0,0.16,0.8] [--seeds 20] [--drop 2]

Each set weighs simulated cycles of a machine whose uncertain numbers are drawn from the file: loads whose 95 % interval
holds the true mass at the end of the cycle, and the middle of their half-widths. With ``--runs``: one row for each run,
kept in the file, which a second start continues, and a table of all its rows. A set is cylinders with all their
pressures, or sensors that are left out; ``--drop 2``: each pressure and each pair, and each position, left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from mbse_ros.bags.channel_samples import Sample
from mbse_ros.errors import MbseError
from mbse_ros.filters.observability.machine import mass_accuracy
from mbse_ros.machine import Machine, load_machine
from mbse_ros.machine.equations import actuators_of, missing_pushes, why_unweighed
from mbse_ros.offline.bag import estimate_samples
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.simulation.plant import Plant
from mbse_ros.streams.records import PayloadStatus

CYCLES, SHARES = ('boom', 'random'), (0.0, 0.16, 0.8)       # of the largest load


def reduced(machine: Machine, cylinders: tuple[str, ...], sides: tuple[str, ...] = ('piston', 'rod')) -> Machine:
    """The machine with the pressure sensors of these cylinders alone."""
    kept = {name for name, volume in machine.hydraulics.volumes.items()
            if all(cylinder in cylinders and side in sides for cylinder, side in volume.chambers)}
    d = machine.description
    return Machine(replace(d, sensors={name: sensor for name, sensor in d.sensors.items()
                                       if sensor.kind != 'pressure' or sensor.volume in kept}))


def without(machine: Machine, names: Sequence[str]) -> Machine:
    """The machine without these sensors."""
    d = machine.description
    return Machine(replace(d, sensors={name: sensor for name, sensor in d.sensors.items() if name not in names}))


def machine_with(machine: Machine, chosen: str) -> Machine:
    """The machine with a set of sensors by its words: 'boom+arm', or '-boom_rod-arm_angle'."""
    return (without(machine, chosen[1:].split('-')) if chosen.startswith('-') else
            reduced(machine, tuple(chosen.split('+'))))


def dropped(machine: Machine, most: int) -> list[str]:
    """Sets without up to so many pressure sensors, and without each other sensor."""
    sensors = machine.description.sensors
    pressures = [name for name, sensor in sensors.items() if sensor.kind == 'pressure']
    found = [names for count in range(1, most + 1) for names in combinations(pressures, count)]
    others = [(name,) for name in sensors if name not in pressures] if most else []
    return ['-' + '-'.join(names) for names in [*found, *others]]


@cache
def loaded(name: str) -> tuple[Machine, Plant]:
    """A machine and its plant."""
    machine = load_machine(name)
    return machine, plant_of(machine)


@cache
def cycle(name: str, kind: str, share: float, seed: int) -> tuple[SensorFrame, ...]:
    """Samples of a cycle of the true machine, and the load at each instant."""
    machine, plant = loaded(name)
    factor = machine.parameters.factor()
    drawn = machine.parameters.mean + factor @ np.random.default_rng([seed, 7]).standard_normal(factor.shape[1])
    return tuple(SimulatedCrane(machine, share * machine.payload_data.limits[1], seed,
                                cycle_by_name(kind, machine, seed), parameters=drawn, plant=plant).run())


def weighed(machine: Machine, frames: Sequence[SensorFrame]) -> dict[str, Any]:
    """Interval at the end and what hung there, kg, with its status; for how long the load was outside the interval at
    a stretch while UPDATING, s; or why nothing weighs."""
    inputs = {*machine.channels, *machine.commands}
    samples = [Sample(name, frame.stamp_ns, value) for frame in frames
               for name, value in {**frame.samples, **frame.commands}.items() if name in inputs]
    try:
        found = estimate_samples(samples, machine, {}, every=0.1)
    except MbseError as error:
        return {'refused': str(error)}
    stamps, states, last = found.track.stamp_ns, found.states, found.last.payload
    if why_unweighed(machine):
        return {'refused': last.reason}
    true = np.interp(stamps, [frame.stamp_ns for frame in frames], [frame.payload for frame in frames])
    outside = (found.track.status == PayloadStatus.UPDATING) & ((true < states.lower) | (states.upper < true))
    longest = now = 0.0
    for wrong, step in zip(outside[1:], np.diff(stamps) * 1e-9):
        now = now + step if wrong else 0.0
        longest = max(longest, now)
    return {'lower': last.lower, 'upper': last.upper, 'true': frames[-1].payload, 'status': last.status.name,
            'outside': longest}


def campaign(file: Path, args: argparse.Namespace) -> None:
    """Run what the file does not have yet, then print its table."""
    rows = json.loads(file.read_text(encoding='utf-8')) if file.is_file() else []
    done = {tuple(row['run']) for row in rows}
    file.parent.mkdir(parents=True, exist_ok=True)
    for seed in range(args.first, args.first + args.seeds):
        for name in args.machine.split(','):
            machine = loaded(name)[0]
            for kind in args.cycles.split(','):
                for share in map(float, args.shares.split(',')):
                    for chosen in [*filter(None, args.sets.split(',')), *dropped(machine, args.drop)]:
                        run = name, chosen, kind, share, seed
                        if run not in done:
                            try:
                                found = weighed(machine_with(machine, chosen), cycle(name, kind, share, seed))
                            except MbseError as error:
                                found = {'refused': str(error)}
                            rows.append({'run': run, **found})
                            file.write_text(json.dumps(rows), encoding='utf-8')
                    cycle.cache_clear()
    show_campaign(rows)


def show_campaign(rows: list[dict[str, Any]]) -> None:
    """A line for each machine, set and cycle."""
    print(f'{len(rows)} runs, {date.today()}\n\n| machine | set | cycle | intervals that hold at the end '
          '| half-width, kg: middle, largest | UPDATING or held | outside for more than 1 s while UPDATING |\n'
          '|---|---|---|---|---|---|---|')
    for key in dict.fromkeys(tuple(row['run'][:3]) for row in rows):
        own = [row for row in rows if tuple(row['run'][:3]) == key]
        some = [row for row in own if 'refused' not in row and row['upper'] == row['upper']]
        half = [(row['upper'] - row['lower']) / 2 for row in some] or [np.nan]
        holds = sum(row['lower'] <= row['true'] <= row['upper'] for row in some)
        known = sum(row['status'] in ('UPDATING', 'TOO_SLOW') for row in some)
        wrong = sum(row['outside'] > 1.0 for row in some)
        refused = next((row['refused'] for row in own if 'refused' in row), '')
        print(f'| {" | ".join(key)} | {holds} of {len(some)}' + (f', {len(own) - len(some)} without a mass: {refused}'
              if len(own) > len(some) else '') + f' | {np.median(half):.0f}, {np.max(half):.0f} | {known} | {wrong} |')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', default='zx200')
    parser.add_argument('--seeds', type=int, default=2)
    parser.add_argument('--first', type=int, default=1)
    parser.add_argument('--runs', type=Path)
    parser.add_argument('--sets', default='boom')
    parser.add_argument('--cycles', default='dig,boom,random')
    parser.add_argument('--shares', default='0,0.16,0.48,0.8')
    parser.add_argument('--drop', type=int, default=0)
    args = parser.parse_args()
    if args.runs is not None:
        return campaign(args.runs, args)
    machine = loaded(args.machine)[0]
    every = tuple(machine.cylinders)
    sets = {'all pressures': reduced(machine, every),
            **{f'both pressures of {name}': reduced(machine, (name,)) for name in every if len(every) > 1},
            f'the piston side of {every[0]}': reduced(machine, every[:1], ('piston',)),
            'no pressure': reduced(machine, ())}
    runs = [(args.machine, kind, share, seed) for kind in CYCLES for share in SHARES
            for seed in range(args.first, args.first + args.seeds)]
    print(f'{machine.name}, all positions measured, {len(runs)} cycles, {date.today()}\n')
    print('| pressure sensors | equations that weigh | half-width in a usual pose | intervals that hold | half-width '
          'at the end of a cycle | what is lost |\n|---|---|---|---|---|---|')
    for name, chosen in sets.items():
        if why_unweighed(chosen):
            print(f'| {name} | none | | | | the mass: motion alone |')
            continue
        rows = [weighed(chosen, cycle(*run)) for run in runs]
        middle = np.median([row['upper'] - row['lower'] for row in rows]) / 2
        holds = [row['lower'] <= row['true'] <= row['upper'] for row in rows]
        owners, lost = actuators_of(chosen), ' and '.join(missing_pushes(chosen))
        print(f'| {name} | {", ".join(" and ".join(owners[k]) for k in chosen.weighing)} '
              f'| {mass_accuracy(chosen).all:.0f} kg | {sum(holds)} of {len(holds)} | {middle:.0f} kg '
              f'| {f"a load that changes while {lost} alone move is seen late" if lost else ""} |', flush=True)


if __name__ == '__main__':
    main()
