# SPDX-License-Identifier: Apache-2.0
"""Sensors of a machine: rows of the observer by complex steps, what samples mean, and that it is found again."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from complex_step import derivative, evaluate
from core_support import kinematic
from machine_variants import REMOVED, changed
from payload_states import Carrier

from mbse_ros.filters.hydraulic_model import HydraulicModel, hydraulic_model
from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.hydraulic_state import SegmentResult, state_names
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine
from mbse_ros.machine.channels import ATMOSPHERE
from mbse_ros.payload.paper import sample_step
from mbse_ros.simulation.crane import CraneSettings, SimulatedCrane, TrueSamples
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.simulation.plant import Plant

IMU = {'tilt_incline': {'kind': 'inclinometer', 'body': 'tilt_boom', 'stddev': '0.1 deg', 'bias': '1 deg'},
       'tilt_gyro': {'kind': 'gyro', 'body': 'tilt_boom', 'stddev': '0.01 rad/s', 'bias': [0, '0.02 rad/s', 0]},
       'tip_acceleration': {'kind': 'accelerometer', 'point': 'extension.tip', 'stddev': '0.1 m/s^2'},
       'boom_angle': {'kind': 'encoder', 'coordinate': 'boom', 'stddev': '0.1 deg', 'bias': '2 deg'},
       'boom_rate': {'kind': 'rate', 'coordinate': 'boom', 'stddev': '0.01 rad/s'},
       'lift_rate': {'kind': 'rate', 'coordinate': 'lift', 'stddev': '1 mm/s'},
       'wire': {'kind': 'distance', 'points': ['lift_pivot', 'extension.tip'], 'stddev': '1 mm'},
       'base_roll': {'kind': 'inclination', 'axis': 'roll', 'stddev': '0.1 deg'},
       'base_pitch': {'kind': 'inclination', 'axis': 'pitch', 'stddev': '0.1 deg', 'bias': '0.5 deg'},
       'pump': {'kind': 'pressure', 'supply': 'pump', 'stddev': '50 kPa', 'resolution': '0.1 MPa'}}
GAUGE = {'sensors/lift_piston': {'kind': 'pressure', 'volume': 'lift_piston', 'stddev': '12 kPa', 'reference': 'gauge',
                                 'gain': {'value': 1.05, 'stddev': 0.01},
                                 'offset': {'value': '30 kPa', 'stddev': '20 kPa'}},
         'sensors/lift_rod': {'kind': 'pressure', 'volume': 'lift_rod', 'stddev': '8 kPa', 'resolution': '0.1 MPa'},
         'sensors/lift_stroke': {'kind': 'stroke', 'cylinder': 'lift', 'stddev': '0.4 mm',
                                 'bias': {'value': '3 mm', 'stddev': '1 mm'}}}


@cache
def both() -> Machine:
    """patu655 with every sensor that there is, on a base that may be inclined."""
    return changed('patu655', {'base': {}, 'named': {'boom': {'joint': 'boom_joint'}},
                               **{f'sensors/{name}': sensor for name, sensor in IMU.items()}})


@cache
def angular() -> Machine:
    """patu655 in the angles of its booms, the pistons measured all the same."""
    return changed('patu655', {'named': {'boom': {'joint': 'boom_joint'}, 'tilt_angle': {'joint': 'tilt_joint'}},
                               'independent': ['boom', 'tilt_angle'], 'initial': REMOVED,
                               'sensors/tilt_stroke': REMOVED,
                               'sensors/tilt_incline': IMU['tilt_incline']})


@cache
def gauged() -> Machine:
    return changed('patu655_lift', GAUGE)


MACHINES = {'both': both, 'angular': angular}


def coordinates(machine: Machine, z: np.ndarray) -> np.ndarray:
    """All coordinates at complex independent ones."""
    found = machine.position(np.real(z)).astype(complex)
    for _ in range(4):
        found[machine.model.z] = z
        found = evaluate(machine.newton, [found, machine.parameters.mean])[0]
    return found


def random_state(machine: Machine, model: HydraulicModel, seed: int) -> np.ndarray:
    """In the model's units; inclinations of some degrees."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=len(model.names)) * 0.2
    X[:len(machine.coordinates)] = machine.model.start.q[machine.model.z] + rng.uniform(-0.05, 0.05, 2)
    return X


