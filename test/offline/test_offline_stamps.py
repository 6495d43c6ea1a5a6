# SPDX-License-Identifier: Apache-2.0
"""Stamps, rates and silences of a log just inside and just outside of each number that decides."""

from __future__ import annotations

import numpy as np
import pytest
from core_support import crane

from mbse_ros.offline.checks.time_rules import apart_finding, leaps, rare_findings, time_findings
from mbse_ros.offline.log_samples import LogSamples, Series

S, MS = 1_000_000_000, 1_000_000
STROKE = 'position/lift'


def kinds(stamps: np.ndarray, *others: np.ndarray) -> list[str]:
    """Of findings on the first of some sensors with these stamps, ns."""
    log = [(name, int(stamp), 0.1) for name, own in zip('abc', (stamps, *others)) for stamp in own]
    return [finding.kind for finding in time_findings(LogSamples.of(log)) if 'a' in finding.channels]


def regular(count: int = 200, interval: float = 0.01) -> np.ndarray:
    return S + np.round(np.arange(count) * interval * S).astype(np.int64)


def zero(count: int) -> np.ndarray:
    return np.where(np.arange(200) % 50 < 1, np.where(np.arange(200) // 50 < count, 0, regular()), regular())


def repeated(count: int, size: int = 200) -> np.ndarray:
    stamps = regular(size)
    stamps[2:2 + 2 * count:2] = stamps[1:1 + 2 * count:2]
    return stamps


def late(count: int) -> np.ndarray:
    return regular() - 35 * MS * ((np.arange(200) % 20 == 10) & (np.arange(200) < 20 * count))


def coarse(step: int) -> np.ndarray:
    return S + np.arange(400) * MS // 2 // step * step


def few_fractions(seconds: int, samples: int) -> np.ndarray:
    """Sub-seconds below a half."""
    return np.concatenate([k * S + 30 * MS * np.arange(samples) + k % 3 for k in range(1, 1 + seconds)])


def silent(times: int, seconds: float) -> np.ndarray:
    """Pauses, each after a second of samples."""
    return np.concatenate([k * round((1.0 + seconds) * S) + regular(100) for k in range(times + 1)])


@pytest.mark.parametrize('inside, outside, kind', [
    (kinds(zero(3)), kinds(zero(2)), 'unstamped'), (kinds(repeated(3)), kinds(repeated(2)), 'repeated'),
    (kinds(repeated(3, 20)), kinds(repeated(3, 19)), 'repeated'),                  # of 20 samples
    (kinds(late(3)), kinds(late(2)), 'order'),
    (kinds(few_fractions(3, 10)), kinds(few_fractions(2, 15)), 'stamp'),
    (kinds(few_fractions(30, 3)), kinds(few_fractions(30, 2)), 'stamp'),
    (kinds(regular(interval=0.106)), kinds(regular(interval=0.104)), 'rate'),           # 10 Hz, to 5 %
    (kinds(regular(interval=1.9e-5)), kinds(regular(interval=2.1e-5)), 'stamp'),
    (kinds(silent(1, 1.01), regular(302)), kinds(silent(1, 0.97), regular(298)), 'gap'),        # 1 s in all ...
    (kinds(silent(3, 0.31), regular(494)), kinds(silent(2, 0.31), regular(363)), 'gap')])       # ... or three times
def test_stamps(inside: list[str], outside: list[str], kind: str) -> None:
    assert inside == [kind] and outside == []


def test_a_clock_of_large_steps() -> None:
    """From 1 ms on, and 1.5 intervals; below, samples only repeat their stamps."""
    assert kinds(coarse(MS)) == ['stamp'] and kinds(coarse(MS - 10_000)) == ['repeated']
    assert kinds(coarse(2 * MS)) == ['stamp']


def leapt(pause: float = 10.1, speed: float = 1.0, before: int = 50) -> bool:
    """A position that moves on, m/s, over a pause, s, after so many samples; noise of 1 mm."""
    t = 0.01 * np.arange(before + 50)
    values = speed * t
    t[before:] += pause - 0.01
    return bool(leaps({STROKE: Series(t, values)}, {STROKE: 1e-3}))


def test_a_clock_that_leaps_while_the_machine_moves_on() -> None:
    """By 10 s; seen by eight samples on each side, which move by 6 deviations."""
    assert leapt() and not leapt(9.9)
    assert leapt(before=8) and not leapt(before=7)
    assert leapt(speed=0.087) and not leapt(speed=0.085)


def rare(interval: float, share: float = 1.0) -> tuple[int, int]:
    """How many findings, and notes, on a position that goes to and fro by 1 m for a share of the time."""
    values = np.where(np.arange(1000) < 1000 * share, (-1.0) ** np.arange(1000), 1.0)
    findings, notes = rare_findings({STROKE: Series(interval * np.arange(1000), values)}, crane())
    return len(findings), len(notes)


def test_samples_that_are_too_rare() -> None:
    """From 0.015 to 0.105 s, for a tenth of the time; up to 0.055 s, 20 Hz, it is no fault of the log."""
    assert rare(0.0149) == (0, 0) and rare(0.0151) == (0, 1)
    assert rare(0.054) == (0, 1) and rare(0.056) == (1, 0)
    assert rare(0.104) == (1, 0) and rare(0.106) == (0, 0)
    assert rare(0.06, 0.105) == (1, 0) and rare(0.06, 0.095) == (0, 0)


@pytest.mark.parametrize('offset, cause', [
    (7204.9, '2 h are a time zone'), (7205.1, ''), (-3595.1, '1 h are a time zone'), (3594.9, ''),
    *((leap + off, 'GPS time' if abs(off) < 0.2 else '') for leap in (18.0, 37.0) for off in (0.19, -0.21)),
    (18.81, 'GPS time'), (19.21, ''), (1.0001e7, 'another instant'), (0.9991e7, '')])
def test_why_a_clock_is_apart(offset: float, cause: str) -> None:
    """Whole hours to 5 s, seconds between UTC, GPS time and TAI to 0.2 s, or four months."""
    words = apart_finding('a', offset).seen
    assert cause in words and ('(' in words) is bool(cause)
