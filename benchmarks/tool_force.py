# SPDX-License-Identifier: Apache-2.0
"""Is the force at the tool right while the soil pushes, and none while a machine moves freely?

    tools/environment.sh python benchmarks/tool_force.py --keep out/tool_force --page docs/figures.md

Without ``--kind``: the rows of ROWS, 84 logs, half an hour on two cores that do nothing else. ``--keep``: a folder for
what each log gives to the force at the tool: the next call then takes a tenth of the time, because the observer does
not depend on the force. ``--kept``: the table of the logs that are there already.

Simulated machines move at random, with a load that stays. From 6, 12 and 18 s on, for 3 s each, a soil of 3 to 50 kN
pushes at `payload.contact` against its motion; or none does. The observer's file has numbers drawn from their
deviations (`--right`: those of the machine). Each tenth segment after 5 s counts, while the size of the soil's force
is constant over its window. The force is a mean over the window, and so is the true one: errors of size and direction,
and whether the 95 % ellipse of x and z holds it (a mean over the draws, and its standard error); beside it whether
that holds the true force in the middle of the window, which turns with the tool's motion. Without soil, or between
two, the true force is 0: `holds` of 0 kN are these segments. `sure`: segments of free motion whose force `estimate`
would call not chance. ``stated``: shares of the segments whose direction is said to be known, within 10 degrees of the
true one.
"""

from __future__ import annotations

import argparse
import datetime
import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import casadi as ca
import numpy as np
from machine_changes import changed_machine
from wrong_numbers import draw, with_errors

from mbse_ros.machine import Machine
from mbse_ros.machine.frames import turned
from mbse_ros.offline.track import SURE
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.payload.tool_force import ToolForce, ToolForces
from mbse_ros.report.files import write_between
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.simulation.cycle import WorkCycle
from mbse_ros.simulation.plant import DRAGGED, Plant
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.studies.many import add_workers, many

ROWS = {'zx200:orifice': ((3e3, 20e3, 50e3), 24), 'patu655:orifice': ((10e3,), 12)}     # soils, N, and draws
CONTACTS = {'patu655': 'extension.tip'}     # of machines whose file has none
ELLIPSE = 5.9915        # 95 % of chi-square with 2 degrees of freedom
EVERY = 10          # segments
BEGIN, END = 5.0, 24.0      # s
PUSHES = 6.0, 12.0, 18.0    # s, when the soil begins, ...
PUSHED, RISE = 3.0, 0.3     # ... for how long, and in which time it rises and falls, s
PLANE = [0, 2]      # x and z


@dataclass(frozen=True)
class Job:
    """A simulated log, and the kind of valves with which it is estimated; ``soil``, N; ``keep``: see the options."""

    machine: str
    valve: str
    seed: int
    soil: float
    right: bool
    keep: Path | None

    @property
    def path(self) -> Path | None:
        """Where it is kept."""
        return self.keep / f'{self.machine}_{self.valve}_{self.soil:.0f}_{self.seed}.pkl' if self.keep else None


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


class Kept(NamedTuple):
    """What the force at the tool was given, call by call, and the truth at the samples: stamps (n,), forces in the
    plane (n, 2), N, shares of the soil (n,); ``numbers`` that the observer took for right."""

    calls: list[tuple]
    stamps: np.ndarray
    forces: np.ndarray
    shares: np.ndarray
    numbers: np.ndarray


def run(job: Job) -> list[list[float]]:
    """Rows of segments: the soil's share; whether there is a force; size of the true one, errors of size, N, and
    direction, deg; square of the error over its covariance, of the mean and of the middle; whether it would be called
    not chance; standard deviation of the direction, deg, and whether it is known."""
    path = job.path
    if path is not None and path.exists():
        kept = Kept(*pickle.loads(path.read_bytes()))
    else:
        kept = simulated(job)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pickle.dumps(tuple(kept)))
    machine = machine_of(job.machine, job.valve)
    own = machine.parameters.mean.copy()
    machine.parameters.assume(kept.numbers)
    forces = ToolForces(machine, PayloadSettings())
    found = [forces.process(*given) for given in kept.calls]
    machine.parameters.assume(own)
    return [row for one in found[EVERY - 1::EVERY] for row in rows_of(kept, one)]


