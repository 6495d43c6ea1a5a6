# SPDX-License-Identifier: Apache-2.0
"""Wrong zeros and gains of position sensors from the first sample on: whether the mass holds, and the sensor is named.

    tools/environment.sh python benchmarks/position_zeros.py [NAME ...] [--stddev 0.02] [--seconds 16]
        [--page docs/safety.md]

A random cycle with half the load. Each actuated coordinate reads 30 and 50 mm (0.03 and 0.05 rad) too much and too
little, and 1.03 times what it is; a run without an error comes first. ``--stddev``: what the files state of the zeros
of strokes, m; else as shipped. ``--page``: where the table is written. Four minutes.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ('', 'test/support')]

from machine_variants import changed, tree_of  # noqa: E402

from mbse_ros.machine import Machine, load_machine  # noqa: E402
from mbse_ros.report.files import write_between  # noqa: E402
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name  # noqa: E402
from mbse_ros.streams.pipeline import Pipeline  # noqa: E402
from mbse_ros.streams.records import PayloadEstimate, PayloadStatus  # noqa: E402

RUNS = {'patu655_lift': ('orifice', 'unknown'), 'patu655': ('orifice', 'unknown'), 'zx200': ('orifice', 'unknown'),
        'zx200_can': ('orifice',)}      # by machine, their valves
ERRORS: dict[str, Callable[[float], float]] = {
    **{f'{1e3 * size:+.0f}': lambda value, size=size: value + size      # type: ignore[misc]
       for size in (0.03, -0.03, 0.05, -0.05)}, 'x1.03': lambda value: 1.03 * value}


def estimates(machine: Machine, frames: list[SensorFrame], channel: str, error: Callable[[float], float]
              ) -> list[PayloadEstimate]:
    """Of a log in which one channel has an error."""
    pipeline = Pipeline(machine)
    return [output.payload for frame in frames for name, value in (*frame.commands.items(), *frame.samples.items())
            for output in pipeline.add(name, frame.stamp_ns, error(value) if name == channel else value)]


def observed(name: str, valve: str, stddev: float) -> Machine:
    """The machine as the observer knows it."""
    strokes = {key: item for key, item in tree_of(name)['sensors'].items() if item['kind'] == 'stroke'}
    stated = {f'sensors/{key}': {**item, 'bias': {'value': 0.0, 'stddev': stddev}} for key, item in strokes.items()}
    return Machine(changed(name, stated).description, valve) if stddev else load_machine(name, valve)


def main() -> None:
    """Print a line for each run, and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('names', nargs='*', default=list(RUNS))
    parser.add_argument('--stddev', type=float, default=0.0, help='m')
    parser.add_argument('--seconds', type=float, default=16.0)
    parser.add_argument('--page', type=Path)
    given = parser.parse_args()
    rows = []
    for name in given.names:
        plant = load_machine(name, 'orifice')
        load = 0.5 * plant.payload_data.limits[1]
        crane = SimulatedCrane(plant, load, 1, cycle_by_name('random', plant, 1).repeated(50))
        frames = list(crane.advance(round(1e9 * given.seconds)))
        channels = [f'position/{plant.coordinates[k]}' for k in plant.actuated]
        for valve in RUNS.get(name, ('orifice',)):
            machine, counts, wrong = observed(name, valve, given.stddev), np.zeros(4, dtype=int), 0.0
            for channel, kind in [('', 'right'), *((channel, kind) for channel in channels for kind in ERRORS)]:
                found = estimates(machine, frames, channel, ERRORS.get(kind, lambda value: value))
                last, known = found[-1], [item for item in found if item.status is PayloadStatus.UPDATING]
                holds = last.lower <= load <= last.upper
                named = bool(channel) and channel in last.reason
                twice = sum(abs(item.mass - load) > item.upper - item.lower for item in known) * 0.01
                print(f'{name}, {valve}, {channel} {kind}: {last.mass:.0f} ({last.lower:.0f} to {last.upper:.0f}) of '
                      f'{load:.0f} kg, {last.status.name}, outside twice {twice:.1f} s; {last.reason}', flush=True)
                if channel:
                    counts += [1, holds, named, not (holds or named)]
                    wrong += twice
            rows.append(f'| `{name}` | `{valve}` | {" | ".join(map(str, counts))} | {wrong / counts[0]:.1f} |')
    stated = f'a zero of +- {1e3 * given.stddev:g} mm stated' if given.stddev else 'files as shipped'
    table = '\n'.join([
        f'{datetime.date.today().isoformat()}, {stated}, {given.seconds:g} s, one seed:', '',
        '| machine | valve | runs | mass holds at the end | sensor named at the end | neither | outside twice the '
        'interval, s a run |', '|---|---|---|---|---|---|---|', *rows])
    print(table)
    if given.page:
        write_between(given.page, 'position zeros', table)


if __name__ == '__main__':
    main()
