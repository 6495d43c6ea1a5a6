# SPDX-License-Identifier: Apache-2.0
"""Samples that step as nothing moves or flows.

A position of a machine: no piston or joint is elsewhere from one sample to the next. A filter that follows an outside
force finds a position again wherever its sensor says that it is. So a sensor whose zero slips by 50 mm would be
believed, and the mass with it. What no machine can move from sample to sample is a jump; the samples are refused until
as much is jumped back. Sooner they are believed only where something shows that the later ones are right: the sensor
had repeated one value before, two sensors had been exchanged and are no longer, the ones before were the first few of
the stream, or the whole log is cut.

A pressure: a chamber's changes by what flows in and by the piston's motion, and both take several samples,
which change, too; what pushes the piston changes both of its chambers. A single pressure that is another from one
sample on, among samples that are calm, is not one of the fluid: its amplifier, its plug or its supply has changed. The
mass would take it for a load. So the sensor is refused until it steps back as far.

A sensor of a mechanism: its joints may be as fast as they like, so a step is a jump by what the samples change beside
it. It says that the sensor is not in order; the gate refuses its samples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import isfinite, nan, pi
from statistics import median

import numpy as np

from ..filters.observer_settings import ObserverSettings
from ..machine import Machine
from ..machine.equations import pressure_pairs

FINEST = 0.01       # of a standard deviation: a smaller step of the values is none
FEWEST = 3          # samples from which a channel is judged, at low rates
NEAR = 4            # samples before and after a jump
SIDE = 4            # changes from sample to sample on each side of one
WIDTH = 2 * SIDE + 1
NOISES = 3.0        # deviations of the noise that are added to what the changes beside it scatter
SUDDEN = 3.0        # times this sum: a change that is sudden; in sound logs of four machines it was up to 1.8 alone
CALM = 1.0          # ... of the other chamber, up to which it knows nothing of the change
LONGEST = 0.0255    # s between samples, beyond which a valve that opens may do all of its work
BACK = 0.5          # of a step, from which on one the other way takes it back
NOISE = 8.0         # standard deviations of a sample, which no jump is
OUTSIDE = 15.14     # square of a normalised innovation that 0.9999 of good ones do not reach, whatever the gate
FARTHER = 5.0       # times the largest change of the step among the samples beside it: a jump
SAME = 0.1          # of a jump, to which another one takes it back


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


class StepCheck:
    """Watches the channels of the positions of one machine, at ``places``.

    After each ``take``: ``back``, places of the channels that are believed again though nothing has jumped back, so
    that their coordinates start again; ``cut``, whether all that is measured is elsewhere at once.
    """

    def __init__(self, machine: Machine) -> None:
        self._positions = [(k, channel.name.partition('/')[2] in machine.cylinders, abs(channel.nominal[0]),
                            NOISE * channel.sensor.noise) for k, channel in enumerate(machine.all_channels)
                           if channel.kind == 'position' and not channel.sensor.wraps]
        self.places = [k for k, *_ in self._positions]
        self._finest = {k: FINEST * noise / NOISE for k, *_, noise in self._positions}
        self._pressures = [(k, NOISE * channel.sensor.noise) for k, channel in enumerate(machine.all_channels)
                           if channel.kind == 'pressure']
        self.reset()

    def reset(self) -> None:
        """Forget the samples: another time, or another sensor."""
        self.back: list[int] = []
        self.cut = False
        self._last: dict[int, tuple[float, float]] = {}     # time, s, and sample
        self._pressed: list[float] = []                     # samples of the pressures
        self._jumped: dict[int, float] = {}                 # how far, in all
        self._leapt: dict[int, tuple[float, float]] = {}    # times, s, of the first and the last jump
        self._first: dict[int, float] = {}                  # time of the first sample, s
        self._repeats: dict[int, int] = {}                  # samples that are the same as the one before
        self._step: dict[int, float] = {}                   # of quantised values; 0 of others
        self._owner: dict[int, int] = {}                    # whose values a channel sends, of sensors exchanged

    def limits(self, settings: ObserverSettings = ObserverSettings()) -> list[tuple[int, float, float]]:
        """Place of each channel, how fast its samples change at most, SI/s, and what is noise, SI."""
        return [(k, (settings.fastest_piston if piston else settings.fastest_joint) * gain, noise)
                for k, piston, gain, noise in self._positions]

    def take(self, t: float, samples: Sequence[float], settings: ObserverSettings = ObserverSettings(),
             constant: Sequence[bool] = ()) -> list[int]:
        """Places of the channels that have jumped and not come back; ``samples`` (channels,) at ``t``, s; ``constant``
        (channels,): those found so before."""
        self.back, self.cut = [], False
        leaps: dict[int, tuple[float, float, float]] = {}       # before, after, m or rad; what is no jump
        freed = []
        for place, speed, noise in self.limits(settings):
            sample = float(samples[place])
            if not isfinite(sample):
                continue
            before, self._last[place] = self._last.get(place), (t, sample)
            if before is None:
                self._first[place] = t
                continue
            allowed, moved = speed * abs(t - before[0]) + noise, sample - before[1]
            if abs(moved) > allowed:
                leaps[place] = before[1], sample, allowed
                if self._stuck(place) or constant and constant[place]:
                    freed.append(place)
            self._follow(place, moved)
            if place in leaps or place in self._jumped:
                far = self._jumped.get(place, 0.0) + (moved if place in leaps else 0.0)
                self._jumped[place] = far if abs(far) > allowed else 0.0
        pressures, self._pressed = self._pressed, [float(samples[k]) for k, _ in self._pressures]
        if leaps:
            for place in leaps:
                self._leapt[place] = self._leapt.get(place, (t, t))[0], t
            if self._all_at_once(len(leaps), pressures):
                self.reset()
                self.cut = True
                return []
            for place in [*freed, *self._returned(leaps)]:
                if self._jumped[place]:
                    self._believe(place)
        for place, far in self._jumped.items():
            if far and self._began_wrong(place, t, settings):
                self._believe(place)
        return [place for place, far in self._jumped.items() if far]

    def _follow(self, place: int, moved: float) -> None:
        """Whether a sample repeats the one before, and by which steps samples change."""
        self._repeats[place] = 0 if moved else self._repeats.get(place, 0) + 1
        if moved and self._step.get(place, nan):
            self._step[place] = common_step(self._step.get(place, nan), abs(moved), self._finest[place])

    def _stuck(self, place: int) -> bool:
        """Whether a sensor with noise has repeated one value: where it goes on has nothing to do with where it was."""
        return self._repeats.get(place, 0) >= FEWEST and self._step.get(place, nan) == 0.0

    def _all_at_once(self, leaps: int, before: Sequence[float]) -> bool:
        """Whether several positions, and with the pressures half of all that is measured, have changed too fast."""
        changed = leaps + sum(abs(now - then) > noise for now, then, (_, noise) in zip(
            self._pressed, before, self._pressures))
        return leaps > 1 and 2 * changed >= len(self._positions) + len(self._pressures)

    def _returned(self, leaps: dict[int, tuple[float, float, float]]) -> list[int]:
        """Of sensors that exchange their values with each other, those that now send their own again."""
        found = []
        for i, (old, new, allowed) in leaps.items():
            for k, (other_old, other_new, other_allowed) in leaps.items():
                if k > i and abs(new - other_old) <= other_allowed and abs(other_new - old) <= allowed:
                    self._owner[i], self._owner[k] = self._owner.get(k, k), self._owner.get(i, i)
                    found += [place for place in (i, k) if self._owner[place] == place]
        return found

    def _began_wrong(self, place: int, t: float, settings: ObserverSettings) -> bool:
        """Whether a sensor jumped while its first samples were being used to start, and has not for longer since."""
        first, last = self._leapt[place]
        began = last - self._first[place]
        return first == last and began < settings.settle_time and t - last > max(began, settings.lost_after)

    def _believe(self, place: int) -> None:
        self._jumped[place] = 0.0
        self._leapt.pop(place, None)
        if place not in self.back:
            self.back.append(place)


def suddenness(changes: np.ndarray, noise: float) -> np.ndarray:
    """By what factor the middle one of ``changes`` (n, WIDTH) from sample to sample is off the median of the others
    (n,): over how much these differ from it at most, and ``NOISES`` of the ``noise``.

    Where others are zero the sensor has steps, and one of them counts as noise, too. Where they are so on one side
    alone, it repeats one value there: that is another fault, and the factor 0.
    """
    others = np.delete(changes, SIDE, axis=1)
    middle = np.median(others, axis=1)
    sizes = np.abs(changes)
    step = np.where((others == 0.0).any(axis=1), np.where(sizes > 0.0, sizes, np.inf).min(axis=1), 0.0)
    room = np.abs(others - middle[:, None]).max(axis=1) + NOISES * noise + np.where(step < np.inf, step, 0.0)
    still = others == 0.0
    stuck = still[:, :SIDE].any(axis=1) != still[:, SIDE:].any(axis=1)
    return np.asarray(np.where(stuck, 0.0, np.abs(changes[:, SIDE] - middle) / room))


class PressureSteps:
    """Watches the pressures of the cylinders of one machine of which both are measured."""

    def __init__(self, machine: Machine) -> None:
        places = {channel.name: (k, channel.sensor.noise) for k, channel in enumerate(machine.all_channels)}
        pairs = [(places[one], places[other]) for one, other in pressure_pairs(machine).values()]
        self._partners = [(*own, *other) for pair in pairs for own, other in (pair, pair[::-1])]
        self.reset()

    def reset(self) -> None:
        """Forget the samples before, and that any has stepped."""
        self._rows: deque[tuple[float, Sequence[float]]] = deque(maxlen=WIDTH + 1)
        self._stepped: dict[int, float] = {}

    def take(self, t: float, samples: Sequence[float]) -> list[int]:
        """Places of the channels that have stepped and not back; ``samples`` (channels,), SI, at ``t``, s, NaN where
        there is none. A step shows ``SIDE`` samples later."""
        if self._rows and not 0.0 < t - self._rows[-1][0] <= LONGEST:
            self._rows.clear()
        self._rows.append((t, samples))
        if len(self._rows) > WIDTH:
            before, after = self._rows[SIDE][1], self._rows[SIDE + 1][1]
            for place, noise, other, other_noise in self._partners:
                size = after[place] - before[place]
                if abs(size) > SUDDEN * NOISES * noise and self._at(place, noise) > SUDDEN and self._at(
                        other, other_noise) < CALM:
                    self._step(place, size)
        return list(self._stepped)

    def _at(self, place: int, noise: float) -> float:
        return float(suddenness(np.diff([[row[place] for _, row in self._rows]]), noise)[0])

    def _step(self, place: int, size: float) -> None:
        old = self._stepped.get(place, 0.0)
        if old * size < 0.0 and abs(size) > BACK * abs(old):
            del self._stepped[place]
        elif not old:
            self._stepped[place] = size


class JumpCheck:
    """Watches the channels of a mechanism; ``angular`` (s,): their differences wrap at +-pi. ``jumped`` (s,): how far
    each has jumped in all, 0 where it has come back."""

    def __init__(self, angular: Sequence[bool]) -> None:
        self._angular = tuple(angular)
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        s = len(self._angular)
        self.jumped = [0.0] * s
        self._sudden = [(0.0, 0)] * s   # how far, of a step that so many samples after it are still to show as a jump
        self._since_outside = [2 * NEAR] * s

    def take(self, i: int, series: Sequence[tuple[float, float]], square: float, refused: bool, stddev: float) -> None:
        """The last samples of a channel with their times, s; of the newest the square of its normalised innovation, and
        whether the gate refused it."""
        self._since_outside[i] = 0 if refused or square > OUTSIDE else self._since_outside[i] + 1
        # a jump is looked for once as many samples came after it as before, where any of these was outside
        if (self._since_outside[i] <= NEAR or self.jumped[i]) and len(series) == 2 * NEAR + 2:
            self._leapt(i, list(series), stddev)
        self._sudden[i] = self._suddenly(i, series, stddev) if refused else (0.0, 0)

    def found(self, names: Sequence[str]) -> list[str]:
        """Of ``names`` (s,) those that have jumped and not back, with how far; those whose last sample may be a jump,
        too."""
        return [f'{name} by {far or sudden:.3g}' for name, far, (sudden, _) in zip(
            names, self.jumped, self._sudden) if far or sudden]

    def slopes(self, i: int, series: Sequence[tuple[float, float]], apart: int) -> list[float]:
        """Changes of a channel's samples ``apart`` from each other, per s."""
        return [(_wrapped(b - a) if self._angular[i] else b - a) / (later - earlier)
                for (earlier, a), (later, b) in zip(series, series[apart:]) if later > earlier]

    def _suddenly(self, i: int, series: Sequence[tuple[float, float]], stddev: float) -> tuple[float, int]:
        """How far the last sample, which the gate refused, is from where those before it lead, if no motion goes so;
        of a step before it how far it was, until ``_leapt`` has seen enough samples after it."""
        steps, times = self._steps(i, list(series)[-NEAR - 2:])
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


def _least(bends: Sequence[float], stddev: float) -> float:
    """How far a sample must be from where those before it lead, which changed by ``bends``, to be a jump."""
    largest, noise = max(bends), NOISE * stddev
    least = FARTHER * largest + noise
    return min(least, 2.0 * noise) if largest <= noise else least       # bends that are noise do not make it larger


def _wrapped(angle: float) -> float:
    return (angle + pi) % (2.0 * pi) - pi
