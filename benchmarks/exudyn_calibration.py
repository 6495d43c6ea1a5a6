# SPDX-License-Identifier: Apache-2.0
"""A machine that Exudyn moves, calibrated by the procedure's bags: are new lifts right? It shares no code with ours.

    python benchmarks/exudyn_calibration.py --machine patu655_lift --runs 2      # in an environment with Exudyn, too

Friction 30 %, masses 5 %, offsets of the pressures 50 kPa and the base by 1 deg (its gravity is turned), 1 sigma
each, differ from the file at random. The operator's commands are those of ``calibration.procedure`` on the package's
own plant with the same numbers; Exudyn plays them without looking, and the calibration sees what they did there. The
load of the procedure is known to 0.5 %. Then new lifts by Exudyn, weighed with the file as it is and with the
calibrated one. Exudyn takes two to five seconds for each of motion.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import calibration
import exudyn_machine
import numpy as np
import yaml
from exudyn_weighing import truth_of
from machine_reader import number, read_machine
from scipy.spatial.transform import Rotation

from mbse_ros.calibration.fit import KnownLoad
from mbse_ros.description.load import parse_mechanism
from mbse_ros.machine import Machine
from mbse_ros.offline.calibration.calibration_bags import Recording, calibrated
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.streams.pipeline import Pipeline

RAMP = 1e-3         # s, from one command to the next
EDGE = 0.005        # s left out at the end
Samples = dict[str, tuple[np.ndarray, np.ndarray]]


def true_numbers(machine: Machine, rng: np.random.Generator) -> np.ndarray:
    """Numbers (k,) of the plant: friction, masses, offsets, base at random, the others those of the file."""
    drawn, numbers = calibration.truth(machine, rng), np.array(machine.parameters.mean)
    for k, name in enumerate(machine.parameters.names):
        if name.endswith(('friction.scale', '.mass')) or name.startswith('base.') or (
                name.startswith('sensors.') and name.endswith('.offset')):
            numbers[k] = drawn[k]
    return numbers


def true_file(machine: Machine, numbers: np.ndarray, start: dict[str, float], folder: Path) -> Path:
    """The machine's file with the true friction, masses and base, and where it starts, for Exudyn."""
    data = yaml.safe_load(Path(machine.description.file).read_text())
    for name, value in zip(machine.parameters.names, numbers.tolist()):
        room, key, *rest = name.split('.')
        if name.endswith('friction.scale'):
            data['cylinders'][key]['friction']['scale'] = value
        elif room == 'bodies' and rest == ['mass']:
            data['bodies'][key]['mass'] = value
    angles = dict(zip(machine.parameters.names, numbers.tolist()))
    turned = Rotation.from_euler('xy', [angles.get('base.roll', 0.0), angles.get('base.pitch', 0.0)])
    down = turned.inv().apply([0.0, 0.0, -number(data['gravity'])])
    data['gravity'] = [f'{value!r} m/s^2' for value in down.tolist()]
    data['initial'] = {'position': start}
    data.setdefault('independent', list(machine.coordinates))
    path = folder / f'{machine.name}.yaml'
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path


def table_of(frames: list[SensorFrame], valve: str) -> tuple[tuple[float, float], ...]:
    """Commands of a valve over time, each held until the next."""
    found = [(0.0, 0.0)]
    for k, frame in enumerate(frames):
        wanted = frame.commands[f'command/{valve}']
        if wanted != found[-1][1]:
            found += [(0.01 * k, found[-1][1]), (0.01 * k + RAMP, wanted)]
    return tuple(found)


def moved(machine: Machine, path: Path, frames: list[SensorFrame], load: float, numbers: np.ndarray, seed: int
          ) -> Samples:
    """Samples with noise and offsets of Exudyn's motion under the commands of frames."""
    other, rng = read_machine(path), np.random.default_rng(seed)
    exudyn_machine.COMMANDS[other.name] = {valve: table_of(frames, valve) for valve in other.valves}
    data = exudyn_machine.Plant(other, load, 'held').run(0.01 * len(frames) - EDGE, 2.5e-4)
    offsets = dict(zip(machine.parameters.names, numbers - machine.parameters.mean))
    truth, found = truth_of(machine, data), {}
    for channel in machine.all_channels:
        values, key = truth[channel.name], f'sensors.{channel.sensor.name}.offset'
        offset = offsets.get(key, 0.0) if channel.kind == 'pressure' else 0.0
        found[channel.name] = (0.01 * np.arange(len(values)), values + offset + channel.sensor.stddev
                               * rng.standard_normal(len(values)))
    return found