@pytest.mark.parametrize('seed', range(2))
@pytest.mark.parametrize('name', MACHINES)
def test_rows_of_all_that_is_no_entry_of_the_state(name: str, seed: int) -> None:
    """H along the loops: inclinometer, gyro, accelerometer, encoder and rate of a dependent joint, wire: 1e-9."""
    machine = MACHINES[name]()
    model = hydraulic_model(machine)
    inputs = [model.X, model.dependent, machine.parameters.symbol]
    X, p = random_state(machine, model, seed), machine.parameters.mean
    indirect = [k for k, item in enumerate(model.measured) if item.index is None]
    kinds = {machine.all_channels[k].sensor.kind for k in indirect}
    assert kinds == ({'inclinometer', 'gyro', 'accelerometer', 'encoder', 'rate', 'distance'} if name == 'both'
                     else {'inclinometer', 'encoder'})
    for k in indirect:
        f = ca.Function('h', inputs, [model.measured[k].h], {'cse': True})
        H = ca.Function('H', inputs, [model.measured[k].H], {'cse': True})

        def h(x: np.ndarray) -> np.ndarray:
            q = coordinates(machine, x[:2])
            return evaluate(f, [x, q[machine.system.dependent], p])[0]

        expected = derivative(h, X)[0]
        found = H(X, coordinates(machine, X[:2]).real[machine.system.dependent], p).full()[0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * max(np.abs(expected).max(), 1e-3))


def true_values(machine: Machine, q: np.ndarray, zd: np.ndarray, zdd: np.ndarray, roll: float, pitch: float) -> dict:
    """What the sensors of ``both`` would say, by central differences of the poses along a motion."""
    z, frames = q[machine.model.z], ca.Function('frames', [machine.system.q, machine.parameters.symbol], [
        machine.system.frames['tilt_boom'].rotation, machine.system.points['extension.tip']])

    def at(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q_t = machine.position(z + zd * t + zdd * t * t / 2, q)
        return (q_t, *(item.full() for item in frames(q_t, machine.parameters.mean)))

    h = 1e-4
    (q_a, R_a, p_a), (_, R, p), (q_b, R_b, p_b) = at(-h), at(0.0), at(h)
    turning = R.T @ (R_b - R_a) / (2 * h)
    tilt = lambda a: np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])     # noqa: E731
    lean = np.array([[np.cos(pitch), 0, np.sin(pitch)], [0, 1, 0], [-np.sin(pitch), 0, np.cos(pitch)]])
    gravity = (lean @ tilt(roll)).T @ [0, 0, -9.8066]
    E = ca.Function('E', [machine.system.q, machine.parameters.symbol], [machine.system.frames['extension'].rotation])
    force = E(q, machine.parameters.mean).full().T @ ((p_b - 2 * p + p_a)[:, 0] / h ** 2 - gravity)
    boom, up = machine.system.names.index('boom'), -R.T @ gravity
    return {'gyro/tilt_gyro.x': turning[2, 1], 'gyro/tilt_gyro.y': turning[0, 2] + 0.02,
            'gyro/tilt_gyro.z': turning[1, 0],
            **{f'accelerometer/tip_acceleration.{"xyz"[k]}': force[k] for k in range(3)},
            'position/boom': q[boom] + np.radians(2.0), 'velocity/boom': (q_b - q_a)[boom] / (2 * h),
            'position/wire': float(np.linalg.norm(p[:, 0] - [-0.09, 0, 1.4261])),
            'position/tilt_incline': np.arctan2(up[0], up[2]) + np.radians(1.0), 'position/base_roll': roll,
            'position/base_pitch': pitch + np.radians(0.5), 'velocity/lift': zd[0]}


def test_what_the_sensors_of_a_moving_crane_say() -> None:
    """Against differences of its poses, on a base that is rolled and pitched; resolution rounds."""
    machine = both()
    z, zd, zdd = machine.model.start.q[machine.model.z], np.array([0.03, -0.05]), np.array([0.2, 0.1])
    q, base = machine.position(z), {'roll': 0.1, 'pitch': -0.07}
    samples = TrueSamples(machine, machine.all_channels).read(q, z, zd, zdd, np.array([5e6, 2e6, 4e6, 3e6]),
                                                              np.zeros(len(machine.channels)), base)
    for name, value in true_values(machine, q, zd, zdd, **base).items():
        assert samples[name] == pytest.approx(value, abs=1e-5, rel=1e-6), name
    supply = machine.description.hydraulics.supplies['pump'].value
    assert samples['pressure/pump'] == pytest.approx(0.1e6 * round(supply / 0.1e6))
    assert samples['pressure/tilt_rod'] == 3e6 and samples['position/tilt'] == z[1]


