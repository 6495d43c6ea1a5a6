# SPDX-License-Identifier: Apache-2.0
"""The cache has a limit: what was not used for longest goes, what is in use stays, and nobody trips over it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mbse_ros.compiled import compiler as room
from mbse_ros.compiled import have_compiler
from mbse_ros.compiled.cache import IN_USE, MB, cache_limit, library, shrink
from mbse_ros.compiled.compiler import remarks

pytestmark = pytest.mark.skipif(not have_compiler(), reason='no C compiler')
ROOT = Path(__file__).resolve().parents[2]
SOURCE = 'char ballast[400000] = {{1}};\nint answer(void) {{ return ballast[{0}] + {0}; }}\n'
DAY = 86400.0
CHILD = '''
import ctypes, sys
from mbse_ros.compiled.cache import library
for turn in range(3):
    for k in range(4):
        number = 1 + (k + int(sys.argv[1])) % 4
        path = library('answer', sys.argv[2].format(number))
        assert ctypes.CDLL(str(path)).answer() == number
print('done')
'''


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test alone, of 1 MB, and no remarks of others."""
    monkeypatch.setenv('MBSE_CACHE_DIR', str(tmp_path / 'cache'))
    monkeypatch.setenv('MBSE_CACHE_LIMIT', '1')
    monkeypatch.setattr(room, '_REMARKS', {})
    return tmp_path / 'cache'


def answer(number: int) -> Path:
    """Library of 0.4 MB with the function ``answer``."""
    return library('answer', SOURCE.format(number))


def aged(path: Path, seconds: float) -> Path:
    """The file, last used so long ago."""
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def test_what_was_not_used_for_longest_goes(cache: Path) -> None:
    first, second = aged(answer(1), 3 * DAY), aged(answer(2), 2 * DAY)
    assert first != second and all(400_000 < path.stat().st_size < 450_000 for path in (first, second))
    assert answer(1) == first       # from the cache: and now it is the one that was used last
    third = answer(3)
    assert set(cache.iterdir()) == {first, third} and remarks() == ()
    assert answer(2) == second and second.exists()     # compiled again


def test_what_is_in_use_stays_whatever_the_limit(cache: Path) -> None:
    paths = [answer(number) for number in range(1, 5)]
    assert set(cache.iterdir()) == set(paths) and remarks() == ()
    for path in paths:
        aged(path, IN_USE + 30.0)
    fifth = answer(5)
    assert len(list(cache.iterdir())) == 2 and fifth.exists()
    assert len(remarks()) == 1 and 'raise MBSE_CACHE_LIMIT, 1 MB' in remarks()[0]


def test_below_the_limit_nothing_goes(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('MBSE_CACHE_LIMIT')
    paths = {aged(answer(number), number * 300 * DAY) for number in range(1, 5)} | {answer(5)}
    assert set(cache.iterdir()) == paths


def test_only_its_own_files_go(cache: Path) -> None:
    """The folder may be any: MBSE_CACHE_DIR=. was said before."""
    old = aged(answer(1), DAY)
    others = [cache / name for name in ('thesis.so', 'notes.txt', '.' + 30 * 'a')]
    killed = cache / ('.' + 32 * 'a')
    for path in (*others, killed):
        path.write_bytes(bytes(MB))
        aged(path, DAY)
    (cache / (64 * 'a' + '.so')).symlink_to(others[0])
    new = answer(2)
    assert all(path.exists() for path in (*others, new)) and not killed.exists() and not old.exists()


def test_a_clock_that_was_wrong_keeps_nothing_for_ever(cache: Path) -> None:
    paths = [aged(answer(number), -300 * DAY) for number in (1, 2)]
    new = answer(3)
    assert new.exists() and sum(path.exists() for path in paths) < 2


def test_one_that_is_taken_up_meanwhile_stays(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, older = aged(answer(1), DAY), aged(answer(2), 2 * DAY)
    real = os.scandir

    def scan(folder):
        found = sorted(real(folder), key=lambda entry: entry.name)
        for entry in found:
            entry.stat(follow_symlinks=False)       # is kept in the entry
        os.utime(older)
        return Listed(found)
    monkeypatch.setattr(os, 'scandir', scan)
    shrink(cache, 500_000)
    assert older.exists() and not old.exists()


class Listed(list):
    """What os.scandir gives."""

    def __enter__(self) -> Listed:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def test_processes_at_once(cache: Path) -> None:
    for number in range(1, 5):
        aged(answer(number), DAY)
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])}
    running = [subprocess.Popen([sys.executable, '-c', CHILD, str(k), SOURCE], env=environment, text=True,
                                stdout=subprocess.PIPE) for k in range(3)]
    assert [process.communicate(timeout=300)[0].strip() for process in running] == ['done'] * 3


@pytest.mark.parametrize('text, megabytes', [('', 1000), ('250', 250), ('1.5', 1.5), ('1e7', 1e7)])
def test_the_limit_is_read(monkeypatch: pytest.MonkeyPatch, text: str, megabytes: float) -> None:
    monkeypatch.setenv('MBSE_CACHE_LIMIT', text)
    assert cache_limit() == megabytes * MB and remarks() == ()


@pytest.mark.parametrize('text', ['much', '0', '-3', 'nan', 'inf', '1e9', '2 GB'])
def test_a_limit_that_is_none_is_reported(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv('MBSE_CACHE_LIMIT', text)
    assert cache_limit() == 1000 * MB
    assert remarks() == (f'MBSE_CACHE_LIMIT: got {text!r}, expected a number of MB from 1 to 1e+07; 1000 MB is used',)
