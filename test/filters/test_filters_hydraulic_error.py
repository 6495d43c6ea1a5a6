# SPDX-License-Identifier: Apache-2.0
"""errorEKF_FE of machines, with pressures in its error state: its model against the plant's, exact derivatives, its
step against plain NumPy, and its estimates."""

from __future__ import annotations

from dataclasses import fields
from functools import cache

import casadi as ca
import numpy as np
import pytest
from linkage_mutations import REMOVED
from machine_variants import changed
from scipy.linalg import expm

import mbse_ros as mbse
from mbse_ros.embedded.tables import EstimatorSetup
from mbse_ros.errors import SettingError
from mbse_ros.filters.filters import OF_MACHINES, make_filter
from mbse_ros.filters.hydraulic_error import errors_of_state, state_of_errors
from mbse_ros.filters.hydraulic_model import NOISES, HydraulicModel, hydraulic_model
from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine, load_machine
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.simulation.plant import DRIVE_LAG, Plant
from mbse_ros.streams.stages import ObserverStage

ERROR, LOAD = 'hydraulic_errorEKF_FE', 100.0
ANGLES = {'independent': ['boom_joint', 'tilt_joint'], 'initial': REMOVED}
SENSORS = {'sensors/pitch': {'kind': 'inclination', 'axis': 'pitch', 'stddev': '1e-3 rad'},
           'sensors/tip': {'kind': 'accelerometer', 'point': 'extension.tip', 'stddev': '1e-6 m/s^2'}}
IMU = {'sensors/base_imu': {'kind': 'accelerometer', 'body': 'ground', 'stddev': '0.05 m/s^2'}}
VARIANTS = {'patu655 in angles': ANGLES, 'patu655 with more sensors': SENSORS, 'patu655 on a truck': IMU}
MACHINES = 'patu655_lift', 'patu655', *VARIANTS, 'zx200'


@cache
def model_of(name: str) -> tuple[Machine, HydraulicModel, ca.Function]:
    """A machine, its model, and its expressions at a state, with commands and deviations of the pistons' speeds."""
    machine = changed('patu655', VARIANTS[name]) if name in VARIANTS else load_machine(name)
    model = hydraulic_model(machine, driven=True)
    symbols = [model.X, model.dependent, machine.payload, model.U, model.deviation, machine.parameters.symbol]
    return machine, model, ca.Function('model', symbols, [model.own, model.slopes, model.f, model.A])


def state(machine: Machine, model: HydraulicModel) -> np.ndarray:
    """In motion, in the middle of the strokes, in the model's units; the base is level."""
    rng, X = np.random.default_rng(2), np.zeros(len(model.names))
    spread = {'velocity': 0.05, 'acceleration': 0.3, 'spool': 1.0}
    for i, name in enumerate(model.names):
        kind = name.partition('/')[0]
        X[i] = rng.uniform(4.0, 9.0) if kind == 'pressure' else rng.normal(0, spread.get(kind, 0.0))
    X[:len(machine.coordinates)] = machine.range.mean(axis=1)
    return X


def evaluated(name: str, X: np.ndarray, deviation: float = 0.0, U: float = 0.0) -> list[np.ndarray]:
    """m, its derivatives, f and A."""
    machine, model, function = model_of(name)
    dependent = machine.position(X[:len(machine.coordinates)])[machine.system.dependent]
    found = function(X, dependent, LOAD, np.full(model.U.numel(), U), np.full(model.deviation.numel(), deviation),
                     machine.parameters.mean)
    return [found[0].full().ravel(), found[1].full(), found[2].full().ravel(), found[3].full()]


