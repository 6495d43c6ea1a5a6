# SPDX-License-Identifier: Apache-2.0
"""Springs, dampers, loads and drivers: what they do to the energy, and where they act."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from complex_step import STEP
from mechanism_numbers import CASES, Numbers, State, evaluate, numbers
from mechanism_samples import angle, body, driven, force, four_bar, mechanism, spring

from mbse_ros.description.model import MechanismDescription, Sensor
from mbse_ros.mechanism.assembly import build_mechanism
from mbse_ros.mechanism.sensors import sensor_model

KINDS = ['natural', 'reference_point', 'relative']


def energy_rate(found: Numbers, state: State, qdd: np.ndarray) -> float:
    """d(kinetic + potential)/dt along the motion, W."""
    step = 1j * STEP
    moved = evaluate(found.energies, state.q + step * state.qd, state.qd + step * qdd, state.u, [state.t + step],
                     state.p)[0]
    return float(np.sum(moved.imag)) / STEP


@pytest.mark.parametrize('name, kind', CASES)
def test_power(name: str, kind: str) -> None:
    """The energy grows by the power of loads, inputs, dampers and drivers, and by no other: 1e-9 relative."""
    found = numbers(name, kind)
    state = found.state(2, 0.8 if found.system.driven else 0.0)
    qdd, lam = found.accelerations(state)
    _, _, _, b, _ = (x.full().ravel() for x in found.dynamics(*state.all()))
    other = evaluate(found.energies, *state.all())[1][0, :, 0].real
    power = [state.qd @ other, -lam @ b]
    scale = np.sum(np.abs(state.qd * other)) + np.sum(np.abs(lam * b)) + np.abs(state.qd) @ np.abs(
        found.dynamics(*state.all())[1].full().ravel())
    assert abs(energy_rate(found, state, qdd) - sum(power)) < 1e-9 * scale


def damped(**more: object) -> MechanismDescription:
    return four_bar(coordinates=[angle('theta', 'crank'), angle('phi', 'crank', 'coupler')], forces=[], **more)


@pytest.mark.parametrize('kind', KINDS)
def test_dampers_take_energy(kind: str) -> None:
    """``-c rate^2`` of each damper, whatever its spring."""
    found = Numbers(build_mechanism(damped(springs=[
        spring('turn', 'phi', 3.0, 0.2, 1.5), spring('line', ('ground.B', 'crank.P1'), 2.0, 1.0, 0.4)]), kind))
    state = found.state(3)
    other = evaluate(found.energies, *state.all())[1][0, :, 0].real
    place = {name: ca.Function('p', [found.full.q, found.full.qd], [
        ca.jtimes(found.full.points[name], found.full.q, found.full.qd), found.full.points[name]])(state.q, state.qd)
        for name in ('ground.B', 'crank.P1')}
    gap, rate = ((place['crank.P1'][k] - place['ground.B'][k]).full().ravel() for k in (1, 0))
    lengthening = gap @ rate / np.linalg.norm(gap)
    turning = state.qd[found.full.names.index('phi')]
    assert state.qd @ other == pytest.approx(-1.5 * turning ** 2 - 0.4 * lengthening ** 2, rel=1e-10)


@pytest.mark.parametrize('kind', KINDS)
def test_potential_of_springs_and_weight(kind: str) -> None:
    """``k (l - l0)^2 / 2`` and ``-m g'r``, from the points."""
    found = Numbers(build_mechanism(damped(springs=[spring('turn', 'phi', 3.0, 0.2), spring(
        'line', ('ground.B', 'crank.P1'), 2.0, 1.0)]), kind))
    state = found.state(4)
    points = {name: ca.Function('p', [found.full.q], [place])(state.q).full().ravel()
              for name, place in found.full.points.items()}
    weight = sum(-mass * np.array([0.3, -9.81]) @ (points[one] + points[other]) / 2 for mass, one, other in (
        (2.0, 'crank.A', 'crank.P1'), (8.0, 'coupler.P1', 'coupler.P2'), (5.0, 'rocker.P2', 'rocker.B')))
    stretch = np.linalg.norm(points['crank.P1'] - points['ground.B']) - 1.0
    turn = state.q[found.full.names.index('phi')] - 0.2
    assert evaluate(found.energies, *state.all())[0][0, 1, 0].real == pytest.approx(
        weight + 3.0 * turn ** 2 / 2 + 2.0 * stretch ** 2 / 2, rel=1e-12)


@pytest.mark.parametrize('kind', KINDS)
def test_ends_of_a_spring_without_free_length_may_meet(kind: str) -> None:
    """Where a spring has no direction, one of no free length has no force either; the numbers stay finite."""
    disc = body('disc', 1.0, {'M': (0.0, 0.0), 'N': (0.3, 0.0)}, (0.0, 0.0), (0.1,), (0.5, 0.25))
    found = Numbers(build_mechanism(mechanism(
        'met', [disc], [], {'O': (0.5, 0.25)}, (), [spring('coil', ('ground.O', 'disc.M'), 7.0, 0.0)]), kind))
    state = State(found.start, np.zeros(found.full.n), np.zeros(0), 0.0, np.zeros(0))
    assert np.isfinite(found.dynamics(*state.all())[1].full()).all()
    centre = ca.Function('p', [found.full.q], [ca.jacobian(found.full.points['disc.M'], found.full.q)])(state.q).full()
    np.testing.assert_allclose(centre @ found.accelerations(state)[0], [0.3, -9.81], atol=1e-12)


@pytest.mark.parametrize('kind', KINDS)
def test_one_input_of_two_forces(kind: str) -> None:
    """A couple of opposite forces by one input turns and does not push."""
    disc = body('disc', 2.0, {'M': (0.0, 0.5), 'N': (0.0, -0.5)}, (0.0, 0.0), (0.1,))
    description = mechanism('couple', [disc], [], {'O': (0, 0)}, [angle('theta', 'disc')], (), [
        force('one', 'disc.M', direction=(-1, 0), source='u'), force('two', 'disc.N', direction=(1, 0), source='u')])
    found = Numbers(build_mechanism(description, kind))
    assert found.full.inputs == ('u',)
    state = State(found.start, np.zeros(found.full.n), np.array([0.3]), 0.0, np.zeros(0))
    qdd, _ = found.accelerations(state)
    assert qdd[found.full.names.index('theta')] == pytest.approx(0.3 / 0.1)
    centre = ca.Function('p', [found.full.q], [ca.jacobian(found.full.points['disc.M'] + found.full.points['disc.N'],
                                                           found.full.q)])(state.q).full() / 2
    np.testing.assert_allclose(centre @ qdd, [0.3, -9.81], atol=1e-12)


@pytest.mark.parametrize('kind', KINDS)
def test_force_of_a_driver_beside_a_joint_of_its_name(kind: str) -> None:
    """The sensor gives the torque that turns the driven crank, not a reaction of the joint with the same name."""
    description = driven()
    joints = {name if name != 'pin0' else 'motor': joint if name != 'pin0' else replace(joint, name='motor')
              for name, joint in description.joints.items()}
    sensor = Sensor('torque', 'force', driver='motor')
    found = Numbers(build_mechanism(replace(description, joints=joints, sensors={'torque': sensor}), kind))
    state = found.state(1, 0.5)
    qdd, lam = found.accelerations(state)
    model = sensor_model(found.full)
    everything = np.zeros(found.full.m)
    everything[found.rows] = lam
    output = ca.Function('out', [model.lam], [model.output])(everything)
    assert float(output) == pytest.approx(-lam[found.system.rows.index('drivers.motor')], rel=1e-12)
