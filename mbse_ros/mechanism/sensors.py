# SPDX-License-Identifier: Apache-2.0
"""Outputs of the sensors of a mechanism as expressions of its motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..description.basics import PointRef
from ..description.model import Sensor
from .assembly import MechanismSystem


@dataclass(frozen=True)
class SensorModel:
    """``channels`` name the components (``encoder``, ``acc.x``, ...) of ``output`` (s,), an expression in the system's
    q, qd, t, u and in ``qdd`` (n,) and ``lam`` (m,), SI; ``stddev`` (s,); ``angular`` (s,): wraps at +-pi."""

    channels: tuple[str, ...]
    output: ca.SX
    qdd: ca.SX
    lam: ca.SX
    stddev: np.ndarray
    angular: tuple[bool, ...]


def sensor_model(system: MechanismSystem) -> SensorModel:
    """All sensors of the description, in the file's order."""
    qdd, lam = ca.SX.sym('qdd', system.n), ca.SX.sym('lam', system.m)
    channels, outputs, stddev, angular = [], [], [], []
    for sensor in system.description.sensors.values():
        if sensor.kind not in _KINDS:       # of the hydraulics
            continue
        output = ca.SX(_KINDS[sensor.kind](system, sensor, qdd, lam)) + system.biases.get(sensor.name, 0.0)
        names = [sensor.name] if output.numel() == 1 else [f'{sensor.name}.{"xyz"[k]}' for k in range(output.numel())]
        channels += names
        outputs.append(output)
        stddev += [sensor.noise] * len(names)
        angular += [sensor.kind == 'inclinometer' or sensor.wraps] * len(names)
    return SensorModel(tuple(channels), ca.vertcat(*outputs) if outputs else ca.SX(0, 1), qdd, lam,
                       np.array(stddev, dtype=float), tuple(angular))


def _rate(system: MechanismSystem, expression: ca.SX) -> ca.SX:
    return ca.jtimes(expression, system.q, system.qd)


def _place(system: MechanismSystem, point: PointRef) -> ca.SX:
    return system.points[str(point)]


def _accelerometer(system: MechanismSystem, sensor: Sensor, qdd: ca.SX, _: ca.SX) -> ca.SX:
    """Specific force ``a - g`` of a point along axes of its body, or of the machine's base."""
    if sensor.on_base:
        return -ca.SX(np.array(sensor.axes, dtype=float)) @ system.gravity
    point, place = sensor.points[0], _place(system, sensor.points[0])
    force = _rate(system, _rate(system, place)) + ca.jtimes(place, system.q, qdd)
    if sensor.gravity:
        force = force - system.gravity
    axes = ca.SX(np.array(sensor.axes, dtype=float))
    return axes @ (system.frames[point.body].rotation.T @ force)


def _inclinometer(system: MechanismSystem, sensor: Sensor, *_: ca.SX) -> ca.SX:
    """In a plane the angle of the x axis from that of the machine; in space that of the x axis above the horizontal, as
    gravity along the axes x and z of the body gives it."""
    rotation = system.frames[sensor.body].rotation
    if system.description.dimension == 2:
        return ca.atan2(rotation[1, 0], rotation[0, 0])
    up = -rotation.T @ system.gravity
    return ca.atan2(up[0], up[2])


# By kind: the output by system, sensor, qdd and lam. The omega of a gyro is in a plane that of the coordinates
# themselves, not the nominal length, in space along the body's axes; the force of a driver is ``-lam`` of its row.
_KINDS: dict[str, Callable[[MechanismSystem, Sensor, ca.SX, ca.SX], ca.SX | float]] = {
    'encoder': lambda system, sensor, *_: system.q[system.names.index(sensor.coordinate)],
    'rate': lambda system, sensor, *_: system.qd[system.names.index(sensor.coordinate)],
    'position': lambda system, sensor, *_: _place(system, sensor.points[0]),
    'velocity': lambda system, sensor, *_: _rate(system, _place(system, sensor.points[0])),
    'gyro': lambda system, sensor, *_: system.frames[sensor.body].omega,
    'accelerometer': _accelerometer,
    'distance': lambda system, sensor, *_: ca.norm_2(_place(system, sensor.points[1])
                                                     - _place(system, sensor.points[0])),
    'inclinometer': _inclinometer,
    'force': lambda system, sensor, _, lam: -lam[system.rows.index(f'drivers.{sensor.driver}')],
    'inclination': lambda system, sensor, *_: system.values(getattr(system.description.base, sensor.axis))}
