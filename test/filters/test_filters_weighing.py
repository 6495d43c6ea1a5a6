# SPDX-License-Identifier: Apache-2.0
"""Motion and mass in one estimate: the force balance as a measurement, what it may not teach, and what comes of it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from core_support import VALVES, crane, estimate, exact_crane, feed, kinematic, simulate
from payload_states import Carrier

from mbse_ros.filters import observer_step as observer_step_module
from mbse_ros.filters.hydraulic_model import hydraulic_model
from mbse_ros.filters.mass_information import MassStep, mass_information
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.filters.weighing import (
    CONSTANT,
    KNOWN,
    STILL_KNOWN,
    _steep,
    _terms,
    balanced,
    directions,
    frictions,
    steep,
    weighed,
)
from mbse_ros.machine import Machine, load_machine
from mbse_ros.payload.joint import JointEstimator
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle, random_cycle
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import ObserverStatus, PayloadStatus

FORCE_PSD, DT = 2e-6, 1e-3
MACHINES = {'patu655_lift': 150.0, 'patu655': 80.0, 'zx200': 900.0}


@cache
def machine_of(name: str) -> Machine:
    return load_machine(name, 'unknown')


@cache
def terms(machine: Machine) -> ca.Function:
    """``(X, P, dependent)`` in SI -> residuals, derivatives, variances, trust, friction, derivatives by numbers."""
    model = hydraulic_model(machine, True)
    n = len(model.names)
    X, P, near = ca.SX.sym('X', n), ca.SX.sym('P', n, n), ca.SX.sym('near', len(machine.system.dependent))
    at = machine, model, X, P, near
    found = _terms(*at, ca.SX(FORCE_PSD), ca.SX(DT), _steep(*at, ca.SX(directions(machine))))
    return ca.Function('terms', [X, P, near, machine.parameters.symbol], list(found))


def carried(name: str, speed: float = 0.1, acceleration: float = 0.2) -> np.ndarray:
    """A state (nx,), SI, in which the machine moves and carries its mass."""
    machine, g = machine_of(name), len(machine_of(name).coordinates)
    low, high = machine.range.T
    start = machine.model.start.q[machine.model.z]
    z = np.clip(start, low + 0.2 * (high - low), high - 0.2 * (high - low))
    rng = np.random.default_rng(3)
    signs = np.where(rng.random(g) < 0.5, -1.0, 1.0)
    X = Carrier(machine).state(z, speed * signs, acceleration * rng.standard_normal(g), MACHINES[name])
    return np.append(X, MACHINES[name])


def evaluated(name: str, X: np.ndarray, P: np.ndarray | None = None) -> list[np.ndarray]:
    return evaluated_of(machine_of(name), X, P)


def evaluated_of(machine: Machine, X: np.ndarray, P: np.ndarray | None = None) -> list[np.ndarray]:
    q = machine.position(X[:len(machine.coordinates)])
    P = np.zeros((len(X), len(X))) if P is None else P
    return [item.full() for item in terms(machine)(X, P, q[machine.system.dependent], machine.parameters.mean)]


@pytest.mark.parametrize('name', MACHINES)
def test_forces_balance_where_the_machine_carries_its_mass(name: str) -> None:
    """Against the equations of motion by the mass matrix."""
    g, H, _, sure, _, _ = evaluated(name, carried(name))
    assert np.abs(g).max() < 1e-6 * np.abs(H[:, -1]).max() * MACHINES[name] and (sure > KNOWN).all()


@pytest.mark.parametrize('name', MACHINES)
def test_derivatives_along_the_loops(name: str) -> None:
    """By central differences of the residual with the loops closed again; friction known."""
    X, machine = carried(name), machine_of(name)
    H = evaluated(name, X)[1]
    kinds = [item.split('/')[0] for item in hydraulic_model(machine, True).names]
    steps = {'position': 1e-5, 'velocity': 1e-5, 'acceleration': 1e-3, 'pressure': 1e3, 'payload': 1.0}
    for k, kind in enumerate(kinds):
        if kind in steps:
            step = steps[kind] * (np.arange(len(X)) == k)
            slope = (evaluated(name, X + step)[0] - evaluated(name, X - step)[0])[:, 0] / (2 * steps[kind])
            np.testing.assert_allclose(H[:, k], slope, rtol=1e-5, atol=1e-7 * np.abs(H).max())
        else:
            assert not H[:, k].any()


def step_of(name: str, X: np.ndarray, P: np.ndarray, moved: float = 0.0, T: np.ndarray | None = None
            ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """``weighed`` in SI: state, covariance, derivatives, in which equations the pistons move; ``T`` (nx, k):
    derivatives so far."""
    machine = machine_of(name)
    model = hydraulic_model(machine, True)
    symbols = ca.SX.sym('X', len(X)), ca.SX.sym('P', len(X), len(X)), ca.SX.sym('near', len(machine.system.dependent))
    size = len(X), len(model.consider(machine)) + frictions(machine, model)
    T = ca.SX.zeros(*size) if T is None else ca.SX(T / model.scale[:, None])
    moves = ca.SX(moved * np.ones(len(machine.actuated)))
    balance = balanced(machine, model, *symbols, ca.SX(FORCE_PSD), ca.SX(DT),
                       steep(machine, model, *symbols, ca.SX(directions(machine))))
    found = weighed(machine, model, *symbols[:2], T, balance, moves, ca.SX(DT))
    function = ca.Function('weighed', [*symbols, machine.parameters.symbol], [*found[:3], found[-1]])
    unit = np.outer(model.scale, model.scale)
    q = machine.position(X[:len(machine.coordinates)])
    x, p, t, known = function(X / model.scale, P / unit, q[machine.system.dependent], machine.parameters.mean)
    return x.full()[:, 0] * model.scale, p.full() * unit, t.full() * model.scale[:, None], known.full()[:, 0]


def covariance(name: str) -> np.ndarray:
    """A full covariance whose deviations are those of a machine in motion."""
    names, rng = hydraulic_model(machine_of(name), True).names, np.random.default_rng(5)
    size = {'position': 1e-4, 'velocity': 2e-3, 'acceleration': 0.2, 'pressure': 3e4, 'flow': 1e-5, 'payload': 100.0}
    spread = np.array([size.get(item.split('/')[0], 1e-3) for item in names])
    mixed = np.eye(len(names)) + 0.2 * rng.standard_normal((len(names), len(names)))
    return spread[:, None] * (mixed @ mixed.T) * spread


@pytest.mark.parametrize('name', MACHINES)
def test_it_is_the_update_of_a_kalman_filter(name: str) -> None:
    """All equations at once in NumPy, for the motion; the mass takes less, as the uncertain numbers ask for."""
    P, X = covariance(name), carried(name)
    X[-1] += 60.0
    g, H, R, _, _, slopes = evaluated(name, X, P)
    S = H @ P @ H.T + np.diag(R[:, 0])
    K = np.linalg.solve(S, H @ P).T
    T = 0.3 * np.sqrt(np.diag(P))[:, None] * np.random.default_rng(7).standard_normal((len(X), slopes.shape[1]))
    x, p, *_ = step_of(name, X, P, T=T)
    spread, motion = np.sqrt(np.diag(P)), slice(0, -1)
    if len(g) == 1:     # several: each takes less of what the ones before have left in the mass
        np.testing.assert_allclose((x - X)[motion] / spread[motion], (-K @ g[:, 0])[motion] / spread[motion], rtol=1e-9,
                                   atol=1e-12)
        np.testing.assert_allclose(p[motion, motion], (P - K @ S @ K.T)[motion, motion],
                                   atol=1e-9 * np.outer(spread, spread)[motion, motion].max())
        felt = slopes + H[:, :-1] @ T[:-1]        # of the base's inclination all equations feel the same
        differ = [k for k, name in enumerate(machine_of(name).parameters.names) if not name.startswith('base.')]
        share = S[0, 0] / (S[0, 0] + CONSTANT / DT * np.sum(felt[:, differ] ** 2))
        assert x[-1] - X[-1] == pytest.approx(share * (-K @ g[:, 0])[-1], rel=1e-9)
    assert (np.linalg.eigvalsh(p / np.outer(spread, spread)) > 0).all() and p[-1, -1] < P[-1, -1]
    assert (np.diag(p) <= np.diag(P) * (1 + 1e-9)).all()


@pytest.mark.parametrize('name', MACHINES)
def test_a_standing_piston_says_nothing_of_a_mass_that_is_known(name: str) -> None:
    """Friction is anything between two bounds: a force that is wrong moves the motion, not the mass."""
    P, X = covariance(name), carried(name, 0.0)
    P[:, -1] *= 1e-3
    P[-1] *= 1e-3
    X[-1] += 60.0
    x, p, _, known = step_of(name, X, P)
    assert x[-1] == X[-1] and p[-1, -1] == pytest.approx(P[-1, -1], rel=1e-12) and not known.any()
    assert not np.array_equal(x[:-1], X[:-1])


@pytest.mark.parametrize('name', MACHINES)
def test_a_standing_piston_says_little_of_a_mass_that_is_not_known(name: str) -> None:
    """The mass gets no better known than the largest friction allows; nothing else changes; the covariance is one."""
    P, X = covariance(name), carried(name, 0.0)
    _, H, _, _, grip, _ = evaluated(name, X, P)
    P[:, -1] *= 50.0
    P[-1] *= 50.0
    X[-1] += 60.0
    x, p, t, _ = step_of(name, X, P)
    least = 1 / (1 / P[-1, -1] + np.sum(H[:, -1] ** 2 / grip[:, 0]))
    assert not t[-1, -len(machine_of(name).cylinders):].any()      # that friction is in its variance
    assert 0.99 * least < p[-1, -1] < 0.9 * P[-1, -1] and abs(x[-1] - X[-1] + 60.0) < 3 * np.sqrt(p[-1, -1])
    spread = np.sqrt(np.diag(P))
    assert (np.linalg.eigvalsh(p / np.outer(spread, spread)) > 0).all()
    if len(grip) == 1:      # of several, one may count for the motion when another has made the mass known
        np.testing.assert_array_equal(x[:-1], X[:-1])


def test_once_moving_a_piston_is_known_to_move_for_longer() -> None:
    """At 2 standard deviations of its speed: yes where it moved a step before, no where it was at rest."""
    name = 'patu655_lift'
    P, X = covariance(name), carried(name, 0.1)
    P *= (0.05 / np.sqrt(P[1, 1])) ** 2
    speed = evaluated(name, X, P)[3]
    assert STILL_KNOWN < speed[0, 0] < KNOWN
    for moved in (0.0, 1.0):
        assert step_of(name, X, P, moved)[3] == moved


def test_at_rest_the_mass_is_as_uncertain_as_the_friction() -> None:
    """Ten seconds at rest, with noise, friction at either bound: no mass is published, the observer's holds the truth,
    the pressures are those that were measured, all is well."""
    X = carried('patu655_lift', 0.0, 0.0)
    _, H, _, _, grip, _ = evaluated('patu655_lift', X)
    area = crane().circuit.areas()
    area = float(ca.Function('areas', [crane().parameters.symbol], [area])(crane().parameters.mean)[0])
    for valve, side in itertools.product(VALVES, (-1.0, 1.0)):
        rng, pipeline = np.random.default_rng(0), Pipeline(load_machine('patu655_lift', valve))
        pressures = X[3] + side * np.sqrt(grip[0, 0]) / area, X[4]
        for k in range(1000):
            noise = rng.standard_normal(3)
            for channel, value in (('command/lift_valve', 0.0), ('position/lift', X[0] + 4e-4 * noise[0]), (
                    'pressure/lift_piston', pressures[0] + 12e3 * noise[1]), (
                    'pressure/lift_rod', pressures[1] + 8e3 * noise[2])):
                for output in pipeline.add(channel, k * 10_000_000, value):
                    last = output
        mean, stddev = last.state.mean[-1], np.sqrt(last.state.covariance[-1, -1])
        assert last.state.status is ObserverStatus.OK and np.isnan(last.payload.mass)
        assert abs(mean[-1] - MACHINES['patu655_lift']) < 2 * stddev
        assert stddev > 0.7 * np.sqrt(grip[0, 0]) / abs(H[0, -1])
        np.testing.assert_allclose(mean[3:5], pressures, atol=3e4)


def information_of_a_step() -> tuple[list[ca.SX], MassStep]:
    """Symbols: mass, its slope, its variance before and after the walk; mass, slope and variance then; variance that a
    calm mass walks, activity, trend (2,)."""
    symbols = [ca.SX.sym(name, 2 if name == 'j' else 1) for name in 'abcdefghij']
    return symbols, mass_information(tuple(symbols[:4]), tuple(symbols[4:7]), *symbols[7:])


def test_the_information_of_the_steps_adds_up_to_the_filter() -> None:
    """Information and weighted masses of many steps, forgotten as said: mass and variance of a scalar Kalman filter."""
    symbols, it = information_of_a_step()
    function = ca.Function('information', symbols, [*it.measured.row, it.activity, it.trend])
    rng, m, P, activity, trend = np.random.default_rng(1), 3.0, 4.0, 1.0, np.zeros(2)
    information, weighted, slope, inclined = 1 / P, m / P, 0.0, 0.0
    for k in range(400):
        walk = 1e-9     # a calm mass hardly walks: what it does is not a reason to forget
        old, truth = P + walk * activity, 3.0 if k < 200 else 8.0
        gain = old / (old + 1.0)
        found, new = m + gain * (truth + rng.standard_normal() - m), (1 - gain) * old
        steeper = slope + gain * (0.5 - slope)      # a number makes all samples wrong by a half
        values = function(m, slope, P, old, found, steeper, new, walk, activity, trend)
        *reported, activity = (float(item) for item in values[:-1])
        trend = values[-1]
        kept = np.exp(reported[2])
        information, weighted = information * kept + reported[0], weighted * kept + reported[1]
        inclined = inclined * kept + reported[3]
        m, P, slope = found, new, steeper
        assert kept <= 1.0 + 1e-12 and reported[0] >= 0
        assert information == pytest.approx(1 / P, rel=1e-4) and weighted / information == pytest.approx(m, rel=1e-4)
        assert inclined / information == pytest.approx(slope, rel=1e-3)
    assert activity > 1.0       # the load has changed


def test_the_activity_of_a_calm_mass_stays_at_one() -> None:
    """Changes that have nothing to do with each other: the factor stays at 1 for nearly all of the time."""
    rng, activity, trend, some = np.random.default_rng(2), 1.0, np.zeros(2), []
    symbols, it = information_of_a_step()
    function = ca.Function('information', symbols, [it.activity, it.trend])
    for _ in range(20_000):
        change = rng.standard_normal() * 0.1
        activity, trend = function(0.0, 0.0, 1.0, 1.0, change, 0.0, 0.99, 0.0, activity, trend)
        some.append(float(activity))
    assert np.median(some) == 1.0 and np.mean(np.array(some) > 1e3) < 0.01


def test_what_an_uncertain_number_does_to_the_mass_is_no_change() -> None:
    """A mass that moves by twice what a deviation of a number makes of the new pose is calm; by ten times, or where no
    number is uncertain, it is not."""
    symbols, it = information_of_a_step()
    function = ca.Function('information', symbols, [it.activity, it.trend])
    for change, slope, calm in ((0.2, 0.1, True), (0.2, 0.0, False), (1.0, 0.1, False)):
        activity, trend = 1.0, np.zeros(2)
        for _ in range(200):
            activity, trend = function(0.0, 0.0, 1.0, 1.0, change, slope, 0.99, 0.0, activity, trend)
        assert (float(activity) == 1.0) is calm


LOADS = WorkCycle(0.3, tuple(Move(v, 1.5) for _ in range(4) for v in (4.0, -4.0)), load=(
    (0.0, 0.2), (5.9, 0.2), (6.0, 1.0), (20.0, 1.0)))


@pytest.mark.parametrize('valve, known', [('orifice', 8.5), ('unknown', 9.5)])
def test_another_load_is_noticed(valve: str, known: float) -> None:
    """From 40 to 200 kg within 0.1 s, in motion, at 6 s: noticed within half a second, no state is lost; 2.5 s later
    the interval is narrow, where the valves' flows are not known a second later still. From its end on it is right."""
    run = estimate(valve, simulate(200.0, 3, LOADS), machine=exact_crane(valve))
    by_time = {round(o.payload.stamp_ns * 1e-9, 2): o.payload for o in run.outputs}
    before, after = by_time[5.8], by_time[known]
    assert before.lower < 40.0 < before.upper and before.upper - before.lower < 10.0
    assert after.lower < 200.0 < after.upper and after.upper - after.lower < 80.0 and abs(after.mass - 200.0) < 5.0
    assert by_time[6.5].status not in (PayloadStatus.UPDATING, PayloadStatus.TOO_SLOW)
    assert all(o.state.status is ObserverStatus.OK for o in run.outputs[60:])
    wrong = [t for t, p in by_time.items() if t > 6.0 and p.status is PayloadStatus.UPDATING
             and not p.lower < 200.0 < p.upper]
    assert max(wrong, default=0.0) < 6.5


