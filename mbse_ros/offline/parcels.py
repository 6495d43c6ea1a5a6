# SPDX-License-Identifier: Apache-2.0
"""Records from one process to another: numbers of arrays one after the other, all else pickled at once.

A pickle of each array would cost more than what is done with it. The arrays that come out are the receiver's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pickle import HIGHEST_PROTOCOL, dumps, loads
from typing import TypeVar

import numpy as np

Record = TypeVar('Record')
FLOAT = np.dtype(np.float64)


def packed(records: Sequence[Record]) -> bytes:
    """Dataclasses of one kind, their arrays of float64 as they lie in memory."""
    rows, shapes, arrays = [], [], []
    for record in records:
        row = []
        for value in vars(record).values():
            if type(value) is np.ndarray and value.dtype is FLOAT:
                shapes.append(value.shape)
                arrays.append(np.ascontiguousarray(value).data)
                value = ...
            row.append(value)
        rows.append(row)
    head = dumps(([type(record) for record in records[:1]], rows, shapes), HIGHEST_PROTOCOL)
    room = -len(head) % FLOAT.itemsize
    return b''.join([len(head).to_bytes(FLOAT.itemsize, 'little'), head, bytes(room), *arrays])


def unpacked(parcel: bytes) -> list[Record]:
    """The records of ``packed``."""
    place = FLOAT.itemsize
    size = int.from_bytes(parcel[:place], 'little')
    kinds, rows, shapes = loads(memoryview(parcel)[place:place + size])
    numbers = np.frombuffer(parcel, FLOAT, offset=place + size + -size % place)
    shape_of, first, found = iter(shapes), 0, []
    for row in rows:
        for k, value in enumerate(row):
            if value is ...:
                shape = next(shape_of)
                stop = first + (shape[0] if len(shape) == 1 else shape[0] * shape[1])
                row[k], first = numbers[first:stop].reshape(shape).copy(), stop
        found.append(kinds[0](*row))
    return found
