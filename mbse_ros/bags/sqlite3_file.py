# SPDX-License-Identifier: Apache-2.0
"""Reads one sqlite3 file of a bag, whole, cut, or left with its journal by a recorder that was killed."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

MAGIC = b'SQLite format 3\x00'
_COLUMNS = 'SELECT timestamp, id, topic_id, data FROM messages '
# Rows are read in the order of their times by the index; where that is damaged, in the order they were written.
_BY_TIME = _COLUMNS + 'ORDER BY timestamp, id'
_AS_WRITTEN = _COLUMNS + "WHERE typeof(timestamp) = 'integer' AND typeof(data) = 'blob' ORDER BY id"

_TABLES = ('topics', 'messages', 'message_definitions')

Stamped = tuple[int, str, bytes]    # time in the bag, ns; topic; serialized message


class Sqlite3File:
    """One sqlite3 file: ``topics`` to types, ``definitions`` of types, ``last_ns`` (None: no messages), ``warnings``.

    Raises ValueError, with the reason, where the file is not a database of rosbag2. The file is never written to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.topics: dict[str, str] = {}
        self.definitions: dict[str, str] = {}
        self.warnings: list[str] = []
        self._copy: TemporaryDirectory | None = None
        self._page, count = _pages(path)
        self._damaged = path.stat().st_size < count * self._page
        self._database = self._connect()
        try:
            self._check_tables()
            rows = [row for row in self._database.execute('SELECT id, name, type FROM topics')
                    if tuple(map(type, row)) == (int, str, str)]
            self.last_ns = self._last()
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise ValueError(f'not a database of a bag, or cut before its messages: {error}') from error
        except ValueError:
            self._database.close()
            raise
        self._names = {number: name for number, name, _ in rows}
        self.topics = {name: msgtype for _, name, msgtype in rows}
        self._read_definitions()

    def messages(self, topics: Collection[str] | None = None) -> Iterator[Stamped]:
        """Messages of some topics, or of all, in the order of their times in the bag."""
        wanted = {number: name for number, name in self._names.items() if topics is None or name in topics}
        for stamp, _, number, data in self._rows():
            if type(stamp) is not int or type(data) is not bytes:
                self._warn('a message whose time or data is of another type is left out')
            elif number in wanted:
                yield stamp, wanted[number], data

    def _rows(self) -> Iterator[tuple[int, int, int, bytes]]:
        """All rows that can be read, each once."""
        done = (-1, -1)
        if not self._damaged:
            try:
                for row in self._database.execute(_BY_TIME):
                    done = row[:2]
                    yield row
                return
            except sqlite3.DatabaseError as error:
                self._warn(f'damaged ({error}): read up to {done[0] * 1e-9:.6f} s, behind that only in part')
        try:
            for row in self._database.execute(_AS_WRITTEN):
                if row[:2] > done:
                    yield row
        except sqlite3.DatabaseError:
            return      # a warning says up to where

    def _check_tables(self) -> None:
        """Raise ValueError where a view or a virtual table stands for a table: a query of it may never end."""
        self._database.execute('PRAGMA trusted_schema=OFF')
        for name, kind, text in self._database.execute(
                "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view')"):
            if name in _TABLES and (kind != 'table' or 'VIRTUAL' in str(text).upper().split('(')[0]):
                raise ValueError(f'{name} is no plain table, as a bag has it')

    def _warn(self, text: str) -> None:
        warning = f'{self.path.name}: {text}'
        if warning not in self.warnings:
            self.warnings.append(warning)

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
