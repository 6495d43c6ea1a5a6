# SPDX-License-Identifier: Apache-2.0
"""Libraries and built functions on disk, named by the hash of all that made them; a damaged or foreign one is never
loaded.

An entry is one file: the content, and behind it a seal, the SHA-256 of its key and its bytes (an ELF loader ignores
what follows the sections). It is written beside its place and renamed, so that processes need no lock. The seal finds
damage, not malice: whoever may write into the folder runs code as this user, so the folder is made for the user alone,
and neither read nor written where another one owns it or others may write into it. The time of a file is that of its
last use; where the folder gets too large, those that were not used for longest go. A key holds the identity of this
package's code, so that what it built is built again after any change of it.

Symbolic functions that take long to build are kept, too (``built``), as CasADi's serialisation, compressed: an
excavator's observer is loaded in a tenth of the time.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import re
import stat
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import casadi as ca
import numpy as np

from ..errors import CompilationError
from ..progress import lengthy
from .compiler import compile_library, compiler, identity, remark

SEAL_BYTES = hashlib.sha256().digest_size
ROOT = Path(__file__).resolve().parent.parent
MB = 1_000_000
USUAL, LEAST, MOST = 1000.0, 1.0, 1e7       # MB
IN_USE = 60.0           # s since the last use: a process may be about to load it
WORTH = 3600.0          # s: what was used since is missed
# an entry, and one whose process was killed while writing
_OURS = re.compile(r'[0-9a-f]{64}\.(?:so|casadi)|\.[0-9a-f]{32}')
# Rooms from which a function may follow; above them are only users of functions.
ROOMS = ('compiled', 'description', 'dynamics', 'filters', 'hydraulics', 'machine', 'mechanism', 'payload',
         'transition')
LARGEST = 1 << 28       # bytes that a function may have, serialised: damage must not fill the memory


def cache_folder() -> Path:
    """Folder of the cache: MBSE_CACHE_DIR, else mbse_ros in XDG_CACHE_HOME, else ~/.cache/mbse_ros."""
    chosen = os.environ.get('MBSE_CACHE_DIR')
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get('XDG_CACHE_HOME')
    return (Path(base) if base else Path.home() / '.cache').absolute() / 'mbse_ros'


def library(name: str, source: str | Callable[[], str], made_of: str = '') -> Path:
    """Path of the shared library of C ``source``: from the cache, or compiled now.

    ``source`` may be written only where it must be compiled: then ``made_of`` is a text that says all it follows from.
    Where the cache cannot be written, the library lives in a temporary folder until the process ends.
    Raises CompilationError (``name``, command, output).
    """
    command = compiler()
    if command is None:
        raise CompilationError(name, os.environ.get('CC') or 'cc', 'no C compiler was found')
    file = library_file(made_of or str(source))
    path, content = found(file)
    if content is not None:
        return path
    with lengthy(f'compiling {name.removeprefix("mbse_")}, once: later runs take it from the cache'):
        return keep(file, compile_library(name, source() if callable(source) else source, command))


def library_file(made_of: str) -> str:
    """Name of the entry of a library that follows from this text and from the compiler, which there must be."""
    command = compiler()
    assert command is not None
    return entry_key(made_of, identity(command)) + '.so'


def found(file: str) -> tuple[Path, bytes | None]:
    """Place and content, without its seal, of the entry of this name; None where there is none that may be trusted."""
    path = cache_folder() / file
    own = (_temporary_folder(),) if _temporary.cache_info().currsize else ()
    for folder in (*_shared(), *own):
        path = folder / file
        if private(path) and _used(path) and (content := _unsealed(path)) is not None:
            return path, content
    return path, None


def keep(file: str, content: bytes) -> Path:
    """Put an entry into the cache; where that cannot be written, into a folder of this process."""
    content, limit = content + _seal(_key(file), content), cache_limit()
    for folder in _shared():
        with suppress(OSError):        # read-only, full, not a folder
            path = _store(content, folder / file)
            shrink(path.parent, limit)
            return path
    return _store(content, _temporary_folder() / file)


def _shared() -> tuple[Path, ...]:
    """The cache, unless others could have put something there."""
    cache = cache_folder()
    if cache.exists() and not private(cache):
        remark(f'{cache} is not used: another user owns it or may write into it; compiled functions are not kept '
               f'(chmod 700, or MBSE_CACHE_DIR)')
        return ()
    return (cache,)


def private(path: Path) -> bool:
    """Whether this user, or root, owns a file or folder and nobody else may write to it."""
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _used(path: Path) -> bool:
    """Note that a file is in use, before it is read: so nobody removes it meanwhile; False where it is gone."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    except OSError:     # another user's
        pass
    return True


