# SPDX-License-Identifier: Apache-2.0
"""Wrong machine files: each mistake is a DescriptionError whose key points to it, and says what would do."""

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linkage_mutations import dump, mutate
from machine_mutations import WRONG, key_of, machine_tree, misspelled, places, with_value, without
from source_tree import ROOT

from mbse_ros.description.explain import explain
from mbse_ros.description.load import load_mechanism, parse_mechanism
from mbse_ros.errors import DescriptionError, MbseError
from mbse_ros.machine import Machine

pytestmark = pytest.mark.usefixtures('vm')

LIFT = (ROOT / 'config' / 'machines' / 'patu655_lift.yaml').read_text()
ZX200 = (ROOT / 'config' / 'machines' / 'zx200.yaml').read_text()
FREE = ('source', 'offset', 'limits')      # keys under which some of the wrong words are right


def refusal(text):
    with pytest.raises(DescriptionError) as caught:
        Machine(parse_mechanism(text, 'x.yaml'))
    error = caught.value
    assert error.file == 'x.yaml' and error.expected and '\n' not in str(error) and len(str(error)) < 1500
    return error


def test_the_machine_itself_is_in_order():
    machine = Machine(parse_mechanism(dump(machine_tree())))
    assert len(machine.channels) == 14 and 'base pitch' in str(explain(machine.description))


@pytest.mark.parametrize('k, way', [pytest.param(k, way, id=key_of(way)) for k, way in enumerate(places())])
def test_wrong_values(k, way):
    """The key is that of the value, of a part of it, of what holds it or of what refers to it. By turns each place has
    one half of the wrong values: there are many places of each kind."""
    text = with_value(way, 'a wrong value')
    assert text.count('a wrong value') == 1
    for value in WRONG[k % 2::2]:
        try:
            parse_mechanism(text.replace('a wrong value', json.dumps(value)))     # which is YAML, too
        except DescriptionError as error:
            key, place = error.key, key_of(way)
            beside = key.rpartition('.')[0] == place.rpartition('.')[0]
            refers = way[0] == 'hydraulics' and key.startswith(('sensors', 'hydraulics.valves'))
            assert key and (key.startswith(place) or place.startswith(key) or beside or refers), (value, str(error))
        else:
            assert value in ('1e300', '', '.nan') or way[-1] in FREE, (way, value)


@pytest.mark.parametrize('way', places(), ids=key_of)
def test_missing_keys(way):
    """What is left out is optional, or the error names it or the section that lacks it."""
    try:
        description = parse_mechanism(without(way))
    except DescriptionError as error:
        assert error.key and (key_of(way[:1]) in error.key or error.key.startswith('sensors')), str(error)
    else:
        assert explain(description)


def test_keys_that_there_are_not():
    found = list(misspelled())
    assert len(found) > 25
    for way, text in found:
        with pytest.raises(DescriptionError) as caught:
            parse_mechanism(text)
        assert caught.value.key.startswith(key_of(way)), str(caught.value)


@settings(max_examples=120)
@given(st.integers(0, 2 ** 48).map(Random))
def test_random_changes(random):
    """A machine or a refusal, never anything else."""
    tree = machine_tree()
    for _ in range(random.choice([1, 1, 2, 3])):
        mutate(tree, random)
    try:
        machine = Machine(parse_mechanism(dump(tree)))
    except MbseError as error:
        assert all('\n' not in str(one) for one in getattr(error, 'errors', [error]))
    else:
        assert machine.coordinates and machine.channels


