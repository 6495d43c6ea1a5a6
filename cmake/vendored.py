# SPDX-License-Identifier: Apache-2.0
"""Wheels of packages without a native rosdep key into a folder: what the CMake build runs, by Python alone.

    python vendored.py missing NAMES LEAST      prints what of NAMES is not installed, or older than LEAST asks for
    python vendored.py install NAMES LOCK DIR   puts the wheels, checked by their SHA-256, into DIR
"""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory


def names(text: str) -> list:
    """Names of a requirement list without comments."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith('#')]


def pinned(wanted: list, lock: str) -> str:
    """The entries of a lock with hashes for some names; ValueError where the lock lacks one."""
    entries = re.findall(r'^[A-Za-z0-9].*?(?=^[A-Za-z0-9]|\Z)', lock, re.MULTILINE | re.DOTALL)
    found = [entry for entry in entries if _name(entry) in wanted]
    if lacking := sorted(set(wanted) - {_name(entry) for entry in found}):
        raise ValueError(f'the lock has no {", ".join(lacking)}: make lock')
    return ''.join(found)


def missing(wanted: list, least: str, version=metadata.version) -> list:
    """Those that are not installed, or older than a requirement list asks for."""
    bounds = dict(re.findall(r'^([\w.-]+)>=([\d.]+)', least, re.MULTILINE))
    found = []
    for name in bounds:
        try:
            old = name in wanted and _numbers(version(name)) < _numbers(bounds[name])
        except metadata.PackageNotFoundError:
            old = name in wanted
        found += [name] if old else []
    return found


def _numbers(version: str) -> list:
    return [int(part) for part in re.match(r'[\d.]*', version)[0].split('.') if part]


def _name(entry: str) -> str:
    return re.sub(r'[-_.]+', '-', re.match(r'[\w.-]+', entry)[0]).lower()


def install(wanted: list, lock: str, folder: str) -> int:
    """pip's exit status; wheels alone, and nothing but what the lock names."""
    with TemporaryDirectory() as work:
        path = Path(work) / 'vendored.txt'
        path.write_text(pinned(wanted, lock))
        return subprocess.run([sys.executable, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check',
                               '--no-deps', '--require-hashes', '--only-binary=:all:', '--target', folder,
                               '-r', str(path)]).returncode


if __name__ == '__main__':
    listed = names(Path(sys.argv[2]).read_text())
    if sys.argv[1] == 'missing':
        print(';'.join(missing(listed, Path(sys.argv[3]).read_text())))
    else:
        sys.exit(install(listed, Path(sys.argv[3]).read_text(), sys.argv[4]))
