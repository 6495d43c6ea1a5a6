# SPDX-License-Identifier: Apache-2.0
"""Where a state can be: a mechanism within the limits of its joints, and no further than it can travel since it was
known; a machine within its strokes and between vacuum and its highest pressure. And which samples no state explains:
at an end of their sensor's range, a pressure below vacuum or far above all that the circuit has, a position far outside
its limits."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, nextafter

import numpy as np

from ..description.coordinate_units import unit_of
from ..dynamics.model import Model
from ..filters.hydraulic_model import largest_pressure
from ..filters.observer_settings import ObserverSettings
from ..filters.parts.problem import Problem
from ..machine import Machine
from ..machine.channels import Channel
from .faults import Fault

Ends = dict[Fault, list[tuple[int, float, float]]]       # by fault: place of a channel, lowest and highest sample

ROOM = 0.1          # of the range between two limits, by which an estimate or a sample may lie beyond them
DEEPEST = 6.0       # standard deviations of a sample, by which noise may
ANYWHERE = 5.0      # rad or m, from where a coordinate was last known
LURCH = 0.6         # of gravity: a base that drives, brakes or tilts is accelerated by less, shocks apart
FASTER = 3.0        # times the speed it had, or may have at a start


class Bounds:
    """Of a model; ``limits``: its joints' (``joint_limits``)."""

    def __init__(self, model: Model) -> None:
        self._names, self._z = model.names, model.z
        self.limits = joint_limits(model)
        self.reset()

    def reset(self) -> None:
        """Forget where it was."""
        self._known: tuple[float, list[float], list[float]] | None = None

    def know(self, t: float, q: np.ndarray, qd: np.ndarray) -> None:
        """Remember a state that can be trusted."""
        self._known = t, q.tolist(), qd.tolist()

    def unknown(self, names: Sequence[str], fast: float) -> np.ndarray:
        """Standard deviations (l,) of the entries of a mean of which nothing is known but where its coordinates can be;
        0 of all but positions and velocities."""
        found = []
        for name in names:
            kind, _, of = name.partition('/')
            _, low, high = self.limits.get(of, (of, -ANYWHERE, ANYWHERE))
            width = min(high - low, 2.0 * ANYWHERE)     # a joint may have one limit
            found.append(width if kind == 'position' else FASTER * fast if kind == 'velocity' else 0.0)
        return np.array(found)

    def broken(self, t: float, q: list[float], qd: list[float], fast: float) -> str:
        """What is where it cannot be, '' for nothing; ``fast``: speed that a coordinate may have at a start."""
        for name, low, high in self.limits.values():
            at = q[self._names.index(name)]
            lowest, highest = with_room(low, high, 0.0)
            if not lowest <= at <= highest:
                return f'{name} at {at:.4g}, beyond its limits, {low:.4g} to {high:.4g}'
        if self._known is None:
            return ''
        since, q_known, qd_known = self._known
        for k in self._z:
            speed = FASTER * max(fast, abs(qd_known[k]))
            at, was = q[k], q_known[k]
            if not abs(at - was) <= ANYWHERE + speed * (t - since):
                return f'{self._names[k]} at {at:.4g}, which it cannot have reached since it was at {was:.4g}'
            if not abs(qd[k]) <= 10.0 * FASTER * (speed + ANYWHERE):
                return f'{self._names[k]} moves at {qd[k]:.4g} per s, and moved at {qd_known[k]:.4g}'
        return ''


def with_room(low: float, high: float, more: float) -> tuple[float, float]:
    """Two limits, each farther out by ``ROOM`` of what lies between them and by ``more``."""
    room = more + (ROOM * (high - low) if isfinite(high - low) else 0.0)
    return low - room, high + room


def joint_limits(model: Model) -> dict[str, tuple[str, float, float]]:
    """By its name, each coordinate of a joint with limits."""
    found = {}
    for name, coordinate in model.description.coordinates.items():
        joint = model.description.joints.get(coordinate.joint) if coordinate.joint else None
        if joint is not None and joint.limits is not None and name in model.names:
            found[name] = (name, *joint.limits)
    for name, joint in model.description.joints.items():
        if joint.limits is not None and name in model.names and name not in found:
            found[name] = (name, *joint.limits)
    return found


