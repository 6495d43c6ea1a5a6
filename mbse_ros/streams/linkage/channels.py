# SPDX-License-Identifier: Apache-2.0
"""What each channel has sent: silent, constant and rejected sensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf, isinf, isnan, nan, sqrt
from typing import TYPE_CHECKING

from ...errors import SampleError

if TYPE_CHECKING:
    from ...estimators.observer_settings import ObserverSettings
    from .linkage_settings import LinkageSettings

PERIODS = 5         # a sensor is silent after so many of its own
MOVED = 5.0         # standard deviations, and steps of a quantised one, by which a constant sensor should have changed
FINEST = 0.01       # of a standard deviation: a smaller step of the values is none


class Channels:
    """Watches the samples of the channels (s,) along the filter's time, s. In lists: of a few numbers they are ten
    times cheaper than arrays. ``resolution`` (s,): steps of their values that are known, else 0; without it none is."""

    def __init__(self, names: tuple[str, ...], resolution: Sequence[float] = ()) -> None:
        self.names, self._resolution = names, tuple(resolution) or (0.0,) * len(names)
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        s = len(self.names)
        self.used_at, self.seen_at, self.period = [-inf] * s, [nan] * s, [nan] * s
        self.offset, self.constant = [0.0] * s, [False] * s
        self._value, self._since, self._low, self._high = [nan] * s, [nan] * s, [inf] * s, [-inf] * s
        self.step = [known or nan for known in self._resolution]    # of quantised values; 0 of others, NaN: unknown
        self._noisy: list[bool | None] = [None] * s     # of a sensor that repeats its value: whether it has noise

    def accepts(self, place: int, value: float) -> bool:
        """Whether a sample may be used: not from a sensor found constant, until it changes."""
        if self.constant[place] and value != self._value[place]:
            self.constant[place] = False
        return not self.constant[place]

    def take(self, t: float, o: Sequence[float], innovation: Sequence[float], variance: Sequence[float],
             used: Sequence[bool], stddev: Sequence[float], settings: LinkageSettings | ObserverSettings) -> None:
        """What the filter made of the samples of an instant."""
        longest = settings.constant_after
        for i, value in enumerate(o):
            if value != value:      # NaN: no sample
                continue
            if self.seen_at[i] < t:
                interval = t - self.seen_at[i]
                if interval > PERIODS * self.period[i]:
                    self._value[i] = nan        # nothing has shown that a prediction without samples is right
                self.period[i] = interval
            self.seen_at[i] = t
            if used[i]:
                self.used_at[i], self.offset[i] = t, 0.0
            else:
                self.offset[i] = abs(innovation[i]) / sqrt(variance[i]) if variance[i] > 0 else inf
            # a sensor that sends one value while the prediction moves on
            if value != self._value[i]:
                if self.step[i] and not self._resolution[i]:
                    self.step[i] = common_step(self.step[i], abs(value - self._value[i]), FINEST * stddev[i])
                self._value[i], self._since[i], self._low[i], self._high[i] = value, t, inf, -inf
                self._noisy[i] = None
            elif self._noisy[i] is None:        # repeated for the first time
                self._noisy[i] = self._is_noisy(i, stddev[i])
            predicted = value - innovation[i]
            if predicted < self._low[i]:
                self._low[i] = predicted
            if predicted > self._high[i]:
                self._high[i] = predicted
            if t - self._since[i] >= longest and self._is_stuck(i, stddev[i]):
                self.constant[i] = True

    def _is_noisy(self, i: int, stddev: float) -> bool:
        """Whether the samples before the last one had noise, as far as they are kept."""
        return False

    def _is_stuck(self, i: int, stddev: float) -> bool:
        """Whether a value that stays is a fault: a quantised sensor at rest repeats it, too."""
        step = self.step[i] if self.step[i] == self.step[i] else 0.0
        return self._high[i] - self._low[i] > MOVED * (stddev + step)

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


def common_step(step: float, change: float, finest: float) -> float:
    """Step of which all changes so far are multiples, to ``finest``, below which there is none (0); NaN: unknown."""
    if change != change or step == 0.0:
        return step
    if step != step:
        return change if change > finest else 0.0
    large, small = max(step, change), min(step, change)
    while small > finest:
        rest = large % small
        large, small = small, 0.0 if small - rest < finest else rest
    return large if large > 2.0 * finest else 0.0


class DroppedSamples:
    """Of a stage with ``channels`` and ``inputs``; ``dropped``: how many by reason."""

    def __init__(self, channels: Sequence[str], inputs: Sequence[str]) -> None:
        self._channels, self._inputs = tuple(channels), tuple(inputs)
        self._known, self._held = frozenset((*channels, *inputs)), frozenset(inputs)
        self.dropped: Counter[str] = Counter()
        self._errors: list[SampleError] = []

    def valid(self, stamp_ns: int, samples: Mapping[str, float]) -> dict[str, float]:
        """The samples that are of this stage and finite; NaN, a missing one, of a channel alone."""
        return {name: float(value) for name, value in samples.items() if self._valid(stamp_ns, name, float(value))}

    def add(self, reason: str, name: str, stamp_ns: int, value: float, expected: str) -> None:
        """One more."""
        self.dropped[reason] += 1
        self._errors.append(SampleError(name, stamp_ns, value, expected))

    def drain(self) -> list[SampleError]:
        """Those since the last call."""
        errors, self._errors = self._errors, []
        return errors

    def _valid(self, stamp_ns: int, name: str, value: float) -> bool:
        if name not in self._known:
            self.add('unknown channel', name, stamp_ns, value, 'one of ' + ', '.join(self._channels + self._inputs))
        elif isinf(value) or isnan(value) and name in self._held:
            self.add('not finite', name, stamp_ns, value, 'a finite number')
        else:
            return True
        return False
