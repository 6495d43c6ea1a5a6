# SPDX-License-Identifier: Apache-2.0
"""Tables of numbers as CSV files, to the last digit."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np


def write_table(path: Path, columns: Sequence[str], values: Sequence[np.ndarray]) -> None:
    """Write columns (k,) under their headings; numbers with as many digits as they need to read back the same.

    Raises OSError; ValueError where headings and columns differ in number.
    """
    if len(columns) != len(values):
        raise ValueError(f'{len(columns)} headings for {len(values)} columns')
    with open(path, 'w', newline='', encoding='utf-8') as file:
        csv.writer(file).writerows([columns, *zip(*(np.asarray(column).tolist() for column in values))])


def read_table(path: Path) -> tuple[list[str], np.ndarray]:
    """Headings and numbers (k, columns) of such a file."""
    with open(path, newline='', encoding='utf-8') as file:
        rows = list(csv.reader(file))
    return rows[0], np.array(rows[1:], dtype=float).reshape(-1, len(rows[0]))
