# SPDX-License-Identifier: Apache-2.0
"""Compressed bytes of a bag back to what they were, up to a limit: 64 KB may be compressed from any number of GB."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO

import zstandard
from lz4.frame import LZ4FrameDecompressor

RATIO, FLOOR = 100, 1 << 25     # times as large as the file, and bytes, that a file may hold; measured bags: below 20
BLOCK = 1 << 20


class Budget:
    """Bytes that may still come out of a file of ``size`` bytes."""

    def __init__(self, size: int) -> None:
        self.left = FLOOR + RATIO * size

    def take(self, count: int) -> None:
        """Count bytes that came out; ValueError where they are too many."""
        self.left -= count
        if self.left < 0:
            raise ValueError(f'it holds more than {RATIO} times its size: no recording does')


def expanded(data: bytes, compression: str, budget: Budget) -> bytes:
    """Content of ``data``, its beginning where it is cut; ``compression``: 'zstd', 'lz4' or ''.

    Raises ValueError beyond the budget, and what the decompressors raise for damaged data.
    """
    if compression == 'zstd':
        return b''.join(blocks(BytesIO(data), budget))
    if compression == 'lz4':
        content = LZ4FrameDecompressor().decompress(data, max_length=budget.left + 1)
    elif compression:
        raise ValueError(f'unknown compression {compression!r}')
    else:
        content = data
    budget.take(len(content))
    return content


def blocks(stream: BinaryIO, budget: Budget) -> Iterator[bytes]:
    """Content of a stream of zstd, a block at a time; raises as `expanded`."""
    with zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True, closefd=False) as reader:
        while block := reader.read(BLOCK):
            budget.take(len(block))
            yield block
