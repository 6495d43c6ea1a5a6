# SPDX-License-Identifier: Apache-2.0
"""Is the force at the tool right while the soil pushes, and none while a machine moves freely?

    tools/environment.sh python benchmarks/tool_force.py --seeds 5 --json out/tool_force.json

Simulated machines move at random, with a load that stays. From 6, 12 and 18 s on, for 3 s each, a soil of 3 to 50 kN
pushes at `payload.contact` against its motion; or none does. The observer's file has numbers drawn from their
deviations (`--right`: those of the machine). Each tenth segment after 5 s counts, while the size of the soil's force is
constant over its window. The force is a mean over the window, and so is the true one: errors of size and direction, and
whether the 95 % ellipse of x and z holds it (a mean over the draws, and its standard error); beside it whether that
holds the true force in the middle of the window, which turns with the tool's motion. Without soil, or between two, the
true force is 0: `holds` of 0 kN are these segments. `sure`: segments of free motion whose force `estimate` would call
not chance.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
from machine_changes import changed_machine
from wrong_numbers import draw, with_errors

from mbse_ros.machine import Machine
from mbse_ros.machine.frames import turned
from mbse_ros.offline.track import SURE
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.payload.tool_force import ToolForce
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.simulation.cycle import WorkCycle
from mbse_ros.simulation.plant import DRAGGED, Plant
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.studies.many import add_workers, many

KINDS = 'zx200:orifice', 'zx200_can:orifice', 'zx200_can:unknown', 'patu655:orifice'
CONTACTS = {'patu655': 'extension.tip'}     # of machines whose file has none
ELLIPSE = 5.9915        # 95 % of chi-square with 2 degrees of freedom
EVERY = 10          # segments
BEGIN, END = 5.0, 24.0      # s
PUSHES = 6.0, 12.0, 18.0    # s, when the soil begins, ...
PUSHED, RISE = 3.0, 0.3     # ... for how long, and in which time it rises and falls, s
PLANE = [0, 2]      # x and z


@dataclass(frozen=True)
class Job:
    """A simulated log, and the kinds of valves with which it is estimated; ``soil``, N."""

    machine: str
    valves: tuple[str, ...]
    seed: int
    soil: float
    right: bool


@cache
def machine_of(name: str, valve: str | None = None) -> Machine:
    """A machine that has a contact, with a kind of valve (None: the file's)."""
    machine = changed_machine(name, valve)
    if name not in CONTACTS:
        return machine
    payload = replace(machine.description.payload, contact=CONTACTS[name])
    return Machine(replace(machine.description, payload=payload))


@cache
def plant(name: str) -> Plant:
    """The simulated machine, compiled once."""
    return plant_of(machine_of(name))


def run(job: Job) -> list[list[list[float]]]:
    """Rows of segments by the kind of valve: the soil's share; whether there is a force; size of the true one, errors
    of size, N, and direction, deg; square of the error over its covariance, of the mean and of the middle; whether it
    would be called not chance."""
    machine = machine_of(job.machine)
    load = np.random.default_rng([job.seed, int(job.soil)]).uniform(0.1, 0.9) * machine.payload_data.limits[1]
    soil = [(0.0, 0.0)]
    for t in PUSHES if job.soil else ():
        soil += [(t, 0.0), (t + RISE, 1.0), (t + PUSHED - RISE, 1.0), (t + PUSHED, 0.0)]
    cycle = replace(cycle_by_name('random', machine, job.seed), load=((0.0, 1.0), (1e6, 1.0)), soil=tuple(soil))
    crane = SimulatedCrane(machine, load, job.seed, cycle, plant=plant(job.machine), soil=job.soil)
    frames = list(crane.advance(round(1e9 * END)))
    return [estimate(job, machine_of(job.machine, valve), frames, cycle) for valve in job.valves]


def estimate(job: Job, machine: Machine, frames: list[SensorFrame], cycle: WorkCycle) -> list[list[float]]:
    """Rows of one log with one kind of valve."""
    own, (mean, errors) = machine.parameters.mean.copy(), draw(machine, np.random.default_rng([job.seed, 7]))
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
                    rows += truth.row(output.payload.tool_force)
    machine.parameters.assume(own)
    return rows


class TrueForce:
    """Forces of a run, along the axes of the tool."""

    def __init__(self, machine: Machine, frames: list[SensorFrame], cycle: WorkCycle, soil: float) -> None:
        system, payload = machine.system, machine.payload_data
        axes = turned(system.frames[payload.contact.partition('.')[0]].rotation)
        J = axes.T @ ca.jacobian(system.points[payload.contact], system.q) @ machine.reduced.R
        self._levers = ca.Function('levers', [system.q, system.values.symbol], [J])
        self._numbers = machine.parameters.numbers(machine.parameters.mean)
        self._machine, self._frames, self._cycle, self._soil = machine, frames, cycle, soil
        self._stamps = np.array([frame.stamp_ns for frame in frames])
        self._forces: dict[int, np.ndarray] = {}

    def _force(self, k: int) -> np.ndarray:
        """In the plane, N, at a sample."""
        if k not in self._forces:
            frame = self._frames[k]
            velocity = self._levers(self._machine.position(frame.position), self._numbers).full() @ frame.velocity
            size = self._soil * self._cycle.soil_at((frame.stamp_ns - self._stamps[0]) * 1e-9)
            self._forces[k] = (-velocity * size / np.sqrt(velocity @ velocity + DRAGGED ** 2))[PLANE]
        return self._forces[k]

    def row(self, found: ToolForce) -> list[list[float]]:
        """Of the window of a force; none where the soil's size changes in it, or at the beginning."""
        half = PayloadSettings().force_window / 2
        t = (self._stamps - found.stamp_ns) * 1e-9 + half
        middle, t0 = int(np.argmin(np.abs(t))), (found.stamp_ns - self._stamps[0]) * 1e-9 - half
        shares = {self._cycle.soil_at(t0 + dt) for dt in (-half, 0.0, half)}
        if len(shares) > 1 or t0 < BEGIN:
            return []
        share = shares.pop()
        if not found.known:
            return [[share, 0.0, *[np.nan] * 5, 0.0]]
        weights = np.maximum(1.0 - (t / half) ** 2, 0.0) ** 2
        own, P = found.force[PLANE], found.covariance[np.ix_(PLANE, PLANE)]
        force = sum(weights[k] * self._force(k) for k in np.flatnonzero(weights)) / weights.sum()
        size, true = np.linalg.norm(own), np.linalg.norm(force)
        angle = np.degrees(np.arccos(np.clip(own @ force / max(size * true, 1e-9), -1.0, 1.0)))
        squares = [(own - true) @ np.linalg.solve(P, own - true) for true in (force, self._force(middle))]
        sure = (np.abs(found.force) > SURE * found.stddev).any() or abs(found.component) > SURE * found.component_stddev
        return [[share, 1.0, true, size - true, angle, *squares, float(sure)]]


def line(title: tuple, rows: np.ndarray) -> dict:
    """Figures of some segments, rows as of ``run`` with their draw in a last column."""
    known = rows[rows[:, 1] > 0]
    if not len(known):
        print(f'{title[0]:10} {title[1]:11} {title[2] / 1e3:4.0f} {len(rows):9}   none known', flush=True)
        return {'machine': title[0], 'valve': title[1], 'soil': title[2], 'segments': len(rows), 'known': 0.0}
    size, soil = np.abs(known[:, 3]), title[2] > 0
    holds = np.array([np.mean(known[known[:, -1] == draw, 5] < ELLIPSE) for draw in np.unique(known[:, -1])])
    error = holds.std(ddof=1) / np.sqrt(len(holds)) if len(holds) > 1 else np.nan
    found = {'segments': len(rows), 'known': len(known) / len(rows), 'draws': len(holds), 'holds': holds.mean(),
             'holds_error': error, 'size_95': np.quantile(size, 0.95), 'sure': int(known[:, 7].sum())}
    text = (f'{title[0]:10} {title[1]:11} {title[2] / 1e3:4.0f} {found["segments"]:9} {found["known"]:6.2f}'
            f' {len(holds):5} {found["holds"]:6.3f} {error:6.3f} {found["size_95"]:9.0f}')
    if soil:
        found |= {'holds_middle': np.mean(known[:, 6] < ELLIPSE), 'angle_95': np.quantile(known[:, 4], 0.95),
                  'size_within': np.mean(size < 0.05 * known[:, 2] + 300.0),
                  'angle_within': np.mean(known[:, 4] < 10.0)}
        text += (f' {found["size_within"]:8.2f} {found["angle_95"]:9.1f} {found["angle_within"]:8.2f}'
                 f' {found["holds_middle"]:7.3f}')
    print(text if soil else f'{text}   sure: {found["sure"]}', flush=True)
    return {'machine': title[0], 'valve': title[1], 'soil': title[2], **{k: float(v) for k, v in found.items()}}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--kind', nargs='*', default=list(KINDS), help='machine:valve')
    parser.add_argument('--seeds', type=int, default=5)
    parser.add_argument('--soil', nargs='*', type=float, default=[0.0, 3e3, 10e3, 20e3, 50e3], help='N; 0: free motion')
    parser.add_argument('--right', action='store_true', help="the observer has the machine's own numbers")
    add_workers(parser, 2)
    parser.add_argument('--json', type=Path)
    args = parser.parse_args()
    valves: dict[str, tuple[str, ...]] = {}
    for kind in args.kind:
        name, _, valve = kind.partition(':')
        valves[name] = (*valves.get(name, ()), valve)
    jobs = [Job(name, some, 1 + seed, soil, args.right)
            for name, some in valves.items() for seed in range(args.seeds) for soil in args.soil]
    found: dict[tuple, list[list[float]]] = {}
    for job, tables in zip(jobs, many(run, jobs, args.jobs, args.cluster)):
        for valve, rows in zip(job.valves, tables):
            for row in rows:
                found.setdefault((job.machine, valve, job.soil if row[0] else 0.0), []).append([*row, job.seed])
    print('machine    valve         kN  segments  known draws  holds   s.e.  size 95%  5%+300N  angle 95%  <10 deg  '
          'middle')
    table = [line(title, np.array(found[title])) for title in sorted(found)]
    if args.json:
        args.json.write_text(json.dumps({'rows': table}, indent=1))


if __name__ == '__main__':
    main()
