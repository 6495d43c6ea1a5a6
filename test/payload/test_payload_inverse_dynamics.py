# SPDX-License-Identifier: Apache-2.0
"""Mass samples: the closed form against the paper's iteration and brute force, gates, free fall, bad states."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from core_support import crane, two_cylinders
from payload_states import Carrier

from mbse_ros.errors import PositionProblemError
from mbse_ros.payload.gates import GATES
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.payload.paper import InverseDynamics

OPEN = PayloadSettings(min_speed=0.0, max_acceleration_share=100.0, max_sample_share=1e3, stroke_margin=0.0)
STDDEV = {'position': 5e-5, 'velocity': 1e-3, 'acceleration': 0.1, 'pressure': 1e4, 'spool': 1e-3}


def newton_mass(g: Callable[[float], float], start: float, epsilon: float = 1e-2, iterations: int = 20,
                tolerance: float = 1e-10) -> float:
    """Mass, kg, that makes a scalar residual zero, by the paper's iteration with forward differences (Eqs. 56, 57).

    The reference of the closed form; NaN when the residual does not depend on the mass.
    """
    mass = start
    for _ in range(iterations):
        value = g(mass)
        slope = (g(mass + epsilon) - value) / epsilon
        if slope == 0.0:
            return float('nan')
        step = value / slope
        mass -= step
        if abs(step) <= tolerance * max(1.0, abs(mass)):
            break
    return mass


def covariance(carrier: Carrier, seed: int = 0) -> np.ndarray:
    """Covariance of a state with correlations."""
    spread = np.array([STDDEV[name.split('/')[0]] for name in carrier.names])
    root = np.random.default_rng(seed).normal(size=(len(spread), 2 * len(spread)))
    P = root @ root.T
    return P / np.sqrt(np.outer(np.diag(P), np.diag(P))) * np.outer(spread, spread)


def sampler(carrier: Carrier, settings: PayloadSettings = OPEN, backend: str = 'vm') -> InverseDynamics:
    dynamics = InverseDynamics(carrier.machine, backend)
    dynamics.configure(settings)
    return dynamics


def random_state(carrier: Carrier, seed: int) -> np.ndarray:
    """Any state at all: the mass it stands for is what it is."""
    rng, n = np.random.default_rng(seed), len(carrier.machine.cylinders)
    X = carrier.state(carrier.machine.stroke[:, 1] * rng.uniform(0.1, 0.9, n), rng.uniform(-0.2, 0.2, n),
                      rng.uniform(-0.3, 0.3, n), 50.0)
    pressures = [name.startswith('pressure') for name in carrier.names]
    X[pressures] *= rng.uniform(0.7, 1.3, sum(pressures))
    return X


@pytest.fixture(scope='module')
def one() -> Carrier:
    return Carrier(crane())


@pytest.fixture(scope='module')
def two() -> Carrier:
    return Carrier(two_cylinders())


def test_closed_form_is_the_papers_newton_iteration(one: Carrier) -> None:
    """Eqs. 56, 57 with epsilon 1e-2 kg, from 0 kg, on the whole residual: 1e-9 relative."""
    states = np.array([random_state(one, seed) for seed in range(30)])
    dynamics = sampler(one)
    for X in states:
        dynamics.reset()
        (row,) = dynamics.process(X[None, :], covariance(one)).rows
        assert row[1] / row[0] == pytest.approx(newton_mass(lambda m: float(one.residual(X, m)[0]), 0.0), rel=1e-9)


@pytest.mark.parametrize('mass', [0.0, 50.0, 900.0])
@pytest.mark.parametrize('which', ['one', 'two'])
def test_known_mass_comes_back(which: str, mass: float, request: pytest.FixtureRequest) -> None:
    carrier = request.getfixturevalue(which)
    n = len(carrier.machine.cylinders)
    X = carrier.state(carrier.machine.stroke[:, 1] * 0.4, np.full(n, 0.05), np.full(n, 0.02), mass)
    (row,) = sampler(carrier).process(X[None, :], covariance(carrier)).rows
    assert row[1] / row[0] == pytest.approx(mass, abs=1e-7)


def test_two_cylinders_are_weighed_by_the_covariance(two: Carrier) -> None:
    """Least squares with the inverse of J P J', J by central differences at the reference mass."""
    for seed, reference in enumerate([0.0, 50.0, 300.0]):
        X, P = random_state(two, seed), covariance(two, seed)
        (row,) = sampler(two).process(X[None, :], P, reference).rows
        g0 = two.residual(X, 0.0)
        g1 = two.residual(X, 1.0) - g0
        steps = np.array([STDDEV[name.split('/')[0]] for name in two.names]) * 0.1
        J = np.column_stack([(two.residual(X + h * e, reference) - two.residual(X - h * e, reference)) / (2 * h)
                             for h, e in zip(steps, np.eye(len(X)))])
        weight = np.linalg.inv(J @ P @ J.T)
        assert row[0] == pytest.approx(g1 @ weight @ g1, rel=1e-4)
        assert row[1] / row[0] == pytest.approx(-g1 @ weight @ g0 / (g1 @ weight @ g1), rel=1e-4)


