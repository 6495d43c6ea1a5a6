# SPDX-License-Identifier: Apache-2.0
"""Gates of the payload: each cylinder's equation has its own, and what the observer's noise may feign opens none. Those
by the states alone are those of the inverse dynamics, but for acceleration, however the steps come."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from machine_variants import variant

from mbse_ros.description.load import known_machines, load_mechanism
from mbse_ros.errors import PositionProblemError
from mbse_ros.filters.hydraulic_model import coordinate_scale
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.machine import Machine, load_machine
from mbse_ros.payload.gates import GATES, StateGates, slowest
from mbse_ros.payload.inverse_dynamics import residual
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.payload.paper import InverseDynamics, MassSamples
from mbse_ros.streams.stages import PayloadStage

LOAD = 300.0
STDDEV = {'position': 5e-5, 'velocity': 1e-3, 'acceleration': 0.01, 'pressure': 1e4, 'spool': 1e-3}
LIFT, TILT = 0.25, 0.4      # m, mid stroke
NOT_HERE = GATES.index('accelerating')


@cache
def machine() -> Machine:
    """Two cylinders, lift and tilt."""
    return load_machine('patu655')


@cache
def dynamics() -> InverseDynamics:
    return InverseDynamics(machine(), 'vm')


@cache
def balance() -> ca.Function:
    """What is missing along each cylinder, N, with the load."""
    r = residual(machine())
    g = ca.substitute(r.g0 + r.G1 * LOAD, machine().parameters.symbol, ca.SX(machine().parameters.mean))
    return ca.Function('g', [r.near, r.X], [g, ca.jacobian(g, r.X)])


def state(pistons: tuple[float, float], speeds: tuple[float, float], zdd: tuple[float, float] = (0.0, 0.0)
          ) -> np.ndarray:
    """State (nx,), SI, that carries the load: the piston sides take the balance."""
    names, m = state_names(machine())[0], machine()
    X, kinds = np.zeros(len(names)), np.array([name.split('/')[0] for name in names])
    X[kinds == 'position'], X[kinds == 'velocity'], X[kinds == 'acceleration'] = pistons, speeds, zdd
    X[kinds == 'pressure'] = 4e6
    near, sides = m.position(np.array(pistons))[m.system.dependent], np.flatnonzero(kinds == 'pressure')[::2]
    for _ in range(20):
        g, J = (item.full() for item in balance()(near, X))
        X[sides] -= np.linalg.solve(J[:, sides], g[:, 0])
    assert np.abs(balance()(near, X)[0].full()).max() < 1e-5
    return X


def weighed(states: list[np.ndarray], settings: PayloadSettings = PayloadSettings(), **stddev: float) -> MassSamples:
    names, found = state_names(machine())[0], dynamics()
    found.configure(settings)
    found.reset()
    spread = np.array([{**STDDEV, **stddev}[name.split('/')[0]] for name in names])
    return found.process(np.array(states), np.diag(spread ** 2))


def masses(samples: MassSamples) -> np.ndarray:
    return samples.rows[:, 1] / samples.rows[:, 0]


def gates(samples: MassSamples) -> list[str]:
    return [GATES[int(number)] for number in samples.closed]


def stuck(X: np.ndarray, pressure: float = 1e6) -> np.ndarray:
    """The state with another pressure at the tilt cylinder's piston, that its friction takes up."""
    X = X.copy()
    X[state_names(machine())[0].index('pressure/tilt_piston')] += pressure
    return X


def test_a_standing_cylinder_leaves_the_weighing_to_the_others() -> None:
    samples = weighed([stuck(state((LIFT, TILT), (0.05, 0.0)))])
    assert gates(samples) == ['open'] and masses(samples)[0] == pytest.approx(LOAD, abs=1e-3)


def test_moving_cylinders_weigh_together() -> None:
    right, wrong = weighed([state((LIFT, TILT), (0.05, 0.05))]), weighed([stuck(state((LIFT, TILT), (0.05, 0.05)))])
    alone = weighed([state((LIFT, TILT), (0.05, 0.0))])
    assert gates(right) == gates(wrong) == ['open'] and masses(right)[0] == pytest.approx(LOAD, abs=1e-3)
    assert abs(masses(wrong)[0] - LOAD) > 1.0
    assert right.rows[0, 0] > alone.rows[0, 0]


