# SPDX-License-Identifier: Apache-2.0
"""Is a load that changes noticed, and no change reported where there is none?

    tools/environment.sh python benchmarks/load_changes.py --machine zx200 --hours 0.5 --changes 20

All cylinders of a simulated machine move at random, the numbers of its file right, the load half a full scale.
`--hours` without a change: every load too many counts, and every time that the payload becomes CHANGING after its first
mass.
`--changes` runs in which the load grows or falls by `--share` of the full scale within 0.05 s while the machine moves:
noticed when the payload is CHANGING, or the mass is nearer to the new load than to the old one; s of motion until then.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from machine_accuracy import CYCLES
from machine_changes import changed_machine
from wrong_numbers import plant

from mbse_ros.offline.log_loads import LogLoads
from mbse_ros.scale.stage import ScaleStage
from mbse_ros.simulation.crane import SimulatedCrane, cycle_by_name
from mbse_ros.streams.pipeline import Output, Pipeline
from mbse_ros.streams.records import PayloadStatus
from mbse_ros.studies.many import add_workers, many

VALVES = 'orifice', 'unknown'
MOVING = 0.006      # m/s or rad/s of a coordinate, from which the machine moves
BEGIN = 10.0        # s of motion at the change
EVER = 1e6          # s
LATE = 2.0          # s of motion in which a change is to be noticed


@dataclass(frozen=True)
class Job:
    """A run; ``change``, share of the full scale."""

    machine: str
    seed: int
    change: float


def run(job: Job) -> list[dict]:
    """One log, with each kind of valve."""
    machine = changed_machine(job.machine)
    scale = machine.description.payload.limits[1]
    cycle = cycle_by_name('random', machine, job.seed)
    motion = frames = SimulatedCrane(machine, 0.5 * scale, job.seed, cycle, plant=plant(job.machine)).run()
    moved = np.cumsum([(np.abs(f.velocity).max() > MOVING) * 0.01 for f in motion])
    t = np.array([(f.stamp_ns - motion[0].stamp_ns) * 1e-9 for f in motion])
    when = float(t[np.argmax(moved > BEGIN)])
    if job.change:
        load = (0.0, 1.0), (when, 1.0), (when + 0.05, 1.0 + 2 * job.change), (EVER, 1.0 + 2 * job.change)
        frames = SimulatedCrane(machine, 0.5 * scale, job.seed, replace(cycle, load=load),
                                plant=plant(job.machine)).run()
        moved = np.cumsum([(np.abs(f.velocity).max() > MOVING) * 0.01 for f in frames])
    rows = []
    for valve in VALVES:
        pipeline, outputs = Pipeline(changed_machine(job.machine, valve)), []
        for frame in frames:
            for name, value in [*frame.commands.items(), *frame.samples.items()]:
                if name in pipeline.machine.channels or name in pipeline.machine.commands:
                    outputs += pipeline.add(name, frame.stamp_ns, value)
        times = [(o.payload.stamp_ns - frames[0].stamp_ns) * 1e-9 for o in outputs]
        row = {'machine': job.machine, 'valve': valve, 'seed': job.seed, 'change': job.change, 'seconds': float(t[-1])}
        if job.change:
            old, new = 0.5 * scale, (0.5 + job.change) * scale
            seen = next((k for k, o in enumerate(outputs) if times[k] > when and noticed(o, old, new)), None)
            row['noticed'] = None if seen is None else float(np.interp(times[seen], t, moved)) - BEGIN
        else:
            row['false'] = alarms(outputs)
            log = LogLoads(ScaleStage(pipeline.machine))
            for output in outputs:
                log.take(output)
            log.close()
            row['loads'] = len(log.loads)
        rows.append(row)
    return rows


def noticed(output: Output, old: float, new: float) -> bool:
    """Whether the payload says that the load is another."""
    p = output.payload
    return p.status is PayloadStatus.CHANGING or abs(p.mass - new) < abs(p.mass - old)


def alarms(outputs: list[Output]) -> int:
    """How often the payload becomes CHANGING after its first mass counted."""
    status = [o.payload.status for o in outputs]
    first = next((k for k, item in enumerate(status) if item is PayloadStatus.UPDATING), len(status))
    changing = [item is PayloadStatus.CHANGING for item in status[first:]]
    return sum(now and not before for before, now in zip(changing, changing[1:]))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', nargs='*', default=list(CYCLES))
    parser.add_argument('--hours', type=float, default=0.1, help='without a change, of each machine and kind of valve')
    parser.add_argument('--changes', type=int, default=10)
    parser.add_argument('--share', type=float, default=0.2)
    add_workers(parser, 2)
    parser.add_argument('--json', type=Path)
    args = parser.parse_args()
    jobs = [Job(name, 1000 + k, 0.0) for name in args.machine for k in range(round(args.hours * 3600 / 26.0))]
    jobs += [Job(name, 2000 + k, args.share * (-1) ** k) for name in args.machine for k in range(args.changes)]
    rows = [row for some in many(run, jobs, args.jobs, args.cluster) for row in some]
    print('machine      valve     hours  false  loads too many   changes  noticed  within 2 s of motion  last, s')
    for name, valve in product(args.machine, VALVES):
        own = [row for row in rows if row['machine'] == name and row['valve'] == valve]
        calm, changed = [r for r in own if not r['change']], [r['noticed'] for r in own if r['change']]
        found = [item for item in changed if item is not None]
        print(f'{name:12} {valve:8} {sum(r["seconds"] for r in calm) / 3600:6.2f} {sum(r["false"] for r in calm):6}'
              f' {sum(r["loads"] - 1 for r in calm):15} {len(changed):9} {len(found):8}'
              f' {sum(item <= LATE for item in found):21} {max(found, default=float("nan")):8.2f}', flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + '\n')


if __name__ == '__main__':
    main()
