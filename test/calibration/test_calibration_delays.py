# SPDX-License-Identifier: Apache-2.0
"""Delays of sensors as numbers to be calibrated, and windows whose parts are of one time."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from calibration_support import crane
from cli_support import mbse

from mbse_ros.calibration.balance import WINDOW, CalibrationBalance, Samples, windows_of
from mbse_ros.calibration.fit import CalibrationLog, KnownLoad, fit
from mbse_ros.calibration.free import bounds_of
from mbse_ros.calibration.identifiability import advice
from mbse_ros.calibration.plan import Planner
from mbse_ros.filters.hydraulic_model import hydraulic_model
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.machine import Machine
from mbse_ros.offline.calibration.calibrated_file import prior_machine
from mbse_ros.payload.inverse_dynamics import residual
from mbse_ros.simulation.crane import CraneSettings, SimulatedCrane, cycle_by_name

T = np.arange(0.0, 12.0, 0.01)


@cache
def balance() -> CalibrationBalance:
    return CalibrationBalance(machine())


@cache
def machine() -> Machine:
    return prior_machine('patu655_lift', ('sensors.*.delay',))[1]


def signals(late: dict[str, float], speed: float = 0.04) -> dict[str, Samples]:
    """A lift that moves out, faster and slower, with pressures that follow; samples of channels are late, s."""
    def at(name: str) -> np.ndarray:
        t = T - late.get(name, 0.0)
        return {'position/lift': 0.02 + speed * t - 0.2 * speed * np.cos(t),
                'pressure/lift_piston': 8e6 + 6e5 * np.sin(0.9 * t), 'pressure/lift_rod': 4e6 + 3e5 * np.cos(0.7 * t)
                }[name]
    return {name: (T, at(name)) for name in machine().channels}


def missing(series: dict[str, Samples], **delays: float) -> tuple[np.ndarray, np.ndarray]:
    """Forces that lack in the windows (n,), N, with these delays of sensors, s, and their derivatives (n, k)."""
    numbers = machine().parameters.mean
    for name, delay in delays.items():
        numbers[machine().parameters.names.index(f'sensors.{name}.delay')] = delay
    moments = balance().moments(windows_of(machine(), series), WINDOW / 2, 300.0)
    g, J, _ = balance().terms(moments, numbers, np.full(len(moments.X), 300.0))
    assert len(g) == 23
    return g[:, 0], J[:, 0]


@pytest.mark.parametrize(('sensor', 'channel'), [('lift_stroke', 'position/lift'), ('lift_rod', 'pressure/lift_rod')])
def test_a_delay_in_the_numbers_is_one_in_the_stamps(sensor: str, channel: str) -> None:
    """Samples that are late by 10 ms, with that delay, lack the same forces as samples that are not; without it other
    ones, by what the derivative says."""
    prompt, late = signals({}), signals({channel: 0.01})
    expected, found, without = missing(prompt)[0], missing(late, **{sensor: 0.01})[0], missing(late)[0]
    size = np.abs(without - expected).max()
    assert size > 5 and np.abs(found - expected).max() < 0.02 * size
    slope = missing(late)[1][:, machine().parameters.names.index(f'sensors.{sensor}.delay')]
    np.testing.assert_allclose(without + 0.01 * slope, expected, atol=0.02 * size)


def test_late_pressures_are_found() -> None:
    """Of quick motions with a known load, without noise: 10 ms, and the friction within its deviation."""
    free = ('cylinders.*.friction.scale=30 %', 'sensors.*_piston.delay', 'sensors.*_rod.delay')
    m = prior_machine('patu655_lift', free)[1]
    names, k, true = m.parameters.names, len(m.parameters.names), m.parameters.mean
    places = [names.index(f'sensors.{name}.delay') for name in ('lift_piston', 'lift_rod')]
    true[places] = 0.01
    cycle = cycle_by_name('random', m, 1).repeated(3)
    frames = SimulatedCrane(m, 500.0, 1, cycle, CraneSettings(noise=0.0), true).run()
    t = np.array([frame.stamp_ns for frame in frames]) * 1e-9
    series = {name: (t, np.array([frame.samples[name] for frame in frames])) for name in m.channels}
    own = CalibrationBalance(m)
    found = fit(own, [CalibrationLog('late', own.moments(windows_of(m, series), WINDOW / 2, 500.0),
                                     KnownLoad('known', 500.0, 2.5))])
    factor = m.parameters.factor()
    values, after = m.parameters.mean + factor @ found.u[:k], np.sqrt(np.diag(
        factor @ found.covariance[:k, :k] @ factor.T))
    assert (np.abs(values - true)[places] < 2 * after[places]).all() and (values[places] > 0.005).all()
    assert (after[places] < 0.008).all()
    friction = names.index('cylinders.lift.friction.scale')
    assert values[friction] == pytest.approx(1.0, abs=2 * after[friction])


def test_a_window_is_of_one_time() -> None:
    """A cubic motion: the acceleration of a window is that of its middle, though of the samples at its two ends
    only one is in it; so are pressures that rise."""
    made = {name: (T, 3e6 + 1e5 * T) for name in machine().channels}
    made['position/lift'] = (T, 1e-4 * T ** 3)
    found = windows_of(machine(), made)
    assert found.X[:, 2] == pytest.approx(6e-4 * found.t, abs=1e-6) and found.X[:, 3] == pytest.approx(
        3e6 + 1e5 * found.t, abs=5.0)


def test_a_piston_that_rests_within_a_window_does_not_count() -> None:
    """A jerk in the middle of a window has a mean speed and no acceleration, but friction at rest before and after."""
    m, b = crane().machine, crane().balance
    made = {name: (T, np.full_like(T, 5e6)) for name in m.channels}
    for begin, speed, counted in ((0.0, 0.05, 3), (1.17, 0.15, 0)):
        made['position/lift'] = (T, 0.1 + speed * np.clip(T - begin, 0.0, 20.0 if begin == 0.0 else 0.16))
        w = windows_of(m, made)
        assert int(b.moments(w.part(w.t < 1.5), WINDOW / 2).counts.sum()) == counted


def test_delays_are_freed_by_their_names() -> None:
    m = machine()
    names = [f'sensors.{name}.delay' for name in m.description.sensors]
    places = [m.parameters.names.index(name) for name in names]
    assert m.parameters.mean[places].tolist() == [0.0] * 3 and m.parameters.stddev[places] == pytest.approx(0.01)
    low, high = bounds_of(m)
    assert low[places].tolist() == [0.0] * 3 and high[places].tolist() == [0.5] * 3
    _, other = prior_machine('patu655_lift', ('sensors.lift_rod.delay=3 ms',))
    assert other.parameters.stddev[other.parameters.names.index('sensors.lift_rod.delay')] == pytest.approx(0.003)


def test_the_procedure_where_delays_are_uncertain() -> None:
    """Steady motion tells of a position's delay by the slope of the force over the stroke, and nothing of a pressure's
    that stays the same."""
    done = mbse('calibrate', '--plan', 'patu655_lift', '--free', 'sensors.*.delay')
    assert done.status == 0 and 'sensors.lift_piston.delay' in done.out
    assert mbse('calibrate', '--plan', 'patu655').status == 0       # two cylinders, no delays
    moments, _ = Planner(balance())._moments(4, np.array([[0.05], [-0.05]]), 0.0)
    numbers, d, X = machine().parameters.mean, 1e-4, moments.X.copy()
    X[:, 0] += d * X[:, 1]
    later = replace(moments, near=balance().solved(X[:, :1])[0], X=X)
    (g, J, _), (moved, *_) = (balance().terms(item, numbers, np.zeros(2)) for item in (moments, later))
    stroke, piston = (machine().parameters.names.index(f'sensors.{name}.delay') for name in (
        'lift_stroke', 'lift_piston'))
    assert np.abs(J[:, 0, stroke]).max() > 1.0 and not J[:, 0, piston].any()
    assert J[:, 0, stroke] == pytest.approx((moved - g)[:, 0] / d, rel=0.02)


def test_advice_where_delays_are_uncertain() -> None:
    """What bags would need is said, also of a machine with late samples."""
    own = balance()
    log = CalibrationLog('late', own.moments(windows_of(machine(), signals({})), WINDOW / 2, 300.0),
                         KnownLoad('known', 300.0, 1.0))
    assert advice(own, fit(own, [log]))[0].startswith('move lift slowly ')


def test_the_mass_apart_knows_of_delays() -> None:
    """The equations of motion change with a delay as with the state along its rate, by the observer's model."""
    m, r = machine(), residual(machine())
    names, scale = state_names(m)
    model, X = hydraulic_model(m), np.zeros(len(names))
    X[:5] = 0.2, 0.05, 0.1, 9e6, 4e6
    symbol = m.parameters.symbol
    outputs = [ca.jacobian(r.g0, symbol), ca.jacobian(r.g0, r.X)]
    near = m.position(X[:1])[m.system.dependent]
    by_numbers, by_state = (part.full() for part in ca.Function('g', [r.near, r.X, symbol], outputs)(
        near, X, m.parameters.mean))
    f = ca.Function('f', [model.X, model.dependent, model.U, symbol], [model.f])(
        X / scale, near[:model.dependent.numel()], 0, m.parameters.mean).full()[:, 0] * scale
    for sensor, entries in (('lift_stroke', [0, 1, 2]), ('lift_piston', [3]), ('lift_rod', [4])):
        place = m.parameters.names.index(f'sensors.{sensor}.delay')
        assert by_numbers[0, place] == pytest.approx(by_state[0, entries] @ f[entries], rel=1e-6, abs=1e-6)
        assert abs(by_numbers[0, place]) > 1.0
