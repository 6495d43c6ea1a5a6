# SPDX-License-Identifier: Apache-2.0
"""A load that hangs and swings: the observer's formula against the true mechanism, and the mass of simulated lifts."""

from __future__ import annotations

from functools import cache
from typing import Any

import casadi as ca
import numpy as np
import pytest
import yaml
from core_support import crane, feed, kinematic
from machine_variants import changed

from mbse_ros.description.load import known_machines, parse_mechanism
from mbse_ros.dynamics.forces.inertial_forces import inertial_forces
from mbse_ros.errors import DescriptionError
from mbse_ros.filters.force_balance import LASTING, SPREAD, pull, spread_of_rate, swing_noise
from mbse_ros.filters.hydraulic_model import hydraulic_model
from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.machine import Machine, with_valves
from mbse_ros.simulation.crane import SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.simulation.pendulum import BODY, ROD, PendulumMachine
from mbse_ros.simulation.plant import PIN_FRICTION, Plant
from mbse_ros.streams.pipeline import Pipeline

LENGTH, LOADS = 2.0, {'patu655_lift': 300.0, 'patu655': 200.0, 'zx200': 800.0}
HANGING = {'payload/hanging': {'value': f'{LENGTH} m', 'stddev': '5 cm'}}


@cache
def machine(name: str, valve: str = 'orifice') -> Machine:
    """A machine of the package with a hook."""
    return Machine(with_valves(changed(name, HANGING).description, valve))


def flat(part: Any) -> Any:
    """A part of a crane's file for a plane, x to the right and y up."""
    if isinstance(part, list):
        return [part[0], part[2]] if len(part) == 3 and str(part[1]).startswith('0 ') else [flat(item) for item in part]
    if not isinstance(part, dict):
        return part
    if set(part) == {'yy'}:
        return part['yy']
    changes = {'dimension': 2, 'gravity': '9.8066 m/s^2'}
    return {key: changes.get(key, flat(item)) for key, item in part.items() if key != 'axis'}


def planar() -> Machine:
    """patu655_lift with a hook, in a plane."""
    tree = yaml.safe_load(known_machines()['patu655_lift'].read_text(encoding='utf-8'))
    del tree['base']
    tree['payload']['hanging'] = HANGING['payload/hanging']
    return Machine(parse_mechanism(yaml.safe_dump(flat(tree), sort_keys=False), 'planar.yaml'))


@cache
def plant(name: str) -> Plant:
    """Its plant, with the load as a body."""
    return plant_of(machine(name))


def required(it: Machine, q: np.ndarray, zd: np.ndarray, zdd: np.ndarray, mass: float) -> np.ndarray:
    """Forces (g,) along the independent coordinates that a motion takes."""
    system, reduced = it.system, it.reduced
    needed = ca.substitute(inertial_forces(system, reduced.R @ ca.DM(zdd) + reduced.S @ reduced.c), system.qd,
                           reduced.qd)
    return ca.Function('forces', [system.q, reduced.zd, it.payload, it.parameters.symbol],
                       [reduced.R.T @ needed])(q, zd, mass, it.parameters.mean).full().ravel()


def rod_of(true: Machine, axes: list[int], q: np.ndarray, zd: np.ndarray) -> list[np.ndarray]:
    """Horizontal components u of the rod's direction, u', and u'' = bias + slopes zdd."""
    system, reduced = true.system, true.reduced
    u = system.frames[BODY].rotation[axes, 0]
    rate = ca.jtimes(u, system.q, system.qd)
    slopes = ca.jacobian(u, system.q) @ reduced.R
    bias = ca.jtimes(rate, system.q, system.qd) + ca.jtimes(u, system.q, reduced.S @ reduced.c)
    rate, bias = ca.substitute([rate, bias], [system.qd], [reduced.qd])
    return [item.full() for item in ca.Function('rod', [system.q, reduced.zd, true.parameters.symbol], [
        u, rate, bias, slopes])(q, zd, true.parameters.mean)]


