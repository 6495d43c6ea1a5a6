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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test'))
from linkage_own_model import NO_CLAIM, own_model

from mbse_ros.estimators.filters.filters import FILTERS

CASES = {'masses, encoders': ('free_masses', ('place', 'height')), 'four-bar, encoder': ('four_bar', ('encoder',)),
         'four-bar, coupler gyro': ('four_bar', ('coupler_gyro',)),
         'four-bar, accelerometers': ('four_bar', ('crank_tip',))}
SKIPPED = ('kinematic', 'dual')         # they have no transition of their own to draw from
BOUND = 1.96


def main() -> int:
    """Print the table; 1 where a filter that claims a covariance is outside with encoders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--steps', type=int, default=300)
    parser.add_argument('--runs', type=int, default=100)
    parser.add_argument('--scale', type=float, default=1.0)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--filters', nargs='*', choices=[*FILTERS])
    parser.add_argument('--cases', nargs='*', choices=[*CASES])
    parser.add_argument('--output', type=Path)
    options = parser.parse_args()
    rows, outside = [], 0
    for case in options.cases or CASES:
        mechanism, sensors = CASES[case]
        for name in options.filters or FILTERS:
            if name in SKIPPED or name == 'joint' and mechanism == 'free_masses':
                continue
            found = own_model(name, mechanism, sensors, options.runs, options.scale).run(options.steps, options.seed)
            rows.append({'case': case, 'estimator': name, 'nees': found.nees.mean() / found.states,
                         'nees_z': found.nees_score, 'nis': found.nis.mean() / found.channels,
                         'nis_z': found.nis_score, 'claims': name not in NO_CLAIM})
            inside = abs(found.nees_score) < BOUND and abs(found.nis_score) < BOUND
            outside += not inside and name not in NO_CLAIM and 'encoder' in case
            note = '' if inside else NO_CLAIM.get(name, 'OUTSIDE')
            print('{case:25s} {estimator:19s} NEES {nees:8.3f} ({nees_z:5.1f})  NIS {nis:7.3f} ({nis_z:5.1f})  '.format(
                **rows[-1]) + note, flush=True)
    if options.output:
        options.output.write_text(json.dumps(rows, indent=2) + '\n', encoding='utf-8')
    return int(outside > 0)


if __name__ == '__main__':
    sys.exit(main())
