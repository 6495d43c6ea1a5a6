# SPDX-License-Identifier: Apache-2.0
"""Payload mass by inverse dynamics: the residual of the equations of motion is affine in the mass.

Paper 003 Eqs. 50-57. ``g(m) = Mbar(z, m) zdd - Qbar(z, zd, m) - F_act = g0 + g1 m``; least squares over the cylinders,
weighted by the covariance of g that follows from the observer's, gives the mass and its information 1/variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

import casadi as ca
import numpy as np

from ..compiled import Scan
from ..dynamics.position_problem import newton_step
from ..errors import PositionProblemError
from ..estimators.hydraulic_model import state_names
from ..machine import Machine
from .settings import PayloadSettings

NEWTON = 2
GATES = ('open', 'outside the stroke', 'not observable', 'too slow', 'accelerating')


@dataclass(frozen=True)
class Residual:
    """``g0 + g1 m`` (cylinders,), N, as expressions in joints, the observer's state X (SI) and the parameters.

    ``share`` is the part of g1 that comes from motion, relative to its static part: 0 at rest, -1 in free fall.
    """

    joints: ca.SX
    X: ca.SX
    g0: ca.SX
    g1: ca.SX
    share: ca.SX


def residual(machine: Machine) -> Residual:
    """Residual of the equations of motion (paper 003 Eq. 55) at joint angles solved for the piston positions."""
    names, _ = state_names(machine)
    X, joints = ca.SX.sym('X', len(names)), ca.SX.sym('joints', len(machine.system.joints))
    z, zd, zdd, p = (X[[i for i, n in enumerate(names) if n.startswith(kind)]]
                     for kind in ('position', 'velocity', 'acceleration', 'pressure'))
    reduced, circuit, payload = machine.reduced, machine.circuit, machine.system.payload
    force = circuit.hydraulic_forces(p) - circuit.friction_forces(zd, p)
    g = ca.substitute(reduced.Mbar @ zdd - reduced.Qbar, ca.vertcat(machine.system.q, reduced.zd),
                      ca.vertcat(newton_step(machine.system, joints, z), z, zd)) - force
    g1 = ca.jacobian(g, payload)
    static = ca.substitute(g1, ca.vertcat(zd, zdd), ca.SX.zeros(2 * z.numel()))
    share = ca.sqrt(ca.sumsqr(g1 - static) / ca.sumsqr(static))
    return Residual(joints, X, ca.substitute(g, payload, 0), g1, share)


def sample_step(machine: Machine) -> ca.Function:
    """One sample ``(x, X, p) -> (x+, y)``.

    ``x`` = joint angles, start of the position problem; clean samples so far. ``p`` = covariance of X (column by
    column), gates (speed m/s, share of acceleration, information 1/kg2, margin m), reference mass, kg, uncertain
    parameters. The weights are taken at the reference mass: at a sample's own they would depend on its error, and a
    mean weighed so is too low.
    ``y`` = information, 1/kg2; information times mass, 1/kg; information times the derivative of the mass with respect
    to each parameter; gate that is closed (0: none). Nothing is divided by g1, which crosses zero in free fall.
    """
    r, parameters = residual(machine), machine.parameters.symbol
    n, m, count = r.X.numel(), ca.SX.sym('m'), len(machine.cylinders)
    P, gates, reference = ca.SX.sym('P', n, n), ca.SX.sym('gates', 4), ca.SX.sym('reference')
    g = r.g0 + r.g1 * m
    J_X = ca.jacobian(g, r.X)
    low, high = machine.description.payload.limits
    margin = high - low
    first = ca.fmin(ca.fmax(-ca.dot(r.g1, r.g0) / ca.fmax(ca.sumsqr(r.g1), 1e-12), low - margin), high + margin)
    weight = ca.inv(ca.substitute(J_X @ P @ J_X.T, m, reference))
    row = r.g1.T @ weight
    information = row @ r.g1
    sensitivity = -row @ ca.substitute(ca.jacobian(g, parameters), m, first)
    closed = _closed_gate(machine, r, information, gates)
    y = ca.vertcat(information, -row @ r.g0, sensitivity.T, closed)
    newton = ca.Function('newton', [r.joints, r.X, parameters], [newton_step(machine.system, r.joints, r.X[:count])])
    at = ca.Function('at', [r.joints, r.X, P, gates, reference, parameters], [y])
    x, p = ca.SX.sym('x', r.joints.numel() + 1), ca.SX.sym('p', n * n + 5 + parameters.numel())
    X, solved, values = ca.SX.sym('X', n), x[:-1], p[n * n + 5:]
    for _ in range(NEWTON):
        solved = newton(solved, X, values)
    y = at(solved, X, ca.reshape(p[:n * n], n, n), p[n * n:n * n + 4], p[n * n + 4], values)
    x_next, y = ca.cse([ca.vertcat(solved, x[-1] + (y[-1] == 0)), y])
    return ca.Function('mbse_payload', [x, X, p], [x_next, y], ['x', 'u', 'p'], ['x_next', 'y'])


def _closed_gate(machine: Machine, r: Residual, information: ca.SX, gates: ca.SX) -> ca.SX:
    """Number of the first closed gate, as in ``GATES``; 0 when all are open."""
    count = len(machine.cylinders)
    z, speed, stroke = r.X[:count], ca.fabs(r.X[count:2 * count]), ca.DM(machine.stroke)
    inside = ca.logic_and(ca.mmin(z - stroke[:, 0]) > gates[3], ca.mmin(stroke[:, 1] - z) > gates[3])
    tests = (inside, information >= gates[2], ca.mmin(speed) >= gates[0], r.share <= gates[1])
    closed = ca.SX(0)
    for number, passed in reversed(list(enumerate(tests, 1))):
        closed = ca.if_else(passed, closed, number)
    return closed


@dataclass(frozen=True)
class MassSamples:
    """Samples (n,) of a segment: ``rows`` (n, 2 + parameters) = information w, 1/kg2, w times mass, w times the
    derivatives of the mass; ``closed`` (n,) number of the gate that is closed; ``clean`` how many have none closed."""

    rows: np.ndarray
    closed: np.ndarray
    clean: int


class InverseDynamics:
    """Mass samples of one machine; keeps the joint angles between segments as the start of the position problem."""

    def __init__(self, machine: Machine, backend: str = 'auto') -> None:
        self.machine = machine
        self._scan = Scan(sample_step(machine), backend)
        self._size = len(state_names(machine)[0]) ** 2
        self._p = np.concatenate([np.zeros(self._size + 5), machine.parameters.mean])
        self.reset()

    def configure(self, settings: PayloadSettings) -> None:
        """Set the gates."""
        s = settings
        self._p[self._size:self._size + 4] = [s.min_speed, s.max_acceleration_share, s.max_sample_stddev ** -2,
                                              s.stroke_margin]

    def reset(self) -> None:
        """Forget the joint angles."""
        self._x: np.ndarray | None = None

    def process(self, mean: np.ndarray, covariance: np.ndarray, reference: float | None = None) -> MassSamples:
        """Samples for states (n, nx), SI, with the covariance (nx, nx) of the last; ``reference``: mass, kg, at
        which they are weighed; None: the lower limit of the payload.

        Raises PositionProblemError where the cylinders cannot reach.
        """
        if self._x is None:
            q = self.machine.position_problem.solve(mean[0, :len(self.machine.cylinders)])
            self._x = np.append(q[:len(self.machine.system.joints)], 0.0)
        self._p[:self._size] = covariance.ravel()
        self._p[self._size + 4] = self.machine.description.payload.limits[0] if reference is None else reference
        self._x[-1] = 0.0
        self._x, y = self._scan(self._x, mean, self._p)
        if not isfinite(y[-1, 0]):
            self._x = None
            raise PositionProblemError(float('nan'), NEWTON, mean[-1, :len(self.machine.cylinders)])
        return MassSamples(y[:, :-1], y[:, -1], int(self._x[-1]))


def newton_mass(g: Callable[[float], float], start: float, epsilon: float = 1e-2, iterations: int = 20,
                tolerance: float = 1e-10) -> float:
    """Mass, kg, that makes a scalar residual zero, by the paper's iteration with forward differences (Eqs. 56, 57).

    Kept as the reference of the closed form; NaN when the residual does not depend on the mass.
    """
    mass = start
    for _ in range(iterations):
        value = g(mass)
        slope = (g(mass + epsilon) - value) / epsilon
        if slope == 0.0:
            return float('nan')
        step = value / slope
        mass -= step
        if abs(step) <= tolerance * max(1.0, abs(mass)):
            break
    return mass
