# SPDX-License-Identifier: Apache-2.0
"""A function that is called rarely: the virtual machine first, C from another process later, the same bits."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from mbse_ros.compiled import Kernel, background, have_compiler
from mbse_ros.compiled import compiler as room
from mbse_ros.compiled.compiler import remarks

pytestmark = pytest.mark.skipif(not have_compiler(), reason='no C compiler')
CALLS = 3


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test alone; few calls are worth a compiler."""
    monkeypatch.setenv('MBSE_CACHE_DIR', str(tmp_path / 'cache'))
    monkeypatch.delenv('MBSE_BACKEND', raising=False)
    monkeypatch.setattr(room, '_REMARKS', {})
    monkeypatch.setattr(background, 'CALLS', CALLS)
    monkeypatch.setattr(background, 'OPERATIONS', 0)
    return tmp_path / 'cache'


def function(kind: type = ca.SX) -> ca.Function:
    x = kind.sym('x', 3)
    return ca.Function('waves', [x], [ca.sin(x) / ca.exp(x[0]), ca.tanh(x)])


def values(kernel: Kernel) -> Iterator[tuple[str, bool]]:
    """What runs at each of the calls that follow, and whether it gives the bits of the virtual machine."""
    expected = Kernel(function(), 'vm')
    for k in range(100_000):
        x = np.array([0.1, 0.2, 0.3]) * (k % 7)
        yield kernel.backend, all(map(np.array_equal, kernel(x), expected(x)))


def ended(kernel: Kernel) -> None:
    """Wait for the process that compiles."""
    kernel._waiting._process.wait()


def test_it_is_compiled_once_it_was_called_often(cache: Path) -> None:
    kernel = Kernel(function(), rare=True)
    calls = values(kernel)
    assert [next(calls) for _ in range(CALLS)] == [('vm', True)] * CALLS
    ended(kernel)
    assert next(calls) == ('vm', True) and next(calls) == ('c', True)
    assert len(list(cache.glob('*.so'))) == 1 and not remarks()
    assert Kernel(function(), rare=True).backend == 'c'       # at once: it is in the cache


def test_few_calls_start_nothing(cache: Path) -> None:
    kernel = Kernel(function(), rare=True)
    calls = values(kernel)
    assert [next(calls) for _ in range(CALLS - 1)] == [('vm', True)] * (CALLS - 1)
    assert kernel._waiting._process is None and not cache.exists()


def test_a_large_function_is_worth_it_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, 'OPERATIONS', 1000)
    x = ca.SX.sym('x')
    short, long = (Kernel(ca.Function('f', [x], [sum(ca.sin(k * x) for k in range(1, n))]), rare=True)
                   for n in (3, 100))
    assert short._waiting._left > long._waiting._left > CALLS


@pytest.mark.parametrize('backend, runs', [('vm', 'vm'), ('c', 'c')])
def test_a_backend_by_its_name_is_had_at_once(backend: str, runs: str) -> None:
    assert Kernel(function(), backend, rare=True).backend == runs


def test_what_may_fail_is_compiled_at_once() -> None:
    assert Kernel(function(ca.MX), rare=True).backend == 'c'


def test_a_compiler_that_fails_leaves_the_virtual_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / 'cc'
    program.write_text('#!/bin/sh\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv('CC', str(program))
    kernel = Kernel(function(), rare=True)
    calls = values(kernel)
    for _ in range(CALLS):
        next(calls)
    ended(kernel)
    assert [next(calls) for _ in range(3)] == [('vm', True)] * 3
    line, = remarks()
    assert 'waves was compiled in the background' in line and 'virtual machine' in line


def test_the_other_process_finds_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'path', [folder for folder in sys.path if folder not in ('', '.')])
    kernel = Kernel(function(), rare=True)
    calls = values(kernel)
    for _ in range(CALLS):
        next(calls)
    ended(kernel)
    next(calls)
    assert kernel.backend == 'c'
