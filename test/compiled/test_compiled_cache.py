# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled libraries: found again, never trusted blindly, never in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from mbse_ros.compiled import Kernel, Scan, have_compiler
from mbse_ros.compiled import compiler as room
from mbse_ros.compiled.cache import cache_folder, entry_key, library, remove_temporary
from mbse_ros.errors import CompilationError

pytestmark = pytest.mark.skipif(not have_compiler(), reason='no C compiler')
ROOT = Path(__file__).resolve().parents[2]
SOURCE = 'int mbse_answer(void) { return 42; }\n'
CHILD = '''
import casadi as ca, numpy as np
from mbse_ros.compiled import Kernel, Scan
x, u, p = (ca.SX.sym(name, 2) for name in 'xup')
kernel = Kernel(ca.Function('f', [x], [ca.sin(x)]), 'c')
scan = Scan(ca.Function('g', [x, u, p], [x + 1, x]), 'c')
print(kernel(np.ones(2))[0][0] == np.sin(1.0), scan(np.zeros(2), np.zeros((3, 2)), np.zeros(2))[0][0])
'''


def function() -> ca.Function:
    x = ca.SX.sym('x', 2)
    return ca.Function('f', [x], [2 * x])


def step() -> ca.Function:
    x, u, p = (ca.SX.sym(name, 2) for name in 'xup')
    return ca.Function('g', [x, u, p], [x + 1, x])


@pytest.fixture(autouse=True)
def _own_remarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these compilers do wrong is no remark on the functions of other tests."""
    monkeypatch.setattr(room, '_REMARKS', {})


class Counter:
    """A C compiler that counts its starts."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / 'starts'
        self.program = folder / 'counting_cc'
        self.program.write_text(f'#!/bin/sh\necho start >> "{self._log}"\nexec "{shutil.which("cc")}" "$@"\n')
        self.program.chmod(0o755)

    @property
    def starts(self) -> int:
        return len(self._log.read_text().split()) if self._log.exists() else 0


@pytest.fixture
def counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counter:
    """A cache of this test alone, and the counting compiler in CC."""
    monkeypatch.setenv('MBSE_CACHE_DIR', str(tmp_path / 'cache'))
    made = Counter(tmp_path)
    monkeypatch.setenv('CC', str(made.program))
    return made


def children(n: int) -> list[str]:
    """What ``n`` processes print that compile the same functions at once."""
    command = [sys.executable, '-c', CHILD]
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])}
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(n)]
    return [process.communicate(timeout=300)[0].strip() for process in running]


def test_a_hit_starts_no_compiler(counter: Counter) -> None:
    Kernel(function(), 'c')
    assert counter.starts == 1
    Kernel(function(), 'c')
    assert counter.starts == 1
    x = ca.SX.sym('x', 2)
    Kernel(ca.Function('other_name', [x], [2 * x]), 'c')
    assert counter.starts == 1
    Kernel(ca.Function('f', [x], [3 * x]), 'c')
    Scan(step(), 'c')
    assert counter.starts == 3


def test_processes_at_once(counter: Counter) -> None:
    assert children(4) == ['True 3.0'] * 4
    assert 2 <= counter.starts <= 8
    assert sorted(path.suffix for path in cache_folder().iterdir()) == ['.so', '.so']
    starts = counter.starts
    assert children(1) == ['True 3.0'] and counter.starts == starts


