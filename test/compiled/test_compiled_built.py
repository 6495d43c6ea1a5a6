# SPDX-License-Identifier: Apache-2.0
"""Functions kept in the cache: built once, the same bit for bit, made anew where anything they follow from changes."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from mbse_ros.compiled import Kernel, have_compiler
from mbse_ros.compiled import cache as cache_module
from mbse_ros.compiled import cache as room
from mbse_ros.compiled.cache import built, keep
from mbse_ros.compiled.dense import c_source, dense, made_of
from mbse_ros.machine import Machine, load_machine
from mbse_ros.streams.pipeline import Pipeline


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test alone."""
    monkeypatch.setenv('MBSE_CACHE_DIR', str(tmp_path / 'cache'))
    return tmp_path / 'cache'


class Maker:
    """Makes a function and counts how often."""

    def __init__(self, factor: float = 2.0) -> None:
        self.count, self.factor = 0, factor

    def __call__(self) -> ca.Function:
        self.count += 1
        x = ca.SX.sym('x', 3)
        return ca.Function('f', [x], [ca.sin(self.factor * x) / 3])


def test_built_once(cache: Path) -> None:
    make = Maker()
    first, second = built(['a', 'b'], make), built(['a', 'b'], make)
    assert make.count == 1 and first.serialize() == second.serialize()
    x = np.array([0.1, -2.0, 1e9])
    assert np.array_equal(Kernel(first, 'vm')(x)[0], Kernel(second, 'vm')(x)[0])
    entry, = cache.iterdir()
    assert entry.suffix == '.casadi' and entry.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize('texts', [['a', 'c'], ['ab'], ['a', 'b', ''], ['', 'ab']])
def test_made_of_something_else(texts: list[str]) -> None:
    make = Maker()
    built(['a', 'b'], make)
    built(texts, make)
    assert make.count == 2


def test_made_anew_after_a_change_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    make = Maker()
    for code in ('one', 'one', 'two'):
        monkeypatch.setattr(room, 'code_identity', lambda *_, code=code: code)
        built(['a'], make)
    assert make.count == 2


@pytest.mark.parametrize('damage', ['cut', 'empty', 'a bit', 'others may write', 'no function', 'cut inside'])
def test_what_cannot_be_trusted_is_made_anew(cache: Path, damage: str) -> None:
    built(['a'], make := Maker())
    entry, = cache.iterdir()
    whole = entry.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    if damage == 'others may write':
        entry.chmod(0o666)
    elif damage == 'no function':       # under a right seal
        keep(entry.name, zlib.compress(b'no function'))
    elif damage == 'cut inside':
        keep(entry.name, zlib.compress(make().serialize().encode())[:100])
        make.count -= 1
    else:
        entry.write_bytes({'cut': whole[:100], 'empty': b'', 'a bit': bytes(flipped)}[damage])
    function = built(['a'], make)
    assert make.count == 2 and function.serialize() == Maker()().serialize()
    assert entry.read_bytes() == whole and entry.stat().st_mode & 0o777 == 0o600


def test_a_folder_of_another_user_is_not_read(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built(['a'], make := Maker())
    cache.chmod(0o777)
    monkeypatch.setattr(cache_module, 'remark', lambda text: None)
    monkeypatch.setattr(cache_module, '_temporary_folder', lambda: cache.parent / 'own')
    built(['a'], make)
    assert make.count == 2 and len(list((cache.parent / 'own').iterdir())) == 1


def test_the_key_of_a_library_follows_from_the_function_and_its_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands for the C source, which is not written where the library is there."""
    one, same, other = (dense(Maker(factor)(), 'f') for factor in (2.0, 2.0, 3.0))
    assert made_of(one) == made_of(same) != made_of(other)
    assert c_source(one) == c_source(same) != c_source(other)
    before = made_of(one)
    monkeypatch.setattr('mbse_ros.compiled.dense.code_identity', lambda *_: 'changed')
    assert made_of(one) != before


@pytest.mark.skipif(not have_compiler(), reason='no C compiler')
def test_c_is_not_written_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel(Maker()(), 'c')
    monkeypatch.setattr('mbse_ros.compiled.kernel.c_source', lambda _: pytest.fail('written again'))
    assert Kernel(Maker()(), 'c').backend == 'c'


def test_a_machine_of_other_numbers_is_another() -> None:
    """What a file says, and what was assumed instead; not where the file is."""
    machine = load_machine('patu655_lift')
    moved = Machine(replace(machine.description, file='elsewhere.yaml'))
    assert moved.made_of == machine.made_of
    assert load_machine('patu655_lift', 'unknown').made_of != machine.made_of
    before = machine.made_of
    machine.parameters.assume(machine.parameters.mean * (1 + 1e-15))
    assert machine.made_of != before


def test_the_observer_is_the_same_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Pipeline(load_machine('patu655_lift'), backend='vm').observer._observer.filter.function().serialize()
    monkeypatch.setattr('mbse_ros.filters.observer_step.observer_step', lambda *_: pytest.fail('built again'))
    again = Pipeline(load_machine('patu655_lift'), backend='vm').observer._observer
    assert again.filter.function().serialize() == first
