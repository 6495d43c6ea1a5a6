# SPDX-License-Identifier: Apache-2.0
"""The map of a table: which column is which channel, in which unit, and how its times are written, which become stamps
in ns: as numbers with a unit, dates, or times of day with their zone.
"""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import NamedTuple, TypeVar

from ..description.language.document import read_document
from ..description.language.entry import Entry
from ..description.language.problems import Problems
from ..errors import DescriptionError
from ..resources import read_text
from .channels import COMMANDS, SENSORS, UNITS, ChannelName, examples, parse_channel, read_conversion, read_number

T = TypeVar('T')
FORMAT = 'mbse/table/1'
DELIMITERS = {'comma': ',', 'semicolon': ';', 'tab': '\t', 'space': ' '}
_NAME = re.compile(r'[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*')
DAY = 86_400
KEYS = ('unit', 'zone', 'format', 'repeated', 'offset', 'scale', 'source')
REFUSED = 'refused'
REPEATED = (REFUSED, 'first', 'spread')
LARGEST = 2 ** 31       # s
EXPECTED = ("a date such as '2026-03-02 08:15:30.250' or a time of day such as '08:15:30.250', since the map gives the "
            'times no unit')
_CLOCK = r'(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?'
_DATES = (re.compile(r'(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?:T|\s+)' + _CLOCK, re.ASCII),
          re.compile(r'(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4})(?:T|\s+)' + _CLOCK, re.ASCII))
_OF_DAY = re.compile(_CLOCK, re.ASCII)
_UNCLEAR = re.compile(r'\d{1,2}/\d{1,2}/\d{2,4}\b.*', re.ASCII)


@dataclass(frozen=True)
class ColumnMap:
    """A column and how its cells become ``unit``, SI: (cell * unit + offset) * scale = gain * cell + bias; ``cells``:
    the unit of the cells as the map has it."""

    column: str
    gain: float
    bias: float
    unit: str
    cells: str


@dataclass(frozen=True)
class TableMap:
    """What a map file says; ``start_ns`` is the stamp of time zero of the table, ``dated``: whether the map gives it;
    ``columns`` by channel."""

    file: str
    name: str
    delimiter: str
    decimal: str
    start_ns: int
    dated: bool
    time: Times
    columns: dict[str, ColumnMap]


def load_table_map(path: str | Path) -> TableMap:
    """Read and check a map file; raises DescriptionError (file, key or line, value, expected), all errors at once."""
    return Entry(str(path), '', read_document(read_text(path), str(path))).whole(_read)


def _read(root: Entry, _: Problems) -> TableMap:
    parts = root.mapping(['format', 'name', 'time', 'channels'],
                         ['source', 'delimiter', 'decimal', 'start', 'commands'])
    if 'format' in root.value:      # of another format nothing can be said
        parts['format'].choice([FORMAT], 'the format')
    columns = _columns(parts['channels'], SENSORS)
    if 'commands' in parts:
        columns.update(_columns(parts['commands'], COMMANDS))

    def read(key: str, reader: Callable[[Entry], T], default: T) -> T:
        return parts[key].tried(lambda: reader(parts[key]), default) if key in parts else default

    delimiter = read('delimiter', lambda entry: entry.choice(DELIMITERS, 'a delimiter'), 'comma')
    decimal = read('decimal', lambda entry: entry.choice(['point', 'comma'], 'a decimal sign'), 'point')
    if delimiter == decimal and root.file_sound:
        raise parts['delimiter' if 'delimiter' in parts else 'decimal'].error('a delimiter that is not a decimal sign')
    return TableMap(root.file, read('name', Entry.name, ''), DELIMITERS[delimiter], ',' if decimal == 'comma' else '.',
                    read('start', _start, 0), 'start' in parts,
                    read('time', lambda entry: read_times(entry, parts.get('start')), Times('')), columns)


def _columns(entry: Entry, kinds: tuple[str, ...]) -> dict[str, ColumnMap]:
    """Columns by channel, each channel once, velocities in the unit of their positions."""
    expected = 'a mapping from channels such as ' + examples(kinds)
    if not isinstance(entry.value, dict) or not entry.value:
        raise entry.error(expected)
    columns: dict[str, ColumnMap] = {}
    known: dict[ChannelName, str] = {}
    for name, value in entry.value.items():
        item = entry.part(name, value)
        try:
            channel = _channel(item, name, kinds, expected)
            if channel in known:
                raise item.error(f'each channel once: {known[channel]} is the same', name)
            columns[name] = _column(item, UNITS[channel.kind])
            known[channel] = name
        except DescriptionError as error:
            item.refuse(error)
    for channel, name in known.items():
        position = columns.get(f'position/{channel.name}')
        if channel.kind == 'velocity' and position and columns[name].unit != f'{position.unit}/s':
            entry.part(name, entry.value[name]).part('unit', entry.value[name]['unit']).wrong(
                f'a unit of {position.unit}/s, as position/{channel.name} is in {position.unit}')
    return columns


