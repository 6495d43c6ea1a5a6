# SPDX-License-Identifier: Apache-2.0
"""Links of a URDF on fixed joints: one body with their parent, with the same dynamics, and found by their names."""

import math

import numpy as np
import pytest
import yaml
from core_support import TWO_CYLINDERS
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from mbse_ros.compiled import Kernel
from mbse_ros.description.language.entry import Entry
from mbse_ros.description.load import _needed, load_mechanism, parse_mechanism
from mbse_ros.description.model import GROUND, PointRef
from mbse_ros.description.robots.urdf import MAX_BODIES, read_urdf
from mbse_ros.description.robots.urdf_parts import rpy_of
from mbse_ros.dynamics.model import Model
from mbse_ros.dynamics.sensor_equations import sensor_function
from mbse_ros.errors import DescriptionError
from mbse_ros.machine import Machine

HEAD = 'format: mbse/mechanism/1\nname: arm\ngravity: 9.81\nurdf: arm.urdf\nindependent: [shoulder, elbow, slide]\n'
MOVING = (('shoulder', 'world', 'upper'), ('elbow', 'bracket', 'fore'), ('slide', 'flange', 'hand'))
FIXED = (('mount', 'upper', 'bracket'), ('plate', 'fore', 'plate_link'), ('bolt', 'plate_link', 'flange'),
         ('tool', 'hand', 'tool0'), ('cable', 'upper', 'cable_link'), ('stand', 'world', 'stand_link'))


def number(seed):
    """Numbers that repeat, from -1 to 1."""
    return np.random.default_rng(seed).uniform(-1.0, 1.0, 12)


def text(values):
    return ' '.join(repr(float(value)) for value in values)


def link(name, seed, mass=None):
    """A link with a mass, a centre somewhere and the tensor of a real body along axes of its own."""
    values = number(seed)
    xx, yy, zz = 0.1 + 0.02 * values[:3]
    mass = 2.0 + values[3] if mass is None else mass
    return (f'<link name="{name}"><inertial><origin xyz="{text(values[4:7])}" rpy="{text(values[7:10])}"/>'
            f'<mass value="{mass}"/><inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/>'
            '</inertial></link>')


def joint(name, parent, child, kind, seed):
    values = number(seed)
    return (f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{text(values[:3])}" rpy="{text(3.0 * values[3:6])}"/><axis xyz="{text(values[6:9])}"/>'
            '<limit lower="-1" upper="1"/></joint>')


def arm():
    """Three joints that move, six that do not, one of those on the ground and two in a row."""
    names = dict.fromkeys(name for _, *pair in (*MOVING, *FIXED) for name in pair)
    links = [link(name, seed) for seed, name in enumerate(names)]
    joints = [joint(*row, 'prismatic' if row[0] == 'slide' else 'revolute', 100 + k) for k, row in enumerate(MOVING)]
    joints += [joint(*row, 'fixed', 200 + k) for k, row in enumerate(FIXED)]
    return f'<robot name="arm">{"".join(links + joints)}</robot>'


NAMED = ', '.join(f'g{k}: {{kind: gyro, body: {child}}}' for k, (_, _, child) in enumerate(FIXED))


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp('arm')
    (path / 'arm.urdf').write_text(arm())
    return path


def model(folder, more='', coordinates='relative'):
    """The arm with more sections in its file."""
    return Model(parse_mechanism(HEAD + more, str(folder / 'arm.yaml')), coordinates, backend='vm')


def independent_accelerations(one, q, zd):
    """Without the derivatives of the state equations, which take longest to build."""
    return one.accelerations(q, one.partition().velocity(q, zd))[one.z]


def test_links_on_fixed_joints_are_part_of_their_parent(folder):
    robot = read_urdf(folder / 'arm.urdf', 'arm.yaml', 'urdf')
    assert list(robot.bodies) == ['upper', 'fore', 'hand'] and list(robot.joints) == ['shoulder', 'elbow', 'slide']
    assert robot.joints['elbow'].parent == PointRef('upper', 'elbow')
    assert list(robot.ground) == ['origin', 'shoulder', 'stand']
    assert list(robot.bodies['upper'].points) == ['origin', 'mount', 'cable', 'elbow'] == [
        *robot.bodies['upper'].outline]
    assert robot.aliases['bracket'] == {'origin': PointRef('upper', 'mount'), 'elbow': PointRef('upper', 'elbow')}
    assert robot.aliases['flange'] == {'origin': PointRef('fore', 'bolt'), 'slide': PointRef('fore', 'slide')}
    assert robot.aliases['stand_link'] == {'origin': PointRef(GROUND, 'stand')}
    assert robot.bodies['fore'].points['bolt'][1].key == 'bodies.fore.points.bolt[1]'


