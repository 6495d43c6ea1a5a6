# SPDX-License-Identifier: Apache-2.0
"""What a mechanism file means: numbers, frames, joints of shared points, the walk from the ground, a URDF beside it."""

import math
from pathlib import Path

import numpy as np
import pytest

from mbse_ros.description.basics import scalars, uncertain
from mbse_ros.description.explain import explain
from mbse_ros.description.language.expressions import evaluate
from mbse_ros.description.load import known_mechanisms, load_mechanism, parse_mechanism
from mbse_ros.description.model import GROUND, PointRef, Scalar
from mbse_ros.description.tables import Section, row

HEAD = 'format: mbse/mechanism/1\nname: test\ngravity: 9.81\n'
BAR = 'mass: 1 kg, uniform: true'


def parse(text, head=HEAD):
    return parse_mechanism(head + text)


def mass(text, parameters='{L: 2 m, n: 3, w: 5 kg/m, a: 30 deg}'):
    """The mass of a body that `text` gives."""
    return parse(f'parameters: {parameters}\npoints: {{A: {{fixed: [0, 0]}}, B: [1, 0]}}\n'
                 f'bodies: {{bar: {{points: [A, B], mass: {text}, uniform: true}}}}\n').bodies['bar'].mass


@pytest.mark.parametrize('text, value, arithmetic, factor', [
    ('2', 2.0, '', 1.0), ('1.5 t', 1500.0, '', 1.0), ('300 g', 0.3, '', 1.0), ('012', 12.0, '', 1.0),
    ('w*L', 10.0, 'w*L', 1.0), ('n', 3.0, 'n', 1.0), ('n*L', 6.0, 'n*L', 1.0), ('n g', 0.003, 'n', 1e-3),
    ('2*n + 1 g', 0.007, '2*n + 1', 1e-3), ('sqrt(13) t', math.sqrt(13) * 1e3, '', 1.0),
    ('sqrt(w*w)*L', 10.0, 'sqrt(w*w)*L', 1.0), ('w*(L + 1)', 15.0, 'w*(L + 1)', 1.0),
    ('"w*hypot(L, 3)"', 5 * math.sqrt(13), 'w*hypot(L, 3)', 1.0), ('w*L*a', 10 * math.pi / 6, 'w*L*a', 1.0),
    ('w*L*cos(a)', 10 * math.cos(math.pi / 6), 'w*L*cos(a)', 1.0), ('exp(L/2/L) kg', math.exp(0.5), 'exp(L/2/L)', 1.0),
    ('w**2*L**2/(w*L)', 10.0, 'w**2*L**2/(w*L)', 1.0), ('"max(w*L, 12)"', 12.0, 'max(w*L, 12)', 1.0),
])
def test_numbers(text, value, arithmetic, factor):
    found = mass(text)
    assert found.value == pytest.approx(value, rel=1e-15)
    assert (found.text, found.factor, found.key) == (arithmetic, factor, 'bodies.bar.mass')


def test_standard_deviations():
    assert mass('{value: 8 kg, stddev: 50 g, source: weighed}') == Scalar(8.0, stddev=0.05)
    found = mass('{value: w*L, stddev: 2 %}')
    assert (found.value, found.text, found.stddev) == (10.0, 'w*L', pytest.approx(0.2))
    vector = parse('points: {A: {fixed: {value: [0 m, 2 m], stddev: [1 mm, 5 %]}}, B: [1, 0]}\n'
                   f'bodies: {{bar: {{points: [A, B], {BAR}}}}}\n')
    assert [item.stddev for item in vector.ground['A']] == [1e-3, pytest.approx(0.1)]
    assert set(uncertain(vector)) == {'points.A.fixed[0]', 'points.A.fixed[1]'}
    parameters = parse('parameters: {a: {value: 10 mm, stddev: 1 %}, b: {value: 2*a, stddev: 0.1 mm}}\n'
                       'points: {A: {fixed: [0, 0]}, B: [1, 0]}\n'
                       f'bodies: {{bar: {{points: [A, B], {BAR}}}}}\n').parameters
    assert parameters['a'] == Scalar(0.01, stddev=pytest.approx(1e-4))
    assert parameters['b'] == Scalar(0.02, '2*a', stddev=pytest.approx(1e-4))