def _channel(entry: Entry, name: str, kinds: tuple[str, ...], expected: str) -> ChannelName:
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
    return ColumnMap(parts['column'].text('the name of a column'), *found, parts['unit'].text())


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


class Times(NamedTuple):
    """What a map says of the times in ``column``.

    ``unit``: whether they are numbers, gain * number + bias in s; else dates or times of day in ``zone`` (None: not
    given), in a ``form`` for strptime where the map has one. ``repeated``: what becomes of rows with the same time.
    """

    column: str
    gain: float = 1.0
    bias: float = 0.0
    unit: bool = True
    zone: tzinfo | None = None
    zone_name: str = ''
    form: str = ''
    repeated: str = REFUSED


def read_times(entry: Entry, start: Entry | None) -> Times:
    """The section `time` of a map; raises DescriptionError."""
    parts = entry.mapping(['column'], KEYS)
    column = parts['column'].text('the name of a column')
    repeated = parts['repeated'].choice(REPEATED, 'what becomes of rows with the same time') if (
        'repeated' in parts) else REFUSED
    if 'unit' in parts:
        for key in ('zone', 'format'):
            if key in parts:
                raise parts[key].error('no such key beside `unit`: it is for dates and times of day')
        gain, bias, _ = read_conversion(parts, ('s',))
        return Times(column, gain, bias, repeated=repeated)
    for key in ('offset', 'scale'):
        if key in parts:
            raise parts[key].error('no such key without `unit`')
    form = parts['format'].text("a format such as '%d/%m/%Y %H:%M:%S.%f'") if 'format' in parts else ''
    if '%Y' in form and start is not None:
        raise start.error('no start: the times are dates')
    zone, name = (_zone(parts['zone']), str(parts['zone'].value)) if 'zone' in parts else (None, '')
    return Times(column, unit=False, zone=zone, zone_name=name, form=form, repeated=repeated)


def _zone(entry: Entry) -> tzinfo:
    """By its name in the time zone database, or by its difference to UTC."""
    from zoneinfo import ZoneInfo  # here: slow to import
    expected = "a time zone such as UTC, '+02:00' or Europe/Helsinki, of the time zone database of this computer"
    text = entry.text(expected)
    try:
        return timezone(timedelta(seconds=_offset(text))) if re.fullmatch(r'Z|UTC|[+-]\d\d:?\d\d', text) else (
            ZoneInfo(text))
    except (ValueError, OSError, LookupError) as error:
        raise entry.error(expected) from error


def _offset(text: str) -> int:
    """Seconds of '+02:00', 0 of 'Z'."""
    if text[0] not in '+-':
        return 0
    size = int(text[1:3]) * 3600 + int(text[-2:]) * 60
    if size >= DAY:
        raise ValueError('an offset of less than a day')
    return size if text[0] == '+' else -size


