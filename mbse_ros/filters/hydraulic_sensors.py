# SPDX-License-Identifier: Apache-2.0
"""What each channel of a machine measures of the observer's state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from ..dynamics.sensor_equations import sensor_partials
from ..machine import Machine
from ..machine.channels import Channel
from .hydraulic_state import state_names


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


def sample_of(machine: Machine, channel: Channel, value: ca.SX) -> ca.SX:
    """The sample of a channel that measures ``value``, SI; its offset and gain are symbols where they are uncertain."""
    gain, offset = errors_of(machine, channel)
    return gain * (value - channel.nominal[2]) + offset


def errors_of(machine: Machine, channel: Channel) -> tuple[ca.SX | float, ca.SX | float]:
    """Gain and offset, symbols where they are uncertain."""
    sensor, values = channel.sensor, machine.system.values
    return (1.0 if sensor.gain is None else values(sensor.gain),
            values(sensor.bias[channel.index]) if sensor.bias else 0.0)


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
    elif sensor.kind == 'inclination':
        name = f'inclination/{sensor.axis}'
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
    inclined = {f'base.{name.partition("/")[2]}': X[i] for i, name in enumerate(names)
                if name.startswith('inclination/')}
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
