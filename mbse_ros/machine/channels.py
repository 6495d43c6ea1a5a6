# SPDX-License-Identifier: Apache-2.0
"""Channels of a machine or a mechanism: one name for each number that a sensor gives, the same in bags, topics, maps of
sources and, of machines, estimates.

``position/<coordinate>`` of strokes and encoders, ``position/<sensor>`` of inclinometers and distances,
``position/base_roll`` and ``base_pitch``; ``velocity/<coordinate>`` of rates; ``gyro/<sensor>`` and
``accelerometer/<sensor>``, with ``.x``, ``.y``, ``.z`` where there are several; ``pressure/<volume or supply>``;
``effort/<drive>`` at its joint, or by the current of its motor.
Of mechanisms alone ``effort/<sensor>`` of forces, ``value/<sensor>.x`` of positions and velocities of points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..description.model import MechanismDescription, Sensor
from ..description.start import rpy_rotation
from ..errors import DescriptionError

ATMOSPHERE = 101_325.0      # Pa: a gauge measures from here
ORDER = ('position', 'velocity', 'gyro', 'accelerometer', 'effort', 'pressure')
_KIND = {'encoder': 'position', 'inclinometer': 'position', 'distance': 'position', 'inclination': 'position',
         'rate': 'velocity', 'gyro': 'gyro', 'accelerometer': 'accelerometer', 'pressure': 'pressure',
         'effort': 'effort', 'current': 'effort'}
_OF_MECHANISMS = {'force': 'effort', 'position': 'value', 'velocity': 'value'}


@dataclass(frozen=True)
class Channel:
    """``index``: which of the values of ``sensor`` it is; ``output``: its name among the outputs of the mechanism;
    ``zero``: value, SI, from which its sensor counts; ``factor``: the sample of a value of 1, as of a current.
    """

    name: str
    sensor: Sensor
    index: int
    output: str
    zero: float = 0.0
    factor: float = 1.0

    @property
    def kind(self) -> str:
        """The part before the stroke."""
        return self.name.partition('/')[0]

    @property
    def delay_ns(self) -> int:
        """By how much the stamp of a sample is later than what it measures, ns, by the nominal number."""
        return 0 if self.sensor.delay is None else round(1e9 * self.sensor.delay.value)

    @property
    def zero_stddev(self) -> float:
        """Standard deviation of its offset or bias, SI."""
        return self.sensor.bias[self.index].stddev if self.sensor.bias else 0.0

    @property
    def nominal(self) -> tuple[float, float, float]:
        """``(gain, offset, zero)`` of a sample ``gain (value - zero) + offset``, SI, by the nominal numbers."""
        sensor = self.sensor
        gain = 1.0 if sensor.gain is None else sensor.gain.value
        return gain * self.factor, sensor.bias[self.index].value if sensor.bias else 0.0, self.zero


def machine_channels(machine: MechanismDescription) -> tuple[Channel, ...]:
    """Channels of all sensors, by kind, then in the file's order; raises DescriptionError."""
    for sensor in machine.sensors.values():
        if sensor.kind not in _KIND:
            raise DescriptionError(machine.file, f'sensors.{sensor.name}.kind', sensor.kind,
                                   'a sensor of a machine: stroke, ' + ', '.join(_KIND))
    found = [channel for sensor in machine.sensors.values() for channel in _channels(machine, sensor, _owner(sensor))]
    names = [channel.name for channel in found]
    for channel in found:
        if names.count(channel.name) > 1:
            raise DescriptionError(machine.file, f'sensors.{channel.sensor.name}', channel.name,
                                   'a name that no other channel of the machine has')
    return tuple(sorted(found, key=lambda channel: ORDER.index(channel.kind)))


def sensor_channels(mechanism: MechanismDescription) -> tuple[Channel, ...]:
    """Channels of all sensors of a machine or a mechanism, in the file's order; of several sensors of one coordinate
    the first has its name, the others have their own."""
    found: dict[str, Channel] = {}
    for sensor in mechanism.sensors.values():
        channels = _channels(mechanism, sensor, _owner(sensor))
        if any(channel.name in found for channel in channels):
            channels = _channels(mechanism, sensor, sensor.name)
        found |= {channel.name: channel for channel in channels}
    return tuple(found.values())


def _owner(sensor: Sensor) -> str:
    """What a channel is named after."""
    return sensor.volume or sensor.drive or sensor.coordinate or (f'base_{sensor.axis}' if sensor.axis else sensor.name)


def _channels(mechanism: MechanismDescription, sensor: Sensor, owner: str) -> list[Channel]:
    name = f'{(_KIND | _OF_MECHANISMS)[sensor.kind]}/{owner}'
    size = (len(sensor.axes) if sensor.kind == 'accelerometer' else mechanism.dimension
            if sensor.kind in ('position', 'velocity') else 3 if sensor.kind == 'gyro' and mechanism.dimension == 3
            else 1)
    axes = [''] if size == 1 else [f'.{"xyz"[k]}' for k in range(size)]
    factor = mechanism.drives[sensor.drive].current if sensor.kind == 'current' else 1.0
    return [Channel(name + axis, sensor, k, sensor.name + axis, _zero(mechanism, sensor, k), factor)
            for k, axis in enumerate(axes)]


def _zero(mechanism: MechanismDescription, sensor: Sensor, k: int) -> float:
    """A gauge counts from the pressure of the atmosphere, an accelerometer of the base, whose acceleration is that
    beyond gravity, from gravity along its axis."""
    if not sensor.on_base:
        return ATMOSPHERE if sensor.gauge else 0.0
    axis, base = np.array(sensor.axes[k]), mechanism.base
    if base is not None:
        axis = rpy_rotation((base.roll.value, base.pitch.value, 0.0)) @ axis
    return float(axis @ [item.value for item in mechanism.gravity])
