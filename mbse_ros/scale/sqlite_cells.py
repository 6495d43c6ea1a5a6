# SPDX-License-Identifier: Apache-2.0
"""Rows of the table `records` by the bytes of an SQLite file whose structure is damaged.

A row is a cell in a page: the length of its payload, its number, and the payload, a header with the type of each column
and the columns. It is found by this header alone, so whatever else is damaged, a row whose bytes are whole is found
(https://sqlite.org/fileformat2.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .record import Row

PAGE = 4096         # bytes, as SQLite makes them by default
LARGEST = 1 << 24   # bytes of a row
WAL_HEADER, FRAME_HEADER = 32, 24
# The types of number (NULL), kind (text) and stamp (integer); of the table `meta`, two texts, the first of 7 letters.
_START = re.compile(rb'(?=[\x07-\x14]\x00[\x0d-\x7f][\x01-\x06\x08\x09])')
_MACHINE = re.compile(rb'\x03\x1b([\x0d-\x7f])machine')


class Pages:
    """Content of a file and of the log beside it, whose pages are newer."""

    def __init__(self, path: Path) -> None:
        self.main, log = path.read_bytes(), path.with_name(path.name + '-wal')
        self.log = log.read_bytes() if log.is_file() else b''
        size = int.from_bytes(self.main[16:18], 'big')
        self.size = size if size >= 512 and not size & (size - 1) else PAGE
        self.usable = self.size - (self.main[20] if len(self.main) > 20 and self.main[20] < 33 else 0)
        self._newer = {int.from_bytes(self.log[at:at + 4], 'big'): at + FRAME_HEADER for at in range(
            WAL_HEADER, len(self.log) - FRAME_HEADER, FRAME_HEADER + self.size)}

    def rows(self) -> Iterator[Row]:
        """All rows that are found, a number may come several times."""
        for content in (self.log, self.main):
            for start in _START.finditer(content):
                row = self._row(content, start.start())
                if row is not None:
                    yield row

    def machine(self) -> str:
        """Name of the machine that the file is of; '' where it is not found."""
        for content in (self.log, self.main):
            for found in _MACHINE.finditer(content):
                name = content[found.end():found.end() + (found[1][0] - 13) // 2]
                if name.isascii() and name.decode('ascii').isprintable():
                    return name.decode('ascii')
        return ''

    def _page(self, number: int) -> bytes:
        if number in self._newer:
            at = self._newer[number]
            return self.log[at:at + self.size]
        return self.main[(number - 1) * self.size:number * self.size]

    def _row(self, content: bytes, at: int) -> Row | None:
        """The row whose payload begins there."""
        types, place, end = [], at + 1, at + content[at]
        while place < end:
            value, place = _varint(content, place)
            types.append(value)
        if place != end or len(types) not in (6, 7):
            return None
        sizes = [_size(kind) for kind in types]
        total = content[at] + sum(sizes)
        if total > LARGEST or (number := _number_before(content, at, total)) is None:
            return None
        payload, columns, place = self._payload(content, at, total), [], content[at]
        if len(payload) < total:
            return None
        for kind, size in zip(types, sizes):
            columns.append(_value(kind, payload[place:place + size]))
            place += size
        return Row(number, *columns[1:])

    def _payload(self, content: bytes, at: int, total: int) -> bytes:
        """What does not fit into the cell continues in a chain of pages."""
        most = self.usable - 35
        if total <= most:
            return content[at:at + total]
        least = (self.usable - 12) * 32 // 255 - 23
        own = least + (total - least) % (self.usable - 4)
        own = own if own <= most else least
        parts, length, number = [content[at:at + own]], own, content[at + own:at + own + 4]
        while length < total and any(number):
            page = self._page(int.from_bytes(number, 'big'))[:self.usable]
            if len(page) < self.usable:
                break
            number, part = page[:4], page[4:4 + total - length]
            parts.append(part)
            length += len(part)
        return b''.join(parts)


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number of 1 to 9 bytes, and where it ends."""
    value = 0
    for k in range(at, min(at + 8, len(content))):
        value = value << 7 | content[k] & 0x7F
        if content[k] < 0x80:
            return value, k + 1
    return (value << 8 | content[at + 8], at + 9) if len(content) > at + 8 else (0, len(content) + 1)


def _as_varint(value: int) -> bytes:
    found = [value & 0x7F]
    while value := value >> 7:
        found.append(value & 0x7F | 0x80)
    return bytes(reversed(found))


def _number_before(content: bytes, at: int, total: int) -> int | None:
    """The row's number, which stands before its payload, behind the payload's length."""
    length = _as_varint(total)
    for size in range(1, 9):
        start = at - size
        if start < len(length):
            break
        number, end = _varint(content, start)
        if (end == at and number and _as_varint(number) == content[start:at]
                and content[start - len(length):start] == length):
            return number
    return None


def _size(kind: int) -> int:
    """Bytes of a column of this type."""
    return (kind - 12) // 2 if kind >= 12 else (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0)[kind]


def _value(kind: int, content: bytes) -> bytes | int | None:
    if kind == 0:
        return None
    if kind in (8, 9):
        return kind - 8
    return int.from_bytes(content, 'big', signed=True) if kind < 7 else content