@pytest.mark.parametrize('pistons, speeds, gate', [
    ((LIFT, TILT), (0.0, 0.0), 'too slow'), ((0.002, TILT), (0.05, 0.0), 'too slow'),
    ((LIFT, 0.002), (0.0, 0.05), 'too slow'), ((0.002, 0.002), (0.05, 0.05), 'outside the stroke'),
    ((LIFT, 0.002), (0.05, 0.05), 'open'), ((LIFT, TILT), (-0.05, 0.0), 'open'), ((LIFT, TILT), (0.0, 0.05), 'open')])
def test_a_gate_is_closed_where_no_equation_passes_it(pistons: tuple, speeds: tuple, gate: str) -> None:
    assert gates(weighed([state(pistons, speeds)])) == [gate]


def test_acceleration_closes_its_gate() -> None:
    assert gates(weighed([state((LIFT, TILT), (0.05, 0.0), (0.5, 0.0))])) == ['accelerating']


def test_a_sample_is_rejected_where_a_cylinder_starts_or_stops() -> None:
    one, both = state((LIFT, TILT), (0.05, 0.0)), state((LIFT, TILT), (0.05, 0.05))
    still = state((LIFT, TILT), (0.0, 0.0))
    assert gates(weighed([one, one, both, both, one, still, one])) == [
        'open', 'open', 'accelerating', 'open', 'accelerating', 'too slow', 'open']


@pytest.mark.parametrize('significance, gate', [(0.0, 'open'), (1.9, 'open'), (3.0, 'too slow')])
def test_a_piston_moves_if_that_is_significant(significance: float, gate: str) -> None:
    settings = PayloadSettings(significance=significance)
    assert gates(weighed([state((LIFT, TILT), (0.01, 0.0))], settings, velocity=5e-3)) == [gate]


@pytest.mark.parametrize('significance, gate', [(0.0, 'accelerating'), (3.0, 'open')])
def test_acceleration_counts_if_it_is_significant(significance: float, gate: str) -> None:
    settings = PayloadSettings(significance=significance, max_sample_share=100.0)
    samples = weighed([state((LIFT, TILT), (0.05, 0.0), (0.5, 0.0))], settings, acceleration=0.3)
    assert gates(samples) == [gate]


@pytest.mark.parametrize('factor, gate', [(1.1, 'open'), (0.9, 'not observable')])
def test_largest_deviation_is_a_share_of_the_range(factor: float, gate: str) -> None:
    X = state((LIFT, TILT), (0.05, 0.0))
    low, high = machine().description.payload.limits
    deviation = float(weighed([X]).rows[0, 0] ** -0.5)
    settings = PayloadSettings(max_sample_share=factor * deviation / (high - low))
    assert gates(weighed([X], settings)) == [gate]


def test_the_gate_does_not_depend_on_other_limits_than_the_machines() -> None:
    """The same crane with a tenth of the range: its largest deviation is a tenth."""
    payload = machine().description.payload
    low, high = payload.limits
    small = Machine(replace(machine().description, payload=replace(payload, limits=(low, low + (high - low) / 10))))
    found = InverseDynamics(small, 'vm')
    found.configure(PayloadSettings())
    dynamics().configure(PayloadSettings())
    assert found._p[found._size + 3] == pytest.approx(100 * dynamics()._p[found._size + 3])


def slow_friction(*cylinders: str) -> Machine:
    """The crane with friction that changes its sign up to 30 mm/s."""
    found = dict(machine().description.cylinders)
    for name in cylinders:
        friction = found[name].friction
        transition = replace(friction.transition_velocity, value=0.03)
        found[name] = replace(found[name], friction=replace(friction, transition_velocity=transition))
    return Machine(replace(machine().description, cylinders=found))


@pytest.mark.parametrize('cylinders, speed, gate', [
    (('lift', 'tilt'), 0.033, 'too slow'), (('lift', 'tilt'), 0.038, 'open'), (('tilt',), 0.033, 'open'), ((), 0.0055,
                                                                                                  'too slow')])
