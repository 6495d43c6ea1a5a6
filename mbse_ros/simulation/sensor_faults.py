# SPDX-License-Identifier: Apache-2.0
"""Faults of the sensors of a machine, as pure functions of their samples.

What breaks while it works begins at an instant; what a file, a driver or the wiring has wrong (unit, sign, zero,
chambers, direction, delay, rate) holds from the first sample on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import cos, degrees, log, nan, pi, sqrt

import numpy as np

from ..errors import check_choice
from ..machine import Machine
from ..machine.channels import ATMOSPHERE
from ..machine.equations import pressure_pairs
from .crane import SensorFrame

FULL_SCALE = 40e6       # Pa, of a pressure transducer on a machine of this kind
SATURATED = 3e6         # Pa, where a transducer of too small a range ends
DRIFT = 500e3           # Pa, over the rest of the run
OFF = 0.05              # m or rad, by which a position jumps or is off
JUMP_S = 0.4            # s
STICKS_S = 2.0          # s, for which a position repeats its value, and then goes on
FIRST_S = 0.045         # s of samples that are wrong while a driver starts
DROPPED = 0.3           # share of samples that do not come
SPIKES = 0.02           # share of samples that are spikes of a quarter of the range
STEPS = 1024            # of a converter of 10 bits over the range
LATE_NS = 200_000_000
VERY_LATE_NS = 450_000_000
JITTER_NS = 20_000_000
ECHO_NS = 5_000_000     # after a sample another publisher sends its own
TENTH = 10          # of the samples of the simulated sensors come on a slow bus: 10 Hz
BUS = 'all'         # the sensor of a fault that all have
ALL = ('position', 'velocity', 'gyro', 'accelerometer', 'pressure')


@dataclass(frozen=True)
class SensorRange:
    """The range in which a sensor works, SI; ``angle``: rad."""

    low: float
    high: float
    angle: bool = False

    @property
    def span(self) -> float:
        """Width of the range."""
        return self.high - self.low


@dataclass(frozen=True)
class Now:
    """A fault at one sample: seconds ``since`` it began; the share ``gone`` of the rest of the run; the sample ``held``
    from when it began; those of the ``other`` chamber and of another ``line``; two ``dice``, evenly distributed in 0 to
    1."""

    since: float
    gone: float
    held: float
    other: float
    line: float
    dice: tuple[float, float]


@dataclass(frozen=True)
class SensorFault:
    """``change(value, now, place)``: the sample that comes instead, None for none; of sensors of these ``kinds``.

    ``whole``: from the first sample on; ``cylinder``: both pressures of a cylinder have it, ``bus``: all sensors;
    ``delay_ns``: the sample comes, and is stamped, so much later; ``jitter_ns``: or earlier or later by up to that;
    ``every``: of so many samples one comes; ``echo_ns``: so much later another publisher sends the first sample again.
    """

    name: str
    kinds: tuple[str, ...]
    change: Callable[[float, Now, SensorRange], float | None]
    whole: bool = False
    cylinder: bool = False
    delay_ns: int = 0
    bus: bool = False
    jitter_ns: int = 0
    every: int = 1
    echo_ns: int = 0


def _of(name: str, kinds: str, change: Callable[[float, Now, SensorRange], float | None],
        **more: object) -> SensorFault:
    return SensorFault(name, tuple(kinds.split()), change, **more)      # type: ignore[arg-type]


def _spike(value: float, now: Now, place: SensorRange) -> float:
    sign = 1.0 if now.dice[1] < 0.5 else -1.0
    return value + sign * place.span / 4 if now.dice[0] < SPIKES else value


EVERY = ' '.join(ALL)
FAULTS = {fault.name: fault for fault in (
    _of('negated', 'pressure', lambda value, now, place: -value, whole=True),
    _of('in_bar', 'pressure', lambda value, now, place: value / 1e5, whole=True),
    _of('in_kPa', 'pressure', lambda value, now, place: value / 1e3, whole=True),
    _of('both_in_bar', 'pressure', lambda value, now, place: value / 1e5, whole=True, cylinder=True),
    _of('both_in_kPa', 'pressure', lambda value, now, place: value / 1e3, whole=True, cylinder=True),
    _of('swapped', 'pressure', lambda value, now, place: now.other, whole=True, cylinder=True),
    _of('swapped_midway', 'pressure', lambda value, now, place: now.other, cylinder=True),
    _of('another_line', 'pressure', lambda value, now, place: now.line, whole=True),
    _of('gauge', 'pressure', lambda value, now, place: value - ATMOSPHERE, whole=True),
    _of('zero', 'pressure', lambda value, now, place: 0.0),
    _of('saturated', 'pressure', lambda value, now, place: min(value, SATURATED)),
    _of('drift', 'pressure', lambda value, now, place: value + DRIFT * now.gone),
    _of('gain_1.02', 'pressure', lambda value, now, place: 1.02 * value),
    _of('gain_1.10', 'pressure', lambda value, now, place: 1.10 * value),
    _of('bias_50_kPa', 'pressure', lambda value, now, place: value + 50e3),
    _of('bias_200_kPa', 'pressure', lambda value, now, place: value + 200e3),
    _of('bias_500_kPa', 'pressure', lambda value, now, place: value + 500e3),
    _of('stuck', 'pressure position', lambda value, now, place: now.held),
    _of('jump', 'position', lambda value, now, place: value + OFF if now.since < JUMP_S else value),
    _of('offset', 'position', lambda value, now, place: value + OFF),
    _of('sticks', 'position', lambda value, now, place: now.held if now.since < STICKS_S else value),
    _of('unit_midway', 'position', lambda value, now, place: degrees(value) if place.angle else 1e3 * value),
    _of('first_samples', 'position', lambda value, now, place: value + 2.0 * OFF if now.since < FIRST_S else value,
        whole=True),
    _of('reversed', 'position', lambda value, now, place: place.low + place.high - value, whole=True),
    _of('zero_30_mm', 'position', lambda value, now, place: value + 0.03, whole=True),
    _of('zero_50_mm', 'position', lambda value, now, place: value + 0.05, whole=True),
    _of('wrong_unit', 'position', lambda value, now, place: degrees(value) if place.angle else 1e3 * value, whole=True),
    _of('nan', EVERY, lambda value, now, place: nan),
    _of('dropouts', EVERY, lambda value, now, place: None if now.dice[0] < DROPPED else value),
    _of('late', EVERY, lambda value, now, place: value, whole=True, delay_ns=LATE_NS),
    _of('very_late', EVERY, lambda value, now, place: value, whole=True, delay_ns=VERY_LATE_NS),
    _of('missing', 'pressure', lambda value, now, place: None, whole=True),
    _of('two_publishers', 'pressure position', lambda value, now, place: value, whole=True, echo_ns=ECHO_NS),
    _of('rate_10_Hz', EVERY, lambda value, now, place: value, whole=True, bus=True, every=TENTH),
    _of('rate_5_Hz', EVERY, lambda value, now, place: value, whole=True, bus=True, every=2 * TENTH),
    _of('jitter', EVERY, lambda value, now, place: value, whole=True, bus=True, every=TENTH, jitter_ns=JITTER_NS),
    _of('spikes', EVERY, _spike),
    _of('quantised', EVERY, lambda value, now, place: round(value / place.span * STEPS) * place.span / STEPS))}


def faulty_samples(fault: SensorFault, sensor: str, machine: Machine, frames: Sequence[SensorFrame], begin: float,
                   seed: int = 0) -> list[tuple[int, str, float]]:
    """Samples and commands ``(stamp in ns, channel, value)`` as they come, those of ``sensor`` with the fault.

    ``begin``: s after the first frame, from when it acts, unless it is ``whole``.
    """
    pair = pair_of(machine, sensor)
    names = machine.channels if fault.bus else pair if fault.cylinder else (sensor,)
    return samples_with(dict.fromkeys(names, fault), machine, frames, begin, seed)


def samples_with(faulty: Mapping[str, SensorFault], machine: Machine, frames: Sequence[SensorFrame], begin: float,
                 seed: int = 0) -> list[tuple[int, str, float]]:
    """The same of several sensors at once, each with a fault by its channel."""
    others = {name: next((other for other in pair_of(machine, name) if other != name), '') for name in faulty}
    lines = {name: _line(machine, name) for name in faulty}
    places = {name: place_of(machine, name) for name in faulty}
    first, last = frames[0].stamp_ns, frames[-1].stamp_ns
    begins = {name: first if fault.whole else first + round(begin * 1e9) for name, fault in faulty.items()}
    rng, found = np.random.default_rng([seed, 7]), []
    held: dict[str, float] = {}
    for k, frame in enumerate(frames):
        stamp, samples = frame.stamp_ns, frame.samples
        found += [(stamp, name, value) for name, value in frame.commands.items()]
        for name, value in samples.items():
            if name not in faulty or stamp < begins[name]:
                found.append((stamp, name, value))
                continue
            fault, begin_ns = faulty[name], begins[name]
            if k % fault.every:
                continue
            dice = float(rng.random()), float(rng.random())
            now = Now((stamp - begin_ns) * 1e-9, (stamp - begin_ns) / max(1, last - begin_ns),
                      held.setdefault(name, value), samples.get(others[name], nan), lines[name](samples, dice),
                      dice)
            changed = fault.change(value, now, places[name])
            if changed is not None:
                late = fault.delay_ns + round((2.0 * dice[0] - 1.0) * fault.jitter_ns)
                found.append((stamp + late, name, changed))
            if fault.echo_ns:
                found.append((stamp + fault.echo_ns, name, now.held))
    moved = any(fault.delay_ns or fault.jitter_ns or fault.echo_ns for fault in faulty.values())
    return sorted(found, key=lambda sample: sample[0]) if moved else found


def _line(machine: Machine, sensor: str) -> Callable[[Mapping[str, float], tuple[float, float]], float]:
    """What a pressure sensor reads in another line: the same chamber of the next cylinder, of one alone the pump."""
    pairs = [pair for pair in dict.fromkeys(pair_of(machine, name) for name in machine.channels) if pair]
    place = next((k for k, pair in enumerate(pairs) if sensor in pair), None)
    if place is not None and len(pairs) > 1:
        other = pairs[(place + 1) % len(pairs)][pairs[place].index(sensor)]
        return lambda samples, dice: samples.get(other, nan)
    pump = max((supply.value for supply in machine.hydraulics.supplies.values()), default=FULL_SCALE)
    noise = next(channel.sensor.noise for channel in machine.all_channels if channel.name == sensor)
    return lambda samples, dice: pump + noise * sqrt(-2.0 * log(1.0 - dice[0])) * cos(2.0 * pi * dice[1])


def sensors_of(fault: SensorFault, machine: Machine) -> tuple[str, ...]:
    """Channels that can have the fault; of a fault of both pressures the first of the cylinder; 'all' of one of all."""
    if fault.bus:
        return (BUS,)
    names = [channel.name for channel in machine.all_channels if channel.kind in fault.kinds]
    return tuple(name for name in names if not fault.cylinder or pair_of(machine, name)[:1] == (name,))


def chosen_faults(names: Sequence[str]) -> tuple[SensorFault, ...]:
    """Faults by their names, all of them for none; raises SettingError."""
    for name in names:
        check_choice('fault', name, FAULTS)
    return tuple(FAULTS[name] for name in names) or tuple(FAULTS.values())


def pair_of(machine: Machine, sensor: str) -> tuple[str, ...]:
    """Channels of the pressures, piston and rod, of the cylinder to which a pressure sensor belongs; () without."""
    return next((pair for pair in pressure_pairs(machine).values() if sensor in pair), ())


def place_of(machine: Machine, channel: str) -> SensorRange:
    """Range of a sensor: of a transducer, of its coordinate, else a thousand times its noise around zero."""
    kind, _, owner = channel.partition('/')
    if kind == 'pressure':
        return SensorRange(0.0, FULL_SCALE)
    if kind == 'position' and owner in machine.coordinates:
        low, high = machine.range[machine.coordinates.index(owner)]
        return SensorRange(float(low), float(high), owner not in machine.cylinders)
    noise = next(item.sensor.noise for item in machine.all_channels if item.name == channel)
    return SensorRange(-500.0 * noise, 500.0 * noise, kind == 'position')