def simulated(job: Job) -> Kept:
    """A log, and what the observer makes of it, with numbers that are wrong at random."""
    plant_machine, machine = machine_of(job.machine), machine_of(job.machine, job.valve)
    load = np.random.default_rng([job.seed, int(job.soil)]).uniform(0.1, 0.9) * plant_machine.payload_data.limits[1]
    soil = [(0.0, 0.0)]
    for t in PUSHES if job.soil else ():
        soil += [(t, 0.0), (t + RISE, 1.0), (t + PUSHED - RISE, 1.0), (t + PUSHED, 0.0)]
    cycle = replace(cycle_by_name('random', plant_machine, job.seed), load=((0.0, 1.0), (1e6, 1.0)), soil=tuple(soil))
    crane = SimulatedCrane(plant_machine, load, job.seed, cycle, plant=plant(job.machine), soil=job.soil)
    frames = list(crane.advance(round(1e9 * END)))
    truth = true_forces(machine, frames, cycle, job.soil)
    own, (mean, errors) = machine.parameters.mean.copy(), draw(machine, np.random.default_rng([job.seed, 7]))
    if job.right:
        mean = own
    else:
        machine.parameters.assume(mean)
        frames = with_errors(frames, errors)
    with given_to_forces() as calls:
        pipeline = Pipeline(machine)
        for frame in frames:
            for channel, value in [*frame.commands.items(), *frame.samples.items()]:
                if channel in machine.channels or channel in machine.commands:
                    pipeline.add(channel, frame.stamp_ns, value)
    machine.parameters.assume(own)
    return Kept(calls, *truth, mean)


@contextmanager
def given_to_forces() -> Iterator[list[tuple]]:
    """Arguments of each call of ``ToolForces.process`` meanwhile; it finds nothing then."""
    calls, process = list[tuple](), ToolForces.process
    ToolForces.process = lambda self, *given: calls.append(given)       # type: ignore[assignment,method-assign]
    try:
        yield calls
    finally:
        ToolForces.process = process        # type: ignore[method-assign]


