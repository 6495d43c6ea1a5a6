# SPDX-License-Identifier: Apache-2.0
"""State equations of every sample in every kind of coordinates, and all their derivatives, against complex steps."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from complex_step import STEP
from mechanism_numbers import CASES, Numbers, State, evaluate, numbers, saddle
from mechanism_samples import angle, elbow, four_bar

from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.dynamics.state_equations import state_function
from mbse_ros.errors import SingularConfigurationError
from mbse_ros.mechanism.assembly import build_mechanism

KINDS = ['natural', 'reference_point', 'relative']
TIME = 0.6


def close(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-9) -> None:
    """Relative to the largest element."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1.0, np.max(np.abs(expected), initial=0.0)))


@lru_cache(maxsize=None)
def state_of(name: str, kind: str) -> State:
    return numbers(name, kind).state(7, TIME if numbers(name, kind).system.driven else 0.0)


def motion(found: Numbers, q: np.ndarray, zd: np.ndarray, u: np.ndarray, state: State) -> tuple[np.ndarray, ...]:
    """``zdd``, ``qdd``, ``lam``, ``qd`` at k complex points (k, ...), by linear algebra on M, Q, J, b, c."""
    time = [state.t]
    _, _, J, b, _ = evaluate(found.dynamics, q, state.qd, u, time, state.p)
    dependent, z = found.dependent, found.z
    qd = np.zeros((len(J), found.full.n), dtype=complex)
    qd[:, z] = zd
    qd[:, dependent] = np.linalg.solve(J[:, :, dependent], b - J[:, :, z] @ np.broadcast_to(zd, (len(J), len(z)))[
        ..., None])[..., 0]
    M, Q, J, _, c = evaluate(found.dynamics, q, qd, u, time, state.p)
    qdd, lam = saddle(M, J, Q[..., 0], c[..., 0])
    return qdd[:, z], qdd, lam, qd


def maps(found: Numbers, state: State) -> tuple[np.ndarray, np.ndarray]:
    """``R`` (n, g) and the inverse of the dependent block of J."""
    J = found.dynamics(*state.all())[2].full()
    inverse = np.linalg.inv(J[:, found.dependent]) if len(J) else np.zeros((0, 0))
    R = np.zeros((found.full.n, len(found.z)))
    R[found.z], R[found.dependent] = np.eye(len(found.z)), -inverse @ J[:, found.z]
    return R, inverse


@lru_cache(maxsize=None)
def expected(name: str, kind: str) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Values at the state, and d zdd / d[z, zd] along the constraints, d zdd / du, by complex steps."""
    found, state = numbers(name, kind), state_of(name, kind)
    R, _ = maps(found, state)
    g, k = len(found.z), len(state.u)
    q, zd, u = (np.tile(x.astype(complex), (2 * g + k + 1, 1)) for x in (state.q, state.qd[found.z], state.u))
    q[1:g + 1] += 1j * STEP * R.T
    zd[g + 1:2 * g + 1] += 1j * STEP * np.eye(g)
    u[2 * g + 1:] += 1j * STEP * np.eye(k)
    results = motion(found, q, zd, u, state)
    slopes = results[0][1:].imag.T / STEP
    return [x[0].real for x in results], slopes[:, :2 * g], slopes[:, 2 * g:]


@pytest.mark.parametrize('name, kind', CASES)
def test_constraint_rates(name: str, kind: str) -> None:
    """``J = dPhi/dq``, ``b = -dPhi/dt``, ``c = -d(J qd - b)/dt`` at constant velocities."""
    found, state = numbers(name, kind), state_of(name, kind)
    n, step = found.full.n, 1j * STEP
    _, _, J, b, c = (x.full() for x in found.dynamics(*state.all()))
    q = np.vstack([np.tile(state.q, (n + 1, 1)) + step * np.eye(n + 1, n), state.q])
    t = np.full((n + 2, 1), state.t, dtype=complex)
    t[n] += step
    phi = evaluate(found.constraints, q, t, state.p)[0][:, found.rows, 0].imag / STEP
    close(J, phi[:n].T)
    close(b.ravel(), -phi[n])
    _, _, J_moved, b_moved, _ = evaluate(found.dynamics, state.q + step * state.qd, state.qd, state.u,
                                         [state.t + step], state.p)
    close(c.ravel(), (b_moved[0] - J_moved[0] @ state.qd[:, None]).imag.ravel() / STEP)


@pytest.mark.parametrize('name, kind', CASES)
@pytest.mark.parametrize('scalar', [True, False])
def test_state_function(name: str, kind: str, scalar: bool) -> None:
    """Accelerations, multipliers, velocities and exact Jacobians, both written out and by factorisations: 1e-9."""
    found, state = numbers(name, kind), state_of(name, kind)
    if scalar and found.system.m > 13:
        pytest.skip('too large to be written out')
    f = state_function(found.system, found.system.values.symbol, scalar)
    assert f.is_a('SXFunction') == scalar
    zdd, A, B, qdd, lam, qd = (x.full() for x in f(state.q, state.qd[found.z], state.u, state.t, state.p))
    values, by_state, by_input = expected(name, kind)
    for given, value in zip((zdd, qdd, lam, qd), values):
        close(given.ravel(), value)
    g = len(found.z)
    close(qd.ravel(), state.qd)
    close(A[:g], np.hstack([np.zeros((g, g)), np.eye(g)]))
    close(A[g:], by_state)
    close(B, np.vstack([np.zeros_like(by_input), by_input]))


@pytest.mark.parametrize('name, kind', [case for case in CASES if case[0] in ('four_bar_loaded', 'driven', 'rccc')])
def test_velocity_maps(name: str, kind: str) -> None:
    """``[S R] = inv([J; B])``: R and S of the papers, by the inverse of the whole matrix."""
    found, state = numbers(name, kind), state_of(name, kind)
    R, inverse = maps(found, state)
    J = found.dynamics(*state.all())[2].full()
    whole = np.linalg.inv(np.vstack([J, np.eye(found.full.n)[found.z]]))
    close(R, whole[:, len(J):])
    close(inverse, whole[found.dependent, :len(J)])
    close(state.qd, R @ state.qd[found.z] + whole[:, :len(J)] @ found.dynamics(*state.all())[3].full().ravel())