def test_information_is_the_inverse_of_the_samples_variance(one: Carrier) -> None:
    """Masses of states drawn from the covariance scatter by it."""
    X, P = one.state([0.2], [0.08], [0.0], 50.0), covariance(one)
    rng, dynamics = np.random.default_rng(6), sampler(one)
    drawn = X + rng.standard_normal((3000, len(X))) @ np.linalg.cholesky(P).T
    rows = dynamics.process(drawn, P).rows
    (at,) = sampler(one).process(X[None, :], P, 50.0).rows
    assert np.var(rows[:, 1] / rows[:, 0]) == pytest.approx(1 / at[0], rel=0.12)


def test_weights_do_not_depend_on_the_samples_own_error(one: Carrier) -> None:
    """The same motion with pressures that say more or less mass: the same information, so a mean has no bias."""
    X = np.tile(one.state([0.2], [0.08], [0.0], 50.0), (3, 1))
    X[:, 3] += [-2e5, 0.0, 2e5]
    rows = sampler(one).process(X, covariance(one)).rows
    assert rows[0, 1] < rows[1, 1] < rows[2, 1]
    np.testing.assert_allclose(rows[:, 0], rows[1, 0], rtol=1e-3)      # the fluid's friction depends on the pressure
    np.testing.assert_array_equal(sampler(one).process(X, covariance(one), 0.0).rows, rows)


@pytest.mark.parametrize('change, gate', [
    ({}, 'open'), ({'min_speed': 0.06}, 'too slow'), ({'min_speed': 0.05}, 'open'),
    ({'stroke_margin': 0.2}, 'outside the stroke'),
    ({'max_sample_share': 1e-3}, 'not observable'), ({'max_acceleration_share': 0.01}, 'accelerating')])
def test_gates(one: Carrier, change: dict[str, float], gate: str) -> None:
    settings = dict(min_speed=0.0, significance=0.0, max_acceleration_share=0.2, max_sample_share=1e3,
                    stroke_margin=0.0) | change
    X = one.state([0.1], [0.05], [0.1], 50.0)
    samples = sampler(one, PayloadSettings(**settings)).process(X[None, :], covariance(one))
    assert GATES[int(samples.closed[0])] == gate and samples.clean == (gate == 'open')


@pytest.mark.parametrize('z, gate', [(-0.001, 'outside the stroke'), (0.536, 'outside the stroke'), (0.006, 'open'),
                                     (0.529, 'open'), (0.004, 'outside the stroke'), (0.532, 'outside the stroke')])
def test_ends_of_the_stroke(one: Carrier, z: float, gate: str) -> None:
    """The margin of 5 mm; pressures do not matter for it."""
    X = one.state([0.2], [0.01], [0.0], 50.0)
    settings = PayloadSettings(max_sample_share=1e3, max_acceleration_share=100.0)
    X[0] = z
    samples = sampler(one, settings).process(X[None, :], covariance(one))
    assert GATES[int(samples.closed[0])] == gate


