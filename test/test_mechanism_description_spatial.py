# SPDX-License-Identifier: Apache-2.0
"""A crane in space, three joints: frames against the closed form, and the inertia it needs."""

import numpy as np
import pytest
import yaml

from mbse_ros.errors import DescriptionError
from mbse_ros.mechanism.description.explain import explain
from mbse_ros.mechanism.description.kinematics import cylinder_length, frames, point_position, rpy_rotation
from mbse_ros.mechanism.description.load import parse_description
from mbse_ros.mechanism.description.model import PointRef, Quantity

ALL = {'xx': '1 kg*m^2', 'yy': '1 kg*m^2', 'zz': '1 kg*m^2'}
FRICTION = dict.fromkeys(('coulomb', 'static', 'viscous'), '1') | {'transition_velocity': '5 mm/s'}


def body(points, inertia):
    return {'mass': '10 kg', 'center_of_mass': ['0', '0', '0'], 'inertia': inertia, 'points': points}


def cylinder(base, rod_eye):
    return {'base': base, 'rod_eye': rod_eye, 'bore': '80 mm', 'rod': '40 mm', 'closed_length': '0.1 m',
            'stroke': '5 m', 'friction': FRICTION}


@pytest.fixture
def tree():
    names = ('slew', 'lift', 'reach')
    return {
        'format': 'mbse/machine/1', 'name': 'spatial', 'gravity': ['0', '1 m/s^2', '-9.81 m/s^2'],
        'ground': {'points': {'foot': ['1', '2', '0'], 'a': ['1', '1', '0']}},
        'bodies': {'pillar': body({'foot': ['0', '0', '0'], 'top': ['0.2', '0', '3'], 'b': ['0.5', '0', '0']}, ALL),
                   'boom': body({'pivot': ['0', '0', '0'], 'end': ['2', '0', '0'], 'c': ['0.5', '0', '-0.1']}, ALL),
                   'jib': body({'in': ['0.1', '0', '0'], 'tip': ['1.1', '0', '0.3']}, ALL)},
        'joints': {
            'jib': {'type': 'prismatic', 'parent': 'boom.end', 'child': 'jib.in', 'axis': ['2', '0', '0'],
                    'start': '0.4', 'rpy': ['90 deg', '0', '30 deg']},
            'boom': {'type': 'revolute', 'parent': 'pillar.top', 'child': 'boom.pivot', 'axis': ['0', '-1', '0'],
                     'start': '20 deg', 'rpy': ['15 deg', '-10 deg', '0']},
            'pillar': {'type': 'revolute', 'parent': 'ground.foot', 'child': 'pillar.foot', 'axis': ['0', '0', '1'],
                       'start': '50 deg'}},
        'cylinders': {'slew': cylinder('ground.a', 'pillar.b'), 'lift': cylinder('pillar.foot', 'boom.c'),
                      'reach': cylinder('boom.c', 'jib.in')},
        'hydraulics': {
            'oil_bulk_modulus': '1.5 GPa',
            'volumes': {f'{name}_{side}': {'chambers': [f'{name}.{side}'], 'cylinder_bulk_modulus': '200 GPa',
                                           'hoses': [{'volume': '0.1 l', 'bulk_modulus': '500 MPa'}]}
                        for name in names for side in ('piston', 'rod')},
            'valves': {name: {'kind': 'unknown', 'ports': {'a': f'{name}_piston', 'b': f'{name}_rod'}}
                       for name in names}},
        'payload': {'point': 'jib.tip', 'limits': ['0', '1 t']},
        'sensors': {'position': {name: {'stddev': '1 mm'} for name in names}}}


def turn(axis, degrees):
    """Rotation about a coordinate axis, written out."""
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    first, second = {'x': (1, 2), 'y': (2, 0), 'z': (0, 1)}[axis]
    matrix = np.eye(3)
    matrix[first, first] = matrix[second, second] = cosine
    matrix[first, second], matrix[second, first] = -sine, sine
    return matrix


def test_frames_against_the_closed_form(tree):
    machine = parse_description(yaml.safe_dump(tree))
    placed = frames(machine)
    boom = turn('z', 50) @ turn('y', -20) @ turn('y', -10) @ turn('x', 15)
    pivot = np.array([1.0, 2.0, 0.0]) + turn('z', 50) @ [0.2, 0.0, 3.0]
    tip = pivot + boom @ ([2.4, 0.0, 0.0] + turn('z', 30) @ turn('x', 90) @ [1.0, 0.0, 0.3])
    assert point_position(machine, placed, PointRef('jib', 'tip')) == pytest.approx(tip, abs=1e-12)
    assert cylinder_length(machine, placed, 'reach') == pytest.approx(np.hypot(1.9, 0.1))
    rows = {row.name: row.value for section in explain(machine) for row in section.rows}
    assert rows['degrees of freedom'] == '3' and rows['jib'] == 'prismatic along (1, 0, 0)'
    assert rows['gravity'] == '(0, 1, -9.81) m/s^2'


def test_roll_pitch_yaw_turn_about_fixed_axes_in_this_order():
    rpy = tuple(Quantity(np.radians(angle)) for angle in (10.0, 20.0, 30.0))
    assert rpy_rotation(rpy) == pytest.approx(turn('z', 30) @ turn('y', 20) @ turn('x', 10), abs=1e-15)


def test_a_body_that_turns_about_two_axes_needs_all_moments(tree):
    tree['bodies']['boom']['inertia'] = {'yy': '1'}
    with pytest.raises(DescriptionError) as caught:
        parse_description(yaml.safe_dump(tree))
    assert caught.value.key == 'bodies.boom.inertia'
    tree['bodies']['boom']['inertia'] = {'yy': '1', 'zz': '1'}
    tree['joints']['boom'].update(start='0', rpy=['0', '0', '0'])   # both axes along the body's, for this moment only
    with pytest.raises(DescriptionError):
        parse_description(yaml.safe_dump(tree))
    tree['bodies']['boom']['inertia'] = ALL
    tree['bodies']['pillar']['inertia'] = {'zz': '1'}
    assert parse_description(yaml.safe_dump(tree)).bodies['pillar'].inertia[0].value == 0.0
