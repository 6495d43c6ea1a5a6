# SPDX-License-Identifier: Apache-2.0
"""Clocks that are set while a log is recorded, of some of its channels: those of the others go on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .remedies import Finding

SECOND = 1_000_000_000
LEAST = 0.1         # s: clocks that are set by less are no matter here
OFTEN = 3.0         # times the usual interval, beyond which a channel has paused
ALIKE = 0.1         # of the leap, and two intervals: by how much the end of the log may be off it
FEWEST = 3          # samples before a leap, and after it: fewer have stamps that slipped
SHORT = 0.5         # of the leap: it does not show in a channel with longer intervals


def set_findings(stamps: Mapping[str, np.ndarray]) -> list[Finding]:
    """Of the stamps (n,), ns, of channels and commands: those of some leap ahead once, and all that they sent later is
    as much later than the end of the others. A sensor that pauses ends with the others."""
    leaps = {name: leap for name, own in stamps.items() if (leap := _leap(own)) is not None}
    groups: dict[int, list[str]] = {}
    for name, (_, size) in leaps.items():
        groups.setdefault(next((known for known in groups if abs(known - size) < ALIKE * known), size), []).append(name)
    found = []
    for size, names in groups.items():
        others = {name: own for name, own in stamps.items() if name not in names and not _seldom(own, size)}
        if not others:
            continue
        begin, end = (int(np.median([own[place] for own in others.values()])) for place in (0, -1))
        moved = [name for name in names if _ends(stamps[name], size, begin, end)]
        if moved:
            at = (leaps[moved[0]][0] - begin) / SECOND
            found.append(Finding(
                'clock', tuple(moved), f'stamps leap ahead by {size / SECOND:.3f} s at t = {at:.1f} s, and those of '
                f'{_some(list(others))} do not', 'keep the clock from being set while it records, or cut the log there'
                ': what comes later is not of one instant'))
    return found


def _leap(own: np.ndarray) -> tuple[int, int] | None:
    """Stamp before the only pause of a channel, and by how much longer than usual it is, ns; else None."""
    steps = np.diff(own)
    if steps.size < 2 or (steps < 0).any():
        return None
    usual = int(np.median(steps))
    long = np.flatnonzero(steps > max(OFTEN * usual, usual + LEAST * SECOND))
    if long.size != 1 or not FEWEST <= long[0] + 1 <= steps.size + 1 - FEWEST:
        return None
    return int(own[long[0]]), int(steps[long[0]]) - usual


def _seldom(own: np.ndarray, size: int) -> bool:
    """Whether a channel is as silent now and then as in a leap, which then does not show in it."""
    return len(own) < 2 or bool((np.diff(own) > SHORT * size).any())


def _ends(own: np.ndarray, size: int, begin: int, end: int) -> bool:
    """Whether a channel begins with the others and ends as much later."""
    room = ALIKE * size + 2.0 * float(np.median(np.diff(own)))
    return abs(int(own[0]) - begin) < room and abs(int(own[-1]) - end - size) < room


def _some(names: list[str]) -> str:
    return ', '.join(names[:3]) + (' and others' if len(names) > 3 else '')
