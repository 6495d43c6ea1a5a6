# SPDX-License-Identifier: Apache-2.0
"""Which of many stamped messages are due at a rate."""

from __future__ import annotations


class Pace:
    """A rate counted in stamps, each kind of output apart, so that it follows a bag at any speed."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def is_due(self, kind: str, stamp_ns: int, rate: float) -> bool:
        """Whether a period of the rate, Hz, has gone by since the last one, or time went back; never at 0 Hz."""
        if rate == 0.0:
            return False
        last = self._last.get(kind)
        return last is None or not 0 <= stamp_ns - last < 0.999e9 / rate

    def done(self, kind: str, stamp_ns: int) -> None:
        """An output of a kind went out."""
        self._last[kind] = stamp_ns
