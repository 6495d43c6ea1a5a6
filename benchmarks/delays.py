# SPDX-License-Identifier: Apache-2.0
"""Late pressures, stated in the file and not: the mass at the end, and how often the bands of the speeds hold.

    tools/environment.sh python benchmarks/delays.py [NAME ...] [--seeds 3] [--seconds 24] [--late 0.015]

Random cycles with half the load; all pressures are late by ``--late``, s. Two minutes for a machine.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ('', 'test/support')]

from machine_variants import changed, tree_of  # noqa: E402

from mbse_ros.machine import Machine  # noqa: E402
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name, plant_of  # noqa: E402
from mbse_ros.streams.pipeline import Pipeline  # noqa: E402

QUANTILE = 1.96


def with_delay(name: str, seconds: float, stddev: float) -> Machine:
    """The machine with this delay of all pressures."""
    pressures = {key: item for key, item in tree_of(name)['sensors'].items() if item['kind'] == 'pressure'}
    return changed(name, {f'sensors/{key}': {**item, 'delay': {'value': seconds, 'stddev': stddev}}
                          for key, item in pressures.items()})


def judged(pipeline: Pipeline, frames: list[SensorFrame]) -> tuple[float, float, bool, float]:
    """Mass and half-width at the end, kg; whether that holds; share of the time in which bands of the speeds do."""
    outputs = [output for frame in frames for name, value in (*frame.commands.items(), *frame.samples.items())
               for output in pipeline.add(name, frame.stamp_ns, value)]
    t, true = np.array([f.stamp_ns for f in frames]), np.array([f.velocity for f in frames])
    places, g = pipeline.machine.actuated, true.shape[1]
    inside = [abs(o.state.mean[-1][g + k] - np.interp(o.state.stamp_ns, t, true[:, k]))
              < QUANTILE * np.sqrt(o.state.covariance[g + k, g + k]) for o in outputs for k in places]
    last = outputs[-1].payload
    return last.mass, (last.upper - last.lower) / 2, last.lower <= frames[-1].payload <= last.upper, np.mean(inside)


def main() -> None:
    """Print a line for each file and seed, then their means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('names', nargs='*', default=['zx200', 'patu655_lift'])
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=24.0)
    parser.add_argument('--late', type=float, default=0.015, help='s')
    given = parser.parse_args()
    for name in given.names:
        plant_machine, late = with_delay(name, given.late, 0.0), given.late
        plant, load = plant_of(plant_machine), 0.5 * plant_machine.payload_data.limits[1]
        files = {'nothing': (0.0, 0.0), '0 +- 2/3 of it': (0.0, 2 / 3 * late),
                 '2/3 of it +- 1/3': (2 / 3 * late, late / 3), 'it': (late, 0.0)}
        for label, (seconds, stddev) in files.items():
            machine, found = with_delay(name, seconds, stddev), []
            for seed in range(1, given.seeds + 1):
                cycle = cycle_by_name('random', machine, seed).repeated(50)
                crane = SimulatedCrane(plant_machine, load, seed, cycle, plant=plant)
                found.append(judged(Pipeline(machine), list(crane.advance(round(1e9 * given.seconds)))))
                print(f'{name}, {label}, seed {seed}: {found[-1][0]:.0f} +- {found[-1][1]:.0f} of {load:.0f} kg, '
                      f'holds {found[-1][2]}, speeds {found[-1][3]:.1%}', flush=True)
            print(f'{name}, {label}: half {np.mean([row[1] for row in found]):.0f} kg, holds '
                  f'{sum(row[2] for row in found)} of {len(found)}, speeds {np.mean([row[3] for row in found]):.0%}')


if __name__ == '__main__':
    main()
