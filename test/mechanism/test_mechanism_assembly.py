# SPDX-License-Identifier: Apache-2.0
"""From descriptions to systems: names, rows, inputs, free and uncertain numbers, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from complex_step import STEP
from mechanism_numbers import CASES, Numbers, evaluate, numbers, saddle
from mechanism_samples import (
    along,
    angle,
    body,
    distance,
    driven,
    four_bar,
    four_bar_loaded,
    inverted_slider,
    joint,
    mechanism,
    pins,
    reversed_chain,
    slider_crank,
    welded,
)
from spatial_samples import spatial_four_bar

from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.configurations import assemble, nearest
from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import DescriptionError, SettingError
from mbse_ros.mechanism.assembly import MechanismSystem, build_mechanism

KINDS = ['natural', 'reference_point', 'relative']
YAML = """
format: mbse/mechanism/1
name: study
gravity: g
parameters:
  g: 9.81 m/s^2
  a: {A}
  b: {B}
  L: 2*a
  density: 1.3
points:
  O: {{fixed: [0, 0]}}
  Q: {{fixed: [sqrt(8)*b, 0]}}
  P: [L*0.7, L*0.7]
  R: [2.1, 1.2]
bodies:
  crank: {{points: [O, P], length: L, mass: density*L, uniform: true}}
  coupler: {{points: [P, R], length: 2.2, mass: 1.1, uniform: true}}
  rocker: {{points: [R, Q], length: 1.9, mass: 0.7, center_of_mass: [b/2, 0.1], inertia: 0.3*b**2}}
named:
  theta: {{angle: crank}}
independent: [theta]
springs:
  coil: {{points: [O, R], stiffness: 40*b, free: a, damping: 3}}
forces:
  motor: {{coordinate: theta, input: torque}}
