# SPDX-License-Identifier: Apache-2.0
"""What is asked of each channel of a filter, of a machine or of a mechanism: whether its samples lie in their range,
and whether it is silent, constant or rejected; and whether its innovations fit."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from math import inf, nan, sqrt
from statistics import median
from typing import TYPE_CHECKING

from ..errors import SampleError
from .bounds import Ends, RangeCheck
from .faults import Fault, reason_of
from .steps import FEWEST, FINEST, NEAR, JumpCheck, common_step
from .units import UnitRatio

if TYPE_CHECKING:
    from ..filters.linkage_settings import LinkageSettings
    from ..filters.observer_settings import ObserverSettings


PERIODS = 5         # a sensor is silent after so many of its own
MOVED = 5.0         # standard deviations, and steps of a quantised one, by which a constant sensor should have changed
MISFIT = 2.84           # 2.5 squared times the median of chi2 with one degree: deviations are 2.5 times what is stated
PATIENCE = 3            # restarts one after the other, over LASTING lost_after, after which something else is wrong
LASTING = 5.0
FITTED, TWICE = 30, 2.0 # samples, or more in twice lost_after, by which it is judged whether innovations fit
CAUTIOUS = 0.3          # mean NIS below which a raised noise of the motion may fall
GRAIN = 0.05            # of a standard deviation: samples with less noise may repeat each other


class InnovationCheck:
    """Watches the innovations of channels (s,): how many samples the gate has ``refusals`` of lately, and whether the
    squares of the normalised innovations are as large as they should be."""

    def __init__(self, channels: int) -> None:
        self._count = channels
        self.reset()

    def reset(self) -> None:
        """Forget what the filter made of the samples."""
        s = self._count
        self._recent: list[deque[tuple[float, bool]]] = [deque() for _ in range(s)]
        self.refusals = [0] * s         # among the recent samples
        self._squares: list[deque[tuple[float, float]]] = [deque() for _ in range(s)]
        self._large, self._fits_since = [0] * s, [nan] * s

    def take(self, t: float, i: int, square: float, refused: bool, longest: float) -> None:
        """Keep of a channel's sample whether it was refused, for ``longest``, s, and whether its square was large."""
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

    def revise(self, t: float, i: int, square: float, refused: bool) -> None:
        """The same of a sample that has been taken: others of its instant have come since."""
        recent, squares = self._recent[i], self._squares[i]
        if recent and recent[-1][0] == t:
            self.refusals[i] += refused - recent[-1][1]
            self._large[i] += (square > MISFIT) - (squares[-1][1] > MISFIT)
            recent[-1], squares[-1] = (t, refused), (t, square)

    @property
    def calm(self) -> bool:
        """Whether none was refused lately, and half of the squares of each channel are as large as they should be."""
        return not any(self.refusals) and all(
            2 * large <= len(squares) for large, squares in zip(self._large, self._squares))

    def doubted(self, longest: float, t: float, periods: Sequence[float]) -> list[int]:
        """Places of channels most of whose samples were refused in the last ``longest``, s, up to
        ``lost_after``; ``periods`` (s,) of the channels, s."""
        return [i for i, bad in enumerate(self.refusals) if bad and self._mostly(i, longest, t, periods)]

    def _mostly(self, i: int, longest: float, t: float, periods: Sequence[float]) -> bool:
        """More than half of the samples, and of half of those that come in so long; of three at low rates."""
        count = bad = 0
        for at, refused in reversed(self._recent[i]):
            if at <= t - longest and count >= FEWEST:
                break
            count, bad = count + 1, bad + refused
        usual = 0.5 * longest / periods[i] if periods[i] > 0 else 0.0
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


