# SPDX-License-Identifier: Apache-2.0
"""The centre of the load, where the file calls it uncertain, in one estimate with motion and mass."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from core_support import VALVES, feed
from machine_variants import changed, exact_sensors
from test_filters_weighing import evaluated_of

from mbse_ros.filters.hydraulic_model import hydraulic_model
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.filters.weighing import LASTING, UNKNOWN, relaxed
from mbse_ros.machine import Machine, load_machine, with_valves
from mbse_ros.offline.estimate import MachineEstimate
from mbse_ros.payload.mass import center_of
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.streams.pipeline import Output, Pipeline
from mbse_ros.streams.records import PayloadStatus

TIP, LOAD = (2.45, 0.05), 150.0


@cache
def machine(valve: str, off: tuple[float, float] = (0.0, 0.0), stddev: str = '20 cm') -> Machine:
    """The crane with two booms, whose load hangs somewhere near the tip."""
    center = {'value': [f'{TIP[0] + off[0]} m', '0 m', f'{TIP[1] + off[1]} m'], 'stddev': [stddev, '0 m', stddev]}
    payload = {'body': 'extension', 'center': center, 'limits': ['0 kg', '1000 kg']}
    return Machine(with_valves(changed('patu655', {'payload': payload, **exact_sensors('patu655')}).description, valve))


@cache
def run(seed: int = 2) -> list[SensorFrame]:
    """12 s of all cylinders at random, the load at the tip."""
    true = load_machine('patu655', 'orifice')
    return SimulatedCrane(true, LOAD, seed, cycle_by_name('random', true, seed), plant=plant_of(true)).run()[:1200]


def test_what_the_file_calls_certain_is_no_entry_of_the_state() -> None:
    assert list(machine('unknown').parameters.center) == ['x', 'z'] and not load_machine('patu655').parameters.center
    names, scale = state_names(machine('unknown'), True)
    assert names[-3:] == ('moment/x', 'moment/z', 'payload/mass') and scale[-3:].tolist() == [200.0, 200.0, 1000.0]
    model = hydraulic_model(load_machine('zx200'), True)
    assert model.unknowns == 1 and model.names[-1] == 'payload/mass' and model.weighs
    assert hydraulic_model(machine('unknown')).unknowns == 0


def test_derivatives_by_the_centre() -> None:
    """Mass and moments: by central differences of the residual, and of the inverse dynamics with the load elsewhere."""
    it = machine('unknown')
    names = state_names(it, True)[0]
    X = np.concatenate([run()[300].position, run()[300].velocity, run()[300].acceleration, run()[300].pressure,
                        np.zeros(len(names) - 13), [30.0, -15.0, LOAD]])
    H = evaluated_of(it, X)[1]
    for k in (-3, -2, -1):
        step = np.zeros(len(X))
        step[k] = 1e-4
        slope = (evaluated_of(it, X + step)[0] - evaluated_of(it, X - step)[0])[:, 0] / 2e-4
        np.testing.assert_allclose(H[:, k], slope, rtol=1e-6, atol=1e-7 * np.abs(H).max())
        assert np.abs(slope).min() > 0
    X[-3:-1], nearer = 0.0, machine('unknown', (1e-3, 0.0))
    moved = (evaluated_of(nearer, X)[0] - evaluated_of(it, X)[0])[:, 0]
    np.testing.assert_allclose(moved, H[:, -3] * LOAD * 1e-3, rtol=1e-3)      # but for the load's inertia


def place_of(it: Machine, output: Output) -> tuple[np.ndarray, np.ndarray]:
    """Centre and standard deviations, x and z, m."""
    state = output.state
    found = center_of(it, state.names, state.mean[-1], state.covariance)
    assert found['y'] == (0.0, 0.0)
    return np.array([found['x'][0], found['z'][0]]), np.array([found['x'][1], found['z'][1]])


@cache
def last_with(valve: str) -> tuple[Machine, Output]:
    """A machine whose file has the centre off by 15 and -10 cm, and its last output."""
    it = machine(valve, (0.15, -0.10))
    return it, feed(Pipeline(it, segment=0.1), run())[-1]


@pytest.mark.parametrize('valve', VALVES)
def test_a_wrong_centre_is_found_and_with_it_the_mass(valve: str) -> None:
    """Off by 15 and -10 cm in the file."""
    it, last = last_with(valve)
    place, stddev = place_of(it, last)
    assert (np.abs(place - TIP) < 2.5 * stddev).all() and (stddev < 0.1).all() and np.abs(place - TIP).max() < 0.05
    assert last.payload.lower < LOAD < last.payload.upper and abs(last.payload.mass - LOAD) < 2.0


def test_the_answer_names_the_centre_of_a_load() -> None:
    """And none where the interval of the mass holds 0."""
    it, output = last_with('unknown')
    for payload, named in ((output.payload, True), (replace(output.payload, lower=-1.0), False)):
        answer = SimpleNamespace(machine=it, last=replace(output, payload=payload), budget=(), loads=(),
                                 seconds=1.0, log_seconds=3.0, doubts=(), uncounted='', counted=(),
                                 track=SimpleNamespace(signs=np.zeros((1, len(output.state.names)))))
        lines = [line for line in MachineEstimate.summary(answer)
                 if line.startswith('its centre in the frame of extension: x 2')]
        assert len(lines) == named and all(' mm (1 sigma ' in line and ', z ' in line for line in lines)


def test_the_uncertainty_of_the_centre_is_that_of_moment_and_mass() -> None:
    """Against a quotient of 100,000 drawn moments and masses; without a load it is the file's."""
    it, rng = machine('unknown'), np.random.default_rng(1)
    names = state_names(it, True)[0]
    mean, P = np.zeros(len(names)), np.zeros((len(names), len(names)))
    mean[-3:], P[-3:, -3:] = [30.0, -20.0, 200.0], [[9.0, 0.0, 4.0], [0.0, 16.0, 0.0], [4.0, 0.0, 25.0]]
    drawn = rng.multivariate_normal(mean[-3:], P[-3:, -3:], 100_000)
    found, quotient = center_of(it, names, mean, P), drawn[:, :2] / drawn[:, 2:]
    assert found['x'][0] == pytest.approx(TIP[0] + 0.15) and found['z'][0] == pytest.approx(TIP[1] - 0.1)
    np.testing.assert_allclose([found['x'][1], found['z'][1]], quotient.std(axis=0), rtol=0.02)
    assert center_of(it, names, mean * 0.05, P)['x'] == (TIP[0], 0.2)


