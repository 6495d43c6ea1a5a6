# SPDX-License-Identifier: Apache-2.0
"""A machine's symbolic model: rotations, Lagrange's equations, closed forms, and the numbers of the former program."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from core_support import crane, two_cylinders
from hypothesis import given
from hypothesis import strategies as st
from lagrange_by_hand import Lagrange, spatial_machine
from transforms3d.axangles import axangle2mat
from transforms3d.euler import euler2mat

from mbse_ros.errors import DescriptionError
from mbse_ros.machine import Machine, load_machine
from mbse_ros.mechanism.rotation import axis_rotation, rpy_rotation

pytestmark = pytest.mark.usefixtures('vm')

ANGLES = st.floats(-np.pi, np.pi)
PAYLOAD = 7.0
FORMER = json.loads((Path(__file__).parents[1] / 'support' / 'machine_reference.json').read_text())
TABLES = ('Mbar', 'Qbar', 'Mbar_payload', 'Qbar_payload', 'Mbar_parameters', 'Qbar_parameters')


def functions(machine: Machine) -> ca.Function:
    """``(q, qd, payload, parameters) -> (M, Q, Phi)``."""
    system = machine.system
    return ca.Function('f', [system.q, system.qd, machine.payload, machine.parameters.symbol],
                       [system.M, system.Q, system.Phi])


@cache
def former_machine(name: str) -> Machine:
    return two_cylinders() if name == 'two_cylinders' else load_machine(name)


def assumed(machine: Machine) -> set[str]:
    """Keys of numbers that came later: errors of sensors, and the base, of which the former files knew nothing."""
    return {name for name in machine.parameters.names if name.startswith(('sensors.', 'base.'))}


def present_key(name: str) -> str:
    """The former key of a parameter as the present files have it: components by number."""
    name = re.sub(r'rpy\.(\d)', r'rpy[\1]', name)
    return re.sub(r'\.([xyz])$', lambda found: f'[{"xyz".index(found[1])}]', name)


@pytest.mark.parametrize('name', FORMER)
def test_equations_are_those_of_the_former_program(name: str) -> None:
    """Reduced mass and forces and their derivatives, written by the code before the machine became a mechanism."""
    machine, former = former_machine(name), FORMER[name]
    r, system, parameters, load = machine.reduced, machine.system, machine.parameters, machine.payload
    pieces = [r.Mbar, r.Qbar, ca.jacobian(ca.vec(r.Mbar), load), ca.jacobian(r.Qbar, load),
              ca.jacobian(ca.vec(r.Mbar), parameters.symbol), ca.jacobian(r.Qbar, parameters.symbol)]
    f = ca.Function('f', [system.q, r.zd, load, parameters.symbol], [ca.densify(item) for item in pieces])
    order = [parameters.names.index(present_key(key)) for key in former['parameters']]
    assert {parameters.names[k] for k in set(range(len(parameters.names))) - set(order)} == assumed(machine)
    np.testing.assert_array_equal(parameters.mean[order], former['mean'])
    np.testing.assert_array_equal(parameters.stddev[order], former['stddev'])
    for point in former['points']:
        np.testing.assert_allclose(machine.position(np.array(point['z'])), point['q'], atol=1e-11)
        for table, found in zip(TABLES, f(point['q'], point['zd'], point['payload'], parameters.mean)):
            found, expected = found.full(), np.array(point[table])
            found = found[:, order] if table.endswith('parameters') else found
            scale = np.abs(expected).max()
            assert scale > 0
            np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=1e-12)


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


@given(angle=st.floats(-1.0, 1.4), rate=st.floats(-3, 3), payload=st.floats(0, 300))
def test_boom_is_a_pendulum_with_its_centre_of_mass_off_the_axis(angle: float, rate: float, payload: float) -> None:
    machine = crane()
    f = functions(machine)
    M, Q, _ = f([angle, 0.2], [rate, 0.0], payload, machine.parameters.mean)
    mass, (x, z), inertia, tip, g = 143.66, (1.229248, 0.055596), 67.053707, (2.89, 0.0246), 9.8066
    assert float(M[0, 0]) == pytest.approx(inertia + mass * (x ** 2 + z ** 2) + payload * (tip[0] ** 2 + tip[1] ** 2),
                                           rel=1e-13)
    reach = [p[0] * np.cos(angle) - p[1] * np.sin(angle) for p in ((x, z), tip)]     # a positive angle lifts the tip
    assert float(Q[0]) == pytest.approx(-g * (mass * reach[0] + payload * reach[1]), rel=1e-12)


@pytest.mark.parametrize('seed', range(4))
def test_a_spatial_machine_is_that_of_lagrange(seed: int) -> None:
    """Points, mass matrix and forces with a payload: revolute, fixed, prismatic, revolute joints about random axes."""
    machine = Machine(spatial_machine(seed))
    system, lagrange = machine.system, Lagrange(machine.description, PAYLOAD)
    joints = [system.names.index(name) for name in lagrange.moving]
    points = ca.Function('points', [system.q], [ca.horzcat(*system.points.values())])
    f, rng = functions(machine), np.random.default_rng([seed, 1])
    for _ in range(3):
        q, qd = rng.uniform(-2, 2, (2, system.n))
        M, Q, _ = (item.full() for item in f(q, qd, PAYLOAD, []))
        frames = lagrange.frames(q[joints])
        for name, found in zip(system.points, points(q).full().T):
            np.testing.assert_allclose(found, lagrange.point(frames, name), atol=1e-13)
        np.testing.assert_allclose(M[np.ix_(joints, joints)], np.real(lagrange.mass_matrix(q[joints])), rtol=1e-11,
                                   atol=1e-11)
        np.testing.assert_allclose(Q[joints, 0], lagrange.forces(q[joints], qd[joints]), rtol=1e-10, atol=1e-10)
        assert not M[machine.pistons].any() and not Q[machine.pistons].any()      # pistons have no mass of their own


@given(angle=st.floats(-1.0, 1.4), piston=st.floats(0, 0.535))
def test_closure_is_half_the_difference_of_squared_lengths(angle: float, piston: float) -> None:
    machine = crane()
    eye = np.array([0.3025 * np.cos(angle) + 0.105 * np.sin(angle), 0.3025 * np.sin(angle) - 0.105 * np.cos(angle)])
    length = np.hypot(*(eye - [0.26, -1.039986751]))
    _, _, Phi = functions(machine)([angle, piston], [0, 0], 0, machine.parameters.mean)
    assert float(Phi) == pytest.approx((length ** 2 - (0.82 + piston) ** 2) / 2, abs=1e-14)


def test_a_motion_that_no_sensor_sees_is_refused() -> None:
    """Two cylinders with the stroke of one: the other's joint is blind."""
    d = two_cylinders().description
    fewer = {name: sensor for name, sensor in d.sensors.items() if name != 'tilt_stroke'}
    with pytest.raises(DescriptionError) as caught:
        Machine(replace(d, sensors=fewer))
    assert caught.value.key == 'sensors' and 'sees the motion of jib_joint' in caught.value.expected


def test_uncertain_numbers_become_symbols_once() -> None:
    """The mass of the boom, known to 1 %, is a symbol in M; what has no deviation is a number."""
    machine = crane()
    p = machine.parameters
    assert len(set(p.names)) == len(p.names) == p.symbol.numel() == len(p.mean) == len(p.stddev)
    k = p.names.index('bodies.boom.mass')
    assert (p.mean[k], p.stddev[k]) == (143.66, pytest.approx(1.4366))
    heavier, f = p.mean + np.eye(len(p.mean))[k] * 10.0, functions(machine)
    light, heavy = (float(f([0.1, 0.2], [0, 0], 0, values)[0][0, 0]) for values in (p.mean, heavier))
    assert heavy - light == pytest.approx(10.0 * (1.229248 ** 2 + 0.055596 ** 2), rel=1e-12)
