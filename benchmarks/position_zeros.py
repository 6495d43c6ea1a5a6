# SPDX-License-Identifier: Apache-2.0
"""Wrong zeros of position sensors from the first sample on, as the file states them and with a stated deviation.

    tools/environment.sh python benchmarks/position_zeros.py [NAME ...] [--stddev 0.02] [--seconds 16]

A random cycle with half the load; the zero of one stroke is off by 30 and 50 mm. Four minutes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ('', 'test/support')]

from machine_variants import changed, tree_of  # noqa: E402

from mbse_ros.simulation.crane import SimulatedCrane, cycle_by_name  # noqa: E402
from mbse_ros.streams.pipeline import Pipeline  # noqa: E402

NAMES = ['patu655_lift', 'patu655', 'zx200']
SIZES = (0.03, 0.05)        # m


def main() -> None:
    """Print a line for each machine, file, sensor and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('names', nargs='*', default=NAMES)
    parser.add_argument('--stddev', type=float, default=0.02, help='m')
    parser.add_argument('--seconds', type=float, default=16.0)
    given = parser.parse_args()
    for name in given.names:
        strokes = {key: item for key, item in tree_of(name)['sensors'].items() if item['kind'] == 'stroke'}
        stated = {f'sensors/{key}': {**item, 'bias': {'value': 0.0, 'stddev': given.stddev}}
                  for key, item in strokes.items()}
        plain = changed(name, {})
        load = 0.5 * plain.payload_data.limits[1]
        crane = SimulatedCrane(plain, load, 1, cycle_by_name('random', plain, 1).repeated(50))
        frames = list(crane.advance(round(1e9 * given.seconds)))
        for label, machine in ('as shipped', plain), (f'+- {1e3 * given.stddev:g} mm', changed(name, stated)):
            for key, size in [('', 0.0), *((key, size) for key in strokes for size in SIZES)]:
                pipeline, channel = Pipeline(machine), f"position/{strokes[key]['cylinder']}" if key else ''
                found = [output.payload for frame in frames
                         for one, value in (*frame.commands.items(), *frame.samples.items())
                         for output in pipeline.add(one, frame.stamp_ns, value + size * (one == channel))]
                kinds = [item.status.name for item in found]
                inside = [item.lower <= load <= item.upper for item in found if item.status.name == 'UPDATING']
                print(f'{name}, {label}, {key} {1e3 * size:.0f} mm: {found[-1].mass:.0f} +- '
                      f'{(found[-1].upper - found[-1].lower) / 2:.0f} of {load:.0f} kg, {kinds[-1]}; UPDATING '
                      f'{len(inside) / len(found):.0%}, of it inside {np.mean(inside) if inside else 0.0:.0%}; '
                      f'IMPLAUSIBLE {kinds.count("IMPLAUSIBLE") / len(found):.0%}', flush=True)


if __name__ == '__main__':
    main()
