# SPDX-License-Identifier: Apache-2.0
"""Channels of a machine: one name for each number that a sensor gives, the same in bags, topics and estimates.

``position/<coordinate>`` of strokes and encoders, ``position/<sensor>`` of inclinometers and distances,
``position/base_roll`` and ``base_pitch``; ``velocity/<coordinate>`` of rates; ``gyro/<sensor>`` and
``accelerometer/<sensor>``, with ``.x``, ``.y``, ``.z`` where there are several; ``pressure/<volume or supply>``.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..description.model import MechanismDescription, Sensor
from ..errors import DescriptionError

ATMOSPHERE = 101_325.0      # Pa: a gauge measures from here
ORDER = ('position', 'velocity', 'gyro', 'accelerometer', 'pressure')
_KIND = {'encoder': 'position', 'inclinometer': 'position', 'distance': 'position', 'inclination': 'position',
         'rate': 'velocity', 'gyro': 'gyro', 'accelerometer': 'accelerometer', 'pressure': 'pressure'}


@dataclass(frozen=True)
class Channel:
    """``index``: which of the values of ``sensor`` it is."""

    name: str
    sensor: Sensor
    index: int = 0

    @property
    def kind(self) -> str:
        """The part before the stroke."""
        return self.name.partition('/')[0]

    @property
    def nominal(self) -> tuple[float, float, float]:
        """``(gain, offset, zero)`` of a sample ``gain (value - zero) + offset``, SI, by the nominal numbers."""
        sensor = self.sensor
        gain = 1.0 if sensor.gain is None else sensor.gain.value
        return gain, sensor.bias[self.index].value if sensor.bias else 0.0, ATMOSPHERE if sensor.gauge else 0.0


def machine_channels(machine: MechanismDescription) -> tuple[Channel, ...]:
    """Channels of all sensors, by kind, then in the file's order; raises DescriptionError."""
    found = [channel for sensor in machine.sensors.values() for channel in _channels(machine, sensor)]
    names = [channel.name for channel in found]
    for channel in found:
        if names.count(channel.name) > 1:
            raise DescriptionError(machine.file, f'sensors.{channel.sensor.name}', channel.name,
                                   'a name that no other channel of the machine has')
    return tuple(sorted(found, key=lambda channel: ORDER.index(channel.kind)))


def _channels(machine: MechanismDescription, sensor: Sensor) -> list[Channel]:
    if sensor.kind not in _KIND:
        raise DescriptionError(machine.file, f'sensors.{sensor.name}.kind', sensor.kind,
                               'a sensor of a machine: stroke, ' + ', '.join(_KIND))
    owner = sensor.volume or sensor.coordinate or (f'base_{sensor.axis}' if sensor.axis else sensor.name)
    name = f'{_KIND[sensor.kind]}/{owner}'
    size = (len(sensor.axes) if sensor.kind == 'accelerometer'
            else 3 if sensor.kind == 'gyro' and machine.dimension == 3 else 1)
    return [Channel(name if size == 1 else f'{name}.{"xyz"[k]}', sensor, k) for k in range(size)]
