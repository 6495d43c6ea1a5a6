# SPDX-License-Identifier: Apache-2.0
"""``mbse topics``: what it lists, the map that it proposes, why, and what it leaves open."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from cli_support import mbse, refused
from rosbags.typesys import Stores, get_typestore
from sources_support import (
    JOINTS,
    LABELS,
    MACHINE,
    PACKAGE,
    TRACKS,
    VOLUMES,
    fluid_pressure,
    joint_state,
    make,
    multi_array,
    pressure_array,
    store,
    write,
)

from mbse_ros.machine import load_machine
from mbse_ros.sources.fields import parse_path, path_text, store_fields
from mbse_ros.sources.map import parse_sources
from mbse_ros.sources.propose import proposal_text, propose
from mbse_ros.sources.survey import MOST, Survey, TopicSurvey, leaves, stated_unit
from mbse_ros.sources.words import parts_in, sides_in, words

TYPES = get_typestore(Stores.ROS2_JAZZY)
FIELDS = store_fields(TYPES)
JOINT_STATE, MULTI = 'sensor_msgs/msg/JointState', 'std_msgs/msg/Float64MultiArray'
PRESSURES = (34.0, 12.0, 7.0, 16.0, 4.0, 9.0)      # MPa, largest of each volume
MIDDLE = (0.1, -0.6, 1.2, 0.5)                     # rad
T0 = 1_700_000_000 * 10 ** 9


def motion(count=100):
    """Angles and pressures over time: each has a range of its own."""
    wave = np.sin(np.linspace(0.0, 6.0, count))
    return [(T0 + 10_000_000 * k, [middle + 0.3 * wave[k] for middle in MIDDLE],
             [1e6 * largest * (0.6 + 0.4 * wave[k]) for largest in PRESSURES]) for k in range(count)]


def proposed(messages, machine='zx200_can', fields=FIELDS):
    survey = Survey(fields)
    for topic, msgtype, stamp, message in messages:
        survey.add(topic, msgtype, stamp, message)
    return propose(survey.topics, load_machine(machine))


def joints(stamp, angles, names=JOINTS):
    return '/rig/joints', JOINT_STATE, stamp, joint_state(TYPES, stamp, names, angles)


def labelled(labels, factor=1e-6, extra=()):
    for stamp, angles, values in motion():
        yield joints(stamp, angles)
        data = [factor * value for value in values]
        yield '/rig/hydraulics', MULTI, stamp, multi_array(TYPES, [*labels, *(name for name, _ in extra)],
                                                           [*data, *(value for _, value in extra)])


def chosen(proposal):
    return {name: (guess.candidate.text, guess.fits[0].unit) for name, guess in proposal.guesses.items()}


@pytest.mark.parametrize('labels', [
    LABELS, ['boomHead', 'boomRod', 'stickHead', 'stickRod', 'bucketHead', 'bucketRod'],
    ['P_BOOM_CAP', 'P_BOOM_RING', 'P_DIPPER_CAP', 'P_DIPPER_RING', 'P_SHOVEL_CAP', 'P_SHOVEL_RING']])
def test_names_of_other_people(labels):
    found = chosen(proposed(labelled(labels, extra=[('boom_pilot_pressure', 2.0), ('oil_temperature', 50.0)])))
    assert {name: found[f'pressure/{name}'] for name in VOLUMES} == {
        name: (f'data[layout.dim.label={label}]', 'MPa') for name, label in zip(VOLUMES, labels)}
    assert all(found[f'position/{name}'] == (f'position[name={name}]', 'rad') for name in JOINTS)


@pytest.mark.parametrize('unit, factor', [('Pa', 1.0), ('kPa', 1e-3), ('bar', 1e-5), ('MPa', 1e-6)])
def test_units_of_pressures_by_the_largest_of_them(unit, factor):
    found = proposed(labelled(LABELS, factor))
    assert {found.guesses[f'pressure/{name}'].fits[0].unit for name in VOLUMES} == {unit}
    told = ' '.join(found.guesses['pressure/boom_rod'].doubts)
    assert ('could be in bar as well' in told) == (unit == 'MPa')       # 34 bar is little, but possible


def test_angles_in_degrees():
    def degrees():
        for stamp, angles, _ in motion():
            yield joints(stamp, np.degrees(angles))
    found = chosen(proposed(degrees()))
    assert {found[f'position/{name}'][1] for name in JOINTS} == {'deg'}


def test_numbers_have_no_exponent():
    """The stroke of a cylinder, whose range the machine's file has, on a topic at 200 Hz."""
    stamps = range(T0, T0 + 500_000_000, 5_000_000)
    found = proposed([('/rig/strokes', JOINT_STATE, stamp, joint_state(TYPES, stamp, ['lift'], [5e-8 * (stamp - T0)]))
                      for stamp in stamps], 'patu655_lift')
    text = proposal_text(found, load_machine('patu655_lift'), {}, 'a bag')
    assert 'rate: 200 Hz' in text and ' to 247 mm of 0 mm to 535 mm as cm' in text and 'e+0' not in text


