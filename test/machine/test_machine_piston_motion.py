# SPDX-License-Identifier: Apache-2.0
"""Motions of joints as motions of the pistons: the way there and back."""

from __future__ import annotations

import numpy as np
import pytest

from mbse_ros.errors import MbseError, SettingError
from mbse_ros.machine import load_machine
from mbse_ros.machine.piston_motion import PistonMotion, moved_joints

STEP = 1e-4


@pytest.mark.parametrize('name', ('patu655_lift', 'zx200'))
def test_the_joints_of_a_motion_of_pistons_give_that_motion(name: str) -> None:
    """Angles of a polynomial of the pistons, with derivatives by differences."""
    machine = load_machine(name)
    joints, by_cylinders = moved_joints(machine), PistonMotion(machine, machine.cylinders)
    by_joints = PistonMotion(machine, joints)
    stroke, rate = machine.stroke, np.array([0.1, -0.2, 0.15])[:len(machine.cylinders)]
    place = stroke[:, 0] + 0.4 * (stroke[:, 1] - stroke[:, 0])
    z = machine.model.start.q[machine.model.z]

    def at(t: float) -> np.ndarray:
        """All coordinates."""
        z[machine.actuated] = place + rate * t + 0.5 * rate * t * t
        return machine.position(z, machine.model.start.q)

    angles = [at(t)[by_joints.places] for t in (-STEP, 0.0, STEP)]
    found = by_joints(angles[1], (angles[2] - angles[0]) / (2 * STEP),
                      (angles[2] - 2 * angles[1] + angles[0]) / STEP ** 2, machine.model.start.q)
    direct = by_cylinders(place, rate, rate, machine.model.start.q)
    for one, other, tolerance in zip(found, direct, (1e-8, 1e-6, 1e-5, 1e-8, 1e-6)):
        np.testing.assert_allclose(one, other, atol=tolerance)
    np.testing.assert_allclose(direct.positions, place, atol=1e-9)
    np.testing.assert_allclose(direct.speeds, rate, atol=1e-9)
    position, velocity = by_joints.read(found.q, found.zd)
    np.testing.assert_allclose(position, angles[1], atol=1e-8)
    np.testing.assert_allclose(velocity, (angles[2] - angles[0]) / (2 * STEP), atol=1e-6)


def test_cylinders_that_are_not_named_rest_where_they_are() -> None:
    machine = load_machine('zx200')
    q = machine.position(np.array([0.0, 0.5, 0.5, 0.5]))
    motion = PistonMotion(machine, ['arm'])
    found = motion(np.array([0.6]), np.array([0.1]), np.array([0.0]), q)
    np.testing.assert_allclose(found.positions, [0.5, 0.6, 0.5], atol=1e-9)
    np.testing.assert_allclose(found.speeds, [0.0, 0.1, 0.0], atol=1e-9)
    assert motion.moving.tolist() == [False, True, False]


@pytest.mark.parametrize('names', ([], ['boom', 'x'], ['boom_joint'], ['boom', 'arm_joint']))
def test_other_names_are_refused(names: list[str]) -> None:
    with pytest.raises(SettingError, match='boom, arm, bucket; or joints, all of'):
        PistonMotion(load_machine('zx200'), names)


def test_joints_out_of_reach_are_refused() -> None:
    machine = load_machine('patu655_lift')
    with pytest.raises(MbseError):
        PistonMotion(machine, moved_joints(machine))(np.array([3.0]), np.zeros(1), np.zeros(1), machine.model.start.q)
