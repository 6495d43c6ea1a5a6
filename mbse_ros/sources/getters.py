# SPDX-License-Identifier: Apache-2.0
"""A path and a message type to a function that gives the value of a message: resolved once, called a thousand times a
second. So, too, for the instant of a sample, which comes from a header, a nested one, or the message's arrival."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from ..bags.messages import SECOND, SENSOR_LAST_NS
from ..errors import did_you_mean
from .fields import (
    ANGLES,
    ARRIVAL,
    HEADER,
    HEADER_STAMP,
    QUATERNION,
    TIME,
    Fields,
    FieldType,
    Path,
    PathStep,
    Selection,
    described,
    parse_path,
    path_text,
)

Get = Callable[[Any], Any]
UNIT = 0.02      # largest error of a quaternion's squared length: coarser than any rounding
DEPTH = 3       # fields of fields that are looked at for a stamp


class Absent(LookupError):
    """A message has no such element: ``what`` in words that are the same each time; ``there``: what it has instead;
    ``key`` of the map that asks for it."""

    key = 'path'

    def __init__(self, what: str, there: Sequence[str] = ()) -> None:
        self.what, self.there = what, tuple(there)
        super().__init__(what)


class Getter(NamedTuple):
    """``get(message)`` gives the value, or raises Absent; ``kind`` of the value."""

    get: Get
    kind: FieldType


def getter(path: Path, msgtype: str, fields: Fields) -> Getter:
    """The function of a path in messages of a type.

    Raises ValueError, a phrase with the fields that there are, where the type has no such path, and KeyError (the type)
    where nothing is known of the type.
    """
    parts: list[Get] = []
    pending: list[str] = []     # plain fields since the last element of an array
    kind = FieldType(msgtype)
    for place, step in enumerate(path):
        if kind.base == QUATERNION and step.field in ANGLES and step.selection is None and place == len(path) - 1:
            parts += [*_plain(pending), ANGLE_OF[step.field]]
            return Getter(_joined(parts), FieldType('float64'))
        inside = _fields_of(kind, path[:place], fields)
        if step.field not in inside:
            raise ValueError(f'a field of {kind.base}{_of(path[:place])}: {described(inside)}'
                             + _angles(kind) + did_you_mean(step.field, inside))
        holder, kind = inside, inside[step.field]
        if step.selection is None:
            if kind.repeated:
                raise ValueError(_which(path[:place + 1], step.field, holder, kind, fields))
            pending.append(step.field)
            continue
        if not kind.repeated:
            raise ValueError(f'{path_text((*path[:place], step._replace(selection=None)))} without brackets: '
                             f'it is a {kind}, not an array')
        parts += [*_plain(pending), _element(step.field, step.selection, kind, holder, fields)]
        pending = []
        kind = kind._replace(repeated=False)
    return Getter(_joined([*parts, *_plain(pending)]), kind)


def number_getter(path: Path, msgtype: str, fields: Fields) -> Get:
    """The same of a path that must lead to a number; raises as `getter`."""
    found = getter(path, msgtype, fields)
    if not found.kind.is_number:
        more = ''
        if found.kind.is_message:
            inside = fields(found.kind.base)
            more = f'; {path_text(path)} is a {found.kind} with the fields {described(inside)}' + _angles(found.kind)
        raise ValueError('a path to a number' + (more or f', not to a {found.kind}'))
    return found.get


def of_quaternion(path: Path, msgtype: str, fields: Fields) -> bool:
    """Whether a path leads to roll, pitch or yaw of a quaternion, which is in rad; raises as `getter`."""
    if path[-1].field not in ANGLES or path[-1].selection is not None:
        return False
    return (getter(path[:-1], msgtype, fields).kind.base if path[:-1] else msgtype) == QUATERNION


def _fields_of(kind: FieldType, path: Path, fields: Fields) -> dict[str, FieldType]:
    if not kind.is_message:
        raise ValueError(f'nothing behind {path_text(path)}, which is a {kind}')
    return dict(fields(kind.base))


def _plain(names: list[str]) -> list[Get]:
    return [attrgetter('.'.join(names))] if names else []


def _joined(parts: Sequence[Get]) -> Get:
    """One function after the other."""
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        first, second = parts
        return lambda message: second(first(message))

    def get(message: Any) -> Any:
        for part in parts:
            message = part(message)
        return message
    return get


def _element(field: str, selection: Selection, kind: FieldType, holder: dict[str, FieldType], fields: Fields) -> Get:
    """Element of the array ``field`` of a message with the fields ``holder``."""
    array = attrgetter(field)
    if selection.place is not None:
        place, what = selection.place, f'no element {selection.place} of {field}'

        def at_place(message: Any) -> Any:
            values = array(message)
            if place >= len(values):
                raise Absent(what, [f'{len(values)} elements'])
            return values[place]
        return at_place
    key = '.'.join(selection.key)
    within = kind.is_message and (selection.key[0] in fields(kind.base) or selection.key[0] not in holder)
    what = f'no {"|".join(selection.names)} in {field if within else key}'
    if within:
        _check_key(selection.key, fields(kind.base), kind.base, fields, False)
        return _named(array, array, attrgetter(key), selection.names, what)
    _check_key(selection.key, holder, 'the message that holds it', fields, True)
    get = _named(array, *_labels(selection.key, holder, fields), selection.names, what)
    return get if len(selection.key) > 1 else _as_long(array, attrgetter(key), get, field, key)


def _as_long(array: Get, labels: Get, get: Get, field: str, key: str) -> Get:
    """The same where an array is as long as that of the names beside it, or empty: of another it is not known which
    value is whose."""
    def checked(message: Any) -> Any:
        values, names = len(array(message)), len(labels(message))
        if values != names and values:
            raise ValueError(f'{values} values in {field} for {names} in {key}')
        return get(message)
    return checked


def _named(array: Get, labelled: Get, label: Get, wanted: Sequence[str], what: str) -> Get:
    """Element of ``array`` in the place where ``label`` of an element of ``labelled`` is one of the ``wanted``; the
    place of the last time is looked at first."""
    hint = 0

    def by_name(message: Any) -> Any:
        nonlocal hint
        items, values = labelled(message), array(message)
        if not (hint < len(items) and label(items[hint]) in wanted):
            there = [label(item) for item in items]
            hint = next((place for place, name in enumerate(there) if name in wanted), 0)
            if not (there and there[hint] in wanted):
                raise Absent(what, there)
        if hint >= len(values):
            raise Absent(f'{what} with a value', [f'{len(values)} values'])
        return values[hint]
    return by_name


def _check_key(key: Sequence[str], inside: Mapping[str, FieldType], owner: str, fields: Fields, repeated: bool) -> None:
    """Raise ValueError where a key does not lead to text: of each element, or to an array of it beside the values."""
    arrays = 0
    for place, name in enumerate(key):
        if name not in inside:
            raise ValueError(f'a key among the fields of {owner}: {described(inside)}' + did_you_mean(name, inside))
        kind = inside[name]
        arrays += kind.repeated
        owner = kind.base
        if place < len(key) - 1:
            if not kind.is_message:
                raise ValueError(f'nothing behind {name}, which is a {kind}')
            inside = dict(fields(kind.base))
    if not kind.is_text or arrays != repeated:
        raise ValueError(f'a key to {"an array of text" if repeated else "text"}: {".".join(key)} is '
                         f'{"an array of " if arrays else "a "}{kind.base}')


def _labels(key: Sequence[str], inside: dict[str, FieldType], fields: Fields) -> tuple[Get, Get]:
    """The array on the way of a key, and the text of one of its elements."""
    for place, name in enumerate(key):
        kind = inside[name]
        if kind.repeated:
            rest = key[place + 1:]
            return attrgetter('.'.join(key[:place + 1])), attrgetter('.'.join(rest)) if rest else _itself
        inside = dict(fields(kind.base))
    raise ValueError('a key with an array')     # _check_key has seen to it


def _itself(text: str) -> str:
    return text


def _which(path: Path, field: str, holder: dict[str, FieldType], kind: FieldType, fields: Fields) -> str:
    """What to write for one element of an array."""
    text = path_text(path)
    ways = [f'{text}[0]']
    if kind.is_message:
        ways += [f'{text}[{name}=...]' for name, inner in fields(kind.base).items() if inner == FieldType('string')]
        if 'header' in fields(kind.base):
            ways.append(f'{text}[header.frame_id=...]')
    ways += [f'{text}[{name}=...]' for name, other in holder.items() if other.is_text and other.repeated]
    if not kind.is_message:
        ways += [f'{text}[layout.dim.label=...]'] if 'layout' in holder else []
    return f'one element of the array {field}: {", ".join(ways)}'


def _of(path: Path) -> str:
    return f' ({path_text(path)})' if path else ''


def _angles(kind: FieldType) -> str:
    return f', {", ".join(ANGLES)} (rad)' if kind.base == QUATERNION else ''


def _unit(q: Any) -> Any:
    """The same; raises ValueError for one that is not an attitude: not of unit length."""
    size = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z
    if not abs(size - 1.0) <= UNIT:
        raise ValueError(f'a quaternion of length {math.sqrt(size) if size >= 0.0 else size:.3g}, not 1')
    return q


def _roll(q: Any) -> float:
    q = _unit(q)
    return math.atan2(2.0 * (q.w * q.x + q.y * q.z), q.w * q.w - q.x * q.x - q.y * q.y + q.z * q.z)


def _pitch(q: Any) -> float:
    q = _unit(q)
    size = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z
    return math.asin(max(-1.0, min(1.0, 2.0 * (q.w * q.y - q.z * q.x) / size)))


def _yaw(q: Any) -> float:
    q = _unit(q)
    return math.atan2(2.0 * (q.w * q.z + q.x * q.y), q.w * q.w + q.x * q.x - q.y * q.y - q.z * q.z)


ANGLE_OF = {'roll': _roll, 'pitch': _pitch, 'yaw': _yaw}       # about the fixed axes x, y, z (REP-103)


def stamp_getter(stamp: str, msgtype: str, fields: Fields) -> Callable[[Any], int] | None:
    """Function from a message to its stamp, ns; None: that of its arrival.

    It raises Absent where a message has no such element, ValueError where that is not a time. Raises ValueError, a
    phrase with what would do, where messages of this type have no such stamp.
    """
    if stamp == ARRIVAL:
        return None
    path = parse_path(stamp)
    if stamp == HEADER_STAMP and fields(msgtype).get('header') != FieldType(HEADER):
        raise ValueError(_remedy(f'{msgtype} has no header', msgtype, fields))
    found = getter(path, msgtype, fields)
    if found.kind == FieldType(HEADER):
        found = getter((*path, PathStep('stamp')), msgtype, fields)
    if found.kind != FieldType(TIME):
        raise ValueError(_remedy(f'{path_text(path)} is a {found.kind}', msgtype, fields))
    get = found.get

    def stamp_of(message: Any) -> int:
        time = get(message)
        sec, nanosec = int(time.sec), int(time.nanosec)
        stamp_ns = sec * SECOND + nanosec
        if not 0 <= nanosec < SECOND or abs(stamp_ns) > SENSOR_LAST_NS:
            raise ValueError(f'{sec} s and {nanosec} ns')
        return stamp_ns
    return stamp_of


def time_paths(msgtype: str, fields: Fields, depth: int = DEPTH) -> list[str]:
    """Paths to headers and times in messages of a type, the shortest first; of arrays their first elements."""
    found, inside = [], fields(msgtype)
    for name, kind in inside.items():
        text = f'{name}[0]' if kind.repeated else name
        if kind.base in (HEADER, TIME):
            found.append(text)
        elif kind.is_message and depth > 1:
            found += [f'{text}.{rest}' for rest in time_paths(kind.base, fields, depth - 1)]
    return sorted(found, key=len)


def _remedy(fault: str, msgtype: str, fields: Fields) -> str:
    nested = [text for text in time_paths(msgtype, fields) if text != 'header'][:4]
    other = f'{", ".join(nested)} (nested in {msgtype}) or ' if nested else ''
    return f'{other}{ARRIVAL}, the time at which a message arrives, or was recorded; {fault}'
