# SPDX-License-Identifier: Apache-2.0
"""Samples that measure nothing: beyond a range, or of a position that jumps.

Of a range: a pressure below vacuum, or far above all that the circuit has; a sample at an end of the sensor's range; a
position far outside the machine's.

Of a step of a position: no piston or joint is elsewhere from one sample to the next. A filter that follows an outside
force finds a position again wherever its sensor says that it is. So a sensor whose zero slips by 50 mm would be
believed, and the mass with it. What no machine can move from sample to sample is a jump; the samples are refused until
as much is jumped back. Sooner they are believed only where something shows that the later ones are right: the sensor
had repeated one value before, two sensors had been exchanged and are no longer, the ones before were the first few of
the stream, or the whole log is cut.

Of a step of a pressure: a chamber's changes by what flows in and by the piston's motion, and both take several samples,
which change, too; what pushes the piston changes both of its chambers. A single pressure that is another from one
sample on, among samples that are calm, is not one of the fluid: its amplifier, its plug or its supply has changed. The
mass would take it for a load. So the sensor is refused until it steps back as far.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from math import inf, isfinite, nan, nextafter

import numpy as np

from ..filters.observer_settings import ObserverSettings
from ..filters.parts.problem import Problem
from ..machine import Machine
from ..machine.channels import Channel
from ..machine.equations import pressure_pairs
from .bounds import DEEPEST, ROOM, highest_pressure, joint_limits, with_room
from .channels import FEWEST, FINEST, common_step
from .faults import Fault, joined, reason_of

Ends = dict[Fault, list[tuple[int, float, float]]]       # by fault: place of a channel, lowest and highest sample
SIDE = 4            # changes from sample to sample on each side of one
WIDTH = 2 * SIDE + 1
NOISES = 3.0        # deviations of the noise that are added to what the changes beside it scatter
SUDDEN = 3.0        # times this sum: a change that is sudden; in sound logs of four machines it was up to 1.8 alone
CALM = 1.0          # ... of the other chamber, up to which it knows nothing of the change
LONGEST = 0.0255    # s between samples, beyond which a valve that opens may do all of its work
BACK = 0.5          # of a step, from which on one the other way takes it back


class RangeCheck:
    """Looks at the newest samples of a machine's channels. ``ends``: by fault, place of a channel and the samples, SI,
    below and above which it measures nothing."""

    def __init__(self, machine: Machine) -> None:
        channels = list(enumerate(machine.all_channels))
        self.ends: Ends = {
            Fault.VACUUM: [(i, _vacuum(c), inf) for i, c in channels if c.kind == 'pressure'],
            Fault.SATURATED: [(i, *_range(found, c.sensor.noise)) for i, c in channels
                              if (found := c.sensor.range) is not None],
            Fault.FAR: [*_reach(machine), *((i, -inf, _sample(c, highest_pressure(machine))) for i, c in channels
                                            if c.kind == 'pressure')]}
        self.jumps, self._steps = StepCheck(machine), PressureSteps(machine)

    def reset(self) -> None:
        """Forget the samples before."""
        self.jumps.reset()
        self._steps.reset()

    def take(self, t: float, values: np.ndarray, settings: ObserverSettings = ObserverSettings(),
             constant: Sequence[bool] = ()) -> dict[Fault, list[int]]:
        """Places, by fault, of those of the newest samples (channels,), SI, that cannot be used; ``constant``: see
        ``StepCheck``."""
        numbers = values.tolist()
        jumped = self.jumps.take(t, numbers, settings, constant)
        if self.jumps.cut:
            self._steps.reset()
        found = {fault: places for fault, ends in self.ends.items()
                 if (places := [i for i, low, high in ends if numbers[i] < low or numbers[i] > high])}
        if places := [i for i in (*jumped, *self._steps.take(t, numbers)) if i not in found.get(Fault.FAR, ())]:
            found[Fault.JUMPED] = places
        return found


class EndCheck:
    """Looks at samples of a mechanism: beyond the ``range`` of a sensor, or, of an encoder, beyond the limits of its
    joint by more than a state may be and than noise."""

    def __init__(self, problem: Problem) -> None:
        self._channels, self._limits = problem.channels, joint_limits(problem.model)
        self._sensors = [problem.model.description.sensors[name.partition('.')[0]] for name in self._channels]
        self._made = problem.stddev.tolist(), self._ends(problem.stddev.tolist())
        self.reset()

    def reset(self) -> None:
        """Forget the samples before."""
        self._found: dict[int, dict[Fault, str]] = {}

    @property
    def any(self) -> bool:
        """Whether any channel has ends."""
        return any(self._made[1].values())

    @property
    def said(self) -> list[tuple[str, Fault]]:
        """What is wrong with the last sample of each channel."""
        return [(text, fault) for found in self._found.values() for fault, text in found.items()]

    def take(self, samples: Mapping[int, float], stddev: list[float]) -> dict[int, Fault]:
        """Faults, by place, of those of some samples, SI, NaN where missing, that lie beyond; ``stddev`` (s,) of all
        channels."""
        if self._made[0] is not stddev:
            self._made = stddev, self._ends(stddev)
        for fault, ends in self._made[1].items():
            for place, low, high in ends:
                value = samples.get(place, nan)
                if value < low or value > high:
                    self._found.setdefault(place, {})[fault] = self._reads(place, value, fault)
                elif value == value and place in self._found:
                    self._found[place].pop(fault, None)
        return {place: joined(self._found[place]) for place, value in samples.items()
                if value == value and self._found.get(place)}

    def _ends(self, stddev: list[float]) -> Ends:
        found: Ends = {Fault.SATURATED: [], Fault.FAR: []}
        for i, (sensor, noise) in enumerate(zip(self._sensors, stddev)):
            if sensor.range is not None:
                found[Fault.SATURATED].append((i, *_range(sensor.range, noise)))
            if sensor.kind == 'encoder' and not sensor.wraps and sensor.coordinate in self._limits:
                _, low, high = self._limits[sensor.coordinate]
                found[Fault.FAR].append((i, *with_room(low, high, DEEPEST * noise)))
        return found

    def _reads(self, place: int, value: float, fault: Fault) -> str:
        sensor = self._sensors[place]
        where, low, high = (f'beyond the limits of {sensor.coordinate}', *self._limits[sensor.coordinate][1:]
                            ) if fault is Fault.FAR else (reason_of(fault), *(sensor.range or (nan, nan)))
        return f'{self._channels[place]} reads {value:.4g}, {where}, {low:.4g} to {high:.4g}'


def _sample(channel: Channel, value: float) -> float:
    """Sample of a pressure so far above a value, Pa, that it measures nothing."""
    gain, offset, zero = channel.nominal
    return offset + gain * ((1.0 + ROOM) * value - zero) + DEEPEST * channel.sensor.noise


def _vacuum(channel: Channel) -> float:
    """Sample below which there is no pressure, Pa."""
    gain, offset, zero = channel.nominal
    return offset - gain * zero - DEEPEST * channel.sensor.noise


def _range(ends: tuple[float, float], noise: float) -> tuple[float, float]:
    """Lowest and highest sample that says something: at the upper end every larger value reads the same."""
    low, high = ends
    return low - DEEPEST * noise, nextafter(high, -inf)


def _reach(machine: Machine) -> list[tuple[int, float, float]]:
    """Place of each channel of a position, and samples below and above which it cannot be one, SI."""
    found = []
    for coordinate, (low, high) in zip(machine.coordinates, machine.range.tolist()):
        name = f'position/{coordinate}'
        place = machine.channels.index(name) if name in machine.channels else None
        if place is not None and not machine.all_channels[place].sensor.wraps:
            room = ROOM * (high - low)
            gain, offset, zero = machine.all_channels[place].nominal
            ends = sorted(offset + gain * (end - zero) for end in (low - room, high + room))
            found.append((place, *ends))
    return found


NOISE = 8.0             # standard deviations of a sample


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
