# SPDX-License-Identifier: Apache-2.0
"""Messages that wait in several subscriptions, in the order of their stamps.

After a pause of the process an executor empties one subscription after the other: seconds of one sensor before the
first sample of the next, which looks as if that one were dead. So what waits is looked for; not where one message comes
soon after the other and all are new, as to look costs more than to read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from typing import Any, Generic, Protocol, TypeVar

from rclpy.subscription import Subscription

PAUSE = 0.05    # s without a message, from which on some may wait
OLD_NS = 20_000_000     # age of a message by the wall clock, from which on others may wait
LIMIT = 4000    # messages of one subscription at a time: what its queue holds


class Stamped(Protocol):
    """What is read out of a message."""

    @property
    def stamp_ns(self) -> int:
        """Instant of the message's header."""


T = TypeVar('T', bound=Stamped)
Read = Callable[..., Sequence[T]]


class Waiting(Generic[T]):
    """The subscriptions of a node, each with what reads stamped items out of its messages."""

    def __init__(self) -> None:
        self._inputs: dict[str, tuple[Subscription | None, Read[T], bool]] = {}
        self._looked = -PAUSE      # s, when the last message came

    def add(self, topic: str, subscription: Subscription | None, read: Read[T], timed: bool = False) -> None:
        """One more; without a subscription only what is handed over is read. ``timed``: by ``read(message, received)``,
        ns, None: just now; else by ``read(message)``."""
        self._inputs[topic] = subscription, read, timed

    def rest(self) -> Iterator[T]:
        """Items of all that still waits, by stamp, where no more callback can come."""
        return self.items('', None)

    def items(self, topic: str, message: Any) -> Iterator[T]:
        """Items of a message of a topic and, after a pause or where it is not new, by stamp, of all that wait behind it
        and in the other subscriptions."""
        now = time.monotonic()
        soon, self._looked = now - self._looked < PAUSE, now
        if soon and topic in self._inputs and not self._inputs[topic][2]:
            items = self._inputs[topic][1](message)
            if items and 0 <= time.time_ns() - items[0].stamp_ns < OLD_NS:
                return iter(items)
            return self._all(topic, items, None)
        return self._all(topic, None, message)

    def _all(self, topic: str, known: Sequence[T] | None, message: Any) -> Iterator[T]:
        """Items of a message, or those that are ``known`` of it, and of all that wait."""
        queues = []
        for name, (subscription, read, timed) in self._inputs.items():
            taken: list[tuple[Any, int | None]] = [] if subscription is None else list(_waiting(subscription))
            if name == topic and known is None:
                # The executor does not say when it was received (Jazzy's cannot): before those that wait behind it.
                taken.insert(0, (message, taken[0][1] - 1 if taken and taken[0][1] else None))
            own = known if name == topic and known is not None else ()
            queues.append([*own, *(item for one, at in taken for item in (read(one, at) if timed else read(one)))])
        return merge(*queues, key=lambda item: item.stamp_ns)


def drained(subscription: Subscription) -> Iterator[Any]:
    """Messages that wait in a subscription of nobody's executor."""
    yield from (message for message, _ in _waiting(subscription))


def _waiting(subscription: Subscription) -> Iterator[tuple[Any, int | None]]:
    """What an executor would take next from a subscription, and when the middleware received it, ns, where it says."""
    for _ in range(LIMIT):
        with subscription.handle:
            taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
        if taken is None:
            return
        yield taken[0], taken[1].get('received_timestamp') or None
