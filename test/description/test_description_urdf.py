# SPDX-License-Identifier: Apache-2.0
"""URDF files: robots read right, and every fault reported with its place."""

import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from mbse_ros.description.basics import uncertain
from mbse_ros.description.load import parse_mechanism
from mbse_ros.description.model import GROUND, PointRef
from mbse_ros.description.robots.urdf import entry_name, read_urdf
from mbse_ros.errors import DescriptionError

ARM = """<?xml version="1.0"?>
<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <material name="grey"><color rgba="0.5 0.5 0.5 1"/></material>
  <link name="base_link"><inertial><mass value="9"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="upper"><inertial><origin xyz="0.1 0.2 0.3" rpy="0.4 -0.5 0.6"/><mass value="3"/>
    <inertia ixx="1" iyy="1.5" izz="2" ixy="0.1" ixz="-0.2" iyz="0.3"/></inertial>
    <visual><geometry><box size="1 1 1"/></geometry></visual></link>
  <link name="fore-arm"><inertial><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="slide"><inertial><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tool0"/>
  <joint name="elbow" type="continuous"><origin xyz="1 0 0.2" rpy="0.3 0.2 -0.1"/><axis xyz="1 2 -2"/>
    <parent link="upper"/><child link="fore-arm"/><dynamics damping="0.7" friction="0"/></joint>
  <joint name="shoulder" type="revolute"><origin xyz="0 0 0.5" rpy="0 1.2 0.7"/><axis xyz="0 0 1"/>
    <parent link="base_link"/><child link="upper"/><limit lower="-1" upper="2" effort="9" velocity="1"/></joint>
  <joint name="lift" type="prismatic"><origin rpy="0 0.5 0"/><parent link="fore-arm"/><child link="slide"/>
    <limit lower="0.2" upper="0.6" effort="9" velocity="1"/></joint>
  <joint name="slide-tool0" type="fixed"><origin xyz="0 0 0.1" rpy="1 0 0"/>
    <parent link="slide"/><child link="tool0"/></joint>
  <gazebo reference="upper"><gravity>true</gravity></gazebo>
</robot>
"""


def read(text, tmp_path, name='robot.urdf', needed=('tool0',)):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_urdf(path, 'machine.yaml', 'urdf', needed)


def numbers(vector):
    return np.array([item.value for item in vector])


def pose(xyz, rpy):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = Rotation.from_euler('xyz', rpy).as_matrix(), xyz
    return matrix


def motion(axis, angle=0.0, way=0.0):
    axis = np.array(axis) / np.linalg.norm(axis)
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = Rotation.from_rotvec(angle * axis).as_matrix(), way * axis
    return matrix


def chain(q):
    """Frames of the arm as URDF defines them: parent, origin, motion about the axis in the child's frame."""
    upper = pose([0, 0, 0.5], [0, 1.2, 0.7]) @ motion([0, 0, 1], q[0])
    fore_arm = upper @ pose([1, 0, 0.2], [0.3, 0.2, -0.1]) @ motion([1, 2, -2], q[1])
    slide = fore_arm @ pose([0, 0, 0], [0, 0.5, 0]) @ motion([1, 0, 0], way=q[2])
    return {GROUND: np.eye(4), 'upper': upper, 'fore_arm': fore_arm, 'slide': slide,
            'tool0': slide @ pose([0, 0, 0.1], [1, 0, 0])}


def frames(robot, q):
    """The same from our joints: Rot(axis, q) R(rpy) at the parent's point."""
    found = {GROUND: np.eye(4)}
    for joint in robot.joints.values():
        points = robot.ground if joint.parent.body == GROUND else robot.bodies[joint.parent.body].points
        anchor = pose(numbers(points[joint.parent.point]), [0, 0, 0])
        value = q.get(joint.name, 0.0)
        moved = {'revolute': lambda: motion(joint.axis, value), 'prismatic': lambda: motion(joint.axis, way=value),
                 'fixed': lambda: np.eye(4)}[joint.type]()
        turned = pose([0, 0, 0], numbers(joint.rpy))
        found[joint.child.body] = found[joint.parent.body] @ anchor @ moved @ turned
    return found


def test_joints_move_as_urdf_says(tmp_path):
    robot = read(ARM, tmp_path)
    q = [0.3, -1.1, 0.4]
    expected, found = chain(q), frames(robot, dict(zip(['shoulder', 'elbow', 'lift'], q)))
    assert set(found) == set(expected) == {GROUND, *robot.bodies}
    for name, matrix in expected.items():
        np.testing.assert_allclose(found[name], matrix, atol=1e-14)