@pytest.mark.parametrize('damage', ['cut', 'empty', 'a bit', 'foreign', 'folder gone'])
def test_a_damaged_entry_is_rebuilt(counter: Counter, damage: str) -> None:
    path = library('answer', SOURCE)
    whole = path.read_bytes()
    other = library('other', SOURCE.replace('42', '43')).read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    if damage == 'folder gone':
        shutil.rmtree(path.parent)
    else:
        cut = whole[:len(whole) // 2]
        path.write_bytes({'cut': cut, 'empty': b'', 'a bit': bytes(flipped), 'foreign': other}[damage])
    assert library('answer', SOURCE) == path
    assert counter.starts == 3 and path.read_bytes() == whole


def test_a_process_survives_cut_entries(counter: Counter) -> None:
    children(1)
    for path in cache_folder().iterdir():
        path.write_bytes(path.read_bytes()[:5000])
    assert children(1) == ['True 3.0'] and counter.starts == 4


def test_a_folder_that_cannot_be_written(counter: Counter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'file').write_text('')
    monkeypatch.setenv('MBSE_CACHE_DIR', str(tmp_path / 'file' / 'cache'))
    for _ in range(2):
        kernel = Kernel(function(), 'c')
        np.testing.assert_array_equal(kernel(np.ones(2))[0], 2)
    assert counter.starts == 1
    assert kernel.note == ''


def test_a_temporary_folder_is_there_only_while_the_cache_cannot_be_written(counter: Counter, tmp_path: Path,
                                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / 'temporary'
    place.mkdir()
    monkeypatch.setattr(tempfile, 'tempdir', str(place))
    remove_temporary()      # of a test before
    Kernel(function(), 'c')
    assert not list(place.iterdir())
    (tmp_path / 'file').write_text('')
    monkeypatch.setenv('MBSE_CACHE_DIR', str(tmp_path / 'file' / 'cache'))
    Kernel(function(), 'c')
    assert [path.suffix for path in place.rglob('*') if path.is_file()] == ['.so'] and counter.starts == 2
    remove_temporary()
    assert not list(place.iterdir())


def test_a_relative_folder(counter: Counter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('MBSE_CACHE_DIR', '.')
    Kernel(function(), 'c')
    assert Scan(step(), 'c').backend == 'c' and len(list(tmp_path.glob('*.so'))) == 2


def test_place_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HOME', '/home/someone')
    monkeypatch.delenv('XDG_CACHE_HOME', raising=False)
    monkeypatch.delenv('MBSE_CACHE_DIR', raising=False)
    assert cache_folder() == Path('/home/someone/.cache/mbse_ros')
    monkeypatch.setenv('XDG_CACHE_HOME', '/var/x')
    assert cache_folder() == Path('/var/x/mbse_ros')
    monkeypatch.setenv('MBSE_CACHE_DIR', '/var/own')
    assert cache_folder() == Path('/var/own')


def test_all_that_matters_is_in_the_key(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [entry_key('a', 'b'), entry_key('a', 'c'), entry_key('ab', ''), entry_key('', 'ab')]
    monkeypatch.setattr('platform.machine', lambda: 'other')
    keys.append(entry_key('a', 'b'))
    monkeypatch.setattr(ca.CasadiMeta, 'version', lambda: '0')
    keys.append(entry_key('a', 'b'))
    assert len(set(keys)) == len(keys)
    path = library('answer', SOURCE)
    monkeypatch.setenv('CC', f'{counter.program} -O0')
    assert library('answer', SOURCE) != path
    monkeypatch.setenv('CC', str(counter.program))
    counter.program.write_text(counter.program.read_text() + '# updated\n')
    assert library('answer', SOURCE) != path and counter.starts == 3


def test_without_a_compiler(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('CC')
    monkeypatch.delenv('MBSE_BACKEND', raising=False)
    monkeypatch.setenv('PATH', '')
    assert not have_compiler()
    kernel = Kernel(function())
    assert (kernel.backend, kernel.note) == ('vm', 'no C compiler was found')
    np.testing.assert_array_equal(kernel(np.ones(2))[0], 2)
    with pytest.raises(CompilationError, match='no C compiler was found'):
        Kernel(function(), 'c')


@pytest.mark.parametrize('script, said', [
    ('echo "out of memory" >&2; exit 1', 'out of memory'),                              # it refuses
    ('while [ "$1" != -o ]; do shift; done; echo rubbish > "$2"', 'load'),              # its product is none
    ('exit 0', 'no library')])                                                          # it writes nothing
def test_a_compiler_that_fails(counter: Counter, monkeypatch: pytest.MonkeyPatch, script: str, said: str) -> None:
    monkeypatch.delenv('MBSE_BACKEND', raising=False)
    counter.program.write_text(f'#!/bin/sh\n{script}\n')
    with pytest.raises(CompilationError, match=said):
        Kernel(function(), 'c')
    kernel = Kernel(function(), 'auto')
    assert kernel.backend == 'vm' and kernel.note.startswith('f: ') and said in kernel.note
    scan = Scan(step(), 'auto')
    assert scan.backend == 'vm' and scan.note
    with pytest.raises(CompilationError):
        Scan(step(), 'c')
