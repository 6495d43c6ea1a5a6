# SPDX-License-Identifier: Apache-2.0
"""The compiled observer against an extended Kalman filter in NumPy, and the rules of its segments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from core_support import VALVES, crane, kinematic, two_cylinders, work_cycle
from machine_variants import changed
from scipy.linalg import expm

from mbse_ros.compiled import Kernel, have_compiler
from mbse_ros.filters.hydraulic_model import NOISES, fastest_rate, hydraulic_model
from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine, load_machine
from mbse_ros.transition.noise import van_loan

DT = 1e-3
SENSORS = np.array([4e-4, 12e3, 8e3])
BACKENDS = ['vm', pytest.param('c', marks=pytest.mark.skipif(not have_compiler(), reason='no C compiler'))]
EXTREMES = {name: kinematic(gate=1.0, **changes) for name, changes in {
    'still': {'acceleration_psd': 1e-6, 'pressure_psd': 0.0, 'spool_psd': 0.0, 'flow_psd': 1e-9},
    'wild': {'acceleration_psd': 1e6, 'pressure_psd': 1e4, 'spool_psd': 1e3, 'flow_psd': 1e3},
    'free activity': {'activity_range': 1e3}, 'sure of its start': {'start_velocity': 1e-6, 'start_acceleration': 1e-6},
    'paper': {'noise': 'paper', 'transition': '4'}}.items()}


def measurements(n: int, machine: Machine = crane(), seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Samples (n, channels) and commands (n, valves) at 1 kHz: a lift of the work cycle, linear between its samples."""
    frames = work_cycle()[50:51 + -(-n // 10) + 1]
    rows = np.array([[*f.samples.values()] for f in frames])
    steps = np.arange(1, n + 1) / 10
    values = np.column_stack([np.interp(steps, np.arange(len(rows)), column) for column in rows.T])
    commands = np.array([[*f.commands.values()] for f in frames])[np.arange(n) // 10]
    return values, commands[:, :len(machine.commands)]


def started(valve: str, settings: ObserverSettings = kinematic(), backend: str = 'auto',
            first: np.ndarray | None = None) -> HydraulicObserver:
    observer = HydraulicObserver(crane(valve), settings, backend)
    values, commands = measurements(1, crane(valve))
    observer.start(values[0] if first is None else first, commands[0])
    return observer


def peek(observer: HydraulicObserver) -> tuple[np.ndarray, np.ndarray]:
    """State and covariance as they are, SI: a nanosecond later, nothing measured."""
    nothing, commands = np.full((1, len(observer.channels)), np.nan), np.zeros((1, len(observer.machine.commands)))
    result = observer.process(nothing, commands, np.ones(len(observer.channels)), 1e-9)
    return result.mean[0], result.covariance


def documented_start(names: tuple[str, ...], first: np.ndarray, command: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At rest at the first samples; 0.05 m/s, 0.5 m/s2, 0.5 V and 1e-4 m3/s uncertain."""
    stddev = {'velocity': 0.05, 'acceleration': 0.5, 'spool': 0.5, 'flow': 1e-4}
    X, spread = np.zeros(len(names)), np.array([stddev.get(n.split('/')[0], 0.0) for n in names])
    X[[0, 3, 4]], spread[[0, 3, 4]] = first, SENSORS
    X[[n.startswith('spool') for n in names]] = command
    return X, np.diag(spread ** 2)


class NumpyObserver:
    """The same observer as a plain EKF: scipy's expm, Van Loan, the update of all measurements at once."""

    def __init__(self, machine: Machine, settings: ObserverSettings, X: np.ndarray, P: np.ndarray) -> None:
        model = hydraulic_model(machine)
        p, psd = machine.parameters, np.array([getattr(settings, name) for name in NOISES])
        self.fA = Kernel(ca.Function('fA', [model.X, model.U, p.symbol], [model.f, model.A]), 'vm')
        self.W = np.array(ca.Function('W', [model.psd, p.symbol], [model.W])(psd, p.mean))
        self.p, self.scale, self.H = p.mean, model.scale, np.eye(len(X))[[item.index for item in model.measured]]
        self.X, self.P = X / self.scale, P / np.outer(self.scale, self.scale)

    def step(self, y: np.ndarray, u: np.ndarray, variance: np.ndarray) -> None:
        f, A = self.fA(self.X, u, self.p)
        n = len(f)
        block = expm(DT * np.block([[A, np.eye(n)], [np.zeros((n, 2 * n))]]))
        X, P = self.X + block[:n, n:] @ f, block[:n, :n] @ self.P @ block[:n, :n].T + van_loan(A, self.W, DT)[1]
        there = np.isfinite(y)
        H, unit = self.H[there], (self.H @ self.scale)[there]
        if there.any():
            S = H @ P @ H.T + np.diag(variance[there] / unit ** 2)
            K = np.linalg.solve(S, H @ P).T
            X, P = X + K @ (y[there] / unit - H @ X), P - K @ S @ K.T
        self.X, self.P = X, P


@pytest.mark.parametrize('valve', VALVES)
@pytest.mark.parametrize('backend', BACKENDS)
def test_equals_an_extended_kalman_filter_in_numpy(valve: str, backend: str) -> None:
    """A lift, some samples missing, each used at its stamp; a command acts from the step after its own."""
    observer = started(valve, kinematic(activity_range=1.0), backend)
    values, commands = measurements(150, crane(valve))
    values[40:55, 1], values[70:90, 0], values[110:120] = np.nan, np.nan, np.nan
    repeats = np.array([10.0, 10.0, 10.0])
    first, held = (item[0] for item in measurements(1, crane(valve)))
    reference = NumpyObserver(crane(valve), observer.settings, *documented_start(observer.names, first, held))
    result = observer.process(values, commands, repeats, DT)
    expected = []
    for k in range(150):
        reference.step(values[k] if k % 10 == 9 else np.full(3, np.nan), held, SENSORS ** 2)
        held = commands[k]
        expected.append(reference.X)
    np.testing.assert_allclose(result.mean[9::10] / reference.scale, expected[9::10], rtol=1e-8, atol=1e-10)
    P = result.covariance / np.outer(reference.scale, reference.scale)
    spread = np.sqrt(np.diag(reference.P))
    np.testing.assert_allclose(P / np.outer(spread, spread), reference.P / np.outer(spread, spread), atol=1e-7)


@pytest.mark.parametrize('valve', VALVES)
@pytest.mark.parametrize('backend', BACKENDS)
def test_one_call_is_sample_by_sample_to_the_bit(valve: str, backend: str) -> None:
    values, commands = measurements(60, crane(valve))
    values[20:30, 2] = np.nan
    repeats = np.full(3, 10.0)
    whole = started(valve, backend=backend)
    expected = whole.process(values, commands, repeats, DT)
    parts = started(valve, backend=backend)
    found = [parts.process(values[a:b], commands[a:b], repeats, DT) for a, b in [(0, 10), (10, 20), (20, 50), (50, 60)]]
    np.testing.assert_array_equal(np.concatenate([f.mean for f in found]), expected.mean)
    np.testing.assert_array_equal(found[-1].covariance, expected.covariance)


def test_missing_equals_a_machine_without_that_sensor() -> None:
    """A pressure that is always NaN, against a description that has no such sensor: all but that pressure."""
    d = crane().description
    without = Machine(replace(d, sensors={name: s for name, s in d.sensors.items() if name != 'lift_rod'}))
    values, commands = measurements(200)
    values[:, 2] = np.nan
    full, less = (HydraulicObserver(machine, kinematic(), 'vm') for machine in (crane(), without))
    full.start(values[0], commands[0])
    less.start(values[0, :2], commands[0])
    a, b = full.process(values, commands, np.ones(3), DT), less.process(values[:, :2], commands, np.ones(2), DT)
    others = [k for k, name in enumerate(full.names) if name != 'pressure/lift_rod']
    np.testing.assert_allclose(a.mean[:, others], b.mean[:, others], rtol=1e-12)
    np.testing.assert_allclose(a.covariance[np.ix_(others, others)], b.covariance[np.ix_(others, others)], rtol=1e-10)


def test_a_sample_counts_once() -> None:
    """What stands between two samples changes nothing; with sensors of two rates each has its own stamps."""
    values, commands = measurements(100)
    repeats = np.array([10.0, 5.0, 5.0])
    alone = np.full_like(values, np.nan)
    alone[9::10, 0], alone[4::5, 1:] = values[9::10, 0], values[4::5, 1:]
    expected, found = (started('orifice', backend='vm').process(v, commands, repeats, DT) for v in (alone, values))
    np.testing.assert_array_equal(found.mean, expected.mean)
    np.testing.assert_array_equal(found.covariance, expected.covariance)


def test_rare_samples_are_taken_in_parts() -> None:
    """One in 40 ms: four values of four times the variance, so that no prediction is longer than 10 ms; at rest, where
    the lines between samples are right."""
    values, commands = measurements(80)
    values[:] = values[0]
    rare, frequent = started('orifice', backend='vm'), started('orifice', backend='vm')
    frequent._variance = 4 * frequent._variance
    found, expected = (observer.process(values, commands, np.full(3, interval), DT)
                       for observer, interval in ((rare, 40.0), (frequent, 10.0)))
    np.testing.assert_array_equal(found.mean, expected.mean)
    np.testing.assert_array_equal(found.covariance, expected.covariance)


def test_between_samples_the_states_are_on_a_line() -> None:
    values, commands = measurements(40)
    observer = started('orifice', backend='vm')
    mean = np.vstack([observer.process(v, u, np.full(3, 10.0), DT).mean
                      for v, u in zip(np.split(values, 2), np.split(commands, 2))])
    steps = np.arange(9, 40)
    for column in mean.T:
        np.testing.assert_allclose(column[9:], np.interp(steps, steps[::10], column[9::10]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize('valve, extreme', [
    *((valve, extreme) for valve in VALVES for extreme in ('still', 'wild')), ('orifice', 'free activity'),
    ('unknown', 'sure of its start'), ('orifice', 'paper')])
def test_covariance_stays_symmetric_and_positive(valve: str, extreme: str) -> None:
    """1e5 steps in one call and then one by one, also where the tuning is out of all reason."""
    observer = started(valve, EXTREMES[extreme])
    values, commands = measurements(20000, crane(valve))
    values, commands = (np.tile(np.vstack([item, item[::-1]]), (3, 1)) for item in (values, commands))
    values[50000:50500, 1:] = np.nan
    for part in np.split(np.arange(len(values)), [100000, 100001, 100011]):
        result = observer.process(values[part], commands[part], np.full(3, 10.0), DT)
        P = result.covariance
        assert result.finite and np.array_equal(P, P.T)
        spread = np.sqrt(np.diag(P))
        assert (np.diag(P) > 0).all()
        assert np.linalg.eigvalsh(P / np.outer(spread, spread))[0] > -1e-12


@pytest.mark.parametrize('valve', VALVES)
def test_starts_from_the_first_samples_alone(valve: str) -> None:
    observer = started(valve)
    (first,), (command,) = measurements(1, crane(valve))
    (X, P), (X_start, P_start) = peek(observer), documented_start(observer.names, first, command)
    spread = np.sqrt(np.diag(P_start))
    np.testing.assert_allclose(X, X_start, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(P / np.outer(spread, spread), np.eye(len(X)), atol=1e-4)
    assert observer.started
    observer.reset()
    assert not observer.started


@pytest.mark.parametrize('missing', [[0], [1, 2], [0, 1, 2]])
def test_a_start_without_a_sample_finds_its_way(missing: list[int]) -> None:
    """From mid stroke and mid pressure with their range as deviation."""
    values, commands = measurements(500)
    first = values[0].copy()
    first[missing] = np.nan
    observer = started('orifice', first=first)
    result = observer.process(values, commands, np.full(3, 10.0), DT)
    assert result.finite
    np.testing.assert_allclose(result.mean[-1, [0, 3, 4]], values[-1], rtol=0.02)


def test_orders_approach_the_exact_transition() -> None:
    """At 1 kHz the fastest mode times the step is below 1 in a lift: each order is several times nearer."""
    values, commands = measurements(500)
    repeats = np.full(3, 10.0)
    runs = {order: started('orifice', kinematic(transition=order)).process(values, commands, repeats, DT)
            for order in ('1', '2', '3', '4', 'exact')}
    spread = np.sqrt(np.diag(runs['exact'].covariance))
    away = [(np.abs(runs[order].mean - runs['exact'].mean).max(axis=0) / spread)[:5].max() for order in '1234']
    assert away[0] < 0.1 and all(5 * after < before for before, after in zip(away, away[1:]))


def test_paper_noise_changes_little_at_1_kHz() -> None:
    values, commands = measurements(1000)
    runs = [started('orifice', kinematic(noise=noise)).process(values, commands, np.full(3, 10.0), DT)
            for noise in ('van_loan', 'paper')]
    spread = np.sqrt(np.diag(runs[0].covariance))
    assert 0 < (np.abs(runs[0].mean - runs[1].mean) / spread).max() < 0.2


def test_a_new_tuning_keeps_the_state() -> None:
    values, commands = measurements(200)
    observer = started('orifice')
    before = observer.process(values[:100], commands[:100], np.full(3, 10.0), DT)
    observer.configure(kinematic(transition='3', acceleration_psd=100.0))
    X, P = peek(observer)
    np.testing.assert_allclose(X, before.mean[-1], rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(np.diag(P), np.diag(before.covariance), rtol=1e-3)
    after = observer.process(values[100:], commands[100:], np.full(3, 10.0), DT)
    assert after.covariance[2, 2] > before.covariance[2, 2]
    same = started('orifice')
    same.process(values[:100], commands[:100], np.full(3, 10.0), DT)
    same.configure(kinematic())
    unchanged = started('orifice').process(values, commands, np.full(3, 10.0), DT)
    np.testing.assert_array_equal(same.process(values[100:], commands[100:], np.full(3, 10.0), DT).mean,
                                  unchanged.mean[100:])


def test_a_truncated_series_that_is_not_enough_is_noted() -> None:
    stiff = load_machine('patu655_lift')
    observer = HydraulicObserver(stiff, kinematic(transition='4'), 'vm')
    assert fastest_rate(stiff) > 1000.0 and 'use exact' in observer.note
    observer.configure(kinematic())
    assert 'use exact' not in observer.note and 'one load throughout' in observer.note     # it weighs apart
    observer.configure(kinematic(transition='4'))
    observer.prepare(1e-4)
    assert 'use exact' not in observer.note
    observer.configure(kinematic(force_error=0.1))
    assert 'force_error has no effect' in observer.note
    observer.configure(kinematic(transition='4'))
    assert 'no effect' not in observer.note
    stated = changed('patu655_lift', {'cylinders/lift/force_error': {'stddev': '4 kN'}})
    assert 'force_error has no effect' in HydraulicObserver(stated, kinematic(), 'vm').note
    observer.configure(ObserverSettings(force_error=0.1))
    assert observer.note == ''


@pytest.mark.parametrize('dt', [1e-4, 5e-3, 2e-2])
def test_another_step_is_as_exact(dt: float) -> None:
    """Halvings follow the step: one long step of a moving, stiff state against many short ones, nothing measured."""
    coarse, fine = started('orifice', backend='vm'), started('orifice', backend='vm')
    values, commands = measurements(400)
    for observer in (coarse, fine):
        observer.process(values, commands, np.full(3, 10.0), DT)
    nothing, held = np.full((1, 3), np.nan), commands[-1:]
    long = coarse.process(nothing, held, np.ones(3), dt)
    short = fine.process(np.tile(nothing, (200, 1)), np.tile(held, (200, 1)), np.ones(3), dt / 200)
    spread = np.sqrt(np.diag(short.covariance))
    np.testing.assert_array_less(np.abs(long.mean[-1] - short.mean[-1]) / spread, 0.05)
    np.testing.assert_allclose(np.sqrt(np.diag(long.covariance)), spread, rtol=0.02)


@pytest.fixture(scope='module')
def two() -> Iterator[HydraulicObserver]:
    yield HydraulicObserver(two_cylinders(), kinematic(gate=1.0), 'vm')     # a shock is one of the whole machine


def test_general_dimensions(two: HydraulicObserver) -> None:
    """Two cylinders: the names' order, and at rest the estimate stays at what is measured."""
    assert two.names == ('position/lift', 'position/tilt', 'velocity/lift', 'velocity/tilt', 'acceleration/lift',
                         'acceleration/tilt', 'pressure/lift_a', 'pressure/lift_b', 'pressure/tilt_a',
                         'pressure/tilt_b', 'spool/lift_valve', 'spool/tilt_valve')
    first = np.array([0.2, 0.3, 5e6, 2e6, 4e6, 3e6])
    two.start(first, np.zeros(2))
    result = two.process(np.tile(first, (300, 1)), np.zeros((300, 2)), np.full(6, 10.0), DT)
    np.testing.assert_allclose(result.mean[-1, [0, 1, 6, 7, 8, 9]], first, rtol=1e-3)
    assert np.linalg.eigvalsh(result.covariance / np.outer(*[np.sqrt(np.diag(result.covariance))] * 2))[0] > 0


def test_cylinders_that_share_nothing_are_estimated_apart(two: HydraulicObserver) -> None:
    """What the tilt cylinder measures changes nothing of the lift, to the bit."""
    first = np.array([0.2, 0.3, 5e6, 2e6, 4e6, 3e6])
    lift = [i for i, name in enumerate(two.names) if 'lift' in name]
    found = []
    for push in (0.0, 1.0):
        values = np.tile(first, (100, 1))
        values[:, [1, 4, 5]] += push * np.random.default_rng(1).normal(size=(100, 3)) * [1e-3, 1e5, 1e5]
        two.start(first, np.zeros(2))
        commands = np.column_stack([np.full(100, 3.0), np.full(100, push)])
        result = two.process(values, commands, np.ones(6), DT)
        found.append((result.mean[:, lift], result.covariance[np.ix_(lift, lift)]))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