def test_a_sample_of_a_gauge_with_gain_offset_and_resolution() -> None:
    machine = gauged()
    q = machine.model.start.q
    read = TrueSamples(machine, machine.all_channels).read
    samples = read(q, q[machine.model.z], np.zeros(1), np.zeros(1), np.array([5e6, 2.234e6]), np.zeros(3), {})
    assert samples['pressure/lift_piston'] == pytest.approx(1.05 * (5e6 - ATMOSPHERE) + 30e3, rel=1e-14)
    assert samples['pressure/lift_rod'] == pytest.approx(2.2e6, rel=1e-14)
    assert samples['position/lift'] == pytest.approx(q[machine.pistons[0]] + 3e-3, rel=1e-12)


def test_the_sensors_of_a_plant_are_as_wrong_as_its_numbers() -> None:
    machine = gauged()
    p, q = machine.parameters, machine.model.start.q
    wrong = p.mean
    wrong[p.names.index('sensors.lift_piston.offset')] += 50e3
    wrong[p.names.index('sensors.lift_piston.gain')] += 0.01
    wrong[p.names.index('sensors.lift_stroke.bias')] -= 1e-3
    read, state = TrueSamples(machine, machine.all_channels).read, (q, q[machine.model.z], np.zeros(1), np.zeros(1))
    pressure, noise = np.array([5e6, 2.2e6]), np.zeros(3)
    right, found = read(*state, pressure, noise, {}), read(*state, pressure, noise, {}, wrong)
    changes = {name: found[name] - right[name] for name in right}
    assert changes == pytest.approx({'pressure/lift_piston': 50e3 + 0.01 * (5e6 - ATMOSPHERE), 'pressure/lift_rod': 0.0,
                                     'position/lift': -1e-3})


def test_resolution_adds_the_variance_of_rounding() -> None:
    """d^2 / 12, as rounded white samples scatter; a sensor with a resolution alone is noisy enough."""
    machine, rng = gauged(), np.random.default_rng(0)
    variance = dict(zip(machine.channels, HydraulicObserver(machine, kinematic(), 'vm')._variance))
    assert variance['pressure/lift_rod'] == pytest.approx(8e3 ** 2 + 1e10 / 12)
    assert variance['position/lift'] == 4e-4 ** 2
    values = rng.uniform(0, 1e7, 20000)
    rounded = 1e5 * np.round((values + 8e3 * rng.standard_normal(len(values))) / 1e5)
    assert np.var(rounded - values) == pytest.approx(variance['pressure/lift_rod'], rel=0.03)
    alone = changed('patu655_lift', {
        'sensors/lift_rod': {'kind': 'pressure', 'volume': 'lift_rod', 'resolution': '60 kPa'}})
    assert alone.all_channels[-1].sensor.noise == pytest.approx(60e3 / np.sqrt(12))


def result_of(machine: Machine, frames: list, settings: ObserverSettings) -> SegmentResult:
    """Of the observer after frames of 10 ms; samples as they are, each its own."""
    observer = HydraulicObserver(machine, settings, 'vm')
    values = np.array([[frame.samples[name] for name in observer.channels] for frame in frames])
    sent = np.array([[frame.commands[name] for name in machine.commands] for frame in frames])
    observer.start(values[0], sent[0])
    steps = np.arange(10, 10 * (len(frames) - 1) + 1) / 10
    rows = np.column_stack([np.interp(steps, np.arange(len(values)), column) for column in values.T])
    return observer.process(rows, np.repeat(sent[:-1], 10, axis=0)[9:], np.full(len(machine.channels), 10.0), 1e-3)


def feed(machine: Machine, frames: list) -> tuple[dict[str, float], dict[str, float]]:
    """Last state of the observer, and its deviations."""
    result, names = result_of(machine, frames, kinematic()), hydraulic_model(machine).names
    return dict(zip(names, result.mean[-1])), dict(zip(names, np.sqrt(np.diag(result.covariance))))


