# SPDX-License-Identifier: Apache-2.0
"""Places of the messages in a chunk of an mcap file, by the index that the recorder wrote behind it, checked.

The index is only a guess: it counts where the records at its places follow each other without a hole, so that reading
one record after the other finds the same messages.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import numpy as np
from mcap.opcode import Opcode

HEAD = np.dtype([('opcode', 'u1'), ('length', '<u8'), ('channel', '<u2'), ('sequence', '<u4'), ('time', '<u8'),
                 ('published', '<u8')])
BEFORE = 9              # bytes of a record before its content
MOST_GAPS = 64          # runs of other records between the messages of a chunk
_INDEX, _RECORD = struct.Struct('<HI'), struct.Struct('<BQ')
_ENTRY = np.dtype([('time', '<u8'), ('offset', '<u8')])
Records = Callable[[bytes, int], Iterator[tuple[int, int, int]]]


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