def test_a_name_without_possible_values_stays_open():
    def idle():
        for stamp, angles, _ in motion():
            yield joints(stamp, [angles[0], 5.0 + angles[1], *angles[2:]])
            yield '/rig/hydraulics', MULTI, stamp, multi_array(TYPES, LABELS, [1e-3 * value for value in PRESSURES])
    found = proposed(idle())
    assert 'position/boom_joint' not in found.guesses and 'pressure/boom_rod' not in found.guesses
    assert 'position[name=boom_joint] of /rig/joints has a fitting name, but' in found.left['position/boom_joint']
    assert 'is possible in no unit' in found.left['pressure/boom_rod']


def test_the_other_side_of_a_piston_is_no_guess():
    """Nor is another part, where the right one was not recorded."""
    rods = [label.replace('bottom', 'ring') for label in LABELS]
    found = proposed(labelled([f'{name}_{k}' for k, name in enumerate(rods)]))
    assert not {name for name in found.guesses if name.endswith('_piston')}
    found = proposed(labelled([label.replace('arm', 'blade') for label in LABELS]))
    assert 'pressure/arm_rod' not in found.guesses and 'pressure/boom_rod' in found.guesses


def test_numbers_without_names_stay_open():
    """Any of six could be any of six."""
    def nameless():
        for stamp, angles, values in motion():
            yield joints(stamp, angles, ['j1', 'j2', 'j3', 'j4'])
            yield '/rig/p', MULTI, stamp, multi_array(TYPES, [], values)
    found = proposed(nameless())
    assert not found.guesses
    assert 'no name decides; possible by their values: data[' in found.left['pressure/boom_rod']
    assert 'position[name=j3] of /rig/joints' in found.left['position/arm_joint']       # that alone is in its range
    assert 'valve: unknown' in found.left['command/boom_valve']


def test_the_only_position_of_one_cylinder_pin_to_pin():
    """Nameless, but nothing else fits; in mm from pin to pin, by the closed length of the machine's file."""
    lift = load_machine('patu655_lift').description.cylinders['lift']

    def one():
        for stamp, _, values in motion():
            share = (values[0] / 1e6 - 10.0) / 30.0
            length = lift.closed_length.value + lift.stroke.value * (0.1 + 0.8 * share)
            yield '/plc/wire', 'std_msgs/msg/Float64', stamp, make(TYPES, 'std_msgs/msg/Float64', data=1e3 * length)
            for port, value in zip('AB', values):
                yield f'/plc/p_{port}', 'sensor_msgs/msg/FluidPressure', stamp, fluid_pressure(
                    TYPES, stamp, '', value)
    found = proposed(one(), 'patu655_lift')
    guess = found.guesses['position/lift']
    assert (guess.candidate.topic, guess.fits[0].unit, guess.fits[0].offset) == ('/plc/wire', 'mm', '-0.82 m')
    assert 'no name supports it, but no other number is possible' in guess.doubts


def test_messages_that_alternate_on_one_topic():
    survey = Survey(FIELDS)
    for k in range(3 * MOST):
        labels, data = (LABELS, PRESSURES) if k % 2 else (TRACKS, (1.0, 2.0))
        survey.add('/p', MULTI, T0 + 5_000_000 * k, multi_array(TYPES, labels, data))
    topic = survey.topics['/p']
    assert topic.rate == pytest.approx(200.0, rel=1e-6) and len(topic.values) == 8
    shares = [len(topic.series(path)) / len(topic.values[path]) for path in topic.values]
    assert all(0.4 < share < 0.6 for share in shares) and len(next(iter(topic.values.values()))) < MOST


def test_what_is_printed_is_a_map_that_works(tmp_path):
    """From a bag to a map to samples; its comments say why; it never overwrites."""
    def messages():
        types = store()
        for stamp, angles, values in motion():
            yield '/zx200/joint_state', JOINT_STATE, stamp, joint_state(types, stamp, JOINTS, angles)
            yield '/zx200/main_fluid_pressure', f'{PACKAGE}/msg/FluidPressureArray', stamp, pressure_array(
                types, stamp, ['boom_up', 'boom_down', 'arm_crowd', 'arm_dump', 'bucket_crowd', 'bucket_dump'], values)
    bag = write(tmp_path / 'bag', store(), messages())
    done = mbse('topics', bag)
    assert done.status == 0 and 'format' not in done.out
    assert '/zx200/main_fluid_pressure  com3_msgs/msg/FluidPressureArray' in done.out and 'array[0].header' in done.out
    done = mbse('topics', bag, '--machine', 'zx200_can')
    found = parse_sources(done.out)
    assert done.status == 0 and set(found.channels) == {*(f'position/{name}' for name in JOINTS),
                                                        *(f'pressure/{name}' for name in VOLUMES)}
    assert '# name: boom, piston side; ' in done.out and '# Left open:\n#   command/boom_valve' in done.out
    file = tmp_path / 'map.yaml'
    assert mbse('topics', bag, '--machine', 'zx200_can', '-o', file).status == 0
    assert 'is not overwritten' in refused('topics', bag, '--machine', 'zx200_can', '-o', file)
    done = mbse('import', bag, *MACHINE, '--sources', file, '-o', tmp_path / 'out')
    assert done.status == 0 and done.out.count('pressure/') == 6 and not done.err, done
    assert 'needs a machine: --machine NAME' in refused('topics', bag, '-o', tmp_path / 'other.yaml')
    nothing = mbse('topics', bag, '--machine', 'patu655_lift')
    assert nothing.status == 1 and '# Nothing was found; left open:' in nothing.out