STOPS = 2.0             # times its weight, with which a load pulls that stops at once


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
        limits |= {f'effort/{name}': [-STOPS * drive.largest, STOPS * drive.largest]
                   for name, drive in machine.description.drives.items()}
        self._ends = [(i, *limits[name]) for i, name in enumerate(names) if name in limits]
        self._places = np.array([i for i, *_ in self._ends])
        self._low, self._high = np.array([ends for _, *ends in self._ends]).T
        self._room = ROOM * (self._high - self._low)
        self._known = self._places < len(machine.coordinates)       # positions
        widest = np.where(self._known, self._room ** 2, inf)
        self._usual = list(zip(self._places.tolist(), (self._low - self._room).tolist(),
                               (self._high + self._room).tolist(), widest.tolist()))

    @property
    def ends(self) -> np.ndarray:
        """Lowest and highest value (nx, 2) of each entry, NaN where it may be anything."""
        found = np.full((len(self._names), 2), np.nan)
        found[self._places] = np.column_stack((self._low, self._high))
        return found

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
        if kind == 'effort':
            return (f'effort of {owner} at {x[k]:.3g}, far outside its largest, {self._high[k] / STOPS:.3g}',
                    Fault.OUT_OF_RANGE)
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


class RangeCheck:
    """Looks at the samples of channels with ``ends``. ``beyond``: by place of a channel and fault, what its last sample
    reads, of those that lay beyond some."""

    def __init__(self, ends: Ends) -> None:
        self.ends = ends
        self.reset()

    def reset(self) -> None:
        """Forget the samples before."""
        self.beyond: dict[int, dict[Fault, float]] = {}

    def take(self, samples: Sequence[float]) -> dict[Fault, list[int]]:
        """Places, by fault, of those of the newest samples (channels,), SI, NaN where missing, that lie beyond."""
        found: dict[Fault, list[int]] = {}
        beyond = self.beyond
        for fault, ends in self.ends.items():
            for place, low, high in ends:
                value = samples[place]
                if value < low or value > high:
                    found.setdefault(fault, []).append(place)
                    beyond.setdefault(place, {})[fault] = value
                elif beyond and value == value and place in beyond:
                    beyond[place].pop(fault, None)
        return found


def machine_ends(machine: Machine) -> Ends:
    """Of a machine's channels."""
    channels = list(enumerate(machine.all_channels))
    return {
        Fault.VACUUM: [(i, _vacuum(c), inf) for i, c in channels if c.kind == 'pressure'],
        Fault.SATURATED: [(i, *_readable(found, c.sensor.noise)) for i, c in channels
                          if (found := c.sensor.range) is not None],
        Fault.FAR: [*_reach(machine), *((i, -inf, _sample(c, highest_pressure(machine))) for i, c in channels
                                        if c.kind == 'pressure'), *_strongest(machine), *_driven(machine)]}


def _strongest(machine: Machine) -> list[tuple[int, float, float]]:
    """Place of each channel of an effort, and samples below and above which no drive gives it: another unit."""
    found = []
    for i, channel in enumerate(machine.all_channels):
        if channel.kind == 'effort':
            gain, offset, _ = channel.nominal
            most = STOPS * abs(gain) * machine.description.drives[channel.sensor.drive].largest
            found.append((i, offset - most, offset + most))
    return found


def _driven(machine: Machine) -> list[tuple[int, float, float]]:
    """Place of each axis of an accelerometer of the base, and samples below and above which it measures another axis,
    in another unit, or with the other sign."""
    room = LURCH * float(np.linalg.norm([item.value for item in machine.description.gravity]))
    return [(i, -c.zero - room, -c.zero + room) for i, c in enumerate(machine.all_channels) if c.sensor.on_base]


def mechanism_ends(problem: Problem, stddev: Sequence[float]) -> Ends:
    """Of the channels of a mechanism with ``stddev`` (s,): also, of an encoder, beyond the limits of its joint by more
    than a state may be and than noise."""
    found: Ends = {Fault.SATURATED: [], Fault.FAR: []}
    sensors, limits = problem.model.description.sensors, joint_limits(problem.model)
    for i, (name, noise) in enumerate(zip(problem.channels, stddev)):
        sensor = sensors[name.partition('.')[0]]
        if sensor.range is not None:
            found[Fault.SATURATED].append((i, *_readable(sensor.range, noise)))
        if sensor.kind == 'encoder' and not sensor.wraps and sensor.coordinate in limits:
            _, low, high = limits[sensor.coordinate]
            found[Fault.FAR].append((i, *with_room(low, high, DEEPEST * noise)))
    return found


def _sample(channel: Channel, value: float) -> float:
    """Sample of a pressure so far above a value, Pa, that it measures nothing."""
    gain, offset, zero = channel.nominal
    return offset + gain * ((1.0 + ROOM) * value - zero) + DEEPEST * channel.sensor.noise


def _vacuum(channel: Channel) -> float:
    """Sample below which there is no pressure, Pa."""
    gain, offset, zero = channel.nominal
    return offset - gain * zero - DEEPEST * channel.sensor.noise


def _readable(ends: tuple[float, float], noise: float) -> tuple[float, float]:
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
