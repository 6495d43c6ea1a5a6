# SPDX-License-Identifier: Apache-2.0
"""Compilers that hang, caches that others may write: neither stops us, neither is trusted, and both are reported."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from mbse_ros.compiled import Kernel, have_compiler
from mbse_ros.compiled import compiler as room
from mbse_ros.compiled.cache import library
from mbse_ros.compiled.compiler import remarks, time_limit
from mbse_ros.errors import CompilationError

SOURCE = 'int mbse_answer(void) { return 42; }\n'
LIMIT = 60.0        # s
needs_compiler = pytest.mark.skipif(not have_compiler(), reason='no C compiler')


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test alone, and no remarks of others."""
    monkeypatch.setenv('MBSE_CACHE_DIR', str(tmp_path / 'cache'))
    monkeypatch.setattr(room, '_REMARKS', {})
    return tmp_path / 'cache'


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that hangs in a child of its own, which holds its output open; the file has the child's number."""
    program, child = tmp_path / 'hanging_cc', tmp_path / 'child'
    program.write_text(f'#!/bin/sh\nsleep 600 &\necho $! > "{child}"\nwait\n')
    program.chmod(0o755)
    monkeypatch.setenv('CC', str(program))
    monkeypatch.setenv('MBSE_COMPILE_LIMIT', '1.5')
    return child


def function() -> ca.Function:
    x = ca.SX.sym('x', 2)
    return ca.Function('f', [x], [3 * x])


def alive(pid: int) -> bool:
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


def test_a_compiler_that_hangs_is_ended_with_its_children(hanging: Path) -> None:
    with pytest.raises(CompilationError, match='timed out after 1.5 seconds'):
        library('answer', SOURCE)
    pid, end = int(hanging.read_text()), time.monotonic() + LIMIT
    while alive(pid):
        assert time.monotonic() < end, 'its child lives on'
        time.sleep(0.01)


def test_without_it_the_virtual_machine_serves_and_is_reported(hanging: Path) -> None:
    kernel = Kernel(function())
    assert kernel.backend == 'vm' and np.array_equal(kernel(np.ones(2))[0], [3.0, 3.0])
    assert len(remarks()) == 1 and 'virtual machine' in remarks()[0] and 'timed out' in remarks()[0]


@needs_compiler
def test_what_was_asked_for_is_no_remark() -> None:
    assert Kernel(function(), 'vm').backend == 'vm' and Kernel(function()).backend == 'c' and not remarks()


def test_the_limit_is_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, seconds in (('2', 2.0), ('', 600.0), ('soon', 600.0)):
        monkeypatch.setenv('MBSE_COMPILE_LIMIT', text)
        assert time_limit() == seconds


@needs_compiler
def test_the_cache_is_for_the_user_alone(cache: Path) -> None:
    before, source = os.umask(0), SOURCE.replace('42', '44')
    try:
        path = library('answer', source)
    finally:
        os.umask(before)
    assert path.parent == cache and library('answer', source) == path
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700 and stat.S_IMODE(path.stat().st_mode) == 0o600


@needs_compiler
@pytest.mark.parametrize('what, mode', [('folder', 0o777), ('folder', 0o770), ('file', 0o666)])
def test_what_others_may_write_is_not_loaded(cache: Path, what: str, mode: int) -> None:
    source = f'int mbse_answer(void) {{ return {mode}; }}\n'      # of its own: the process keeps what it made
    path = library('answer', source)
    (path if what == 'file' else cache).chmod(mode)
    stamp = path.stat().st_mtime_ns, path.stat().st_ino
    again = library('answer', source)
    if what == 'folder':
        assert again.parent != cache and any('is not used' in line for line in remarks())
        assert stat.S_IMODE(again.parent.stat().st_mode) == 0o700
    else:       # put there anew
        assert again == path and (path.stat().st_mtime_ns, path.stat().st_ino) != stamp
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@needs_compiler
def test_what_another_user_owns_is_not_loaded(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SOURCE.replace('42', '43')
    path = library('answer', source)
    os.chown(cache, 65534, -1) if os.geteuid() == 0 else monkeypatch.setattr(os, 'geteuid', lambda: 12345)
    assert library('answer', source) != path and 'another user' in remarks()[0]