def test_our_own_topics_need_no_map(tmp_path):
    assert mbse('simulate', 'patu655_lift', '-o', tmp_path / 'bag').status == 0
    done = mbse('topics', tmp_path / 'bag', '--machine', 'patu655_lift')
    assert done.status == 0 and 'they are found without a map' in done.out
    assert {ways[0].topic for ways in parse_sources(done.out).channels.values()} == {
        '/sensors/position', '/sensors/pressure/lift_piston', '/sensors/pressure/lift_rod'}


@pytest.mark.parametrize('text, parts, sides', [
    ('boomCylinderHead', {'boom'}, {'piston'}), ('STICK_ROD', {'arm'}, {'rod'}), ('arm_crowd', {'arm'}, {'piston'}),
    ('p2', set(), set()), ('slewAngle', {'swing'}, set()), ('bucket-cap 1', {'bucket'}, {'piston'})])
def test_words(text, parts, sides):
    assert parts_in(words(text)) == parts and sides_in(words(text)) == sides


def test_numbers_of_a_message():
    message = joint_state(TYPES, 1, ['a', 'b'], [1.0, 2.0], [3.0])
    found = [path_text(path) for path in leaves(message, JOINT_STATE, FIELDS)]
    assert found == ['position[name=a]', 'position[name=b]', 'velocity[0]']
    twice = multi_array(TYPES, ['x', 'x'], [1.0, 2.0])
    assert [path_text(path) for path in leaves(twice, MULTI, FIELDS)] == ['data[0]', 'data[1]']
    long = multi_array(TYPES, [], np.zeros(1000))
    assert not list(leaves(long, MULTI, FIELDS))
    stamped = message.header
    imu = partial(make, TYPES)
    vector = imu('geometry_msgs/msg/Vector3', x=1.0, y=2.0, z=3.0)
    found = [path_text(path) for path in leaves(imu(
        'sensor_msgs/msg/Imu', header=stamped, orientation=imu(
            'geometry_msgs/msg/Quaternion', x=0.0, y=0.0, z=0.0, w=1.0),
        orientation_covariance=np.zeros(9), angular_velocity=vector, angular_velocity_covariance=np.zeros(9),
        linear_acceleration=vector, linear_acceleration_covariance=np.zeros(9)), 'sensor_msgs/msg/Imu', FIELDS)]
    assert found == ['orientation.roll', 'orientation.pitch', *(f'angular_velocity.{a}' for a in 'xyz'),
                     *(f'linear_acceleration.{a}' for a in 'xyz')]


@pytest.mark.parametrize('topic, msgtype, path, unit', [
    ('/state', 'mbse_ros/msg/HydraulicState', 'mean[names=pressure/lift_rod]', 'Pa'),
    ('/state', 'mbse_ros/msg/HydraulicState', 'innovation_stddev[channels=position/lift]', 'm or rad'),
    ('/state', 'mbse_ros/msg/HydraulicState', 'mean[names=payload/mass]', 'kg'),
    ('/state', 'mbse_ros/msg/HydraulicState', 'nis', ''), ('/segment', 'mbse_ros/msg/SensorSegment', 'values[3]', ''),
    ('/segment', 'mbse_ros/msg/SensorSegment', 'repeats[channels=position/lift]', ''),
    ('/payload', 'mbse_ros/msg/PayloadEstimate', 'stddev', 'kg'),
    ('/payload', 'mbse_ros/msg/PayloadEstimate', 'samples', ''), ('/f', 'mbse_ros/msg/ToolForce', 'force[0]', 'N'),
    ('/f', 'mbse_ros/msg/ToolForce', 'mass_stddev', 'kg'), ('/truth', 'mbse_ros/msg/MachineTruth', 'payload', 'kg'),
    ('/a/sensors/valve_command', 'sensor_msgs/msg/JointState', 'position[name=boom]', 'V'),
    ('/joint_states', 'sensor_msgs/msg/JointState', 'effort[name=boom]', 'N or N m or A'),
    ('/x', 'my_msgs/msg/Imus', 'imus[2].angular_velocity.z', 'rad/s'), ('/x', 'my_msgs/msg/X', 'position[2]', ''),
    ('/x', 'my_msgs/msg/X', 'mean[names=pressure/boom]', ''), ('/x', 'my_msgs/msg/X', 'mass', '')])
def test_the_unit_is_that_of_the_type_of_the_message(topic, msgtype, path, unit):
    """And none where another's field has a name that ours has, too: it may be in mm."""
    assert stated_unit(topic, TopicSurvey(msgtype), parse_path(path)) == unit