def test_the_guess_is_at_zero_or_amid_the_limits(tmp_path):
    robot = read(ARM, tmp_path)
    for name, matrix in chain([0.0, 0.0, 0.4]).items():
        if name != GROUND:
            np.testing.assert_allclose(robot.bodies[name].position, matrix[:3, 3], atol=1e-14)
            np.testing.assert_allclose(robot.bodies[name].rotation, matrix[:3, :3], atol=1e-14)


def test_names_points_and_root(tmp_path):
    robot = read(ARM, tmp_path)
    assert (robot.name, robot.root, list(robot.ground)) == ('arm', 'base_link', ['origin', 'shoulder'])
    assert list(robot.joints) == ['shoulder', 'elbow', 'lift', 'slide_tool0']       # outwards
    assert robot.joints['lift'].parent == PointRef('fore_arm', 'lift')
    assert robot.joints['lift'].child == PointRef('slide', 'origin')
    assert list(robot.bodies['upper'].points) == ['origin', 'elbow']
    assert robot.joints['elbow'].type == 'revolute' and robot.joints['slide_tool0'].axis == ()
    np.testing.assert_allclose(np.linalg.norm(robot.joints['elbow'].axis), 1.0, rtol=1e-15)


def test_inertia_is_turned_into_the_frame_of_the_link(tmp_path):
    robot = read(ARM, tmp_path)
    turned = Rotation.from_euler('xyz', [0.4, -0.5, 0.6]).as_matrix()
    tensor = turned @ np.array([[1, 0.1, -0.2], [0.1, 1.5, 0.3], [-0.2, 0.3, 2]]) @ turned.T
    upper = robot.bodies['upper']
    np.testing.assert_allclose(numbers(upper.inertia), tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]], atol=1e-14)
    assert upper.mass.value == 3.0 and numbers(upper.center_of_mass).tolist() == [0.1, 0.2, 0.3]
    assert upper.inertia[4].key == 'bodies.upper.inertia.xz' and upper.mass.key == 'bodies.upper.mass'


def test_a_link_without_inertial_weighs_nothing(tmp_path):
    body = read(ARM, tmp_path).bodies['tool0']
    assert body.mass.value == 0.0 and not numbers(body.inertia).any()


def test_damping_is_a_spring_without_stiffness(tmp_path):
    robot = read(ARM, tmp_path)
    spring, = robot.springs.values()
    assert (spring.coordinate, spring.damping.value, spring.stiffness.value) == ('elbow', 0.7, 0.0)
    assert robot.coordinates['elbow'].kind == 'joint' and robot.coordinates['elbow'].joint == 'elbow'


@pytest.mark.parametrize('name, spelt', [('wrist_3-flange', 'wrist_3_flange'), ('left/arm.link', 'left_arm_link'),
                                         ('_a__b_', 'a_b'), ('plain', 'plain')])
def test_spelling_of_names(name, spelt):
    assert entry_name(name) == spelt


