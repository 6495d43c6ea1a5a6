# SPDX-License-Identifier: Apache-2.0
"""What the scale remembers: records that are only ever added, and whether one that is read is whole: by its checksum,
else by what its fields say of each other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import isfinite, nan
from typing import Any, NamedTuple

from .load import CARRIED, PUT_BACK, WEIGHED, Carried, Load, UncertainMass
from .reading import Place

LOAD, UNDO, TRUCK, TARGET, ZERO, ATTACHMENT, ENDED = 'load', 'undo', 'truck', 'target', 'zero', 'attachment', 'ended'
TAKEN, MISSED = 'taken', 'missed'       # a load hangs there; it was gone when the scale came back
REPAIRED = 'repaired'       # the file was damaged, what was whole of it is in this one
OPERATOR, SCALE = 'operator', 'scale'       # who said that a load is done
CLOSE = 1e-6        # of a standard deviation, within which two numbers of a record are the same
STAMPS = -2 ** 63, 2 ** 63
LARGEST = 2 ** 53       # number of a record


@dataclass(frozen=True)
class Record:
    """``data`` as JSON has it; ``key``: no two records have the same, '' for one that may be repeated; ``number``: its
    place in the journal, from 1, 0 before it is in one."""

    kind: str
    stamp_ns: int
    data: Mapping[str, Any] = field(default_factory=dict)
    key: str = ''
    number: int = 0

    @property
    def mass(self) -> UncertainMass:
        """The mass in its data."""
        return mass_of(self.data)

    @property
    def counts(self) -> bool:
        """Whether it is a load that belongs into totals."""
        return self.kind == LOAD and bool(self.data.get('counts', True))


def mass_data(mass: UncertainMass) -> dict[str, Any]:
    """A mass as JSON."""
    lower, upper = mass.interval
    return {'mass': mass.value, 'interval': [lower, upper], 'stddev': mass.stddev, 'own': mass.own,
            'common': dict(mass.common)}


def mass_of(data: Mapping[str, Any]) -> UncertainMass:
    """The same back."""
    return UncertainMass(float(data['mass']), float(data['own']), {str(k): float(v) for k, v in data['common'].items()})


def place_data(place: Place | None) -> dict[str, float] | None:
    """A place as JSON; the swing, rad, only where there is one."""
    if place is None:
        return None
    return {'x': place.x, 'y': place.y, 'z': place.z, **({'swing': place.swing} if isfinite(place.swing) else {})}


def place_of(data: Mapping[str, float] | None) -> Place | None:
    """The same back."""
    return None if data is None else Place(data['x'], data['y'], data['z'], data.get('swing', nan))


def taken_record(carried: Carried, mass: UncertainMass, stamp_ns: int, truck: str) -> Record:
    """A load hangs there, ``mass`` without tare: what is known of it should the scale be stopped."""
    return Record(TAKEN, stamp_ns, {'truck': truck, 'start_ns': carried.start_ns, **mass_data(mass),
                                    'taken': place_data(carried.taken)}, key=f'taken {carried.start_ns} {stamp_ns}')


def missed_record(taken: Record, stamp_ns: int) -> Record:
    """The load of a `taken` record was gone when the scale came back."""
    return Record(MISSED, stamp_ns, taken.data, key=f'missed {taken.number}')


def missed_line(missed: Record) -> str:
    """What is to be said of it."""
    return (f'a load of {missed.data["mass"]:.1f} kg, {missed.data["truck"]}, hung there when the scale stopped and '
            'was gone when it came back: it counts only when the operator says so (load_done)')


def confirmed_record(missed: Record, stamp_ns: int) -> Record:
    """The operator says that it was delivered, as it was weighed when it was taken."""
    data = missed.data
    return Record(LOAD, stamp_ns, {**data, 'end_ns': missed.stamp_ns, 'most': data['mass'], 'dropped': None,
                                   'status': WEIGHED, 'counts': True, 'trusted': False, 'who': OPERATOR},
                  key=f'load {data["start_ns"]} {missed.stamp_ns}')


def load_record(load: Load, truck: str, who: str = SCALE, hanging: float | None = None) -> Record:
    """A load; one that begins at the same instant and is of the same truck is the same one. ``hanging``, kg: what hangs
    on the machine still, tare included, of a load that the operator has counted before its end."""
    return Record(LOAD, load.end_ns, {
        'truck': truck, 'start_ns': load.start_ns, 'end_ns': load.end_ns, **mass_data(load.mass), 'most': load.most,
        'taken': place_data(load.taken), 'dropped': place_data(load.dropped), 'status': load.status,
        'counts': load.counts, 'trusted': load.trusted, 'who': who, 'faults': list(load.faults.words),
        **({} if hanging is None else {'hanging': hanging})},
        key=f'load {load.start_ns} {load.end_ns}')


class Row(NamedTuple):
    """A record as the file has it: texts as bytes; ``checksum`` None of one that an older version has written."""

    number: Any
    kind: Any
    stamp_ns: Any
    key: Any
    data: Any
    written: Any
    checksum: Any = None


class Damage(NamedTuple):
    """What is wrong with a file: with the record ``number``, None for the file itself."""

    number: int | None
    text: str

    @property
    def line(self) -> str:
        """In words."""
        return self.text if self.number is None else f'record {self.number}: {self.text}'


def checksum_of(number: int, kind: str, stamp_ns: int, key: str | None, data: str, written: str) -> str:
    """SHA-256 of all that a record consists of, hexadecimal."""
    return sha256(json.dumps([number, kind, stamp_ns, key, data, written]).encode()).hexdigest()


def checked(row: Row) -> Record | Damage:
    """The record of a row, or what is wrong with it."""
    number = row.number if isinstance(row.number, int) else None
    if number is None or not 0 < number < LARGEST or not isinstance(row.stamp_ns, int):
        return Damage(None, f'a record with the number {_short(row.number)} and the stamp {_short(row.stamp_ns)}')
    try:
        kind, data, written = (str(item, 'utf-8') for item in (row.kind, row.data, row.written))
        key, checksum = (None if item is None else str(item, 'utf-8') for item in (row.key, row.checksum))
    except (UnicodeDecodeError, TypeError):
        return Damage(number, 'a part of it is missing, or not text in UTF-8')
    if checksum is not None and checksum != checksum_of(number, kind, row.stamp_ns, key, data, written):
        return Damage(number, 'it does not have its checksum: something in it has changed since it was written')
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        return Damage(number, f'its data is not JSON ({error})')
    record = Record(kind, row.stamp_ns, values, key or '', number)
    fault = fault_of(record, checksum is not None)
    return Damage(number, fault) if fault else record


def fault_of(record: Record, verified: bool = False) -> str:
    """What contradicts itself in a record, '' for nothing; kinds that are unknown are those of a newer version if the
    record is ``verified`` by its checksum."""
    data, fields = record.data, _FIELDS.get(record.kind)
    if not isinstance(data, dict):
        return 'its data is not a mapping'
    if fields is None:
        return '' if verified else f'a record of the kind {record.kind!r}, expected one of {", ".join(_FIELDS)}'
    for name, fits in fields.items():
        if not fits(data.get(name)):
            return f'{name}: got {_short(data.get(name))}, expected {_WORDS[fits]}'
    for name, fits in _LATER.items():
        if name in data and not fits(data[name]):
            return f'{name}: got {_short(data[name])}, expected {_WORDS[fits]}'
    return _contradiction(record) if 'interval' in fields else ''


def _contradiction(record: Record) -> str:
    """A mass against its interval, and this against what it consists of."""
    mass, (lower, upper) = mass_of(record.data), record.data['interval']
    tolerance = CLOSE * mass.stddev + 1e-9 * (1.0 + abs(mass.value))
    expected_lower, expected_upper = mass.interval
    if abs(lower - expected_lower) > tolerance or abs(upper - expected_upper) > tolerance \
            or abs(record.data['stddev'] - mass.stddev) > tolerance:
        return (f'a mass of {mass.value:.6g} kg, an interval of {lower:.6g} to {upper:.6g} kg, a standard deviation of '
                f'{record.data["stddev"]:.6g} kg, of which {mass.own:.6g} kg is its own: these contradict each other')
    return ''


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + '...'


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15 and isfinite(value)


def _size(value: object) -> bool:
    return _number(value) and value >= 0.0      # type: ignore[operator]


def _maybe(value: object) -> bool:
    return value is None or _number(value)


def _stamp(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and STAMPS[0] <= value < STAMPS[1]


def _text(value: object) -> bool:
    return isinstance(value, str) and not any('\ud800' <= letter <= '\udfff' for letter in value)


def _truth(value: object) -> bool:
    return isinstance(value, bool)


def _pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_number, value)) and value[0] <= value[1]


def _causes(value: object) -> bool:
    return isinstance(value, dict) and all(_text(key) and _number(kg) for key, kg in value.items())


def _place(value: object) -> bool:
    return value is None or isinstance(value, dict) and {'x', 'y', 'z'} <= set(value) <= {'x', 'y', 'z', 'swing'} \
        and all(map(_number, value.values()))


def _numbers(value: object) -> bool:
    return isinstance(value, list) and all(map(_stamp, value))


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _status(value: object) -> bool:
    return value in (WEIGHED, PUT_BACK, CARRIED)


Fits = Callable[[Any], bool]
_WORDS: Mapping[Fits, str] = {
    _number: 'a number', _size: 'a number from 0 on', _maybe: 'a number or nothing', _stamp: 'a stamp, ns',
    _text: 'text', _truth: 'true or false', _pair: 'its two ends, the lower one first', _causes: 'kg by cause',
    _numbers: 'numbers of records', _texts: 'texts', _place: 'a place, x, y, z, or nothing',
    _status: f'one of {WEIGHED}, {PUT_BACK}, {CARRIED}'}
_MASS: Mapping[str, Fits] = {'mass': _number, 'interval': _pair, 'stddev': _size, 'own': _size, 'common': _causes}
_HUNG: Mapping[str, Fits] = {'truck': _text, 'start_ns': _stamp, **_MASS, 'taken': _place}
_FIELDS: Mapping[str, Mapping[str, Fits]] = {
    LOAD: {**_HUNG, 'end_ns': _stamp, 'most': _number, 'dropped': _place, 'status': _status, 'counts': _truth,
           'trusted': _truth, 'who': _text, 'hanging': _maybe},
    TAKEN: _HUNG, MISSED: _HUNG, UNDO: {'load': _stamp}, TRUCK: {'truck': _text, 'target': _maybe},
    TARGET: {'target': _number}, ZERO: _MASS, ATTACHMENT: {'attachment': _text}, ENDED: {}, REPAIRED: {
        'file': _text, 'kept': _stamp, 'lost': _numbers, 'absent': _numbers, 'because': _texts}}
"""By kind of record what its fields have to be."""
_LATER: Mapping[str, Fits] = {'order': _text, 'why': _text, 'faults': _texts}
"""Fields that not all records have."""