class TableClock:
    """Stamps of cells, one after the other; ``assumed`` gathers what was taken for granted.

    ``start_ns``: the stamp of number 0, and of midnight of the first day for times of day.
    """

    def __init__(self, times: Times, start_ns: int, dated: bool) -> None:
        self.times, self.start_ns, self._dated = times, start_ns, dated
        self.assumed: dict[str, None] = {}
        self._days, self._last = 0, -math.inf

    def stamp(self, text: str, number: float, previous: int) -> int:
        """Of a cell (``number``: the same as a number, NaN where it is none), after the stamp before.

        Raises ValueError with what was expected.
        """
        seconds, ns = (number, 0) if self.times.unit else self._read(text.strip(), previous)
        if self.times.unit:
            if not math.isfinite(number):
                raise ValueError('a time')
            seconds = self.times.gain * number + self.times.bias
        if not abs(seconds) < LARGEST:
            raise ValueError(f'a time of less than 2^31 s{" (of the unit of the map)" * self.times.unit}')
        stamp = self.start_ns + (round(seconds * 1e9) if self.times.unit else int(seconds) * 10 ** 9 + ns)
        if stamp < 0:
            raise ValueError('a time not before zero')
        return stamp

    def hint(self, text: str) -> str:
        """What was expected of a date or time of day where the map gives times a unit; '' of other cells."""
        dated = self.times.unit and ':' in text and any(
            pattern.fullmatch(text.strip()) for pattern in (*_DATES, _OF_DAY))
        return 'a time as a number, since the map gives it a unit; leave `unit` out for dates and times of day' * dated

    def _read(self, text: str, previous: int) -> tuple[int, int]:
        """Seconds and nanoseconds of a date or a time of day."""
        if self.times.form:
            return self._formed(text, previous)
        found = next((match for pattern in _DATES if (match := pattern.fullmatch(text))), None)
        of_day = None if found else _OF_DAY.fullmatch(text)
        if found is None and of_day is None:
            raise ValueError("a date whose day and month can be told apart: say `format: '%d/%m/%Y %H:%M:%S'` at "
                             '`time` of the map, or the like' if _UNCLEAR.fullmatch(text) else EXPECTED)
        hour, minute, second, fraction, zone = (found or of_day).groups()[-5:]     # type: ignore[union-attr]
        ns = int((fraction or '0').ljust(9, '0'))
        if of_day is not None:
            return self._of_day(int(hour), int(minute), int(second or 0), ns)
        assert found is not None
        try:
            when = datetime(int(found['y']), int(found['m']), int(found['d']), int(hour), int(minute), int(second or 0))
        except ValueError as error:
            raise ValueError(f'a date ({error})') from None
        return self._dated_seconds(when, zone, ns, previous), ns

    def _formed(self, text: str, previous: int) -> tuple[int, int]:
        try:
            when = datetime.strptime(text, self.times.form)
        except ValueError as error:
            raise ValueError(f'a time in the format {self.times.form!r}') from error
        ns = when.microsecond * 1000
        if '%d' in self.times.form and not any(year in self.times.form for year in ('%Y', '%y', '%G', '%c', '%x')):
            raise ValueError(f'a date with its year; the format {self.times.form!r} has none')
        if '%d' not in self.times.form and '%j' not in self.times.form:
            return self._of_day(when.hour, when.minute, when.second, ns)
        offset = when.utcoffset()
        when = when.replace(microsecond=0)
        if offset is not None:
            return calendar.timegm(when.timetuple()) - round(offset.total_seconds()), ns
        return self._dated_seconds(when, None, ns, previous), ns

    def _of_day(self, hour: int, minute: int, second: int, ns: int) -> tuple[int, int]:
        """After midnight a new day begins."""
        if hour > 23 or minute > 59 or second > 59:
            raise ValueError('a time of day, up to 23:59:59')
        seconds = hour * 3600 + minute * 60 + second
        if seconds < self._last - DAY // 2:
            self._days += 1
        self._last = seconds
        if not self._dated:
            self.assumed['times of day without a date: counted from midnight of 1970-01-01; '
                         "`start: '2026-03-02T00:00:00+01:00'` in the map gives the day"] = None
        return self._days * DAY + seconds, ns

    def _dated_seconds(self, when: datetime, zone: str | None, ns: int, previous: int) -> int:
        """Seconds since 1970 of a date; the second pass of an hour where clocks are put back follows the first."""
        if self._dated:
            raise ValueError('a time of day, since the map has a `start`')
        seconds = calendar.timegm(when.timetuple())
        if zone is not None:
            return seconds - (0 if zone[0] not in '+-' else _offset(zone))
        if self.times.zone is None:
            self.assumed['times without a zone: taken as UTC; `zone: Europe/Berlin` or the like at `time` of the map '
                         'gives it'] = None
            return seconds
        early, late = (seconds - round(self._utc_offset(when.replace(fold=fold))) for fold in (0, 1))
        if early > late:
            raise ValueError(f'a time that exists in {self.times.zone_name}: clocks were put forward over it')
        if early == late:
            return early
        self.assumed[f'an hour occurs twice in {self.times.zone_name}, as clocks are put back: its second pass begins '
                     'where times go back'] = None
        return late if early * 10 ** 9 + ns <= previous else early

    def _utc_offset(self, when: datetime) -> float:
        zone = self.times.zone
        offset = None if zone is None else when.replace(tzinfo=zone).utcoffset()
        return 0.0 if offset is None else offset.total_seconds()