MIMIC = '<mimic joint="shoulder"/><dynamics damping="0.7"'
FAULTS = [
    ('<axis xyz="1 2 -2"/>', '<axis xyz="1 2"/>', 'joint[elbow].axis.xyz', '1 2', '3 numbers'),
    ('<axis xyz="1 2 -2"/>', '<axis xyz="0 0 0"/>', 'joint[elbow].axis.xyz', '0 0 0', 'zero vector'),
    ('<axis xyz="1 2 -2"/>', '<axis xyz="0 0 nan"/>', 'joint[elbow].axis.xyz', '0 0 nan', '3 numbers'),
    ('<axis xyz="1 2 -2"/>', '<axis xyz="0 0 1"/><axis xyz="0 1 0"/>', 'joint[elbow].axis', 'a second', 'once'),
    ('<axis xyz="1 2 -2"/>', '<axis/>', 'joint[elbow].axis.xyz', None, 'missing'),
    ('<axis xyz="1 2 -2"/>', '<axes xyz="1 2 -2"/>', 'joint[elbow]', 'axes', 'axis'),
    ('rpy="0.3 0.2 -0.1"', 'rpy="30 20 -10"', 'joint[elbow].origin.rpy', '30 20', 'rad'),
    ('rpy="0.3 0.2 -0.1"', 'rpy="0 0 ${pi/2}"', 'joint[elbow].origin.rpy', '${pi/2}', 'xacro FILE'),
    ('rpy="0.3 0.2 -0.1"', 'quat_xyzw="0 0 0 1"', 'joint[elbow].origin', 'quat_xyzw', 'rpy'),
    ('type="continuous"', 'type="floating"', 'joint[elbow].type', 'floating', 'revolute, continuous'),
    ('type="continuous"', 'type="planar"', 'joint[elbow].type', 'planar', 'revolute, continuous'),
    ('type="continuous"', '', 'joint[elbow].type', None, 'missing'),
    ('<dynamics damping="0.7"', MIMIC, 'joint[elbow].mimic', 'shoulder', 'no mimic'),
    ('friction="0"', 'friction="1"', 'joint[elbow].dynamics.friction', '1', 'dry friction'),
    ('damping="0.7"', 'damping="-1"', 'joint[elbow].dynamics.damping', '-1', 'from 0'),
    ('lower="-1" upper="2"', 'lower="3" upper="2"', 'joint[shoulder].limit.lower', '3', 'up to'),
    ('<parent link="upper"/>', '<parent link="uper"/>', 'joint[elbow].parent.link', 'uper', 'name of a link'),
    ('<parent link="upper"/>', '', 'joint[elbow].parent', None, 'missing'),
    ('<parent link="upper"/>', '<parent link="slide"/>', 'joint[elbow].parent.link', 'slide', 'hangs together'),
    ('<parent link="upper"/>', '<parent link="fore-arm"/>', 'joint[elbow].parent.link', 'fore_arm', 'hangs together'),
    ('<child link="tool0"/>', '<child link="upper"/>', 'joint[slide-tool0].child.link', 'upper', 'close loops'),
    ('<link name="tool0"/>', '<link name="tool0"/><link name="loose"/>', 'link', 'loose', 'one root'),
    ('<link name="tool0"/>', '<link name="tool0"/><link name="slide"/>', 'link[6].name', 'slide', 'in use'),
    ('<link name="tool0"/>', '<link name="tool0"/><link name="fore.arm"/>', 'link[fore.arm].name', 'fore.arm', 'diff'),
    ('<link name="tool0"/>', '<link name="tool0"/><link name="0"/>', 'link[0].name', '0', 'starts with a letter'),
    ('<link name="tool0"/>', '<link name="tool0"/><link/>', 'link[6].name', None, 'a name'),
    ('<link name="tool0"/>', '<link name="tool0"><inertia/></link>', 'link[tool0]', 'inertia', 'inertial'),
    ('<link name="tool0"/>', '<link name="tool0"/><loop_joint/>', '', 'loop_joint', 'link, joint'),
    ('"tool0"', '"ground"', 'link[ground].name', 'ground', 'means the root'),
    ('name="elbow"', 'name="origin"', 'joint[origin].name', 'origin', 'another name'),
    ('<mass value="3"/>', '<mass value="-3"/>', 'link[upper].inertial.mass.value', '-3', 'from 0'),
    ('<mass value="3"/>', '<mass value="3 kg"/>', 'link[upper].inertial.mass.value', '3 kg', 'a number'),
    ('<mass value="3"/>', '<mass>3</mass>', 'link[upper].inertial.mass.value', None, 'missing'),
    ('<mass value="3"/>', '', 'link[upper].inertial.mass', None, 'missing'),
    ('ixx="1" iyy="1.5"', 'ixx="1"', 'link[upper].inertial.inertia.iyy', None, 'missing'),
    ('ixx="1" iyy="1.5"', 'ixx="9" iyy="1.5"', 'link[upper].inertial.inertia', 9.0, 'real body'),
    ('ixx="1" iyy="1.5"', 'ixx="1" iyy="-1"', 'link[upper].inertial.inertia', -1.0, 'real body'),
    ('<robot name="arm"', '<robot name="arm" version="2.0"', 'version', '2.0', '1.0'),
]


