# SPDX-License-Identifier: Apache-2.0
"""Watches each channel of a filter: silent, constant and rejected sensors, those that jumped or contradict the others,
and innovations that do not fit."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from math import inf, isinf, isnan, nan, pi, sqrt
from statistics import median
from typing import TYPE_CHECKING

from ..errors import SampleError
from .units import UnitRatio

if TYPE_CHECKING:
    from ..filters.linkage_settings import LinkageSettings
    from ..filters.observer_settings import ObserverSettings


PERIODS = 5         # a sensor is silent after so many of its own
MOVED = 5.0         # standard deviations, and steps of a quantised one, by which a constant sensor should have changed
FINEST = 0.01       # of a standard deviation: a smaller step of the values is none
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


class ChannelWatch:
    """Watches the samples of the channels (s,) along the filter's time, s. In lists: of a few numbers they are ten
    times cheaper than arrays. ``resolution`` (s,): steps of their values that are known, else 0; without it none is. A
    sensor with noise that repeats itself is constant; one without while the prediction moves."""

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
        self._series: list[deque[tuple[float, float]]] = [deque(maxlen=2 * NEAR + 2) for _ in self.names]

    def begin(self) -> None:
        """Forget what the filter made of the samples: its state starts again."""
        s = len(self.names)
        self._low, self._high = [inf] * s, [-inf] * s       # what was predicted before shows no sensor constant

    def accepts(self, place: int, value: float) -> bool:
        """Whether a sample may be used: not from a sensor found constant, until it changes."""
        if self.constant[place] and value != self._value[place]:
            self.constant[place] = False
        return not self.constant[place]

    def take(self, t: float, o: Sequence[float], innovation: Sequence[float], variance: Sequence[float],
             used: Sequence[bool], stddev: Sequence[float], settings: LinkageSettings | ObserverSettings) -> None:
        """What the filter made of the samples of an instant."""
        for series, value in zip(self._series, o):
            if value == value:
                series.append((t, value))
        self._judge(t, o, innovation, variance, used, stddev, settings)

    def _judge(self, t: float, o: Sequence[float], innovation: Sequence[float], variance: Sequence[float],
               used: Sequence[bool], stddev: Sequence[float], settings: LinkageSettings | ObserverSettings) -> None:
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
        """Whether the samples before the last one had noise, as far as they are kept: by the median of their second
        differences."""
        values = [value for _, value in self._series[i]][:-1]
        bends = [abs(a - 2.0 * b + c) for a, b, c in zip(values, values[1:], values[2:])]
        return bool(bends) and self.step[i] == 0.0 and median(bends) > GRAIN * stddev

    def _is_stuck(self, i: int, stddev: float) -> bool:
        """Whether a value that stays is a fault: a quantised sensor at rest repeats it, too, one with noise does
        not."""
        return bool(self._noisy[i]) or self._stays(i, stddev)

    def _stays(self, i: int, stddev: float) -> bool:
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


class ChannelMonitor(ChannelWatch):
    """The same with the recent samples of each; ``angular`` (s,): differences wrap at +-pi. ``seen_by_others
    (place)``: whether other sensors in good order see what a channel sees. ``units`` (s,) of the samples."""

    def __init__(self, names: tuple[str, ...], angular: Sequence[bool], seen_by_others: Callable[[int], bool],
                 units: Sequence[str] = ()) -> None:
        self._angular, self._seen_by_others = tuple(angular), seen_by_others
        self._unit_names = tuple(units) or ('',) * len(names)
        super().__init__(names)

    def reset(self) -> None:
        """As before the first sample."""
        super().reset()
        s = len(self.names)
        self.jumped = [0.0] * s         # how far, in all; 0 where it has come back
        self._sudden = [(0.0, 0)] * s   # how far, of a step that so many samples after it are still to show as a jump
        self.units = [UnitRatio(*item) for item in zip(self._unit_names, self._angular)]
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
        for unit in self.units:
            unit.begin()

    def _judge(self, t: float, o: Sequence[float], innovation: Sequence[float], variance: Sequence[float],
               used: Sequence[bool], stddev: Sequence[float], settings: LinkageSettings | ObserverSettings) -> None:
        longest = settings.lost_after
        for i, value in enumerate(o):
            if value == value:
                square = innovation[i] ** 2 / variance[i] if variance[i] > 0 else inf
                refused = not used[i] and square > 0.0      # 0 of those that drive the prediction
                self.predicted[i] = variance[i]
                self._remember(t, i, square, refused, longest)
                self.units[i].take(value, value - innovation[i], variance[i], refused)
                series = self._series[i]
                self._since_outside[i] = 0 if refused or square > OUTSIDE else self._since_outside[i] + 1
                # a jump is looked for once as many samples came after it as before, where any of these was outside
                if (self._since_outside[i] <= NEAR or self.jumped[i]) and len(series) == 2 * NEAR + 2:
                    self._leapt(i, list(series), stddev[i])
                self._sudden[i] = self._suddenly(i, stddev[i]) if refused else (0.0, 0)
        super()._judge(t, o, innovation, variance, used, stddev, settings)

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

    def _suddenly(self, i: int, stddev: float) -> tuple[float, int]:
        """How far the last sample, which the gate refused, is from where those before it lead, if no motion goes so;
        of a step before it how far it was, until ``_leapt`` has seen enough samples after it."""
        steps, times = self._steps(i, list(self._series[i])[-NEAR - 2:])
        if len(steps) > NEAR and any(steps[:-1]) and times[-1] <= FEWEST * median(times):
            far = steps[-1] - steps[-2]
            if abs(far) > _least([abs(b - a) for a, b in zip(steps, steps[1:-1])], stddev):
                return far, NEAR
        far, left = self._sudden[i]
        return (far, left - 1) if left else (0.0, 0)

    def _steps(self, i: int, series: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
        """From sample to sample, and how long each takes, s."""
        return ([_wrapped(b - a) if self._angular[i] else b - a for (_, a), (_, b) in zip(series, series[1:])],
                [b - a for (a, _), (b, _) in zip(series, series[1:])])

    def _leapt(self, i: int, series: list[tuple[float, float]], stddev: float) -> None:
        """Count a step that departs from those before and after by far more than these change: no motion."""
        steps, times = self._steps(i, series)
        before, far, after = steps[:NEAR], steps[NEAR], steps[NEAR + 1:]
        bends = [abs(b - a) for part in (before, after) for a, b in zip(part, part[1:])]
        far -= min(max(far, min(before[-1], after[0])), max(before[-1], after[0]))
        least = _least(bends, stddev)
        freed = any(after) and not any(before)      # it was stuck, and no longer is
        if abs(far) > least and times[NEAR] <= FEWEST * median(times) and not freed:
            back = abs(self.jumped[i] + far) <= max(least, SAME * abs(far))
            self.jumped[i] = 0.0 if back else self.jumped[i] + far

    def _stays(self, i: int, stddev: float) -> bool:
        """A quantised sensor repeats itself at rest: others must see it move."""
        return super()._stays(i, stddev) and self._seen_by_others(i)

    def jumps(self) -> list[str]:
        """Channels that have jumped and not back, with how far; those whose last sample may be a jump, too."""
        return [f'{name} by {far or sudden:.3g}' for name, far, (sudden, _) in zip(
            self.names, self.jumped, self._sudden) if far or sudden]

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


def _least(bends: Sequence[float], stddev: float) -> float:
    """How far a sample must be from where those before it lead, which changed by ``bends``, to be a jump."""
    largest, noise = max(bends), NOISE * stddev
    least = FARTHER * largest + noise
    return min(least, 2.0 * noise) if largest <= noise else least       # bends that are noise do not make it larger


def _wrapped(angle: float) -> float:
    return (angle + pi) % (2.0 * pi) - pi
