# SPDX-License-Identifier: Apache-2.0
"""Loads to a file, by the end of its name.

Count of loads and cumulative payload as ISO 15143-3 (AEMP 2.0) has them in the snapshot of a fleet.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import SettingError
from ..resources import write_whole
from .book import Book
from .record import Record
from .table import iso_time, rows, write_csv, write_parquet

NAMESPACE = 'http://standards.iso.org/iso/15143/-3'
UNIT = 'kilogram'
CSV, PARQUET, AEMP = '.csv', '.parquet', '.xml'
SUFFIXES = CSV, PARQUET, AEMP


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
