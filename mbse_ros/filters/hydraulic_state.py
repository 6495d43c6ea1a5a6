# SPDX-License-Identifier: Apache-2.0
"""Entries of the hydraulic observer's state: their names ``kind/owner``, units, and places by kind; what each channel
measures of them; what the observer gives for a segment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import casadi as ca
import numpy as np

from ..dynamics.sensor_equations import sensor_partials
from ..machine import Machine
from ..machine.channels import Channel

MPA = 1e6
LITRE = 1e-3
UNITS = {'pressure': MPA, 'flow': LITRE, 'supply': MPA}
MASS = 'payload/mass'
BASE = 'inclination', 'base_acceleration'
PUSHES = 'pressure', 'effort'
PUSHED = tuple(f'{kind}/' for kind in PUSHES)       # how their names begin


def state_names(machine: Machine, weighs: bool = False) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the state's entries and the factors that take them to SI; ``weighs``: with those of the payload, moments
    about its centre in the file, at the largest mass one deviation away from it, and the mass, the last."""
    names = [f'{kind}/{c}' for kind in ('position', 'velocity', 'acceleration') for c in machine.coordinates]
    names += [*machine.actuators.entries] + [f'spool/{v}' for v in machine.modelled_valves]
    names += [f'flow/{v}.{port}' for v in machine.unknown_valves for port in 'ab']
    names += [*(f'supply/{s}' for s in machine.measured_supplies), *machine.base_states]
    names += [f'{kind}/{axis}' for kind in ('swing', 'swing_rate') for axis in machine.swings if weighs]
    scale = [UNITS.get(name.partition('/')[0], 1.0) for name in names]
    if weighs:
        center, (low, high) = machine.parameters.center, machine.payload_data.limits
        names += [*(f'moment/{axis}' for axis in center), MASS]
        scale += [*(machine.parameters.stddev[place] * (high - low) for place in center.values()), high - low]
    return tuple(names), np.array(scale)


def state_parts(names: tuple[str, ...], X: ca.SX) -> dict[str, ca.SX]:
    """Entries of the state by kind; 'base' has all that are of the base, 'pushes' what forces are made of: pressures
    and efforts."""
    kinds = ('position', 'velocity', 'acceleration', 'pressure', 'spool', 'flow', 'supply', 'swing', 'swing_rate')
    found = {kind: X[[i for i, name in enumerate(names) if name.startswith(kind + '/')]] for kind in kinds}
    groups = {'base': BASE, 'pushes': PUSHES}
    return found | {group: X[[i for i, name in enumerate(names) if name.partition('/')[0] in kinds]]
                    for group, kinds in groups.items()}


def push_scale(machine: Machine) -> np.ndarray:
    """Factors (pushes,) that take pressures and efforts of the model to SI."""
    return np.array([UNITS.get(name.partition('/')[0], 1.0) for name in machine.actuators.entries])


class ModelError(NamedTuple):
    """Standard deviations (a,), MPa on the pistons, of the error of the balance, the density, MPa^2/s, of that of the
    pressures, and at which frequency, Hz, the mass oscillated, 0 where it did not."""

    balance: np.ndarray
    pressures: float
    frequency: float


class SegmentResult(NamedTuple):
    """Observer over a segment, SI: ``mean`` (n, nx), ``covariance`` (nx, nx) at the last step, ``variance`` (nx,) of
    the motion as the sensors measure it: without the errors of their zeros and gains.

    Between two samples ``mean`` is a line from the state at the one to the state at the other.
    ``innovation`` (ny,) and ``innovation_variance`` (ny,): the last samples against what was predicted for them one
    sample (or part of one) earlier; each channel after the ones before it. NaN: no sample in the segment.
    ``rejected`` (ny,): those beyond the gate, which were left out; ``finite`` is false when anything left the finite
    numbers. ``weighing`` (n, 4 + k), or (0, 3) of an observer of the motion alone: what each step measures of the
    mass, see StateEstimate. ``outside``: whether a force acts that the balance does not know. ``rare``: channels whose
    samples are too rare for this motion, the worst first, and by how many of their standard deviations the lines
    between may be off. ``force_error``: of the force balance or of the pressures, None: none was found."""

    mean: np.ndarray
    covariance: np.ndarray
    variance: np.ndarray
    innovation: np.ndarray
    innovation_variance: np.ndarray
    rejected: np.ndarray
    finite: bool
    weighing: np.ndarray
    outside: bool = False
    rare: tuple[tuple[int, float], ...] = ()
    force_error: ModelError | None = None


