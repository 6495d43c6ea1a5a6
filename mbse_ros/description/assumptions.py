# SPDX-License-Identifier: Apache-2.0
"""What is taken as uncertain of a machine that weighs where its file says nothing.

No sensor is exact, and none of these errors shows in a log. The limits of common data sheets are taken as those of a
uniform distribution (JCGM 100:2008, Guide to the expression of uncertainty in measurement, 4.3.7), whose standard
deviation is the limit over the square root of 3. A number that the file states counts as stated: `offset: 0 kPa` is
exact.
"""

from __future__ import annotations

from dataclasses import replace
from math import radians, sqrt

from .basics import Scalar
from .machine_parts import Base, Hydraulics
from .model import MechanismDescription, Sensor
from .typical import ASSUMED as BEGIN

RANGES = (1e6, 1.6e6, 2.5e6, 4e6, 6e6, 1e7, 1.6e7, 2.5e7, 4e7, 6e7, 1e8)    # Pa: in which pressure sensors are sold
USUAL = 4e7             # Pa: range of a pressure sensor of a machine whose supplies are not known
PRESSURE = 0.0025       # of its range: limit of a pressure sensor's offset; of its gain
EFFORT = 0.01           # of the drive's largest effort: limit of the offset of what measures it ...
EFFORT_GAIN = 0.1       # ... and of its gain
POSITION = 0.002        # of the coordinate's range: limit of the zero of its sensor, as mounted
INCLINATION = radians(0.3)      # limit of the zero of an inclination sensor, as mounted
ACCELERATION = 0.1      # m/s2: limit of the zero of an accelerometer on the base, as mounted: 10 mg
LEVEL = radians(1.0)    # standard deviation of roll and pitch of a machine that stands where work is
ASSUMED = f'{BEGIN}, as the file states nothing'


def with_assumptions(machine: MechanismDescription) -> MechanismDescription:
    """The machine with assumed deviations of its pressure, effort and position sensors' offsets and gains, and of its
    base's inclination, where its file states none; one without a payload as it is."""
    if not machine.every_payload or machine.hydraulics is None:
        return machine
    usual = _usual_range(machine.hydraulics)
    sensors = {name: _sensor(sensor, usual, machine, machine.hydraulics) for name, sensor in machine.sensors.items()}
    base = machine.base
    if base is None and machine.dimension == 3:
        base = Base(level('roll'), level('pitch'))
    return replace(machine, sensors=sensors, base=base)


def level(axis: str) -> Scalar:
    """An angle of the base that the file leaves out."""
    return Scalar(0.0, stddev=LEVEL, key=f'base.{axis}', source=ASSUMED)


def is_assumed(number: Scalar) -> bool:
    """Whether the file leaves a number out, or says as its source that it is assumed."""
    return number.source.startswith(BEGIN)


def _usual_range(hydraulics: Hydraulics) -> float:
    """Range of a pressure sensor, Pa: the next usual one above the highest supply."""
    highest = max((supply.value for supply in hydraulics.supplies.values()), default=USUAL)
    return next((limit for limit in RANGES if limit > highest), highest)


def _sensor(sensor: Sensor, usual: float, machine: MechanismDescription, hydraulics: Hydraulics) -> Sensor:
    """With deviations of what its file leaves out."""
    key = f'sensors.{sensor.name}'
    if sensor.kind == 'pressure' and sensor.volume in hydraulics.volumes:
        span = usual if sensor.range is None else sensor.range[1] - sensor.range[0]
        return replace(sensor, bias=sensor.bias or (_uniform(f'{key}.offset', PRESSURE * span),),
                       gain=sensor.gain or _uniform(f'{key}.gain', PRESSURE, 1.0))
    if sensor.drive:
        drive = machine.drives[sensor.drive]
        span = drive.largest * (drive.current if sensor.kind == 'current' else 1.0)
        return replace(sensor, bias=sensor.bias or (_uniform(f'{key}.offset', EFFORT * span),),
                       gain=sensor.gain or _uniform(f'{key}.gain', EFFORT_GAIN, 1.0))
    if sensor.bias:
        return sensor
    if sensor.on_base:
        keys = [f'{key}.bias[{k}]' for k in range(len(sensor.axes))] if len(sensor.axes) > 1 else [f'{key}.bias']
        return replace(sensor, bias=tuple(_uniform(name, ACCELERATION) for name in keys))
    if sensor.kind == 'inclination':
        return replace(sensor, bias=(_uniform(f'{key}.bias', INCLINATION),))
    reach = _span(machine, sensor.coordinate) if sensor.kind == 'encoder' else None
    return sensor if reach is None else replace(sensor, bias=(_uniform(f'{key}.bias', POSITION * reach),))


def _uniform(key: str, limit: float, value: float = 0.0) -> Scalar:
    """A number that the file leaves out and that is between two limits."""
    return Scalar(value, stddev=limit / sqrt(3), key=key, source=ASSUMED)


def _span(machine: MechanismDescription, coordinate: str) -> float | None:
    """Range of a coordinate, of a piston or of a joint with limits."""
    if coordinate in machine.cylinders:
        return machine.cylinders[coordinate].stroke.value
    named = machine.coordinates.get(coordinate)
    joint = machine.joints.get(named.joint if named else '')
    return joint.limits[1] - joint.limits[0] if joint is not None and joint.limits else None
