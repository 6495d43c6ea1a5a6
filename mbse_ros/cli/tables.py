# SPDX-License-Identifier: Apache-2.0
"""Tables of numbers as CSV files, to the last digit."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..dynamics.model import Model
from ..errors import SettingError
from ..estimators.filters.analysis.observability import SampledMotion
from ..resources import regular

OPTION = '--trajectory'
UNEVEN = 1e-6       # largest deviation of a step, as a share of it


def write_table(path: Path, columns: Sequence[str], values: Sequence[np.ndarray]) -> None:
    """Write columns (k,) under their headings; numbers with 17 digits, so that they read back the same.

    Raises OSError; ValueError where headings and columns differ in number.
    """
    if len(columns) != len(values):
        raise ValueError(f'{len(columns)} headings for {len(values)} columns')
    with open(path, 'w', newline='', encoding='utf-8') as file:
        rows = zip(*(np.asarray(column).tolist() for column in values))
        csv.writer(file).writerows([columns, *([f'{value:.17g}' if isinstance(value, float) else value for value in row]
                                               for row in rows)])


def read_table(path: Path) -> tuple[list[str], np.ndarray]:
    """Headings and numbers (k, columns) of such a file."""
    with open(regular(path), newline='', encoding='utf-8') as file:
        rows = list(csv.reader(file))
    return rows[0], np.array(rows[1:], dtype=float).reshape(-1, len(rows[0]))


def read_trajectory(path: Path, model: Model) -> SampledMotion:
    """Motion by the columns ``t``, ``<coordinate>`` and ``<coordinate>_dot`` of the independent coordinates, SI, a unit
    behind a blank; the other coordinates follow by the constraints. Raises SettingError, PositionProblemError."""
    columns = _columns(path)
    needed = ['t', *model.independent, *(f'{name}_dot' for name in model.independent)]
    missing = [name for name in needed if name not in columns]
    if missing:
        raise SettingError(OPTION, str(path), f'a table with the columns {", ".join(needed)}; it has no {missing[0]}')
    t, *values = (columns[name] for name in needed)
    if len(t) < 3 or not np.isfinite([t, *values]).all():
        raise SettingError(OPTION, str(path), 'at least three rows, with finite numbers in these columns')
    dt = float(t[-1] - t[0]) / (len(t) - 1)
    if not dt > 0 or np.max(np.abs(np.diff(t) - dt)) > UNEVEN * dt:
        raise SettingError(OPTION, str(path), 'times that increase by even steps')
    g, partition, q = len(model.independent), model.partition(), model.start.q
    qs, qds = [], []
    for row in np.column_stack([*values, t]):
        q = partition.position(row[:g], q, row[-1])
        qs.append(q)
        qds.append(partition.velocity(q, row[g:2 * g], row[-1]))
    return SampledMotion(np.array(qs), np.array(qds), t, dt)


def _columns(path: Path) -> dict[str, np.ndarray]:
    """Columns by their headings without units."""
    try:
        headings, numbers = read_table(path)
    except (ValueError, IndexError, UnicodeDecodeError, csv.Error) as error:
        raise SettingError(OPTION, str(path), f'a CSV table of numbers with a heading: {error}') from None
    return dict(zip((heading.partition(' ')[0] for heading in headings), numbers.T))
