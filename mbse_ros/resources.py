# SPDX-License-Identifier: Apache-2.0
"""Where the shared files are: machines, launch files, RViz configuration, presets, message definitions; own files,
written whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from errno import EINVAL
from pathlib import Path
from uuid import uuid4

from .errors import DescriptionError, MbseError


def share_directory() -> Path:
    """Folder that holds config/, launch/, rviz/ and msg/.

    The source tree where the package runs from it, else share/mbse_ros of the first prefix on AMENT_PREFIX_PATH
    that has one, else that of the prefix this module is installed in.  Raises MbseError that names the places.
    """
    package = Path(__file__).resolve().parent
    prefixes = [Path(prefix) for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if prefix]
    prefixes += package.parents[3:5]    # <prefix>/lib/python3.x/site-packages or <prefix>/local/lib/...
    candidates = [package.parent, *(prefix / 'share' / 'mbse_ros' for prefix in prefixes)]
    for candidate in candidates:
        if (candidate / 'config').is_dir() and (candidate / 'msg').is_dir():
            return candidate
    raise MbseError('the shared files of mbse_ros (config/, msg/) are in none of: ' + ', '.join(map(str, candidates)))


def regular(path: str | Path) -> Path:
    """The path, where it is a regular file, else OSError: a pipe or a device would be read without end."""
    path = Path(path)
    if path.exists() and not path.is_dir() and not path.is_file():
        raise OSError(EINVAL, 'is not a regular file', str(path))
    return path


def read_text(path: str | Path) -> str:
    """Text of a regular file in UTF-8; raises DescriptionError, with what the system says."""
    try:
        return regular(path).read_text(encoding='utf-8')
    except OSError as error:
        raise DescriptionError(str(path), '', said_of(error), 'a readable text file') from error
    except ValueError as error:     # of other characters; of a path with a NUL
        raise DescriptionError(str(path), '', str(error), 'a readable text file in UTF-8') from error


def said_of(error: Exception) -> str:
    """What the system says of a file that cannot be read, without its path; of another error its text."""
    return getattr(error, 'strerror', None) or str(error)


def write_whole(path: str | Path, content: str | bytes | Callable[[Path], object]) -> None:
    """A file that is whole or as it was before, also after a power cut: written beside ``path``, synced, then moved
    there.

    ``content``: text (UTF-8), bytes, or a function that writes the file it is given; the folder is made. What is there
    and not a regular file, such as a pipe, is written to as it is. Raises OSError, which names ``path``.
    """
    try:
        _write_whole(Path(path), content)
    except OSError as error:
        error.filename, error.filename2 = str(path), None       # a full disk names no file, others the one beside
        raise


def _write_whole(path: Path, content: str | bytes | Callable[[Path], object]) -> None:
    write = content if callable(content) else lambda place: place.write_bytes(
        content.encode('utf-8') if isinstance(content, str) else content)
    if path.exists() and not path.is_file():
        write(path)
        return
    path = path.resolve()       # what a link names is written, not the link
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f'.{uuid4().hex}.part{path.suffix}')      # writers look at the end of the name
    try:
        write(part)
        if path.exists():
            part.chmod(path.stat().st_mode & 0o777)
        synced(part)
        os.replace(part, path)
    finally:
        with suppress(OSError):
            part.unlink()
    synced(path.parent)


def synced(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk. Raises OSError; some file systems cannot do it for
    a folder, which is no error."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        if not path.is_dir():
            raise
    finally:
        os.close(handle)
