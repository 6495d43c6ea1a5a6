# SPDX-License-Identifier: Apache-2.0
"""Is the force at the tool right while a machine digs, and none while it moves freely?

    tools/environment.sh python benchmarks/tool_force.py --seeds 10

Simulated excavators dig (cycle `dig`, twice, the second time counts) with a load that stays, against a soil of 3 to 50
kN at `payload.contact`; and move at random without soil. The observer's file has numbers drawn from their deviations
(`--right`: those of the machine). Each tenth segment is compared with the true force in the middle of its window, while
the soil's force is constant over the window: errors of size and direction, whether the 95 % ellipse of x and z holds
it, and the same of segments in which all cylinders move (near standstill the friction is as wide as its bounds).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import casadi as ca
import numpy as np
from machine_changes import changed_machine
from wrong_numbers import draw, plant, with_errors

from mbse_ros.machine import Machine
from mbse_ros.machine.frames import turned
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.payload.tool_force import ToolForce
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name
from mbse_ros.simulation.cycle import WorkCycle
from mbse_ros.simulation.plant import DRAGGED
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.studies.many import add_workers, many

MACHINES = 'zx200', 'zx200_can'
VALVES = 'orifice', 'unknown'
ELLIPSE = 5.9915        # 95 % of chi-square with 2 degrees of freedom
EVERY = 10          # segments
MOVING = 0.02       # m/s of each piston
PLANE = [0, 2]      # x and z


@dataclass(frozen=True)
class Job:
    """A run; ``soil``, N; 0: random motion."""

    machine: str
    valve: str
    seed: int
    soil: float
    right: bool


def run(job: Job) -> list[list[float]]:
    """Rows of segments: whether there is a force; size of the true one, errors of size, N, and direction, deg; square
    of the error over its covariance; whether all pistons move."""
    machine = changed_machine(job.machine, job.valve)
    rng = np.random.default_rng([job.seed, int(job.soil)])
    load = rng.uniform(0.1, 0.9) * machine.payload_data.limits[1]
    cycle = cycle_by_name('dig' if job.soil else 'random', machine, job.seed)
    cycle = replace(cycle.repeated(2), load=((0.0, 1.0), (1e6, 1.0)))
    crane = SimulatedCrane(machine, load, job.seed, cycle, plant=plant(job.machine), soil=job.soil)
    frames = list(crane.advance(29_000_000_000))
    own, (mean, errors) = machine.parameters.mean.copy(), draw(machine, rng)
    truth = TrueForce(machine, frames, cycle, job.soil)
    if not job.right:
        machine.parameters.assume(mean)
        frames = with_errors(frames, errors)
    pipeline, rows = Pipeline(machine), []
    for frame in frames:
        for channel, value in [*frame.commands.items(), *frame.samples.items()]:
            if channel not in machine.channels and channel not in machine.commands:
                continue
            for output in pipeline.add(channel, frame.stamp_ns, value):
                if output.state.sequence % EVERY == 0 and output.payload.tool_force is not None:
                    rows += truth.row(output.state.stamp_ns, output.payload.tool_force)
    machine.parameters.assume(own)
    return rows


class TrueForce:
    """Forces of a run, along the axes of the tool."""

    def __init__(self, machine: Machine, frames: list[SensorFrame], cycle: WorkCycle, soil: float) -> None:
        system, payload = machine.system, machine.payload_data
        axes = turned(system.frames[payload.contact.partition('.')[0]].rotation)
        J = axes.T @ ca.jacobian(system.points[payload.contact], system.q) @ machine.reduced.R
        self._levers = ca.Function('levers', [system.q, system.values.symbol], [J, machine.piston_rates])
        self._numbers = machine.parameters.numbers(machine.parameters.mean)
        self._machine, self._frames, self._cycle, self._soil = machine, frames, cycle, soil
        self._stamps = np.array([frame.stamp_ns for frame in frames])

    def row(self, stamp_ns: int, found: ToolForce) -> list[list[float]]:
        """Of a window that ends at a stamp; none where the force changes in it, or before the second dig."""
        half = PayloadSettings().force_window / 2
        frame = self._frames[int(np.argmin(np.abs(self._stamps - stamp_ns + half * 1e9)))]
        t = (frame.stamp_ns - self._stamps[0]) * 1e-9
        shares = {self._cycle.soil_at(t + dt) for dt in (-half, 0.0, half)} if self._soil else {1.0}
        if shares != {1.0} or t < (15.0 if self._soil else 5.0):
            return []
        q = self._machine.position(frame.position)
        J, S = (part.full() for part in self._levers(q, self._numbers))
        velocity = J @ frame.velocity
        force = (-velocity * self._soil / np.sqrt(velocity @ velocity + DRAGGED ** 2))[PLANE]
        if not found.known:
            return [[0.0, *[np.nan] * 5]]
        own, P = found.force[PLANE], found.covariance[np.ix_(PLANE, PLANE)]
        size, true = np.linalg.norm(own), np.linalg.norm(force)
        angle = np.degrees(np.arccos(np.clip(own @ force / max(size * true, 1e-9), -1.0, 1.0)))
        return [[1.0, true, size - true, angle, (own - force) @ np.linalg.solve(P, own - force),
                 float((np.abs(S @ frame.velocity) > MOVING).all())]]


def line(title: tuple, rows: np.ndarray) -> dict:
    """Figures of some segments."""
    known = rows[rows[:, 0] > 0]
    size, inside = np.abs(known[:, 2]), known[:, 4] < ELLIPSE
    room, moving = 0.05 * known[:, 1] + 300.0, known[:, 5] > 0
    found = {'segments': len(rows), 'known': len(known) / len(rows), 'size_95': float(np.quantile(size, 0.95)),
             'size_within': float(np.mean(size < room)), 'angle_95': float(np.quantile(known[:, 3], 0.95)),
             'angle_within': float(np.mean(known[:, 3] < 10.0)), 'holds': float(np.mean(inside)),
             'moving': int(moving.sum()), 'holds_moving': float(np.mean(inside[moving])) if moving.any() else np.nan}
    print(f'{title[0]:10} {title[1]:8} {title[2] / 1e3:5.0f} {found["segments"]:9} {found["known"]:6.2f}'
          f' {found["size_95"]:9.0f} {found["size_within"]:8.2f} {found["angle_95"]:9.1f} {found["angle_within"]:8.2f}'
          f' {found["holds"]:7.3f} {found["holds_moving"]:7.3f} of {found["moving"]}', flush=True)
    return {'machine': title[0], 'valve': title[1], 'soil': title[2], **found}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', nargs='*', default=list(MACHINES))
    parser.add_argument('--valve', nargs='*', default=list(VALVES))
    parser.add_argument('--seeds', type=int, default=5)
    parser.add_argument('--soil', nargs='*', type=float, default=[0.0, 3e3, 10e3, 25e3, 50e3], help='N; 0: free motion')
    parser.add_argument('--right', action='store_true', help="the observer has the machine's own numbers")
    add_workers(parser, 2)
    parser.add_argument('--json', type=Path)
    args = parser.parse_args()
    kinds = list(product(args.machine, args.valve, args.soil))
    jobs = [Job(name, valve, 1 + seed, soil, args.right) for name, valve, soil in kinds for seed in range(args.seeds)]
    runs = many(run, jobs, args.jobs, args.cluster)
    print('machine    valve      kN  segments  known  size 95%  5%+300N  angle 95%  <10 deg  holds   holds, all move')
    table = []
    for name, valve, soil in kinds:
        rows = [row for job, some in zip(jobs, runs) if (job.machine, job.valve, job.soil) == (name, valve, soil)
                for row in some]
        table.append(line((name, valve, soil), np.array(rows)))
    if args.json:
        args.json.write_text(json.dumps({'rows': table}, indent=1))


if __name__ == '__main__':
    main()