def last_samples(innovations: np.ndarray, variances: np.ndarray, there: np.ndarray,
                 refused: Mapping[tuple[int, int], tuple[float, float]]
                 ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Innovation, variance and rejection (ny,) of the last sample of each channel in steps with ``innovations`` and
    their ``variances`` (n, ny); ``there`` (n, ny): whether there is a sample; ``refused``: those by step and channel
    that were left out, with both numbers, which are put among the others."""
    m = innovations.shape[1]
    innovation, variance, rejected = np.full(m, np.nan), variances[-1].copy(), np.zeros(m, dtype=bool)
    for (row, k), numbers in refused.items():
        innovations[row, k], variances[row, k] = numbers
    for k, row in enumerate((len(there) - 1 - np.argmax(there[::-1], axis=0)).tolist()):
        if there[row, k]:
            innovation[k], variance[k], rejected[k] = innovations[row, k], variances[row, k], (row, k) in refused
    return innovation, variance, rejected


@dataclass(frozen=True)
class Measurement:
    """A sample is ``gain (value - zero) + offset``, SI; its ``variance``.

    ``index``: the value is this entry of the state; None: it is ``h``, with the derivative ``H`` (1, nx), both in the
    model's units of the state. ``wraps``: an angle that does not count turns.
    """

    index: int | None
    gain: float
    offset: float
    zero: float
    variance: float
    wraps: bool
    h: ca.SX
    H: ca.SX

    def at(self, q: ca.SX, values: ca.SX) -> Measurement:
        """With the coordinates replaced."""
        if self.index is not None:
            return self
        h, H = ca.substitute([self.h, self.H], [q], [values])
        return replace(self, h=h, H=H)


def measurements(machine: Machine, names: tuple[str, ...], X: ca.SX) -> tuple[Measurement, ...]:
    """Of every channel, in order; ``h`` and ``H`` are expressions in the mechanism's q and the state ``X``."""
    own = [_index(machine, channel, names) for channel in machine.all_channels]
    others = [channel for channel, index in zip(machine.all_channels, own) if index is None]
    outputs = _outputs(machine, others, names, X) if others else {}
    none = ca.SX(0, 1)
    found = []
    for channel, index in zip(machine.all_channels, own):
        gain, offset, zero = channel.nominal
        wraps = channel.sensor.kind == 'inclinometer' or channel.sensor.wraps
        h, H = outputs.get(channel.name, (none, none))
        if index is None:       # its bias is in the outputs already
            gain, offset = 1.0, 0.0
        found.append(Measurement(index, gain, offset, zero, channel.sensor.noise ** 2, wraps, h, H))
    return tuple(found)


def sample_of(machine: Machine, channel: Channel, value: ca.SX, rate: ca.SX | None = None) -> ca.SX:
    """The sample of a channel that measures ``value``, SI; its offset and gain are symbols where they are uncertain,
    and so is its delay where the ``rate`` of the value is given."""
    gain, offset, zero = errors_of(machine, channel)
    if rate is not None and isinstance(lag := late(machine, channel), ca.SX):
        value = value - rate * lag
    return gain * (value - zero) + offset


def late(machine: Machine, channel: Channel) -> ca.SX | float:
    """By how much a sample is later than the file says, s: an expression where its delay is uncertain, else 0."""
    delay = channel.sensor.delay
    found = 0.0 if delay is None else machine.system.values(delay)
    return found - delay.value if delay is not None and isinstance(found, ca.SX) else 0.0


def uncertain_delays(machine: Machine) -> bool:
    """Whether the delay of a sensor is uncertain, so that the rates of the state count."""
    return any(isinstance(late(machine, channel), ca.SX) for channel in machine.all_channels)


def errors_of(machine: Machine, channel: Channel) -> tuple[ca.SX | float, ca.SX | float, ca.SX | float]:
    """Gain, offset and zero, expressions where they are uncertain."""
    sensor, values, zero = channel.sensor, machine.system.values, channel.zero
    if sensor.on_base:
        along = ca.dot(ca.SX(list(sensor.axes[channel.index])), machine.still_gravity)
        zero = zero if along.is_constant() else along
    return ((1.0 if sensor.gain is None else values(sensor.gain)) * channel.factor,
            values(sensor.bias[channel.index]) if sensor.bias else 0.0, zero)


def direct(machine: Machine) -> dict[str, Channel]:
    """Channels by the entry of the state that they measure."""
    names, _ = state_names(machine)
    found = {}
    for channel in machine.all_channels:
        index = _index(machine, channel, names)
        if index is not None:
            found[names[index]] = channel
    return found


def _index(machine: Machine, channel: Channel, names: tuple[str, ...]) -> int | None:
    """Place in the state of what the channel measures, None where it is not an entry."""
    sensor = channel.sensor
    if sensor.kind == 'pressure':
        name = f'{"pressure" if sensor.volume in machine.volumes else "supply"}/{sensor.volume}'
    elif sensor.drive:
        name = f'effort/{sensor.drive}'
    elif sensor.kind == 'inclination':
        name = f'inclination/{sensor.axis}'
    elif sensor.on_base:
        name = f'base_acceleration/{"xyz"[channel.index]}'
    elif sensor.kind in ('encoder', 'rate'):
        name = f'{"position" if sensor.kind == "encoder" else "velocity"}/{sensor.coordinate}'
    else:
        return None
    return names.index(name) if name in names else None


def _outputs(machine: Machine, channels: list[Channel], names: tuple[str, ...],
             X: ca.SX) -> dict[str, tuple[ca.SX, ca.SX]]:
    """``h`` and ``H`` by channel, from position, velocity and acceleration of the independent coordinates."""
    g = len(machine.coordinates)
    sensors = {channel.sensor.name: channel.sensor for channel in channels}
    system = replace(machine.system, description=replace(machine.description, sensors=sensors))
    function = sensor_partials(system, system.values.symbol, scalar=True)
    inclined = {key: X[names.index(name)] for name, key in machine.base_states.items()}
    h, *H = function(system.q, X[g:2 * g], X[2 * g:3 * g], ca.SX.zeros(system.u.numel()), 0,
                     machine.parameters.whole(inclined))
    slopes = ca.jacobian(h, X)      # by the base's angles; by the motion it comes along the loops
    whole = ca.horzcat(*H, slopes[:, 3 * g:])
    found, row = {}, 0
    for channel in channels:
        place = row + channel.index
        found[channel.name] = h[place], whole[place, :]
        last = channel is channels[-1] or channels[channels.index(channel) + 1].sensor is not channel.sensor
        row = place + 1 if last else row
    return found


def variances(machine: Machine) -> np.ndarray:
    """Variances of the samples of the channels, SI, the rounding to their resolution included."""
    return np.array([channel.sensor.noise ** 2 for channel in machine.all_channels])
