# SPDX-License-Identifier: Apache-2.0
"""What the filter of a mechanism made of each channel's recent samples: contradicted, jumped and stuck sensors, and
innovations that do not fit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from math import inf, nan, pi
from statistics import median
from typing import TYPE_CHECKING

from .channels import PERIODS, Channels

if TYPE_CHECKING:
    from ...estimators.observer_settings import ObserverSettings
    from .linkage_settings import LinkageSettings

OUTSIDE = 15.14         # square of a normalised innovation that 0.9999 of good ones do not reach, whatever the gate
FEWEST = 3              # samples from which a channel is judged, at low rates
MISFIT = 2.84           # 2.5 squared times the median of chi2 with one degree: deviations are 2.5 times what is stated
PATIENCE = 3            # restarts one after the other, over LASTING lost_after, after which something else is wrong
LASTING = 5.0
FITTED, TWICE = 30, 2.0 # samples, or more in twice lost_after, by which it is judged whether innovations fit
CAUTIOUS = 0.3          # mean NIS below which a raised noise of the motion may fall
NEAR = 4                # samples before and after a jump
FARTHER = 5.0           # times the largest change of the step among those: a jump
SAME = 0.1              # of a jump, to which another one takes it back
NOISE = 8.0             # standard deviations of a sample, which no jump is
GRAIN = 0.05            # of a standard deviation: samples with less noise may repeat each other


class NoiseWatch(Channels):
    """``Channels`` that knows which sensors have noise: one of these that repeats itself is constant."""

    def reset(self) -> None:
        """As before the first sample."""
        super().reset()
        self._series: list[deque[tuple[float, float]]] = [deque(maxlen=2 * NEAR + 2) for _ in self.names]

    def begin(self) -> None:
        """Forget what the filter made of the samples: its state starts again."""
        s = len(self.names)
        self._low, self._high = [inf] * s, [-inf] * s       # what was predicted before shows no sensor constant

    def take(self, t: float, o: Sequence[float], innovation: Sequence[float], variance: Sequence[float],
             used: Sequence[bool], stddev: Sequence[float], settings: LinkageSettings | ObserverSettings) -> None:
        """What the filter made of the samples of an instant."""
        self._keep(t, o)
        super().take(t, o, innovation, variance, used, stddev, settings)

    def _keep(self, t: float, o: Sequence[float]) -> None:
        for series, value in zip(self._series, o):
            if value == value:
                series.append((t, value))

    def _is_noisy(self, i: int, stddev: float) -> bool:
        """By the median of their second differences."""
        values = [value for _, value in self._series[i]][:-1]
        bends = [abs(a - 2.0 * b + c) for a, b, c in zip(values, values[1:], values[2:])]
        return bool(bends) and self.step[i] == 0.0 and median(bends) > GRAIN * stddev

    def _is_stuck(self, i: int, stddev: float) -> bool:
        """A sensor with noise does not repeat itself."""
        return bool(self._noisy[i]) or super()._is_stuck(i, stddev)


class ChannelMonitor(NoiseWatch):
    """The same with the recent samples of each; ``angular`` (s,): differences wrap at +-pi. ``seen_by_others
    (place)``: whether other sensors in good order see what a channel sees."""

    def __init__(self, names: tuple[str, ...], angular: Sequence[bool],
                 seen_by_others: Callable[[int], bool]) -> None:
        self._angular, self._seen_by_others = tuple(angular), seen_by_others
        super().__init__(names)

    def reset(self) -> None:
        """As before the first sample."""
        super().reset()
        s = len(self.names)
        self.jumped = [0.0] * s         # how far, in all; 0 where it has come back
        self.predicted = [0.0] * s      # variance of the last sample, before it was there
        self._since_outside = [2 * NEAR] * s
        self.begin()

    def begin(self) -> None:
        """Forget what the filter made of the samples: its state starts again."""
        super().begin()
        s = len(self.names)
        self._recent: list[deque[tuple[float, bool]]] = [deque() for _ in range(s)]
        self.refusals = [0] * s         # among the recent samples
        self._squares: list[deque[tuple[float, float]]] = [deque() for _ in range(s)]
        self._large, self._fits_since = [0] * s, [nan] * s

    def take(self, t: float, o: Sequence[float], innovation: Sequence[float], variance: Sequence[float],
             used: Sequence[bool], stddev: Sequence[float], settings: LinkageSettings | ObserverSettings) -> None:
        """What the filter made of the samples of an instant."""
        longest = settings.lost_after
        self._keep(t, o)
        for i, value in enumerate(o):
            if value == value:
                square = innovation[i] ** 2 / variance[i] if variance[i] > 0 else inf
                refused = not used[i] and square > 0.0      # 0 of those that drive the prediction
                self.predicted[i] = variance[i]
                self._remember(t, i, square, refused, longest)
                series = self._series[i]
                self._since_outside[i] = 0 if refused or square > OUTSIDE else self._since_outside[i] + 1
                # a jump is looked for once as many samples came after it as before, where any of these was outside
                if (self._since_outside[i] <= NEAR or self.jumped[i]) and len(series) == 2 * NEAR + 2:
                    self._leapt(i, list(series), stddev[i])
        super(NoiseWatch, self).take(t, o, innovation, variance, used, stddev, settings)

    def _remember(self, t: float, i: int, square: float, refused: bool, longest: float) -> None:
        """Keep of a sample whether it was refused, for ``longest``, s, and whether its square was large."""
        recent, squares = self._recent[i], self._squares[i]
        recent.append((t, refused))
        if refused:
            self.refusals[i] += 1
        while recent[0][0] <= t - longest and len(recent) > FEWEST:
            self.refusals[i] -= recent.popleft()[1]
        if not squares or t - squares[-1][0] > longest:     # after a gap it settles first
            squares.clear()
            self._large[i], self._fits_since[i] = 0, t
        squares.append((t, square))
        if square > MISFIT:
            self._large[i] += 1
        while squares[0][0] <= t - TWICE * longest and len(squares) > FITTED:
            self._large[i] -= squares.popleft()[1] > MISFIT

    def _leapt(self, i: int, series: list[tuple[float, float]], stddev: float) -> None:
        """Count a step that departs from those before and after by far more than these change: no motion."""
        steps = [_wrapped(b - a) if self._angular[i] else b - a for (_, a), (_, b) in zip(series, series[1:])]
        times = [b - a for (a, _), (b, _) in zip(series, series[1:])]
        before, far, after = steps[:NEAR], steps[NEAR], steps[NEAR + 1:]
        bends = [abs(b - a) for part in (before, after) for a, b in zip(part, part[1:])]
        far -= min(max(far, min(before[-1], after[0])), max(before[-1], after[0]))
        least = FARTHER * max(bends) + NOISE * stddev
        freed = any(after) and not any(before)      # it was stuck, and no longer is
        if abs(far) > least and times[NEAR] <= FEWEST * median(times) and not freed:
            back = abs(self.jumped[i] + far) <= max(least, SAME * abs(far))
            self.jumped[i] = 0.0 if back else self.jumped[i] + far

    def _is_stuck(self, i: int, stddev: float) -> bool:
        """A quantised sensor repeats itself at rest: others must see it move."""
        return bool(self._noisy[i]) or super()._is_stuck(i, stddev) and self._seen_by_others(i)

    def calm(self, t: float, longest: float) -> bool:
        """Whether all channels have sent within ``longest``, s, and nothing speaks against any of them."""
        return not (any(self.refusals) or any(self.constant) or any(self.jumped)) and all(
            t - at <= longest or at != at for at in self.seen_at) and all(
            2 * large <= len(squares) for large, squares in zip(self._large, self._squares))

    def doubted(self, longest: float, t: float) -> list[int]:
        """Places of channels most of whose samples were refused in the last ``longest``, s, up to ``lost_after``."""
        return [i for i, bad in enumerate(self.refusals) if bad and self._mostly(i, longest, t)]

    def _mostly(self, i: int, longest: float, t: float) -> bool:
        """More than half of the samples, and of half of those that come in so long; of three at low rates."""
        count = bad = 0
        for at, refused in reversed(self._recent[i]):
            if at <= t - longest and count >= FEWEST:
                break
            count, bad = count + 1, bad + refused
        usual = 0.5 * longest / self.period[i] if self.period[i] > 0 else 0.0
        return count >= FEWEST and 2 * bad > max(count, usual)

    def misfits(self, longest: float) -> list[tuple[int, float]]:
        """Channels whose innovations are, by their median, 2.5 times what is stated, or more, with their mean NIS."""
        return [(i, sum(square for _, square in squares) / len(squares)) for i, squares in enumerate(self._squares)
                if 2 * self._large[i] > len(squares) >= FITTED
                and squares[-1][0] - self._fits_since[i] >= TWICE * longest]

    def cautious(self) -> bool:
        """Whether the innovations of all channels are far smaller than they are stated."""
        means = [sum(square for _, square in squares) / len(squares) for squares in self._squares if squares]
        return bool(means) and max(means) < CAUTIOUS and not any(self.refusals)

    def speed(self, i: int, t: float, longest: float) -> float:
        """How fast a channel's samples change, per s, by the last of them; NaN where they are too old."""
        series = [item for item in self._series[i] if t - item[0] <= longest]
        if len(series) < 2 or series[-1][0] <= series[0][0]:
            return nan
        apart = min(PERIODS, len(series) - 1)       # several periods: quantised samples show a speed only over some
        slopes = [(_wrapped(b - a) if self._angular[i] else b - a) / (later - earlier)
                  for (earlier, a), (later, b) in zip(series, series[apart:]) if later > earlier]
        return median(slopes)


def _wrapped(angle: float) -> float:
    return (angle + pi) % (2.0 * pi) - pi
