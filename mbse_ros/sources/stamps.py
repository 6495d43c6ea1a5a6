# SPDX-License-Identifier: Apache-2.0
"""Where the instant of a sample comes from: a header, a nested one, or the message's arrival."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..bags.messages import SECOND, SENSOR_LAST_NS
from .fields import HEADER, TIME, Fields, FieldType
from .getters import getter
from .map import ARRIVAL, HEADER_STAMP
from .path import PathStep, parse_path, path_text

DEPTH = 3       # fields of fields that are looked at for a stamp


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
