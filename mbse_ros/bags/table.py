# SPDX-License-Identifier: Apache-2.0
"""Tables (CSV) of measured samples to bags, row by row, so that memory does not grow with the table."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ..description.language.document import read_document
from ..description.language.entry import Entry
from ..errors import BagError, DescriptionError
from ..resources import regular
from .channels import COMMANDS, SENSORS, UNITS, Channel, examples, parse_channel
from .conversion import read_conversion, read_number
from .writer import BagWriter

if TYPE_CHECKING:
    from _csv import Reader

MISSING = {'', 'nan', 'na', 'null', 'none'}
FORMAT = 'mbse/table/1'
DELIMITERS = {'comma': ',', 'semicolon': ';', 'tab': '\t', 'space': ' '}
_NAME = re.compile(r'[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*')


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

    Raises DescriptionError (map file, or a column it names that the table has not) and BagError (a cell that is not
    a number, a time that does not increase, ..., with file, line, column and value; or the bag cannot be written).
    A bag begun before an error in the table is left readable up to there.
    """
    table = load_table_map(map_path)
    try:
        with open(regular(csv_path), encoding='utf-8-sig', newline='') as stream:
            rows = _Rows(str(csv_path), csv.reader(stream, delimiter=table.delimiter, strict=True), table)
            return _write(rows, bag, storage, namespace, table)
    except (OSError, UnicodeDecodeError) as error:
        raise BagError(str(csv_path), f'cannot be read: {error}') from error


def _write(rows: _Rows, bag: str | Path, storage: str, namespace: str, table: TableMap) -> ImportedTable:
    """Write all rows; the first is read before the bag is made."""
    missing, count, stamp = dict.fromkeys(table.columns, 0), 0, 0
    iterator = iter(rows)
    first = next(iterator, None)
    if first is None:
        raise BagError(rows.file, 'has no rows below the names of its columns')
    with BagWriter(bag, storage, namespace, table.name) as writer:
        for count, (stamp, values) in enumerate(chain([first], iterator), 1):      # noqa: B007
            commands = {channel: value for channel, value in values.items() if channel.startswith('command/')}
            writer.write_samples(stamp, {c: value for c, value in values.items() if c not in commands}, commands)
            for channel, value in values.items():
                missing[channel] += value != value
    return ImportedTable(count, first[0], stamp, tuple(table.columns), {c: n for c, n in missing.items() if n})


class _Rows:
    """Rows of a table in SI: stamp, ns, and values by channel."""

    def __init__(self, file: str, reader: Reader, table: TableMap) -> None:
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
            seconds = table.time.gain * seconds + table.time.bias
            if not abs(seconds) < 2.0 ** 31:
                raise self._cell_error(row, self._time, 'a time of less than 2^31 s')
            stamp = table.start_ns + round(seconds * 1e9)
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


@dataclass(frozen=True)
class ColumnMap:
    """A column and how its cells become ``unit``, SI: (cell * unit + offset) * scale = gain * cell + bias."""

    column: str
    gain: float
    bias: float
    unit: str


@dataclass(frozen=True)
class TableMap:
    """What a map file says; ``start_ns`` is the stamp of time zero of the table, ``columns`` by channel."""

    file: str
    name: str
    delimiter: str
    decimal: str
    start_ns: int
    time: ColumnMap
    columns: dict[str, ColumnMap]


def load_table_map(path: str | Path) -> TableMap:
    """Read and check a map file; raises DescriptionError (file, key or line, value, expected)."""
    try:
        text = regular(path).read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError) as error:
        raise DescriptionError(str(path), '', str(error), 'a readable text file in UTF-8') from error
    root = Entry(str(path), '', read_document(text, str(path)))
    parts = root.mapping(['format', 'name', 'time', 'channels'],
                         ['source', 'delimiter', 'decimal', 'start', 'commands'])
    parts['format'].choice([FORMAT], 'the format')
    columns = _columns(parts['channels'], SENSORS)
    if 'commands' in parts:
        columns.update(_columns(parts['commands'], COMMANDS))
    delimiter = parts['delimiter'].choice(DELIMITERS, 'a delimiter') if 'delimiter' in parts else 'comma'
    decimal = parts['decimal'].choice(['point', 'comma'], 'a decimal sign') if 'decimal' in parts else 'point'
    if delimiter == decimal:
        raise parts['delimiter' if 'delimiter' in parts else 'decimal'].error('a delimiter that is not a decimal sign')
    return TableMap(str(path), parts['name'].name(), DELIMITERS[delimiter], ',' if decimal == 'comma' else '.',
                    _start(parts['start']) if 'start' in parts else 0, _column(parts['time'], ('s',)), columns)


def _columns(entry: Entry, kinds: tuple[str, ...]) -> dict[str, ColumnMap]:
    """Columns by channel, each channel once, velocities in the unit of their positions."""
    expected = 'a mapping from channels such as ' + examples(kinds)
    if not isinstance(entry.value, dict) or not entry.value:
        raise entry.error(expected)
    columns: dict[str, ColumnMap] = {}
    known: dict[Channel, str] = {}
    for name, value in entry.value.items():
        channel = _channel(entry, name, kinds, expected)
        item = Entry(entry.file, f'{entry.key}.{name}', value)
        if channel in known:
            raise entry.error(f'each channel once: {known[channel]} is the same', name)
        known[channel] = name
        columns[name] = _column(item, UNITS[channel.kind])
    for channel, name in known.items():
        position = columns.get(f'position/{channel.name}')
        if channel.kind == 'velocity' and position and columns[name].unit != f'{position.unit}/s':
            raise Entry(entry.file, f'{entry.key}.{name}.unit', entry.value[name]['unit']).error(
                f'a unit of {position.unit}/s, as position/{channel.name} is in {position.unit}')
    return columns


def _channel(entry: Entry, name: str, kinds: tuple[str, ...], expected: str) -> Channel:
    try:
        channel = parse_channel(name, kinds)
    except ValueError:
        raise entry.error(expected, name) from None
    if not _NAME.fullmatch(channel.name):
        raise entry.error(expected, name)
    return channel


def _column(entry: Entry, wanted: tuple[str, ...]) -> ColumnMap:
    """Column, unit, offset and scale."""
    parts = entry.mapping(['column', 'unit'], ['offset', 'scale', 'source'])
    found = read_conversion(parts, wanted)
    return ColumnMap(parts['column'].text('the name of a column'), *found)


def _start(entry: Entry) -> int:
    """Nanoseconds of a time with a unit ('12 s'), or of a date with a time zone ('2024-05-01T12:00:00+02:00')."""
    expected = "a time such as '12 s', or a date with a time zone such as '2024-05-01T12:00:00+02:00', not before 1970"
    text = entry.text(expected)
    try:
        date = datetime.fromisoformat(text.replace('Z', '+00:00'))
        seconds = date.timestamp() if date.tzinfo else math.nan
    except ValueError:
        seconds, dimension = read_number(entry)
        seconds = seconds if dimension == {'s': 1} else math.nan
    if not 0.0 <= seconds < 2.0 ** 31:
        raise entry.error(expected)
    return round(seconds * 1e9)