CASES = {       # what to replace, by what; the key of the error; words that show the way out
    'sensors that see no motion': (LIFT, '  lift_stroke: {kind: stroke, cylinder: lift, stddev: 0.4 mm}\n', '',
                                   'sensors', 'a position sensor that sees the motion of boom_joint: a stroke'),
    'a swing that is not seen': (ZX200, '  swing_angle: {kind: encoder, coordinate: swing_joint, stddev: 0.0004 rad}\n',
                                 '', 'sensors', 'sees the motion of swing_joint: a stroke, an encoder of a joint'),
    'a bucket that is not seen': (ZX200, '  bucket_stroke: {kind: stroke, cylinder: bucket, stddev: 1 mm}\n', '',
                                  'sensors', 'a position sensor that sees the motion of bucket: '),
    'an exact sensor': (LIFT, 'volume: lift_rod, stddev: 8 kPa', 'volume: lift_rod', 'sensors.lift_rod.stddev',
                        'a standard deviation or a resolution above 0'),
    'a pin out of reach': (LIFT, 'closed_length: 0.820 m', 'closed_length: 0.920 m', 'cylinders.lift',
                           '0.92 to 1.455 m, closed_length to closed_length + stroke'),
    'a start that no piston has': (ZX200, 'stroke: 0.625 m', 'stroke: 0.05 m', 'cylinders.boom',
                                   'from 0 to 0.05 m, the stroke: other `start`s of joints, `initial`, closed_length'),
    'a payload in the air': (LIFT, 'joints:', '  cage:\n    mass: 1 kg\n    center_of_mass: [0 m, 0 m, 0 m]\n'
                             '    inertia: {xx: 1 kg*m^2, yy: 1 kg*m^2, zz: 1 kg*m^2}\n    position: [0 m, 0 m, 0 m]\n'
                             '    points:\n      hook: [0 m, 0 m, 0 m]\n\njoints:',
                             'payload.point', 'a body that joints tie to the ground'),
    'a payload at the ground': (LIFT, 'point: boom.tip', 'point: ground.boom_pivot', 'payload.point', 'body'),
    'limits the wrong way': (LIFT, '[0 kg, 1000 kg]', '[1000 kg, 0 kg]', 'payload.limits', 'a lower and a higher mass'),
    'a chamber twice': (LIFT, 'chambers: [lift.rod]', 'chambers: [lift.piston]', 'hydraulics.volumes.lift_rod.chambers',
                        'each chamber in one volume, once'),
    'a valve between one volume': (LIFT, 'b: lift_rod}', 'b: lift_piston}', 'hydraulics.valves.lift_valve.ports.b',
                                   'another volume than port a'),
    'a pump below the tank': (LIFT, 'pump: 10 MPa', 'pump: 10 kPa', 'hydraulics.valves.lift_valve.ports.pump',
                              'a supply of higher pressure than the tank'),
    'an oil that is not known': (LIFT, '{value: 1650 MPa, stddev: 10 %}\n', '1 GPa\n  oil: hlp46\n', 'hydraulics.oil',
                                 'only one of the keys'),
    'an inclination without a base': (ZX200, 'sensors:\n', 'sensors:\n  pitch: {kind: inclination, axis: pitch, '
                                      'stddev: 1 deg}\n', 'sensors.pitch.kind',
                                      'the section `base`, such as `base: {}`'),
    'a sensor twice': (LIFT, 'sensors:\n', 'sensors:\n  again: {kind: stroke, cylinder: lift, stddev: 1 mm}\n',
                       'sensors.lift_stroke', 'one sensor a place, again measures this already'),
    'a sensor of no cylinder': (LIFT, 'cylinder: lift,', 'cylinder: left,', 'sensors.lift_stroke.cylinder',
                                'lift; did you mean lift?'),
    'a pressure of nothing': (LIFT, 'volume: lift_rod, stddev', 'stddev', 'sensors.lift_rod.volume',
                              'exactly one of the keys volume, supply')}


@pytest.mark.parametrize('name', CASES)
def test_what_a_machine_must_be(name):
    text, old, new, key, words = CASES[name]
    assert old in text
    text = text.replace(old, new, 1)
    if name == 'a payload in the air':
        text = text.replace('point: boom.tip', 'point: cage.hook')
    error = refusal(text)
    assert error.key.startswith(key) and words in error.expected, str(error)


ROBOT = '''<robot name="arm">
  <link name="base"/>
  <link name="boom"><inertial><origin xyz="1 0 0"/><mass value="100"/>
    <inertia ixx="1" iyy="30" izz="30" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="rod"/>
  <joint name="boom_joint" type="revolute"><parent link="base"/><child link="boom"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="cylinder" type="prismatic"><parent link="base"/><child link="rod"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="1" effort="1" velocity="1"/>{mimic}</joint>
</robot>
'''


def test_cylinders_of_a_robot_that_only_mimic(tmp_path):
    """Such joints follow another by a straight line; the way out is named: cylinders of the machine's file."""
    (tmp_path / 'arm.urdf').write_text(ROBOT.replace('{mimic}', '<mimic joint="boom_joint" multiplier="0.3"/>'))
    (tmp_path / 'x.yaml').write_text('format: mbse/machine/2\nname: x\ngravity: 9.81 m/s^2\nurdf: arm.urdf\n')
    with pytest.raises(DescriptionError) as caught:
        load_mechanism(tmp_path / 'x.yaml')
    error = caught.value
    assert error.key == 'robot.joint[cylinder].mimic' and 'boom_joint' in str(error)
    assert 'take it out' in error.expected and '`cylinders`' in error.expected
