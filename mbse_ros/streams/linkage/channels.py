# SPDX-License-Identifier: Apache-2.0
"""What each channel has sent: silent, constant and rejected sensors, and the words for them."""

from __future__ import annotations

import numpy as np

from .settings import LinkageSettings

PERIODS = 5         # a sensor is silent after so many of its own
MOVED = 5.0         # standard deviations by which a constant sensor should have changed


class Channels:
    """Watches the samples of the channels (s,) along the filter's time, s."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        s = len(self.names)
        self.used_at, self.seen_at, self.period = (np.full(s, np.nan) for _ in range(3))
        self.offset = np.zeros(s)
        self._value, self._since = np.full(s, np.nan), np.full(s, np.nan)
        self._low, self._high = np.full(s, np.inf), np.full(s, -np.inf)
        self.constant = np.zeros(s, dtype=bool)

    def accepts(self, place: int, value: float) -> bool:
        """Whether a sample may be used: not from a sensor found constant, until it changes."""
        if self.constant[place] and value != self._value[place]:
            self.constant[place] = False
        return not self.constant[place]

    def take(self, t: float, o: np.ndarray, innovation: np.ndarray, spread: np.ndarray, used: np.ndarray,
             stddev: np.ndarray, settings: LinkageSettings) -> None:
        """What the filter made of the samples of an instant."""
        there = np.isfinite(o)
        self.period = np.where(there & np.isfinite(self.seen_at), t - self.seen_at, self.period)
        self.seen_at[there] = t
        self.used_at[there & used] = t
        with np.errstate(invalid='ignore', divide='ignore'):
            self.offset = np.where(there, np.where(used, 0.0, np.abs(innovation) / np.sqrt(spread)), self.offset)
        self._watch(t, there, o, o - innovation, stddev, settings.constant_after)

    def _watch(self, t: float, there: np.ndarray, o: np.ndarray, predicted: np.ndarray, stddev: np.ndarray,
               longest: float) -> None:
        """Find sensors that send one value while the prediction moves on."""
        changed = there & (o != self._value)
        self._value[changed], self._since[changed] = o[changed], t
        self._low[changed], self._high[changed] = np.inf, -np.inf
        self._low = np.where(there, np.fmin(self._low, predicted), self._low)
        self._high = np.where(there, np.fmax(self._high, predicted), self._high)
        self.constant |= there & (t - self._since >= longest) & (self._high - self._low > MOVED * stddev)

    def since_used(self, t: float, start: float) -> float:
        """Time since any sample was used, s; ``start`` counts as one."""
        return t - np.nanmax(np.append(self.used_at, start))

    def refused(self, t: float, start: float, longest: float) -> list[str]:
        """Channels of which the gate has refused all samples for longer than ``longest``, s."""
        late = (self.offset > 0) & (t - np.fmax(self.used_at, start) > longest)
        return [name for name, found in zip(self.names, late) if found]

    def contradicted(self, t: float, start: float, longest: float) -> bool:
        """Whether those are half of the channels that send, or more: then the estimate is what is wrong."""
        refused = len(self.refused(t, start, longest))
        return 0 < refused and 2 * refused >= np.sum(np.isfinite(self.seen_at) & ~self.constant)

    def silent(self, t: float, settings: LinkageSettings) -> list[str]:
        """Channels that have sent before, and not for longer than ``coast_after`` and five of their periods."""
        longest = np.fmax(settings.coast_after, PERIODS * self.period)
        return [name for name, late in zip(self.names, t - self.seen_at > longest) if late]

    def rejected(self, threshold: float) -> list[str]:
        """Channels whose last sample the gate refused, with the reason."""
        return [f'{name} {offset:.3g} standard deviations off (gate {np.sqrt(threshold):.3g})'
                for name, offset in zip(self.names, self.offset) if offset > 0]
