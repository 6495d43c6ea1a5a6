# SPDX-License-Identifier: Apache-2.0
"""Coordinate partitioning: the identities of [S R], and the reduced equations against those with multipliers."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from core_support import crane
from lagrange_by_hand import Lagrange, spatial_machine

from mbse_ros.machine import Machine

PAYLOAD = 30.0


class Setup:
    """A machine's functions, and consistent states of it."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.system, r = machine, machine.system, machine.reduced
        J = ca.jacobian(self.system.Phi, self.system.q)
        inputs = [self.system.q, r.zd, machine.payload, machine.parameters.symbol]
        self.f = ca.Function('f', inputs, [J, r.R, r.S, r.c, r.Mbar, r.Qbar, r.R @ r.zd])
        self.full = ca.Function('full', [self.system.q, self.system.qd, *inputs[2:]], [self.system.M, self.system.Q])
        self.lagrange = Lagrange(machine.description)

    def state(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates that satisfy the constraints, near the start, and piston velocities."""
        rng, q = np.random.default_rng(seed), self.system.start.copy()
        joints = [name for name in self.system.names if name in self.lagrange.moving]
        at = [self.system.names.index(name) for name in joints]
        q[at] += rng.uniform(-0.3, 0.3, len(at))
        frames = self.lagrange.at(dict(zip(joints, q[at])))
        q[self.machine.pistons] = [self.lagrange.piston(frames, name) for name in self.machine.cylinders]
        return q, rng.uniform(-0.5, 0.5, len(at))

    def at(self, q: np.ndarray, zd: np.ndarray) -> list[np.ndarray]:
        return [item.full() for item in self.f(q, zd, PAYLOAD, self.machine.parameters.mean)]


@pytest.fixture(scope='module')
def tree() -> Setup:
    return Setup(Machine(spatial_machine(1)))


@pytest.mark.parametrize('seed', range(5))
def test_S_and_R_are_the_inverse(tree: Setup, seed: int) -> None:
    """``[S R] = inv([J; B])``: J R = 0, B R = I, J S = I, B S = 0; so every velocity keeps the constraints."""
    q, zd = tree.state(seed)
    J, R, S, *_, qd = tree.at(q, zd)
    m, B = len(J), np.eye(len(q))[tree.system.independent]
    np.testing.assert_allclose(np.vstack([J, B]) @ np.hstack([S, R]), np.eye(2 * m), atol=1e-12)
    np.testing.assert_allclose(J @ qd, 0, atol=1e-12)


@pytest.mark.parametrize('seed', range(5))
def test_reduced_equations_are_those_with_multipliers(tree: Setup, seed: int) -> None:
    """``M qdd - J' lam = Q + B' F``, ``J qdd = c`` solved as a whole gives the same accelerations."""
    q, zd = tree.state(seed)
    J, R, S, c, Mbar, Qbar, qd = tree.at(q, zd)
    M, Q = (item.full() for item in tree.full(q, qd, PAYLOAD, tree.machine.parameters.mean))
    force, m = np.array([400.0, -900.0, 250.0]), len(J)
    B = np.eye(len(q))[tree.system.independent]
    right = np.concatenate([Q[:, 0] + B.T @ force, c[:, 0]])
    whole = np.linalg.solve(np.block([[M, -J.T], [J, np.zeros((m, m))]]), right)
    zdd = np.linalg.solve(Mbar, Qbar[:, 0] + force)
    np.testing.assert_allclose(zdd, whole[tree.system.independent], rtol=1e-9)
    np.testing.assert_allclose(R @ zdd + S @ c[:, 0], whole[:len(q)], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(S.T @ (M @ (R @ zdd + S @ c[:, 0]) - Q[:, 0] - B.T @ force), whole[len(q):], rtol=1e-8,
                               atol=1e-8)
    np.testing.assert_allclose(Mbar, Mbar.T, rtol=1e-10)


def test_crane_is_reduced_by_its_lever() -> None:
    """One degree of freedom: with ``L = dz/dtheta``, ``Mbar = M / L^2`` and gravity's force is its moment over L."""
    machine = crane()
    q = machine.position(np.array([0.2]))
    r, parameters = machine.reduced, machine.parameters.mean
    f = ca.Function('f', [machine.system.q, r.zd, machine.payload, machine.parameters.symbol],
                    [r.Mbar, r.Qbar, machine.system.M[0, 0]])
    lengths = [np.hypot(0.3025 * np.cos(a) + 0.105 * np.sin(a) - 0.26,
                        0.3025 * np.sin(a) - 0.105 * np.cos(a) + 1.039986751) for a in q[0] + np.array([-1e-5, 1e-5])]
    lever = (lengths[1] - lengths[0]) / 2e-5
    Mbar, Qbar, M = (float(v) for v in f(q, 0.0, 50.0, parameters))
    assert Mbar == pytest.approx(M / lever ** 2, rel=1e-8)
    reach = (143.66 * (1.229248 * np.cos(q[0]) - 0.055596 * np.sin(q[0]))
             + 50 * (2.89 * np.cos(q[0]) - 0.0246 * np.sin(q[0])))
    assert Qbar == pytest.approx(-9.8066 * reach / lever, rel=1e-8)
