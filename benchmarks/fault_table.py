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
COLUMNS = ('fault', 'from', 'runs', 'reported', 'named', 'outside for more than 1 s', 'wrong, s')


def begins(begin: float) -> str:
    """When a fault begins, in words."""
    return 'the start' if begin == 0.0 else f'{begin:g} s'


def harmless(rows: list[dict]) -> bool:
    """Whether each run reports the fault, and no mass is outside its interval for long, or far outside it."""
    return all(row['detected_s'] is not None and row['longest_outside_while_ok_s'] <= LONG
               and row['seconds_wrong_while_ok'] < 0.05 for row in rows)


def line(name: str, begin: float, rows: list[dict]) -> str:
    """One row: of a fault that begins at an instant, s."""
    cells = (name, begins(begin), len(rows), sum(row['detected_s'] is not None for row in rows),
             sum(row['isolated'] for row in rows), sum(row['longest_outside_while_ok_s'] > LONG for row in rows),
             f'{sum(row["seconds_wrong_while_ok"] for row in rows):.1f}')
    return f'| {" | ".join(map(str, cells))} |'


def table(rows: list[dict]) -> str:
    """What is always reported and harmless as one sentence, the rest as rows of Markdown."""
    kinds: dict[tuple[str, float], list[dict]] = {}
    for row in rows:
        kinds.setdefault((row['fault'], row['begin_s']), []).append(row)
    known: dict[str, list[str]] = {}
    for (name, begin), own in kinds.items():
        if harmless(own):
            known.setdefault(name, []).append(begins(begin))
    found = ', '.join(name if len(times) == sum(kind == name for kind, _ in kinds) else f'{name} ({", ".join(times)})'
                      for name, times in known.items())
    return '\n'.join([f'{len(rows)} runs, {date.today()}. Reported in each run, no mass wrong: {found}.',
                      '', f'| {" | ".join(COLUMNS)} |', f'|{"---|" * len(COLUMNS)}',
                      *(line(*key, own) for key, own in kinds.items() if not harmless(own))])


def main() -> None:
    """Markdown on standard output."""
    print(table([row for file in sys.argv[1:] for row in json.loads(Path(file).read_text())['cases']]))


if __name__ == '__main__':
    main()