def test_a_cylinder_weighs_where_its_friction_is_known(cylinders: tuple, speed: float, gate: str) -> None:
    """From 1.2 times the transition velocity of its own friction on; a stated speed replaces that of all."""
    found, X = StateGates(slow_friction(*cylinders), 'vm'), state((LIFT, TILT), (speed, 0.0))
    found.configure(PayloadSettings(significance=0.0))
    assert GATES[int(found.closed(X[None])[0])] == gate
    found.configure(PayloadSettings(significance=0.0, min_speed=0.005))
    assert GATES[int(found.closed(X[None])[0])] == 'open'


def test_a_stated_speed_below_the_transition_velocity_is_said() -> None:
    crane = slow_friction('tilt')
    said = PayloadStage(crane, PayloadSettings(min_speed=0.006), 'vm').note
    assert 'payload.min_speed: 0.006 m/s' in said and '0.03 m/s' in said
    assert 'patu655.yaml: cylinders.tilt.friction.transition_velocity' in said
    for settings in PayloadSettings(), PayloadSettings(min_speed=0.036):
        assert PayloadStage(crane, settings, 'vm').note == ''


def test_the_margin_is_at_least_the_length_of_an_end_stop() -> None:
    crane = variant('patu655', **{f'cylinders__{name}__end_stop': {
        'stiffness': '1e7 N/m', 'damping': '5e3 N*s/m', 'length': '20 mm'} for name in ('lift', 'tilt')})
    found = StateGates(crane, 'vm')
    found.configure(PayloadSettings())
    assert [GATES[int(found.closed(state((at, at), (0.05, 0.05))[None])[0])] for at in (0.019, 0.021)] == [
        'outside the stroke', 'open']


def test_the_shipped_machines_weigh_as_before() -> None:
    for path in known_machines().values():
        machine_of = Machine(load_mechanism(path))
        if machine_of.description.payload is not None:
            assert slowest(machine_of, 0.0) == [0.006] * len(machine_of.cylinders)


def motion(machine: Machine, count: int = 300) -> np.ndarray:
    """States (n, nx) of a motion through the range and beyond the margins, with rests and large accelerations."""
    names, g, t = state_names(machine)[0], len(machine.coordinates), np.linspace(0.0, 1.0, count)[:, None]
    X, (low, high), k = np.zeros((count, len(names))), machine.range.T, np.arange(g) + 1
    middle, half = (low + high) / 2, np.minimum((high - low) / 2, 1.2)
    X[:, :g] = middle + 1.004 * half * np.sin(2 * t * k)
    X[:, g:2 * g] = 0.08 * np.sin(9 * t * k) * half
    X[:, 2 * g:3 * g] = 1.5 * np.sin(5 * t * k) ** 3
    X[:, 3 * g:3 * g + len(machine.volumes)] = 5e6
    return X


@pytest.mark.parametrize('name', ['patu655_lift', 'patu655', 'zx200_can'])
@pytest.mark.parametrize('settings', [PayloadSettings(), PayloadSettings(max_sample_share=3e-3, stroke_margin=0.05)])
def test_gates_are_those_of_the_inverse_dynamics(name: str, settings: PayloadSettings) -> None:
    machine = load_machine(name)
    found, expected, X = StateGates(machine, 'vm'), InverseDynamics(machine, 'vm'), motion(machine)
    found.configure(settings)
    expected.configure(settings)
    covariance = np.zeros((X.shape[1], X.shape[1]))
    for k, scale in enumerate(coordinate_scale(machine)):
        if k in machine.actuated:
            covariance[2 * len(machine.coordinates) + k, 2 * len(machine.coordinates) + k] = (0.01 / scale) ** 2
    closed = expected.process(X, covariance).closed
    assert len(set(closed)) >= 3
    np.testing.assert_array_equal(found.closed(X), np.where(closed == NOT_HERE, 0, closed))


def test_segments_change_nothing() -> None:
    machine = load_machine('patu655')
    gates, X = StateGates(machine, 'vm'), motion(machine)
    gates.configure(PayloadSettings())
    whole = gates.closed(X)
    gates.reset()
    np.testing.assert_array_equal(np.concatenate([gates.closed(row[None, :]) for row in X]), whole)


def test_out_of_reach() -> None:
    machine = load_machine('zx200')
    gates, X = StateGates(machine, 'vm'), motion(machine)[:2]
    gates.configure(PayloadSettings())
    gates.closed(X[:1])
    X[1, :len(machine.coordinates)] = np.nan
    with pytest.raises(PositionProblemError):
        gates.closed(X)
