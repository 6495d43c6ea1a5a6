# SPDX-License-Identifier: Apache-2.0
"""The JSON of `mbse benchmark estimators` as tables, and against the figures of another program.

`python benchmarks/estimators_table.py F docs/estimators_figures.md` puts the tables into the page, between its two
marks; `python benchmarks/estimators_table.py F --against mbde_octave.json` prints each row of F beside the means of the
other program's rows, then those not met, and ends with 1 if there are any. *blind*: the other keeps its wrong start.

Met: a figure is at most its mean over the other's seeds plus the spread, which is twice the standard error of the
difference of the two means. The standard deviation of a seed is the larger of both, for one or three seeds say little
about theirs; 10 % where neither is known. A row that only the other has lost is beaten, one that both have is met. Met
in cost: a hundred times cheaper; a run of the other that failed early costs nothing.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

MECHANISMS = {'four_bar': 'Four-bar linkage', 'five_bar': 'Five-bar linkage: mean of its two cranks'}
SENSORS = {'encoder': 'encoder on each crank', 'gyro_crank': 'gyro on each crank',
           'gyro_coupler': 'gyro on each coupler', 'accelerometers': 'accelerometers at the tips'}
COLUMNS = {'rmse_pos': 'position', 'rmse_pos_after_2s': 'after 2 s', 'rmse_vel': 'velocity',
           'rmse_acc': 'acceleration', 'force_rmse': 'force'}
MARKS = ('<!-- tables -->\n', '<!-- end of tables -->\n')
COMPARED = ('rmse_pos', 'rmse_pos_after_2s', 'rmse_vel', 'rmse_acc', 'force_rmse')
SHIPPED, REPAIRED = 'toolbox', 'fixedVelJac'    # variants of the other program's rows, the second where it has one
CHEAPER = 100.0
RELATIVE = 0.1      # standard deviation of a figure where nothing is known of it
LOST = 0.5          # rad after 2 s

Row = dict[str, Any]


def cell(value: float | None) -> str:
    """Three digits, or a dash."""
    return '–' if value is None else f'{value:.3g}'


def entry(row: Row | None) -> str:
    """Error of the position after 2 s and NEES of a filter with a sensor, and how many seeds were lost."""
    if row is None:
        return '–'
    if row['diverged'] == row['seeds']:
        return 'lost'
    few = f' ({row["diverged"]} lost)' if row['diverged'] else ''
    return f'{cell(row["rmse_pos_after_2s"])}, {cell(row["nees"])}{few}'


def tables(rows: list[Row]) -> str:
    """A table of each mechanism as Markdown: a row of each filter, a column of each sensor."""
    text, of = [], {key_of(row): row for row in rows}
    for mechanism, title in MECHANISMS.items():
        names = dict.fromkeys(row['estimator'] for row in rows if row['mechanism'] == mechanism)
        text += [f'## {title}\n', f'| estimator | {" | ".join(SENSORS.values())} | us a step |',
                 '|---' * (len(SENSORS) + 2) + '|']
        for name in names:
            found = [of.get((mechanism, name, sensor)) for sensor in SENSORS]
            cost = next((row['step_us'] for row in found if row), None)
            text.append(f'| {" | ".join([name, *map(entry, found), cell(cost)])} |')
        text.append('')
    return '\n'.join(text) + '\n'


def key_of(row: Row) -> tuple[str, str, str]:
    """Mechanism, estimator, sensor."""
    return row['mechanism'], row['estimator'], row['sensor']


def references(rows: list[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """The other program's rows by case, one a seed; ``force_rmse`` is the mean over the coordinates, where the filter
    estimates a force."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for variant in (SHIPPED, REPAIRED):
        for row in rows:
            if row['variant'] == variant:
                forces = row['force_rmse_dof'] if 'FE' in row['estimator'] else [None]
                force = None if None in forces or not forces else float(np.mean(forces))
                name = row['estimator'] if variant == SHIPPED else f'{row["estimator"]} ({variant})'
                found.setdefault((row['mechanism'], name, row['sensor']), []).append({**row, 'force_rmse': force})
    return found


