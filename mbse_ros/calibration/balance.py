# SPDX-License-Identifier: Apache-2.0
"""The balance of forces of a machine over many instants: what is missing, and its exact derivatives by all numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from ..description.sections.load_payload import MASS
from ..errors import PositionProblemError, SingularConfigurationError
from ..estimators.force_balance import ForceBalance, force_balance
from ..estimators.hydraulic_state import state_names
from ..machine import Machine
from .windows import Windows

STEADY = 2.0        # times the transition velocity of the friction, from which it moves
SURE = 5.0          # standard deviations of the speed, as well
MARGIN = 0.01       # of the stroke, at its ends
MORE = 1.5          # times half a window, over which the speed may change


@dataclass(frozen=True)
class Moments:
    """Instants (n,) at which forces are looked at: ``near`` (n, n_q - g) and states ``X`` (n, nx) as force_balance has
    them; ``counts`` (n, a): equations whose cylinders move; ``variance`` (n, a) of each by the noise of the samples;
    ``pistons``, ``speeds`` (n, cylinders), m and m/s; ``levers`` (n, a) of the cylinders' forces in the equations."""

    near: np.ndarray
    X: np.ndarray
    counts: np.ndarray
    variance: np.ndarray
    pistons: np.ndarray
    speeds: np.ndarray
    levers: np.ndarray

    def part(self, chosen: np.ndarray) -> Moments:
        """Some of the instants."""
        return Moments(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


class CalibrationBalance:
    """Of one machine, its functions built once. ``equations``: names of its equations, by their cylinders."""

    def __init__(self, machine: Machine) -> None:
        self.machine, (self.names, _) = machine, state_names(machine)
        self.found: ForceBalance = force_balance(machine, self.names)
        self.equations = tuple('+'.join(name for name, own in zip(machine.cylinders, row) if own)
                               for row in self.found.concerns)

    def terms(self, moments: Moments, numbers: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, ...]:
        """What is missing (n, a), N or N m, at ``numbers`` (k,), SI, and masses (n,), kg; its derivatives by the
        numbers (n, a, k) and by the mass (n, a)."""
        n, a, k = len(moments.X), self.found.g.numel(), len(numbers)
        if not n:
            return np.zeros((0, a)), np.zeros((0, a, k)), np.zeros((0, a))
        g, by_numbers, by_mass = map(np.asarray, self._terms(moments.near.T, moments.X.T, numbers,
                                                                         mass[None]))
        return g.T, by_numbers.reshape(a, k, n, order='F').transpose(2, 0, 1), by_mass.T

    @cached_property
    def _terms(self) -> ca.Function:
        p, mass = self.machine.parameters.symbol, self._mass
        found = [self.found.g, ca.jacobian(self.found.g, p), ca.jacobian(self.found.g, mass)]
        return ca.Function('mbse_calibration', [self.found.near, self.found.X, p, mass], [ca.densify(f) for f in found],
                           {'cse': True})

    @cached_property
    def _mass(self) -> ca.SX:
        return self.machine.parameters.states.get(MASS, ca.SX.sym('no_load'))

    @cached_property
    def motion(self) -> ca.Function:
        """``(near, X, p, mass)`` -> pistons, speeds, their derivatives by X, those of g by X, size of the levers."""
        b = self.found
        levers = ca.sqrt(ca.sum2(b.levers ** 2))
        outputs = [b.pistons, b.speeds, ca.densify(b.rates), ca.densify(ca.jacobian(b.g, b.X)), levers]
        inputs = [b.near, b.X, self.machine.parameters.symbol, self._mass]
        return ca.Function('mbse_calibration_motion', inputs, outputs, {'cse': True})

    def moments(self, windows: Windows, half: float, mass: float = 0.0) -> Moments:
        """Of windows of 2 ``half`` s: the mechanism's coordinates, and which equations count. Instants that the
        mechanism cannot reach are left out."""
        near, reached = self.solved(windows.X[:, :len(self.machine.coordinates)])
        w = windows.part(reached)
        n, a, c, nx = len(near), self.found.g.numel(), len(self.machine.cylinders), len(self.names)
        if not n:
            return Moments(near, w.X, *(np.zeros((0, size)) for size in (a, a, c, c, a)))
        found = self.motion(near.T, w.X.T, self.machine.parameters.mean, mass)
        pistons, speeds, rates, slopes, levers = map(np.asarray, found)
        pistons, speeds, levers = pistons.T, speeds.T, levers.T
        rates, slopes = (item.reshape(size, nx, n, order='F').transpose(2, 0, 1) for item, size in
                         ((rates, c), (slopes, a)))
        variance = np.einsum('nai,nij,naj->na', slopes, w.covariance, slopes)
        moving = self._moving(pistons, speeds, rates, w, half)
        counts = np.array([moving[:, row].all(axis=1) for row in self.found.concerns]).T
        return Moments(near, w.X, counts, variance, pistons, speeds, levers)

    def _moving(self, pistons: np.ndarray, speeds: np.ndarray, rates: np.ndarray, w: Windows, half: float
                ) -> np.ndarray:
        """Cylinders (n, c) whose friction is known by their motion over the whole window, inside their stroke."""
        g = len(self.machine.coordinates)
        change = np.abs(np.einsum('nci,ni->nc', rates[:, :, g:2 * g], w.X[:, 2 * g:3 * g])) * half * MORE
        doubt = np.sqrt(np.maximum(np.einsum('nci,nij,ncj->nc', rates, w.covariance, rates), 0.0))
        cylinders = self.machine.description.cylinders.values()
        least = STEADY * np.array([cylinder.friction.transition_velocity.value for cylinder in cylinders])
        low, high = self.machine.stroke.T
        room = MARGIN * (high - low) + np.array([0.0 if c.end_stop is None else c.end_stop.length.value
                                                 for c in cylinders])
        inside = (pistons > low + room) & (pistons < high - room)
        return inside & (np.abs(speeds) - change > np.maximum(least, SURE * doubt))

    def solved(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Dependent coordinates (r, n_q - g) along positions (n, g), and which (n,) of them are reached."""
        machine, q = self.machine, None
        found, reached = [], np.zeros(len(z), dtype=bool)
        for k, row in enumerate(z):
            try:
                q = machine.position(row, q)
            except (PositionProblemError, SingularConfigurationError):
                q = None
                continue
            found.append(q[machine.system.dependent])
            reached[k] = True
        return np.array(found).reshape(len(found), len(machine.system.dependent)), reached