@pytest.mark.parametrize('name', MACHINES)
def test_its_accelerations_are_the_plants(name: str) -> None:
    """Whose equations are made in another way: from the reduced mass matrix."""
    machine, model, _ = model_of(name)
    X, g = state(machine, model), len(machine.coordinates)
    z, zd, zdd = X[:g], X[g:2 * g], X[2 * g:3 * g]
    plant = Plant(machine, 'vm')
    drives = [k for k in range(g) if k not in machine.actuated]
    pressure = [X[model.names.index(f'pressure/{volume}')] for volume in machine.volumes]
    x = np.concatenate([machine.position(z)[machine.system.dependent], z, zd, pressure, np.zeros(len(machine.valves))])
    controls = np.concatenate([np.zeros(len(machine.valves)), zd[drives] + DRIVE_LAG * zdd[drives]])
    expected = plant._end(x, controls, plant._slow(LOAD, {}), machine.parameters.mean)[2].ravel()
    expected[drives] = 0.0
    np.testing.assert_allclose(evaluated(name, X)[0], expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize('name', MACHINES)
def test_derivatives_by_finite_differences(name: str) -> None:
    """Along the loops: of the accelerations, and of the rate of the state."""
    machine, model, _ = model_of(name)
    X = state(machine, model)
    _, slopes, _, A = evaluated(name, X, 0.01)
    h = 1e-6 * np.maximum(1.0, np.abs(X))
    up, down = ([evaluated(name, X + sign * step, 0.01) for step in np.diag(h)] for sign in (1, -1))
    for exact, i in ((slopes, 0), (A, 2)):
        numerical = np.column_stack([(a[i] - b[i]) / (2 * step) for a, b, step in zip(up, down, h)])
        np.testing.assert_allclose(exact, numerical, rtol=0, atol=2e-6 * np.abs(exact).max())


def test_its_accelerations_on_a_base_that_is_accelerated_are_those_with_another_gravity() -> None:
    machine, model, _ = model_of('patu655 on a truck')
    X, G = state(machine, model), machine.description.gravity[2].value
    base = [model.names.index(f'base_acceleration/{axis}') for axis in 'xyz']
    X[base] = 0.9, 0.5, -0.7
    other = changed('patu655', IMU | {'gravity': [-0.9, -0.5, G + 0.7]})
    moved = hydraulic_model(other, driven=True)
    own = ca.Function('own', [moved.X, moved.dependent, other.payload, moved.deviation, other.parameters.symbol],
                      [moved.own])
    still = X.copy()
    still[base] = 0.0
    found = own(still, machine.position(X[:len(machine.coordinates)])[machine.system.dependent], LOAD,
                np.zeros(moved.deviation.numel()), other.parameters.mean)
    np.testing.assert_allclose(evaluated('patu655 on a truck', X)[0], found.full().ravel(), rtol=1e-9)
    assert np.abs(evaluated('patu655 on a truck', still)[0] - found.full().ravel()).max() > 0.01


def test_errors_and_state_are_each_others_inverse() -> None:
    machine, model, _ = model_of('zx200')
    n = len(model.names)
    X, P, q = ca.SX.sym('X', n), ca.SX.sym('P', n, n), ca.SX.sym('q', model.dependent.numel())
    there = errors_of_state(machine, model, X, P, q)[:2]
    back = ca.Function('back', [X, P, q, machine.payload, machine.parameters.symbol],
                       [*state_of_errors(machine, model, *there, q), there[1]])
    at, root = state(machine, model), np.random.default_rng(1).normal(size=(n, n))
    dependent = machine.position(at[:len(machine.coordinates)])[machine.system.dependent]
    found = [part.full() for part in back(at, root @ root.T, dependent, LOAD, machine.parameters.mean)]
    np.testing.assert_allclose(found[0].ravel(), at, atol=1e-10)
    np.testing.assert_allclose(found[1], root @ root.T, atol=1e-9 * np.abs(found[2]).max())
    assert np.abs(found[2] - root @ root.T).max() > 1.0


def test_a_step_by_hand() -> None:
    """errorEKF_FE with pressures in plain NumPy: the model by the matrix exponential, e as a state, the correction of
    all measurements at once; then the corrected errors move the model, and e stays."""
    name, dt = 'patu655_lift', 1e-3
    machine, model, _ = model_of(name)
    settings = ObserverSettings(estimator=ERROR, nominal_payload=LOAD, activity_range=1.0)
    observer = HydraulicObserver(machine, settings, 'vm')
    sample = np.array([0.25, 6e6, 3e6])
    observer.start(sample, np.array([2.0]))
    X = observer.running.state[observer.filter.state.places['x']] / model.scale
    P = observer.running.covariance(observer.running.state)
    n, H = len(X), np.zeros((3, len(X)))
    for k, item in enumerate(model.measured):
        H[k, item.index] = model.scale[item.index]
    psd = ca.Function('W', [model.psd, machine.parameters.symbol], [model.W])(
        [getattr(settings, item) for item in NOISES], machine.parameters.mean).full()

    def V(X: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own, slopes, *_ = evaluated(name, X, np.sqrt(P[1, 1]))
        whole, matrix = np.zeros(n), np.eye(n)
        whole[2], matrix[2] = own[0], matrix[2] + slopes[0]
        return whole, matrix

    for _ in range(3):
        own, matrix = V(X, P)
        back = np.linalg.inv(matrix)
        error, P = X - own, back @ P @ back.T
        _, _, f, A = evaluated(name, error, np.sqrt(P[1, 1]), 2.0)
        F = expm(np.block([[A, f[:, None]], [np.zeros((1, n + 1))]]) * dt)
        vanloan = expm(np.block([[-A, psd], [np.zeros((n, n)), A.T]]) * dt)
        error, P = error + F[:n, n], F[:n, :n] @ P @ F[:n, :n].T + vanloan[n:, n:].T @ vanloan[:n, n:]
        gain = P @ H.T @ np.linalg.inv(H @ P @ H.T + np.diag(observer._variance))
        error, P = error + gain @ (sample - H @ error), (np.eye(n) - gain @ H) @ P
        own, matrix = V(error, P)
        X, P = error + own, matrix @ P @ matrix.T
        found = observer.process(sample[None], np.array([[2.0]]), np.ones(3), dt)
        np.testing.assert_allclose(found.mean[-1] / model.scale, X, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.covariance / np.outer(model.scale, model.scale), P, rtol=1e-6,
                                   atol=1e-10 * np.abs(P).max())


def test_what_is_no_entry_of_the_state_corrects_it_through_the_dynamics() -> None:
    """One exact sample of an accelerometer, which sees positions, speeds, pressures and the error: it is then met."""
    machine, model, _ = model_of('patu655 with more sensors')
    k = next(i for i, item in enumerate(model.measured) if item.index is None)
    output = ca.Function('h', [model.X, model.dependent, machine.payload, machine.parameters.symbol],
                         [model.measured[k].h])

    def seen(X: np.ndarray) -> float:
        dependent = machine.position(X[:len(machine.coordinates)])[machine.system.dependent]
        return float(output(X, dependent, LOAD, machine.parameters.mean))
    found = []
    for off in (None, 0.2):
        settings = ObserverSettings(estimator=ERROR, nominal_payload=LOAD, acceleration_psd=1e-6, pressure_psd=1e4)
        observer = HydraulicObserver(machine, settings, 'vm')
        sample = np.array([5e6 if channel.kind == 'pressure' else 0.0 for channel in machine.all_channels])
        g = len(machine.coordinates)
        sample[[i for i, item in enumerate(model.measured) if item.index in range(g)]] = machine.range.mean(axis=1)
        observer.start(sample, np.zeros(model.U.numel()))
        known = np.array([sample] * 100)
        known[:, [i for i, item in enumerate(model.measured) if item.index is None]] = np.nan
        observer.process(known, np.zeros((100, model.U.numel())), np.ones(len(sample)), 1e-3)
        given = np.full(len(sample), np.nan)
        given[k] = np.nan if off is None else found[0] + off
        mean = observer.process(given[None], np.zeros((1, model.U.numel())), np.ones(len(sample)), 1e-3).mean[-1]
        found.append(seen(mean / model.scale))
    assert found[1] - found[0] == pytest.approx(0.2, rel=0.02)


@cache
def lifts() -> list[mbse.MachineSimulation]:
    return [mbse.simulate('patu655_lift', 6.0, payload=LOAD, seed=seed) for seed in (1, 2)]


@cache
def errors(**options: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Root mean squares of the errors of position, velocity, acceleration and pressures (kinds,), means of their
    squares over the stated variances (kinds,), and of those of the innovations (channels,), of 2 simulated logs."""
    rms, nees, nis = [], [], []
    for lift in lifts():
        found = mbse.Observer('patu655_lift', **{'estimator': ERROR, **options}).run(lift.samples)
        assert set(found.status[100:]) == {'ok'}
        at = np.searchsorted(lift.t, found.t - 1e-6)
        truth = np.column_stack([lift.position, lift.velocity, lift.acceleration, lift.pressure])[at]
        off = (found.mean[:, :5] - truth)[100:] / np.array([1, 1, 1, 1e6, 1e6])
        spread = found.stddev[100:, :5] / np.array([1, 1, 1, 1e6, 1e6])
        rms.append(np.sqrt(np.mean(off ** 2, axis=0)))
        nees.append(np.mean((off / spread) ** 2, axis=0))
        nis.append(np.nanmean((found.innovation[100:] / found.innovation_stddev[100:]) ** 2, axis=0))
    return np.mean(rms, axis=0), np.mean(nees, axis=0), np.mean(nis, axis=0)


def test_with_the_right_load_speeds_are_better_than_the_kinematic_observers_and_its_deviations_hold() -> None:
    """The dynamics take part: 3 to 5 times in velocity, more in acceleration, at the same pressures."""
    ours, nees, nis = errors(acceleration_psd=0.2, nominal_payload=LOAD)
    kinematic, *_ = errors(estimator='hydraulic', weighing='apart')
    assert ours[1] < kinematic[1] / 2 and ours[2] < kinematic[2] / 4
    assert ours[0] < 1.1 * kinematic[0] and (ours[3:] < 1.1 * kinematic[3:]).all()
    assert (nees < 1.5).all() and (nis < 1.3).all() and nis[0] > 0.7


def test_a_load_that_is_not_known_costs_no_more_than_the_dynamics_give() -> None:
    """With the default noise the error of the accelerations follows what the load does to them."""
    ours, nees, _ = errors()
    kinematic, *_ = errors(estimator='hydraulic', weighing='apart')
    assert (ours[:2] < 1.1 * kinematic[:2]).all() and (nees < 1.5).all()


def test_the_mass_comes_from_inverse_dynamics_after_it() -> None:
    """As with ``weighing apart``, whatever the nominal load is."""
    lift = mbse.simulate('patu655_lift', 12.0, payload=LOAD)
    found = mbse.estimate(lift.samples, 'patu655_lift', estimator=ERROR)
    assert found.mass[-1] == pytest.approx(LOAD, abs=10.0)
    assert not any(name.startswith('payload/') for name in found.names)


def test_it_is_a_filter_of_machines_by_its_name_and_changes_while_it_runs() -> None:
    assert set(OF_MACHINES) == set(next(item for item in fields(ObserverSettings) if item.name == 'estimator')
                                   .metadata['choices'])
    machine = load_machine('patu655_lift')
    assert make_filter(ERROR, machine).name == ERROR and make_filter('hydraulic', machine).name == 'hydraulic'
    stage = ObserverStage(machine, ObserverSettings(), 'vm')
    assert stage.names[-1] == 'payload/mass'
    stage.configure(ObserverSettings(estimator=ERROR))
    assert stage.names[-1] == 'spool/lift_valve' and ERROR in stage.note
    with pytest.raises(SettingError, match='nominal_payload'):
        ObserverSettings(estimator=ERROR, nominal_payload=-1.0)
    with pytest.raises(SettingError, match='estimator.*hydraulic'):
        EstimatorSetup(machine, ObserverSettings(estimator=ERROR), PayloadSettings())
