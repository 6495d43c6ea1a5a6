# SPDX-License-Identifier: Apache-2.0
"""Reads one mcap file, whole or cut: by its index where it has one, else by one rebuilt from what is there.

The index that the recorder wrote behind a chunk is only a guess at the places of its messages: it counts where the
records at these places follow each other without a hole, so that reading one record after the other finds the same
messages.
"""

from __future__ import annotations

import mmap
import struct
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

import numpy as np
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.reader import make_reader
from mcap.records import Channel, Chunk, Schema
from mcap.well_known import SchemaEncoding

from ..message_layout import MessageBatch
from .expand import Budget, expanded

HEAD = np.dtype([('opcode', 'u1'), ('length', '<u8'), ('channel', '<u2'), ('sequence', '<u4'), ('time', '<u8'),
                 ('published', '<u8')])
BEFORE = 9              # bytes of a record before its content
MOST_GAPS = 64          # runs of other records between the messages of a chunk
_INDEX, _RECORD = struct.Struct('<HI'), struct.Struct('<BQ')
_ENTRY = np.dtype([('time', '<u8'), ('offset', '<u8')])
Records = Callable[[bytes, int], Iterator[tuple[int, int, int]]]
MAGIC = b'\x89MCAP0\r\n'
ENCODINGS = ('cdr', '')     # of messages that can be read
LOOSE_BYTES = 1 << 20       # messages outside chunks are taken in blocks of this size
_MESSAGE = struct.Struct('<HIQQ')
_DAMAGE = (McapError, ValueError, KeyError, IndexError, struct.error, zstandard.ZstdError, RuntimeError, EOFError,
           OverflowError, MemoryError, OSError)

Stamped = tuple[int, str, bytes]    # time in the bag, ns; topic; serialized message


def messages_in(content: bytes, index: bytes, records: Records) -> tuple[np.ndarray, np.ndarray] | None:
    """Heads (n,) of the messages in the records of a chunk, and the places (n,) of these heads, in order.

    ``index``: the records behind the chunk; ``records``: reads one record after the other. None where the index does
    not say all, or not the truth.
    """
    offsets = _offsets(index, len(content), records)
    if offsets is None:
        return None
    heads = np.ndarray((len(content) - HEAD.itemsize + 1,), HEAD, content, strides=(1,))[offsets]
    if not np.all(heads['opcode'] == Opcode.MESSAGE) or np.any(heads['length'] > len(content)):
        return None
    stops = offsets + BEFORE + heads['length'].astype(np.int64)
    if np.any(heads['length'] < HEAD.itemsize - BEFORE) or np.any(stops[:-1] > offsets[1:]) or stops[-1] > len(content):
        return None
    starts = np.concatenate([[0], stops])
    gaps = np.flatnonzero(starts != np.append(offsets, len(content)))
    if len(gaps) > MOST_GAPS:
        return None
    for gap in gaps.tolist():
        end = int(offsets[gap]) if gap < len(offsets) else len(content)
        if not _others(content[int(starts[gap]):end], records, gap == len(offsets)):
            return None
    return heads, offsets


