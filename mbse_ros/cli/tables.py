# SPDX-License-Identifier: Apache-2.0
"""Motions of a mechanism in CSV files."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ..dynamics.model import Model
from ..errors import SettingError
from ..estimators.filters.analysis.observability import SampledMotion
from ..report.files import read_table

OPTION = '--trajectory'
UNEVEN = 1e-6       # largest deviation of a step, as a share of it


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
