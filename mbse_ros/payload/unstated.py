# SPDX-License-Identifier: Apache-2.0
"""What numbers of drives that the file calls exact may do to the mass, where the force balance shows that the file is
wrong.

A residual shows that something is wrong, and not how much of it looks like a load: a wrong gain is on the arm's own
weight as well, and least squares take most of it for mass and centre. So where the joints contradict each other, gains
and offsets of efforts, and frictions, to which the file gives no deviation get those of a file that leaves them out;
what is a limit there is a standard deviation here, as something is known to be far off.
Their errors ``e`` go to the mass as through the observer: ``(A + prior)^-1 b e``, with the sums ``A`` over the instants
that are weighed of the squares of the derivatives of the force balance by mass and moments, and ``b`` of these times
the derivatives by the numbers (Schmidt's consider parameters, see ``machine.parameters``). A file that states
deviations, or was calibrated, has no such number.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from ..description.assumptions import EFFORT, EFFORT_GAIN
from ..description.basics import Scalar
from ..description.machine_parts import DriveFriction
from ..description.model import MechanismDescription
from ..description.typical import FRICTION_SPREAD
from ..filters.force_balance import force_balance
from ..filters.force_error import LASTS
from ..filters.hydraulic_state import state_names
from ..machine import Machine
from ..machine.actuators import SPAN

UNSTATED = 'gains, offsets and frictions of drives that the file calls exact'       # in a budget
EVERY = 0.1         # s between instants: arms hardly move meanwhile
LEAST = 1e-3        # kg: least load that has a centre
WIDE = 10.0         # standard deviation, in ranges of the payload's limits, of a mass of which nothing is known


def unsure(machine: MechanismDescription) -> tuple[MechanismDescription, tuple[str, ...]]:
    """The machine with deviations of those numbers of its drives that have none, and their keys (k,)."""
    sensors, drives = dict(machine.sensors), dict(machine.drives)
    keys: list[str] = []
    for name, sensor in machine.sensors.items():
        if not sensor.drive:
            continue
        drive, key = machine.drives[sensor.drive], f'sensors.{name}'
        if sensor.gain is not None and not sensor.gain.stddev:
            gain = replace(sensor.gain, stddev=EFFORT_GAIN * abs(sensor.gain.value), key=f'{key}.gain')
            sensor = replace(sensor, gain=gain)
            keys.append(gain.key)
        if sensor.bias and not sensor.bias[0].stddev:
            span = drive.largest * (drive.current if sensor.kind == 'current' else 1.0)
            zero = replace(sensor.bias[0], stddev=EFFORT * span, key=f'{key}.offset')
            sensor = replace(sensor, bias=(zero,))
            keys.append(zero.key)
        sensors[name] = sensor
    for name, drive in machine.drives.items():
        if _exact(drive.friction):
            scale = replace(drive.friction.scale, stddev=FRICTION_SPREAD, key=f'drives.{name}.friction.scale')
            drives[name] = replace(drive, friction=replace(drive.friction, scale=scale))
            keys.append(scale.key)
    return replace(machine, sensors=sensors, drives=drives), tuple(keys)


def _exact(friction: DriveFriction) -> bool:
    numbers = [getattr(friction, name) for name in DriveFriction.__dataclass_fields__]
    return not any(number.stddev for number in numbers if isinstance(number, Scalar)) and friction.coulomb.value > 0.0


def _largest(machine: Machine) -> np.ndarray:
    """Forces (actuators,) of cylinders and drives, N or N m, of which equations miss a share."""
    return np.array([1.0 / (error[2] / SPAN) for error in machine.actuators.errors])


class UnstatedErrors:
    """Of one machine with drives; ``names`` (k,): keys of the numbers without a deviation."""

    def __init__(self, machine: Machine) -> None:
        one = machine.description.drives and machine.description.payload is not None and machine.weighing
        description, self.names = unsure(machine.description) if one else (machine.description, ())
        self._machine = Machine(description) if self.names else machine
        if self.names:
            self._build(self._machine)
        self.reset()

    def _build(self, machine: Machine) -> None:
        names, parameters = state_names(machine)[0], machine.parameters
        balance = force_balance(machine, names)
        own, centre = ([parameters.names.index(name) for name in given] for given in (
            self.names, [f'payload.center[{"xyz".index(axis)}]' for axis in parameters.center]))
        # moments about the centre of the file: forces are linear in them, and a load of 1 kg has the centre's
        by_mass, by_numbers = ca.jacobian(balance.g, machine.payload), ca.jacobian(balance.g, parameters.symbol)
        moments = ca.substitute(by_numbers[:, centre], machine.payload, ca.SX.ones(1))
        size = ca.DM(EFFORT * balance.concerns @ _largest(machine))
        rows = [ca.horzcat(by_mass, moments), by_numbers[:, own] @ ca.diag(ca.DM(parameters.stddev[own]))]
        self._rows = ca.Function('mbse_unstated', [balance.near, balance.X, machine.payload, parameters.symbol], [
            ca.densify(part / ca.repmat(size, 1, part.shape[1])) for part in rows], {'cse': True})
        self._spread = parameters.stddev[centre]
        self._states, (low, high) = len(names), machine.payload_data.limits
        self._range = WIDE * (high - low)

    def reset(self) -> None:
        """Another load."""
        size = 1 + len(self._spread) if self.names else 0
        self._A, self._b = np.zeros((size, size)), np.zeros((size, len(self.names)))
        self._kept, self._since, self.doubted = 0.0, EVERY, False
        self._q = self._machine.model.start.q

    def take(self, state: np.ndarray, mass: float, kept: float, duration: float) -> None:
        """A state (nx,), SI, that is weighed, with the mass by then, kg, ``duration``, s, after the last; ``kept``:
        logarithm of the share of the first information on the mass that still counts.

        Raises PositionProblemError where the cylinders cannot reach."""
        self._since += duration
        if not self.names or self._since < EVERY:
            return
        self._since, g = 0.0, len(self._machine.coordinates)
        self._q = self._machine.model.position(state[:g], self._q)
        H, B = (np.asarray(part) for part in self._rows(
            self._q[self._machine.system.dependent], state[:self._states], mass, self._machine.parameters.mean))
        share = np.exp(min(kept - self._kept, 0.0))
        self._kept = kept
        self._A = share * self._A + H.T @ H * EVERY / LASTS
        self._b = share * self._b + H.T @ B * EVERY / LASTS

    def kg(self, mass: float) -> np.ndarray:
        """What one standard deviation of each number (k,) does to a mass, kg: 0 as long as nothing contradicts the
        file."""
        if not (self.doubted and self._A.any()):
            return np.zeros(len(self.names))
        prior = np.diag(np.append(self._range, self._spread * max(abs(mass), LEAST)) ** -2)
        return np.asarray(np.linalg.solve(self._A + prior, self._b)[0])

    def stddev(self, mass: float) -> float:
        """Of the same together, kg."""
        return float(np.linalg.norm(self.kg(mass)))
