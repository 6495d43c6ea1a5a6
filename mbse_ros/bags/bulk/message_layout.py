# SPDX-License-Identifier: Apache-2.0
"""What one serialized message teaches about the next ones, which lie one after the other as in a file: which bytes are
always so, and which channel a double is.

A layout is found by giving a topic's reader the same message with numbers that tell their places; so what is read by it
are the samples of that reader. A message that fits no layout is left to the reader, as is one with anything to be
refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import SampleError
from ..channel_samples import Sample, TopicReader, is_strange
from ..messages import SECOND, SENSOR_LAST_NS
from .cdr import STAMP, TYPES, read

LAYOUTS = 8         # of a topic, at once in use; messages of more kinds are read one by one
MISSES = 64         # layouts that were forgotten, after which a topic is read one by one
LARGEST = 1 << 16   # bytes of a message
_STAMP = '4xiI'


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