def test_all_cylinders_stand(two: Carrier) -> None:
    X = two.state([0.2, 0.2], [0.001, 0.001], [0.0, 0.0], 50.0)
    samples = sampler(two, PayloadSettings(max_sample_share=1e3)).process(X[None, :], covariance(two))
    assert GATES[int(samples.closed[0])] == 'too slow'


def test_share_of_acceleration(one: Carrier) -> None:
    """0 at a steady speed but for its centripetal part, -1 (as a size: 1) in free fall."""
    falls = -9.8066 / 9.3       # piston acceleration at which tip and load fall freely, about
    for zdd, below, above in ((0.0, 0.0, 0.02), (falls, 0.8, 1.2)):
        X = one.state([0.2], [0.05], [zdd], 50.0)
        for share, gate in ((above, 'open'), (below, 'accelerating')):
            settings = PayloadSettings(max_acceleration_share=max(share, 1e-9), max_sample_share=1e3, significance=0.0)
            samples = sampler(one, settings).process(X[None, :], covariance(one))
            assert GATES[int(samples.closed[0])] in (gate, 'not observable')


def test_free_fall_throws_nothing(one: Carrier) -> None:
    """The lever of the mass, g1, crosses zero: samples stay finite and weigh nothing there."""
    states = np.tile(one.state([0.2], [0.05], [0.0], 50.0), (101, 1))
    states[:, 2] = np.linspace(-2.5, 0.0, 101)
    levers = [float((one.residual(X, 1.0) - one.residual(X, 0.0))[0]) for X in states]
    assert min(levers) < 0 < max(levers)
    rows = sampler(one).process(states, covariance(one)).rows
    assert np.isfinite(rows).all() and (rows[:, 0] >= 0).all()
    nearest = int(np.argmin(np.abs(levers)))
    assert rows[nearest, 0] < 1e-3 * rows[-1, 0]
    assert np.abs(rows[:, 1]).max() < 1e3 * rows[-1, 0] * 50.0


@pytest.mark.parametrize('state', [np.full(6, np.nan), np.array([3.0, 0.05, 0, 5e6, 2e6, 0])])
def test_a_state_out_of_reach_is_an_error(one: Carrier, state: np.ndarray) -> None:
    with pytest.raises(PositionProblemError):
        sampler(one).process(state[None, :], covariance(one))


def test_a_state_that_turns_bad_is_an_error_and_the_next_goes_on(one: Carrier) -> None:
    dynamics, X = sampler(one), one.state([0.2], [0.05], [0.0], 50.0)
    dynamics.process(np.tile(X, (5, 1)), covariance(one))
    bad = np.tile(X, (5, 1))
    bad[2] = np.nan
    with pytest.raises(PositionProblemError):
        dynamics.process(bad, covariance(one))
    (row,) = dynamics.process(X[None, :], covariance(one)).rows
    assert row[1] / row[0] == pytest.approx(50.0)


def test_joint_angles_follow_over_the_whole_stroke(one: Carrier) -> None:
    """From segment to segment, 0.5 mm a step, there and back: the same samples as from a fresh start."""
    z = np.concatenate([np.linspace(0.01, 0.52, 1000), np.linspace(0.52, 0.01, 1000)])
    X = np.tile(one.state([0.2], [0.05], [0.0], 50.0), (len(z), 1))
    X[:, 0] = z
    dynamics = sampler(one)
    found = np.concatenate([dynamics.process(part, covariance(one)).rows for part in np.split(X, 200)])
    for k in (0, 500, 1000, 1999):
        (fresh,) = sampler(one).process(X[k:k + 1], covariance(one)).rows
        np.testing.assert_allclose(found[k], fresh, rtol=1e-9)


def test_newton_mass() -> None:
    assert newton_mass(lambda m: 3.0 - 0.5 * m, 100.0) == pytest.approx(6.0, rel=1e-12)
    assert np.isnan(newton_mass(lambda m: 2.0, 0.0))
