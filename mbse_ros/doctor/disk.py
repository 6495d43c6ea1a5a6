# SPDX-License-Identifier: Apache-2.0
"""Free room on the disks that are written to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..bags.storage.disk_room import LEAST_FREE, MB, free_bytes, megabytes
from .checks import FAILS, OK, WARNING, Check

SCARCE = 1000 * MB      # the cache alone may take so much; a log of an excavator takes some 3 MB/s


def disk_check(what: str, path: Path, free: Callable[[Path], int] = free_bytes) -> Check:
    """Room at a path: recordings are refused below 50 MB. Raises OSError."""
    left = free(path)
    text = f'{megabytes(left)} free at {path}'
    if left < LEAST_FREE:
        return Check(f'disk, {what}', FAILS, text, f'make room: nothing is recorded below {megabytes(LEAST_FREE)}')
    if left < SCARCE:
        return Check(f'disk, {what}', WARNING, text, 'make room before you record, or write to another disk')
    return Check(f'disk, {what}', OK, text)