@pytest.mark.parametrize('coordinates', ['relative', 'reference_point'])
def test_the_dynamics_are_those_of_the_links_apart(folder, coordinates):
    """The sensors name all links, which are bodies then; in reference point coordinates with constraints between."""
    merged, apart = (model(folder, more, coordinates) for more in ('', f'sensors: {{{NAMED}}}\n'))
    assert len(merged.description.bodies) == 3 and len(apart.description.bodies) == 9
    for seed in range(4):
        z, zd = 0.8 * number(seed)[:3], 3.0 * number(seed)[3:6]
        states = [one.position(z, one.start.q) for one in (merged, apart)]
        zdd = [independent_accelerations(one, q, zd) for one, q in zip((merged, apart), states)]
        np.testing.assert_allclose(zdd[0], zdd[1], rtol=1e-9, atol=1e-9)
        if coordinates == 'relative':
            one, other = (one.terms(q, zd) for one, q in zip((merged, apart), states))
            np.testing.assert_allclose(one.M, other.M, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(one.Q, other.Q, rtol=1e-11, atol=1e-11)


SEEN = """
sensors:
  far: {kind: position, point: tool0.origin, stddev: 1 mm}
  fast: {kind: velocity, point: flange.slide, stddev: 1 mm/s}
  rope: {kind: distance, points: [cable_link.origin, stand_link.origin], stddev: 1 mm}
  felt: {kind: accelerometer, point: plate_link.bolt, stddev: 1}
GYROS
springs:
  tie: {points: [stand_link.origin, flange.origin], stiffness: 300, free: 0.2, damping: 20}
forces:
  push: {point: tool0.origin, force: [3, 4, 5]}
"""


def test_sensors_springs_and_forces_find_points_by_the_names_of_the_links(folder):
    """With the links as bodies, and as far as the sections let them be parts."""
    apart = model(folder, SEEN.replace('GYROS', '  ' + NAMED.replace(', g', '\n  g')))
    assert len(apart.description.bodies) == 9
    merged = model(folder, SEEN.replace('GYROS', ''))
    assert list(merged.description.bodies) == ['upper', 'fore', 'plate_link', 'hand']      # its axes are felt
    assert merged.description.sensors['far'].points == (PointRef('hand', 'tool'),)
    z, zd = 0.8 * number(7)[:3], 2.0 * number(8)[:3]
    found = []
    for one in (merged, apart):
        system = one.partition().system
        kernel = Kernel(sensor_function(system, system.values.symbol), 'vm')
        found.append((kernel(one.position(z, one.start.q), zd, [], [0.0], one.parameters)[0],
                      independent_accelerations(one, one.position(z, one.start.q), zd)))
    channels = len(found[0][0])
    assert channels == 3 + 3 + 1 + 3
    np.testing.assert_allclose(found[0][0], found[1][0][:channels], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize('more, bodies', [
    ('joints: {tie: {type: distance, parent: stand_link.origin, child: tool0.origin, length: 3}}\n',
     'stand_link tool0'),
    ('payload: {body: bracket}\n', 'bracket'),
    ('modules: {m: [flange, hand]}\nlevels: [[m], all]\n', 'flange'),
    ('forces: {twist: {body: tool0, value: 1, direction: [0, 0, 1]}}\n', 'tool0'),
    ('sensors: {tilt: {kind: inclinometer, body: cable_link, stddev: 1 deg}}\n', 'cable_link')])
def test_what_the_file_needs_as_a_body_stays_one(folder, more, bodies):
    entries = {name: Entry('arm.yaml', name, value) for name, value in yaml.safe_load(HEAD + more).items()}
    needed = _needed(entries)
    assert set(bodies.split()) <= needed
    robot = read_urdf(folder / 'arm.urdf', 'arm.yaml', 'urdf', needed)
    assert set(robot.bodies) == {'upper', 'fore', 'hand', *bodies.split()}


@pytest.mark.parametrize('point, key', [
    ('stand_link.origin', 'a point of a body'), ('bracket.tip', 'a point of bracket'),
    ('brackt.origin', 'did you mean bracket')])
def test_a_point_that_does_not_serve_is_refused(folder, point, key):
    with pytest.raises(DescriptionError, match=key):
        model(folder, f'sensors: {{far: {{kind: position, point: {point}, stddev: 1 mm}}}}\n')


LUGS = {'base': ('world', (0.26, 0, -1.04)), 'boom_eye': ('boom', (0.3, 0, -0.1)),
        'jib_base': ('boom', (1.6, 0, 0.25)), 'boom_tip': ('boom', (2.9, 0, 0.02)),
        'jib_eye': ('jib', (0.02, 0, 0.3)), 'jib_tip': ('jib', (1.4, 0, 0))}


def test_a_machine_with_its_lugs_as_links_is_the_one_written_by_hand(tmp_path):
    """Cylinders, a joint and the payload at links on fixed joints that are turned."""
    weights = {'boom': (140, (1.2, 0, 0.05), 67), 'jib': (30, (-0.2, 0, 0.04), 3.0), 'jib_tip': (30, (0, 0, 0), 0.5)}
    # Of the jib: 60 kg at (0.6, 0, 0.02), 9 kg m2 about it: 3 + 0.5 and twice 30 kg at a distance.
    off = (1.4 + 0.2) / 2.0, 0.04 / 2.0
    moment = 3.0 + 0.5 + 2.0 * 30.0 * (off[0] ** 2 + off[1] ** 2)
    links = ''.join(f'<link name="{name}"/>' for name in ('world', *LUGS) if name not in weights)
    links += ''.join(f'<link name="{name}"><inertial><origin xyz="{text(centre)}"/><mass value="{mass}"/>'
                     f'<inertia ixx="{yy}" iyy="{yy}" izz="{yy}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
                     for name, (mass, centre, yy) in weights.items())
    joints = ''.join(f'<joint name="{name}_weld" type="fixed"><origin xyz="{text(place)}" rpy="0 {0.3 * k} 0"/>'
                     f'<parent link="{parent}"/><child link="{name}"/></joint>'
                     for k, (name, (parent, place)) in enumerate(LUGS.items()))
    for name, parent, child, turned in (('boom_joint', 'world', 'boom', 0.0), ('jib_joint', 'boom_tip', 'jib', -0.9)):
        joints += (f'<joint name="{name}" type="continuous"><origin rpy="0 {turned} 0"/><axis xyz="0 -1 0"/>'
                   f'<parent link="{parent}"/><child link="{child}"/></joint>')
    (tmp_path / 'r.urdf').write_text(f'<robot name="r">{links}{joints}</robot>')
    hand = TWO_CYLINDERS.replace('inertia: {yy: 9}', f'inertia: {{yy: {moment!r}}}')
    hand = hand.replace('{value: 140 kg, stddev: 1 %}', '140').replace('{value: 60 kg, stddev: 1 %}', '60')
    start = '\ninitial: {position: {boom_joint: 5 deg, jib_joint: -25 deg}}\n'
    robot = 'urdf: r.urdf\n' + hand[hand.index('cylinders:'):] + start
    for old, new in (('ground.base', 'base.origin'), ('boom.eye', 'boom_eye.origin'), ('boom.base', 'jib_base.origin'),
                     ('jib.eye', 'jib_eye.origin'), ('{point: jib.tip', '{body: jib, center: [1.4, 0, 0]')):
        assert old in robot
        robot = robot.replace(old, new)
    robot = 'format: mbse/machine/2\nname: two_cylinders\ngravity: 9.8066 m/s^2\n' + robot
    one, other = (Machine(parse_mechanism(part, str(tmp_path / 'm.yaml'))) for part in (robot, hand))
    assert list(one.description.bodies) == ['boom', 'jib'] == list(other.description.bodies)
    assert one.description.cylinders['lift'].base == PointRef(GROUND, 'base_weld')
    assert one.model.names == other.model.names and one.model.independent == other.model.independent
    place = one.model.start.q
    np.testing.assert_allclose(place, other.model.start.q, atol=1e-12)
    for seed in range(3):
        speed = 0.3 * number(seed)[:len(one.model.z)]
        found = [m.partition().rates(place, speed).zdd for m in (one.model, other.model)]
        np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def chain(count, moving, fixed_to='chain'):
    """A robot of so many links on fixed joints, in a row or all on one, between ``moving`` joints."""
    names = [f'l{k}' for k in range(count + moving + 1)]
    kinds = ['revolute' if k % (1 + count // moving) == 0 else 'fixed' for k in range(count + moving)]
    parents, tip = [], 0
    for k, kind in enumerate(kinds):
        parents.append(names[k if fixed_to == 'chain' else tip])
        tip = k + 1 if kind == 'revolute' else tip
    links = ''.join(link(name, 1, 0.01) for name in names)
    joints = ''.join(joint(f'j{k}', parents[k], names[k + 1], kind, k) for k, kind in enumerate(kinds))
    return f'<robot name="r">{links}{joints}</robot>', kinds.count('revolute')


@pytest.mark.parametrize('fixed_to', ['chain', 'star'])
def test_thousands_of_fixed_links_are_read(tmp_path, fixed_to):
    """They took minutes. Without a limit of time: with one body for each link this would not end."""
    robot, moving = chain(2000, 4, fixed_to)
    (tmp_path / 'arm.urdf').write_text(robot)
    mechanism = load_mechanism(write(tmp_path))
    assert len(mechanism.bodies) == moving == 4
    mass = sum(body.mass.value for body in mechanism.bodies.values())
    assert mass == pytest.approx(0.01 * 2004)
    made = Model(mechanism, 'relative', backend='vm')
    assert np.isfinite(made.accelerations(made.start.q, made.start.qd)).all()


def write(tmp_path, more=''):
    (tmp_path / 'arm.yaml').write_text(HEAD.partition('independent')[0] + more)
    return tmp_path / 'arm.yaml'


@pytest.mark.parametrize('count, moving, words', [(10, MAX_BODIES + 1, '61 that move.*at most 60'),
                                                  (4998, 3, '5002 links.*at most 5000 links')])
def test_robots_that_are_too_large_are_refused(tmp_path, count, moving, words):
    count = max(count, moving)
    (tmp_path / 'arm.urdf').write_text(chain(count, moving)[0])
    with pytest.raises(DescriptionError, match=words):
        load_mechanism(write(tmp_path))


def pose(values):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = Rotation.from_euler('xyz', 3.0 * values[3:6]).as_matrix(), values[:3]
    return matrix


def pseudo_inertia(mass, centre, tensor):
    """(4, 4) of second, first and zeroth moments about the origin of a frame: parts are summed, T J T' moves it."""
    second = np.trace(tensor) / 2.0 * np.eye(3) - tensor + mass * np.outer(centre, centre)
    return np.block([[second, mass * centre[:, None]], [mass * centre[None], np.array([[mass]])]])


def of_body(body):
    centre, (xx, yy, zz, xy, xz, yz) = (np.array([item.value for item in part])
                                        for part in (body.center_of_mass, body.inertia))
    return pseudo_inertia(body.mass.value, centre, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))


def of_link(seed, mass):
    values = number(seed)
    turned = Rotation.from_euler('xyz', values[7:10]).as_matrix()
    return pseudo_inertia(mass, values[4:7], turned @ np.diag(0.1 + 0.02 * values[:3]) @ turned.T)


@settings(max_examples=60)
@example([0, 0, 0], [0.0, 0.0, 0.0, 0.0])
@given(st.lists(st.integers(0, 30), min_size=1, max_size=12),
       st.lists(st.just(0.0) | st.floats(1e-3, 1e3), min_size=13, max_size=13))
def test_trees_of_fixed_joints_keep_mass_centre_and_inertia(tmp_path_factory, parents, masses):
    """Any tree, weightless links among them; the expected moments are those about the origin, without Steiner."""
    links, joints = [link('world', 0), link('l0', 1, masses[0])], [joint('q', 'world', 'l0', 'revolute', 50)]
    frames, expected = [np.eye(4)], of_link(1, masses[0])
    for k, choice in enumerate(parents, 1):
        parent = choice % k
        links.append(link(f'l{k}', k + 1, masses[k]))
        joints.append(joint(f'j{k}', f'l{parent}', f'l{k}', 'fixed', 100 + k))
        frames.append(frames[parent] @ pose(number(100 + k)))
        expected = expected + frames[k] @ of_link(k + 1, masses[k]) @ frames[k].T
    path = tmp_path_factory.getbasetemp() / 'tree.urdf'
    path.write_text(f'<robot name="r">{"".join(joints + links)}</robot>')
    robot = read_urdf(path, 'm.yaml', 'urdf')
    assert list(robot.bodies) == ['l0']
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(of_body(robot.bodies['l0']), expected, atol=1e-12 * scale)
    for k, frame in enumerate(frames[1:], 1):
        ref = robot.aliases[f'l{k}']['origin']
        found = [item.value for item in robot.bodies[ref.body].points[ref.point]]
        np.testing.assert_allclose(found, frame[:3, 3], atol=1e-12)


@settings(max_examples=200)
@example((0.4, math.pi / 2, 0.7))
@example((0.4, -math.pi / 2 + 1e-9, -2.0))
@example((0.0, 1.5707963, 3.1))
@given(st.tuples(*3 * [st.floats(-3.2, 3.2)]))
def test_angles_of_a_rotation(angles):
    """Also at a pitch of 90 degrees, where roll and yaw turn about one axis."""
    rotation = Rotation.from_euler('xyz', angles).as_matrix()
    np.testing.assert_allclose(Rotation.from_euler('xyz', rpy_of(rotation)).as_matrix(), rotation, atol=4e-15)
