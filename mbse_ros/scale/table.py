# SPDX-License-Identifier: Apache-2.0
"""Loads in words, as rows of plain values, and in files, by the end of the name: CSV and Parquet of the rows, or count
of loads and cumulative payload as ISO 15143-3 (AEMP 2.0) has them in the snapshot of a fleet."""

from __future__ import annotations

import csv
import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..errors import MissingModuleError, SettingError
from ..resources import write_whole
from .book import Book, Tally
from .load import UncertainMass
from .record import LOAD, UNDO, Record

COLUMNS = {         # name: type, for Parquet
    'number': int, 'truck': str, 'start': str, 'end': str, 'start_ns': int, 'end_ns': int, 'mass_kg': float,
    'lower_kg': float, 'upper_kg': float, 'stddev_kg': float, 'own_stddev_kg': float, 'most_kg': float,
    'taken_x_m': float, 'taken_y_m': float, 'taken_z_m': float, 'taken_swing_rad': float, 'dropped_x_m': float,
    'dropped_y_m': float, 'dropped_z_m': float, 'dropped_swing_rad': float, 'status': str, 'who': str,
    'counts': bool, 'trusted': bool, 'why': str, 'faults': str}
UNDONE = 'undone'
KNOWN = {'weighed': '', 'put_back': 'put back', 'carried': 'its drop was not seen'}
NAMESPACE = 'http://standards.iso.org/iso/15143/-3'
UNIT = 'kilogram'
CSV, PARQUET, AEMP = '.csv', '.parquet', '.xml'
SUFFIXES = CSV, PARQUET, AEMP


def rows(records: Iterable[Record]) -> list[dict[str, Any]]:
    """A row for each load in the order of the records, those undone too; None where nothing is known."""
    records = list(records)
    undone = undone_loads(records)
    return [_row(count, record, record.number in undone) for count, record in enumerate(
        (record for record in records if record.kind == LOAD), 1)]


def _row(count: int, record: Record, undone: bool) -> dict[str, Any]:
    data = record.data
    places: dict[str, Any] = {}
    for end in ('taken', 'dropped'):
        place = data.get(end) or {}
        places |= {f'{end}_{axis}_m': place.get(axis) for axis in 'xyz'}
        places[f'{end}_swing_rad'] = place.get('swing')
    lower, upper = data['interval']
    return {'number': count, 'truck': data['truck'], 'start': iso_time(data['start_ns']),
            'end': iso_time(data['end_ns']), 'start_ns': data['start_ns'], 'end_ns': data['end_ns'],
            'mass_kg': data['mass'], 'lower_kg': lower, 'upper_kg': upper, 'stddev_kg': data['stddev'],
            'own_stddev_kg': data['own'], 'most_kg': data['most'], **places,
            'status': UNDONE if undone else data['status'], 'who': data['who'],
            'counts': bool(data['counts']) and not undone, 'trusted': bool(data['trusted']),
            'why': data.get('why', ''), 'faults': ' '.join(data.get('faults', ()))}


def iso_time(stamp_ns: int) -> str:
    """Stamp as ISO 8601 in UTC, to the millisecond."""
    seconds, rest = divmod(int(stamp_ns), 1_000_000_000)
    moment = datetime.fromtimestamp(seconds, tz=timezone.utc)
    return f'{moment:%Y-%m-%dT%H:%M:%S}.{rest // 1_000_000:03d}Z'


def write_csv(found: Sequence[dict[str, Any]], path: Path, more: Mapping[str, type] = {}) -> None:
    """Write rows with ``more`` columns behind ours; an empty field is not known."""
    with path.open('w', newline='', encoding='utf-8') as file:
        writer = csv.DictWriter(file, [*COLUMNS, *more], lineterminator='\n')
        writer.writeheader()
        writer.writerows({name: _plain(value) for name, value in row.items()} for row in found)


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value[:1] in ('=', '+', '-', '@'):
        return f"'{value}"      # a truck's name that a spreadsheet would take for a formula
    return f'{value:.9g}' if isinstance(value, float) else value


def write_parquet(found: Sequence[dict[str, Any]], path: Path, more: Mapping[str, type] = {}) -> None:
    """Write rows with the types of COLUMNS and of ``more``; raises MissingModuleError without pyarrow."""
    try:
        import pyarrow
        from pyarrow import parquet  # takes its time to import
    except ImportError as error:
        raise MissingModuleError('pyarrow', 'it writes Parquet',
                                 "`pip install 'mbse_ros[parquet]'`, or write .csv", str(error)) from None
    kinds = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string(), bool: pyarrow.bool_()}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in (COLUMNS | dict(more)).items()])
    parquet.write_table(pyarrow.Table.from_pylist(list(found), schema=schema), path)