@pytest.mark.parametrize('name', [*LOADS, 'planar'])
def test_the_pull_is_that_of_the_true_mechanism(name: str) -> None:
    """A drawn motion of the machine, and the swing's acceleration by the observer's formula: the mechanism that has
    the load as a body needs no moment at its pins then, and the forces of a rigid load and the formula's."""
    it, load = planar() if name == 'planar' else machine(name), LOADS.get(name, 300.0)
    true = PendulumMachine(it)
    g, s, rng = len(it.coordinates), len(it.swings), np.random.default_rng(2)
    q = true.hanging(true.model.start.q, 0.3)
    q[[true.system.names.index(item) for item in true.passive]] += 0.2 * np.arange(s)
    zd, zdd = rng.normal(scale=0.5, size=(2, g + s))
    u, v, bias, slopes = rod_of(true, ['xyz'.index(axis) for axis in it.swings], q, zd)
    assert np.abs(u).min() > 0.1 and np.abs(v).min() > 0.05
    U, V, own = ca.SX.sym('U', s), ca.SX.sym('V', s), it.position(q[true.model.z][:g])
    found = pull(it, ca.DM(zdd[:g]), U, V)
    assert true.tilt(true.hanging(q, 0.3)) == pytest.approx(0.3)
    rates, force = (item.full().ravel() for item in ca.Function(
        'pull', [it.system.q, it.reduced.zd, U, V, it.payload, it.parameters.symbol], [found.rates, found.force])(
            own, zd[:g], u, v, load, it.parameters.mean))
    free = rates + 2.0 / LASTING * v.ravel()      # without the damping that the observer assumes
    zdd[g:] = np.linalg.solve(slopes[:, g:], free - bias.ravel() - slopes[:, :g] @ zdd[:g])
    needed, rigid = required(true, q, zd, zdd, load - ROD), required(it, own, zd[:g], zdd[:g], load)
    np.testing.assert_allclose(needed[g:], 0.0, atol=1e-8 * np.abs(rigid).max())
    np.testing.assert_allclose(needed[:g], rigid + force, atol=1e-8 * np.abs(rigid).max())
    assert (np.abs(force)[it.actuated] > 1e-3 * np.abs(rigid).max()).all()


def test_a_load_hangs_still_and_swings_with_its_period() -> None:
    """Valves closed: 20 s of a load of 300 kg; the oil gives way a little. T = 2 pi sqrt(L/g) (1 + a^2/16)."""
    true = plant('patu655_lift')
    numbers, controls, swing = true.machine.parameters.mean, np.zeros(1), np.radians(15)
    tilts = {}
    for angle in (0.0, swing):
        x = true.start(np.array([0.25]), 300.0, numbers, swing=angle)
        tilts[angle] = []
        for _ in range(2000):
            tilts[angle].append(true.machine.tilt(true.coordinates(x)))
            x, _ = true.advance(x, controls, 100, 300.0, numbers)
    assert max(tilts[0.0]) < 1e-6
    tilt = np.array(tilts[swing])
    assert tilt[0] == pytest.approx(swing) and tilt.max() <= swing * 1.001
    lows = np.flatnonzero((tilt[1:-1] < tilt[:-2]) & (tilt[1:-1] < tilt[2:])) + 1       # twice a period
    period = 2 * 0.01 * (lows[-1] - lows[0]) / (len(lows) - 1)
    assert period == pytest.approx(2 * np.pi * np.sqrt(LENGTH / 9.8066) * (1 + swing ** 2 / 16), rel=0.02)
    late = tilt[-200:].max() / swing
    assert 0.5 * np.exp(-PIN_FRICTION / 2 * 20) < late < np.exp(-PIN_FRICTION / 2 * 18)


def test_a_load_that_is_let_go_leaves_the_machine_in_balance() -> None:
    """At first only the load accelerates."""
    true = plant('patu655_lift')
    numbers = true.machine.parameters.mean
    x = true.start(np.array([0.25]), 300.0, numbers, swing=np.radians(30))
    _, zdd = true.advance(x, np.zeros(1), 1, 300.0, numbers)
    assert abs(zdd[0]) < 1e-3 and abs(zdd[1]) == pytest.approx(9.8066 / LENGTH * 0.5, rel=1e-3)


def test_uncertain_numbers_reach_the_plant_by_their_names() -> None:
    it = changed('patu655', {**HANGING, 'cylinders/lift/rod_mass': {'value': '9 kg', 'stddev': '1 kg'}})
    true = plant_of(it, 'vm')
    own, wanted = it.parameters.names, true.machine.parameters.names
    assert sorted(own) == sorted(wanted) and own != wanted
    numbers = it.parameters.mean + 0.01 * np.arange(len(own))
    shifted = SimulatedCrane(it, 100.0, plant=true, parameters=numbers).parameters
    assert dict(zip(wanted, shifted)) == dict(zip(own, numbers))


