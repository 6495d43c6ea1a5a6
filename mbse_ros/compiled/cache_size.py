# SPDX-License-Identifier: Apache-2.0
"""The size of the cache: the libraries that were not used for longest go where it is too large."""

from __future__ import annotations

import math
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .remarks import remark

MB = 1_000_000
USUAL, LEAST, MOST = 1000.0, 1.0, 1e7       # MB
IN_USE = 60.0           # s since the last use: a process may be about to load it
WORTH = 3600.0          # s: what was used since is missed
# an entry, and one whose process was killed while writing
_OURS = re.compile(r'[0-9a-f]{64}\.(?:so|casadi)|\.[0-9a-f]{32}')


class Entry(NamedTuple):
    """A file of the cache: time of its last use, s, size in bytes."""

    used: float
    size: int
    path: Path


def cache_limit() -> int:
    """Bytes that the cache may hold: MBSE_CACHE_LIMIT in MB, else 1000 MB; a remark says that it is no such number."""
    text = os.environ.get('MBSE_CACHE_LIMIT', '')
    if not text:
        return round(USUAL * MB)
    try:
        limit = float(text)
    except ValueError:
        limit = math.nan
    if not LEAST <= limit <= MOST:
        remark(f'MBSE_CACHE_LIMIT: got {text[:40]!r}, expected a number of MB from {LEAST:g} to {MOST:g}; '
               f'{USUAL:g} MB is used')
        limit = USUAL
    return round(limit * MB)


def entries(folder: Path, now: float) -> list[Entry]:
    """Files of the cache, those first that were not used for longest; others' files are none of ours."""
    found = []
    with suppress(OSError), os.scandir(folder) as files:
        for file in files:
            if not _OURS.fullmatch(file.name):
                continue
            with suppress(OSError):     # another process has just removed it
                status = file.stat(follow_symlinks=False)
                used = status.st_mtime if status.st_mtime <= now + IN_USE else 0.0      # the clock was wrong then
                found.append(Entry(used, status.st_size, folder / file.name))
    return sorted(found)


def shrink(folder: Path, limit: int) -> None:
    """Remove the entries that were not used for longest, until ``limit`` bytes are left.

    What was used in the last minute stays. A process that has loaded a library keeps it when its file goes; several
    may do this at once.
    """
    now = time.time()
    known = entries(folder, now)
    left, missed = sum(entry.size for entry in known), False
    for entry in known:
        if left <= limit or now - entry.used < IN_USE:
            break
        with suppress(OSError):
            if entry.path.lstat().st_mtime > entry.used > 0.0:      # taken up since
                continue
            entry.path.unlink()
        left -= entry.size
        missed |= now - entry.used < WORTH
    if missed:
        remark(f'{folder} is too small: functions of the last hour were removed and will be compiled again '
               f'(raise MBSE_CACHE_LIMIT, {limit // MB} MB)')
