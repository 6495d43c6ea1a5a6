# SPDX-License-Identifier: Apache-2.0
"""Checksums of the messages of an sqlite3 bag, in a table of our own beside those of rosbag2, which passes over it.

A row holds those of a block: CRC-32 of id, time, topic, type and bytes of each message, and one over the row itself.
"""

from __future__ import annotations

import sqlite3
import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from zlib import crc32

TABLE = 'mbse_ros_checksums'
CREATE = f'CREATE TABLE {TABLE}(first INTEGER PRIMARY KEY, sums BLOB NOT NULL);'
INSERT = f'INSERT INTO {TABLE}(first, sums) VALUES (?, ?)'
_SELECT = f'SELECT first, sums FROM {TABLE} ORDER BY first'
_PLACE, _SUM, _FIRST = struct.Struct('<qq'), struct.Struct('<I'), struct.Struct('<q')
_LITTLE = struct.pack('=H', 1) == struct.pack('<H', 1)


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
