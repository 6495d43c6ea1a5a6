# SPDX-License-Identifier: Apache-2.0
"""The filters of machines beside each other: errors of a simulated motion, squares of errors over their stated
variances (NEES) and of innovations (NIS), each 1 where the deviations are right, and cost.

    tools/environment.sh python benchmarks/machine_filters.py --seeds 2 --page docs/estimators.md

Logs are ``NAME:PAYLOAD:DURATION`` (kg, s), of the default cycle. ``--page F`` writes the tables between the two marks
in a page. A minute.
"""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path
from time import process_time

import numpy as np

import mbse_ros as mbse
from mbse_ros.report.files import write_between
from mbse_ros.report.text import number
from mbse_ros.studies.many import machine_name

SETTLED = 1.0       # s
ERROR = 'hydraulic_errorEKF_FE'
LOGS = 'patu655_lift:200:8', 'zx200:800:10'
HEAD = ('filter', 'position, mm, mrad', 'velocity, mm/s, mrad/s', 'acceleration, mm/s2, mrad/s2', 'NEES of velocity',
        'NIS', '% of a core')


def table(log: str, seeds: int) -> list[str]:
    """Of one machine and motion, a row a filter and tuning."""
    machine, payload, duration = log.split(':')
    logs = [mbse.simulate(machine, float(duration), payload=float(payload), seed=seed) for seed in range(seeds)]
    lines = ['', f'`{machine}`, {payload} kg, {duration} s:', '', f'| {" | ".join(HEAD)} |', '|---' * len(HEAD) + '|']
    own = {'nominal_payload': float(payload)}
    for name, settings in (('hydraulic', {'weighing': 'apart'}), ('hydraulic', {}), (ERROR, {}),
                           (ERROR, {'acceleration_psd': 2.0}), (ERROR, own),
                           (ERROR, {**own, 'acceleration_psd': 2.0}), (ERROR, {**own, 'acceleration_psd': 0.2})):
        observer = mbse.Observer(machine, name, **settings)
        found = np.mean([errors(observer, log) for log in logs], axis=0)
        words = ', '.join([f'`{name}`', *(f'`{key}={value}`' for key, value in settings.items())])
        lines.append(f'| {words} | {" | ".join(number(float(value), 3) for value in found)} |')
    return lines


def errors(observer: mbse.Observer, log: mbse.MachineSimulation) -> list[float]:
    """The columns; of coordinates in mm or mrad."""
    begin = process_time()
    found = observer.start().run(log.samples)
    cost = (process_time() - begin) / found.t[-1] * 100
    settled, at = found.t > SETTLED, np.searchsorted(log.t, found.t - 1e-6)
    rms, nees = [], np.nan
    for kind, truth in (('position', log.position), ('velocity', log.velocity), ('acceleration', log.acceleration)):
        places = [k for k, name in enumerate(found.names) if name.startswith(f'{kind}/')]
        off = (found.mean[:, places] - truth[at])[settled]
        rms.append(np.sqrt(np.mean(off ** 2)) * 1e3)
        if kind == 'velocity':
            nees = np.mean((off / found.stddev[:, places][settled]) ** 2)
    return [*rms, nees, np.nanmean((found.innovation / found.innovation_stddev)[settled] ** 2), cost]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('logs', nargs='*', default=LOGS, metavar='NAME:PAYLOAD:DURATION')
    parser.add_argument('--seeds', type=int, default=2)
    parser.add_argument('--page', type=Path, help='page with the two marks')
    args = parser.parse_args()
    lines = [f'`benchmarks/machine_filters.py --seeds {args.seeds}`, {date.today():%d %B %Y}, {machine_name()}. Root '
             f'mean squares after {SETTLED:g} s; NEES and NIS per entry, 1 is right, below 1 cautious.']
    for log in args.logs:
        lines += table(log, args.seeds)
    text = '\n'.join(lines)
    print(text)
    if args.page:
        write_between(args.page, 'machine_filters.py', text)


if __name__ == '__main__':
    main()