def test_gravity():
    body = f'points: {{A: {{fixed: [0, 0]}}, B: [1, 0]}}\nbodies: {{bar: {{points: [A, B], {BAR}}}}}\n'
    down = parse('parameters: {g: 1.62}\ngravity: g m/s^2\n' + body, HEAD.replace('gravity: 9.81\n', '')).gravity
    assert [item.value for item in down] == [0.0, -1.62]
    assert evaluate(down[1].text, {'g': 2.0}) * down[1].factor == -2.0
    tilted = parse('gravity: [1, -9]\n' + body, HEAD.replace('gravity: 9.81\n', '')).gravity
    assert [item.value for item in tilted] == [1.0, -9.0]


SKETCH = f"""
parameters: {{h: 2 m}}
points: {{A: {{fixed: [1, 1]}}, P: [1, 1 + h], Q: [4, 1 + h], R: [4, 5], E: {{fixed: [9, 1]}}}}
bodies:
  one: {{points: [A, P], {BAR}}}
  two: {{points: [P, Q, R], {BAR}}}
  three: {{points: [Q, E], length: 6 m, {BAR}}}
  four: {{points: {{Q: [1, 0], R: [1, 2], own: [0, 0]}}, {BAR}}}
"""


def test_frames_of_a_sketch():
    bodies = parse(SKETCH).bodies
    assert bodies['one'].position == (1.0, 1.0)
    np.testing.assert_allclose(bodies['one'].rotation, [[0, -1], [1, 0]], atol=1e-15)
    assert bodies['three'].points['E'][0].value == 6.0
    places = {point: np.array(bodies['two'].position) + np.array(bodies['two'].rotation)
              @ [item.value for item in local] for point, local in bodies['two'].points.items()}
    np.testing.assert_allclose([places['P'], places['Q'], places['R']], [[1, 3], [4, 3], [4, 5]], atol=1e-15)
    np.testing.assert_allclose(bodies['four'].position, [3, 3], atol=1e-15)     # own, from Q and R
    np.testing.assert_allclose(bodies['four'].rotation, np.eye(2), atol=1e-15)


def test_shape_of_the_guess_follows_the_parameters():
    bodies = parse(SKETCH).bodies
    length, corner = bodies['one'].points['P'][0], bodies['two'].points['R']
    assert (length.value, length.key) == (2.0, 'bodies.one.length')
    assert evaluate(length.text, {'h': 3.0}) == 3.0
    assert [item.value for item in corner] == pytest.approx([3.0, 2.0])
    assert [evaluate(item.text, {'h': 3.0}) for item in corner] == pytest.approx([3.0, 1.0])
    assert [item.key for item in corner] == ['bodies.two.points.R[0]', 'bodies.two.points.R[1]']


def test_shape_that_is_tilted_and_given_with_units():
    mechanism = parse(f"""
parameters: {{a: 3, b: 4}}
points: {{A: {{fixed: [0, 0]}}, B: [a*10 cm, b*10 cm], C: [-1, 2]}}
bodies: {{plate: {{points: [A, B, C], {BAR}}}}}
""")
    points = mechanism.bodies['plate'].points
    assert [item.value for item in points['B']] == [0.5, 0.0]
    assert [item.value for item in points['C']] == pytest.approx([1.0, 2.0])
    assert [evaluate(item.text, {'a': 4.0, 'b': -3.0}) for item in points['C']] == pytest.approx([-2.0, 1.0])
    assert evaluate(points['B'][0].text, {'a': 12.0, 'b': 5.0}) == pytest.approx(1.3)


def test_shared_points_are_joints():
    joints = parse(SKETCH).joints
    assert {name: (str(joint.parent), str(joint.child)) for name, joint in joints.items()} == {
        'A': ('ground.A', 'one.A'), 'P': ('one.P', 'two.P'), 'R': ('two.R', 'four.R'), 'E': ('ground.E', 'three.E'),
        'Q_three': ('two.Q', 'three.Q'), 'Q_four': ('two.Q', 'four.Q')}
    assert {joint.type for joint in joints.values()} == {'revolute'}


