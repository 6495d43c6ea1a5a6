# SPDX-License-Identifier: Apache-2.0
"""The margin to tipping over against sums of weights by hand, and against momenta of moving bodies."""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from machine_frames import LEVEL_SENSORS, MACHINES, PITCH, ROLL, SUPPORT, poses
from machine_variants import changed
from transforms3d.axangles import mat2axangle
from transforms3d.euler import euler2mat

from mbse_ros.errors import DescriptionError, SettingError
from mbse_ros.machine import load_machine
from mbse_ros.machine.tip_over import TipOverMargin

LOAD = 900.0


@cache
def margin_of(name, inclined=False):
    return TipOverMargin(changed(name, {'base/support': SUPPORT, **(LEVEL_SENSORS if inclined else {}),
                                        **({'base': {'support': SUPPORT}} if inclined else {})}))


@cache
def parts_of(margin):
    """Function of coordinates and all numbers: masses (k,), their places (3, k), rotations and tensors of bodies."""
    system = margin.machine.system
    bodies = [system.frames[name].rotation for name in margin.machine.description.bodies]
    return ca.Function('parts', [system.q, system.values.symbol], [
        ca.vertcat(*(mass for mass, _ in system.masses)), ca.horzcat(*(place for _, place in system.masses)),
        *bodies, *(tensor for tensor, _ in system.spins[:len(bodies)])])


def masses_of(margin, q, load=LOAD, **base):
    """Masses (k,), the support's first, and places (k, 3) in the machine's frame."""
    parameters = margin.machine.parameters
    states = {'payload.mass': load, **{f'base.{axis}': angle for axis, angle in base.items()}}
    mass, place = (np.array(item) for item in parts_of(margin)(q, parameters.numbers(parameters.mean, states))[:2])
    return np.append(5000.0, mass), np.vstack([[0.2, 0.0, -0.5], place.T])


@pytest.mark.parametrize('name', MACHINES)
def test_level_and_at_rest_it_is_where_the_weight_is(name):
    margin = margin_of(name)
    for q in poses(margin.machine):
        mass, place = masses_of(margin, q)
        center = mass @ place / mass.sum()
        found = margin(q, (LOAD,))
        np.testing.assert_allclose(found.center_of_mass, center, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.zero_moment_point, [*center[:2], -1.2], rtol=0, atol=1e-9)
        assert found.margin == pytest.approx(min(2.0 - abs(center[0]), 1.5 - abs(center[1])), abs=1e-9)
        assert found.mass == LOAD


EDGES = [([1.0, 0.0], 2.0), ([-1.0, 0.0], 2.0), ([0.0, 1.0], 1.5), ([0.0, -1.0], 1.5)]     # outward, and how far


def test_moments_about_the_edges():
    """Those of a load table: what lies behind an edge keeps the machine, what lies before it overturns."""
    margin = margin_of('zx200')
    for q in poses(margin.machine):
        mass, place = masses_of(margin, q)
        arms = np.array([far - place[:, :2] @ outward for outward, far in EDGES])
        found = margin(q, (LOAD,))
        k = int(np.argmin(arms @ mass))
        np.testing.assert_allclose(found.edge @ EDGES[k][0], EDGES[k][1])
        kept, over = ((mass * arms[k])[sign * arms[k] > 0].sum() for sign in (1, -1))
        assert found.ratio == pytest.approx(kept / -over, rel=1e-9)
        tipping = min(LOAD + mass @ arm / -arm[-1] for arm in arms if arm[-1] < 0.0)
        assert found.tipping_mass == pytest.approx(tipping, rel=1e-9)
        assert margin(q, (tipping,)).margin == pytest.approx(0.0, abs=1e-9)
        assert margin(q, (tipping,)).ratio == pytest.approx(1.0, rel=1e-9)
        assert margin(q, (1.1 * tipping,)).margin < 0.0 and margin(q, (1.1 * tipping,)).ratio < 1.0


