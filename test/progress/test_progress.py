# SPDX-License-Identifier: Apache-2.0
"""Lengthy work is said once, on standard error of a terminal, and to nobody who did not ask."""

from threading import Event, Timer

import pytest
from cli_support import mbse

from mbse_ros import progress
from mbse_ros.compiled import cache


@pytest.fixture
def said(monkeypatch):
    """What is said, and an event for it."""
    texts, event = [], Event()
    monkeypatch.setattr(progress, '_SAY', [])
    progress.say_lengthy(lambda what: (texts.append(what), event.set()))
    return texts, event


def test_work_that_takes_longer_is_said_once(said, monkeypatch):
    texts, event = said
    monkeypatch.setattr(progress, 'UNTIL', 0.0)
    with progress.lengthy('weighing'):
        assert event.wait(60.0)
    assert texts == ['weighing']


def test_a_listener_of_its_own_is_told_after_its_own_time(monkeypatch):
    monkeypatch.setattr(progress, '_SAY', [])
    event = Event()
    with progress.lengthy('weighing', lambda what: what == 'weighing' and event.set(), 0.0):
        assert event.wait(60.0)


def test_short_work_and_work_that_fails_leave_nothing_behind(said, monkeypatch):
    timers = []
    monkeypatch.setattr(progress, 'Timer', lambda *given: timers.append(Timer(3600.0, *given[1:])) or timers[-1])
    with pytest.raises(ValueError, match='wrong'), progress.lengthy('weighing'):
        raise ValueError('wrong')
    for _ in range(3):
        progress.lengthy('weighing')(lambda: None)()
    assert said[0] == [] and len(timers) == 4 and all(timer.finished.is_set() for timer in timers)


def test_compiling_is_lengthy_work(said, monkeypatch):
    monkeypatch.setattr(progress, 'UNTIL', 0.0)
    monkeypatch.setattr(cache, 'compile_library', lambda *_: said[1].wait(60.0) and b'')
    monkeypatch.setattr(cache, 'keep', lambda file, content: file)
    cache.library('mbse_CEKF', 'int new;', 'of this test')
    assert said[0] == ['compiling CEKF, once: later runs take it from the cache']


@pytest.mark.parametrize('terminal', [True, False])
def test_only_a_terminal_is_told(terminal, monkeypatch):
    monkeypatch.setattr(progress, '_SAY', [])
    asked = []
    monkeypatch.setattr('mbse_ros.cli.app.say_lengthy', asked.append)
    monkeypatch.setattr('mbse_ros.cli.app.terminal', lambda: terminal)
    assert mbse('check', 'four_bar').status == 0
    assert len(asked) == terminal and not progress._SAY
