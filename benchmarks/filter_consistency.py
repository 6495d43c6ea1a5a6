# SPDX-License-Identifier: Apache-2.0
"""Mean NEES and NIS of the linkage filters on data drawn from their own models, against their 95 % bounds.

    python benchmarks/filter_consistency.py [--steps 300] [--runs 100] [--filters DEKF ...] [--scale 0.05] [--output F]

Truths move by the filter's own prediction, with the process noise that it assumes, from a start drawn from its prior.
Figures are shares of what is expected and, in brackets, deviates: |z| < 1.96 is inside the 95 % bounds. With
``--scale`` all standard deviations are multiplied: what a filter lacks because it linearises goes away, a fault stays.
Filters that claim no covariance of their whole error are marked, with the reason.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))
from linkage_own_model import NO_CLAIM, own_model

from mbse_ros.filters.filters import OF_MECHANISMS
from mbse_ros.studies.many import add_workers, many

CASES = {'masses, encoders': ('free_masses', ('place', 'height')), 'four-bar, encoder': ('four_bar', ('encoder',)),
         'four-bar, coupler gyro': ('four_bar', ('coupler_gyro',)),
         'four-bar, accelerometers': ('four_bar', ('crank_tip',))}
SKIPPED = ('kinematic', 'dual')         # they have no transition of their own to draw from
BOUND = 1.96


def row_of(runs: int, scale: float, steps: int, seed: int, item: tuple[str, str]) -> dict:
    """Figures of a case and a filter."""
    case, name = item
    found = own_model(name, *CASES[case], runs, scale).run(steps, seed)
    return {'case': case, 'estimator': name, 'nees': found.nees.mean() / found.states, 'nees_z': found.nees_score,
            'nis': found.nis.mean() / found.channels, 'nis_z': found.nis_score, 'claims': name not in NO_CLAIM}


def main() -> int:
    """Print the table; 1 where a filter that claims a covariance is outside with encoders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--steps', type=int, default=300)
    parser.add_argument('--runs', type=int, default=100)
    parser.add_argument('--scale', type=float, default=1.0)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--filters', nargs='*', choices=[*OF_MECHANISMS])
    parser.add_argument('--cases', nargs='*', choices=[*CASES])
    parser.add_argument('--output', type=Path)
    add_workers(parser)
    options = parser.parse_args()
    cases = [(case, name) for case in options.cases or CASES for name in options.filters or OF_MECHANISMS
             if name not in SKIPPED and not (name == 'joint' and CASES[case][0] == 'free_masses')]
    rows = many(partial(row_of, options.runs, options.scale, options.steps, options.seed), cases, options.jobs,
                options.cluster)
    outside = 0
    for row in rows:
        name, inside = row['estimator'], abs(row['nees_z']) < BOUND and abs(row['nis_z']) < BOUND
        outside += not inside and name not in NO_CLAIM and 'encoder' in row['case']
        note = '' if inside else NO_CLAIM.get(name, 'OUTSIDE')
        print('{case:25s} {estimator:19s} NEES {nees:8.3f} ({nees_z:5.1f})  NIS {nis:7.3f} ({nis_z:5.1f})  '.format(
            **row) + note)
    if options.output:
        options.output.write_text(json.dumps(rows, indent=2) + '\n', encoding='utf-8')
    return int(outside > 0)


if __name__ == '__main__':
    sys.exit(main())
