# SPDX-License-Identifier: Apache-2.0
"""When to publish which message of a bag: the schedule of `mbse replay`, without ROS and without a clock."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import BagError
from .bag import Bag, open_bag

ROUND_PAUSE_S = 0.5


class Due(NamedTuple):
    """A serialized message, due ``due_s`` seconds after the start of the replay; its time in the bag ``stamp_ns``."""

    due_s: float
    stamp_ns: int
    topic: str
    cdr: bytes


class Playback:
    """Schedule of a bag's messages; iterating begins at the beginning again.

    ``rate`` (1: as recorded) may be changed while it is iterated: it counts from the next message on. A ``loop``
    begins again half a second of the bag's time after the end, where ``stamp_ns`` goes back and ``due_s`` does not.
    ``names`` are the topics to play, None: all; ``topics`` maps them to their types; ``warnings`` as those of Bag.
    Raises BagError: an unreadable bag, an unknown topic, a rate out of range, nothing to play.
    """

    def __init__(self, bag: Bag | str | Path, rate: float = 1.0, loop: bool = False,
                 names: Collection[str] | None = None) -> None:
        self.bag, self.loop = open_bag(bag), bool(loop)
        self.rate = rate
        unknown = sorted(set(names or ()) - set(self.bag.topics))
        if unknown:
            raise BagError(str(self.bag.path), f'has no topic {", ".join(unknown)}; there are '
                           + ', '.join(sorted(self.bag.topics)))
        self.topics = {topic: kind for topic, kind in self.bag.topics.items() if names is None or topic in names}
        first = next(self.bag.messages(self.topics), None)
        if first is None:
            raise BagError(str(self.bag.path), 'has no message of ' + ', '.join(self.topics))
        self.first_ns = first.stamp_ns

    @property
    def rate(self) -> float:
        """Speed, 1: as recorded."""
        return self._rate

    @rate.setter
    def rate(self, rate: float) -> None:
        if not (math.isfinite(rate) and rate > 0.0):
            raise BagError(str(self.bag.path), f'rate {rate} is not above 0')
        self._rate = float(rate)

    @property
    def warnings(self) -> list[str]:
        """What is damaged in the bag."""
        return self.bag.warnings

    def __iter__(self) -> Iterator[Due]:
        due = 0.0
        while True:
            previous = self.first_ns
            for message in self.bag.messages(self.topics):
                due += max(message.stamp_ns - previous, 0) * 1e-9 / self._rate
                previous = max(message.stamp_ns, previous)
                yield Due(due, message.stamp_ns, message.topic, message.data)
            if not self.loop:
                return
            due += ROUND_PAUSE_S / self._rate
