# SPDX-License-Identifier: Apache-2.0
"""Serialized messages (CDR, as DDS carries them) read and written directly: at hundreds of Hz rclpy's conversion of a
message costs more than the filter. What stays from one message to the next (names) is read, or laid out, once."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

HEAD = 4            # bytes of the encapsulation, from behind which alignment counts
STAMP = HEAD + 8
IMU_FIELDS = {'angular_velocity': slice(13, 16), 'linear_acceleration': slice(25, 28)}     # of its 37 numbers
IMU_NUMBERS = 37
SECOND = 1_000_000_000
_STAMP = struct.Struct('<iI')


class Joints(NamedTuple):
    """A JointState."""

    stamp_ns: int
    name: tuple[str, ...]
    position: tuple[float, ...]
    velocity: tuple[float, ...]
    effort: tuple[float, ...]


class JointReader:
    """Reads the JointStates of one topic; raises ValueError for bytes that are none."""

    def __init__(self) -> None:
        self._known, self._name, self._end = b'', (), STAMP

    def __call__(self, cdr: bytes) -> Joints:
        """The message of serialized bytes."""
        order = _order(cdr)
        try:
            if not self._known or cdr[STAMP:self._end] != self._known:
                self._learn(cdr, order)
            position, at = _numbers(cdr, self._end, order)
            velocity, at = _numbers(cdr, at, order)
            effort, _ = _numbers(cdr, at, order)
            sec, nanosec = struct.unpack_from(order + 'iI', cdr, HEAD)
        except (struct.error, UnicodeDecodeError) as error:
            raise ValueError(f'not a JointState: {error}') from None
        return Joints(sec * SECOND + nanosec, self._name, position, velocity, effort)

    def _learn(self, cdr: bytes, order: str) -> None:
        """Names, and where they end; each takes four bytes at least, so a false count cannot make this long."""
        self._known = b''
        _, at = _text(cdr, STAMP, order)
        at = _aligned(at, 4)
        (count,), at, names = struct.unpack_from(order + 'I', cdr, at), at + 4, []
        for _ in range(count):
            name, at = _text(cdr, at, order)
            names.append(name)
        self._name, self._end = tuple(names), _aligned(at, 4)
        self._known = cdr[STAMP:self._end]


def imu_of(cdr: bytes) -> tuple[int, tuple[float, ...]]:
    """Stamp, ns, and the numbers of a serialized Imu, in the order of its fields; ValueError for bytes that are no Imu.
    """
    order = _order(cdr)
    try:
        sec, nanosec = struct.unpack_from(order + 'iI', cdr, HEAD)
        _, at = _text(cdr, STAMP, order)
        return sec * SECOND + nanosec, struct.unpack_from(f'{order}{IMU_NUMBERS}d', cdr, _aligned(at, 8))
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f'not an Imu: {error}') from None


class Template:
    """Serialized message of which only numbers change, laid out field by field; ``numbers`` and ``scalars`` tell where
    in ``data`` they go."""

    def __init__(self) -> None:
        self.data = bytearray(b'\x00\x01\x00\x00')

    def header(self, frame: str) -> None:
        """A std_msgs/Header, at the start, whose frame stays."""
        self.data += bytes(_STAMP.size)
        self.text(frame)

    def stamp(self, stamp_ns: int) -> None:
        """Fill in the header's stamp."""
        _STAMP.pack_into(self.data, HEAD, *divmod(stamp_ns, SECOND))

    def scalars(self, kind: str) -> tuple[struct.Struct, int]:
        """Room for one number of struct's kind; what packs it, and its place."""
        packer = struct.Struct('<' + kind)
        self._align(packer.size)
        self.data += bytes(packer.size)
        return packer, len(self.data) - packer.size

    def text(self, text: str) -> None:
        """A string that stays."""
        self._align(4)
        self.data += _string(text)

    def texts(self, items: Sequence[str]) -> None:
        """Strings that stay."""
        self._align(4)
        self.data += struct.pack('<I', len(items))
        for item in items:
            self.text(item)

    def numbers(self, count: int, size: int = 8) -> slice:
        """Room for a sequence of numbers of so many bytes; its place."""
        self._align(4)
        self.data += struct.pack('<I', count)
        if count:
            self._align(size)
        self.data += bytes(count * size)
        return slice(len(self.data) - count * size, len(self.data))

    def _align(self, size: int) -> None:
        self.data += bytes(-(len(self.data) - HEAD) % size)


class JointWriter:
    """JointStates of the same names to bytes; ``fields``: which of position, velocity and effort they have."""

    def __init__(self, frame: str, names: Sequence[str], fields: Sequence[str]) -> None:
        form = self._form = Template()
        form.header(frame)
        form.texts(names)
        places = {field: form.numbers(len(names) * (field in fields)) for field in ('position', 'velocity', 'effort')}
        self._places = [places[field] for field in fields]
        self._size = 8 * len(names)

    def __call__(self, stamp_ns: int, *values: np.ndarray) -> bytes:
        """The message with the values of each field, in the order of ``fields``; ValueError for another number."""
        self._form.stamp(stamp_ns)
        for place, array in zip(self._places, values, strict=True):
            numbers = doubles_of(array)
            if len(numbers) != self._size:
                raise ValueError(f'{len(numbers) // 8} values for {self._size // 8} names')
            self._form.data[place] = numbers
        return bytes(self._form.data)


def with_text(data: bytearray, text: str) -> bytes:
    """The message with a string behind."""
    return bytes(data) + bytes(-(len(data) - HEAD) % 4) + _string(text)


def doubles_of(values: np.ndarray) -> bytes:
    """Numbers as they are sent."""
    return np.asarray(values, dtype='<f8').tobytes()


def _order(cdr: bytes) -> str:
    """Byte order of a message."""
    if len(cdr) < STAMP or cdr[0] or cdr[1] > 1:
        raise ValueError('not a serialized message in plain CDR')
    return '<' if cdr[1] else '>'


def _aligned(at: int, size: int) -> int:
    return at + -(at - HEAD) % size


def _text(cdr: bytes, at: int, order: str) -> tuple[str, int]:
    """String, and what is behind it."""
    at = _aligned(at, 4)
    (length,) = struct.unpack_from(order + 'I', cdr, at)
    if at + 4 + length > len(cdr):
        raise ValueError('a string is cut short')
    return cdr[at + 4:at + 3 + length].decode() if length else '', at + 4 + length


def _numbers(cdr: bytes, at: int, order: str) -> tuple[tuple[float, ...], int]:
    """Sequence of float64, and what is behind it."""
    at = _aligned(at, 4)
    (count,) = struct.unpack_from(order + 'I', cdr, at)
    if not count:
        return (), at + 4
    if 8 * count > len(cdr):
        raise ValueError('a sequence is cut short')
    at = _aligned(at + 4, 8)
    return struct.unpack_from(f'{order}{count}d', cdr, at), at + 8 * count


def _string(text: str) -> bytes:
    data = text.encode() + b'\x00'
    return struct.pack('<I', len(data)) + data
