# SPDX-License-Identifier: Apache-2.0
"""The doctor's look at compiler, cache, disks, limits, buffers and clocks, on computers that are not well."""

import os
import resource
import time

import pytest

from mbse_ros.compiled import compiler as remarks
from mbse_ros.compiled import have_compiler
from mbse_ros.doctor.checks import FAILS, OK, WARNING
from mbse_ros.doctor.compilation import cache_check, compiler_check
from mbse_ros.doctor.computer import (
    MAY_NICE,
    date_check,
    disk_check,
    governor_check,
    has_capability,
    kernel_says,
    memory_check,
    priority_check,
    processor_check,
    receive_buffer_check,
    resolution_check,
    synchronized_check,
)

GB, MB = 1_000_000_000, 1_000_000


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    folder = tmp_path / 'cache'
    monkeypatch.setenv('MBSE_CACHE_DIR', str(folder))
    monkeypatch.setattr(remarks, '_REMARKS', {})        # none of others, and none for others
    for name in ('CC', 'MBSE_BACKEND', 'MBSE_CACHE_LIMIT'):
        monkeypatch.delenv(name, raising=False)
    return folder


def program(folder, text):
    path = folder / 'own-cc'
    path.write_text(f'#!/bin/sh\n{text}\n')
    path.chmod(0o755)
    return str(path)


def test_a_compiler_that_works():
    if not have_compiler():
        pytest.skip('no C compiler')
    assert compiler_check().status == OK


@pytest.mark.parametrize('backend, status', [('auto', WARNING), ('c', FAILS)])
def test_no_compiler(monkeypatch, backend, status):
    monkeypatch.setenv('CC', 'no-such-compiler')
    monkeypatch.setenv('MBSE_BACKEND', backend)
    check = compiler_check()
    assert check.status == status and 'CC=no-such-compiler' in check.found and 'apt-get install' in check.mend
    assert ('virtual machine' in check.found) == (backend == 'auto')        # the fall-back is named


@pytest.mark.parametrize('text', ['echo no room >&2; exit 1', 'exit 0'])
def test_a_compiler_that_does_not_work(monkeypatch, tmp_path, text):
    monkeypatch.setenv('CC', program(tmp_path, text))
    check = compiler_check()
    assert check.status == WARNING and 'own-cc does not work' in check.found
    assert ('no room' in check.found) == ('room' in text)


def test_words_about_the_compiler_that_mean_nothing(monkeypatch):
    monkeypatch.setenv('CC', 'gcc "')
    assert compiler_check().status == FAILS
    monkeypatch.setenv('MBSE_BACKEND', 'fast')
    assert 'fast' in compiler_check().found


def test_a_cache_that_is_not_there_yet(own_cache):
    assert cache_check().status == OK and not own_cache.exists()


def test_a_cache_and_its_size(own_cache, monkeypatch):
    own_cache.mkdir(mode=0o700)
    (own_cache / f'{"a" * 64}.so').write_bytes(bytes(2 * MB))
    assert cache_check().status == OK and '1 functions, 2 MB of 1.0 GB' in cache_check().found
    monkeypatch.setenv('MBSE_CACHE_LIMIT', '1')
    assert cache_check().status == WARNING and 'MBSE_CACHE_LIMIT' in cache_check().mend


def test_a_limit_that_is_no_number(own_cache, monkeypatch):
    monkeypatch.setenv('MBSE_CACHE_LIMIT', 'plenty of it')
    for _ in range(2):      # the remark about it comes once a process
        assert cache_check().status == WARNING and 'plenty of it' in cache_check().found


def test_a_cache_that_others_may_write(own_cache):
    own_cache.mkdir()
    own_cache.chmod(0o770)
    check = cache_check()
    assert check.status == WARNING and check.mend.startswith(f'chmod 700 {own_cache}')


def test_a_cache_that_cannot_be(own_cache):
    own_cache.write_text('a file')
    assert cache_check().status == WARNING
    assert 'cannot be written' in cache_check(own_cache / 'below').found


