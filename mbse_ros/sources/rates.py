# SPDX-License-Identifier: Apache-2.0
"""Whether channels come as often as their map expects."""

from __future__ import annotations

from collections.abc import Sequence

from .map import ChannelSource

NEAR = 1.5      # times the expected rate, or so much less
FEWEST = 20     # samples before a rate says something


class RateCounter:
    """Counts samples of the ``sources`` that expect a rate."""

    def __init__(self, sources: Sequence[ChannelSource]) -> None:
        self._expected = {source.channel: source.rate for source in sources if source.rate}
        self._seen: dict[str, list[int]] = {}

    def clear(self) -> None:
        """Forget all samples."""
        self._seen.clear()

    def add(self, channel: str, stamp_ns: int) -> None:
        """One more sample."""
        if channel in self._expected:
            seen = self._seen.setdefault(channel, [stamp_ns, stamp_ns, 0])      # first, last, intervals
            if stamp_ns > seen[1]:
                seen[1] = stamp_ns
                seen[2] += 1

    def lines(self) -> list[str]:
        """One line for all channels that come too often or too seldom alike; a second publisher, or lost messages."""
        found: dict[str, list[str]] = {}
        for channel, (first, last, count) in self._seen.items():
            rate, expected = count / ((last - first) * 1e-9) if last > first else 0.0, self._expected[channel]
            if count >= FEWEST and not expected / NEAR <= rate <= NEAR * expected:
                found.setdefault(f'{rate:.3g} Hz, expected {expected:g} Hz (rate)', []).append(channel)
        return [f'{", ".join(channels)}: {text}' for text, channels in found.items()]
