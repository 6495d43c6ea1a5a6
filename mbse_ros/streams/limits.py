# SPDX-License-Identifier: Apache-2.0
"""Samples that measure nothing: of a pressure below vacuum, at an end of the sensor's range, of a position far outside
the machine's, a pressure far above all that the circuit has, and those that jumped. States that cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nextafter

import numpy as np

from ..description.coordinate_units import unit_of
from ..estimators.hydraulic_model import largest_pressure
from ..estimators.observer_settings import ObserverSettings
from ..machine import Machine
from ..machine.channels import Channel
from ..monitor.faults import Fault
from .bounds import DEEPEST, ROOM
from .jumps import Jumps
from .sudden import PressureSteps

STOPS = 2.0             # times its weight, with which a load pulls that stops at once


class Limits:
    """Looks at the newest samples of a machine's channels. ``ends``: by fault, place of a channel and the samples, SI,
    below and above which it measures nothing."""

    def __init__(self, machine: Machine) -> None:
        channels = list(enumerate(machine.all_channels))
        self.ends = {
            Fault.VACUUM: [(i, _vacuum(c), inf) for i, c in channels if c.kind == 'pressure'],
            Fault.SATURATED: [(i, *_range(found, c.sensor.noise)) for i, c in channels
                              if (found := c.sensor.range) is not None],
            Fault.FAR: [*_reach(machine), *((i, -inf, _sample(c, highest_pressure(machine))) for i, c in channels
                                            if c.kind == 'pressure')]}
        self.jumps, self._steps = Jumps(machine), PressureSteps(machine)

    def reset(self) -> None:
        """Forget the samples before."""
        self.jumps.reset()
        self._steps.reset()

    def take(self, t: float, values: np.ndarray, settings: ObserverSettings = ObserverSettings(),
             constant: Sequence[bool] = ()) -> dict[Fault, list[int]]:
        """Places, by fault, of those of the newest samples (channels,), SI, that cannot be used; ``constant``: see
        ``Jumps``."""
        numbers = values.tolist()
        jumped = self.jumps.take(t, numbers, settings, constant)
        if self.jumps.cut:
            self._steps.reset()
        found = {fault: places for fault, ends in self.ends.items()
                 if (places := [i for i, low, high in ends if numbers[i] < low or numbers[i] > high])}
        if places := [i for i in (*jumped, *self._steps.take(t, numbers)) if i not in found.get(Fault.FAR, ())]:
            found[Fault.JUMPED] = places
        return found


class StateBounds:
    """Where a state of a machine, with entries ``names``, can be: positions in their ranges, speeds by ``settings``,
    pressures from vacuum to ``highest_pressure``."""

    def __init__(self, machine: Machine, names: tuple[str, ...],
                 settings: ObserverSettings = ObserverSettings()) -> None:
        self._names, self._machine = names, machine
        limits = {f'position/{name}': ends for name, ends in zip(machine.coordinates, machine.range.tolist())}
        for name in machine.coordinates:
            fastest = settings.fastest_piston if name in machine.cylinders else settings.fastest_joint
            limits[f'velocity/{name}'] = [-fastest, fastest]
        limits |= {f'pressure/{name}': [0.0, highest_pressure(machine)] for name in machine.volumes}
        self._ends = [(i, *limits[name]) for i, name in enumerate(names) if name in limits]
        self._places = np.array([i for i, *_ in self._ends])
        self._low, self._high = np.array([ends for _, *ends in self._ends]).T
        self._room = ROOM * (self._high - self._low)
        self._known = self._places < len(machine.coordinates)       # positions
        widest = np.where(self._known, self._room ** 2, inf)
        self._usual = list(zip(self._places.tolist(), (self._low - self._room).tolist(),
                               (self._high + self._room).tolist(), widest.tolist()))

    def broken(self, mean: np.ndarray, variance: np.ndarray) -> tuple[str, Fault] | None:
        """What of a state (nx,), SI, is where it cannot be, or which position is not known; None for nothing."""
        numbers, variances = mean.tolist(), variance.tolist()
        for i, low, high, widest in self._usual:        # ten times as fast as by arrays
            if not (low <= numbers[i] <= high and variances[i] <= widest):
                break
        else:
            return None     # nearly always
        x, spread = mean[self._places], variance[self._places]
        more = np.where(self._known, 0.0, DEEPEST ** 2 * spread)        # a position's room is for its error, too
        out = np.maximum(self._low - x, x - self._high) - self._room
        out = (out > 0.0) & (out * out > more)
        vague = self._known & (spread > self._room ** 2)
        if not (out | vague).any():
            return None
        k = int(np.argmax(out | vague))
        kind, _, owner = self._names[self._places[k]].partition('/')
        unit = 'm' if owner in self._machine.cylinders else unit_of(self._machine.description, owner)
        if kind == 'position':
            return ((f'{owner} at {x[k]:.3f} {unit}, far outside its range', Fault.OUT_OF_RANGE) if out[k] else
                    (f'position of {owner} not known to {self._room[k]:.3f} {unit}', Fault.VAGUE))
        said = (f'{owner} at {x[k]:.3g} {unit}/s, far faster than it can move' if kind == 'velocity' else
                f'pressure of {owner} at {x[k] / 1e6:.3g} MPa, far outside 0 to {self._high[k] / 1e6:.3g} MPa')
        return said, Fault.OUT_OF_RANGE


def highest_pressure(machine: Machine) -> float:
    """Pa: the largest supply on the larger area of a cylinder whose other chamber is shut, and a load that stops at
    once."""
    areas = [(cylinder.bore.value ** 2, cylinder.bore.value ** 2 - cylinder.rod.value ** 2)
             for cylinder in machine.description.cylinders.values()]
    return STOPS * largest_pressure(machine) * max((piston / rod for piston, rod in areas if rod > 0.0), default=1.0)


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