def test_slider_takes_its_rotation_from_the_joint():
    mechanism = parse(f"""
points: {{O: {{fixed: [0, 0]}}, S: [3, 1]}}
bodies:
  rod: {{points: [O, S], {BAR}}}
  block: {{points: {{S: [0.5, 0]}}, mass: 1, center_of_mass: [0, 0], inertia: 1}}
joints: {{slide: {{type: prismatic, parent: ground.O, child: block.S, axis: [2, 0], angle: 90 deg}}}}
named: {{s: {{joint: slide}}, turn: {{joint: S}}, angle: {{joint: O}}}}
""")
    block = mechanism.bodies['block']
    np.testing.assert_allclose(block.rotation, [[0, -1], [1, 0]], atol=1e-15)
    np.testing.assert_allclose(block.position, [3, 0.5], atol=1e-15)
    assert mechanism.joints['slide'].axis == (1.0, 0.0)
    kinds = {name: (item.kind, item.bodies, item.joint) for name, item in mechanism.coordinates.items()}
    assert kinds == {'s': ('joint', (), 'slide'), 'turn': ('angle', ('rod', 'block'), ''),
                     'angle': ('angle', ('rod',), '')}


SPATIAL = HEAD + 'dimension: 3\npoints: {base: {fixed: [1, 2, 3]}}\n'
SOLID = 'mass: 1, center_of_mass: [0, 0, 0], inertia: {xx: 1, yy: 1, zz: 1}'


def test_walk_from_the_ground():
    bodies = parse(f"""
bodies:
  tip: {{points: {{end: [0, 0, 1]}}, {SOLID}}}
  arm: {{points: {{foot: [1, 0, 0], top: [0, 0, 2]}}, {SOLID}}}
joints:
  slide: {{type: prismatic, parent: arm.top, child: tip.end, axis: [0, 0, 1], start: 50 cm}}
  hinge: {{type: revolute, parent: ground.base, child: arm.foot, axis: [0, 0, 1], rpy: [90 deg, 0, 0], start: 90 deg}}
""", SPATIAL).bodies
    arm = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]])       # Rz(90) Rx(90)
    np.testing.assert_allclose(bodies['arm'].rotation, arm, atol=1e-15)
    np.testing.assert_allclose(bodies['arm'].position, np.array([1, 2, 3]) - arm @ [1, 0, 0], atol=1e-15)
    np.testing.assert_allclose(bodies['tip'].rotation, arm, atol=1e-15)
    np.testing.assert_allclose(bodies['tip'].position,
                               bodies['arm'].position + arm @ [0, 0, 2 + 0.5 - 1], atol=1e-15)


def test_walk_towards_the_parent_and_from_a_placed_body():
    bodies = parse(f"""
bodies:
  base: {{points: {{a: [0, 0, 0]}}, {SOLID}, position: [5, 0, 0], rpy: [0, 0, 90 deg]}}
  next: {{points: {{b: [1, 0, 0]}}, {SOLID}}}
joints: {{j: {{type: revolute, parent: next.b, child: base.a, axis: [0, 0, 1], start: 30 deg}}}}
""", SPATIAL).bodies
    angle = math.radians(60)
    turned = np.array([[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0], [0, 0, 1]])
    np.testing.assert_allclose(bodies['next'].rotation, turned, atol=1e-15)
    np.testing.assert_allclose(bodies['next'].position, [5, 0, 0] - turned @ [1, 0, 0], atol=1e-15)


def test_walk_along_a_slide_towards_the_parent():
    bodies = parse(f"""
bodies:
  base: {{points: {{a: [0, 0, 0]}}, {SOLID}, position: [5, 0, 0]}}
  next: {{points: {{b: [1, 0, 0]}}, {SOLID}}}
joints: {{j: {{type: prismatic, parent: next.b, child: base.a, axis: [0, 0, 1], start: 2 m}}}}
""", SPATIAL).bodies
    np.testing.assert_allclose(bodies['next'].position, [4, 0, -2], atol=1e-15)


