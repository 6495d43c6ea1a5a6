# SPDX-License-Identifier: Apache-2.0
"""Messages that wait in several subscriptions, in the order of their stamps.

After a pause of the process an executor empties one subscription after the other: seconds of one sensor before the
first sample of the next, which looks as if that one were dead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import merge
from typing import Any, Protocol

from rclpy.subscription import Subscription

LIMIT = 4000    # messages of one subscription at a time: what its queue holds


class Stamped(Protocol):
    """What is read out of a message: ``stamp_ns`` is the instant of the message's header."""

    stamp_ns: int


Read = Callable[[Any], list[Stamped]]


class Waiting:
    """The subscriptions of a node, each with what reads stamped items out of its messages."""

    def __init__(self) -> None:
        self._inputs: dict[str, tuple[Subscription | None, Read]] = {}

    def add(self, topic: str, subscription: Subscription | None, read: Read) -> None:
        """One more; without a subscription only what is handed over is read."""
        self._inputs[topic] = subscription, read

    def items(self, topic: str, message: Any) -> Iterator[Stamped]:
        """Items of a message of a topic and of all that wait behind it and in the other subscriptions, by stamp."""
        queues = []
        for name, (subscription, read) in self._inputs.items():
            messages = [message] if name == topic else []
            if subscription is not None:
                messages += _waiting(subscription)
            queues.append([item for one in messages for item in read(one)])
        return merge(*queues, key=lambda item: item.stamp_ns)


def _waiting(subscription: Subscription) -> Iterator[Any]:
    """What an executor would take next from a subscription."""
    for _ in range(LIMIT):
        with subscription.handle:
            taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
        if taken is None:
            return
        yield taken[0]
