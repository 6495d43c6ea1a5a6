# SPDX-License-Identifier: Apache-2.0
"""Lines about what comes a hundred times a second: the first one, then one in a while with their number, or none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from difflib import get_close_matches

from ...errors import shown

KINDS = 1000     # remembered at most: names in messages may be anything
NEAR = 0.75      # likeness of names from which one is taken for a slip of the pen
LONG = 60        # characters of a name that are looked at
SLIPS = 32       # reported at most


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


class Strangers:
    """Names in messages that no sensor has, each looked at once: other people's robots have more joints than ours.

    ``warn`` gets a line about each that nearly is one of the ``known``, ``tell`` one about the first other of a topic.
    """

    def __init__(self, known: Iterable[str], warn: Callable[[str], object], tell: Callable[[str], object]) -> None:
        self._known = {name.casefold(): name for name in known}
        self._warn, self._tell = warn, tell
        self._seen: set[tuple[str, str]] = set()
        self._reported: set[str] = set()
        self._slips = 0

    def __call__(self, topic: str, name: str) -> None:
        """A name in a message of a topic."""
        name = name[:LONG]
        if (topic, name) in self._seen or len(self._seen) >= KINDS:
            return
        self._seen.add((topic, name))
        near = get_close_matches(name.casefold(), list(self._known), 1, NEAR)
        if near and self._slips < SLIPS:
            self._slips += 1
            self._warn(f'{topic}: {shown(name)} is not a sensor or valve of the machine; did you mean '
                       f'{self._known[near[0]]}?')
        elif not near and topic not in self._reported:
            self._reported.add(topic)
            self._tell(f'{topic}: {shown(name)} is passed over, as all names that no sensor or valve of the machine '
                       'has')
