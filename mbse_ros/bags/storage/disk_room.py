# SPDX-License-Identifier: Apache-2.0
"""Room on the disk for a bag: what must stay free, and a reserve by which a bag is completed on a full disk."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

MB = 1_000_000
LEAST_FREE = 50 * MB        # bytes; a recording ends above a full disk, on which other programs fail too
RESERVE_BYTES = 4 << 20     # the last chunk or block, and the index of some hours


def free_bytes(path: str | Path) -> int:
    """Bytes that this user may still write to the disk of a path, which need not exist yet; raises OSError."""
    path = Path(path).absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return shutil.disk_usage(path).free


def megabytes(count: int) -> str:
    """A number of bytes in words, such as '38 MB' or '1.2 GB'."""
    return f'{count // MB} MB' if count < 1000 * MB else f'{count / (1000 * MB):.1f} GB'


class Reserve:
    """Room held for the end of a file in a folder; the system takes it back by itself where the process is killed."""

    def __init__(self, folder: Path) -> None:
        self._file = None
        with suppress(OSError):     # no room for it, or a file system without such files: then there is no reserve
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)
            if hasattr(os, 'posix_fallocate'):
                os.posix_fallocate(self._file.fileno(), 0, RESERVE_BYTES)
            else:
                self._file.write(bytes(RESERVE_BYTES))

    def release(self) -> None:
        """Give the room free; a second call does nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None


class ReservedStream:
    """A new file whose writes take the reserve once the disk refuses them.

    ``failure`` is what the disk said then: the data are in the file, but the file should be completed now. A write
    that fails with the reserve gone raises OSError. Raises FileExistsError, OSError.
    """

    def __init__(self, path: Path, reserve: Reserve) -> None:
        self._file, self._reserve = open(path, 'xb', buffering=0), reserve
        self.failure: OSError | None = None

    def write(self, data: bytes) -> int:
        """Append all bytes; a disk that is nearly full takes a part of them at a time."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._file.write(rest):]
            except OSError as error:
                if self.failure is not None:
                    raise
                self.failure = error
                self._reserve.release()
        return len(data)

    def tell(self) -> int:
        """Bytes so far."""
        return self._file.tell()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
