# SPDX-License-Identifier: Apache-2.0
"""What belongs to the same instant out of two streams."""

from __future__ import annotations

from typing import Any

KEPT = 200      # of each stream: two seconds at 100 Hz, by which one may be behind the other on a busy computer


class Pairs:
    """Items of two streams that have the same stamp, whichever comes first."""

    def __init__(self) -> None:
        self._waiting: tuple[dict[int, Any], dict[int, Any]] = {}, {}

    def take(self, stream: int, stamp_ns: int, item: Any) -> tuple[Any, Any] | None:
        """The pair (of stream 0, of stream 1) that an item completes, None while the other one is not there."""
        own, others = self._waiting[stream], self._waiting[1 - stream]
        if stamp_ns in others:
            other = others.pop(stamp_ns)
            return (other, item) if stream else (item, other)
        own[stamp_ns] = item
        if len(own) > KEPT:
            del own[next(iter(own))]
        return None
