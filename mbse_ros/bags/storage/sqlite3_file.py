# SPDX-License-Identifier: Apache-2.0
"""Reads one sqlite3 file of a bag, whole, cut, or left with its journal by a recorder that was killed.

Checksums of the messages stand in a table of our own beside those of rosbag2, which passes over it. A row holds those
of a block: CRC-32 of id, time, topic, type and bytes of each message, and one over the row itself.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

from ...errors import shown
from ..message_layout import MessageBatch, joined

TABLE = 'mbse_ros_checksums'
CREATE = f'CREATE TABLE {TABLE}(first INTEGER PRIMARY KEY, sums BLOB NOT NULL);'
INSERT = f'INSERT INTO {TABLE}(first, sums) VALUES (?, ?)'
_SELECT = f'SELECT first, sums FROM {TABLE} ORDER BY first'
_PLACE, _SUM, _FIRST = struct.Struct('<qq'), struct.Struct('<I'), struct.Struct('<q')
_LITTLE = struct.pack('=H', 1) == struct.pack('<H', 1)
MAGIC = b'SQLite format 3\x00'
_COLUMNS = 'SELECT timestamp, id, topic_id, data FROM messages '
# Rows are read in the order of their times by the index; where that is damaged, in the order they were written.
_BY_TIME = _COLUMNS + 'ORDER BY timestamp, id'
_AS_WRITTEN = _COLUMNS + "WHERE typeof(timestamp) = 'integer' AND typeof(data) = 'blob' ORDER BY id"
_BY_ID = _COLUMNS + 'NOT INDEXED WHERE id = ?'

_TABLES = ('topics', 'messages', 'message_definitions', TABLE)
BATCH, BATCH_BYTES = 4096, 1 << 22      # messages, and their bytes, that are read at once
NAMED = 5       # damaged messages in words, the others by their number

Row = tuple[int, int, int, bytes]   # time in the bag, ns; id; topic; serialized message
Stamped = tuple[int, str, bytes]    # time in the bag, ns; topic; serialized message


def topic_sum(name: str, msgtype: str) -> int:
    """What the sums of a topic's messages begin with."""
    return crc32(f'{name}\0{msgtype}'.encode())


def message_sum(seed: int, number: int, stamp_ns: int, data: bytes) -> int:
    """Checksum of the message ``number`` (its id) of a topic with the sum ``seed``."""
    return crc32(data, crc32(_PLACE.pack(number, stamp_ns), seed))


def packed(first: int, sums: Iterable[int]) -> bytes:
    """Sums of messages first, first + 1, ..., with one over them all."""
    content = b''.join(map(_SUM.pack, sums))
    return content + _SUM.pack(_row_sum(first, content))


