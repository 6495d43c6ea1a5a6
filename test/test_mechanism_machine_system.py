# SPDX-License-Identifier: Apache-2.0
"""The symbolic system against Lagrange's equations derived apart from it, energy, and closed forms."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from core_support import crane
from hypothesis import given
from hypothesis import strategies as st
from mbse_ros.errors import DescriptionError
from mbse_ros.mechanism.parameters import ParameterSet
from mbse_ros.mechanism.rotation import axis_rotation, rpy_rotation
from mbse_ros.mechanism.machine_system import System, build_system
from scipy.integrate import solve_ivp
from spatial_tree import Lagrange, spatial_tree
from transforms3d.axangles import axangle2mat
from transforms3d.euler import euler2mat

ANGLES = st.floats(-np.pi, np.pi)
PAYLOAD = 7.0


def functions(system: System, parameters: ParameterSet) -> ca.Function:
    """``(q, qd, payload, parameters) -> (M, Q, Phi)``."""
    return ca.Function('f', [system.q, system.qd, system.payload, parameters.symbol], [system.M, system.Q, system.Phi])


def tree(seed: int) -> tuple[Lagrange, System, ca.Function]:
    description, parameters = spatial_tree(seed), ParameterSet()
    system = build_system(description, parameters)
    return Lagrange(description, PAYLOAD), system, functions(system, parameters)


@given(axis=st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda a: np.linalg.norm(a) > 0.1), angle=ANGLES)
def test_axis_rotation_is_that_of_transforms3d(axis: tuple, angle: float) -> None:
    unit = np.array(axis) / np.linalg.norm(axis)
    found = ca.evalf(axis_rotation(unit.tolist(), angle)).full()
    np.testing.assert_allclose(found, axangle2mat(unit, angle, is_normalized=True), atol=4e-15)


@given(roll=ANGLES, pitch=ANGLES, yaw=ANGLES)
def test_roll_pitch_yaw_are_about_fixed_axes(roll: float, pitch: float, yaw: float) -> None:
    """The URDF's convention: 'sxyz' of transforms3d."""
    found = ca.evalf(rpy_rotation([roll, pitch, yaw])).full()
    np.testing.assert_allclose(found, euler2mat(roll, pitch, yaw, 'sxyz'), atol=4e-15)


@pytest.mark.parametrize('seed', range(4))
def test_points_stand_where_the_frames_put_them(seed: int) -> None:
    lagrange, system, _ = tree(seed)
    q = np.random.default_rng(seed).uniform(-2, 2, system.q.numel())
    frames = lagrange.frames(q)
    at = ca.Function('points', [system.q], [ca.horzcat(*system.points.values())])(q).full().T
    for name, found in zip(system.points, at):
        np.testing.assert_allclose(found, lagrange.place(*name.split('.'), frames), atol=1e-13)


