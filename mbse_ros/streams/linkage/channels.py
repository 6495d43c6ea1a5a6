# SPDX-License-Identifier: Apache-2.0
"""What each channel has sent: silent, constant and rejected sensors, and the trust in an estimate that follows."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan, sqrt
from typing import TYPE_CHECKING

import numpy as np

from ..records import ObserverStatus

if TYPE_CHECKING:
    from ...estimators.observer_settings import ObserverSettings
    from .linkage_settings import LinkageSettings

PERIODS = 5         # a sensor is silent after so many of its own
MOVED = 5.0         # standard deviations by which a constant sensor should have changed


class Channels:
    """Watches the samples of the channels (s,) along the filter's time, s. In lists: of a few numbers they are ten
    times cheaper than arrays."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        s = len(self.names)
        self.used_at, self.seen_at, self.period = [-inf] * s, [nan] * s, [nan] * s
        self.offset, self.constant = [0.0] * s, [False] * s
        self._value, self._since, self._low, self._high = [nan] * s, [nan] * s, [inf] * s, [-inf] * s

    def accepts(self, place: int, value: float) -> bool:
        """Whether a sample may be used: not from a sensor found constant, until it changes."""
        if self.constant[place] and value != self._value[place]:
            self.constant[place] = False
        return not self.constant[place]

    def take(self, t: float, o: Sequence[float], innovation: Sequence[float], spread: Sequence[float],
             used: Sequence[bool], stddev: Sequence[float], settings: LinkageSettings | ObserverSettings) -> None:
        """What the filter made of the samples of an instant."""
        for i, value in enumerate(o):
            if value != value:      # NaN: no sample
                continue
            if self.seen_at[i] < t:
                self.period[i] = t - self.seen_at[i]
            self.seen_at[i] = t
            if used[i]:
                self.used_at[i] = t
            self.offset[i] = 0.0 if used[i] else abs(innovation[i]) / sqrt(spread[i]) if spread[i] > 0 else inf
            self._watch(t, i, value, value - innovation[i], stddev[i], settings.constant_after)

    def _watch(self, t: float, i: int, value: float, predicted: float, stddev: float, longest: float) -> None:
        """Find a sensor that sends one value while the prediction moves on."""
        if value != self._value[i]:
            self._value[i], self._since[i], self._low[i], self._high[i] = value, t, inf, -inf
        self._low[i], self._high[i] = min(self._low[i], predicted), max(self._high[i], predicted)
        if t - self._since[i] >= longest and self._high[i] - self._low[i] > MOVED * stddev:
            self.constant[i] = True

    def since_used(self, t: float, start: float) -> float:
        """Time since any sample was used, s; ``start`` counts as one."""
        return t - max(start, *self.used_at)

    def refused(self, t: float, start: float, longest: float) -> list[str]:
        """Channels of which the gate has refused all samples for longer than ``longest``, s."""
        return [name for name, offset, at in zip(self.names, self.offset, self.used_at)
                if offset > 0 and t - max(at, start) > longest]

    def contradicted(self, t: float, start: float, longest: float) -> bool:
        """Whether those are half of the channels that send, or more: then the estimate is what is wrong."""
        refused = len(self.refused(t, start, longest))
        return 0 < refused and 2 * refused >= sum(
            at == at and not constant for at, constant in zip(self.seen_at, self.constant))

    def silent(self, t: float, settings: LinkageSettings) -> list[str]:
        """Channels that have sent before, and not for longer than ``coast_after`` and five of their periods."""
        return [name for name, at, period in zip(self.names, self.seen_at, self.period)
                if t - at > settings.coast_after and not t - at <= PERIODS * period]

    def rejected(self, threshold: float) -> list[str]:
        """Channels whose last sample the gate refused, with the reason."""
        return [f'{name} {offset:.3g} standard deviations off (gate {sqrt(threshold):.3g})'
                for name, offset in zip(self.names, self.offset) if offset > 0]


def judged(t: float, start: float, names: tuple[str, ...], covariance: np.ndarray, channels: Channels,
           threshold: float, settings: LinkageSettings) -> tuple[ObserverStatus, str]:
    """Status and reason at a time, s, of a state that was (re)started at ``start``."""
    variance = covariance.diagonal().tolist()
    if not np.isfinite(covariance).all() or min(variance) < 0:
        return ObserverStatus.LOST, 'the covariance is not finite or has a negative variance'
    for name, value in zip(names, variance):
        if name.startswith('position/') and value > settings.lost_stddev ** 2:
            return ObserverStatus.LOST, f'{name} known to {np.sqrt(value):.3g} only'
    idle, rejected = channels.since_used(t, start), channels.rejected(threshold)
    refused = f'rejected: {"; ".join(rejected)}' if rejected else ''
    if channels.contradicted(t, start, settings.lost_after):
        return ObserverStatus.LOST, refused
    if t - start < settings.settle_time:
        return ObserverStatus.STARTING, 'settling after a start'
    if idle > settings.coast_after:
        return ObserverStatus.COASTING, f'no sample used for {idle:.3g} s' + (f'; {refused}' if refused else '')
    constant = [name for name, found in zip(channels.names, channels.constant) if found]
    silent = channels.silent(t, settings)
    doubtful = channels.refused(t, start, settings.lost_after)
    reasons = [f'constant: {", ".join(constant)}'] * bool(constant) + [f'silent: {", ".join(silent)}'] * bool(silent)
    if reasons or doubtful:
        return ObserverStatus.COASTING, '; '.join([*reasons, *([refused] if refused else [])])
    return ObserverStatus.OK, refused
