# SPDX-License-Identifier: Apache-2.0
"""Loads to a file, by the end of its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import SettingError
from ..resources import write_whole
from .aemp import Equipment, write_snapshot
from .record import Record
from .table import rows, write_csv, write_parquet

CSV, PARQUET, AEMP = '.csv', '.parquet', '.xml'
SUFFIXES = CSV, PARQUET, AEMP


def write_loads(records: Sequence[Record], path: Path, equipment: Equipment) -> None:
    """Write CSV, Parquet, or the snapshot of ISO 15143-3 (.xml); its folder is made.

    Raises SettingError for another name, MissingModuleError, OSError.
    """
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise SettingError('--output', str(path), 'a file that ends with ' + ' or '.join(SUFFIXES))
    if kind == AEMP:
        write_snapshot(records, equipment, path)
    else:
        write = write_csv if kind == CSV else write_parquet
        write_whole(path, lambda part: write(rows(records), part))
