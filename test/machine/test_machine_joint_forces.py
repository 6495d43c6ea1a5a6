# SPDX-License-Identifier: Apache-2.0
"""Torques of joints that do the work of the cylinders, against levers measured in the drawing."""

import casadi as ca
import numpy as np
import pytest
from machine_frames import chained, frames_of, poses
from machine_variants import REMOVED, variant

from mbse_ros.machine.feed_forward import carrying_joints, joint_forces

MOVED = {'lut_simple_crane': ('rod_joint',), 'patu655': ('boom_joint', 'tilt_joint'), 'patu655_lift': ('boom_joint',),
         'patu655_measured': ('boom_joint',), 'zx200': ('boom_joint', 'arm_joint', 'bucket_joint'),
         'zx200_can': ('boom_joint', 'arm_joint', 'bucket_joint')}


def torques_of(machine):
    """Names, and a function of coordinates (n,) and forces (cylinders,)."""
    force = ca.SX.sym('F', len(machine.cylinders))
    names, torque = joint_forces(machine, force)
    found = ca.Function('torque', [machine.system.q, force, machine.parameters.symbol], [torque])
    return names, lambda q, f: found(q, f, machine.parameters.mean).full().ravel()


@pytest.mark.parametrize('name', MOVED)
def test_joints_do_the_work_of_the_pistons(name):
    machine = frames_of(name).machine
    names, torques = torques_of(machine)
    assert names == MOVED[name]
    rng, forces = np.random.default_rng(2), 1e5 * (1.0 + np.arange(len(machine.cylinders)))
    R = ca.Function('R', [machine.system.q, machine.parameters.symbol], [machine.reduced.R])
    joints = machine.system.indices(names)
    for q in poses(machine):
        velocity = R(q, machine.parameters.mean).full() @ rng.normal(size=len(machine.coordinates))
        assert torques(q, forces) @ velocity[joints] == pytest.approx(forces @ velocity[machine.pistons], rel=1e-9)


@pytest.mark.parametrize('name, cylinder, joint, pivot', [
    ('patu655_lift', 'lift', 'boom_joint', 'boom_pivot'), ('zx200', 'boom', 'boom_joint', 'boom.foot'),
    ('zx200_can', 'arm', 'arm_joint', 'arm.boom_pin')])
def test_a_torque_is_force_times_lever(name, cylinder, joint, pivot):
    frames = frames_of(name)
    machine, description = frames.machine, frames.machine.description
    names, torques = torques_of(machine)
    forces = 1e5 * (np.array(machine.cylinders) == cylinder)
    for q in poses(machine):
        found = chained(frames.transforms(q))

        def place(point):
            body, _, own = str(point).rpartition('.')
            local = description.bodies[body].points if body not in ('', 'ground') else description.ground
            origin, rotation = found[body or 'ground']
            return origin + rotation @ [item.value for item in local[own]]
        base, eye = place(description.cylinders[cylinder].base), place(description.cylinders[cylinder].rod_eye)
        axis = found[description.joints[joint].parent.body][1] @ description.joints[joint].axis
        push = 1e5 * (eye - base) / np.linalg.norm(eye - base)
        expected = axis @ np.cross(eye - place(pivot), push)
        assert torques(q, forces)[names.index(joint)] == pytest.approx(expected, rel=1e-9)


def test_without_a_load_no_joint_carries_it():
    assert carrying_joints(variant('patu655_lift', payload=REMOVED)) == ()
    assert carrying_joints(frames_of('zx200').machine) == ('swing_joint', 'boom_joint', 'arm_joint', 'bucket_joint')
