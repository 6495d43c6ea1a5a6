# SPDX-License-Identifier: Apache-2.0
"""One machine in the coordinates of its pistons and of its joints: the same residual, weights and estimates."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from core_support import crane, kinematic, work_cycle
from lagrange_by_hand import Lagrange
from machine_variants import REMOVED, changed
from payload_states import Carrier

from mbse_ros.filters.hydraulic_model import NOISES, SHARES, coordinate_scale, hydraulic_model
from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.machine import Machine, load_machine
from mbse_ros.payload.inverse_dynamics import residual
from mbse_ros.payload.paper import sample_step

LOAD = 700.0


@cache
def machine(name: str) -> Machine:
    return load_machine(name)


@cache
def by_angle() -> Machine:
    """The default machine in the angle of its boom; its sensors are those of the piston."""
    return changed('patu655_lift', {'named': {'boom_angle': {'joint': 'boom_joint'}}, 'independent': ['boom_angle'],
                                    'joints/boom_joint/start': '-5 deg'})


@cache
def both_by_angle() -> Machine:
    """patu655 in the angles of both booms."""
    return changed('patu655', {'independent': ['boom_joint', 'tilt_joint'], 'initial': REMOVED,
                               'named': {name: {'joint': name} for name in ('boom_joint', 'tilt_joint')}})


@cache
def centred() -> Machine:
    """zx200_can, whose load is where its file says."""
    return changed('zx200_can', {'payload/center': ['0.75 m', '0 m', '-0.10 m']})


PAIRS = {'crane': (crane, by_angle), 'both booms': (lambda: machine('patu655'), both_by_angle),
         'excavator': (lambda: machine('zx200'), centred)}


@cache
def to_pistons(name: str) -> ca.Function:
    """``(q, X) -> (state in piston coordinates, its slope by X along the loops, pistons' speeds by the joints')``."""
    pistons, joints = (make() for make in PAIRS[name])
    r, system, g = joints.reduced, joints.system, len(joints.coordinates)
    X = ca.SX.sym('X', len(state_names(joints)[0]))
    places = [system.names.index(coordinate) for coordinate in pistons.coordinates]
    zdd = (r.R @ X[2 * g:3 * g] + r.S @ r.c)[places]
    speeds = r.R[places, :]
    Y = ca.vertcat(system.q[places], speeds @ r.zd, zdd, X[3 * g:])
    T = ca.horzcat(ca.jacobian(Y, system.q) @ r.R, ca.jacobian(Y, r.zd), ca.jacobian(Y, X)[:, 2 * g:])
    inputs = [system.q, r.zd, X, joints.parameters.symbol]
    return ca.Function('map', inputs, [Y, T, joints.piston_rates[:, joints.actuated]], {'cse': True})


def states(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A state that carries the load, in joints and pistons, with the slopes between them."""
    joints, rng = PAIRS[name][1](), np.random.default_rng(seed)
    g, low, high = len(joints.coordinates), *joints.range.T
    z = joints.model.start.q[joints.model.z] + 0.15 * (high - low) * rng.uniform(-1, 1, g) * (name != 'crane')
    X = Carrier(joints).state(z, rng.uniform(-0.2, 0.2, g), rng.uniform(-0.3, 0.3, g), LOAD)
    Y, T, S = to_pistons(name)(joints.position(z), X[g:2 * g], X, joints.parameters.mean)
    return X, Y.full()[:, 0], T.full(), S.full()


@cache
def terms(it: Machine) -> ca.Function:
    """``(near, X, parameters) -> (g0, G1)``."""
    r = residual(it)
    return ca.Function('g', [r.near, r.X, it.parameters.symbol], [r.g0, r.G1], {'cse': True})


def value(it: Machine, X: np.ndarray, mass: float) -> np.ndarray:
    """Residual (a,) of the equations of motion."""
    near = it.position(X[:len(it.coordinates)])[it.system.dependent]
    g0, G1 = (item.full()[:, 0] for item in terms(it)(near, X, it.parameters.mean))
    return g0 + G1 * mass


@pytest.mark.parametrize('name', PAIRS)
def test_residual_of_the_joints_is_the_pistons_by_their_levers(name: str) -> None:
    """g_joint = S' g_piston exactly, also where it is not zero: with another mass than is carried."""
    pistons, joints = (make() for make in PAIRS[name])
    X, Y, _, S = states(name, 1)
    for mass in (LOAD, 100.0):
        found, expected = value(joints, X, mass), S.T @ value(pistons, Y, mass)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(S).max())     # N, of forces of 1e5 N
    assert np.abs(found).max() > 100.0


@pytest.mark.parametrize('name', PAIRS)
def test_the_mass_and_its_information_are_the_same(name: str) -> None:
    """With the covariance taken along, where the residual is zero."""
    pistons, joints = (make() for make in PAIRS[name])
    X, Y, T, _ = states(name, 2)
    rng, gates = np.random.default_rng(3), [0.0, 0.0, 1e9, 0.0, 0.0, LOAD]
    kinds = {'position': 1e-3, 'velocity': 0.01, 'acceleration': 0.1, 'pressure': 1e4}
    spread = np.array([kinds.get(item.split('/')[0], 1.0) for item in state_names(joints)[0]])
    root = rng.normal(size=(len(X), 2 * len(X))) / np.sqrt(2 * len(X))
    P = np.diag(spread) @ (root @ root.T) @ np.diag(spread)
    found = []
    for it, state, covariance in ((joints, X, P), (pistons, Y, T @ P @ T.T)):
        near = it.position(state[:len(it.coordinates)])[it.system.dependent]
        begin = np.concatenate([near, np.zeros(len(it.actuated) + 1)])
        y = sample_step(it)(begin, state, np.concatenate([covariance.ravel(), gates, it.parameters.mean]))[1]
        found.append(y.full()[:, 0])
    np.testing.assert_allclose(found[0][1] / found[0][0], LOAD, rtol=1e-9)
    # of pins and zeros of position sensors the derivatives are others: z is what is held
    same = [[True, True, *('points' not in key and not key.endswith('bias') for key in it.parameters.names), True]
            for it in (joints, pistons)]
    np.testing.assert_allclose(found[1][same[1]], found[0][same[0]], rtol=1e-7, atol=1e-9 * np.abs(found[0]).max())