def lost(row: Row) -> bool:
    """Whether one run of the other program, or all seeds of ours, are not an estimate."""
    after = row['rmse_pos_after_2s']
    return after is None or after > LOST or row.get('seeds', 0) and row['diverged'] == row['seeds']


def excess(ours: Row, theirs: list[Row], name: str) -> tuple[float, float] | None:
    """Ratio of our mean to theirs, and how many spreads ours is above; None where one has no such figure."""
    values = [row[name] for row in theirs if not lost(row) and row[name] is not None]
    if ours.get(name) is None or not values:
        return None
    mean, number = float(np.mean(values)), len(values)
    own = ours.get(f'{name}_stddev')
    own = RELATIVE * mean if own is None else own
    other = max(own, float(np.std(values, ddof=1)) if number > 1 else 0.0)
    spread = 2 * np.sqrt(own ** 2 / max(ours['seeds'] - ours['diverged'], 1) + other ** 2 / number)
    return ours[name] / mean, (ours[name] - mean) / max(spread, 1e-300)


def comparison(ours: Row, theirs: list[Row]) -> tuple[str, list[str]]:
    """A line of ratios, ours to theirs, and what is not met."""
    all_lost, failed = all(map(lost, theirs)), []
    whole = [row['cpu_per_s'] for row in theirs if row['rmse_pos'] is not None]
    cost = float(np.mean(whole)) / ours['cpu_per_s'] if whole and ours['cpu_per_s'] else None
    cells = []
    if not all_lost and lost(ours):
        failed.append('lost')
    elif ours['diverged'] and not any(map(lost, theirs)):
        failed.append(f'{ours["diverged"]} of {ours["seeds"]} seeds lost')
    for name in COMPARED:
        found = None if all_lost or lost(ours) else excess(ours, theirs, name)
        cells.append('     –' if found is None else f'{found[0]:6.2f}')
        if found is not None and found[1] > 1:
            failed.append(f'{COLUMNS[name]} {found[0]:.2f} ({found[1]:.1f} spreads)')
    if cost is not None and cost < CHEAPER:
        failed.append(f'cost {cost:.0f}')
    end = ('both lost' if lost(ours) else 'lost by the other alone') if all_lost else ''
    return f'{" ".join(cells)} {"     –" if cost is None else f"{cost:6.0f}"}  {end}'.rstrip(), failed


def compare(rows: list[Row], others: list[Row]) -> tuple[list[str], list[str]]:
    """All lines, and those not met; rows without a counterpart are left out."""
    known, text, missed = references(others), [], []
    for row in rows:
        for suffix in ('', f' ({REPAIRED})'):
            mechanism, estimator, sensor = key_of(row)
            theirs = known.get((mechanism, estimator.removesuffix('_published') + suffix, sensor))
            if theirs:
                name = f'{mechanism:9} {sensor:15} {estimator + suffix:22}'
                ratios, failed = comparison(row, theirs)
                text.append(f'{name} {len(theirs)} {ratios}')
                blind = 'blind, ' * all(row['offset_not_corrected'] for row in theirs)
                missed += [f'{name} {blind}{"; ".join(failed)}'] if failed else []
    return text, missed


def main() -> int:
    """The command line; 1 where rows are not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('figures', type=Path, help='JSON of `mbse benchmark estimators`')
    parser.add_argument('page', type=Path, nargs='?', help='page to put the tables into')
    parser.add_argument('--against', type=Path, help="JSON of the other program's rows")
    given = parser.parse_args()
    rows = json.loads(given.figures.read_text())['rows']
    if given.page:
        before, rest = given.page.read_text(encoding='utf-8').split(MARKS[0])
        after = rest.split(MARKS[1])[1]
        given.page.write_text(before + MARKS[0] + '\n' + tables(rows) + MARKS[1] + after, encoding='utf-8')
    if not given.against:
        return 0
    text, missed = compare(rows, json.loads(given.against.read_text())['rows'])
    print(f'{"ours / theirs":48} n {"  pos  pos2s    vel    acc  force cheaper"}', *text, sep='\n')
    print(f'\nNot met: {len(missed)} of {len(text)}', *missed, sep='\n')
    return 1 if missed else 0


if __name__ == '__main__':
    raise SystemExit(main())