CYCLE = WorkCycle(0.4, (Move(0.0, 0.2), Move(4.0, 1.0)))


def test_offsets_gains_and_gauges_are_taken_back() -> None:
    """A lift without noise: pressure and stroke as they are, within the rounding of the rod side."""
    machine = gauged()
    frames = SimulatedCrane(machine, 50.0, 1, CYCLE, CraneSettings(noise=0.0), plant=Plant(machine, 'vm')).run()
    state, _ = feed(machine, frames)
    assert abs(frames[-1].samples['pressure/lift_piston'] - frames[-1].pressure[0]) > 3e4
    assert state['position/lift'] == pytest.approx(frames[-1].position[0], abs=1e-4)
    assert state['pressure/lift_piston'] == pytest.approx(frames[-1].pressure[0], rel=0.003)


def test_the_covariance_has_what_zeros_and_gains_do_to_the_state() -> None:
    """The state of samples of a gauge and a stroke that are off by one deviation is off by that root of the variance
    that the file's deviations add; what is judged is the motion as it is measured."""
    machine, own = gauged(), ObserverSettings()
    none = changed('patu655_lift', {**GAUGE, 'sensors/lift_piston/gain': 1.05, 'sensors/lift_piston/offset': '30 kPa',
                                    'sensors/lift_stroke/bias': '3 mm'})
    frames = SimulatedCrane(machine, 50.0, 1, CYCLE, CraneSettings(noise=0.0), plant=Plant(machine, 'vm')).run()
    stated, exact = result_of(machine, frames, own), result_of(none, frames, own)
    moved = np.zeros(len(exact.variance))
    for channel, error in (('position/lift', lambda y: 1e-3), ('pressure/lift_piston', lambda y: 20e3),
                           ('pressure/lift_piston', lambda y: (y - 30e3) / 1.05 * 0.01)):
        wrong = [replace(f, samples={**f.samples, channel: f.samples[channel] + error(f.samples[channel])})
                 for f in frames]
        moved += (result_of(none, wrong, own).mean[-1] - exact.mean[-1]) ** 2
    names, added = hydraulic_model(machine).names, np.diag(stated.covariance) - np.diag(exact.covariance)
    for name, size in (('position/lift', 1e-3), ('pressure/lift_piston', 2e4)):
        k = names.index(name)
        assert added[k] == pytest.approx(moved[k], rel=0.1) and added[k] > 0.5 * size ** 2, name
    np.testing.assert_allclose(stated.variance[:2], exact.variance[:2], rtol=0.05)


def test_inclinations_and_a_measured_supply_are_found() -> None:
    """On a base at 6 and -4 degrees with a pump at 12 MPa where the file says another: within 3 deviations."""
    machine = changed('patu655_lift', {'base': {}, **{f'sensors/{name}': IMU[name] for name in (
        'base_roll', 'base_pitch', 'pump')}})
    truth = changed('patu655_lift', {'hydraulics/supplies/pump': '12 MPa', 'base': {}, **{
        f'sensors/{name}': IMU[name] for name in ('base_roll', 'base_pitch', 'pump')}})
    base = {'roll': np.radians(6.0), 'pitch': np.radians(-4.0)}
    frames = SimulatedCrane(truth, 50.0, 1, CYCLE, plant=Plant(truth, 'vm'), base=base).run()
    state, spread = feed(machine, frames)
    assert state['inclination/roll'] == pytest.approx(base['roll'], abs=3 * spread['inclination/roll'])
    assert state['inclination/pitch'] == pytest.approx(base['pitch'], abs=3 * spread['inclination/pitch'])
    assert spread['inclination/roll'] < np.radians(0.1)
    assert state['supply/pump'] == pytest.approx(12e6, abs=3 * spread['supply/pump']) and spread['supply/pump'] < 1e5


