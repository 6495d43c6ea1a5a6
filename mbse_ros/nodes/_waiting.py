# SPDX-License-Identifier: Apache-2.0
"""Messages that wait in several subscriptions, in the order of their stamps.

After a pause of the process an executor empties one subscription after the other: seconds of one sensor before the
first sample of the next, which looks as if that one were dead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import merge
from typing import Any

from rclpy.subscription import Subscription

from ..bags.channel_samples import Sample

LIMIT = 4000    # messages of one subscription at a time: what its queue holds
Read = Callable[[Any], list[Sample]]


class Waiting:
    """The subscriptions of a node, each with what reads samples out of its messages."""

    def __init__(self) -> None:
        self._inputs: dict[str, tuple[Subscription | None, Read]] = {}

    def add(self, topic: str, subscription: Subscription | None, read: Read) -> None:
        """One more; without a subscription only what is handed over is read."""
        self._inputs[topic] = subscription, read

    def samples(self, topic: str, message: Any) -> Iterator[Sample]:
        """Samples of a message of a topic and of all that wait behind it and in the other subscriptions, by stamp."""
        queues = []
        for name, (subscription, read) in self._inputs.items():
            messages = [message] if name == topic else []
            if subscription is not None:
                messages += _waiting(subscription)
            queues.append([sample for item in messages for sample in read(item)])
        return merge(*queues, key=lambda sample: sample.stamp_ns)


def _waiting(subscription: Subscription) -> Iterator[Any]:
    """What an executor would take next from a subscription."""
    for _ in range(LIMIT):
        with subscription.handle:
            taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
        if taken is None:
            return
        yield taken[0]
