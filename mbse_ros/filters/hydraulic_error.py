# SPDX-License-Identifier: Apache-2.0
"""errorEKF_FE of a machine with hydraulics: its error state has the pressures, too (Naya et al., review, section 7.3).

The state is that of the kinematic observer, ``[z, zd, zdd, p, spools, ...]``. Here the machine's own equations of
motion predict it: with the pressures' forces, less friction, they give the accelerations ``m(z, zd, p)``, and a random
walk drives their error ``e = zdd - m`` alone, which stays in the accelerations from step to step as a force on the
model does. Prediction and correction are of the errors ``[dz, dzd, de, dp, ...]``, of which those of the state are
linear functions: ``dzdd = a dz + b dzd + c dp + de`` (its section 7.4).

The payload has a mass that is given, ``nominal_payload``: e carries what another one changes, as it does all else that
the file does not know. A coordinate that no cylinder moves has the acceleration of its drive, which is unknown: its e
is its whole acceleration. So is what pushes at the end of a stroke.
"""

from __future__ import annotations

from typing import Protocol

import casadi as ca
import numpy as np

from ..description.sections.load_payload import MASS
from ..dynamics.state_equations import state_function
from ..machine import Machine
from ..transition.noise import symmetric
from .hydraulic_state import push_scale, state_names, state_parts
from .parts.problem import problem


class Driven(Protocol):
    """What is asked of a ``HydraulicModel``."""

    @property
    def X(self) -> ca.SX:
        """State (nx,), in the model's units."""

    @property
    def dependent(self) -> ca.SX:
        """Dependent coordinates of the mechanism."""

    @property
    def deviation(self) -> ca.SX:
        """Standard deviations (cylinders,) of the pistons' speeds, m/s."""

    @property
    def own(self) -> ca.SX:
        """m (g,), SI."""

    @property
    def slopes(self) -> ca.SX:
        """Its derivatives (g, nx) by X."""


def own_accelerations(machine: Machine, names: tuple[str, ...], X: ca.SX, deviation: ca.SX) -> tuple[ca.SX, ca.SX]:
    """m (g,), SI, in the mechanism's q, the state ``X`` (nx,), in the model's units, and the payload's mass; its exact
    derivatives (g, nx) by X, along the loops. ``deviation`` (cylinders,), m/s: standard deviations of the pistons'
    speeds, over which the friction is smoothed: at rest it is else steeper than speeds are known."""
    part, system, g = state_parts(names, X), problem(machine.model, ()).system, len(machine.coordinates)
    free = [k for k in range(g) if k not in machine.actuated]
    zd, S = part['velocity'], machine.piston_rates
    pushes, speeds = part['pushes'] * push_scale(machine), S @ zd
    w = S.T @ (machine.actuators.forces(pushes) - machine.actuators.resisting_forces(
        system.q[machine.pistons], speeds, pushes, deviation))
    rates = state_function(system, system.values.symbol, True)
    states = {key: part['base'][k] for k, key in enumerate(machine.base_states.values())}
    states |= dict(zip([MASS], nominal(machine)))
    values = machine.parameters.whole(states)
    still = ca.SX.zeros(system.u.numel() - g)

    def at(along: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        zdd, A, B, *_ = rates(system.q, zd, ca.vertcat(still, along), 0.0, values)
        return zdd, A[g:, :], B[g:, -g:]
    drive = ca.SX.zeros(g)
    if free:
        zdd, _, inverse = at(w)
        drive[free] = ca.solve(ca.densify(inverse[free, free]), part['acceleration'][free] - zdd[free])
    zdd, A, inverse = at(w + drive)
    slopes = inverse @ ca.jacobian(w, X)
    slopes[:, :2 * g] += A
    slopes[:, :g] += inverse @ ca.jacobian(w, system.q) @ machine.reduced.R
    tilted = [names.index(name) for name in machine.base_states]
    if tilted:
        slopes[:, tilted] += ca.jacobian(zdd, X[tilted])
    if free:
        onto = ca.solve(ca.densify(inverse[free, free].T), inverse[:, free].T).T
        slopes = slopes - onto @ slopes[free, :]
        slopes[:, [2 * g + k for k in free]] += onto
    zdd[free], slopes[free, :] = 0.0, 0.0
    return ca.densify(zdd), ca.densify(slopes)


def errors_of_state(machine: Machine, model: Driven, X: ca.SX, P: ca.SX, dependent: ca.SX
                    ) -> tuple[ca.SX, ca.SX, ca.SX]:
    """State and covariance with e in the places of zdd, and V (nx, nx), the derivatives of the state by it."""
    own, V = _at(machine, model, X, P, dependent)
    inverse = 2 * ca.SX.eye(X.numel()) - V      # V - I is nilpotent
    return X - own, symmetric(ca.densify(inverse @ P @ inverse.T)), V


def state_of_errors(machine: Machine, model: Driven, X: ca.SX, P: ca.SX, dependent: ca.SX
                    ) -> tuple[ca.SX, ca.SX]:
    """Back from ``errors_of_state``."""
    own, V = _at(machine, model, X, P, dependent)
    return X + own, symmetric(ca.densify(V @ P @ V.T))


def _at(machine: Machine, model: Driven, X: ca.SX, P: ca.SX, dependent: ca.SX) -> tuple[ca.SX, ca.SX]:
    """m at its places in a state (nx,), and V."""
    own, slopes = ca.substitute([model.own, model.slopes], [model.X, model.dependent, model.deviation],
                                [X, dependent, deviations(machine, X, P, dependent)])
    g, V, whole = own.numel(), ca.SX.eye(X.numel()), ca.SX.zeros(X.numel())
    V[2 * g:3 * g, :] += slopes
    whole[2 * g:3 * g] = own
    return whole, V


def deviations(machine: Machine, X: ca.SX, P: ca.SX, dependent: ca.SX) -> ca.SX:
    """Standard deviations (cylinders,), m/s, of the pistons' speeds at a state (nx,) with its covariance."""
    g = len(machine.coordinates)
    S = ca.substitute(machine.piston_rates, machine.system.q, machine.joined(dependent, X[:g]))
    return ca.sqrt(ca.fmax(ca.sum2((S @ P[g:2 * g, g:2 * g]) * S), 0))


def fastest_friction(machine: Machine) -> float:
    """Bound on the rate, 1/s, at which friction slows the machine at its start, where friction is steepest: at rest."""
    names, _ = state_names(machine)
    X, g = ca.SX.sym('X', len(names)), len(machine.coordinates)
    _, slopes = own_accelerations(machine, names, X, ca.SX.zeros(len(machine.actuators)))
    symbols = nominal(machine)
    slopes = ca.substitute(slopes[:, g:2 * g], ca.vertcat(*symbols), ca.SX.zeros(len(symbols))) if symbols else (
        slopes[:, g:2 * g])
    found = ca.Function('slopes', [machine.system.q, X, machine.parameters.symbol], [slopes])(
        machine.model.start.q, np.zeros(len(names)), machine.parameters.mean).full()
    return float(np.abs(found).sum(axis=1).max())


def nominal(machine: Machine) -> list[ca.SX]:
    """Symbol of the payload's mass, if the machine has a payload."""
    return [] if machine.description.payload is None else [machine.payload]