def lever(observer: HydraulicObserver, X: np.ndarray) -> float:
    """Metres of piston for a radian, at a state."""
    it = observer.machine
    f = ca.Function('S', [it.system.q, it.parameters.symbol], [it.piston_rates])
    return float(f(it.position(X[:1]), it.parameters.mean))


def run(observer: HydraulicObserver, start: np.ndarray, spread: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """State and covariance after half a second of the work cycle's first lift, from a state given."""
    frames = work_cycle()[60:111]
    rows = np.array([[*f.samples.values()] for f in frames])
    sent = np.array([[*f.commands.values()] for f in frames])
    steps = np.arange(1, 501) / 10
    values = np.column_stack([np.interp(steps, np.arange(len(rows)), column) for column in rows.T])
    observer.start(rows[0], sent[0])
    observer.running.state[:len(start)] = start
    observer.running.state[np.diag(observer._full)] = (spread / observer.model.scale) ** 2
    if observer.model.dependent.numel():
        observer.running.state[-1] = observer.machine.position(start[:1])[observer.machine.system.dependent[0]]
    result = observer.process(values, np.repeat(sent[:-1], 10, axis=0), np.full(3, 10.0), 1e-3)
    return result.mean[-1], result.covariance


def test_estimates_of_the_same_samples() -> None:
    """Noise made equal by the lever at the pose: pistons, pressures and spool agree within 5 % of their deviations.

    What is left: the noise is made equal at the start only, and the lever changes along the way.
    """
    rows = work_cycle()[60]
    piston = HydraulicObserver(crane(), kinematic(acceleration_psd=10.0), 'vm')
    angle = HydraulicObserver(by_angle(), kinematic(), 'vm')
    z = rows.position
    theta = by_angle().system.names.index('boom_angle')
    q = crane().position(z)
    start = np.array([z[0], 0.0, 0.0, *rows.pressure, 0.0])
    turned = np.array([q[theta], 0.0, 0.0, *rows.pressure, 0.0])
    S = lever(angle, turned)
    angle.configure(kinematic(acceleration_psd=10.0 * (coordinate_scale(by_angle())[0] / S) ** 2))
    spread = np.array([4e-4, 0.05, 0.5, 12e3, 8e3, 0.5])
    X, P = run(piston, start, spread)
    Y, C = run(angle, turned, spread / np.array([S, S, S, 1, 1, 1]))
    found = by_angle().position(Y[:1])[by_angle().pistons[0]]
    deviations = np.sqrt(np.diag(P))
    assert abs(found - X[0]) < 0.05 * deviations[0] and abs(X[0] - z[0]) > 20 * deviations[0]
    np.testing.assert_array_less(np.abs(Y - X)[3:], 0.05 * deviations[3:])
    now = lever(angle, Y)
    assert 0.001 < abs(now / S - 1.0) < 0.03
    assert abs(now * Y[1] - X[1]) < 0.05 * deviations[1]
    np.testing.assert_allclose(np.sqrt(np.diag(C))[:3] * now, deviations[:3], rtol=0.03)
    np.testing.assert_allclose(np.sqrt(np.diag(C))[3:], deviations[3:], rtol=0.01)


def test_lever_of_each_coordinate() -> None:
    """1 for pistons, nothing for the swing; of boom and arm joint by hand frames, of the bucket's by differences."""
    assert coordinate_scale(machine('zx200')) == [None, 1.0, 1.0, 1.0]
    it = machine('zx200_can')
    found, hand, start = coordinate_scale(it), Lagrange(it.description), it.model.start.q
    assert found[0] is None
    for k, name in ((1, 'boom'), (2, 'arm'), (3, 'bucket')):
        (low, high), place, squares = it.range[k], it.model.z[k], []
        for share in SHARES:
            z = start[it.model.z].copy()
            z[k] = low + share * (high - low)
            ends = []
            for step in (-1e-6, 1e-6):
                z_step = z + step * np.eye(4)[k]
                if name == 'bucket':
                    ends.append(it.position(z_step)[it.pistons[2]])
                else:
                    joints = dict(zip(it.system.names, start)) | {it.coordinates[k]: z_step[k]}
                    ends.append(hand.piston(hand.at(joints), name))
            squares.append(((ends[1] - ends[0]) / 2e-6) ** 2)
        assert found[k] == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-6), (name, place)


def test_noise_of_a_joint_is_the_pistons_by_its_lever() -> None:
    it = machine('zx200_can')
    model, settings = hydraulic_model(it), kinematic()
    psd = [getattr(settings, name) for name in NOISES]
    W = np.diag(ca.Function('W', [model.psd, it.parameters.symbol], [model.W])(psd, it.parameters.mean).full())
    levers, first = coordinate_scale(it), model.names.index('acceleration/swing_joint')
    expected = [settings.free_psd, *(settings.acceleration_psd / lever ** 2 for lever in levers[1:])]
    np.testing.assert_allclose(W[first:first + 4], expected, rtol=1e-12)
    assert (W[:first] == 0).all()