class ChannelMonitor:
    """Watches the samples of the channels (s,) along the filter's time, s. In lists: of a few numbers they are ten
    times cheaper than arrays. A sensor with noise that repeats itself is constant; one without while the prediction
    moves, and others see it, too.

    ``ends`` of the samples; ``resolution`` (s,): steps of their values that are known, else 0; without it none is;
    ``seen_by_others`` (place): whether sensors in good order see what a channel sees. Of a mechanism also: its
    ``innovations``, ``jumps`` and ``units`` (s,).
    """

    def __init__(self, names: tuple[str, ...], ends: Ends | None = None, resolution: Sequence[float] = (),
                 seen_by_others: Callable[[int], bool] = lambda place: True, jumps: JumpCheck | None = None,
                 units: Sequence[UnitRatio] = ()) -> None:
        self.names, self._resolution = names, tuple(resolution) or (0.0,) * len(names)
        self.ranges, self._seen_by_others = RangeCheck(ends or {}), seen_by_others
        self.innovations, self.jumps, self.units = InnovationCheck(len(names)), jumps, units
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        s = len(self.names)
        self.ranges.reset()
        self.used_at, self.seen_at, self.period = [-inf] * s, [nan] * s, [nan] * s
        self._used_before = [-inf] * s      # before the last sample
        self.offset, self.constant = [0.0] * s, [False] * s
        self._value, self._since, self._low, self._high = [nan] * s, [nan] * s, [inf] * s, [-inf] * s
        self.step = [known or nan for known in self._resolution]    # of quantised values; 0 of others, NaN: unknown
        self._noisy: list[bool | None] = [None] * s     # of a sensor that repeats its value: whether it has noise
        self.series: list[deque[tuple[float, float]]] = [deque(maxlen=2 * NEAR + 2) for _ in self.names]    # time, s
        self.predicted = [0.0] * s      # variance of the last sample, before it was there
        self.driving = [True] * s       # whether all samples drove the prediction, until one is compared with it
        if self.jumps is not None:
            self.jumps.reset()
        for unit in self.units:
            unit.reset()
        self.begin()

    def begin(self) -> None:
        """Forget what the filter made of the samples: its state starts again."""
        s = len(self.names)
        self._low, self._high = [inf] * s, [-inf] * s       # what was predicted before shows no sensor constant
        self.innovations.reset()
        for unit in self.units:
            unit.begin()

    def accepts(self, place: int, value: float) -> bool:
        """Whether a sample may be used: not from a sensor found constant, until it changes."""
        if self.constant[place] and value != self._value[place]:
            self.constant[place] = False
        return not self.constant[place]

    def take(self, t: float, o: Sequence[float], innovation: Sequence[float], variance: Sequence[float],
             used: Sequence[bool], stddev: Sequence[float], settings: LinkageSettings | ObserverSettings) -> None:
        """What the filter made of the samples of an instant; again where more of its samples have come."""
        if any(at >= t for at in self.seen_at):
            self._revise(t, o, innovation, variance, used)
            o = [nan if at >= t else value for at, value in zip(self.seen_at, o)]
        for series, value in zip(self.series, o):
            if value == value:
                series.append((t, value))
        if self.jumps is not None:
            self._compare(t, o, innovation, variance, used, stddev, settings.lost_after)
        longest = settings.constant_after
        for i, value in enumerate(o):
            if value != value:      # NaN: no sample
                continue
            if self.seen_at[i] < t:
                interval = t - self.seen_at[i]
                if interval > PERIODS * self.period[i]:
                    self._value[i] = nan        # nothing has shown that a prediction without samples is right
                self.period[i] = interval
            self.seen_at[i], self._used_before[i] = t, self.used_at[i]
            self._judge(i, t, innovation[i], variance[i], used[i])
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

    def _judge(self, i: int, t: float, innovation: float, variance: float, used: bool) -> None:
        """Whether a sample was used, or how far it was off."""
        self.used_at[i] = t if used else self._used_before[i]
        self.offset[i] = 0.0 if used else abs(innovation) / sqrt(variance) if variance > 0 else inf

    def _revise(self, t: float, o: Sequence[float], innovation: Sequence[float], variance: Sequence[float],
                used: Sequence[bool]) -> None:
        """The same of samples of an instant that have been taken: what comes with others decides which are used."""
        for i, value in enumerate(o):
            if value == value and self.seen_at[i] == t:
                self._judge(i, t, innovation[i], variance[i], used[i])
                square = innovation[i] ** 2 / variance[i] if variance[i] > 0 else inf
                self.innovations.revise(t, i, square, not used[i] and square > 0.0)
                self.predicted[i] = variance[i]

    def _compare(self, t: float, o: Sequence[float], innovation: Sequence[float], variance: Sequence[float],
                 used: Sequence[bool], stddev: Sequence[float], longest: float) -> None:
        """Samples with what was predicted."""
        for i, value in enumerate(o):
            if value == value:
                square = innovation[i] * innovation[i] / variance[i] if variance[i] > 0 else inf
                refused = not used[i] and square > 0.0      # 0 of those that drive the prediction
                self.predicted[i], self.driving[i] = variance[i], self.driving[i] and not square > 0.0
                self.innovations.take(t, i, square, refused, longest)
                self.units[i].take(t, value, value - innovation[i], variance[i], refused, longest)
                self.jumps.take(i, self.series[i], square, refused, stddev[i])      # type: ignore[union-attr]

    def _is_noisy(self, i: int, stddev: float) -> bool:
        """Whether the samples before the last one had noise, as far as they are kept: by the median of their second
        differences."""
        values = [value for _, value in self.series[i]][:-1]
        bends = [abs(a - 2.0 * b + c) for a, b, c in zip(values, values[1:], values[2:])]
        return bool(bends) and self.step[i] == 0.0 and median(bends) > GRAIN * stddev

    def _is_stuck(self, i: int, stddev: float) -> bool:
        """Whether a value that stays is a fault: a quantised sensor at rest repeats it, too, one with noise does
        not."""
        return bool(self._noisy[i]) or self._stays(i, stddev)

    def _stays(self, i: int, stddev: float) -> bool:
        step = self.step[i] if self.step[i] == self.step[i] else 0.0
        return self._high[i] - self._low[i] > MOVED * (stddev + step) and self._seen_by_others(i)

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

    def calm(self, t: float, longest: float) -> bool:
        """Whether all channels have sent within ``longest``, s, and nothing speaks against any of them."""
        jumped = self.jumps is not None and any(self.jumps.jumped)
        return self.innovations.calm and not (any(self.constant) or jumped) and all(
            t - at <= longest or at != at for at in self.seen_at)

    def doubted(self, longest: float, t: float) -> list[int]:
        """Places of channels most of whose samples were refused in the last ``longest``, s, up to ``lost_after``."""
        return self.innovations.doubted(longest, t, self.period)

    def speed(self, i: int, t: float, longest: float) -> float:
        """How fast a channel's samples change, per s, by the last of them; NaN where they are too old."""
        series = [item for item in self.series[i] if t - item[0] <= longest]
        if self.jumps is None or len(series) < 2 or series[-1][0] <= series[0][0]:
            return nan
        # over several periods: quantised samples show a speed only over some
        return median(self.jumps.slopes(i, series, min(PERIODS, len(series) - 1)))

    def unusable(self, samples: Sequence[float], jumped: Sequence[int] = ()) -> dict[Fault, list[int]]:
        """Places, by fault, of those of the newest samples (channels,), SI, NaN where missing, that cannot be used:
        beyond their ends, or of the channels that have ``jumped``."""
        found = self.ranges.take(samples)
        if jumped and (places := [i for i in jumped if i not in found.get(Fault.FAR, ())]):
            found[Fault.JUMPED] = places
        return found

    def stuck(self, samples: Mapping[int, float]) -> list[int]:
        """Places of the channels whose samples are not accepted."""
        return [i for i, value in samples.items() if not self.accepts(i, value)]

    def rejected(self, threshold: float) -> str:
        """Channels whose last sample the gate refused, as a reason; '' for none."""
        if not any(self.offset):
            return ''       # nearly always
        found = [f'{name} {offset:.3g} standard deviations off (gate {sqrt(threshold):.3g})'
                 for name, offset in zip(self.names, self.offset) if offset > 0]
        return f'{reason_of(Fault.REJECTED)}: {"; ".join(found)}' if found else ''


