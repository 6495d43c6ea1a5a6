# SPDX-License-Identifier: Apache-2.0
"""State equations of every sample in every kind of coordinates, and all their derivatives, against complex steps."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from complex_step import STEP
from mechanism_numbers import CASES, Numbers, State, evaluate, numbers, saddle
from mechanism_samples import angle, elbow, four_bar

from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.dynamics.state_equations import Pieces, state_function
from mbse_ros.errors import PositionProblemError, SingularConfigurationError
from mbse_ros.mechanism.assembly import build_mechanism

KINDS = ['natural', 'reference_point', 'relative']
TIME = 0.6
LARGE = [(name, 'reference_point') for name in (      # written out these would take seconds
    'sliders', 'spatial_four_bar', 'rccc', 'spatial_slider_crank', 'driven_crane', 'three_legs')]


def close(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-9) -> None:
    """Relative to the largest element."""
    scale = max(1.0, np.max(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@cache
def state_of(name: str, kind: str) -> State:
    return numbers(name, kind).state(7, TIME if numbers(name, kind).system.driven else 0.0)


@cache
def pieces(name: str, kind: str) -> Pieces:
    """Of both ways to write out the same equations."""
    system = numbers(name, kind).system
    return Pieces(system, system.values.symbol)


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


@cache
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


@pytest.mark.parametrize('name, kind, scalar', [(*case, k % 2 == 0 and case not in LARGE)
                                                for k, case in enumerate(CASES)])
def test_state_function(name: str, kind: str, scalar: bool) -> None:
    """Accelerations, multipliers, velocities and exact Jacobians, by turns written out and by factorisations: 1e-9."""
    found, state = numbers(name, kind), state_of(name, kind)
    f = state_function(found.system, found.system.values.symbol, scalar, pieces=pieces(name, kind))
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


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('quarter', range(-1, 3))
def test_crank_on_the_axes(kind: str, quarter: int) -> None:
    """Exactly level or upright, where a pivot of the equations may be zero: the values of just beside, and no NaN."""
    theta = quarter * np.pi / 2
    beside = [rates_at(kind, theta + step) for step in (-2e-3, -1e-3, 1e-3, 2e-3)]
    for scalar in (True, False):
        here = rates_at(kind, theta, scalar)
        between = [(4 * (b + c) - (a + d)) / 6 for a, b, c, d in zip(*beside)]
        for value, expected_value in zip(here, between):
            assert np.isfinite(value).all()
            close(value, expected_value, 1e-8)


def rates_at(kind: str, theta: float, scalar: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """``zdd`` and its slopes of the four-bar at an angle of the crank and 0.7 rad/s."""
    system, f = four_bar_function(kind, scalar)
    exact = build_mechanism(four_bar(theta), kind)
    zdd, A, *_ = f(exact.start, 0.7, 1.3, 0.0, [])
    assert np.cos(exact.start[system.names.index('theta')] - theta) == pytest.approx(1.0, abs=1e-15)
    return zdd.full(), A.full()[1:]


@cache
def four_bar_function(kind: str, scalar: bool):
    system = build_mechanism(four_bar(), kind, ['theta'])
    return system, state_function(system, system.values.symbol, scalar)


def rocker_model(kind: str) -> tuple[Model, np.ndarray]:
    """Four-bar with the rocker's angle as independent coordinate, and its dead point: crank and coupler in line."""
    theta = np.arccos(0.875)
    description = four_bar(theta, coordinates=[angle('theta', 'crank'), angle('psi', 'rocker')])
    model = load_model(description, kind, ('psi',), backend='vm')
    np.testing.assert_allclose(elbow((0, 0), (10, 0), 10.0, 5.0), 5 * np.array([2 * np.cos(theta), 2 * np.sin(theta)]))
    return model, model.start.q


@pytest.mark.parametrize('kind', KINDS)
def test_dead_point(kind: str) -> None:
    """An error that names coordinates which would do; those give numbers."""
    model, q = rocker_model(kind)
    with pytest.raises(SingularConfigurationError) as caught:
        model.partition().rates(q, np.array([0.3]))
    assert any('theta' in choice for choice in caught.value.alternatives)
    theta = model.partition((model.names.index('theta'),))
    assert theta.condition(q) < 100.0
    assert np.isfinite(theta.rates(q, np.array([0.3])).zdd).all()


@pytest.mark.parametrize('kind', ['natural', 'reference_point'])
def test_velocities_at_a_dead_point(kind: str) -> None:
    model, q = rocker_model(kind)
    with pytest.raises(SingularConfigurationError):
        model.partition().velocity(q, np.array([0.3]))


@pytest.mark.parametrize('theta', [2.8, 4.5, -2.0])
def test_a_start_far_from_the_guess(theta: float) -> None:
    """The crank's bar goes where its angle says, not to the second solution of the angle's row half a turn away."""
    model = load_model(four_bar(position={'theta': theta}), 'natural', backend='vm')
    tip = ca.Function('tip', [model.system.q], [model.system.points['crank.P1']])(model.start.q).full().ravel()
    close(tip, 2 * np.array([np.cos(theta), np.sin(theta)]))


def test_position_problem_on_the_wrong_side() -> None:
    """It may not end half a turn from the angle that was asked for."""
    model = load_model(four_bar(), 'natural', ('theta',), backend='vm')
    flipped = model.start.q.copy()
    flipped[model.z] += np.pi
    with pytest.raises(PositionProblemError):
        model.partition().position(flipped[model.z], flipped)


@pytest.mark.parametrize('name, zdd, reduced_mass', [
    ('four_bar', [-0.9948351599], [[24.25055571]]),
    ('five_bar', [-22.99548387, 24.68322581], [[1.078125, 0.234375], [0.234375, 0.640625]]),
    ('four_bar_adams', [-9.687056707], [[4.555555556]])])
def test_values_of_the_authors_toolbox(name: str, zdd: list[float], reduced_mass: list[list[float]]) -> None:
    """At the start of the mechanisms of Naya et al., review."""
    model = load_model(name, 'natural', backend='vm')
    rates = model.partition().rates(model.start.q, np.zeros(len(zdd)))
    np.testing.assert_allclose(rates.zdd, zdd, rtol=2e-10)
    terms = model.terms(model.start.q, model.start.qd)
    R = np.column_stack([model.partition().velocity(model.start.q, unit) for unit in np.eye(len(zdd))])
    np.testing.assert_allclose(R.T @ terms.M @ R, reduced_mass, rtol=1e-9)


def test_the_four_bar_stays_small() -> None:
    """Operations of f and its exact Jacobian; 493 when written."""
    assert four_bar_function('natural', True)[1].n_instructions() < 900
