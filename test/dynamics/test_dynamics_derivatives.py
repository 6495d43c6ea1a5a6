# SPDX-License-Identifier: Apache-2.0
"""Every derivative of the core against the complex step, at random states and at the awkward ones: 1e-8 relative.

The complex step evaluates the expressions themselves (``complex_step.py``), so it shares no differentiation with them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

import casadi as ca
import numpy as np
import pytest
from complex_step import STEP, derivative, directional, evaluate
from core_support import crane, two_cylinders
from mechanism_numbers import evaluate as evaluate_many
from payload_states import Carrier

from mbse_ros.filters.hydraulic_model import HydraulicModel, hydraulic_model
from mbse_ros.machine import Machine, load_machine
from mbse_ros.payload.inverse_dynamics import residual
from mbse_ros.payload.paper import sample_step
from studies.paper_reference import PaperModel

MACHINES: dict[str, Callable[[], Machine]] = {
    'crane': crane, 'two_cylinders': two_cylinders, 'simple': lru_cache(lambda: load_machine('lut_simple_crane')),
    'measured': lru_cache(lambda: load_machine('patu655_measured')), 'unknown': lambda: crane('unknown'),
    'both': lru_cache(lambda: load_machine('patu655')), 'excavator': lru_cache(lambda: load_machine('zx200')),
    'angles': lru_cache(lambda: load_machine('zx200_can'))}
LOOPS = ('both', 'excavator', 'angles')
LIMIT = 0.2          # MPa, where the flow turns from laminar to turbulent
PAYLOAD = 60.0


def close(found: np.ndarray, expected: np.ndarray) -> None:
    """1e-8 of the largest element of the row: rows have units of their own."""
    found, expected = np.atleast_2d(found), np.atleast_2d(expected)
    scale = np.max(np.abs(expected), axis=1, keepdims=True) + 1e-300
    np.testing.assert_array_less(np.abs(found - expected) / scale, 1e-8)


def coordinates(machine: Machine, z: np.ndarray, p: np.ndarray) -> np.ndarray:
    """All coordinates at complex independent ones: Newton's step repeated from the real solution."""
    found = machine.position(np.real(z)).astype(complex)
    for _ in range(4):
        found[machine.model.z] = z
        found = evaluate(machine.newton, [found, p])[0]
    return found


def positions(machine: Machine, rng: np.random.Generator) -> np.ndarray:
    low, high = machine.range.T
    return low + (high - low) * rng.uniform(0.1, 0.9, len(low))


@pytest.mark.parametrize('name', ['crane', 'two_cylinders', 'simple', 'measured', *LOOPS])
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
    z, zd = positions(machine, rng), rng.normal(size=len(machine.coordinates))
    q = machine.position(z)
    J_found, R, c = (np.array(item) for item in at(q, zd, p))
    qd = R @ zd
    close(J_found, derivative(lambda x: evaluate(phi, [x, p])[0], q))
    close(c, -directional(lambda x: evaluate(velocity, [x, qd, p])[0], q, qd)[:, None])
    close(R, derivative(lambda x: coordinates(machine, x, p), z))
    np.testing.assert_array_equal(R[system.independent], np.eye(len(z)))


@pytest.mark.parametrize('name', ['crane', 'two_cylinders', 'measured', 'both'])
def test_accelerations(name: str) -> None:
    """dzdd/dz along the constraints, and dzdd/dzd (Pyrhönen et al., state transition, Eqs. 21, 30-40)."""
    machine, rng = MACHINES[name](), np.random.default_rng(4)
    system, r, p = machine.system, machine.reduced, machine.parameters.mean
    zdd = ca.solve(r.Mbar, r.Qbar)
    inputs = [system.q, r.zd, machine.payload, machine.parameters.symbol]
    f = ca.Function('zdd', inputs, [zdd])
    at = ca.Function('at', inputs, [ca.jacobian(zdd, system.q) @ r.R, ca.jacobian(zdd, r.zd)])
    z, zd = positions(machine, rng), rng.normal(size=len(machine.coordinates))
    by_z, by_zd = (np.array(item) for item in at(machine.position(z), zd, PAYLOAD, p))
    close(by_z, derivative(lambda x: evaluate(f, [coordinates(machine, x, p), zd, PAYLOAD, p])[0], z))
    q = machine.position(z)
    close(by_zd, derivative(lambda x: evaluate(f, [q, x, PAYLOAD, p])[0], zd))


