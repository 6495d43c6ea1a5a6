# SPDX-License-Identifier: Apache-2.0
"""The interpreter, the packages that the requirement lists ask for (none is imported here), the C compiler and the
cache of what it made."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import casadi as ca

from ..bags.storage.disk_room import megabytes
from ..compiled import Kernel
from ..compiled.cache import cache_folder, cache_limit, entries, private
from ..compiled.compiler import SLOW, compile_library, compiler, remarks, requested
from ..errors import CompilationError, SettingError
from .checks import FAILS, OK, WARNING, Check

OLDEST, NEWEST = (3, 10), (3, 13)       # the first of setup.py, the last that the tests ran on
# tools/requirements, which an installation does not have; test_doctor_python.py holds the two together.
REQUIRED = {'numpy': '1.21', 'scipy': '1.8', 'casadi': '3.6.5', 'transforms3d': '0.4', 'pint': '0.19', 'pyyaml': '5.4',
            'defusedxml': '0.7', 'simpleeval': '1.0', 'matplotlib': '3.5', 'pillow': '9', 'plotly': '6',
            'typer': '0.12', 'rich': '12', 'rosbags': '0.10.4', 'mcap': '1.1', 'lz4': '3.1', 'zstandard': '0.15'}
EXTRAS = {'graph': {'gtsam': '4.3'}, 'parquet': {'pyarrow': '14'}, 'table': {'pandas': '2.0'}}
MODULES = {'pyyaml': 'yaml', 'pillow': 'PIL'}      # where the name to import is not the name to install
Version = Callable[[str], 'str | None']
SOURCE = 'double mbse_doctor(double x) { return 2.0 * x + 1.0; }\n'
INSTALL = 'install one: sudo apt-get install gcc libc6-dev, or name one by CC='


def installed(name: str) -> str | None:
    """Version of an installed distribution; '' where only its module is found, None where neither is."""
    try:
        return metadata.version(name) or ''
    except metadata.PackageNotFoundError:
        return '' if find_spec(MODULES.get(name, name)) else None


def python_check(version: tuple[int, ...] = sys.version_info[:2], full: str = platform.python_version()) -> Check:
    """The interpreter's version."""
    wanted = f'Python {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}'
    if version < OLDEST:
        return Check('python', FAILS, f'{full}, too old', f'use {wanted} (PYTHON=python3.12 make environment)')
    if version > NEWEST:
        return Check('python', WARNING, f'{full}, newer than what was tested', f'use {wanted} where something fails')
    return Check('python', OK, f'{full} ({sys.executable})')


def dependency_checks(required: Mapping[str, str] = REQUIRED, version: Version = installed) -> list[Check]:
    """A failure for each package that is missing or too old; one line about all where none is."""
    bad = [_bad(name, least, found) for name, least in required.items()
           if not (found := version(name)) or not enough(found, least)]
    good = len(required) - len(bad)
    shown = ', '.join(f'{name} {version(name)}' for name in list(required)[:3])
    return bad or [Check('dependencies', OK, f'{good} of {len(required)} packages are new enough: {shown} ...')]


def extras_check(extras: Mapping[str, Mapping[str, str]] = EXTRAS, version: Version = installed) -> Check:
    """Optional packages: a missing one is not reported, an old one is a warning."""
    found = {name: version(name) for packages in extras.values() for name in packages}
    old = [f'"{name}>={least}"' for packages in extras.values() for name, least in packages.items()
           if (there := found[name]) and not enough(there, least)]
    text = ', '.join(f'{extra}: {name} {"not installed" if found[name] is None else found[name] or "of no version"}'
                     for extra, packages in extras.items() for name in packages)
    return Check('extras', WARNING, text, f'pip install {" ".join(old)}') if old else Check('extras', OK, text)


def enough(version: str, least: str) -> bool:
    """Whether a version, such as '1.26.4' or '2.0.0rc1', is at least another, by its leading numbers."""
    return _numbers(version) >= _numbers(least)


def _numbers(version: str) -> tuple[int, ...]:
    found = [int(part) for part in re.split(r'[^\d.]', version)[0].split('.') if part]
    while found and found[-1] == 0:     # 6 and 6.0 are the same
        found.pop()
    return tuple(found)


def _bad(name: str, least: str, found: str | None) -> Check:
    mend = f'pip install "{name}>={least}"'
    if found == '':
        return Check(f'dependency {name}', WARNING, f'version not known, expected {least} or newer', mend)
    text = 'not installed' if found is None else f'{found}, too old'
    return Check(f'dependency {name}', FAILS, f'{text}, expected {least} or newer', mend)


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
