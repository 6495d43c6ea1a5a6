# SPDX-License-Identifier: Apache-2.0
"""Every derivative of the core against the complex step, at random states and at the awkward ones: 1e-8 relative.

The complex step evaluates the expressions themselves (``complex_step.py``), so it shares no differentiation with them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import casadi as ca
import numpy as np
import pytest
from complex_step import derivative, directional, evaluate
from core_support import crane, two_cylinders
from mbse_ros.dynamics.matrix_r import total_jacobian
from mbse_ros.dynamics.position_problem import newton_step
from mbse_ros.estimators.hydraulic_model import HydraulicModel, hydraulic_model
from mbse_ros.estimators.paper_reference import PaperModel
from mbse_ros.machine import Machine, load_machine
from mbse_ros.payload.inverse_dynamics import residual, sample_step
from payload_states import Carrier

MACHINES: dict[str, Callable[[], Machine]] = {
    'crane': crane, 'two_cylinders': two_cylinders, 'simple': lru_cache(lambda: load_machine('lut_simple_crane')),
    'measured': lru_cache(lambda: load_machine('patu655_measured')), 'unknown': lambda: crane('unknown')}
LIMIT = 0.2          # MPa, where the flow turns from laminar to turbulent
PAYLOAD = 60.0


def close(found: np.ndarray, expected: np.ndarray) -> None:
    """1e-8 of the largest element of the row: rows have units of their own."""
    found, expected = np.atleast_2d(found), np.atleast_2d(expected)
    scale = np.max(np.abs(expected), axis=1, keepdims=True) + 1e-300
    np.testing.assert_array_less(np.abs(found - expected) / scale, 1e-8)


def solve_joints(machine: Machine, z: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Joint coordinates at complex piston positions: Newton's step repeated from the real solution."""
    joints, pistons = ca.SX.sym('joints', len(machine.system.joints)), ca.SX.sym('z', len(machine.cylinders))
    step = ca.Function('step', [joints, pistons, machine.parameters.symbol],
                       [newton_step(machine.system, joints, pistons)])
    found = machine.position_problem.solve(np.real(z))[:joints.numel()]
    for _ in range(4):
        found = evaluate(step, [found, z, p])[0]
    return found


def positions(machine: Machine, rng: np.random.Generator) -> np.ndarray:
    return machine.stroke @ [0.0, 1.0] * rng.uniform(0.1, 0.9, len(machine.cylinders))


@pytest.mark.parametrize('name', ['crane', 'two_cylinders', 'simple', 'measured'])
@pytest.mark.parametrize('seed', range(2))
def test_kinematics(name: str, seed: int) -> None:
    """Phi_q, c = -Jdot qd, R = dq/dz."""
    machine, rng = MACHINES[name](), np.random.default_rng(seed)
    system, r, p = machine.system, machine.reduced, machine.parameters.mean
    inputs = [system.q, r.zd, machine.parameters.symbol]
    J = ca.jacobian(system.Phi, system.q)
    phi = ca.Function('phi', [system.q, inputs[2]], [system.Phi])
    velocity = ca.Function('v', [system.q, system.qd, inputs[2]], [J @ system.qd])
    at = ca.Function('at', inputs, [J, r.R, r.c])
    z, zd = positions(machine, rng), rng.normal(size=len(machine.cylinders))
    q = machine.position_problem.solve(z)
    J_found, R, c = (np.array(item) for item in at(q, zd, p))
    qd = R @ zd
    close(J_found, derivative(lambda x: evaluate(phi, [x, p])[0], q))
    close(c, -directional(lambda x: evaluate(velocity, [x, qd, p])[0], q, qd)[:, None])
    close(R[:len(system.joints)], derivative(lambda x: solve_joints(machine, x, p), z))
    np.testing.assert_array_equal(R[len(system.joints):], np.eye(len(z)))


@pytest.mark.parametrize('name', ['crane', 'two_cylinders', 'measured'])
def test_accelerations(name: str) -> None:
    """dzdd/dz along the constraints, and dzdd/dzd (paper 000 Eqs. 21, 30-40)."""
    machine, rng = MACHINES[name](), np.random.default_rng(4)
    system, r, p = machine.system, machine.reduced, machine.parameters.mean
    zdd = ca.solve(r.Mbar, r.Qbar)
    inputs = [system.q, r.zd, system.payload, machine.parameters.symbol]
    f = ca.Function('zdd', inputs, [zdd])
    at = ca.Function('at', inputs, [total_jacobian(zdd, system, r), ca.jacobian(zdd, r.zd)])
    z, zd = positions(machine, rng), rng.normal(size=len(machine.cylinders))
    by_z, by_zd = (np.array(item) for item in at(machine.position_problem.solve(z), zd, PAYLOAD, p))
    close(by_z, derivative(lambda x: evaluate(f, [np.append(solve_joints(machine, x, p), x), zd, PAYLOAD, p])[0], z))
    q = machine.position_problem.solve(z)
    close(by_zd, derivative(lambda x: evaluate(f, [q, x, PAYLOAD, p])[0], zd))


