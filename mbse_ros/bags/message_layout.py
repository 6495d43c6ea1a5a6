# SPDX-License-Identifier: Apache-2.0
"""Serialized messages of a few types: read without their definitions, and what one of them teaches about the next ones.

Messages lie one after the other as in a file. A layout says which bytes are always so, and which channel a double is.
It is found by giving a topic's reader the same message with numbers that tell their places; so what is read by it are
the samples of that reader. A message that is not little-endian and plainly of such a type is left to the typestore's
reader, which has to say why; one that fits no layout, or has anything to be refused, to the reader of the topic.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ..errors import SampleError
from .channel_samples import Sample, TopicReader, is_strange
from .messages import SECOND, SENSOR_LAST_NS
from .topics import FLUID_PRESSURE, IMU, JOINT_STATE, TRUTH

STAMP = slice(4, 12)    # bytes of the stamp of a header that comes first
LITTLE_ENDIAN = b'\x00\x01'
MOST = 64               # texts of a sequence
BEHIND = 11             # bytes that a publisher of serialized messages on Fast DDS may leave there
_BASE = 4               # bytes of the encapsulation, from behind which alignment counts
_COUNT, _TIME = struct.Struct('<I'), struct.Struct('<iI')
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
LAYOUTS = 8         # of a topic, at once in use; messages of more kinds are read one by one
MISSES = 64         # layouts that were forgotten, after which a topic is read one by one
LARGEST = 1 << 16   # bytes of a message
_STAMP = '4xiI'


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


class MessageBatch(NamedTuple):
    """Messages of wanted topics: message k, at ``times[k]``, ns, is ``content[starts[k]:stops[k]]``, of topic
    ``topics[k]`` among those asked for.

    ``last``: no message that comes in a later batch is older than this time, ns; None: there is no later one.
    """

    content: bytes
    times: np.ndarray
    topics: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    last: int | None


def joined(messages: Sequence[tuple[int, int, bytes]], last: int | None) -> MessageBatch:
    """A batch of single messages: times, ns, topics and bytes."""
    sizes = np.array([len(data) for _, _, data in messages], dtype=np.int64)
    stops = np.cumsum(sizes)
    return MessageBatch(b''.join(data for _, _, data in messages),
                        np.array([time for time, _, _ in messages], dtype=np.int64),
                        _small(topic for _, topic, _ in messages), stops - sizes, stops, last)


def _small(numbers: Iterable[int]) -> np.ndarray:
    return np.fromiter(numbers, dtype=np.int32)


class MessageLayout(NamedTuple):
    """``same`` (size,) bytes of a message and ``mask`` (size,): 0xFF where they are always so; of its samples the
    ``channels`` and the ``places`` of their doubles."""

    same: bytes
    mask: bytes
    channels: tuple[str, ...]
    places: tuple[int, ...]


def layout_of(topic: str, reader: TopicReader, cdr: bytes, refused: list[SampleError],
              strangers: bool = False) -> MessageLayout | None:
    """The layout of a message; None where it must be read by the reader of single ones.

    ``refused``: list into which the reader refuses; empty before and after. ``strangers``: names that no sensor has are
    no reason against it.
    """
    found = read(cdr, reader.msgtype) if reader.msgtype in TYPES else None
    if found is None:
        return None
    marked, mask = bytearray(cdr), bytearray(b'\xff' * found.size + bytes(len(cdr) - found.size))
    marked[STAMP] = mask[STAMP] = bytes(STAMP.stop - STAMP.start)
    places: list[int] = []
    for start, count in found.doubles:
        mask[start:start + 8 * count] = bytes(8 * count)
        struct.pack_into(f'<{count}d', marked, start, *range(len(places), len(places) + count))
        places += range(start, start + 8 * count, 8)
    numbered = read(bytes(marked), reader.msgtype)
    if numbered is None:
        return None
    samples = reader.samples(topic, numbered.message)
    spoilt = not all(strangers and is_strange(error) for error in refused)
    refused.clear()
    if spoilt:
        return None
    return MessageLayout(bytes(cdr), bytes(mask), tuple(sample.channel for sample in samples),
                         tuple(places[int(sample.value)] for sample in samples))


class _Form(NamedTuple):
    """A layout for one message after the other: its bytes as a number, which the ``mask`` makes the ``same`` each time;
    ``unpack`` gives the stamp and the doubles in the order of the bytes; ``samples``: channels and places of these."""

    mask: int
    same: int
    unpack: Callable[[bytes], tuple[Any, ...]]
    samples: tuple[tuple[str, int], ...]


class Forms:
    """Samples of one topic's messages, one at a time, at a tenth of what its reader costs.

    ``reader`` refuses into ``refused``, a list that is empty between two calls.
    """

    def __init__(self, topic: str, reader: TopicReader, refused: list[SampleError]) -> None:
        self._topic, self._reader, self._refused = topic, reader, refused
        self._forms: dict[int, list[_Form]] = {}      # by the size of the message, bytes
        self._left = LAYOUTS

    def samples(self, cdr: bytes) -> list[Sample] | None:
        """The samples of a message; None where the reader itself has to read it."""
        for mask, same, unpack, samples in self._forms.get(len(cdr), ()):
            if int.from_bytes(cdr, 'little') & mask == same:
                values = unpack(cdr)
                stamp, nanosec = values[0] * SECOND + values[1], values[1]
                if nanosec >= SECOND or abs(stamp) > SENSOR_LAST_NS:
                    return None
                return [Sample(channel, stamp, values[place]) for channel, place in samples]
        return None

    def read(self, cdr: bytes, message: Callable[[bytes], Any], refuse: Callable[[SampleError], None]) -> list[Sample]:
        """Samples of a message by a form, else by the reader, of what ``message`` makes of the bytes; ``refuse`` gets
        what the reader has refused. Raises what ``message`` does."""
        found = self.samples(cdr)
        if found is not None:
            return found
        found = self._reader.samples(self._topic, message(cdr))
        refused = self._refused.copy()
        self._refused.clear()
        for error in refused:
            refuse(error)
        if all(map(is_strange, refused)):
            self.learn(cdr)
        return found

    def learn(self, cdr: bytes) -> None:
        """Take a message that no form fits as a new form, as long as there are not too many."""
        if self._left > 0 and STAMP.stop <= len(cdr) <= LARGEST:
            self._left -= 1
            layout = layout_of(self._topic, self._reader, cdr, self._refused, strangers=True)
            if layout is not None:
                self._forms.setdefault(len(cdr), []).append(_form(layout))


def _form(layout: MessageLayout) -> _Form:
    text, end, places = f'<{_STAMP}', STAMP.stop, sorted(layout.places)
    for place in places:
        text, end = f'{text}{place - end}xd', place + 8
    mask = int.from_bytes(layout.mask, 'little')
    return _Form(mask, int.from_bytes(layout.same, 'little') & mask, struct.Struct(text).unpack_from,
                 tuple((channel, 2 + places.index(place)) for channel, place in zip(layout.channels, layout.places)))
