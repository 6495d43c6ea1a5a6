# SPDX-License-Identifier: Apache-2.0
"""The section `calibration`: what `mbse calibrate` found of a machine's numbers besides values and deviations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from hashlib import sha256

from ..basics import uncertain
from ..language.entry import Entry
from ..language.quantity import ValueKind, read_number
from ..machine_parts import Calibration
from ..model import MechanismDescription

ROUNDED = 1e-3      # by which the sum of the squares of a row may differ from 1
LEAST = 1e-9        # of the last number of a row


def checksum(keys: Sequence[str], rows: Sequence[Sequence[float]]) -> str:
    """Of keys and rows as they are written: 16 digits of the SHA-256."""
    text = json.dumps([[key.removeprefix('parameters.') for key in keys], [[f'{x:.9g}' for x in row] for row in rows]])
    return sha256(text.encode()).hexdigest()[:16]


def read_calibration(entry: Entry, machine: MechanismDescription) -> Calibration:
    """Of a machine whose other sections are read; with a date alone it says when the numbers were right. Raises
    DescriptionError."""
    alone = isinstance(entry.value, dict) and list(entry.value) == ['date']
    parts = entry.mapping([] if alone else ['keys', 'rows'], ['date', 'bags', 'checksum'])
    if alone:
        return Calibration(date=_date(parts['date']))
    known = {key.removeprefix('parameters.'): key for key in uncertain(machine)}
    keys = []
    for item in parts['keys'].items('keys of numbers of this file'):
        key = item.text('the key of a number of this file').removeprefix('parameters.')
        if key not in known or key.startswith('payload.'):
            raise item.error('the key of a number of this file with a standard deviation, not of the payload')
        if key in keys:
            raise item.error('each key once')
        keys.append(key)
    rows = []
    for k, item in enumerate(parts['rows'].items('rows, one for each of the keys', len(keys))):
        row = [read_number(number, ValueKind('1', -1.0, 1.0)) for number in item.items(f'{k + 1} numbers', k + 1)]
        if row[-1] < LEAST or abs(sum(number ** 2 for number in row) - 1.0) > ROUNDED:
            raise item.error('numbers whose squares add up to 1, the last above 0')
        rows.append(tuple(row))
    if 'checksum' in parts and parts['checksum'].text('a checksum') != checksum(keys, rows):
        raise parts['checksum'].error(f'{checksum(keys, rows)}: keys or rows have changed since mbse calibrate wrote '
                                      'them; calibrate again, or leave the checksum out if they are meant so')
    bags = parts['bags'].items('names of bags') if 'bags' in parts else ()
    return Calibration(tuple(keys), tuple(rows), _date(parts['date']) if 'date' in parts else '',
                       tuple(item.text('the name of a bag') for item in bags))


def _date(entry: Entry) -> str:
    expected = 'a date such as 2026-11-29'
    text = entry.text(expected)
    try:
        same = date.fromisoformat(text).isoformat() == text     # newer Pythons read other forms, too
    except ValueError:
        same = False
    if not same:
        raise entry.error(expected)
    return text