"""


def study(a: float = 0.9, b: float = 1.1) -> str:
    return YAML.format(A=float(a), B=float(b))


def zdd(system: MechanismSystem, theta: float, rate: float, p: np.ndarray) -> np.ndarray:
    """Acceleration of theta at parameters a complex step from the nominal ones, where the rest of q follows."""
    i = system.names.index('theta')
    rest = [k for k in range(system.n) if k != i]
    kinds = ca.Function('phi', [system.q, system.t, system.values.symbol],
                        [system.Phi, ca.jacobian(system.Phi, system.q)])
    found = Numbers(system)
    q = found.start.copy()
    q[i] = theta
    q = assemble(found.residual, q, [i]).astype(complex)
    for _ in range(2):
        phi, J = evaluate(kinds, q, [0.0], p)
        q[rest] -= np.linalg.solve(J[0][:, rest], phi[0, :, 0])
    J = evaluate(kinds, q, [0.0], p)[1][0]
    qd = np.zeros(system.n, dtype=complex)
    qd[i] = rate
    qd[rest] = np.linalg.solve(J[:, rest], -J[:, i] * rate)
    M, Q, J, _, c = evaluate(found.dynamics, q, qd, [0.4], [0.0], p)
    return saddle(M, J, Q[..., 0], c[..., 0])[0][0, i]


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('place, name', [(0, 'a'), (1, 'b')])
def test_derivative_by_a_parameter(kind: str, place: int, name: str) -> None:
    """d zdd / d parameter, through all arithmetic with it, as by differences of files with another number: 1e-8."""
    system = build_mechanism(parse_mechanism(study()), kind, free=(name,))
    assert system.values.names == [name]
    mean = system.values.mean
    np.testing.assert_allclose(mean, [(0.9, 1.1)[place]])
    exact = zdd(system, 0.9, 1.7, mean + 1j * STEP).imag / STEP

    def rebuilt(change: float) -> float:
        numbers_now = np.array([0.9, 1.1])
        numbers_now[place] += change
        return zdd(build_mechanism(parse_mechanism(study(*numbers_now)), kind), 0.9, 1.7, np.zeros(0)).real
    h = 2e-3
    slope = (45 * (rebuilt(h) - rebuilt(-h)) - 9 * (rebuilt(2 * h) - rebuilt(-2 * h))
             + rebuilt(3 * h) - rebuilt(-3 * h)) / (60 * h)
    assert exact == pytest.approx(slope, rel=1e-8)


@pytest.mark.parametrize('kind', KINDS)
def test_what_does_not_close_is_reported_with_the_nearest_place(kind: str) -> None:
    """With a coupler too short the least residual is where its gradient vanishes, wherever the way there begins."""
    short = build_mechanism(parse_mechanism(study().replace('length: 2.2', 'length: 0.2')), kind)
    i, size = [short.names.index('theta')], []
    found = ca.Function('phi', [short.q, short.t, short.values.symbol], [short.Phi, ca.jacobian(short.Phi, short.q)])

    def residual(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        phi, J = evaluate(found, q, [0.0], np.zeros(0))
        return phi[0, :, 0].real, J[0].real
    for disturbance in (0.0, 1e-12, 1e-3):
        guess = short.start + disturbance * np.cos(np.arange(short.n))
        q = nearest(residual, guess, i, np.array([0.8]))
        phi, J = residual(q)
        gradient = np.delete(J.T @ phi, i)
        assert q[i[0]] == 0.8 and np.max(np.abs(phi)) > 1e-2 and np.max(np.abs(gradient)) < 1e-5
        size.append(np.max(np.abs(phi)))
    assert size == pytest.approx([size[0]] * 3, rel=1e-4)


def test_free_by_name_or_by_key() -> None:
    description = parse_mechanism(study())
    system = build_mechanism(description, free=('springs.coil.free', 'parameters.a', 'bodies.coupler.mass'))
    assert set(system.values.names) == {'a', 'bodies.coupler.mass', 'springs.coil.free'}
    again = build_mechanism(description, free=('a',))
    assert again.values.names == ['a'] and again.values.mean == pytest.approx([0.9])
    assert build_mechanism(description).values.names == []


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('name', ['c', 'bodies.crank.weight', 'initial', ''])
def test_unknown_free_names_are_refused(kind: str, name: str) -> None:
    with pytest.raises(SettingError) as caught:
        build_mechanism(parse_mechanism(study()), kind, free=('a', name))
    assert caught.value.value == name


def test_a_standard_deviation_makes_a_symbol() -> None:
    """Parameters and other numbers; what is derived from an uncertain parameter follows its symbol."""
    text = study().replace('a: 0.9', 'a: {value: 0.9, stddev: 0.01}').replace(
        'mass: 1.1,', 'mass: {value: 1.1, stddev: 0.2},')
    system = build_mechanism(parse_mechanism(text))
    assert dict(zip(system.values.names, system.values.stddev)) == {'a': 0.01, 'bodies.coupler.mass': 0.2}
    np.testing.assert_allclose(system.values.mean, [0.9, 1.1])
    row = system.Phi[system.rows.index('crank.length')]
    slope = ca.Function('s', [system.q, system.values.symbol], [ca.jacobian(row, system.values.symbol)])
    np.testing.assert_allclose(slope(np.ones(system.n), [0.9, 1.1]).full(), [[-8 * 0.9, 0.0]], atol=1e-14)


@pytest.mark.parametrize('kind', KINDS)
def test_a_driver_over_a_free_parameter(kind: str) -> None:
    system = build_mechanism(driven(), kind, free=('speed',))
    row = ca.Function('r', [system.q, system.t, system.values.symbol], [
        ca.jacobian(system.Phi[system.driven[0]], system.values.symbol)])
    assert system.rows[system.driven[0]] == 'drivers.motor' and len(system.driven) == 1
    assert float(row(system.start, 0.7, [1.4])) == pytest.approx(-0.7)


@pytest.mark.parametrize('name, kind', CASES)
def test_shapes_and_names(name: str, kind: str) -> None:
    """Everything has its name once, and all parts fit together."""
    system = numbers(name, kind).full
    n, m = system.n, system.m
    assert len(set(system.names)) == n == system.qd.numel() == len(system.start)
    assert len(set(system.rows)) == m == len(system.owners) == len(system.row_bodies)
    assert system.M.shape == (n, n) and system.Q.shape == system.other_forces.shape == (n, 1)
    d = system.description
    known = {'ground', *d.bodies}
    assert set(system.frames) == known and all(set(bodies) <= known for bodies in system.row_bodies)
    assert set(system.owners) <= {*d.joints, *d.bodies, *d.coordinates, *d.drivers}
    assert set(d.coordinates) <= set(system.names)
    M = ca.Function('M', [system.q, system.values.symbol], [system.M])(system.start, system.values.mean).full()
    np.testing.assert_allclose(M, M.T, atol=1e-14)
    assert np.linalg.eigvalsh(M).min() > -1e-12


@pytest.mark.parametrize('kind, description, held', [
    ('natural', four_bar_loaded, {'x'}), ('natural', reversed_chain, {'tip'}),
    ('reference_point', four_bar, {'theta'}), ('reference_point', reversed_chain, {'total'}),
    ('reference_point', slider_crank, {'theta'}), ('relative', four_bar, {'theta'}),
    ('relative', reversed_chain, {'bend', 'lift'}), ('relative', slider_crank, {'theta'}),
    ('relative', inverted_slider, {'theta'}), ('relative', welded, {'theta', 'reach', 'spin'}),
    ('relative', spatial_four_bar, {'theta', 'swing'})])
def test_coordinates_that_are_there_already_get_the_name(kind: str, description, held: set[str]) -> None:
    """No row is added for them."""
    system = build_mechanism(description(), kind)
    assert {name for name in system.description.coordinates if name not in system.rows} == held


def test_names_of_joints_step_back() -> None:
    """A named coordinate called like a joint of another quantity is the one that the name means."""
    description = four_bar(coordinates=[distance('pin0', 'ground.B', 'crank.P1'), along('pin1', 'pin0')], forces=[])
    system = build_mechanism(description, 'relative')
    assert system.names == ('pin1', 'pin1.joint', 'pin2', 'pin0')
    found = Numbers(system)
    length = ca.Function('l', [system.q], [ca.norm_2(system.points['crank.P1'] - system.points['ground.B'])])
    assert found.start[3] == pytest.approx(float(length(found.start)))
    assert found.start[0] == pytest.approx(np.pi / 3)


def test_the_same_quantity_twice() -> None:
    for kind in KINDS:
        found = Numbers(build_mechanism(four_bar(coordinates=[angle('theta', 'crank'), along('again', 'pin0')]), kind))
        i, k = (found.full.names.index(name) for name in ('theta', 'again'))
        assert found.start[i] == pytest.approx(found.start[k], abs=1e-12)


def test_angles_beyond_half_a_turn_agree() -> None:
    """Bodies at 170 and -170 degrees: the relative angle is -20 degrees in all kinds of coordinates, not 340."""
    high, low = np.radians(170), np.radians(-170)
    first = body('first', 1.0, {'A': (0, 0), 'B': (1, 0)}, turn=low)
    second = body('second', 1.0, {'B': (0, 0), 'C': (1, 0)}, at=(np.cos(low), np.sin(low)), turn=high)
    joints = [joint('a', 'revolute', 'ground.A', 'first.A'), joint('b', 'revolute', 'first.B', 'second.B', rpy=(3.0,))]
    description = mechanism('back', [first, second], joints, {'A': (0, 0)},
                            [angle('phi', 'first', 'second'), along('bend', 'b')])
    for kind in KINDS:
        system = build_mechanism(description, kind)
        assert system.start[system.names.index('phi')] == pytest.approx(np.radians(-20))
        assert system.start[system.names.index('bend')] == pytest.approx(2 * np.pi - np.radians(20) - 3.0)


def test_what_is_refused() -> None:
    with pytest.raises(SettingError, match='one of natural, reference_point, relative'):
        build_mechanism(four_bar(), 'cartesian')
    with pytest.raises(SettingError, match='P1.x'):
        build_mechanism(four_bar(), 'natural', independent=('P3.x',))
    with pytest.raises(DescriptionError, match='natural coordinates are for a plane'):
        build_mechanism(spatial_four_bar(), 'natural')
    rigid = mechanism('rigid', [body('block', 1.0, {'P': (0, 0), 'Q': (1, 0)})], [joint(
        'weld', 'fixed', 'ground.O', 'block.P')], {'O': (0, 0)})
    with pytest.raises(DescriptionError, match='a body that can move'):
        build_mechanism(rigid, 'relative')


def test_independent_coordinates_and_inputs() -> None:
    system = build_mechanism(four_bar_loaded(), 'natural', independent=('theta',))
    assert [system.names[i] for i in system.independent] == ['theta']
    assert system.inputs == ('torque', 'push', 'spin') and system.u.numel() == 3
    assert build_mechanism(replace(four_bar_loaded(), independent=('phi',))).names[system.names.index('phi')] == 'phi'
    two = mechanism('pair', [body('a', 1.0, {'A': (0, 0), 'B': (1, 0)})], pins('ground.A a.A'), {'A': (0, 0)})
    assert build_mechanism(two).inputs == () and build_mechanism(two).u.shape == (0, 1)


def test_free_velocities_are_the_slowest_in_any_coordinates() -> None:
    """With coordinates chosen by the numbers, what the file leaves open has the smallest kinetic energy."""
    text = '''
format: mbse/mechanism/1
name: chain
gravity: 9.81
points: {A: {fixed: [0, 0]}, P: [1, 0], Q: [2, 0.5], R: [3, 0]}
bodies:
  a: {points: [A, P], mass: 1, uniform: true}
  b: {points: [P, Q], mass: 2, uniform: true}
  c: {points: [Q, R], mass: 2, uniform: true}
named: {swing: {angle: b}}
initial: {velocity: {swing: 1}}
'''
    models = [load_model(parse_mechanism(text), kind, backend='vm')
              for kind in ('natural', 'reference_point', 'relative')]
    energies = [model.energy(model.start.q, model.start.qd).kinetic for model in models]
    np.testing.assert_allclose(energies, energies[0], rtol=1e-10)
    assert len({model.independent for model in models}) > 1