@pytest.mark.parametrize('old, new, key, value, expected', FAULTS, ids=[f'{fault[2]}:{fault[3]}' for fault in FAULTS])
def test_faults(old, new, key, value, expected, tmp_path):
    assert ARM.count(old) >= 1
    with pytest.raises(DescriptionError) as caught:
        read(ARM.replace(old, new), tmp_path)
    error = caught.value
    assert error.file == str(tmp_path / 'robot.urdf') and error.key == 'robot' + (f'.{key}' if key else '')
    assert expected in error.expected
    if isinstance(value, float):
        assert np.isclose(error.value, value, atol=0.3).any()       # a principal moment
    else:
        assert value in error.value if value else error.value is None


BOMB = '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><robot name="&b;"/>'


@pytest.mark.parametrize('text, key, expected', [
    (BOMB, 'robot', 'document type'),
    ('<robot name="r">', 'line 1', 'correct XML'),
    ('', 'line 1', 'correct XML'),
    ('<?xml version="1.0" encoding="none"?><robot/>', 'robot', 'UTF-8'),
    ('<robot><xacro:property name="a" value="1"/></robot>', 'line 1', 'xacro FILE'),
    ('<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro/></robot>', 'robot', 'xacro FILE'),
    ('<sdf version="1.9"/>', 'sdf', 'root tag robot'),
    ('<robot/>', 'robot.name', 'missing'),
    ('<robot name="r"/>', 'robot.link', 'one tree'),
    ('<robot name="r"><link name="a"/></robot>', 'robot.link', 'one tree'),
    (' ' * 10_000_001, 'robot', 'at most'),
])
def test_no_urdf(text, key, expected, tmp_path):
    with pytest.raises(DescriptionError) as caught:
        read(text, tmp_path)
    assert caught.value.key == key and expected in caught.value.expected


def test_xacro_file_and_paths_that_cannot_be_read(tmp_path):
    with pytest.raises(DescriptionError, match='xacro FILE > robot.urdf'):
        read('<robot name="r"/>', tmp_path, 'robot.urdf.xacro')
    for path in (tmp_path / 'absent.urdf', tmp_path, Path('a\0b')):
        with pytest.raises(DescriptionError) as caught:
            read_urdf(path, 'machine.yaml', 'urdf')
        assert (caught.value.file, caught.value.key, caught.value.value) == ('machine.yaml', 'urdf', str(path))


VALUES = st.sampled_from(['', '0', '-1', '1 2 3', '0 0 0', 'nan', '1e308 0 0', '1e999', 'upper', 'slide', 'ground',
                          'origin', 'fixed', 'planar', 'prismatic', '${x}', '1_0', '٣', 'a' * 70, '-0.0 1e-200 0'])
TAGS = st.sampled_from(['robot', 'link', 'joint', 'origin', 'axis', 'mass', 'limit', 'mimic', 'dynamics', 'x'])


@settings(max_examples=300)
@given(st.data())
def test_mutations(tmp_path_factory, data):
    """A robot that can be used or a DescriptionError, never anything else."""
    robot = ElementTree.fromstring(ARM)
    for _ in range(data.draw(st.integers(1, 3))):
        parent = data.draw(st.sampled_from([item for item in robot.iter() if len(item)]))
        item = data.draw(st.sampled_from(list(parent)))
        action = data.draw(st.sampled_from(['remove', 'repeat', 'tag', *4 * ['attribute']]))
        if action == 'remove' and len(robot) > 1:
            parent.remove(item)
        elif action == 'repeat':
            data.draw(st.sampled_from(list(robot.iter()))).append(ElementTree.fromstring(ElementTree.tostring(item)))
        elif action == 'tag':
            item.tag = data.draw(TAGS)
        elif item.attrib:
            name = data.draw(st.sampled_from(sorted(item.attrib)))
            item.attrib[data.draw(st.sampled_from([name, name, 'name', 'value']))] = data.draw(VALUES)
    check_text(ElementTree.tostring(robot), tmp_path_factory)


@settings(max_examples=200)
@given(st.integers(0, len(ARM) - 1), st.integers(0, 30), st.binary(max_size=4))
def test_damaged_bytes(tmp_path_factory, first, length, replacement):
    content = ARM.encode()
    check_text(content[:first] + replacement + content[first + length:], tmp_path_factory)


def check_text(content, tmp_path_factory):
    """Read it; what is accepted must be a tree of finite numbers."""
    try:
        robot = read(content, tmp_path_factory.getbasetemp())
    except DescriptionError as error:
        assert error.key and error.expected
        return
    assert set(frames(robot, {})) == {GROUND, *robot.bodies} and len(robot.joints) == len(robot.bodies)
    for body in robot.bodies.values():
        assert np.isfinite([*body.position, *np.ravel(body.rotation), *numbers(body.inertia), body.mass.value]).all()
        assert entry_name(body.name) == body.name
    for joint in robot.joints.values():
        assert joint.type == 'fixed' or math.isclose(np.linalg.norm(joint.axis), 1.0)


