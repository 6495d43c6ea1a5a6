# SPDX-License-Identifier: Apache-2.0
"""How well do cylinders follow a motion: by raw sensors, by the estimate, and by it with the feed-forward of its load?

    tools/environment.sh python benchmarks/tracking.py [--machine zx200,patu655] [--seeds 2] [--page F]

The controller of trajectory_node, `TrajectoryTracking`, moves a simulated machine, 100 Hz: all cylinders follow sines
of their own, 24 s, while the load changes unseen from a tenth to half of the largest and back. ``raw``: positions are
the samples, valves by their nominal flow alone. ``estimate``: positions are the estimated ones. ``pressures``: valves
against the estimated pressures. ``load``: against the forces that the motion takes with the estimated load, and
friction. RMS of the true pistons' distance from the wanted ones, mm, from 2 s on.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mbse_ros.machine import Machine, load_machine
from mbse_ros.report.files import write_between
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import StateEstimate
from mbse_ros.streams.tracking import TrackingSettings, TrajectoryTracking
from mbse_ros.streams.trajectory import Trajectory

# 1/s and 1/s^2 (a double pole): the best of gain 1, 2, 4 for each way on both machines
WAYS = {'raw': ('raw sensors, nominal flow of the valves', 4.0, 4.0, 'nominal'),
        'estimate': ('estimate, nominal flow of the valves', 4.0, 4.0, 'nominal'),
        'pressures': ('estimate, valves by its pressures', 1.0, 0.25, 'pressures'),
        'load': ('estimate, valves by the load and the motion', 2.0, 1.0, 'load')}
SECONDS, SETTLED = 24.0, 2.0
SWING = 0.12            # of the stroke, amplitude of the sines
SLOWEST = 5.0           # s, period of the first cylinder's; each next is 0.8 times as long, ...
FASTEST = 0.4           # ... but no faster than this share of the speed at the valve's nominal flow
LOADS = 0.1, 0.5, 0.1   # of the largest, for a third of the time each
APART = 0.05            # s, points of the trajectory


def wanted(machine: Machine, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, speeds, accelerations (c,) of the pistons, m and s, that begin at rest."""
    stroke = machine.stroke[:, 1]
    size = SWING * stroke
    areas = np.array([cylinder.piston_area for cylinder in machine.description.cylinders.values()])
    fastest = np.array([valve.nominal_flow.value for valve in machine.hydraulics.valves.values()]) / areas
    rate = np.minimum(2 * np.pi / (SLOWEST * 0.8 ** np.arange(len(stroke))), FASTEST * fastest / size)
    return (stroke / 2 + size * (1 - np.cos(rate * t)), size * rate * np.sin(rate * t),
            size * rate ** 2 * np.cos(rate * t))


def sines(machine: Machine) -> Trajectory:
    """The motion through points, at rest in the end."""
    times = np.arange(0.0, SECONDS + 1.0, APART)
    rows = [np.stack(column) for column in zip(*(wanted(machine, t) for t in times))]
    rows[1][-1] = rows[2][-1] = 0.0
    return Trajectory(machine.cylinders, times.tolist(), *rows)


def by_sensors(machine: Machine, state: StateEstimate, frame: SensorFrame) -> StateEstimate:
    """The state with the samples of the pistons in place of their estimates."""
    mean = state.mean.copy()
    for name in machine.cylinders:
        mean[-1, state.names.index(f'position/{name}')] = frame.samples[f'position/{name}']
    return replace(state, mean=mean)


def run(name: str, way: str, seed: int) -> np.ndarray:
    """RMS (c,), mm, of one run."""
    machine = load_machine(name)
    _, gain, integral, forward = WAYS[way]
    settings = TrackingSettings(gain=gain, integral_gain=integral, feed_forward=forward, path_tolerance=0.0)
    _, high = machine.payload_data.limits
    crane = SimulatedCrane(machine, LOADS[0] * high, seed, WorkCycle(0.5, (Move(0.0, SECONDS),)),
                           plant=plant_of(machine))
    pipeline, tracking, errors = Pipeline(machine), TrajectoryTracking(machine, settings), []
    commands, motion = dict.fromkeys(machine.valves, 0.0), sines(machine)
    for k in range(round(SECONDS * 100)):
        t = 0.01 * k
        crane.payload = high * LOADS[min(int(3 * t / SECONDS), 2)]
        frame = crane.frame(commands)
        for channel, value in (*frame.commands.items(), *frame.samples.items()):
            for output in pipeline.add(channel, frame.stamp_ns, value):
                state = output.state
                tracking.weigh(output.payload)
                done = tracking.process(by_sensors(machine, state, frame) if way == 'raw' else state)
                if done is not None:
                    assert done.outcome is None, done
                    commands = done.commands
                elif not tracking.busy:
                    tracking.follow(motion, start_ns=0)
        if t > SETTLED:
            errors.append(crane.coordinates[machine.pistons] - wanted(machine, t + 0.01)[0])
    return 1e3 * np.sqrt(np.mean(np.square(errors), axis=0))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', default='zx200,patu655')
    parser.add_argument('--seeds', type=int, default=2)
    parser.add_argument('--page', type=Path)
    given = parser.parse_args()
    names = given.machine.split(',')
    rows = [f'{datetime.date.today().isoformat()}, `python benchmarks/tracking.py`:', '',
            f'| distance, RMS, mm | {" | ".join(names)} |', '|---' * (1 + len(names)) + '|']
    for way in WAYS:
        found = [np.mean([run(name, way, seed) for seed in range(1, given.seeds + 1)], axis=0) for name in names]
        cells = [', '.join(f'{item:.2g}' for item in one) for one in found]
        rows.append(f'| {WAYS[way][0]} | {" | ".join(cells)} |')
        print(rows[-1], flush=True)
    if given.page:
        write_between(given.page, 'tracking', '\n'.join(rows))


if __name__ == '__main__':
    main()
