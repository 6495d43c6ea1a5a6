# SPDX-License-Identifier: Apache-2.0
"""Linkage filters over many steps with gaps, and under faulty sensors, on the four-bar linkage.

    python benchmarks/filter_reliability.py [--steps 10000000] [--block 100000] [--filters DEKF ...] [--output F]

Over the steps a fifth of the samples and half of the stretches of 0.1 s are missing; at each block's end the covariance
must be symmetric and without a negative eigenvalue (of the correlation matrix, -1e-9 for rounding: where the state is
of all coordinates it is singular along the constraints), and everything finite. Then the faults: samples off by 1e6
standard deviations, constant sensors for 5 s, none for 30 s. A filter may then be lost, and say so.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))
from linkage_faults import FAULTS, Machine, course, observer_of, outcome

from mbse_ros.errors import DivergenceError
from mbse_ros.filters.filters import OF_MECHANISMS


def long_run(name: str, steps: int, block: int) -> dict[str, object]:
    """Steps that a filter took, and the worst of its covariance."""
    observer = observer_of(name)
    machine, started, done, least, sound = Machine(observer), time.perf_counter(), 0, 1.0, True
    try:
        while done < steps and sound:
            found = course(observer, machine, ['gaps'], block)
            done, least, sound = done + block, min(least, float(found.least.min())), found.sound
    except DivergenceError as error:
        return {'estimator': name, 'steps': done, 'least': least, 'sound': False, 'note': str(error)}
    return {'estimator': name, 'steps': done, 'least': least, 'sound': sound,
            'seconds': time.perf_counter() - started, 'stddev': float(found.stddev[-1]),
            'error': float(found.error[-1])}


def main() -> int:
    """Print the tables; 1 where a covariance was not sound."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--steps', type=int, default=10_000_000)
    parser.add_argument('--block', type=int, default=100_000)
    parser.add_argument('--filters', nargs='*', choices=[*OF_MECHANISMS])
    parser.add_argument('--output', type=Path)
    options = parser.parse_args()
    rows, failed = [], 0
    for name in options.filters or OF_MECHANISMS:
        row = long_run(name, options.steps, options.block)
        failed += not row['sound']
        observer = observer_of(name)
        row['faults'] = {kind: vars(outcome(observer, kind, length)) for kind, length in FAULTS.items()}
        failed += any(not fault['sound'] for fault in row['faults'].values())
        rows.append(row)
        ends = ', '.join(f'{kind}: {fault["end"]}' for kind, fault in row['faults'].items())
        print(f'{name:19s} {row["steps"]:10d} steps, least {row["least"]:9.2e} {row.get("note", "")}  {ends}',
              flush=True)
    if options.output:
        options.output.write_text(json.dumps(rows, indent=2, default=float) + '\n', encoding='utf-8')
    return int(failed > 0)


if __name__ == '__main__':
    sys.exit(main())
