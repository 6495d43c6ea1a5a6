# SPDX-License-Identifier: Apache-2.0
"""Puts the JSON of `mbse benchmark estimators` as tables into docs/estimators_figures.md, between its two marks.

`python benchmarks/estimators_table.py estimators.json docs/estimators_figures.md`
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

MECHANISMS = {'four_bar': 'Four-bar linkage', 'five_bar': 'Five-bar linkage: mean of its two cranks'}
SENSORS = {'encoder': 'encoder on each crank', 'gyro_crank': 'gyro on each crank',
           'gyro_coupler': 'gyro on each coupler', 'accelerometers': 'two accelerometers at the tip of each crank'}
COLUMNS = {'rmse_pos': 'position', 'rmse_pos_after_2s': 'after 2 s', 'rmse_vel': 'velocity',
           'rmse_acc': 'acceleration', 'force_rmse': 'force', 'nees': 'NEES', 'nis': 'NIS', 'whiteness': 'white p',
           'step_us': 'us a step'}
TELLING = 1.0       # rad: errors beyond it say nothing
MARKS = ('<!-- tables -->\n', '<!-- end of tables -->\n')


def cell(value: float | None) -> str:
    """Three digits, or a dash."""
    return '–' if value is None else f'{value:.3g}'


def line(row: dict[str, Any]) -> str:
    """One row; of what is lost altogether only the cost."""
    lost = row['diverged'] == row['seeds']
    telling = not lost or row['rmse_pos'] is not None and row['rmse_pos'] < TELLING
    cells = [cell(row[key]) if telling or key == 'step_us' else '–' for key in COLUMNS]
    return f'| {" | ".join([row["estimator"], *cells, "all" if lost else str(row["diverged"] or "")])} |'


def tables(rows: list[dict[str, Any]]) -> str:
    """All tables as Markdown."""
    text = []
    for mechanism, title in MECHANISMS.items():
        text.append(f'## {title}\n')
        for sensor, words in SENSORS.items():
            chosen = [row for row in rows if (row['mechanism'], row['sensor']) == (mechanism, sensor)]
            text += [f'### {words[0].upper()}{words[1:]}\n', f'| estimator | {" | ".join(COLUMNS.values())} | lost |',
                     '|---' * (len(COLUMNS) + 2) + '|', *map(line, chosen), '']
    return '\n'.join(text) + '\n'


if __name__ == '__main__':
    page = Path(sys.argv[2])
    before, rest = page.read_text(encoding='utf-8').split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    found = tables(json.loads(Path(sys.argv[1]).read_text())['rows'])
    page.write_text(before + MARKS[0] + '\n' + found + MARKS[1] + after, encoding='utf-8')
