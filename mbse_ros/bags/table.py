# SPDX-License-Identifier: Apache-2.0
"""Tables (CSV) of measured samples to bags, row by row, so that memory does not grow with the table."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ..description.language.units import parse_unit
from ..errors import BagError, DescriptionError
from ..resources import regular, said_of
from .bag import ROS1, storage_of
from .table_map import DELIMITERS, REFUSED, TableClock, TableMap, load_table_map
from .writer import BagWriter

if TYPE_CHECKING:
    from _csv import Reader

MISSING = {'', 'nan', 'na', 'null', 'none'}
REMEDY = 'save it as UTF-8, or: iconv -f {} -t UTF-8 {} > NEW.csv'
_MARKS = {b'\xff\xfe\x00\x00': 'UTF-32', b'\xff\xfe': 'UTF-16', b'\xfe\xff': 'UTF-16'}
_OTHERS = {b'PK\3\4': 'a spreadsheet or an archive, expected a table as text: export it as CSV in UTF-8',
           b'\x1f\x8b': 'packed with gzip, expected a table as text: gunzip it',
           b'BZh': 'packed with bzip2, expected a table as text: bunzip2 it'}
Row = tuple[int, dict[str, float]]      # stamp, ns, and values in SI by channel


@dataclass(frozen=True)
class ImportedTable:
    """What was imported: rows, stamps of the first and last, ns, channels, number of missing cells by channel;
    ``warnings``: what was left out or assumed."""

    rows: int
    first_ns: int
    last_ns: int
    channels: tuple[str, ...]
    missing: dict[str, int]
    warnings: tuple[str, ...] = ()


def import_table(csv_path: str | Path, map_path: str | Path, bag: str | Path, storage: str = 'mcap',
                 namespace: str = '') -> ImportedTable:
    """Write a table into a new bag, on the topics of the crane graph.

    Raises DescriptionError (map file, or a column it names that the table has not) and BagError (a cell that is not
    a number, a time that does not increase, ..., with file, line, column and value; or the bag cannot be written).
    A bag begun before an error in the table is left readable up to there. A last row that is cut is left out.
    """
    table = load_table_map(map_path)
    try:
        whole = _checked(regular(csv_path))
        with open(csv_path, encoding='utf-8-sig', newline='') as stream:
            rows = _Rows(str(csv_path), csv.reader(stream, delimiter=table.delimiter, strict=True), table, whole)
            return _write(rows, bag, storage, namespace, table)
    except UnicodeDecodeError as error:
        raise _undecoded(Path(csv_path), error) from error
    except OSError as error:
        raise BagError(str(csv_path), f'cannot be read: {said_of(error)}') from error


def _checked(path: Path) -> bool:
    """Whether the last line of a file ends; raises BagError for one that is no text in UTF-8, with the remedy."""
    with path.open('rb') as stream:
        start = stream.read(4096)
        stream.seek(0, 2)
        stream.seek(max(0, stream.tell() - 1))
        end = stream.read(1)
    other = next((other for mark, other in _OTHERS.items() if start.startswith(mark)), '')
    if other := other or ('a bag, expected a table' if storage_of(path) or start.startswith(ROS1) else ''):
        raise BagError(str(path), f'is {other}')
    name = next((name for mark, name in _MARKS.items() if start.startswith(mark)), '')
    if name or b'\0' in start:
        what = f'is text in {name}' if name else 'has NUL bytes: text in UTF-16, or no text'
        guess = 'UTF-16BE' if start[::2].count(0) > start[1::2].count(0) else 'UTF-16LE'
        raise BagError(str(path), f'{what}, expected UTF-8: {REMEDY.format(name or guess, path.name)}')
    return end in (b'\n', b'\r', b'')


def _undecoded(path: Path, error: UnicodeDecodeError) -> BagError:
    """The error of the first line that is not UTF-8."""
    with path.open('rb') as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode()
            except UnicodeDecodeError as found:
                return BagError(str(path), f'line {number}: byte 0x{line[found.start]:02x} is none of UTF-8, probably '
                                f'Latin-1 (Windows-1252): {REMEDY.format("WINDOWS-1252", path.name)}')
    return BagError(str(path), f'cannot be read: {error}')


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
    return ImportedTable(count, first[0], stamp, tuple(table.columns), {c: n for c, n in missing.items() if n},
                         (*rows.clock.assumed, *rows.notes))


class _Rows:
    """Rows of a table in SI; ``whole``: whether its last line ends. ``notes``: what was left out."""

    def __init__(self, file: str, reader: Reader, table: TableMap, whole: bool) -> None:
        self.file, self._reader, self._table, self._whole = file, reader, table, whole
        self.clock, self.notes = TableClock(table.time, table.start_ns, table.dated), list[str]()
        self._names = [name.strip() for name in self._next() or []]
        if not any(self._names):
            raise BagError(file, 'line 1: expected the names of the columns')
        self._time = self._index('time', table.time.column)
        self._columns = [(channel, column, self._index(channel, column.column))
                         for channel, column in table.columns.items()]
        self._line, self._repeated = 0, 0
        self._ahead = self._filled()

    def __iter__(self) -> Iterator[Row]:
        """Rows with different stamps: those with the same time are left out, or spread, where the map says so."""
        if self._table.time.repeated == REFUSED:
            yield from self._stamped()
            return
        group: list[Row] = []
        for row in self._stamped():
            if group and row[0] == group[0][0]:
                self._repeated += 1
                group += [row] * (self._table.time.repeated == 'spread')
                continue
            yield from self._spread(group, row[0])
            group = [row]
        yield from self._spread(group, None)
        if self._repeated:
            what = 'left out' if self._table.time.repeated == 'first' else 'spread evenly up to the next time'
            self.notes.append(f'{self._repeated} rows with the time of the row before, {what}')

    @staticmethod
    def _spread(group: list[Row], after: int | None) -> Iterator[Row]:
        """Rows of one time, evenly up to the next one; the last ones of a table stay 1 ms apart."""
        step = 1_000_000 if after is None else (after - group[0][0]) // len(group) if group else 0
        return ((stamp + k * step, values) for k, (stamp, values) in enumerate(group))

    def _stamped(self) -> Iterator[Row]:
        previous, widths = -1, 0
        while (row := self._row()) is not None:
            last = self._ahead is None
            if last and len(row) < len(self._names):
                self._cut(f'{len(row)} cells of {len(self._names)}')
                return
            if len(row) != len(self._names):
                raise self._error(f'{len(row)} cells, expected {len(self._names)} as in line 1')
            try:
                found = self._found(row, previous)
            except BagError:
                if not last or self._whole or previous < 0:
                    raise
                self._cut(f'it ends with {row[-1]!r}')
                return
            if last and not self._whole and len(row[-1]) < widths and self._mapped(len(row) - 1):
                self._cut(f'it ends with {row[-1]!r}, without a line end')
                return
            previous, widths = found[0], len(row[-1])
            yield found

    def _mapped(self, place: int) -> bool:
        return place == self._time or any(index == place for _, _, index in self._columns)

    def _cut(self, why: str) -> None:
        self.notes.append(f'line {self._line}, the last one, is cut: {why}; it is left out')

    def _found(self, row: list[str], previous: int) -> Row:
        """Stamp and values of a row, after the stamp before."""
        hint = self.clock.hint(row[self._time])
        if hint:
            raise self._cell_error(row, self._time, hint)
        try:
            number = self._number(row, self._time) if self._table.time.unit else math.nan
            stamp = self.clock.stamp(row[self._time], number, previous)
        except ValueError as error:
            raise self._cell_error(row, self._time, str(error)) from None
        same = self._table.time.repeated != REFUSED and stamp == previous
        if stamp <= previous and not same:
            equal = ('; `repeated: spread` at `time` of the map spreads rows with the same time evenly, '
                     '`repeated: first` takes the first of them') * (stamp == previous)
            raise self._cell_error(row, self._time, 'a later time than in the row before' + equal)
        values = {channel: column.gain * self._number(row, index) + column.bias
                  for channel, column, index in self._columns}
        huge = next((index for channel, _, index in self._columns if math.isinf(values[channel])), None)
        if huge is not None:
            raise self._cell_error(row, huge, 'a number that is finite in SI, too')
        return stamp, values

    def _row(self) -> list[str] | None:
        """The next row; one ahead is read, to know the last."""
        row, self._line = self._ahead, self._reader.line_num
        if row is not None:
            self._ahead = self._filled()
        return row

    def _filled(self) -> list[str] | None:
        """The next row with a cell that is not blank, but for one of units below the names."""
        while (row := self._next()) is not None:
            if any(cell.strip() for cell in row) and not (self._reader.line_num == 2 and self._are_units(row)):
                return row
        return None

    def _are_units(self, row: list[str]) -> bool:
        """Whether a row has the units of the columns; raises BagError for others than those of the map."""
        if len(row) != len(self._names) or any(character.isdigit() for character in row[self._time]):
            return False
        cells = [(row[index].strip(' []()'), column.cells, index) for _, column, index in self._columns]
        try:
            units = [(parse_unit(text), parse_unit(wanted), wanted, index) for text, wanted, index in cells if text]
        except ValueError:
            return False
        for unit, given, wanted, index in units:
            if unit != given:
                raise self._cell_error(row, index, f'{wanted}, the unit of the map, in a row of units')
        return bool(units)

    def _next(self) -> list[str] | None:
        before = self._reader.line_num
        try:
            return next(self._reader, None)
        except csv.Error as error:
            if not self._whole and before and self._reader.line_num == before + 1 and next(self._reader, None) is None:
                return ['"']    # the last row, cut within quotes
            raise self._error(str(error), self._reader.line_num) from error

    def _index(self, channel: str, name: str) -> int:
        """Place of a column; raises DescriptionError that names those there are."""
        places = [place for place, other in enumerate(self._names) if other == name]
        if len(places) != 1:
            group = '' if channel == 'time' else 'commands.' if channel.startswith('command/') else 'channels.'
            expected = f'one column of {self.file}, which has ' + ', '.join(self._names)
            other = next((word for word, sign in DELIMITERS.items() if len(self._names) == 1 and
                          self._names[0].count(sign) > 1), '')
            expected += f'; `delimiter: {other}` in the map?' if other else ''
            raise DescriptionError(self._table.file, f'{group}{channel}.column', name, expected)
        return places[0]

    def _number(self, row: list[str], index: int) -> float:
        """Number of a cell; NaN where it is empty or says so."""
        text, comma = row[index], self._table.decimal == ','
        wrong = text.isascii() is False or '_' in text or comma and '.' in text
        try:
            value = math.nan if wrong else float(text.replace(',', '.') if comma else text)
        except ValueError:
            wrong, value = text.strip().lower() not in MISSING, math.nan
        if wrong:
            sign = (' with a decimal comma and without separators of thousands' if comma else
                    ', with a decimal point (`decimal: comma` in the map?) and without separators of thousands')
            if '.' in text and ',' in text:     # which of them is the decimal sign shows
                decimal, found = (',', 'comma') if text.rindex(',') > text.rindex('.') else ('.', 'point')
                plain = text.replace('.' if decimal == ',' else ',', '')
                swap = '' if decimal == self._table.decimal else f' and `decimal: {found}` in the map'
                sign = f' without separators of thousands: {plain}{swap}'
            raise self._cell_error(row, index, 'a number' + sign * (',' in text or '.' in text))
        if math.isinf(value):
            raise self._cell_error(row, index, 'a finite number')
        return value

    def _cell_error(self, row: list[str], index: int, expected: str) -> BagError:
        return self._error(f'column {self._names[index]}: got {row[index]!r}, expected {expected}')

    def _error(self, reason: str, line: int = 0) -> BagError:
        return BagError(self.file, f'line {line or self._line or self._reader.line_num}: {reason}')
