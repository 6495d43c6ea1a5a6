# SPDX-License-Identifier: Apache-2.0
"""Torques and forces of the feed-forward against energies, another formulation, and a balance by hand."""

import numpy as np
import pytest
from machine_energy import model_of
from machine_frames import HUNG, MACHINES, PITCH, ROLL, chained, poses
from machine_variants import REMOVED, variant
from transforms3d.euler import euler2mat

from mbse_ros.errors import SettingError, SingularConfigurationError
from mbse_ros.machine.feed_forward import FeedForward
from mbse_ros.machine.frames import MachineFrames

MASS, STEP = 700.0, 1e-5


def numbers(machine, mass=MASS, **base):
    states = {'payload.mass': mass, **{f'base.{axis}': angle for axis, angle in base.items()}}
    return machine.parameters.numbers(machine.parameters.mean, states)


@pytest.mark.parametrize('name', [*MACHINES, HUNG, 'inclined'])
def test_what_holds_a_machine_does_the_work_that_lifts_it(name):
    """Differences of the potential energy along the loops, without any derivative."""
    machine, forward, energy = model_of(name)
    base = {'roll': ROLL, 'pitch': PITCH} if name == 'inclined' else {}
    values, zero = numbers(machine, **base), np.zeros(len(machine.coordinates))
    joints = machine.system.indices(forward.joints)
    for q in poses(machine):
        found = forward(q, MASS, base=base)
        for k in range(len(zero)):
            shift = STEP * (np.arange(len(zero)) == k)
            low, high = (machine.position(q[machine.model.z] + sign * shift, q) for sign in (-1, 1))
            lifted = float(energy(high, zero, values)[1]) - float(energy(low, zero, values)[1])
            moved = high - low
            scale = 1e-6 * abs(float(energy(q, zero, values)[1])) * STEP + 1e-9 * np.abs(found.torques).max() * STEP
            assert found.torques @ moved[joints] == pytest.approx(lifted, rel=1e-6, abs=scale)
            if k in machine.actuated:
                assert found.forces @ moved[machine.pistons] == pytest.approx(lifted, rel=1e-6, abs=scale)


@pytest.mark.parametrize('name', MACHINES)
def test_what_moves_a_machine_is_the_power_of_its_energy(name):
    """Energy a moment before and after, in a motion z + zd t + zdd t^2 / 2."""
    machine, forward, energy = model_of(name)
    rng, values, joints = np.random.default_rng(7), numbers(machine), machine.system.indices(forward.joints)
    for q in poses(machine, 3):
        zd, zdd = 0.3 * rng.normal(size=(2, len(machine.coordinates)))
        found, z = forward(q, MASS, zd=zd, zdd=zdd), q[machine.model.z]
        before, after = (sum(map(float, energy(machine.position(z + zd * t + zdd * t * t / 2, q), zd + zdd * t,
                                               values)[:2])) for t in (-1e-4, 1e-4))
        rates = np.array(energy(q, zd, values)[4] @ zd).ravel()
        power = found.torques @ rates[joints]
        assert power == pytest.approx((after - before) / 2e-4, rel=1e-4, abs=0.01)
        unmoved = [k for k in range(len(z)) if k not in machine.actuated]
        motors = sum(found.torques[forward.joints.index(machine.coordinates[k])] * zd[k] for k in unmoved)
        assert found.forces @ rates[machine.pistons] + motors == pytest.approx(power, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize('name', MACHINES)
def test_the_mass_matrix_asks_for_the_same(name):
    machine, forward, energy = model_of(name)
    rng, joints = np.random.default_rng(8), machine.system.indices(forward.joints)
    for q in poses(machine):
        zd, zdd = rng.normal(size=(2, len(machine.coordinates)))
        _, _, Mbar, Qbar, R = (np.array(item) for item in energy(q, zd, numbers(machine)))
        along = R[joints].T @ forward(q, MASS, zd=zd, zdd=zdd).torques
        np.testing.assert_allclose(along, Mbar @ zdd - Qbar.ravel(), rtol=1e-9, atol=1e-6)


def test_a_kilogram_costs_its_lever():
    """Of the boom's pivot, by the drawing: weight times distance over the lever of the cylinder."""
    machine, forward, _ = model_of('patu655_lift')
    for q in poses(machine):
        lines = machine.outline_at(q)
        base, _, eye = lines['cylinder/lift']
        along = (eye - base) / np.linalg.norm(eye - base)
        lever = np.cross(eye, along)[1]             # about the pivot, the origin
        heavy, light = forward(q, 500.0, 3.0), forward(q, 400.0)
        expected = np.cross(lines['payload'][0], [0.0, 0.0, 9.8066])[1] / lever
        assert (heavy.forces - light.forces)[0] / 100.0 == pytest.approx(expected, rel=1e-9)
        assert heavy.forces_stddev[0] == pytest.approx(3.0 * abs(expected), rel=1e-9)
        assert light.forces_stddev[0] == light.torques_stddev[0] == 0.0
        area = np.pi / 4 * machine.description.cylinders['lift'].bore.value ** 2
        assert heavy.load_pressures[0] == pytest.approx(heavy.forces[0] / area, rel=1e-9)
        assert heavy.load_pressures_stddev[0] == pytest.approx(heavy.forces_stddev[0] / area, rel=1e-9)


def test_the_load_pulls_at_a_joint_by_its_lever():
    """Of the boom of an excavator on an inclined base: the joint's axis times (arm x weight)."""
    machine, forward, _ = model_of('inclined')
    frames, base = MachineFrames(machine), {'roll': ROLL, 'pitch': PITCH}
    down = euler2mat(ROLL, PITCH, 0.0, 'sxyz').T @ [0.0, 0.0, -9.81]
    for q in poses(machine):
        found = chained(frames.transforms(q))
        torque = found['upper'][1][:, 1] @ np.cross(frames.load(q).place - found['boom'][0], MASS * down)
        one, other = (forward(q, mass, base=base).torques for mass in (MASS, 0.0))
        assert (one - other)[forward.joints.index('boom_joint')] == pytest.approx(-torque, rel=1e-9)


def test_machines_without_a_load_and_masses_that_nobody_knows():
    machine = variant('patu655_lift', payload=REMOVED)
    forward, loaded = FeedForward(machine), model_of('patu655_lift')
    q = machine.model.start.q
    assert forward.joints == machine.coordinates
    assert forward(q).forces == pytest.approx(loaded[1](q).forces, rel=1e-12)
    for name, given in (('mass', (np.nan,)), ('mass', (-1.0,)), ('mass', (np.inf,)), ('stddev', (1.0, np.nan))):
        with pytest.raises(SettingError, match=f'^{name}: got'):
            forward(q, *given)
    with pytest.raises(SingularConfigurationError):
        forward(np.full(len(q), np.nan))
