# SPDX-License-Identifier: Apache-2.0
"""The kinds of coordinates agree with each other, with the joints and with Newton and Euler's equations."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from maximal_coordinates import Maximal
from mechanism_numbers import CASES, SAMPLES, Numbers, State, evaluate, numbers
from mechanism_samples import four_bar

from mbse_ros.mechanism.assembly import build_mechanism

TIME, EZ = 0.37, np.array([[0.0, 0.0, 1.0]])


def lifted(columns: np.ndarray) -> np.ndarray:
    """Vectors (d, bodies) as rows (bodies, 3)."""
    return np.vstack([columns, np.zeros((3 - len(columns), columns.shape[1]))]).T


def placed(found: Numbers, state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Origins (d, bodies), rotations (d, d bodies), and the latter in space (bodies, 3, 3)."""
    origins, rotations, *_ = (x[0].real for x in evaluate(found.poses, *state.all()))
    d = len(origins)
    solid = np.tile(np.eye(3), (origins.shape[1], 1, 1))
    solid[:, :d, :d] = rotations.reshape(d, -1, d).swapaxes(0, 1)
    return origins, rotations, solid


def world(rotations: np.ndarray, turning: np.ndarray) -> np.ndarray:
    """Angular vectors along the machine's axes (bodies, 3), from scalars or from columns along the body's axes."""
    return turning.T * EZ if len(turning) == 1 else np.einsum('kij,jk->ki', rotations, turning)


@cache
def same_state(name: str, kind: str) -> tuple[Numbers, State]:
    """One random physical state in any coordinates."""
    first, found = numbers(name, dict(reversed(CASES))[name]), numbers(name, kind)
    state = first.state(1, TIME if SAMPLES[name]().drivers else 0.0)
    if found is first:
        return found, state
    origins, rotations, _ = placed(first, state)
    return found, found.matched(origins, rotations, state, first)


@cache
def maximal(name: str, kind: str) -> tuple[Maximal, np.ndarray, np.ndarray, np.ndarray]:
    """The mechanism in NumPy; twists and their rates (bodies, 6) as the package has them; the multipliers."""
    found, state = same_state(name, kind)
    origins, _, rotations = placed(found, state)
    qdd, lam = found.accelerations(state)
    velocity, omega, acceleration, spin = found.body_motion(state, qdd)
    coordinates = {name: state.q[found.full.names.index(name)] for name in found.full.description.coordinates}
    return (Maximal(found.full.description, lifted(origins), rotations, coordinates),
            np.hstack([lifted(velocity), world(rotations, omega)]),
            np.hstack([lifted(acceleration), world(rotations, spin)]), lam)


@pytest.mark.parametrize('name, kind', CASES)
def test_the_bodies_keep_their_joints(name: str, kind: str) -> None:
    """Joints closed, named coordinates and their rates right, as NumPy sees them, in a state common to all kinds."""
    found, state = same_state(name, kind)
    body, twists, _, _ = maximal(name, kind)
    description = found.full.description
    assert all(body.gap(joint) < 1e-10 for joint in description.joints.values())
    kept = body.constraint_rows().real @ twists.ravel()
    assert np.max(np.abs(kept[:len(kept) - len(description.drivers)]), initial=0.0) < 1e-10
    for coordinate in description.coordinates.values():
        i = found.full.names.index(coordinate.name)
        off = body.coordinate_value(coordinate) - state.q[i]
        turns = 2 * np.pi * round(off / (2 * np.pi)) if coordinate.kind != 'component' else 0.0
        assert abs(off - turns) < 1e-10
        assert abs(body.coordinate_row(coordinate).real @ twists.ravel() - state.qd[i]) < 1e-10


@pytest.mark.parametrize('name, kind', CASES)
def test_omega_is_the_rate_of_the_rotation(name: str, kind: str) -> None:
    found, state = same_state(name, kind)
    step = 1e-30j
    moved = evaluate(found.poses, state.q + step * state.qd, state.qd, state.u, [state.t], state.p)[1][0]
    d = len(moved)
    _, _, rotations = placed(found, state)
    spins = np.zeros_like(rotations)
    spins[:, :d, :d] = (moved.imag / 1e-30).reshape(d, -1, d).swapaxes(0, 1)
    skew = np.einsum('kij,klj->kil', spins, rotations)
    omega = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=1)
    given = evaluate(found.poses, *state.all())[2][0].real
    np.testing.assert_allclose(omega, world(rotations, given), atol=1e-10)


@pytest.mark.parametrize('name, kind', CASES)
def test_accelerations_by_newton_and_euler(name: str, kind: str) -> None:
    """Accelerations of all bodies in the same state, and the forces of drivers: 1e-9 relative."""
    found, state = same_state(name, kind)
    body, twists, rates, lam = maximal(name, kind)
    system = found.full
    motions = [system.values.evaluate(driver.motion, t=system.t) for driver in system.description.drivers.values()]
    prescribed = ca.Function('motion', [system.t, system.values.symbol],
                             [ca.vertcat(*(ca.hessian(motion, system.t)[0] for motion in motions))])
    driven = prescribed(state.t, state.p).full().ravel()
    expected, forces = body.accelerations(twists, dict(zip(system.inputs, state.u)), driven)
    np.testing.assert_allclose(rates, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    rows = [found.system.rows.index(f'drivers.{driver}') for driver in system.description.drivers]
    np.testing.assert_allclose(-lam[rows], forces, rtol=1e-9)


@pytest.mark.parametrize('name', SAMPLES)
def test_all_kinds_of_coordinates_give_the_same_motion(name: str) -> None:
    """Named coordinates and their accelerations in one state: 1e-9 relative."""
    names = list(SAMPLES[name]().coordinates)
    results = []
    for kind in [k for n, k in CASES if n == name]:
        found, state = same_state(name, kind)
        places = [found.full.names.index(label) for label in names]
        results.append((state.q[places], state.qd[places], found.accelerations(state)[0][places]))
    for result in results[1:]:
        for one, other in zip(results[0], result):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


def test_a_start_over_full_turns() -> None:
    for kind in ('natural', 'reference_point', 'relative'):
        system = build_mechanism(four_bar(position={'theta': np.pi / 3 + 4 * np.pi}), kind)
        found = Numbers(system)
        assert found.start[system.names.index('theta')] == pytest.approx(np.pi / 3 + 4 * np.pi, abs=1e-12)


