# SPDX-License-Identifier: Apache-2.0
"""Serialized messages of a few types read without their definitions, with the places of the numbers in them.

Little-endian and plainly such a message, or nothing: then the typestore's reader has to say why.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ..messages import SECOND
from ..topics import FLUID_PRESSURE, IMU, JOINT_STATE, TRUTH

STAMP = slice(4, 12)    # bytes of the stamp of a header that comes first
LITTLE_ENDIAN = b'\x00\x01'
MOST = 64               # texts of a sequence
BEHIND = 11             # bytes that a publisher of serialized messages on Fast DDS may leave there
_BASE = 4               # bytes of the encapsulation, from behind which alignment counts
_COUNT, _TIME, _DOUBLE = struct.Struct('<I'), struct.Struct('<iI'), struct.Struct('<d')
LONGEST = 1024          # values of a sequence
# Fields and their kinds: what a reader looks at are places of numbers ('double', 'doubles'; 'double[3]': x, y, z),
# 'same[9]' are numbers that are the same in all messages or not read in bulk.
_HEADER = ('header', 'header')
TYPES: dict[str, tuple[tuple[str, str], ...]] = {
    JOINT_STATE: (_HEADER, ('name', 'strings'), ('position', 'doubles'), ('velocity', 'doubles'),
                  ('effort', 'doubles')),
    FLUID_PRESSURE: (_HEADER, ('fluid_pressure', 'double'), ('variance', 'double')),
    IMU: (_HEADER, ('orientation', 'double[4]'), ('orientation_covariance', 'same[9]'),
          ('angular_velocity', 'double[3]'), ('angular_velocity_covariance', 'same[9]'),
          ('linear_acceleration', 'double[3]'), ('linear_acceleration_covariance', 'same[9]')),
    TRUTH: (_HEADER, ('cylinders', 'strings'), ('position', 'doubles'), ('velocity', 'doubles'),
            ('acceleration', 'doubles'), ('volumes', 'strings'), ('pressure', 'doubles'), ('payload', 'double')),
}


class Read(NamedTuple):
    """A message, the places of its doubles (first byte, how many), and its ``size``, bytes: more may be behind it."""

    message: SimpleNamespace
    doubles: tuple[tuple[int, int], ...]
    size: int


def in_columns(messages: Sequence[bytes], msgtype: str) -> tuple[Read, np.ndarray, dict[str, np.ndarray]] | None:
    """The first of messages that differ in stamp and numbers alone, the stamps of all (k,), ns, and their fields
    'double' (k,) and 'doubles' (k, n); None where they differ in more: then each has to be read."""
    first = read(messages[0], msgtype)
    size = len(messages[0])
    if first is None or any(len(cdr) != size for cdr in messages):
        return None
    rows, same = np.frombuffer(b''.join(messages), np.uint8).reshape(-1, size), np.ones(size, dtype=bool)
    same[STAMP], same[first.size:] = False, False
    found, places = {}, iter(first.doubles)
    for name, kind in TYPES[msgtype]:
        count = kind == 'double' or kind == 'doubles' and len(getattr(first.message, name))
        if kind in ('double', 'doubles'):
            start = next(places)[0] if count else 0
            same[start:start + 8 * count] = False
            values = np.ascontiguousarray(rows[:, start:start + 8 * count]).view('<f8')
            found[name] = values[:, 0] if kind == 'double' else values
    if (rows[:, same] != rows[0, same]).any():
        return None
    stamps = np.ascontiguousarray(rows[:, STAMP]).view([('sec', '<i4'), ('nanosec', '<u4')])[:, 0]
    return first, stamps['sec'].astype(np.int64) * SECOND + stamps['nanosec'], found


class _Odd(Exception):
    """Not plainly such a message."""


def read(cdr: bytes, msgtype: str) -> Read | None:
    """The message of a type of ``TYPES``; None for bytes that are not plainly one."""
    if cdr[:2] != LITTLE_ENDIAN:
        return None
    reader = _CdrReader(cdr)
    try:
        message = SimpleNamespace(**{name: reader.field(kind) for name, kind in TYPES[msgtype]})
    except (struct.error, ValueError, _Odd):
        return None
    if not 0 <= len(cdr) - reader.place <= BEHIND:
        return None
    return Read(message, tuple(reader.doubles), reader.place)


class _CdrReader:
    """Reads field after field."""

    def __init__(self, cdr: bytes) -> None:
        self.cdr, self.place = cdr, _BASE
        self.doubles: list[tuple[int, int]] = []

    def field(self, kind: str) -> Any:
        """The next field; raises struct.error, ValueError or _Odd."""
        name, _, count = kind.partition('[')
        if count:
            values = self._numbers(int(count[:-1]), name == 'double')
            return values if name == 'same' else SimpleNamespace(**dict(zip('xyzw', values.tolist())))
        return getattr(self, f'_{kind}')()

    def _align(self, size: int) -> None:
        self.place += -(self.place - _BASE) % size

    def _header(self) -> SimpleNamespace:
        sec, nanosec = _TIME.unpack_from(self.cdr, self.place)
        self.place += 8
        return SimpleNamespace(stamp=SimpleNamespace(sec=sec, nanosec=nanosec), frame_id=self._string())

    def _count(self) -> int:
        self._align(4)
        count, = _COUNT.unpack_from(self.cdr, self.place)
        self.place += 4
        return count

    def _string(self) -> str:
        length = self._count()
        end = self.place + length
        if not length or end > len(self.cdr) or self.cdr[end - 1]:
            raise _Odd
        text = self.cdr[self.place:end - 1].decode()
        self.place = end
        return text

    def _strings(self) -> list[str]:
        count = self._count()
        if count > MOST:
            raise _Odd
        return [self._string() for _ in range(count)]

    def _double(self) -> float:
        return float(self._numbers(1, True)[0])

    def _doubles(self) -> np.ndarray:
        count = self._count()
        if count > LONGEST:
            raise _Odd
        return self._numbers(count, True) if count else np.empty(0)

    def _numbers(self, count: int, free: bool) -> np.ndarray:
        self._align(8)
        values = np.frombuffer(self.cdr, '<f8', count, self.place)
        if free:
            self.doubles.append((self.place, count))
        self.place += 8 * count
        return values