def test_on_a_slope_it_is_below_the_centre_of_mass_along_gravity():
    margin = margin_of('zx200', inclined=True)
    down = euler2mat(ROLL, PITCH, 0.0, 'sxyz').T @ [0.0, 0.0, -1.0]
    for q in poses(margin.machine):
        mass, place = masses_of(margin, q, roll=ROLL, pitch=PITCH)
        center = mass @ place / mass.sum()
        expected = center + down * (-1.2 - center[2]) / down[2]
        found = margin(q, (LOAD,), base={'roll': ROLL, 'pitch': PITCH})
        np.testing.assert_allclose(found.zero_moment_point, expected, rtol=0, atol=1e-9)
        edges = np.array([2.0 - expected[0], 2.0 + expected[0], 1.5 - expected[1], 1.5 + expected[1]])
        assert found.margin == pytest.approx(edges.min(), abs=1e-9)
    over = margin(q, (LOAD,), base={'roll': 2.0})       # the machine lies on its side
    assert over.margin == -np.inf and np.isnan(over.zero_moment_point[:2]).all()


@pytest.mark.parametrize('name', ['zx200', 'patu655'])
def test_in_motion_it_is_where_the_momenta_change(name):
    """Second differences of places and first differences of angular momenta along z + zd t + zdd t^2 / 2."""
    margin, rng, h = margin_of(name), np.random.default_rng(5), 2e-4
    machine = margin.machine
    values = machine.parameters.numbers(machine.parameters.mean, {'payload.mass': LOAD})
    count, gravity = len(machine.description.bodies), np.array([v.value for v in machine.description.gravity])
    for q in poses(machine, 2):
        zd, zdd = 0.5 * rng.normal(size=(2, len(machine.coordinates)))
        z, when = q[machine.model.z], h * np.arange(-2, 3)
        found = [[np.array(item) for item in parts_of(margin)(
            machine.position(z + zd * t + zdd * t * t / 2, q), values)] for t in when]
        mass, places = found[2][0].ravel(), np.array([item[1].T for item in found])
        acceleration = (places[3] - 2 * places[2] + places[1]) / h ** 2
        force = mass[:, None] * (gravity - acceleration)
        origin = np.array([0.0, 0.0, -1.2])
        moment = np.cross(places[2] - origin, force).sum(axis=0)
        for k in range(count):
            turns, tensor = [item[2 + k] for item in found], found[2][2 + count + k]

            def spin(a, b, middle):
                axis, angle = mat2axangle(turns[b] @ turns[a].T)
                return turns[middle] @ tensor @ turns[middle].T @ (np.array(axis) * angle / (2 * h))
            moment = moment - (spin(2, 4, 3) - spin(0, 2, 1)) / (2 * h)
        force = force.sum(axis=0) + 5000.0 * gravity
        moment = moment + np.cross([0.2, 0.0, 0.7], 5000.0 * gravity)
        expected = [-moment[1] / force[2], moment[0] / force[2], -1.2]
        got, still = margin(q, (LOAD,), zd, zdd), margin(q, (LOAD,))
        np.testing.assert_allclose(got.zero_moment_point, expected, rtol=0, atol=2e-5)
        assert np.linalg.norm(got.zero_moment_point - still.zero_moment_point) > 1e-3


def test_the_worst_of_the_masses_counts():
    """In front of the edge the heaviest, behind it the lightest."""
    far, q = margin_of('zx200'), margin_of('zx200').machine.model.start.q
    assert far(q, (800.0, 1000.0)).mass == 1000.0
    before, round_it = [[8, 9], [20, 9], [20, -9], [8, -9]], [[-50, -50], [50, -50], [0, 80]]
    near, wide = (TipOverMargin(changed('zx200', {'base/support': {**SUPPORT, 'corners': corners}}))
                  for corners in (before, round_it))
    assert near(q, (800.0, 1000.0)).mass == 800.0 and near(q, (LOAD,)).margin < 0.0
    assert wide(q, (LOAD,)).ratio == wide(q, (LOAD,)).tipping_mass == np.inf


def test_what_is_not_known_is_refused():
    with pytest.raises(DescriptionError, match='base.support: got None'):
        TipOverMargin(load_machine('zx200'))
    margin = margin_of('zx200')
    for mass in (np.nan, np.inf, -1.0):
        with pytest.raises(SettingError, match='^masses: got'):
            margin(margin.machine.model.start.q, (100.0, mass))
