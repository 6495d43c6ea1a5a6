# SPDX-License-Identifier: Apache-2.0
"""Map file: which column of a table is which channel, in which unit (docs/bags.md describes the format)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ..errors import DescriptionError
from ..description.document import read_document
from ..description.entry import Entry
from ..description.units import parse_unit, split_number
from .channels import COMMANDS, SENSORS, UNITS, Channel, examples, parse_channel

FORMAT = 'mbse/table/1'
DELIMITERS = {'comma': ',', 'semicolon': ';', 'tab': '\t', 'space': ' '}
_NAME = re.compile(r'[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*')


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
        text = Path(path).read_text(encoding='utf-8')
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
        raise parts['delimiter' if 'delimiter' in parts else 'decimal'].error('a delimiter that is no decimal sign')
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
    """Column, unit, offset (added first, of the unit's kind) and scale (a factor, with a unit where it has one)."""
    parts = entry.mapping(['column', 'unit'], ['offset', 'scale', 'source'])
    factor, dimension = _unit(parts['unit'])
    scale, scale_dimension = _number(parts['scale']) if 'scale' in parts else (1.0, {})
    if scale == 0.0:
        raise parts['scale'].error('a number that is not 0')
    result = {unit: dimension.get(unit, 0) + scale_dimension.get(unit, 0) for unit in {**dimension, **scale_dimension}}
    result = {unit: power for unit, power in result.items() if power}
    fitting = [unit for unit in wanted if parse_unit(unit)[1] == result]
    if not fitting:
        also = f'times the scale {parts["scale"].value!r}' if 'scale' in parts else 'or a scale that leads there'
        raise parts['unit'].error(f'a unit of {" or ".join(wanted)}, {also}')
    offset = 0.0
    if 'offset' in parts:
        offset, offset_dimension = _number(parts['offset'])
        if offset_dimension != dimension:
            raise parts['offset'].error(f'a number with a unit of the same kind as {parts["unit"].value!r}')
    return ColumnMap(parts['column'].text('the name of a column'), factor * scale, offset * scale, fitting[0])


def _unit(entry: Entry) -> tuple[float, dict[str, float]]:
    try:
        return parse_unit(entry.text('a unit such as mm, or 1'))
    except ValueError as error:
        raise entry.error(f'a unit such as mm ({error})') from error


def _number(entry: Entry) -> tuple[float, dict[str, float]]:
    """Number in SI and its dimension."""
    try:
        number, unit = split_number(entry.text('a number with its unit'))
        factor, dimension = parse_unit(unit) if unit else (1.0, {})
    except ValueError as error:
        raise entry.error(f'a number with its unit, such as -820 mm ({error})') from error
    return number * factor, dimension


def _start(entry: Entry) -> int:
    """Nanoseconds of a time with a unit ('12 s'), or of a date with a time zone ('2024-05-01T12:00:00+02:00')."""
    expected = "a time such as '12 s', or a date with a time zone such as '2024-05-01T12:00:00+02:00', not before 1970"
    text = entry.text(expected)
    try:
        date = datetime.fromisoformat(text.replace('Z', '+00:00'))
        seconds = date.timestamp() if date.tzinfo else math.nan
    except ValueError:
        seconds, dimension = _number(entry)
        seconds = seconds if dimension == {'s': 1} else math.nan
    if not 0.0 <= seconds < 2.0 ** 31:
        raise entry.error(expected)
    return round(seconds * 1e9)
