# SPDX-License-Identifier: Apache-2.0
"""A load of extent: `payload.gyration_radius` against a hand balance, and against masses that are spread out."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from core_support import crane
from machine_variants import changed

from mbse_ros.dynamics.forces.inertial_forces import inertial_forces
from mbse_ros.machine import Machine
from mbse_ros.mechanism.assembly import build_mechanism

pytestmark = pytest.mark.usefixtures('vm')

MASS, RADIUS = 400.0, 0.6


def forces(machine: Machine, q: np.ndarray, mass: float) -> list[np.ndarray]:
    """``M qdd - Q`` (n,) at drawn rates, by the mass matrix and by virtual power."""
    system, rng = machine.system, np.random.default_rng(3)
    qd, qdd = rng.normal(size=(2, system.n))
    symbol = ca.SX.sym('qdd', system.n)
    function = ca.Function('forces', [system.q, system.qd, symbol, machine.payload, machine.parameters.symbol],
                           [system.M @ symbol - system.Q, inertial_forces(system, symbol)])
    return [item.full().ravel() for item in function(q, qd, qdd, mass, machine.parameters.mean)]


def test_by_hand() -> None:
    """m k^2 by the angular acceleration of the boom, which follows from the cylinder by the law of cosines."""
    load = changed('patu655_lift', {'payload/gyration_radius': f'{RADIUS} m'})
    z = np.array([0.25])
    mass = [ca.Function('M', [m.system.q, m.payload, m.parameters.symbol], [m.reduced.Mbar])(
        m.position(z), MASS, m.parameters.mean).full() for m in (load, crane())]
    a, b, c = np.hypot(0.26, 1.039986751), np.hypot(0.3025, 0.105), 0.82 + z[0]
    lever = a * b * np.sqrt(1 - ((a ** 2 + b ** 2 - c ** 2) / (2 * a * b)) ** 2) / c      # m per rad, dc/dtheta
    np.testing.assert_allclose(mass[0] - mass[1], MASS * RADIUS ** 2 / lever ** 2, rtol=1e-9)


@pytest.mark.parametrize('name, body, center, axes', [
    ('patu655', 'extension', (2.45, 0.0, 0.05), [(1, 0, 0)]),
    ('patu655', 'extension', (2.45, 0.0, 0.05), [(0.6, 0, 0.8)]),
    ('zx200', 'bucket', (0.75, 0.0, -0.1), np.eye(3)),
])
def test_as_masses_on_both_sides_of_the_centre(name: str, body: str, center: tuple[float, float, float],
                                               axes: list[tuple[float, float, float]]) -> None:
    """Two halves at +-k where all bodies turn about one axis; where they swing too, six at +-k sqrt(3/2)."""
    def loaded(place: np.ndarray, **more: str) -> Machine:
        return changed(name, {'payload': {'body': body, 'center': [f'{float(item)!r} m' for item in place],
                                          'limits': ['0 kg', '1000 kg'], **more}})
    whole = loaded(np.array(center), gyration_radius=f'{RADIUS} m')
    reach = RADIUS * (1.0 if len(axes) == 1 else np.sqrt(1.5))
    parts = [loaded(np.array(center) + sign * reach * np.array(axis)) for axis in axes for sign in (-1, 1)]
    q = whole.model.start.q
    empty = forces(parts[0], q, 0.0)
    spread = [sum(forces(part, q, MASS / len(parts))[k] - empty[k] for part in parts) for k in (0, 1)]
    point = forces(loaded(np.array(center)), q, MASS)
    for k in (0, 1):
        found = forces(whole, q, MASS)[k]
        np.testing.assert_allclose(found, empty[k] + spread[k], rtol=1e-9, atol=1e-7 * np.abs(found).max())
        assert np.abs(found - point[k]).max() > 1e-5 * np.abs(found).max()


def test_in_all_coordinates() -> None:
    """The boom's angular acceleration under a load of extent is the same in natural and reference-point coordinates."""
    description = changed('patu655_lift', {'payload/gyration_radius': f'{RADIUS} m'}).description
    found = []
    for coordinates in ('relative', 'reference_point'):
        system = build_mechanism(description, coordinates, ())
        energy = ca.dot(system.qd, system.M @ system.qd) / 2
        slope = ca.jacobian(ca.jacobian(energy, system.values.symbol[system.values.names.index('payload.mass')]),
                            system.qd)
        spin = system.frames['boom'].omega
        value = ca.substitute(slope, system.values.symbol, system.values.mean)
        place = system.frames['boom'].at(ca.DM([2.89, 0, 0.0246]))
        point = ca.jacobian(ca.sumsqr(ca.jtimes(place, system.q, system.qd)) / 2, system.qd)
        rest = ca.Function('rest', [system.q, system.qd],
                           [value - point - RADIUS ** 2 * ca.jacobian(ca.sumsqr(spin) / 2, system.qd)])
        found.append(np.abs(rest(system.start, np.arange(1.0, 1.0 + system.n)).full()).max())
    np.testing.assert_allclose(found, 0.0, atol=1e-9)


def test_its_deviation_is_in_the_interval() -> None:
    machine = changed('patu655_lift', {'payload/gyration_radius': {'value': '0.5 m', 'stddev': '0.1 m'}})
    names, stddev = machine.parameters.names, machine.parameters.stddev
    assert stddev[names.index('payload.gyration_radius')] == 0.1
    assert 'payload.gyration_radius' not in crane().parameters.names
