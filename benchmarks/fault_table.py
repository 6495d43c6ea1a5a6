# SPDX-License-Identifier: Apache-2.0
"""The table of `docs/safety.md`: what was seen of each fault, of all cases in files that `mbse benchmark faults --json`
wrote.

    tools/environment.sh python benchmarks/fault_table.py FILE.json...
"""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path

LONG = 1.0      # s
COLUMNS = ('fault', 'from', 'runs', 'reported', 'within 1 s of motion', 'the faulty sensor named',
           'only other sensors named', 'outside its interval for more than 1 s', 'longest, s',
           'outside twice that, all runs, s')


def line(name: str, begin: float, rows: list[dict]) -> str:
    """One row: of a fault that begins at an instant, s."""
    after = [row['detected_after_motion_s'] for row in rows if row['detected_s'] is not None]
    spells = [row['longest_outside_while_ok_s'] for row in rows]
    cells = (name, 'the start' if begin == 0.0 else f'{begin:g} s', len(rows), len(after),
             sum(item <= LONG for item in after), sum(row['isolated'] for row in rows),
             sum(bool(row['blamed']) and not row['isolated'] for row in rows), sum(item > LONG for item in spells),
             f'{max(spells):.1f}', f'{sum(row["seconds_wrong_while_ok"] for row in rows):.1f}')
    return f'| {" | ".join(map(str, cells))} |'


def main() -> None:
    """Markdown on standard output."""
    rows = [row for file in sys.argv[1:] for row in json.loads(Path(file).read_text())['cases']]
    print(f'{len(rows)} runs, {date.today()}\n\n| {" | ".join(COLUMNS)} |\n|{"---|" * len(COLUMNS)}')
    for name, begin in dict.fromkeys((row['fault'], row['begin_s']) for row in rows):
        print(line(name, begin, [row for row in rows if (row['fault'], row['begin_s']) == (name, begin)]))


if __name__ == '__main__':
    main()
