# SPDX-License-Identifier: Apache-2.0
"""Friction near standstill: an error of the motion that stays the same for a while, in covariance, gates and bands."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from core_support import crane, exact_crane
from test_filters_weighing import DT, MACHINES, carried, covariance, evaluated, machine_of, step_of

from mbse_ros.filters import observer_step as observer_step_module
from mbse_ros.filters.hydraulic_model import hydraulic_model
from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.filters.weighing import HELD, forgotten, frictions


@pytest.mark.parametrize('name', MACHINES)
def test_what_a_friction_at_rest_does_to_the_motion_is_followed(name: str) -> None:
    """By a step with the largest friction of one piston added to the balance, a standard deviation at standstill; it
    fades within HELD, and the sum of both covariances stays what it was."""
    machine, P, X = machine_of(name), covariance(name), carried(name, 0.0)
    P[:, -1] *= 1e-3
    P[-1] *= 1e-3
    model, count = hydraulic_model(machine, True), len(machine.cylinders)
    _, p, t, _ = step_of(name, X, P)
    _, H, R, _, _, slopes = evaluated(name, X, P)
    assert (np.abs(slopes[:, -count:]).max(axis=0) > 0).all() and not t[-1, -count:].any()
    if len(R) == 1:
        K = P @ H.T / (H @ P @ H.T + R)
        np.testing.assert_allclose(t[:-1, -count:], (-K @ slopes[:, -count:])[:-1], rtol=1e-9, atol=1e-12)
    T, dt = ca.SX.sym('T', *t.shape), ca.SX.sym('dt')
    function = ca.Function('forgotten', [T, dt], list(forgotten(machine, model, ca.SX(p), T, dt)))
    later, faded = (item.full() for item in function(t, HELD))
    np.testing.assert_allclose(faded, np.hstack([t[:, :-count], t[:, -count:] / np.e]), rtol=1e-12, atol=1e-15)
    spread = np.sqrt(np.diag(p))
    np.testing.assert_allclose((later + faded @ faded.T) / np.outer(spread, spread),
                               (p + t @ t.T) / np.outer(spread, spread), rtol=1e-9, atol=1e-9)


def test_an_innovation_knows_the_friction() -> None:
    """Its variance, with a sample and without: that of the state, of the noise and of what the frictions near
    standstill have done to it; what the numbers have done, which activities do not know, stands apart."""
    machine = machine_of('patu655')
    model, P, X = hydraulic_model(machine, True), covariance('patu655'), carried('patu655')
    unit = np.outer(model.scale, model.scale)
    T = ca.SX.sym('T', len(X), len(model.consider(machine)) + frictions(machine, model))
    near = ca.DM(machine.position(X[:2])[machine.system.dependent])
    variance = ca.DM([channel.sensor.noise ** 2 for channel in machine.all_channels])
    state = ca.SX(ca.DM(X / model.scale)), ca.SX(ca.DM(P / unit)), T
    sampled, doubts = observer_step_module._corrected(machine, model, *state, ca.SX(near), ca.SX(0 * variance),
                                                      ca.SX(variance))[4:]
    silent = observer_step_module._spreads(machine, model, *state[1:], ca.SX(variance))
    function = ca.Function('spreads', [T, machine.parameters.symbol], [sampled[0], silent[0]])
    apart = ca.Function('doubts', [T, machine.parameters.symbol], [doubts[0]])
    numbers, moved = np.zeros(T.shape), np.zeros(T.shape)
    numbers[0, 0], moved[0, -2:] = 5e-3, [3e-3, 4e-3]       # of the first position, m
    plain, wrong, held = (np.array(function(item, machine.parameters.mean)).ravel()
                          for item in (np.zeros(T.shape), numbers, moved))
    np.testing.assert_allclose(plain, P[0, 0] + float(variance[0]), rtol=1e-9)
    np.testing.assert_allclose(wrong, plain, rtol=1e-12)
    np.testing.assert_allclose(held - plain, 2.5e-5, rtol=1e-9)
    own = float(apart(np.zeros(T.shape), machine.parameters.mean))      # of the sensor's own offset
    assert float(apart(numbers, machine.parameters.mean)) == pytest.approx(own + 2.5e-5, rel=1e-9)
    assert float(apart(moved, machine.parameters.mean)) == own


def test_the_gate_knows_the_numbers() -> None:
    """An innovation of the piston's pressure, which a number that is wrong by its deviation would change by 50 kPa."""
    machine, found = crane('unknown'), {}
    for doubt in (0.0, 0.05):       # MPa
        observer = HydraulicObserver(machine, ObserverSettings())
        observer.start(np.array([0.25, 5e6, 3e6]), np.zeros(0))
        n, place = len(observer.names), observer.names.index('pressure/lift_piston')
        slopes = observer.running.state[observer.slopes].reshape(n, -1)
        slopes[place, 0] = doubt
        observer.running.state[observer.slopes] = slopes
        result = observer.process(np.array([[0.25, 5e6, 3e6]]), np.zeros((1, 0)), np.ones(3), DT)
        found[doubt] = result.innovation_variance[list(observer.channels).index('pressure/lift_piston')]
    assert found[0.05] - found[0.0] == pytest.approx(5e4 ** 2, rel=0.02)


def test_the_published_bands_hold_the_friction() -> None:
    """At rest: the covariance without the derivatives by numbers and frictions is that of the filter alone."""
    it, X = exact_crane('unknown'), carried('patu655_lift', 0.0, 0.0)
    observer, samples = HydraulicObserver(it, ObserverSettings()), np.array([X[0], X[3], X[4]])
    observer.start(samples, np.zeros(0))
    values = np.full((200, 3), np.nan)
    values[9::10] = samples
    for _ in range(3):
        found = observer.process(values, np.zeros((200, 0)), np.full(3, 10), DT)
    n, x = len(X), observer.running.state
    T = x[observer.slopes].reshape(n, -1).T
    own = x[observer._full] * observer._to_si
    held = (T[-1:].T @ T[-1:]) * observer._to_si
    assert held[1, 1] > 0.01 * own[1, 1] and frictions(it, observer.model) == 1
    np.testing.assert_allclose(found.covariance, own + (T.T @ T) * observer._to_si, rtol=1e-9,
                               atol=1e-12 * np.abs(own).max())