def changed(old, new):
    assert ARM.count(old) == 1
    return ARM.replace(old, new)


SLIDE = ARM[ARM.index('<link name="slide">'):ARM.index('  <link name="tool0"/>')]
NOTHING = '<inertial><mass value="0"/><inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'


@pytest.mark.parametrize('inertial, value', [('', None), (NOTHING, '0 kg')])
def test_a_link_without_inertia_that_moves_is_refused(tmp_path, inertial, value):
    """Unless something with a mass is fixed to it."""
    text = changed(SLIDE, f'<link name="slide">{inertial}</link>')
    for needed in ((), ('tool0',)):
        with pytest.raises(DescriptionError, match='joint lift moves this link') as caught:
            read(text, tmp_path, needed=needed)
        assert (caught.value.key, caught.value.value) == ('robot.link[slide].inertial', value)
        robot = read(text.replace('<link name="tool0"/>', SLIDE.replace('slide', 'tool0')), tmp_path, needed=needed)
        assert robot.bodies['slide'].mass.value == (0.0 if needed else 1.0)


@pytest.mark.parametrize('version, limit, limits', [
    ('', 'lower="-1" upper="2"', (-1.0, 2.0)), ('', '', None), ('', 'upper="2"', (0.0, 2.0)),
    (' version="1.2"', 'upper="2"', None), (' version="1.1"', 'lower="-1e16" upper="1e16"', None),
    ('', 'lower="0.5" upper="0.5"', None),
    (' version="1.2"', 'lower="-1" upper="2" acceleration="2" jerk="9"', (-1, 2))])
def test_limits_are_the_range_of_a_joint(tmp_path, version, limit, limits):
    text = changed('lower="-1" upper="2"', limit).replace('<robot name="arm"', f'<robot name="arm"{version}')
    robot = read(text, tmp_path)
    assert robot.joints['shoulder'].limits == limits and robot.joints['elbow'].limits is None
    assert robot.joints['lift'].limits == (0.2, 0.6)
    assert robot.remarks['limits of velocity and effort, not used'] == 'shoulder, lift'
    assert any('shoulder' in names for about, names in robot.remarks.items() if 'range' in about) == (limits is None)


@pytest.mark.parametrize('joint, old, new, about', [
    ('shoulder', '-1" upper="2', '-90" upper="45', 'limits of many'), ('shoulder', '-1" upper="2', '-6" upper="6', ''),
    ('lift', '0.2" upper="0.6', '0" upper="500', 'limits of many'), ('lift', 'limit', 'safety_controller', 'soft'),
    ('shoulder', '<limit lower="-1" upper="2" effort="9" velocity="1"/>', '', 'joints without a range')])
def test_what_a_limit_loses_or_looks_like_is_said(tmp_path, joint, old, new, about):
    found = read(ARM.replace(old, new), tmp_path).remarks
    said = [text for text in found if joint in found[text].split(', ') and 'velocity' not in text]
    assert any(text.startswith(about) for text in said) if about else not said


def test_a_quaternion_of_version_1_1_is_the_same_rotation(tmp_path):
    x, y, z, w = Rotation.from_euler('xyz', [0.3, 0.2, -0.1]).as_quat()
    text = changed('rpy="0.3 0.2 -0.1"', f'quat_xyzw="{x} {y} {z} {w}"').replace('<robot', '<robot version="1.1"')
    for name, matrix in frames(read(text, tmp_path), {'elbow': 0.7}).items():
        np.testing.assert_allclose(matrix, frames(read(ARM, tmp_path), {'elbow': 0.7})[name], atol=1e-14)
    for wrong in (f'{x} {y} {z}', f'{2 * x} {y} {z} 1', 'nan 0 0 1'):
        with pytest.raises(DescriptionError, match='quat_xyzw'):
            read(text.replace(f'{x} {y} {z} {w}', wrong), tmp_path)