class DroppedSamples:
    """Of a stage with ``channels`` and ``inputs``, whose samples are below ``largest``; ``dropped``: how many by
    reason."""

    def __init__(self, channels: Sequence[str], inputs: Sequence[str], largest: float = inf) -> None:
        self._names, self._held, self._largest = (*channels, *inputs), frozenset(inputs), largest
        self._known = frozenset(self._names)
        self.dropped: Counter[str] = Counter()
        self._errors: list[SampleError] = []

    def check(self, name: str, stamp_ns: int, value: float) -> None:
        """Raises SampleError for one that is not of this stage, or not finite; NaN, a missing one, is of a channel."""
        if name not in self._known:
            raise self.refusal('unknown channel', name, stamp_ns, value, f'one of {", ".join(self._names)}')
        if not abs(value) < self._largest and (name in self._held or value == value):
            expected = 'a finite number' if name in self._held else 'a finite number, or NaN where missing'
            raise self.refusal('not finite', name, stamp_ns, value, expected)

    def refusal(self, reason: str, name: str, stamp_ns: int, value: float, expected: str) -> SampleError:
        """The error for one more."""
        self.dropped[reason] += 1
        return SampleError(name, stamp_ns, value, expected)

    def valid(self, stamp_ns: int, samples: Mapping[str, float]) -> dict[str, float]:
        """The samples that ``check`` lets pass; it keeps the errors of the others."""
        found = {}
        for name, value in samples.items():
            try:
                self.check(name, stamp_ns, float(value))
                found[name] = float(value)
            except SampleError as error:
                self._errors.append(error)
        return found

    def add(self, reason: str, name: str, stamp_ns: int, value: float, expected: str) -> None:
        """Keep the error for one more."""
        self._errors.append(self.refusal(reason, name, stamp_ns, value, expected))

    def drain(self) -> list[SampleError]:
        """Those since the last call."""
        errors, self._errors = self._errors, []
        return errors