def true_forces(machine: Machine, frames: list[SensorFrame], cycle: WorkCycle, soil: float
                ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Stamps, forces along the axes of the tool in its plane, N, and shares of the soil, at the samples."""
    system, payload = machine.system, machine.payload_data
    axes = turned(system.frames[payload.contact.partition('.')[0]].rotation)
    J = axes.T @ ca.jacobian(system.points[payload.contact], system.q) @ machine.reduced.R
    levers = ca.Function('levers', [system.q, system.values.symbol], [J])
    numbers, forces = machine.parameters.numbers(machine.parameters.mean), []
    stamps = np.array([frame.stamp_ns for frame in frames])
    shares = np.array([cycle.soil_at(t) for t in (stamps - stamps[0]) * 1e-9])
    for frame, share in zip(frames, shares):
        velocity = levers(machine.position(frame.position), numbers).full() @ frame.velocity
        forces.append((-velocity * soil * share / np.sqrt(velocity @ velocity + DRAGGED ** 2))[PLANE])
    return stamps, np.array(forces), shares


def rows_of(kept: Kept, found: ToolForce) -> list[list[float]]:
    """Of the window of a force; none where the soil's size changes in it, or at the beginning."""
    half, (_, stamps, forces, shares, _) = PayloadSettings().force_window / 2, kept
    t = (stamps - found.stamp_ns) * 1e-9 + half
    middle, t0 = int(np.argmin(np.abs(t))), (found.stamp_ns - stamps[0]) * 1e-9 - half
    own = shares[np.abs(t) <= half + 1e-6]
    if np.ptp(own) > 0.0 or t0 < BEGIN:
        return []
    if not found.known:
        return [[own[0], 0.0, *[np.nan] * 5, 0.0, np.nan, 0.0]]
    weights = np.maximum(1.0 - (t / half) ** 2, 0.0) ** 2
    force, P = found.force[PLANE], found.covariance[np.ix_(PLANE, PLANE)]
    mean = weights @ forces / weights.sum()
    size, true = np.linalg.norm(force), np.linalg.norm(mean)
    angle = np.degrees(np.arccos(np.clip(force @ mean / max(size * true, 1e-9), -1.0, 1.0)))
    squares = [(force - true) @ np.linalg.solve(P, force - true) for true in (mean, forces[middle])]
    sure = (np.abs(found.force) > SURE * found.stddev).any() or abs(found.component) > SURE * found.component_stddev
    pointing = found.pointing
    return [[own[0], 1.0, true, size - true, angle, *squares, float(sure),
             np.degrees(pointing.direction_stddev), float(pointing.known)]]


def line(title: tuple, rows: np.ndarray) -> dict:
    """Figures of some segments, rows as of ``run`` with their draw in a last column."""
    known = rows[rows[:, 1] > 0]
    found = {'machine': title[0], 'valve': title[1], 'soil': title[2], 'segments': len(rows), 'known':
             len(known) / len(rows), 'draws': len(np.unique(rows[:, -1]))}
    if not len(known):
        return found
    size = np.abs(known[:, 3])
    holds = np.array([np.mean(known[known[:, -1] == draw, 5] < ELLIPSE) for draw in np.unique(known[:, -1])])
    found |= {'holds': holds.mean(), 'holds_error': holds.std(ddof=1) / np.sqrt(len(holds)) if len(holds) > 1 else
              np.nan, 'size_95': np.quantile(size, 0.95), 'sure': int(known[:, 7].sum()),
              'minutes': len(rows) * EVERY * 0.01 / 60}
    if title[2] > 0:
        stated = known[known[:, 9] > 0]
        found |= {'holds_middle': np.mean(known[:, 6] < ELLIPSE), 'angle_95': np.quantile(known[:, 4], 0.95),
                  'size_within': np.mean(size < 0.05 * known[:, 2] + 300.0),
                  'angle_within': np.mean(known[:, 4] < 10.0), 'angle_stddev': np.median(known[:, 8]),
                  'stated': len(stated) / len(known),
                  'stated_within': np.mean(stated[:, 4] < 10.0) if len(stated) else np.nan,
                  'angle_holds': np.mean(stated[:, 4] < 1.96 * stated[:, 8]) if len(stated) else np.nan}
    return {key: value if isinstance(value, (str, int)) else float(value) for key, value in found.items()}


def table(lines: list[dict]) -> str:
    """Of the segments with soil, and of those without."""
    rows = ['| machine, valves | soil, kN | draws | force known | ellipse holds (standard error) | size within 5 % + '
            '300 N | direction within 10 degrees | its standard deviation, median | direction stated | of these within '
            '10 degrees | within 1.96 deviations |', '|---' * 11 + '|']
    free = ['| machine, valves | minutes | force known | ellipse holds 0 (standard error) | 95 % of the forces are '
            'below, N | segments with a force that `estimate` would name |', '|---' * 6 + '|']
    for found in lines:
        kind, holds = f'| `{found["machine"]}`, {found["valve"]}', 'none known'
        if 'holds' in found:
            holds = f'{found["holds"]:.3f} ({found["holds_error"]:.3f})'
        if not found['soil']:
            free.append(f'{kind} | {found["minutes"]:.1f} | {found["known"]:.2f} | {holds} | {found["size_95"]:.0f} | '
                        f'{found["sure"]} of {found["segments"]} |')
        elif 'holds' in found:
            rows.append(f'{kind} | {found["soil"] / 1e3:.0f} | {found["draws"]} | {found["known"]:.2f} | {holds} | '
                        f'{found["size_within"]:.2f} | {found["angle_within"]:.2f} | {found["angle_stddev"]:.1f} deg | '
                        f'{found["stated"]:.2f} | {found["stated_within"]:.2f} | {found["angle_holds"]:.2f} |')
    return '\n'.join([*rows, '', 'Free motion, before, between and after the pushes:', '', *free])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--kind', nargs='*', help='machine:valve; else ROWS')
    parser.add_argument('--seeds', type=int, default=5, help='of each kind')
    parser.add_argument('--soil', nargs='*', type=float, default=[0.0, 3e3, 10e3, 20e3, 50e3], help='N; 0: free motion')
    parser.add_argument('--right', action='store_true', help="the observer has the machine's own numbers")
    parser.add_argument('--keep', type=Path, help='folder for what the logs give to the force')
    parser.add_argument('--kept', action='store_true', help='only logs that are in that folder already')
    add_workers(parser, 2)
    parser.add_argument('--json', type=Path)
    parser.add_argument('--page', type=Path, help='where the table is written')
    args = parser.parse_args()
    rows = {kind: (tuple(args.soil), args.seeds) for kind in args.kind} if args.kind else ROWS
    jobs = [Job(*kind.split(':'), 1 + seed, soil, args.right, args.keep)
            for kind, (soils, draws) in rows.items() for soil in soils for seed in range(draws)]
    jobs = [job for job in jobs if not args.kept or job.path is not None and job.path.exists()]
    found: dict[tuple, list[list[float]]] = {}
    for job, segments in zip(jobs, many(run, jobs, args.jobs, args.cluster)):
        for row in segments:
            found.setdefault((job.machine, job.valve, job.soil if row[0] else 0.0), []).append(
                [*row, job.seed + 1000 * job.soil])
    lines = [line(title, np.array(found[title])) for title in sorted(found)]
    text = table(lines)
    print(text)
    if args.json:
        args.json.write_text(json.dumps({'rows': lines}, indent=1))
    if args.page:
        write_between(args.page, 'tool force', f'{datetime.date.today().isoformat()}:\n\n{text}')


if __name__ == '__main__':
    main()