@pytest.mark.parametrize('old, new, name', [
    ('<robot name="arm"', '<robot name="arm" colour="red"', 'colour'),
    ('</robot>', '<mujoco><compiler meshdir="m"/></mujoco></robot>', 'mujoco'),
    ('</robot>', '<a:joint name="x"/></robot>', 'joint'),       # an undeclared namespace, as urdfdom takes it
    ('<material', '<plugin filename="x"/><material', 'plugin'),
    ('<visual>', '<contact><lateral_friction value="1"/></contact><visual>', 'contact'),
    ('<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/><hardwareInterface>x</hardwareInterface>', 'hardwareInterface'),
    ('friction="0"', 'friction="0" spring_stiffness="3"', 'spring_stiffness')])
def test_what_urdf_does_not_know_is_left_out_and_named(tmp_path, old, new, name):
    robot = read(changed(old, new), tmp_path)
    assert robot.joints == read(ARM, tmp_path).joints
    assert name in robot.remarks['names that mean nothing here, not used'].split(', ')


def test_a_default_namespace_changes_nothing(tmp_path):
    text = changed('<robot', '<robot xmlns="http://www.ros.org"')
    assert read(text, tmp_path).bodies == read(ARM, tmp_path).bodies


HEAD = 'format: mbse/mechanism/1\nname: arm\ngravity: 9.81\n'
OVERLAY = HEAD + '''urdf:
  file: robot.urdf
  bodies:
    upper: {mass: {stddev: 10 %}, center_of_mass: {stddev: [5 mm, 0 m, 1 cm]}, inertia: {xx: {value: 1.2, stddev: 0.1}}}
    fore_arm: {mass: 2.5 kg, points: {lift: {stddev: 1 mm}}}
  joints:
    elbow: {start: 40 deg, limits: [0 deg, 90 deg]}
    lift: {start: 300 mm}
'''


def loaded(tmp_path, text=OVERLAY):
    (tmp_path / 'robot.urdf').write_text(ARM)
    return parse_mechanism(text, str(tmp_path / 'machine.yaml'))


def test_the_mechanism_file_may_say_more_of_links_and_joints(tmp_path):
    arm, plain = loaded(tmp_path), loaded(tmp_path, HEAD + 'urdf: robot.urdf\n')
    upper, fore_arm = arm.bodies['upper'], arm.bodies['fore_arm']
    assert (upper.mass.value, upper.mass.stddev) == (3.0, pytest.approx(0.3))
    assert [item.stddev for item in upper.center_of_mass] == [0.005, 0.0, 0.01]
    assert numbers(upper.center_of_mass) == pytest.approx(numbers(plain.bodies['upper'].center_of_mass))
    assert (upper.inertia[0].value, upper.inertia[0].stddev) == (1.2, 0.1)
    assert fore_arm.mass.value == 2.5 and [item.stddev for item in fore_arm.points['lift']] == [0.001] * 3
    assert {'bodies.upper.mass', 'bodies.upper.inertia.xx', 'bodies.upper.center_of_mass[2]'} <= set(uncertain(arm))
    assert arm.joints['elbow'].limits == pytest.approx((0.0, math.pi / 2)) and not uncertain(plain)
    for name, matrix in chain([0.0, math.radians(40.0), 0.3]).items():
        if name in arm.bodies:
            np.testing.assert_allclose(arm.bodies[name].position, matrix[:3, 3], atol=1e-14)


@pytest.mark.parametrize('old, new, key', [
    ('upper:', 'uper:', 'urdf.bodies.uper'), ('elbow:', 'ebow:', 'urdf.joints.ebow'), ('40 deg', '95 deg', 'start'),
    ('300 mm', '30 deg', 'urdf.joints.lift.start'), ('300 mm', '0.1', 'urdf.joints.lift.start'),
    ('2.5 kg', '0 kg', 'urdf.bodies.fore_arm.mass'), ('value: 1.2', 'value: 9', 'urdf.bodies.upper.inertia'),
    ('{lift:', '{left:', 'urdf.bodies.fore_arm.points.left'), ('robot.urdf', 'none.urdf', 'urdf.file'),
    ('[0 deg, 90 deg]', '[90 deg, 0 deg]', 'urdf.joints.elbow.limits')])
def test_more_of_links_and_joints_that_cannot_be(tmp_path, old, new, key):
    assert OVERLAY.count(old) == 1
    with pytest.raises(DescriptionError) as caught:
        loaded(tmp_path, OVERLAY.replace(old, new))
    assert caught.value.file.endswith('machine.yaml') and caught.value.key.endswith(key)
