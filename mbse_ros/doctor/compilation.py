# SPDX-License-Identifier: Apache-2.0
"""The C compiler and the cache of what it made: a small function goes all the way."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import casadi as ca

from ..bags.storage.disk_room import megabytes
from ..compiled import Kernel
from ..compiled.cache import cache_folder, cache_limit, entries, private
from ..compiled.compiler import SLOW, compile_library, compiler, remarks, requested
from ..errors import CompilationError, SettingError
from .checks import FAILS, OK, WARNING, Check

SOURCE = 'double mbse_doctor(double x) { return 2.0 * x + 1.0; }\n'
INSTALL = 'install one: sudo apt-get install gcc libc6-dev, or name one by CC='


def compiler_check() -> Check:
    """A compiler is found, compiles, and what it makes can be loaded and gives the right number."""
    name = 'compiler'
    try:
        wanted = requested('auto')
    except SettingError as error:
        return Check(name, FAILS, str(error), 'unset MBSE_BACKEND, or choose one of these')
    bad, fallback = (FAILS, 'MBSE_BACKEND=c requires it') if wanted == 'c' else (WARNING, SLOW)
    try:
        command = compiler()
    except ValueError as error:     # quotes that do not close
        return Check(name, FAILS, f'CC={os.environ.get("CC")}: {error}', 'correct or unset CC')
    if command is None:
        chosen = os.environ.get('CC')
        return Check(name, bad, f'none is found{f" by CC={chosen}" if chosen else ""}; {fallback}', INSTALL)
    start = time.perf_counter()
    try:
        compile_library(name, SOURCE, command)      # always compiled: what follows may come from the cache
        seconds = time.perf_counter() - start
        x = ca.SX.sym('x')
        value = Kernel(ca.Function('mbse_doctor', [x], [2 * x + 1]), 'c')(2.0)[0].item()
    except CompilationError as error:
        said = ' '.join(error.output.split())[-200:]
        return Check(name, bad, f'{command[0]} does not work: {said}; {fallback}',
                     f'{INSTALL}; where it cannot be loaded, the cache or TMPDIR may be on a disk mounted noexec')
    if value != 5.0:
        return Check(name, FAILS, f'{" ".join(command)} computes 2*2+1 = {value:g}', 'use another compiler: CC=')
    note = '; MBSE_BACKEND=vm: it is not used' if wanted == 'vm' else ''
    return Check(name, OK, f'{" ".join(command)} compiles and runs, {seconds:.2f} s{note}')


def cache_check(folder: Path | None = None) -> Check:
    """The folder of compiled functions is this user's alone and can be written; its size is within the limit."""
    name, folder = 'cache', cache_folder() if folder is None else folder
    limit, asked = cache_limit(), os.environ.get('MBSE_CACHE_LIMIT', '')
    wrong = [text for text in remarks() if text.startswith(f'MBSE_CACHE_LIMIT: got {asked[:40]!r},')]
    if folder.exists() and not folder.is_dir():
        return Check(name, WARNING, f'{folder} is not a folder: compiled functions are not kept',
                     'remove it, or MBSE_CACHE_DIR= another folder')
    if folder.exists() and not private(folder):
        return Check(name, WARNING, f'{folder} is not used: another user owns it or may write into it',
                     f'chmod 700 {folder}, or MBSE_CACHE_DIR= a folder of your own')
    if not _writable(folder):
        return Check(name, WARNING, f'{folder} cannot be written: functions are compiled again at each start',
                     f'chmod u+rwx {folder}, or MBSE_CACHE_DIR= another folder')
    kept = entries(folder, time.time())
    size = sum(entry.size for entry in kept)
    text = f'{folder}: {len(kept)} functions, {megabytes(size)} of {megabytes(limit)}'
    if wrong:
        return Check(name, WARNING, f'{text}; {wrong[0]}', 'correct or unset MBSE_CACHE_LIMIT')
    if size > limit:
        return Check(name, WARNING, f'{text}: more than the limit', 'the next function that is compiled removes the '
                     'oldest; raise MBSE_CACHE_LIMIT (MB) to keep them')
    return Check(name, OK, text if folder.is_dir() else f'{folder} will be made by the first function')


def _writable(folder: Path) -> bool:
    """Whether a file can be made in a folder, or the folder itself."""
    try:
        if folder.is_dir():
            with tempfile.TemporaryFile(dir=folder):
                return True
        nearest = next(place for place in folder.parents if place.exists())
        return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    except OSError:
        return False