@pytest.mark.parametrize('at', [np.pi - 0.004, -np.pi + 0.004])
def test_an_angle_that_wraps(at: float) -> None:
    """Samples of an inclinometer at both sides of half a turn are the same angle, not 2 pi apart."""
    machine = angular()
    observer = HydraulicObserver(machine, kinematic(), 'vm')
    k, boom = observer.channels.index('position/tilt_incline'), np.radians(-20.0)
    assert observer.model.measured[k].wraps
    z = np.array([boom, (at - np.radians(1.0) - boom) % (2 * np.pi) - 2 * np.pi])
    first = TrueSamples(machine, machine.all_channels).read(
        machine.position(z), z, np.zeros(2), np.zeros(2), np.full(4, 3e6), np.zeros(len(machine.channels)), {})
    values = np.array([first[name] for name in observer.channels])
    assert values[k] == pytest.approx(at, abs=1e-9)
    observer.running.state = start_at(observer, z, values)
    over = np.sign(at) * 0.008
    values[k] = (at + over + np.pi) % (2 * np.pi) - np.pi
    result = observer.process(values[None, :], np.zeros((1, 2)), np.ones(len(values)), 1e-3)
    assert abs(values[k] - at) > 6.0 and result.innovation[k] == pytest.approx(over, abs=1e-4)
    assert result.mean[0, 1] - z[1] == pytest.approx(over, rel=0.5)


def start_at(observer: HydraulicObserver, z: np.ndarray, values: np.ndarray) -> np.ndarray:
    """State at rest at given coordinates, 1 degree uncertain."""
    observer.start(values, np.zeros(2))
    x, g, machine = observer.running.state.copy(), len(z), observer.machine
    x[:g] = z
    x[np.diag(observer._full)[:g]] = np.radians(1.0) ** 2
    x[-len(machine.system.dependent):] = machine.position(z)[machine.system.dependent]
    return x


def test_offset_and_gain_reach_the_mass() -> None:
    """What the observer finds with a sensor that is off: the mass is exact at the true offset and gain, and its
    derivative by them is that of the whole way."""
    machine = gauged()
    carrier, p = Carrier(machine), machine.parameters.mean
    names, k = list(machine.parameters.names), machine.parameters.names.index
    assert {'sensors.lift_piston.offset', 'sensors.lift_piston.gain', 'sensors.lift_stroke.bias'} < set(names)
    X = carrier.state(np.array([0.25]), np.array([0.06]), np.array([0.02]), 80.0)
    step, n = sample_step(machine), len(X)
    P, gates = np.diag(np.maximum(np.abs(X), 1e-2) * 1e-3) ** 2, [0.0, 0.0, 1e9, 0.0, 0.0]
    near = machine.position(X[:1])[machine.system.dependent]
    place = {name: i for i, name in enumerate(state_names(machine)[0])}

    def outputs(state: np.ndarray, values: np.ndarray) -> np.ndarray:
        p = np.concatenate([P.ravel(), gates, [80.0], values])
        return step(np.append(near, [0.0, 0.0]), state, p)[1].full()[:, 0]

    true = p.copy()
    true[k('sensors.lift_piston.offset')] += 50e3
    true[k('sensors.lift_piston.gain')] *= 1.01
    true[k('sensors.lift_stroke.bias')] -= 1e-5      # one Newton step from what was found: the rest is its square
    found, pressure = X.copy(), place['pressure/lift_piston']
    sample = true[k('sensors.lift_piston.gain')] * (X[pressure] - ATMOSPHERE) + true[k('sensors.lift_piston.offset')]
    found[pressure] = (sample - 30e3) / 1.05 + ATMOSPHERE
    found[place['position/lift']] -= 1e-5
    right, wrong, nominal = outputs(found, true), outputs(found, p), outputs(X, p)
    assert nominal[1] / nominal[0] == pytest.approx(80.0, abs=1e-9)
    assert right[1] / right[0] == pytest.approx(80.0, abs=1e-7)
    assert abs(wrong[1] / wrong[0] - 80.0) > 2.0
    for name, size in (('sensors.lift_piston.offset', 10.0), ('sensors.lift_piston.gain', 1e-5),
                       ('sensors.lift_stroke.bias', 1e-6)):
        moved = [outputs(X, p + sign * size * np.eye(len(p))[k(name)]) for sign in (1, -1)]
        slope = (moved[0][1] / moved[0][0] - moved[1][1] / moved[1][0]) / (2 * size)
        assert nominal[2 + k(name)] / nominal[0] == pytest.approx(slope, rel=1e-6) and n == len(X)