@lru_cache(maxsize=None)
def rates(name: str) -> tuple[HydraulicModel, ca.Function, ca.Function]:
    """The observer's model, its f and its A."""
    machine = MACHINES[name]()
    model = hydraulic_model(machine)
    inputs = [model.X, model.U, machine.parameters.symbol]
    return model, ca.Function('f', inputs, [model.f]), ca.Function('A', inputs, [model.A])


def states(machine: Machine, model: HydraulicModel) -> list[np.ndarray]:
    """Random states, and those round the kinks: at the laminar limit and at a closed spool, from either side."""
    rng, kinds = np.random.default_rng(11), np.array([n.split('/')[0] for n in model.names])
    found = []
    supplies = [s.value / 1e6 for s in machine.description.hydraulics.supplies.values()] or [10.0]
    drops = [LIMIT * (1 + s * 1e-6) * sign for s in (-1, 1) for sign in (-1, 1)] + [0.5 * LIMIT, -1e-9]
    spools = [1e-9, -1e-9, 1e-3, -1e-3, 5.0, -5.0]
    for spool in spools:
        for drop in [None, *drops]:
            X = rng.normal(size=len(kinds)) * 0.3
            X[kinds == 'position'] = positions(machine, rng)
            X[kinds == 'pressure'] = rng.uniform(0.5, 9.0, sum(kinds == 'pressure')) if drop is None else (
                rng.choice(supplies, sum(kinds == 'pressure')) - drop)
            X[kinds == 'spool'] = spool
            found.append(X)
    return found


@pytest.mark.parametrize('name', MACHINES)
def test_hydraulic_model(name: str) -> None:
    """A = df/dX of the observer (paper 003 Eqs. 23-32), laminar and turbulent, either sign of the spool."""
    machine = MACHINES[name]()
    model, f, A = rates(name)
    U, p = np.full(model.U.numel(), 3.0), machine.parameters.mean
    for X in states(machine, model):
        close(np.array(A(X, U, p)), derivative(lambda x: evaluate(f, [x, U, p])[0], X))


@pytest.mark.parametrize('name', ['crane', 'two_cylinders', 'simple'])
def test_hydraulic_model_is_that_of_the_paper(name: str) -> None:
    """f and A as printed (Eqs. 18, 23, 27-32), by hand in NumPy."""
    machine = MACHINES[name]()
    model, f, A = rates(name)
    U, paper = np.linspace(-2, 3, model.U.numel()), PaperModel(machine)
    for X in states(machine, model):
        f_paper, A_paper = paper.rates(X, U)
        close(np.array(f(X, U, machine.parameters.mean)), f_paper[:, None])
        close(np.array(A(X, U, machine.parameters.mean)), A_paper)


def sample_functions(machine: Machine) -> tuple[ca.Function, ca.Function, ca.Function]:
    """The compiled sample's step, and the residual ``g0 + g1 m`` and its Jacobian by the state."""
    r, m = residual(machine), ca.SX.sym('m')
    g = r.g0 + r.g1 * m
    inputs = [r.joints, r.X, m, machine.parameters.symbol]
    return sample_step(machine), ca.Function('g', inputs, [g]), ca.Function('J', inputs, [ca.jacobian(g, r.X)])


@pytest.mark.parametrize('name', ['crane', 'two_cylinders'])
def test_sensitivity_of_the_mass(name: str) -> None:
    """dm/dparameter and dm/dX against masses solved anew, where the residual is zero."""
    machine, rng = MACHINES[name](), np.random.default_rng(3)
    step, g, J = sample_functions(machine)
    n, p = len(machine.cylinders), machine.parameters.mean
    X = Carrier(machine).state(positions(machine, rng), rng.uniform(0.02, 0.1, n), rng.normal(size=n) * 0.05, PAYLOAD)
    P, gates = np.diag(np.maximum(np.abs(X), 1e-2) * 1e-3) ** 2, [0.0, 1e9, 0.0, 0.0]
    start = np.append(machine.position_problem.solve(X[:n])[:n], 0.0)

    def outputs(state: np.ndarray, values: np.ndarray) -> np.ndarray:
        return evaluate(step, [start, state, np.concatenate([P.ravel(), gates, [PAYLOAD], values])])[1]

    def mass(state: np.ndarray, values: np.ndarray) -> np.ndarray:
        y = outputs(state, values)
        return y[1:2] / y[0]

    y = np.real(outputs(X, p))
    assert y[1] / y[0] == pytest.approx(PAYLOAD, abs=1e-9)
    close(y[2:-1] / y[0], derivative(lambda x: mass(X, x), p))
    # the information is the inverse of what the covariance does to the mass
    by_state = derivative(lambda x: mass(x, p), X)[0]
    if n == 1:
        assert 1 / y[0] == pytest.approx(by_state @ P @ by_state, rel=1e-8)
    residual_by_state = derivative(lambda x: evaluate(g, [start[:-1], x, PAYLOAD, p])[0], X)
    close(np.array(J(start[:-1], X, PAYLOAD, p)), residual_by_state)
