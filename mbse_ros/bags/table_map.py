# SPDX-License-Identifier: Apache-2.0
"""The map of a table: which column is which channel, in which unit, and how its times are written."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ..description.language.document import read_document
from ..description.language.entry import Entry
from ..resources import read_text
from .channels import COMMANDS, SENSORS, UNITS, ChannelName, examples, parse_channel
from .conversion import read_conversion, read_number
from .table_times import Times, read_times

FORMAT = 'mbse/table/1'
DELIMITERS = {'comma': ',', 'semicolon': ';', 'tab': '\t', 'space': ' '}
_NAME = re.compile(r'[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*')


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
    """Read and check a map file; raises DescriptionError (file, key or line, value, expected)."""
    root = Entry(str(path), '', read_document(read_text(path), str(path)))
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
                    _start(parts['start']) if 'start' in parts else 0, 'start' in parts,
                    read_times(parts['time'], parts.get('start')), columns)


def _columns(entry: Entry, kinds: tuple[str, ...]) -> dict[str, ColumnMap]:
    """Columns by channel, each channel once, velocities in the unit of their positions."""
    expected = 'a mapping from channels such as ' + examples(kinds)
    if not isinstance(entry.value, dict) or not entry.value:
        raise entry.error(expected)
    columns: dict[str, ColumnMap] = {}
    known: dict[ChannelName, str] = {}
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