def test_a_load_that_is_dropped_has_not_moved() -> None:
    """From 150 to 45 kg: within half a second it is the mass that has changed, the centre is about as uncertain as in
    the file again."""
    true, it = load_machine('patu655', 'orifice'), machine('orifice')
    moves = tuple(Move(v, 1.5) for _ in range(3) for v in (4.0, -4.0))
    cycle = WorkCycle(0.3, moves, load=((0.0, 1.0), (5.0, 1.0), (5.1, 0.3), (20.0, 0.3)))
    outputs = feed(Pipeline(it), SimulatedCrane(true, LOAD, 1, cycle, plant=plant_of(true)).run())
    by_time = {round(o.state.stamp_ns * 1e-9, 2): o for o in outputs}
    for time, mass in ((4.9, LOAD), (5.6, 0.3 * LOAD), (8.5, 0.3 * LOAD)):
        o = by_time[time]
        place, stddev = place_of(it, o)
        assert o.payload.lower < mass < o.payload.upper and o.payload.upper - o.payload.lower < 50.0
        assert (np.abs(place - TIP) < 0.2).all() and (stddev < 0.35).all()
    assert any(o.payload.status is PayloadStatus.CHANGING for o in outputs if 5e9 < o.state.stamp_ns < 6e9)


def test_moments_of_no_such_load_are_given_up() -> None:
    """Of a mass that is known: kept for minutes near the file's centre, given up at once far from it or where they are
    less known than the file says; of one that is not known, given up at once."""
    it = machine('unknown')
    model = hydraulic_model(it, True)
    n = len(model.names)
    X, P, T, dt = ca.SX.sym('X', n), ca.SX.sym('P', n, n), ca.SX.ones(n, 2), 1e-3
    function = ca.Function('relaxed', [X, P], list(relaxed(it, model, X, P, T, ca.SX(dt))))

    def kept(moment: float, own: float, mass: float) -> float:
        """Share of a moment that is left, 150 kg being 0.15; its deviation, and the mass's, as shares of theirs."""
        x, p = np.zeros(n), np.zeros((n, n))
        x[-3], x[-1], p[-3, -3], p[-1, -1] = moment * 0.15, 0.15, (own * 0.15) ** 2, (mass * 0.15) ** 2
        after, variance, slopes = (item.full() for item in function(x, p))
        share = after[-3, 0] / x[-3]
        assert slopes[-3, 0] == pytest.approx(share) and slopes[0, 0] == 1.0 and after[-1, 0] == x[-1]
        assert variance[-3, -3] == pytest.approx(share ** 2 * p[-3, -3] + (1 - share ** 2) * 0.15 ** 2)
        return share

    calm, gone = np.exp(-dt / LASTING), np.exp(-dt / LASTING - dt / UNKNOWN)
    assert kept(2.9, 0.1, 0.01) == pytest.approx(calm, rel=1e-6)
    for lost in ((3.1, 0.1, 0.01), (1.0, 1.3, 0.01), (1.0, 0.1, 1.5)):
        assert kept(*lost) == pytest.approx(gone, rel=1e-9)


def test_consider_parameters_are_the_uncertain_numbers_that_are_not_in_the_state() -> None:
    """Decided once: the observer's derivatives, the payload's errors and the causes of the scale are in this order."""
    of = machine('unknown')
    parameters, stddev = of.parameters, of.parameters.stddev
    assert [name for name, deviation in zip(parameters.names, stddev)
            if deviation > 0 and not name.startswith('payload.center')] == list(parameters.consider_names)
    assert hydraulic_model(of, True).consider(of) == parameters.consider.tolist()
    assert hydraulic_model(of, False).consider(of) == []