class Checksums:
    """The checksums of a bag being read: ``total`` of them; ``spoilt`` says what of them cannot be used, '' nothing.

    A bag without the table, or with another one of this name, has none.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self.spoilt, self.total = '', 0
        self._firsts: list[int] = []
        self._sums: list[array[int]] = []
        try:
            if not database.execute('SELECT 1 FROM sqlite_master WHERE name = ?', (TABLE,)).fetchone():
                return
            for first, content in database.execute(_SELECT):
                self._add(first, content)
        except sqlite3.DatabaseError as error:
            self.spoilt = f'checksums are damaged ({error}), some messages are not checked'

    def of(self, number: object) -> int | None:
        """The checksum of a message, None: there is none."""
        if type(number) is not int:     # a foreign table
            return None
        block = bisect_right(self._firsts, number) - 1
        if block < 0 or number - self._firsts[block] >= len(self._sums[block]):
            return None
        return self._sums[block][number - self._firsts[block]]

    def _add(self, first: object, content: object) -> None:
        """A row, where it is whole."""
        if type(first) is not int or type(content) is not bytes or len(content) % _SUM.size or not content \
                or _row_sum(first, content[:-_SUM.size]) != _SUM.unpack(content[-_SUM.size:])[0]:
            self.spoilt = 'checksums are damaged, some messages are not checked'
            return
        sums = array('I', content[:-_SUM.size])
        if not _LITTLE:
            sums.byteswap()
        self._firsts.append(first)
        self._sums.append(sums)
        self.total += len(sums)


def _row_sum(first: int, content: bytes) -> int:
    return crc32(content, crc32(_FIRST.pack(first)))


class Sqlite3File:
    """One sqlite3 file: ``topics`` to types, ``definitions`` of types, ``last_ns`` (None: no messages), ``warnings``.

    Where the file has checksums, messages that do not fit theirs are left out, with a warning.
    Raises ValueError, with the reason, where the file is not a database of rosbag2. The file is never written to.
    """

    IN_ORDER = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.topics: dict[str, str] = {}
        self.definitions: dict[str, str] = {}
        self._notes: list[str] = []
        self._wrong: dict[int, str] = {}        # damaged messages by their ids
        self._copy: TemporaryDirectory[str] | None = None
        self._page, count = _pages(path)
        self._damaged = path.stat().st_size < count * self._page
        self._database = self._connect()
        try:
            self._check_tables()
            rows = [row for row in self._database.execute('SELECT id, name, type FROM topics')
                    if tuple(map(type, row)) == (int, str, str)]
            self._names = {number: name for number, name, _ in rows}
            self._seeds = {number: topic_sum(name, msgtype) for number, name, msgtype in rows}
            self._sums = Checksums(self._database)
            self.last_ns = self._last()
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise ValueError(f'not a database of a bag, or cut before its messages: {error}') from error
        except ValueError:
            self._database.close()
            raise
        self.topics = {name: msgtype for _, name, msgtype in rows}
        self._read_definitions()
        if self._sums.spoilt and not self._damaged:
            self._warn(self._sums.spoilt)

    @property
    def warnings(self) -> list[str]:
        """What is damaged, as far as it was read, one line each."""
        wrong = list(self._wrong.values())
        lines = [f'{self.path.name}: {text}: its checksum does not fit, it is left out' for text in wrong[:NAMED]]
        if len(wrong) > NAMED:
            lines.append(f'{self.path.name}: {len(wrong) - NAMED} more messages do not fit their checksums')
        return self._notes + lines

    def messages(self, topics: Collection[str] | None = None) -> Iterator[Stamped]:
        """Messages of some topics, or of all, in the order of their times in the bag."""
        wanted = {number: name for number, name in self._names.items() if topics is None or name in topics}
        for stamp, _, number, data in self._rows():
            if type(stamp) is not int or type(data) is not bytes:
                self._warn('a message whose time or data is of another type is left out')
            elif number in wanted:
                yield stamp, wanted[number], data

    def batches(self, topics: Sequence[str]) -> Iterator[MessageBatch]:
        """The same messages of these topics, some at a time."""
        wanted = {topic: place for place, topic in enumerate(topics)}
        waiting: list[tuple[int, int, bytes]] = []
        size = 0
        for stamp, topic, data in self.messages(topics):
            if len(waiting) >= BATCH or size > BATCH_BYTES:
                yield joined(waiting, stamp)
                waiting, size = [], 0
            waiting.append((stamp, wanted[topic], data))
            size += len(data)
        if waiting:
            yield joined(waiting, None)

    def _rows(self) -> Iterator[Row]:
        """All rows that can be read and are as they were written, each once."""
        done, checked = (-1, -1), 0
        if not self._damaged:
            try:
                for row in self._database.execute(_BY_TIME):
                    known = self._sums.of(row[1])
                    checked += known is not None
                    if known is None or self._fits(row, known):
                        done = row[:2]
                        yield row
                    elif self._found_otherwise(row, known):
                        self._warn(f'index damaged: behind {done[0] * 1e-9:.6f} s in the order written')
                        break
                    else:
                        self._note_wrong(row)
                else:
                    if checked < self._sums.total:
                        self._warn(f'{self._sums.total - checked} messages that were written are not there')
                    return
            except sqlite3.DatabaseError as error:
                self._warn(f'damaged ({error}): read up to {done[0] * 1e-9:.6f} s, behind that only in part')
        try:
            for row in self._database.execute(_AS_WRITTEN):
                known = self._sums.of(row[1])
                if known is not None and not self._fits(row, known):
                    self._note_wrong(row)
                elif row[:2] > done:
                    yield row
        except sqlite3.DatabaseError:
            return      # a warning says up to where

    def _fits(self, row: Row, known: int) -> bool:
        """Whether a message is the one that was written."""
        stamp, number, topic, data = row
        if type(stamp) is not int or type(data) is not bytes or topic not in self._seeds:
            return False
        return message_sum(self._seeds[topic], number, stamp, data) == known

    def _found_otherwise(self, row: Row, known: int) -> bool:
        """Whether the message is whole where it lies: then the index has led us wrong, which holds the times, too."""
        own = self._database.execute(_BY_ID, row[1:2]).fetchone()
        return own is not None and self._fits(own, known)

    def _note_wrong(self, row: Row) -> None:
        stamp, number, topic, _ = row
        when = f'{stamp * 1e-9:.6f} s' if type(stamp) is int else 'an unknown time'
        name = self._names.get(topic, f'topic {topic!r:.20}')
        self._wrong[number] = f'message {number} of {shown(name)} at {when} is damaged'

    def _check_tables(self) -> None:
        """Raise ValueError where a view or a virtual table stands for a table: a query of it may never end."""
        self._database.execute('PRAGMA trusted_schema=OFF')
        for name, kind, text in self._database.execute(
                "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view')"):
            if name in _TABLES and (kind != 'table' or 'VIRTUAL' in str(text).upper().split('(')[0]):
                raise ValueError(f'{name} is no plain table, as a bag has it')

    def _warn(self, text: str) -> None:
        warning = f'{self.path.name}: {text}'
        if warning not in self._notes:
            self._notes.append(warning)

    def _connect(self) -> sqlite3.Connection:
        """Open read-only; a copy of it where its log must be applied or its last, incomplete page be cut off."""
        sidecars = [self.path.with_name(self.path.name + end) for end in ('-wal', '-journal')]
        sidecars = [sidecar for sidecar in sidecars if sidecar.is_file() and sidecar.stat().st_size]
        path = self.path
        if sidecars or self._damaged:
            self._copy = TemporaryDirectory(prefix='mbse_ros_bag_')
            path = Path(self._copy.name) / self.path.name
            for source in (self.path, *sidecars):
                shutil.copyfile(source, path.with_name(source.name))
        if sidecars:
            self._warn(f'was not closed, {sidecars[0].name} is applied')
        if self._damaged:
            with open(path, 'r+b') as stream:
                stream.truncate(path.stat().st_size // self._page * self._page)
        uri = path.absolute().as_uri() + ('?mode=rw' if self._copy else '?mode=ro&immutable=1')
        database = sqlite3.connect(uri, uri=True, check_same_thread=False)
        if self._damaged:
            database.execute('PRAGMA writable_schema=ON')   # else a database that is too short is not opened at all
        return database

    def _last(self) -> int | None:
        """Time of the last message that can be read, ns."""
        if not self._damaged:
            last = self._database.execute('SELECT max(timestamp) FROM messages').fetchone()[0]
            if last is None or type(last) is int:
                return last
            return self._database.execute(
                "SELECT max(timestamp) FROM messages WHERE typeof(timestamp) = 'integer'").fetchone()[0]
        last = max((row[0] for row in self._rows()), default=None)
        upto = f'read up to {last * 1e-9:.6f} s' if last is not None else 'no message is left'
        self._warn(f'cut off after {self.path.stat().st_size} bytes: {upto}')
        return last

    def _read_definitions(self) -> None:
        """Definitions of the types, which recorders before 2023 did not write."""
        try:
            self.definitions = {name: text for name, text in self._database.execute(
                "SELECT topic_type, encoded_message_definition FROM message_definitions WHERE encoding = 'ros2msg'")
                if type(name) is type(text) is str}
        except sqlite3.DatabaseError:
            self.definitions = {}


def _pages(path: Path) -> tuple[int, int]:
    """Size of a page and number of pages by the header, 0: unknown; raises ValueError where it has no such header."""
    with open(path, 'rb') as stream:
        head = stream.read(100)
    if len(head) < 100 or not head.startswith(MAGIC):
        raise ValueError('not an sqlite3 file: wrong first bytes')
    size, = struct.unpack('>H', head[16:18])
    count, = struct.unpack('>I', head[28:32])
    current = head[24:28] == head[92:96]      # the number of pages is only then up to date
    return 65536 if size == 1 else max(size, 512), count if current else 0
