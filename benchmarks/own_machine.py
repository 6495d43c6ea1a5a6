# SPDX-License-Identifier: Apache-2.0
"""How well does a machine weigh whose file is by tape measure: true machines drawn from the files of `mbse new`.

    tools/environment.sh python benchmarks/own_machine.py [NAME ...] [--runs 50] [--first 0] [--lifts 3] [--jobs 2]
        [--rows out/own_machine.jsonl] [--page docs/own_machine.md]

An excavator of 8 t with angle sensors, the same with the pressures of the boom alone, a loader crane with strokes, a
wheel loader. Each true machine differs from the file as the file's deviations say, 1 sigma: pins by 5 mm of each
length, masses by 25 %, centres, friction, zeros, gains. It goes through the procedure of `mbse calibrate --plan`, is
calibrated, and weighs new loads of 10 to 80 % of full scale (``calibration.py``). Half a minute of processor a run.
Runs that are in the file ``--rows`` are not done again; ``--runs 0``: the table alone.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ('', 'test/support', 'benchmarks')]

from calibration import run  # noqa: E402
from new_machines import CRANE, EXCAVATOR, LOADER  # noqa: E402

import mbse_ros as mbse  # noqa: E402
from mbse_ros.errors import MbseError  # noqa: E402
from mbse_ros.report.files import write_between  # noqa: E402
from mbse_ros.studies.many import add_workers, kept  # noqa: E402

MACHINES: dict[str, tuple[str, dict[str, Any]]] = {
    'mini8': ('excavator of 8 t, angles', EXCAVATOR),
    'mini8_boom': ('the same, pressures of the boom alone', {**EXCAVATOR, 'name': 'mini8_boom', 'pressures': 'boom'}),
    'crane_9': ('loader crane, strokes', CRANE),
    'loader12': ('wheel loader of 12 t, angles', LOADER)}
Row = dict[str, Any]


def row_of(job: tuple[str, int, int, str]) -> Row:
    """One true machine; one that does not move as it must counts with its reason."""
    name, number, lifts, file = job
    try:
        return {'machine': name, **run((file, number, lifts, True), ('calibrated',))}
    except MbseError as error:
        return {'machine': name, 'number': number, 'refused': str(error)}


def line(name: str, rows: list[Row]) -> str:
    """Of the table: errors and intervals of the loads."""
    done = [row for row in rows if 'refused' not in row]
    low, high = mbse.load(written(name)).description.payload.limits
    lifts = np.array([lift['calibrated'] for row in done for lift in row['lifts']], dtype=float)
    there = lifts[np.isfinite(lifts[:, 0])]
    error, hold = np.abs(there[:, 0]).mean(), int((np.abs(lifts[:, 0]) <= lifts[:, 1]).sum())
    cells = [f'{len(done)}' + f' ({len(rows) - len(done)} refused)' * (len(done) < len(rows)), f'{high - low:g} kg',
             f'{error:.3g} kg ({100.0 * error / (high - low):.2f} %)', f'{np.median(there[:, 1]):.3g} kg',
             f'{hold} of {len(lifts)} ({100.0 * hold / len(lifts):.0f} %)']
    return f'| {MACHINES[name][0]} | {" | ".join(cells)} | {np.mean([row["nees"] for row in done]):.1f} |'


def written(name: str) -> Path:
    """The machine's file."""
    path = Path('out') / 'own_machine' / f'{name}.yaml'
    path.parent.mkdir(parents=True, exist_ok=True)
    mbse.new(MACHINES[name][1]).write(path)
    return path


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('names', nargs='*', choices=[[], *MACHINES], default=[])
    parser.add_argument('--runs', type=int, default=50)
    parser.add_argument('--first', type=int, default=0, help='number of the first run: those before ran elsewhere')
    parser.add_argument('--lifts', type=int, default=3)
    parser.add_argument('--rows', type=Path, default=Path('out/own_machine.jsonl'))
    parser.add_argument('--page', type=Path)
    add_workers(parser)
    given = parser.parse_args()
    names = given.names or list(MACHINES)
    rows = kept(row_of, {(name, number): (name, number, given.lifts, str(written(name)))
                         for number in range(given.first, given.runs) for name in names},
                ('machine', 'number'), given.rows, given.jobs, given.cluster, 'machines')
    table = '\n'.join([
        f'{datetime.date.today().isoformat()}, `python benchmarks/own_machine.py`:', '',
        '| machine | drawn | full scale | mean error | median half-width | intervals that hold | NEES of the numbers '
        '|', '|---' * 7 + '|',
        *(line(name, own) for name in names if (own := [row for row in rows if row['machine'] == name]))])
    print(table)
    if given.page:
        write_between(given.page, 'drawn machines', table)


if __name__ == '__main__':
    main()
