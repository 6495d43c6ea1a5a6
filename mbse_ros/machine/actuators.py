# SPDX-License-Identifier: Apache-2.0
"""What moves a machine and has its force measured: cylinders, by the pressures in their chambers, and drives, by the
effort of their motor. To equations of motion, observer and calibration both are actuators: a force along a coordinate,
less friction.

Vectors (actuators,) have the cylinders first, then the drives; vectors (pushes,) of what the forces are made of have
the pressures of the volumes, Pa, then the efforts of the drives, N m or N.
"""

from __future__ import annotations

from dataclasses import fields

import casadi as ca
import numpy as np

from ..description.machine_parts import BalanceError, Drive
from ..hydraulics.circuit import Circuit, brown_mcphee, directed, smoothed

SPAN = 20.0     # MPa on the pistons: settings for cylinders in MPa are, of a drive, of so much at its largest effort


class Actuators:
    """Of one machine: its cylinders and drives, as expressions; SI."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit, self._values = circuit, circuit.values
        self._drives: dict[str, Drive] = circuit.description.drives
        self.volumes = circuit.volumes
        self.names = (*circuit.cylinders, *self._drives)
        self.coordinates = (*circuit.cylinders, *(drive.coordinate for drive in self._drives.values()))
        self.entries = (*(f'pressure/{name}' for name in self.volumes), *(f'effort/{name}' for name in self._drives))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def act(self) -> np.ndarray:
        """(actuators, pushes): whether a pressure or an effort is part of an actuator's force."""
        chambers = np.kron(np.eye(len(self.circuit.cylinders)), [1.0, 1.0]) @ self.circuit.T_Vcyl.T
        found = np.zeros((len(self), len(self.entries)), dtype=bool)
        found[:len(chambers), :len(self.volumes)] = chambers > 0
        found[len(chambers):, len(self.volumes):] = np.eye(len(self._drives), dtype=bool)
        return found

    @property
    def stroke(self) -> np.ndarray:
        """Range (actuators, 2) of each position, m; of the joint of a drive without end: its limits are the
        controller's, which no stop makes."""
        cylinders = self.circuit.description.cylinders.values()
        return np.array([*([0.0, c.stroke.value] for c in cylinders), *([-np.inf, np.inf] for _ in self._drives)],
                        dtype=float).reshape(-1, 2)

    @property
    def transitions(self) -> list[float]:
        """Speeds (actuators,), m/s or rad/s, up to which friction changes its sign, as the file has them."""
        frictions = [item.friction.transition_velocity for item in self.circuit.description.cylinders.values()]
        frictions += [item.friction.transition_velocity for item in self._drives.values()]
        return [number.value for number in frictions]

    @property
    def ends(self) -> list[float]:
        """Lengths (actuators,), m, of the dampers at the ends of the strokes; 0 without."""
        stops = [cylinder.end_stop for cylinder in self.circuit.description.cylinders.values()]
        return [*(0.0 if stop is None else stop.length.value for stop in stops), *(0.0 for _ in self._drives)]

    @property
    def errors(self) -> list[tuple[str, BalanceError | None, float]]:
        """Of each actuator the key of the error of the force balance that the file states, the error, and what 1 N, or
        1 N m, is in MPa on the pistons."""
        found: list[tuple[str, BalanceError | None, float]] = [
            (f'cylinders.{name}.force_error', item.force_error, 1e-6 * item.count / item.piston_area)
            for name, item in self.circuit.description.cylinders.items()]
        return found + [(f'drives.{name}.force_error', item.force_error, SPAN / item.largest)
                        for name, item in self._drives.items()]

    @property
    def force_unit(self) -> str:
        """Of the forces along the coordinates: 'N', 'N m', or both."""
        found = ['N' for _ in self.circuit.cylinders] + [drive.effort for drive in self._drives.values()]
        return ' or '.join(sorted(set(found)))

    @property
    def units(self) -> ca.SX:
        """Force (actuators,), N or N m, of 1 MPa on the pistons; of a drive of as large a share of its effort."""
        return ca.vertcat(self.circuit.areas()[0::2] * 1e6, *(drive.largest / SPAN for drive in self._drives.values()))

    def forces(self, pushes: ca.SX) -> ca.SX:
        """Forces (actuators,), N or N m, before friction."""
        pressures, efforts = _split(pushes, len(self.volumes))
        return ca.vertcat(self.circuit.hydraulic_forces(pressures), efforts)

    def resisting_forces(self, z: ca.SX, zd: ca.SX, pushes: ca.SX, deviation: ca.SX | None = None) -> ca.SX:
        """All that works against the motion of each (actuators,), N or N m, at positions, m or rad, and speeds;
        ``deviation`` (actuators,): standard deviations of the speeds, over which the friction is smoothed."""
        c, v = len(self.circuit.cylinders), len(self.volumes)
        near, far = (None, None) if deviation is None else _split(deviation, c)
        (speeds, rates), (pressures, efforts) = _split(zd, c), _split(pushes, v)
        own = self.circuit.resisting_forces(_split(z, c)[0], speeds, pressures, near)
        return ca.vertcat(own, self._friction(rates, efforts, far))

    def friction_forces(self, zd: ca.SX, pushes: ca.SX) -> ca.SX:
        """Friction alone (actuators,), N or N m."""
        (speeds, rates), (pressures, efforts) = (
            _split(zd, len(self.circuit.cylinders)), _split(pushes, len(self.volumes)))
        return ca.vertcat(self.circuit.friction_forces(speeds, pressures), self._friction(rates, efforts, None))

    def friction_signs(self, zd: ca.SX, deviation: ca.SX) -> ca.SX:
        """Mean sign of each friction (actuators,), -1 to 1, at velocities known to ``deviation``."""
        c = len(self.circuit.cylinders)
        return ca.vertcat(self.circuit.friction_signs(_split(zd, c)[0], _split(deviation, c)[0]), *(
            ca.tanh(4 * zd[i] / smoothed(self._values(drive.friction.transition_velocity), deviation[i]))
            for i, drive in enumerate(self._drives.values(), c)))

    def friction_bounds(self, pushes: ca.SX) -> ca.SX:
        """Largest friction of each at standstill (actuators,), N or N m."""
        v, bounds = len(self.volumes), []
        for i, drive in enumerate(self._drives.values(), v):
            c = self._numbers(drive)
            scale = c['scale'] * ca.fmax(c['forward_scale'], c['backward_scale'])
            bounds.append(scale * (ca.fmax(c['static'], c['coulomb']) + c['load'] * ca.fabs(pushes[i])))
        return ca.vertcat(self.circuit.friction_bounds(_split(pushes, v)[0]), *bounds)

    def _friction(self, zd: ca.SX, efforts: ca.SX, deviation: ca.SX | None) -> ca.SX:
        forces = []
        for i, drive in enumerate(self._drives.values()):
            c, both = self._numbers(drive), drive.friction
            transition = smoothed(c['transition_velocity'], 0 if deviation is None else deviation[i])
            force = brown_mcphee(zd[i], c['coulomb'], c['static'], transition, c['viscous'])
            force = force + c['load'] * ca.fabs(efforts[i]) * ca.tanh(4 * zd[i] / transition)
            scale = c['scale'] if both.forward_scale is None is both.backward_scale else (
                c['scale'] * directed(zd[i], c['forward_scale'], c['backward_scale'], transition))
            forces.append(scale * force)
        return ca.vertcat(ca.SX(0, 1), *forces)

    def _numbers(self, drive: Drive) -> dict[str, ca.SX | float]:
        """Numbers of a drive's friction; those of a direction that the file leaves out are 1."""
        found = {item.name: getattr(drive.friction, item.name) for item in fields(drive.friction)}
        return {name: 1.0 if number is None else self._values(number) for name, number in found.items()}


def _split(x: ca.SX, count: int) -> list[ca.SX]:
    """The first ``count`` entries of a column, and the others; a slice of a single entry that takes none is a row."""
    parts: list[ca.SX] = ca.vertsplit(x, [0, count, x.shape[0]])
    return parts