def undone_loads(records: Iterable[Record]) -> set[int]:
    """Numbers of the loads that were undone."""
    return {record.data['load'] for record in records if record.kind == UNDO}


def remark_of(record: Record, undone: set[int]) -> str:
    """What is odd about a load."""
    if record.number in undone:
        return UNDONE
    return ', '.join(filter(None, [KNOWN[record.data['status']], '' if record.data['trusted'] else 'not trusted']))


def mass_text(mass: UncertainMass) -> str:
    """A mass and its interval, kg."""
    lower, upper = mass.interval
    return f'{mass.value:.1f} ({lower:.1f} to {upper:.1f})'


def place_text(place: Mapping[str, float] | None) -> str:
    """A place in words: its swing, or x, y, z."""
    if place is None:
        return ''
    if 'swing' in place:
        return f'{round(math.degrees(place["swing"]), 0) + 0.0:.0f} deg'     # no -0
    return ' '.join(f'{place[axis]:.1f}' for axis in 'xyz') + ' m'


def total_text(tally: Tally) -> str:
    """The loads that are trusted and their total, and beside it those that are not, with theirs."""
    parts, doubted = [], tally.untrusted
    if trusted := tally.count - doubted:
        parts.append(f'{_loads(trusted)}, total {mass_text(tally.mass)} kg')
    if doubted:
        parts.append(f'{_loads(doubted)} not trusted{" and not in the total" if trusted else ""}: '
                     f'{mass_text(tally.doubted)} kg')
    return '; '.join(parts) or 'no load'


def _loads(count: int) -> str:
    return f'{count} load{"s" * (count != 1)}'


@dataclass(frozen=True)
class Equipment:
    """What the standard's header says of a machine."""

    model: str
    identifier: str = ''
    maker: str = ''
    serial: str = ''


def snapshot(records: Iterable[Record], equipment: Equipment) -> str:
    """The snapshot as XML: loads that count and are trusted, and their mass in whole kilograms, at the stamp of the
    last record."""
    book, last = Book(), 0
    for record in records:
        book.apply(record)
        last = max(last, record.stamp_ns)
    time = iso_time(last)
    ElementTree.register_namespace('', NAMESPACE)
    fleet = ElementTree.Element(_name('Fleet'), {'version': '1', 'snapshotTime': time})
    machine = ElementTree.SubElement(fleet, _name('Equipment'))
    header = ElementTree.SubElement(machine, _name('EquipmentHeader'))
    for name, value in (('OEMName', equipment.maker), ('Model', equipment.model),
                        ('EquipmentID', equipment.identifier or equipment.model), ('SerialNumber', equipment.serial)):
        ElementTree.SubElement(header, _name(name)).text = value
    count = ElementTree.SubElement(machine, _name('CumulativeLoadCount'), {'datetime': time})
    ElementTree.SubElement(count, _name('Count')).text = str(book.all.count - book.all.untrusted)
    totals = ElementTree.SubElement(machine, _name('CumulativePayloadTotals'), {'datetime': time})
    ElementTree.SubElement(totals, _name('PayloadUnits')).text = UNIT
    ElementTree.SubElement(totals, _name('Payload')).text = str(round(book.all.mass.value))
    ElementTree.indent(fleet)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(fleet, encoding='unicode') + '\n'


def write_snapshot(records: Iterable[Record], equipment: Equipment, path: Path) -> None:
    """Write the snapshot."""
    write_whole(path, snapshot(records, equipment))


def _name(tag: str) -> str:
    return f'{{{NAMESPACE}}}{tag}'


def write_loads(records: Sequence[Record], path: Path, equipment: Equipment) -> None:
    """Write CSV, Parquet, or the snapshot of ISO 15143-3 (.xml); its folder is made.

    Raises SettingError for another name, MissingModuleError, OSError.
    """
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise SettingError('path', str(path), 'a file that ends with ' + ' or '.join(SUFFIXES))
    if kind == AEMP:
        write_snapshot(records, equipment, path)
    else:
        write = write_csv if kind == CSV else write_parquet
        write_whole(path, lambda part: write(rows(records), part))