@cache
def rates(name: str) -> tuple[HydraulicModel, ca.Function, ca.Function]:
    """The observer's model, its f and its A."""
    machine = MACHINES[name]()
    model = hydraulic_model(machine)
    inputs = [model.X, model.U, model.dependent, machine.parameters.symbol]
    return model, ca.Function('f', inputs, [model.f]), ca.Function('A', inputs, [model.A])


def dependent(machine: Machine, model: HydraulicModel, X: np.ndarray) -> np.ndarray:
    """Dependent coordinates of a state, exactly; none where the model needs none."""
    if not model.dependent.numel():
        return np.zeros(0)
    return coordinates(machine, X[:len(machine.coordinates)], machine.parameters.mean)[machine.system.dependent]


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
    """A = df/dX of the observer (Pyrhönen et al., mass estimation, Eqs. 23-32), laminar and turbulent, either sign of
    the spool."""
    machine = MACHINES[name]()
    model, f, A = rates(name)
    U, p = np.full(model.U.numel(), 3.0), machine.parameters.mean
    some = states(machine, model)
    for X in some[::10] if name in LOOPS else some:
        found = np.array(A(X, U, dependent(machine, model, X).real, p))
        close(found, derivative(lambda x: evaluate(f, [x, U, dependent(machine, model, x), p])[0], X))


@pytest.mark.parametrize('name', ['crane', 'two_cylinders', 'simple'])
def test_hydraulic_model_is_that_of_the_paper(name: str) -> None:
    """f and A as printed (Eqs. 18, 23, 27-32), by hand in NumPy."""
    machine = MACHINES[name]()
    model, f, A = rates(name)
    U, paper = np.linspace(-2, 3, model.U.numel()), PaperModel(machine)
    for X in states(machine, model):
        f_paper, A_paper = paper.rates(X, U)
        close(np.array(f(X, U, [], machine.parameters.mean)), f_paper[:, None])
        close(np.array(A(X, U, [], machine.parameters.mean)), A_paper)


@pytest.mark.parametrize('name', ['crane', 'two_cylinders', 'both', 'excavator'])
def test_sensitivity_of_the_mass(name: str) -> None:
    """dm/dparameter and dm/dX against masses solved again, where the residual is zero."""
    machine, rng = MACHINES[name](), np.random.default_rng(3)
    step, r, m = sample_step(machine).expand(), residual(machine), ca.SX.sym('m')
    g = ca.Function('g', [r.near, r.X, m, machine.parameters.symbol], [r.g0 + r.G1 * m], {'cse': True})
    n, p, z = len(machine.coordinates), machine.parameters.mean, positions(machine, rng)
    X = Carrier(machine).state(z, rng.uniform(0.02, 0.1, n), rng.normal(size=n) * 0.05, PAYLOAD)
    P, gates = np.diag(np.maximum(np.abs(X), 1e-2) * 1e-3) ** 2, [0.0, 0.0, 1e9, 0.0, 0.0]
    near = machine.position(X[:n])[machine.system.dependent]
    begin = np.concatenate([near, np.zeros(len(machine.actuated) + 1)])

    def outputs(state: np.ndarray, values: np.ndarray) -> np.ndarray:
        return evaluate(step, [begin, state, np.concatenate([P.ravel(), gates, [PAYLOAD], values])])[1]

    def mass(state: np.ndarray, values: np.ndarray) -> np.ndarray:
        y = outputs(state, values)
        return y[1:2] / y[0]

    y = np.real(outputs(X, p))
    assert y[1] / y[0] == pytest.approx(PAYLOAD, abs=1e-9)
    every = p + 1j * STEP * np.eye(len(p))
    begins, states, rest = (np.tile(x, (len(p), 1)) for x in (begin, X, [*P.ravel(), *gates, PAYLOAD]))
    many = evaluate_many(step, begins, states, np.hstack([rest, every]))[1][..., 0]
    close(y[2:-1] / y[0], (many[:, 1] / many[:, 0]).imag / STEP)
    # the information is the inverse of what the covariance does to the mass
    if len(machine.actuated) == 1:
        by_state = derivative(lambda x: mass(x, p), X)[0]
        assert 1 / y[0] == pytest.approx(by_state @ P @ by_state, rel=1e-8)
    J, G1 = (derivative(f, x) for f, x in ((lambda x: evaluate(g, [near, x, PAYLOAD, p])[0], X),
                                           (lambda x: evaluate(g, [near, X, x[0], p])[0], [PAYLOAD])))
    assert y[0] == pytest.approx((G1.T @ np.linalg.solve(J @ P @ J.T, G1)).item(), rel=1e-8)