def test_references_to_points():
    mechanism = parse(SKETCH + """
named: {d: {distance: [A, R]}, x: {x: four.own}, y: {y: Q}, e: {distance: [ground.E, P]}}
springs: {bend: {bodies: [one, two], stiffness: 3 N*m/deg, free: 10 deg}}
forces: {pull: {point: own_is_dotted, force: [0, 1]}}
""".replace('own_is_dotted', 'four.own'))
    assert mechanism.coordinates['d'].points == (PointRef(GROUND, 'A'), PointRef('two', 'R'))
    assert mechanism.coordinates['y'].points == (PointRef('two', 'Q'),) and mechanism.coordinates['y'].component == 1
    assert mechanism.coordinates['e'].points == (PointRef(GROUND, 'E'), PointRef('one', 'P'))
    assert mechanism.coordinates['bend'].bodies == ('one', 'two') and mechanism.springs['bend'].coordinate == 'bend'
    assert mechanism.springs['bend'].stiffness.value == pytest.approx(3 * 180 / math.pi)
    assert mechanism.forces['pull'].point == PointRef('four', 'own')


def test_driver_with_a_unit():
    mechanism = parse(SKETCH + """
named: {theta: {angle: one}}
drivers: {motor: {coordinate: theta, motion: 30*sin(t) deg}}
""")
    driver = mechanism.drivers['motor']
    assert (driver.motion, driver.factor) == ('30*sin(t)', pytest.approx(math.pi / 180))


URDF = """<robot name="arm"><link name="world"/><link name="upper"><inertial><mass value="2"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="world"/><child link="upper"/><origin xyz="0 0 1"/>
<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/><dynamics damping="0.5"/></joint></robot>"""


def test_urdf_beside_the_file(tmp_path: Path):
    (tmp_path / 'arm.urdf').write_text(URDF)
    file = tmp_path / 'arm.yaml'
    file.write_text(HEAD + """urdf: arm.urdf
points: {hook: {fixed: [0, 0, 1.5]}}
joints: {rope: {type: distance, parent: ground.hook, child: upper.origin, length: 0.5}}
named: {shoulder: {joint: shoulder}, q: {joint: shoulder}}
independent: [q]
""")
    mechanism = load_mechanism(file)
    assert mechanism.dimension == 3 and mechanism.coordinate_type == 'reference_point'
    assert list(mechanism.joints) == ['shoulder', 'rope'] and 'hook' in mechanism.ground
    assert mechanism.springs['shoulder'].damping.value == 0.5 and set(mechanism.coordinates) == {'shoulder', 'q'}
    assert list(mechanism.bodies) == ['upper'] and mechanism.bodies['upper'].position == (0.0, 0.0, 1.0)


@pytest.mark.parametrize('name', [*known_mechanisms(), 'n_four_bar:3'])
def test_mechanisms_of_the_package(name):
    mechanism = load_mechanism(name)
    numbers = scalars(mechanism)
    assert len(numbers) > 5 and all(math.isfinite(item.value) for item in numbers.values())
    values = {key: item.value for key, item in mechanism.parameters.items()}
    for key, item in numbers.items():
        if item.text:
            assert evaluate(item.text, values) * item.factor == pytest.approx(item.value, rel=1e-12, abs=1e-15), key
    tables = explain(mechanism)
    assert all(isinstance(table, Section) and table.rows for table in tables)
    assert {f'body {body}' for body in mechanism.bodies} <= {table.title for table in tables}


@pytest.mark.parametrize('number, note, shown', [
    (Scalar(1.0, text='2*L', source='drawing'), 'own', 'own'), (Scalar(1.0, text='2*L', source='drawing'), '', '2*L'),
    (Scalar(1.0, source='drawing'), '', 'drawing'), (1.0, '', '')])
def test_a_number_is_explained_by_its_note_its_arithmetic_or_its_source(number, note, shown):
    assert row('x', number, 'm', note).note == shown
