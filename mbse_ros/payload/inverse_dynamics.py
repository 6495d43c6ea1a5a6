# SPDX-License-Identifier: Apache-2.0
"""Payload mass by inverse dynamics: the residual of the equations of motion is affine in the mass.

Paper 003 Eqs. 50-57. ``g(m) = Mbar(z, m) zdd - Qbar(z, zd, m) - F_act = g0 + g1 m``; least squares over the cylinders,
weighted by the covariance of g that follows from the observer's, gives the mass and its information 1/variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..compiled import Scan
from ..dynamics.position_problem import newton_step
from ..estimators.hydraulic_model import state_names
from ..machine import Machine

NEWTON = 2


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
    """One sample ``(joints, X, p) -> (joints+, y)``; ``p`` = covariance of X (column by column) and the parameters.

    ``y`` = information, 1/kg2; information times mass, 1/kg; share of acceleration; information times the derivative
    of the mass with respect to each uncertain parameter. Nothing is divided by g1, which crosses zero in free fall.
    """
    r, parameters = residual(machine), machine.parameters.symbol
    n, m = r.X.numel(), ca.SX.sym('m')
    P = ca.SX.sym('P', n, n)
    g = r.g0 + r.g1 * m
    J_X = ca.jacobian(g, r.X)
    low, high = machine.description.payload.limits
    margin = high - low
    first = ca.fmin(ca.fmax(-ca.dot(r.g1, r.g0) / ca.fmax(ca.sumsqr(r.g1), 1e-12), low - margin), high + margin)
    weight = ca.inv(ca.substitute(J_X @ P @ J_X.T, m, first))
    row = r.g1.T @ weight
    information = row @ r.g1
    sensitivity = -row @ ca.substitute(ca.jacobian(g, parameters), m, first)
    y = ca.vertcat(information, -row @ r.g0, r.share, sensitivity.T)
    z = r.X[:len(machine.cylinders)]
    newton = ca.Function('newton', [r.joints, r.X, parameters], [newton_step(machine.system, r.joints, z)])
    at = ca.Function('at', [r.joints, r.X, P, parameters], [y])
    joints, p = ca.SX.sym('joints', r.joints.numel()), ca.SX.sym('p', n * n + parameters.numel())
    X, solved = ca.SX.sym('X', n), joints
    for _ in range(NEWTON):
        solved = newton(solved, X, p[n * n:])
    y = at(solved, X, ca.reshape(p[:n * n], n, n), p[n * n:])
    return ca.Function('mbse_payload', [joints, X, p], [solved, y], ['x', 'u', 'p'], ['x_next', 'y'])


@dataclass(frozen=True)
class MassSamples:
    """Samples (n,) of a segment: ``information`` 1/kg2, ``mass`` kg, ``share`` of acceleration, and
    ``sensitivity`` (n, parameters), kg per unit of each uncertain parameter."""

    information: np.ndarray
    mass: np.ndarray
    share: np.ndarray
    sensitivity: np.ndarray


class InverseDynamics:
    """Mass samples of one machine; keeps the joint angles between segments as the start of the position problem."""

    def __init__(self, machine: Machine, backend: str = 'auto') -> None:
        self.machine = machine
        self._scan = Scan(sample_step(machine), backend)
        self._joints: np.ndarray | None = None

    def reset(self) -> None:
        """Forget the joint angles."""
        self._joints = None

    def process(self, mean: np.ndarray, covariance: np.ndarray) -> MassSamples:
        """Samples for states (n, nx), SI, with the covariance (nx, nx) of the last.

        Raises PositionProblemError where the cylinders cannot reach.
        """
        if self._joints is None:
            z = mean[0, :len(self.machine.cylinders)]
            self._joints = self.machine.position_problem.solve(z)[:len(self.machine.system.joints)]
        p = np.concatenate([covariance.ravel(), self.machine.parameters.mean])
        joints, y = self._scan(self._joints, mean, p)
        self._joints = joints if np.isfinite(joints).all() else None
        with np.errstate(divide='ignore', invalid='ignore'):
            return MassSamples(y[:, 0], y[:, 1] / y[:, 0], y[:, 2], y[:, 3:] / y[:, :1])


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
