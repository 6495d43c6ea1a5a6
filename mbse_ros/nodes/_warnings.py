# SPDX-License-Identifier: Apache-2.0
"""Warnings that come a hundred times a second, logged the first time and then once in a while with their number."""

from __future__ import annotations

import time
from collections.abc import Callable

KINDS = 1000     # remembered at most: names in messages may be anything


class Warnings:
    """Counts warnings by kind; ``total`` is the number of all of them."""

    def __init__(self, write: Callable[[str], object], period: float = 5.0,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.total = 0
        self._write, self._period, self._clock = write, period, clock
        self._held: dict[str, tuple[float, int]] = {}

    def __call__(self, kind: str, text: str) -> None:
        """Write the first of a kind at once, later ones at most once a period (s), with how many were held back."""
        self.total += 1
        now = self._clock()
        last, held = self._held.get(kind, (-float('inf'), 0))
        if now - last < self._period:
            self._held[kind] = (last, held + 1)
            return
        if len(self._held) >= KINDS:
            self._held.clear()
        self._write(f'{text} ({held} more like this since the last line)' if held else text)
        self._held[kind] = (now, 0)
