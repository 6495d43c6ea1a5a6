# SPDX-License-Identifier: Apache-2.0
"""The interpreter, and the packages that the requirement lists ask for; nothing of them is imported here."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from importlib.util import find_spec

from .checks import FAILS, OK, WARNING, Check

OLDEST, NEWEST = (3, 10), (3, 13)       # the first of pyproject.toml, the last that the tests ran on
# tools/requirements, which an installation does not have; test_doctor_python.py holds the two together.
REQUIRED = {'numpy': '1.21', 'scipy': '1.8', 'casadi': '3.6.5', 'transforms3d': '0.4', 'pint': '0.19', 'pyyaml': '5.4',
            'defusedxml': '0.7', 'simpleeval': '1.0', 'matplotlib': '3.5', 'pillow': '9', 'plotly': '6',
            'typer': '0.12', 'rich': '12', 'rosbags': '0.10.4', 'mcap': '1.1', 'lz4': '3.1', 'zstandard': '0.15'}
EXTRAS = {'graph': {'gtsam': '4.3'}, 'parquet': {'pyarrow': '14'}, 'table': {'pandas': '2.0'}}
MODULES = {'pyyaml': 'yaml', 'pillow': 'PIL'}      # where the name to import is not the name to install
Version = Callable[[str], 'str | None']


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
