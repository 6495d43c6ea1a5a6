# SPDX-License-Identifier: Apache-2.0
"""Tables (CSV) of measured samples to bags, row by row, so that memory does not grow with the table."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import BagError, DescriptionError
from .table_map import ColumnMap, TableMap, load_table_map
from .writer import BagWriter

MISSING = {'', 'nan', 'na', 'null', 'none'}


@dataclass(frozen=True)
class ImportedTable:
    """What was imported: rows, stamps of the first and last, ns, channels, number of missing cells by channel."""

    rows: int
    first_ns: int
    last_ns: int
    channels: tuple[str, ...]
    missing: dict[str, int]


def import_table(csv_path: str | Path, map_path: str | Path, bag: str | Path, storage: str = 'mcap',
                 namespace: str = '') -> ImportedTable:
    """Write a table into a new bag, on the topics of the crane graph.

    Raises DescriptionError (map file, or a column it names that the table has not) and BagError (a cell that is no
    number, a time that does not increase, ..., with file, line, column and value; or the bag cannot be written).
    A bag begun before an error in the table is left readable up to there.
    """
    table = load_table_map(map_path)
    try:
        with open(csv_path, encoding='utf-8-sig', newline='') as stream:
            rows = _Rows(str(csv_path), csv.reader(stream, delimiter=table.delimiter, strict=True), table)
            return _write(rows, bag, storage, namespace, table)
    except (OSError, UnicodeDecodeError) as error:
        raise BagError(str(csv_path), f'cannot be read: {error}') from error


def _write(rows: _Rows, bag: str | Path, storage: str, namespace: str, table: TableMap) -> ImportedTable:
    """Write all rows; the first is read before the bag is made."""
    samples = {channel: 0.0 for channel in table.columns if not channel.startswith('command/')}
    commands = {channel: 0.0 for channel in table.columns if channel.startswith('command/')}
    missing = dict.fromkeys(table.columns, 0)
    count, first, stamp = 0, None, 0
    iterator = iter(rows)
    head = next(iterator, None)
    if head is None:
        raise BagError(rows.file, 'has no rows below the names of its columns')
    with BagWriter(bag, storage, namespace, table.name) as writer:
        while head is not None:
            stamp, values = head
            first = stamp if first is None else first
            for channel, value in values.items():
                (samples if channel in samples else commands)[channel] = value
                missing[channel] += value != value
            writer.write_samples(stamp, samples, commands)
            count += 1
            head = next(iterator, None)
    return ImportedTable(count, first, stamp, tuple(table.columns), {c: n for c, n in missing.items() if n})


class _Rows:
    """Rows of a table in SI: stamp, ns, and values by channel."""

    def __init__(self, file: str, reader: Iterator[list[str]], table: TableMap) -> None:
        self.file, self._reader, self._table = file, reader, table
        self._names = [name.strip() for name in self._next() or []]
        if not any(self._names):
            raise BagError(file, 'line 1: expected the names of the columns')
        self._time = self._index('time', table.time)
        self._columns = [(channel, column, self._index(channel, column)) for channel, column in table.columns.items()]

    def __iter__(self) -> Iterator[tuple[int, dict[str, float]]]:
        table, previous = self._table, -1
        while (row := self._next()) is not None:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(self._names):
                raise self._error(f'{len(row)} cells, expected {len(self._names)} as in line 1')
            seconds = self._number(row, self._time)
            if not math.isfinite(seconds):
                raise self._cell_error(row, self._time, 'a time')
            stamp = table.start_ns + round((table.time.gain * seconds + table.time.bias) * 1e9)
            if stamp < 0:
                raise self._cell_error(row, self._time, 'a time not before zero')
            if stamp <= previous:
                raise self._cell_error(row, self._time, 'a later time than in the row before')
            previous = stamp
            yield stamp, {channel: column.gain * self._number(row, index) + column.bias
                          for channel, column, index in self._columns}

    def _next(self) -> list[str] | None:
        try:
            return next(self._reader, None)
        except csv.Error as error:
            raise self._error(str(error)) from error

    def _index(self, channel: str, column: ColumnMap) -> int:
        """Place of a column; raises DescriptionError that names those there are."""
        places = [place for place, name in enumerate(self._names) if name == column.column]
        if len(places) != 1:
            group = '' if channel == 'time' else 'commands.' if channel.startswith('command/') else 'channels.'
            expected = f'one column of {self.file}, which has ' + ', '.join(self._names)
            raise DescriptionError(self._table.file, f'{group}{channel}.column', column.column, expected)
        return places[0]

    def _number(self, row: list[str], index: int) -> float:
        """Number of a cell; NaN where it is empty or says so."""
        text = row[index]
        if self._table.decimal == ',':
            text = text.replace(',', '.')
        try:
            value = float(text)
        except ValueError:
            if text.strip().lower() not in MISSING:
                raise self._cell_error(row, index, 'a number') from None
            return math.nan
        if math.isinf(value):
            raise self._cell_error(row, index, 'a finite number')
        return value

    def _cell_error(self, row: list[str], index: int, expected: str) -> BagError:
        return self._error(f'column {self._names[index]}: got {row[index]!r}, expected {expected}')

    def _error(self, reason: str) -> BagError:
        return BagError(self.file, f'line {self._reader.line_num}: {reason}')
