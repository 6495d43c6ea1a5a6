# SPDX-License-Identifier: Apache-2.0
"""What the nodes after the interpolation do with each message before their stage sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from ..errors import SampleError
from ..streams.records import Segment, StateEstimate
from ._sequence import Order
from ._warnings import Warnings

R = TypeVar('R', Segment, StateEstimate)


def start_ns(record: Segment | StateEstimate) -> int:
    """Instant before the first step of a record."""
    return record.start_ns if isinstance(record, Segment) else record.stamp_ns - len(record.mean) * record.step_ns


class Inbox:
    """Messages to records in order: a repeated or backward one is dropped, a hole restarts, both with a warning.

    ``dropped`` counts the messages that were not used, those included that the stage refused (see `refuse`).
    """

    def __init__(self, topic: str, read: Callable[[Any], R], warnings: Warnings) -> None:
        self._topic, self._read, self._warnings = topic, read, warnings
        self._order = Order()
        self.dropped = 0

    def take(self, message: Any) -> R | None:
        """Record of a message, None where it must not be used."""
        try:
            record = self._read(message)
        except SampleError as error:
            self.refuse('unreadable', f'message dropped: {error}')
            return None
        verdict = self._order.judge(record.sequence, start_ns(record), record.stamp_ns, record.restart)
        if verdict.reason:
            action = 'starting anew' if verdict.accept else 'dropped'
            self._warnings(action, f'{self._topic}: {verdict.reason}; {action}')
        if not verdict.accept:
            self.dropped += 1
            return None
        return replace(record, restart=True) if verdict.restart and not record.restart else record

    def refuse(self, kind: str, text: str) -> None:
        """A message that cannot be used."""
        self.dropped += 1
        self._warnings(kind, text)
