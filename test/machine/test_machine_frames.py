# SPDX-License-Identifier: Apache-2.0
"""Frames of bodies and load against the model's points, and against the joints walked by hand."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from machine_frames import EXACT, HUNG, LEVEL_SENSORS, MACHINES, PITCH, ROLL, chained, frames_of, poses
from machine_variants import REMOVED, changed, variant
from transforms3d.axangles import axangle2mat, mat2axangle
from transforms3d.euler import euler2mat

from mbse_ros.description.model import GROUND
from mbse_ros.errors import DescriptionError
from mbse_ros.machine.frames import LOAD, MachineFrames, chain, joint_tree

EXCAVATORS = ['zx200', 'zx200_can']


def numbers(vector):
    return np.array([item.value for item in vector])


@pytest.mark.parametrize('name', MACHINES)
def test_points_through_the_frames_are_those_of_the_model(name):
    frames = frames_of(name)
    machine, system = frames.machine, frames.machine.model.system
    points = ca.Function('points', [system.q, system.values.symbol], [ca.horzcat(*system.points.values()).T])
    for q in poses(machine):
        found = chained(frames.transforms(q))
        expected = dict(zip(system.points, points(q, machine.model.parameters).full()))
        assert set(found) == {GROUND, *machine.description.bodies}
        for body, item in machine.description.bodies.items():
            origin, rotation = found[body]
            for point, local in item.points.items():
                np.testing.assert_allclose(origin + rotation @ numbers(local), expected[f'{body}.{point}'], rtol=0,
                                           atol=EXACT)


@pytest.mark.parametrize('name', MACHINES)
def test_frames_are_those_of_the_joints_walked_by_hand(name):
    """Rotation of the child in the parent: Rot(axis, angle) R(rpy), its pin on that of the parent."""
    frames = frames_of(name)
    machine, description = frames.machine, frames.machine.description
    for q in poses(machine):
        walked, angles = {GROUND: (np.zeros(3), np.eye(3))}, dict(zip(machine.model.names, q))
        for joint in description.joints.values():
            parent, child = joint.parent, joint.child
            if child.body in walked:
                continue                                        # closes a loop
            assert joint.type in ('revolute', 'fixed')
            origin, rotation = walked[parent.body]
            fixed = euler2mat(*numbers(joint.rpy), 'sxyz') if joint.rpy else np.eye(3)
            turn = axangle2mat(joint.axis, angles[joint.name]) if joint.type == 'revolute' else np.eye(3)
            local = description.ground if parent.body == GROUND else description.bodies[parent.body].points
            turned = rotation @ turn @ fixed
            pin = origin + rotation @ numbers(local[parent.point])
            walked[child.body] = pin - turned @ numbers(description.bodies[child.body].points[child.point]), turned
        found = chained(frames.transforms(q))
        for body, (origin, rotation) in walked.items():
            np.testing.assert_allclose(found[body][0], origin, rtol=0, atol=EXACT)
            np.testing.assert_allclose(found[body][1], rotation, rtol=0, atol=EXACT)


@pytest.mark.parametrize('name', MACHINES)
def test_quaternions_are_of_unit_length_with_one_sign(name):
    for q in poses(frames_of(name).machine):
        for item in frames_of(name).transforms(q):
            assert np.linalg.norm(item.quaternion) == pytest.approx(1.0, abs=1e-12) and item.quaternion[0] >= 0.0


@pytest.mark.parametrize('name', EXCAVATORS)
def test_the_tree_is_that_of_the_robot_model(name):
    tree = joint_tree(frames_of(name).machine.description)
    assert tree == {'upper': (GROUND, 'swing_joint'), 'boom': ('upper', 'boom_joint'), 'arm': ('boom', 'arm_joint'),
                    'bucket': ('arm', 'bucket_joint'), 'rocker': ('arm', 'rocker_joint'),
                    'link': ('rocker', 'link_joint')}
    assert chain(frames_of(name).machine.description, 'link') == (
        'swing_joint', 'boom_joint', 'arm_joint', 'rocker_joint', 'link_joint')


def test_what_is_nearer_to_the_ground_is_the_parent():
    description = frames_of('zx200').machine.description
    joint = description.joints['arm_joint']
    turned = {**description.joints, 'arm_joint': replace(joint, parent=joint.child, child=joint.parent)}
    assert joint_tree(replace(description, joints=turned)) == joint_tree(description)


def test_a_body_without_joints_hangs_on_the_ground():
    description = frames_of('zx200').machine.description
    loose = {name: joint for name, joint in description.joints.items() if name not in ('rocker_joint', 'linkage_joint')}
    tree = joint_tree(replace(description, joints=loose))
    assert tree['rocker'] == (GROUND, '') and tree['link'] == ('rocker', 'link_joint')


@pytest.mark.parametrize('name', [*MACHINES, HUNG])
def test_the_load_is_where_it_is_drawn(name):
    frames = frames_of(name)
    for q in poses(frames.machine):
        load = frames.load(q)
        place, = frames.machine.outline_at(q)['payload']
        np.testing.assert_allclose(load.place, place, rtol=0, atol=EXACT)
        bodies = [*frames.transforms(q), frames.load_transform(load, q)]
        alone = chained([frames.load_transform(load, q, GROUND)])[LOAD]
        for one, other in zip(chained(bodies)[LOAD], alone):
            np.testing.assert_allclose(one, other, rtol=0, atol=EXACT)
        np.testing.assert_allclose(alone[0], place, rtol=0, atol=EXACT)
        np.testing.assert_allclose(alone[1], load.rotation, rtol=0, atol=EXACT)
        body = chained(bodies)[frames.machine.description.payload.body][1]
        np.testing.assert_allclose(load.rotation, np.eye(3) if name == HUNG else body, rtol=0, atol=EXACT)


def test_gravity_follows_the_base_and_the_load():
    """The base is rolled about x, then pitched about y; level it is straight down."""
    machine = changed('zx200', LEVEL_SENSORS)
    frames, gravity = MachineFrames(machine), np.array([0.0, 0.0, -9.81])
    for q in poses(machine):
        load = frames.load(q, {'roll': ROLL, 'pitch': PITCH})
        base = euler2mat(ROLL, PITCH, 0.0, 'sxyz')
        np.testing.assert_allclose(base @ load.rotation @ load.gravity, gravity, rtol=0, atol=EXACT)
        level = frames.load(q)
        np.testing.assert_allclose(level.rotation @ level.gravity, gravity, rtol=0, atol=EXACT)


@pytest.mark.parametrize('name', [*EXCAVATORS, 'patu655', HUNG])
def test_derivatives_of_place_and_attitude(name):
    frames, step = frames_of(name), 1e-5
    machine, g = frames.machine, len(frames.machine.coordinates)
    swing = 0.2 * np.ones(len(machine.swings))
    for q in poses(machine, 2):
        jacobian = frames.load(q, swing=swing).jacobian
        assert jacobian.shape == (6, g + len(swing))
        for k in range(g + len(swing)):
            shift = step * (np.arange(g + len(swing)) == k)
            low, high = (frames.load(machine.position(q[machine.model.z] + sign * shift[:g], q),
                                     swing=swing + sign * shift[g:]) for sign in (-1, 1))
            axis, angle = mat2axangle(high.rotation @ low.rotation.T)
            expected = np.concatenate([high.place - low.place, np.array(axis) * angle]) / (2 * step)
            np.testing.assert_allclose(jacobian[:, k], expected, rtol=1e-5, atol=1e-5)


def test_a_load_that_swings_hangs_at_its_length():
    frames = frames_of(HUNG)
    q, hook = frames.machine.model.start.q, frames.machine.outline_at(frames.machine.model.start.q)['payload/rod'][0]
    still, swung = (frames.load(q, swing=np.array([u])).place - hook for u in (0.0, 0.3))
    np.testing.assert_allclose(still, [0.0, 0.0, -2.0], atol=EXACT)
    np.testing.assert_allclose(swung, [0.6, 0.0, -2.0 * np.sqrt(1.0 - 0.09)], atol=EXACT)


def test_without_a_load_there_are_the_bodies_alone():
    frames = MachineFrames(variant('patu655_lift', payload=REMOVED))
    q = frames.machine.model.start.q
    assert frames.load_parent is None and len(frames.transforms(q)) == 1
    with pytest.raises(DescriptionError, match='payload'):
        frames.load(q)