@pytest.mark.parametrize('free, status', [(5 * GB, OK), (500 * MB, WARNING), (20 * MB, FAILS)])
def test_disk(tmp_path, free, status):
    check = disk_check('here', tmp_path, lambda path: free)
    assert check.status == status and bool(check.mend) == (status != OK)
    assert disk_check('here', tmp_path / 'not' / 'there').found.endswith(f'{tmp_path}/not/there')


@pytest.mark.parametrize('limit, able, status', [
    (0, False, WARNING), (0, True, OK), (50, False, OK), (resource.RLIM_INFINITY, False, OK)])
def test_priority(limit, able, status):
    assert priority_check(limit, able).status == status
    assert memory_check(limit * GB if limit > 0 else limit, able).status == (WARNING if limit == 50 else status)
    assert 'unlimited' in memory_check(resource.RLIM_INFINITY, False).found


def test_capabilities(tmp_path):
    status = tmp_path / 'status'
    status.write_text(f'Name:\tx\nCapEff:\t{1 << MAY_NICE:016x}\n')
    assert has_capability(MAY_NICE, status) and not has_capability(MAY_NICE + 1, status)
    assert not has_capability(MAY_NICE, tmp_path / 'none')


def test_governor(tmp_path):
    assert governor_check(tmp_path).status == OK
    for number, name in enumerate(('performance', 'powersave')):
        assert governor_check(tmp_path).status == OK
        file = tmp_path / f'cpu{number}' / 'cpufreq' / 'scaling_governor'
        file.parent.mkdir(parents=True)
        file.write_text(f'{name}\n')
    check = governor_check(tmp_path)
    assert check.status == WARNING and '1 CPUs performance, 1 CPUs powersave' in check.found


@pytest.mark.parametrize('count, load, status', [(4, 1.0, OK), (4, 4.5, WARNING), (1, 0.0, WARNING)])
def test_processors(count, load, status):
    assert processor_check(count, load).status == status


@pytest.mark.parametrize('usual, most, low', [
    (212_992, 212_992, []), (4096, 4_194_304, ['rmem_default']), (4096, 4096, ['rmem_default', 'rmem_max'])])
def test_receive_buffer(tmp_path, usual, most, low):
    (tmp_path / 'rmem_default').write_text(f'{usual}\n')
    (tmp_path / 'rmem_max').write_text(f'{most}\n')
    check = receive_buffer_check(tmp_path)
    assert check.status == (WARNING if low else OK)
    assert [name for name in ('rmem_default', 'rmem_max') if f'net.core.{name}=' in check.mend] == low


def test_a_system_without_these_settings(tmp_path):
    with pytest.raises(OSError):
        receive_buffer_check(tmp_path)


@pytest.mark.parametrize('kernel, several, status', [
    ((True, 0.01), True, OK), ((False, 16.0), True, WARNING), (None, True, WARNING), (None, False, OK)])
def test_synchronised(tmp_path, kernel, several, status):
    check = synchronized_check(several, lambda: kernel, tmp_path / 'none')
    assert check.status == status and ('not known' in check.found) == (kernel is None)
    (tmp_path / 'mark').touch()
    assert synchronized_check(several, lambda: kernel, tmp_path / 'mark').status == OK


def test_the_kernel_answers_in_sense():
    found = kernel_says()
    assert found is None or isinstance(found[0], bool) and 0.0 <= found[1] < 1e4


@pytest.mark.parametrize('step, status', [(100, OK), (100_000, WARNING), (4_000_000, FAILS), (0, FAILS), (-1, FAILS)])
def test_steps_of_the_clock(step, status):
    now = iter(range(0, 1 << 62, step) if step > 0 else range(0, -(1 << 30), -1) if step else iter(lambda: 7, 8))
    assert resolution_check(lambda: next(now)).status == status
    if step == 100:
        assert resolution_check(time.monotonic_ns).status != FAILS


def test_date(tmp_path):
    module = tmp_path / 'a.py'
    module.touch()
    os.utime(module, (2e9, 2e9))
    assert date_check(tmp_path, lambda: 2e9 + 1.0).status == OK
    early = date_check(tmp_path, lambda: 1e9)
    assert early.status == FAILS and '2001-09-09' in early.found and '2033-05-18' in early.found
    assert date_check().status == OK