def test_a_step_that_leaves_out_the_correction_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The branch of large states on a small one, in C and in the virtual machine: equal but for the last digits."""
    frames, found = simulate(80.0, 5, WorkCycle(0.3, (Move(0.0, 0.2), Move(4.0, 0.8), Move(-4.0, 0.5)))), []
    for large, backend in ((10_000, 'auto'), (0, 'auto'), (0, 'vm')):
        monkeypatch.setattr(observer_step_module, 'LARGE', large)
        outputs = feed(Pipeline(crane(), backend=backend), frames)
        found.append(np.array([[*o.state.mean[-1], *np.sqrt(np.diag(o.state.covariance)), *o.state.innovation_stddev,
                                o.payload.stddev] for o in outputs]))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures('vm')
def test_together_is_better_than_apart() -> None:
    """Unknown valves, random cycles, two cylinders: velocity and mass, at the same samples (errors in variables)."""
    machine = machine_of('patu655')
    cycle = random_cycle(np.random.default_rng(6), 6.0, others=['tilt_valve'])
    frames = SimulatedCrane(load_machine('patu655'), 300.0, 6, cycle, plant=plant_of(load_machine('patu655'))).run()
    truth, errors, masses = {f.stamp_ns: f for f in frames}, {}, {}
    for weighing in ('joint', 'apart'):
        outputs = feed(Pipeline(machine, observer=ObserverSettings(weighing=weighing)), frames)
        some = [(o.state.mean[-1, 2:4], truth[o.state.stamp_ns].velocity) for o in outputs[100:]
                if o.state.stamp_ns in truth]
        errors[weighing] = np.sqrt(np.mean([(a - b) ** 2 for a, b in some]))
        masses[weighing] = abs(outputs[-1].payload.mass - 300.0)
    assert errors['joint'] < 0.5 * errors['apart'] and masses['joint'] < 1.5


def corrected(machine: Machine, frame: SensorFrame, number: str, error: float) -> SensorFrame:
    """The frame as an exact sensor would have it where an offset, bias or gain is off by so much."""
    _, sensor, kind = number.split('.')
    name = next(channel.name for channel in machine.all_channels if channel.sensor.name == sensor)
    value = frame.samples[name]
    return replace(frame, samples=frame.samples | {name: value / (1 + error) if kind == 'gain' else value - error})


def masses_of(pipeline: Pipeline) -> np.ndarray:
    """The mass (2,) before and after the errors that all masses have in common are taken off."""
    mass = pipeline.payload._mass
    return np.array([mass.weighed, mass.mass])


def test_the_interval_knows_what_each_uncertain_number_does() -> None:
    """Derivatives of the mass against estimates of the same samples with that number one deviation off, and what of it
    is left in the mass after the common errors are taken off against the budget; friction and oil only roughly: they
    also change how lively the filter takes the machine to be."""
    cycle = WorkCycle(0.3, (Move(0.0, 0.3), Move(5.0, 1.5), Move(0.0, 0.4), Move(-5.0, 1.5)))
    frames, machine, found = simulate(120.0, 4, cycle), load_machine('patu655_lift', 'unknown'), []
    parameters = machine.parameters
    pipeline = Pipeline(machine)
    feed(pipeline, frames)
    base = masses_of(pipeline)
    stated = pipeline.payload._estimator._filter.value[1:] * parameters.stddev
    mean = parameters.mean
    for k, (name, deviation) in enumerate(zip(parameters.names, parameters.stddev)):
        sensor = name.startswith('sensors.')
        parameters.assume(mean + deviation * (np.arange(len(mean)) == k) * (not sensor))
        seen = [corrected(machine, frame, name, deviation) for frame in frames] if sensor else frames
        other = Pipeline(machine)
        feed(other, seen)
        found.append(masses_of(other) - base)
    weighed, left = np.array(found).T
    budget = {cause.cause: cause.kg for cause in pipeline.payload.budget}
    through = np.array([budget[name] for name in parameters.names])
    assert np.abs(weighed).max() > 0.5 and np.abs(left).max() < np.abs(weighed).max()
    exact = [k for k, name in enumerate(parameters.names) if name.startswith(('bodies', 'sensors', 'base'))]
    np.testing.assert_allclose(weighed[exact], stated[exact], rtol=0.1, atol=0.02)
    np.testing.assert_allclose(weighed, stated, atol=0.2)
    np.testing.assert_allclose(np.abs(left)[exact], through[exact], rtol=0.15, atol=0.03)


def test_both_ways_have_their_gates() -> None:
    """What the observer reports counts where the payload's own gates are open; acceleration closes none."""
    frames = simulate(100.0, 2, WorkCycle(0.3, (Move(0.0, 0.5), Move(5.0, 2.0, 0.02), Move(0.0, 0.5))))
    outputs = estimate('orifice', frames).outputs
    fast = JointEstimator(crane(), PayloadSettings(min_speed=0.5))
    for o in outputs:
        last = fast.process(o.state.mean, o.state.covariance, 1e-3, o.state.weighing)
    assert last.samples == 0 and np.isnan(last.mass) and last.gate == 'too slow'
    assert {o.payload.status.name for o in outputs if o.state.status is ObserverStatus.OK} == {
        'CHANGING', 'UPDATING', 'TOO_SLOW'}
    assert abs(outputs[-1].payload.mass - 100.0) < 1.0
    assert not estimate('orifice', frames[:40], kinematic()).outputs[-1].state.weighing.size