def _offsets(index: bytes, size: int, records: Records) -> np.ndarray | None:
    """Places of messages (n,), ascending, that an index names inside a chunk of that size; None of an odd one."""
    found = []
    for opcode, start, stop in records(index, 0):
        if opcode != Opcode.MESSAGE_INDEX or stop > len(index) or stop - start < _INDEX.size:
            return None
        length = _INDEX.unpack_from(index, start)[1]
        if length % _ENTRY.itemsize or start + _INDEX.size + length != stop:
            return None
        found.append(np.frombuffer(index, _ENTRY, length // _ENTRY.itemsize, start + _INDEX.size)['offset'])
    offsets = np.sort(np.concatenate(found)) if found else np.zeros(0, np.uint64)
    if not offsets.size or offsets[-1] > size - HEAD.itemsize or size < HEAD.itemsize:
        return None
    return offsets.astype(np.int64)


def _others(content: bytes, records: Records, last: bool) -> bool:
    """Whether there are whole records in here, none of them a message; behind the last message any rest will do."""
    end = 0
    for opcode, _, stop in records(content, 0):
        if opcode == Opcode.MESSAGE:
            return False
        end = stop
    return last or end == len(content)


@dataclass
class FileBlock:
    """Bytes of the file that hold messages: a chunk or a run of loose messages; times in ns; ``index``: bytes behind a
    chunk that say where its messages are."""

    first_ns: int
    last_ns: int
    start: int
    stop: int
    loose: bool = False
    index: int = 0


class McapFile:
    """One mcap file: ``topics`` to types, ``definitions`` of types, ``last_ns`` (None: no messages), ``warnings``.

    Raises ValueError, with the reason, where the file is not an mcap file.
    """

    IN_ORDER = False        # of batches: blocks may overlap

    def __init__(self, path: Path) -> None:
        self.path = path
        self.topics: dict[str, str] = {}
        self.definitions: dict[str, str] = {}
        self.warnings: list[str] = []
        self._channels: dict[int, str] = {}
        self._schemas: dict[int, str] = {}
        self._blocks: list[FileBlock] = []
        self._size = path.stat().st_size
        self._budget = Budget(self._size)
        with open(path, 'rb') as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                raise ValueError('not an mcap file: wrong first bytes')
            stream.seek(0)
            if not self._read_index(stream):
                self._forget()
                self._scan(stream)
        self._blocks.sort(key=lambda block: (block.first_ns, block.start))
        self.last_ns = max((block.last_ns for block in self._blocks), default=None)

    def messages(self, topics: Collection[str] | None = None) -> Iterator[Stamped]:
        """Messages of some topics, or of all, in the order of their times in the bag."""
        wanted = {number: topic for number, topic in self._channels.items() if topics is None or topic in topics}
        ready: list[Stamped] = []
        self._budget = Budget(self._size)
        with open(self.path, 'rb') as stream:
            for block, following in zip(self._blocks, [*self._blocks[1:], None]):
                ready = sorted(ready + self._load(stream, block, wanted), key=itemgetter(0))
                count = bisect_right(ready, following.first_ns, key=itemgetter(0)) if following else len(ready)
                yield from ready[:count]
                del ready[:count]

    def batches(self, topics: Sequence[str]) -> Iterator[MessageBatch]:
        """The same messages of these topics, block by block as they were written."""
        wanted = {topic: place for place, topic in enumerate(topics)}
        numbers = np.full(1 << 16, -1, dtype=np.int32)
        for channel, topic in self._channels.items():
            numbers[channel] = wanted.get(topic, -1)
        self._budget = Budget(self._size)
        with open(self.path, 'rb') as stream:
            for block, following in zip(self._blocks, [*self._blocks[1:], None]):
                content, index = self._content(stream, block)
                heads, places = messages_in(content, index, _records) or _heads(content)
                topic = numbers[heads['channel']]
                own = topic >= 0
                starts = places[own] + HEAD.itemsize
                stops = places[own] + BEFORE + heads['length'][own].astype(np.int64)
                yield MessageBatch(content, heads['time'][own], topic[own], starts, stops,
                                   following.first_ns if following else None)

    # The index

    def _forget(self) -> None:
        for part in (self.topics, self.definitions, self._channels, self._schemas, self._blocks):
            part.clear()

    def _read_index(self, stream: BinaryIO) -> bool:
        """Take the index at the end of the file; False where there is none that serves."""
        try:
            summary = make_reader(stream).get_summary()
        except _DAMAGE:
            return False
        if summary is None or summary.statistics is None or not summary.channels:
            return False
        for schema in summary.schemas.values():
            self._add_schema(schema)
        for channel in summary.channels.values():
            self._add_channel(channel)
        for chunk in summary.chunk_indexes:
            start = chunk.chunk_start_offset + _RECORD.size
            if not self._is_chunk(stream, chunk.chunk_start_offset, chunk.chunk_length):
                return False
            if chunk.message_end_time >= chunk.message_start_time:
                self._blocks.append(FileBlock(chunk.message_start_time, chunk.message_end_time, start,
                                              chunk.chunk_start_offset + chunk.chunk_length,
                                              index=chunk.message_index_length))
        chunked = len(summary.chunk_indexes) == summary.statistics.chunk_count
        return chunked and bool(self._blocks or not summary.statistics.message_count)

    def _is_chunk(self, stream: BinaryIO, start: int, length: int) -> bool:
        """Whether a chunk begins there, and may be so long."""
        if not 0 <= start < start + length - _RECORD.size <= self._size - _RECORD.size:
            return False
        stream.seek(start)
        return stream.read(1) == bytes([Opcode.CHUNK])

    def _add_schema(self, schema: Schema) -> None:
        self._schemas[schema.id] = schema.name
        if schema.encoding == SchemaEncoding.ROS2:
            self.definitions[schema.name] = schema.data.decode(errors='replace')

    def _add_channel(self, channel: Channel) -> None:
        if channel.message_encoding not in ENCODINGS and channel.id not in self._channels:
            encoding = channel.message_encoding
            what = ' of ROS 1: convert the bag it was made of with rosbags-convert' * (encoding == 'ros1')
            self.warnings.append(f'{self.path.name}: {channel.topic}: messages in {encoding!r}{what}, expected cdr, '
                                 'that of ROS 2')
        self._channels[channel.id] = channel.topic
        self.topics[channel.topic] = self._schemas.get(channel.schema_id, '')

    def _scan(self, stream: BinaryIO) -> None:
        """Build the index from the records, as far as they go."""
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            end, finished = len(MAGIC), False
            for opcode, start, stop in _records(data, len(MAGIC)):
                if opcode == Opcode.FOOTER:
                    finished = True
                    break
                end, stop, said = stop, min(stop, len(data)), len(self.warnings)
                if opcode == Opcode.CHUNK:
                    self._index_chunk(self._unpack(data[start:stop], start), start, stop)
                    if end > stop:      # it is cut, which is said below
                        del self.warnings[said:]
                elif (stamp := self._noted(data, opcode, start, stop)) is not None:
                    self._add_loose(stamp, start - _RECORD.size, stop)
            if not finished:
                self._warn_cut(len(data), end)

    def _warn_cut(self, size: int, end: int) -> None:
        last = max((block.last_ns for block in self._blocks), default=None)
        upto = f'read up to {last * 1e-9:.6f} s' if last is not None else 'no message is left'
        lost = f', {size - end} bytes of a record are left over' if size > end else ''
        self.warnings.append(f'{self.path.name}: cut off after {size} bytes{lost}: {upto}')

    def _index_chunk(self, content: bytes, start: int, stop: int) -> None:
        stamps = [stamp for opcode, begin, end in _records(content, 0) if end <= len(content)
                  and (stamp := self._noted(content, opcode, begin, end)) is not None]
        if stamps:
            self._blocks.append(FileBlock(min(stamps), max(stamps), start, stop))

    def _noted(self, data: bytes | mmap.mmap, opcode: int, start: int, stop: int) -> int | None:
        """Time of a message, ns; a topic or its type is taken note of."""
        if opcode == Opcode.MESSAGE and stop - start >= _MESSAGE.size:
            return _MESSAGE.unpack_from(data, start)[2]
        try:
            if opcode == Opcode.SCHEMA:
                self._add_schema(Schema.read(ReadDataStream(BytesIO(data[start:stop]))))
            elif opcode == Opcode.CHANNEL:
                self._add_channel(Channel.read(ReadDataStream(BytesIO(data[start:stop]))))
        except _DAMAGE as error:
            self.warnings.append(f'{self.path.name}: a topic cannot be read: {error}')
        return None

    def _add_loose(self, stamp: int, start: int, stop: int) -> None:
        """Put a message outside chunks into the block before it, as long as that is small and of its kind."""
        block = self._blocks[-1] if self._blocks else None
        if block and block.loose and block.stop == start and stop - block.start <= LOOSE_BYTES:
            block.first_ns, block.last_ns, block.stop = min(block.first_ns, stamp), max(block.last_ns, stamp), stop
        else:
            self._blocks.append(FileBlock(stamp, stamp, start, stop, True))

    # The messages

    def _load(self, stream: BinaryIO, block: FileBlock, wanted: dict[int, str]) -> list[Stamped]:
        """Messages of one block."""
        content, _ = self._content(stream, block)
        messages = []
        for opcode, start, stop in _records(content, 0):
            if opcode == Opcode.MESSAGE and start + _MESSAGE.size <= stop <= len(content):
                channel, _, stamp, _ = _MESSAGE.unpack_from(content, start)
                if channel in wanted:
                    messages.append((stamp, wanted[channel], content[start + _MESSAGE.size:stop]))
        return messages

    def _content(self, stream: BinaryIO, block: FileBlock) -> tuple[bytes, bytes]:
        """Records of a block, and of the index behind it."""
        stream.seek(block.start)
        content = stream.read(block.stop - block.start)
        if block.loose:
            return content, b''
        return self._unpack(content, block.start), stream.read(min(block.index, len(content) + LOOSE_BYTES))

    def _unpack(self, content: bytes, start: int) -> bytes:
        """Records of a chunk, as many of them as are there; a damaged chunk has none, with a warning."""
        try:
            chunk = Chunk.read(ReadDataStream(BytesIO(content)))
            records = expanded(chunk.data, chunk.compression, self._budget)
            if len(records) == chunk.uncompressed_size and chunk.uncompressed_crc not in (0, crc32(records)):
                raise ValueError('its checksum does not fit')
            return records
        except _DAMAGE as error:
            warning = f'{self.path.name}: the messages from byte {start} to {start + len(content)} are lost: {error}'
            if warning not in self.warnings:
                self.warnings.append(warning)
            return b''


def _heads(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Heads (n,) of the messages in records, and their places (n,), one after the other."""
    places = [start - _RECORD.size for opcode, start, stop in _records(content, 0)
              if opcode == Opcode.MESSAGE and start + _MESSAGE.size <= stop <= len(content)]
    heads = b''.join(content[place:place + HEAD.itemsize] for place in places)
    return np.frombuffer(heads, HEAD), np.array(places, dtype=np.int64)


def _records(data: bytes | mmap.mmap, position: int) -> Iterator[tuple[int, int, int]]:
    """Opcode, start and end of the content of each record; the end of the last one may lie beyond the data."""
    while position + _RECORD.size <= len(data):
        opcode, length = _RECORD.unpack_from(data, position)
        if opcode == 0:     # none: what follows is no mcap any more, perhaps zeros without end
            return
        position += _RECORD.size
        yield opcode, position, position + length
        position += length