def entry_key(source: str, compiler_identity: str) -> str:
    """Hash that names an entry: what it is made of, compiler and flags, CasADi, machine and C library."""
    system = (platform.system(), platform.machine(), os.confstr('CS_GNU_LIBC_VERSION') or '')
    parts = (source, compiler_identity, ca.CasadiMeta.version(), *system)
    return hashlib.sha256('\0'.join(parts).encode()).hexdigest()


def _store(content: bytes, path: Path) -> Path:
    """Write beside ``path``, then move there at once; OSError when that cannot be done."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f'.{uuid4().hex}')
    try:
        with fresh.open('xb') as file:
            os.fchmod(file.fileno(), 0o600)     # whatever the umask says
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    finally:
        with suppress(OSError):
            fresh.unlink()
    return path


def _unsealed(path: Path) -> bytes | None:
    """Content of a whole entry of this name, else None; a library cut short would crash the process that loads it."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    content, seal = content[:-SEAL_BYTES], content[-SEAL_BYTES:]
    return content if seal == _seal(_key(path.name), content) else None


def _key(file: str) -> str:
    """What names an entry."""
    return file.partition('.')[0]


def _seal(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + content).digest()


@lru_cache(maxsize=1)
def _temporary() -> tempfile.TemporaryDirectory[str]:
    """Folder of this process, made when the cache cannot be written, and removed when it ends."""
    return tempfile.TemporaryDirectory(prefix='mbse_ros-')


def _temporary_folder() -> Path:
    return Path(_temporary().name)


def remove_temporary() -> None:
    """Of a process that does not end as the interpreter does: remove its folder, if it has one."""
    if _temporary.cache_info().currsize:
        _temporary().cleanup()
        _temporary.cache_clear()


@cache
def code_identity(*rooms: str) -> str:
    """Hash of all source files of these rooms; of 100 files it takes some milliseconds, once in a process.

    Raises OSError where a source file cannot be read.
    """
    digest = hashlib.sha256()
    for room in rooms:
        for path in sorted((ROOT / room).rglob('*.py')):
            content = path.read_bytes()
            digest.update(f'{path.relative_to(ROOT)}\0{len(content)}\0'.encode() + content)
    return digest.hexdigest()


class CacheEntry(NamedTuple):
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


def entries(folder: Path, now: float) -> list[CacheEntry]:
    """Files of the cache, those first that were not used for longest; others' files are none of ours."""
    found = []
    with suppress(OSError), os.scandir(folder) as files:
        for file in files:
            if not _OURS.fullmatch(file.name):
                continue
            with suppress(OSError):     # another process has just removed it
                status = file.stat(follow_symlinks=False)
                used = status.st_mtime if status.st_mtime <= now + IN_USE else 0.0      # the clock was wrong then
                found.append(CacheEntry(used, status.st_size, folder / file.name))
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


def built(made_of: Iterable[str], make: Callable[[], ca.Function]) -> ca.Function:
    """The function that ``make`` gives: from the cache, else made now and kept there.

    ``made_of``: texts that say, with the code of this package, all that it follows from.
    """
    file = entry_key('\0'.join(map(_digest, made_of)), f'{code_identity(*ROOMS)} {np.__version__}') + '.casadi'
    content = found(file)[1]
    if content is not None:
        with suppress(zlib.error, UnicodeDecodeError, RuntimeError):      # of another kind: it is made again
            return ca.Function.deserialize(_expanded(content))
    with lengthy('writing equations, once: later runs take them from the cache'):
        function = make()
    with suppress(OSError):     # nowhere to keep it
        keep(file, zlib.compress(function.serialize().encode(), 1))
    return function


def _expanded(content: bytes) -> str:
    """The serialised function; raises zlib.error where it is none."""
    unpack = zlib.decompressobj()
    text = unpack.decompress(content, LARGEST)
    if not unpack.eof:
        raise zlib.error('incomplete')
    return text.decode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
