# SPDX-License-Identifier: Apache-2.0
"""Forces by virtual power against ``M qdd - Q``, in every kind of coordinates; loops that stay apart from a swing."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from core_support import two_cylinders
from machine_variants import variant
from spatial_samples import ball_and_cross, flyer, spatial_four_bar

from mbse_ros.description.load import load_mechanism
from mbse_ros.dynamics.forces.inertial_forces import inertial_forces
from mbse_ros.machine import load_machine
from mbse_ros.mechanism.assembly import MechanismSystem, build_mechanism

MACHINES = ('lut_simple_crane', 'patu655_lift', 'patu655_measured', 'patu655', 'zx200', 'zx200_can')
MECHANISMS = [('four_bar', kind) for kind in ('natural', 'reference_point', 'relative')] + [
    (name, kind) for name in ('excavator_arm', 'slider_crank') for kind in ('natural', 'relative')] + [
    (name, kind) for name in ('spatial_crane', 'spatial_four_bar') for kind in ('reference_point', 'relative')]


def check(system: MechanismSystem, seed: int = 0) -> None:
    """At random coordinates about the start, whether the loops close or not."""
    qdd = ca.SX.sym('qdd', system.n)
    inputs = [system.q, system.qd, qdd, system.u, system.t, system.values.symbol]
    f = ca.Function('f', inputs, [inertial_forces(system, qdd), system.M @ qdd - system.Q, system.M @ qdd],
                    {'cse': True})
    rng = np.random.default_rng(seed)
    for _ in range(3):
        q, qd, a = system.start + rng.uniform(-0.4, 0.4, system.n), *rng.normal(size=(2, system.n))
        load = 250.0 * np.array([name == 'payload.mass' for name in system.values.names])
        found, expected, inertia = (item.full() for item in f(q, qd, a, rng.normal(size=system.u.numel()), 0.3,
                                                              system.values.mean + load))
        scale = np.abs(expected).max() + np.abs(inertia).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * scale)
        assert np.abs(inertia).max() > 1e-3 * scale


@pytest.mark.parametrize('name', MACHINES)
def test_machines(name: str) -> None:
    """With a payload, and with barrels and rods where they have some."""
    check(load_machine(name).model.system)


def test_a_machine_with_cylinder_masses_on_an_inclined_base() -> None:
    masses = {f'cylinders__{name}__{part}': '30 kg' for name in ('lift', 'tilt')
              for part in ('barrel_mass', 'rod_mass')}
    machine = variant('patu655', **masses, base={'roll': '10 deg', 'pitch': {'value': '-5 deg', 'stddev': '1 deg'}})
    check(machine.model.system)
    check(two_cylinders().model.system)


@pytest.mark.parametrize('name, kind', MECHANISMS)
def test_mechanisms(name: str, kind: str) -> None:
    """Springs, dampers, inputs; natural coordinates keep their constant matrix."""
    check(build_mechanism(load_mechanism(name), kind))


@pytest.mark.parametrize('kind', ['reference_point', 'relative'])
@pytest.mark.parametrize('make', [ball_and_cross, flyer, spatial_four_bar], ids=lambda make: make.__name__)
def test_bodies_that_turn_about_all_axes(make, kind: str) -> None:
    """Full tensors, quaternions, gyroscopic moments."""
    check(build_mechanism(make(), kind), 1)


@pytest.mark.parametrize('name', ['zx200', 'zx200_can'])
def test_loops_do_not_know_the_swing(name: str) -> None:
    """Turned by 90 degrees a loop of the boom's plane is as regular as before: the same levers, masses and pivots."""
    machine = load_machine(name)
    r, partition = machine.reduced, machine.model.partition()
    f = ca.Function('f', [machine.system.q, r.zd, machine.payload, machine.parameters.symbol], [r.R, r.Mbar, r.Qbar],
                    {'cse': True})
    z, zd = machine.model.start.q[machine.model.z].copy(), np.array([0.3, 0.1, -0.2, 0.15])
    first, condition = None, partition.condition(machine.model.start.q)
    for z[0] in (0.0, 0.5 * np.pi, np.pi, -2.0):
        q = machine.position(z)
        found = [item.full() for item in f(q, zd, 500.0, machine.parameters.mean)]
        first = first or found
        for one, two in zip(first, found):
            np.testing.assert_allclose(two, one, rtol=0, atol=1e-11 * np.abs(one).max())
        assert partition.condition(q) == pytest.approx(condition, rel=1e-12) and condition < 50.0
        assert np.abs(machine.model.residual(q)[0]).max() < 1e-12