def test_the_state() -> None:
    """A swing in the plane of a crane, in two where a machine slews; none where no load hangs, and in the paper's
    observer, which takes the load as rigid at the hook."""
    assert machine('patu655_lift').swings == ('x',) and machine('zx200').swings == ('x', 'y')
    assert crane().swings == () and not any(item.startswith('swing') for item in state_names(crane(), True)[0])
    names = state_names(machine('zx200'), True)[0]
    assert names[-5:] == ('swing/x', 'swing/y', 'swing_rate/x', 'swing_rate/y', 'payload/mass')
    assert not any(item.startswith('swing') for item in state_names(machine('zx200'))[0])
    paper = HydraulicObserver(machine('patu655_lift'), kinematic(), 'vm')
    assert not any(item.startswith('swing') for item in paper.names)


def test_the_derivatives_of_the_swing() -> None:
    """By central differences with the loops closed again."""
    it = machine('patu655')
    model, rng, g = hydraulic_model(it, True), np.random.default_rng(4), 2
    function = ca.Function('f', [model.X, model.U, model.dependent, it.parameters.symbol], [model.f, model.A])
    X = rng.normal(scale=0.3, size=len(model.names))
    X[:g] = it.model.start.q[it.model.z]

    def at(X: np.ndarray) -> list[np.ndarray]:
        q = it.position(X[:g])
        return [item.full() for item in function(X, np.zeros(2), q[it.system.dependent], it.parameters.mean)]

    rows = [k for k, item in enumerate(model.names) if item.startswith('swing')]
    A, steps = at(X)[1][rows], 1e-5 * np.eye(len(X))
    slopes = np.column_stack([(at(X + step)[0] - at(X - step)[0])[rows, 0] / 2e-5 for step in steps])
    np.testing.assert_allclose(A, slopes, rtol=1e-6, atol=1e-7)
    assert A[0, rows[1]] == 1.0 and np.abs(A[1, :3 * g]).min() > 0


def test_what_is_not_known_of_the_swing_stays() -> None:
    """The noise keeps the spread of a linearised pendulum that is damped as the observer assumes: the Lyapunov
    equation holds."""
    it = machine('patu655_lift')
    frequency2 = 9.8066 / LENGTH
    A = np.array([[0.0, 1.0], [-frequency2, -2 / LASTING]])
    P = np.diag([SPREAD ** 2, spread_of_rate(it) ** 2])
    np.testing.assert_allclose(A @ P + P @ A.T + np.diag([0.0, swing_noise(it)]), 0.0, atol=1e-12)


@pytest.mark.parametrize('name, valve', [('patu655_lift', 'unknown'), ('patu655', 'orifice')])
def test_the_mass_of_a_load_that_swings(name: str, valve: str) -> None:
    """All cylinders at random, the load let go at 15 degrees."""
    true, load = machine(name), LOADS[name]
    frames = SimulatedCrane(true, load, 3, cycle_by_name('random', true, 3), plant=plant(name),
                            swing=np.radians(15)).run()[:1500]
    outputs = feed(Pipeline(machine(name, valve), segment=0.1), frames)
    last = outputs[-1].payload
    assert last.lower < load < last.upper and abs(last.mass - load) < 0.015 * load
    assert last.upper - last.lower < 0.08 * load
    known = [o.payload for o in outputs if np.isfinite(o.payload.mass)]
    assert all(p.lower < load < p.upper for p in known[len(known) // 2:])


def test_it_is_drawn_below_the_hook() -> None:
    it, z = machine('patu655_lift'), np.array([0.3])
    lines, rigid = it.outline(z), crane().outline(z)
    np.testing.assert_allclose(lines['payload/rod'], rigid['payload'] + [[0, 0, 0], [0, 0, -LENGTH]], atol=1e-12)
    np.testing.assert_allclose(lines['payload'], lines['payload/rod'][1:], atol=0)
    assert 'payload/rod' not in rigid


def test_machines_on_which_no_load_hangs() -> None:
    with pytest.raises(DescriptionError) as caught:
        assert changed('patu655_lift', {**HANGING, 'gravity': ['0 m/s^2'] * 3}).swings
    assert caught.value.key == 'gravity' and 'hanging' in caught.value.expected