@pytest.mark.parametrize('seed', range(4))
def test_mass_matrix_and_forces_are_those_of_lagrange(seed: int) -> None:
    """Revolute, fixed with rpy, prismatic and revolute joints about random axes; inertia with products."""
    lagrange, system, f = tree(seed)
    rng, k = np.random.default_rng([seed, 1]), len(system.joints)
    for _ in range(3):
        q, qd = rng.uniform(-2, 2, (2, system.q.numel()))
        M, Q, _ = (item.full() for item in f(q, qd, PAYLOAD, []))
        np.testing.assert_allclose(M[:k, :k], np.real(lagrange.mass_matrix(q[:k])), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(Q[:k, 0], lagrange.forces(q[:k], qd[:k]), rtol=1e-10, atol=1e-10)
        assert not M[k:].any() and not M[:, k:].any() and not Q[k:].any()       # pistons have no mass of their own


def test_energy_of_the_unconstrained_tree_is_constant() -> None:
    lagrange, system, f = tree(2)
    k = len(system.joints)

    def rates(_: float, x: np.ndarray) -> np.ndarray:
        q, qd = np.concatenate([x[:k], np.zeros(k)]), np.concatenate([x[k:], np.zeros(k)])
        M, Q, _ = f(q, qd, PAYLOAD, [])
        return np.concatenate([x[k:], np.linalg.solve(M.full()[:k, :k], Q.full()[:k, 0])])

    x0 = np.concatenate([system.start, [1.0, -0.5, 2.0]])
    run = solve_ivp(rates, (0, 1.5), x0, method='DOP853', rtol=1e-11, atol=1e-11)
    energies = [lagrange.energy(x[:k], x[k:]) for x in run.y.T]
    kinetic = max(lagrange.energy(x[:k], x[k:]) - np.real(lagrange.potential(x[:k])) for x in run.y.T)
    assert np.ptp(energies) < 1e-8 * kinetic and np.ptp(run.y[:k], axis=1).min() > 0.3


@given(angle=st.floats(-1.0, 1.4), rate=st.floats(-3, 3), payload=st.floats(0, 300))
def test_boom_is_a_pendulum_with_its_centre_of_mass_off_the_axis(angle: float, rate: float, payload: float) -> None:
    machine = crane()
    f = functions(machine.system, machine.parameters)
    M, Q, _ = f([angle, 0.2], [rate, 0.0], payload, machine.parameters.mean)
    mass, (x, z), inertia, tip, g = 143.66, (1.229248, 0.055596), 67.053707, (2.89, 0.0246), 9.8066
    assert float(M[0, 0]) == pytest.approx(inertia + mass * (x ** 2 + z ** 2) + payload * (tip[0] ** 2 + tip[1] ** 2),
                                           rel=1e-13)
    reach = [p[0] * np.cos(angle) - p[1] * np.sin(angle) for p in ((x, z), tip)]     # a positive angle lifts the tip
    assert float(Q[0]) == pytest.approx(-g * (mass * reach[0] + payload * reach[1]), rel=1e-12)


@given(angle=st.floats(-1.0, 1.4), piston=st.floats(0, 0.535))
def test_closure_is_half_the_difference_of_squared_lengths(angle: float, piston: float) -> None:
    machine = crane()
    eye = np.array([0.3025 * np.cos(angle) + 0.105 * np.sin(angle), 0.3025 * np.sin(angle) - 0.105 * np.cos(angle)])
    length = np.hypot(*(eye - [0.26, -1.039986751]))
    _, _, Phi = functions(machine.system, machine.parameters)([angle, piston], [0, 0], 0, machine.parameters.mean)
    assert float(Phi) == pytest.approx((length ** 2 - (0.82 + piston) ** 2) / 2, abs=1e-14)


def test_coordinates_are_joints_then_pistons() -> None:
    _, system, _ = tree(0)
    assert system.joints == ('base', 'slide', 'wrist') == system.cylinders
    assert (system.dependent, system.independent) == ([0, 1, 2], [3, 4, 5])


def test_as_many_cylinders_as_moving_joints_are_needed() -> None:
    description = spatial_tree(0)
    fewer = replace(description, cylinders=dict(list(description.cylinders.items())[:2]))
    with pytest.raises(DescriptionError) as caught:
        build_system(fewer, ParameterSet())
    assert caught.value.value == 2 and 'base, slide, wrist' in caught.value.expected


def test_uncertain_numbers_become_symbols_once() -> None:
    """The mass of the boom, known to 1 %, is a symbol in M; what has no deviation is a number."""
    machine = crane()
    p = machine.parameters
    assert len(set(p.names)) == len(p.names) == p.symbol.numel() == len(p.mean) == len(p.stddev)
    k = p.names.index('bodies.boom.mass')
    assert (p.mean[k], p.stddev[k]) == (143.66, pytest.approx(1.4366))
    heavier = p.mean + np.eye(len(p.mean))[k] * 10.0
    f = functions(machine.system, p)
    light, heavy = (float(f([0.1, 0.2], [0, 0], 0, values)[0][0, 0]) for values in (p.mean, heavier))
    assert heavy - light == pytest.approx(10.0 * (1.229248 ** 2 + 0.055596 ** 2), rel=1e-12)