def weigh(machine: Machine, samples: Samples, frames: list[SensorFrame]) -> tuple[float, float]:
    """Mass and half-width of its interval at the end, kg."""
    pipeline, outputs = Pipeline(machine), []
    for k, time_ in enumerate(next(iter(samples.values()))[0]):
        stamp = round(1e9 * time_)
        for channel in machine.commands:
            outputs += pipeline.add(channel, stamp, frames[k].commands[channel])
        for channel in machine.channels:
            outputs += pipeline.add(channel, stamp, samples[channel][1][k])
    last = outputs[-1].payload
    return last.mass, last.upper - last.mass


def run(name: str, number: int, lifts: int) -> list[tuple[float, float, float, float, float]]:
    """Load, errors and half-widths, kg, with the file and with the calibrated one, of new lifts."""
    text, prior, shipped, plant, steps, balance = calibration.parts(name)
    rng = np.random.default_rng([number, 7])
    numbers, (low, high) = true_numbers(prior, rng), prior.description.payload.limits
    known, still = steps.load * (1 + calibration.KNOWN * rng.standard_normal()), WorkCycle(0.3, (Move(0.0, 1.0),))

    def exudyn(frames: list[SensorFrame], load: float, seed: int, start: dict[str, float]) -> Samples:
        with tempfile.TemporaryDirectory() as folder:
            return moved(prior, true_file(prior, numbers, start, Path(folder)), frames, load, numbers, seed)

    def start_of(crane: SimulatedCrane) -> dict[str, float]:
        return {cylinder: float(crane.coordinates[place]) for cylinder, place in zip(
            prior.cylinders, prior.pistons)}
    recordings = []
    for k, (label, load, poses) in enumerate((('empty', 0.0, steps.poses), ('load', known, steps.loaded))):
        crane = SimulatedCrane(prior, load, number, still, parameters=numbers, plant=plant)
        start = start_of(crane)
        frames = calibration.procedure(crane, poses)
        begin = time.perf_counter()
        recordings.append(Recording(label, exudyn(frames, load, 10 * number + k, start), '2026-01-01'))
        print(f'{label}: {0.01 * len(frames):.0f} s of motion in {time.perf_counter() - begin:.0f} s', flush=True)
    loads = {'load': KnownLoad('known', steps.load, calibration.KNOWN * steps.load)}
    found = calibrated(prior, text, recordings, loads, balance)
    after = Machine(parse_mechanism(found.text, name))
    for item in found.parameters:
        if item.key.endswith(('friction.scale', '.mass', '.offset', 'base.roll', 'base.pitch')):
            print(f'{item.key}: true {numbers[prior.parameters.names.index(item.key)]:.5g}, found {item.after:.5g} +- '
                  f'{item.stddev_after:.2g}', flush=True)
    rows = []
    for k in range(lifts):
        load, seed = low + rng.uniform(0.1, 0.8) * (high - low), 100 * number + 50 + k
        cycle = cycle_by_name(calibration.LIFTS.get(name, 'random'), prior, seed)
        crane = SimulatedCrane(prior, load, seed, cycle, parameters=numbers, plant=plant)
        start, frames = start_of(crane), crane.run()
        samples = exudyn(frames, load, seed, start)
        (mass, half), (better, narrow) = weigh(shipped, samples, frames), weigh(after, samples, frames)
        rows.append((load, mass - load, half, better - load, narrow))
        print(f'{name} {number}: {load:.1f} kg, as shipped {mass - load:+.2f} (+-{half:.1f}), calibrated '
              f'{better - load:+.2f} (+-{narrow:.1f})', flush=True)
    return rows


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', default='patu655_lift')
    parser.add_argument('--runs', type=int, default=1)
    parser.add_argument('--lifts', type=int, default=2)
    args = parser.parse_args()
    rows = np.array([row for number in range(args.runs) for row in run(args.machine, number, args.lifts)])
    low, high = calibration.parts(args.machine)[1].description.payload.limits
    for label, error, half in (('as shipped', rows[:, 1], rows[:, 2]), ('calibrated', rows[:, 3], rows[:, 4])):
        mean = np.abs(error).mean()
        print(f'{label}: mean error {mean:.2f} kg, {100 * mean / (high - low):.2f} % of full scale, '
              f'{int((np.abs(error) <= half).sum())} of {len(error)} intervals hold')


if __name__ == '__main__':
    main()
