# SPDX-License-Identifier: Apache-2.0
"""The file of a map: what it says, what is refused, and what zx200's says of everything that such machines publish."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from source_tree import ROOT
from sources_support import JOINTS, PACKAGE, header, joint_state, make, store, write

from mbse_ros.errors import BagError, DescriptionError
from mbse_ros.machine import load_machine
from mbse_ros.sources.fields import store_fields
from mbse_ros.sources.machine import for_machine, left_over
from mbse_ros.sources.map import known_sources, load_sources, parse_sources
from mbse_ros.sources.reader import find_namespace, sample_reader
from mbse_ros.sources.topic_samples import TopicSamples

pytestmark = pytest.mark.usefixtures('vm')

HEAD = 'format: mbse/sources/1\nchannels:\n'
BASE = '''
  base_roll: {kind: inclination, axis: roll, stddev: 0.1 deg}
  base_pitch: {kind: inclination, axis: pitch, stddev: 0.1 deg}
  boom_rate: {kind: rate, coordinate: boom_joint, stddev: 0.001 rad/s}
'''


def one(channel, entry):
    return parse_sources(f'{HEAD}  {channel}: {entry}\n', 'map.yaml').channels[channel][0]


def refused(text):
    with pytest.raises(DescriptionError) as raised:
        parse_sources(text, 'map.yaml')
    return str(raised.value)


@pytest.mark.parametrize('entry, number, expected', [
    ('unit: mm', 250.0, 0.25), ('unit: mm, offset: -820 mm', 1100.0, 0.28),
    ('unit: V, offset: -0.5 V, scale: 0.2 m/V', 3.0, 0.5),
    ('unit: mm, offset: -10 mm, scale: 2, sign: -1', 15.0, -0.01), ("unit: '1', scale: 0.5 m", 0.6, 0.3)])
def test_numbers_become_si(entry, number, expected):
    """(number * unit + offset) * scale * sign, as of a table's column."""
    source = one('position/lift', f'{{topic: a, path: data, {entry}}}')
    assert source.gain * number + source.bias == pytest.approx(expected, rel=1e-12) and source.unit == 'm'


def test_what_holds_for_a_topic_holds_for_its_channels():
    found = parse_sources('''
format: mbse/sources/1
topics:
  a: {type: std_msgs/Float64, stamp: arrival, rate: 50 Hz, delay: 20 ms}
channels:
  position/lift: {topic: a, path: data, unit: m}
  pressure/pump: {topic: a, path: data, unit: bar, rate: 10 Hz, optional: true}
  pressure/tank: [{topic: b, path: data, unit: bar}, {topic: /c/d, path: data, unit: Pa, stamp: x.header}]
''')
    lift, pump = found.channels['position/lift'][0], found.channels['pressure/pump'][0]
    assert (lift.type, lift.stamp, lift.rate, lift.delay_ns) == ('std_msgs/msg/Float64', 'arrival', 50.0, 20_000_000)
    assert (pump.stamp, pump.rate, pump.optional) == ('arrival', 10.0, True) and not lift.optional
    assert [way.topic for way in found.channels['pressure/tank']] == ['b', '/c/d']
    assert found.channels['pressure/tank'][0].stamp == 'header'


@pytest.mark.parametrize('entry, expected', [
    ('{path: data, unit: m}', 'position/lift.topic: got None'),
    ('{topic: a, path: data}', 'position/lift.unit: got None'),
    ('{topic: a b, path: data, unit: m}', 'the name of a topic such as joint_states'),
    ('{topic: a, path: data, unit: m, type: Float64}', 'a message type such as'),
    ('{topic: a, path: "da ta", unit: m}', 'a path such as position[name=boom_joint]'),
    ('{topic: a, path: data, unit: m, stamp: "no w"}', 'position/lift.stamp'),
    ('{topic: a, path: data, unit: m, stamp: now, rate: 5}', 'such as 100 Hz'),
    ('{topic: a, path: data, unit: m, rate: 0 Hz}', 'a rate above 0'),
    ('{topic: a, path: data, unit: m, delay: 3 mm}', 'such as 20 ms'),
    ('{topic: a, path: data, unit: m, sign: -2}', '+1 or -1'),
    ('{topic: a, path: data, unit: m, scale: 0}', 'a number that is not 0'),
    ('{topic: a, path: data, unit: Pa}', 'a unit of m or rad (m, mm, cm, rad, deg), or a scale'),
    ('{topic: a, path: data, unit: m, optional: maybe}', 'true or false'),
    ('{topic: a, path: data, unit: m, units: m}', 'did you mean unit?'),
    ('[]', 'position/lift'), ('data', 'a mapping with the keys')])
def test_what_is_refused(entry, expected):
    line = refused(f'{HEAD}  position/lift: {entry}\n')
    assert line.startswith('map.yaml: channels.position/lift') and expected in line, line


def test_other_mistakes():
    assert "got 'angle/boom', expected a mapping from channels such as position/lift" in refused(
        f'{HEAD}  angle/boom: {{topic: a, path: b, unit: rad}}\n')
    assert 'format' in refused('format: mbse/table/1\nchannels: {}\n')
    assert 'channels' in refused('format: mbse/sources/1\nchannels: {}\n')
    assert "topics.joint: got 'joint', expected a topic of one of the channels: a" in refused(
        f'{HEAD}  position/lift: {{topic: a, path: b, unit: m}}\ntopics: {{joint: {{stamp: arrival}}}}\n')
    with pytest.raises(DescriptionError, match='zx200_opera'):
        load_sources('zx200')
    with pytest.raises(DescriptionError, match='readable'):
        load_sources('nowhere.yaml')
    assert not load_sources('none').channels


def test_all_errors_of_a_map_are_said_at_once():
    """Those that differ only in the channel share a line."""
    lines = refused('''
format: mbse/sources/1
topics: {a: {type: Float64}}
channels:
  position/lift: {topic: a b, path: data, unit: Pa, sign: 2}
  angle/boom: {topic: a, path: data, unit: m}
  pressure/pump: {topic: a, path: data, units: bar}
  pressure/tank: [{topic: a, path: data, unit: bar}, {topic: b, unit: mm}]
  pressure/boom_rod: {topic: a, path: data, unit: mm}
''').splitlines()
    assert lines[0] == 'map.yaml: 9 errors' and len(lines) == 9
    for text in ('position/lift.topic: got', 'position/lift.sign: got', "position/lift.unit: got 'Pa'",
                 'angle/boom: got', "pressure/pump.units: got 'units'", 'topics.a.type: got',
                 'pressure/tank[1].path: got None', 'pressure/tank[1].unit, channels.pressure/boom_rod.unit: got'):
        assert sum(text in line for line in lines) == 1, (text, lines)


@given(st.text(max_size=60))
def test_any_text_is_a_map_or_an_error_in_words(text):
    try:
        parse_sources(f'{HEAD}  position/lift: {{topic: a, path: "{text}", unit: m}}\n')
    except DescriptionError:
        pass


@pytest.mark.parametrize('name', known_sources())
def test_shipped_maps_fit_their_machine(name):
    """All channels of the machine are in it, and nothing else that is not optional."""
    machine = load_machine('zx200_can')
    found = for_machine(load_sources(name), machine)
    assert left_over(found, machine) == ((), ()) and set(found.channels) == {*machine.channels, *machine.commands}
    unknown = load_machine('zx200_can', 'unknown')
    assert set(for_machine(load_sources(name), unknown).channels) == set(unknown.channels)
    with pytest.raises(DescriptionError, match='position/boom_joint'):
        for_machine(load_sources(name), load_machine('zx200'))


def zx200_messages(types, stamp, roll, pitch):
    """Everything that zx200 publishes, one message of each."""
    x, y, z, w = Rotation.from_euler('xyz', [roll, pitch, 2.0]).as_quat()
    vector = make(types, 'geometry_msgs/msg/Vector3', x=0.0, y=0.0, z=0.0)

    yield '/zx200/joint_states', 'sensor_msgs/msg/JointState', stamp, joint_state(
        types, stamp, [*JOINTS, 'right_track_joint'], [0.1, -0.5, 1.0, 0.2, 0.0], [0.01, 0.02, 0.03, 0.04, 0.0])
    yield '/zx200/upper_body_rot', 'sensor_msgs/msg/Imu', stamp, make(
        types, 'sensor_msgs/msg/Imu', header=header(types, stamp), angular_velocity=vector, linear_acceleration=vector,
        orientation=make(types, 'geometry_msgs/msg/Quaternion', x=x, y=y, z=z, w=w),
        **{f'{name}_covariance': np.zeros(9) for name in ('orientation', 'angular_velocity', 'linear_acceleration')})
    yield '/zx200/main_fluid_pressure', f'{PACKAGE}/msg/FluidPressureArray', stamp, make(
        types, f'{PACKAGE}/msg/FluidPressureArray', array=[make(
            types, 'sensor_msgs/msg/FluidPressure', header=header(types, stamp, f'{part}_main_pressure'),
            fluid_pressure=1e6 * k, variance=0.0) for k, part in enumerate(
                ('boom_up', 'boom_down', 'arm_crowd', 'arm_dump', 'bucket_crowd', 'bucket_dump'), 1)])
    yield '/zx200/front_cmd', f'{PACKAGE}/msg/JointCmd', stamp + 500, make(
        types, f'{PACKAGE}/msg/JointCmd', joint_name=['bucket_joint', 'arm_joint', 'boom_joint', 'swing_joint'],
        control_type=2, effort=np.array([0.3, 0.2, -0.5, 0.0]), position=np.zeros(4), velocity=np.zeros(4))


def test_attitude_rates_and_commands_of_zx200(tmp_path):
    """With a file of the machine that measures them: Imu, velocities, JointCmd without a header."""
    text = (ROOT / 'config' / 'machines' / 'zx200_can.yaml').read_text().rstrip()
    file = tmp_path / 'zx200_base.yaml'
    file.write_text(f'{text}{BASE}base: {{}}\n')
    machine, stamp = load_machine(file), 1_700_000_000_000_000_000
    bag = write(tmp_path / 'bag', store(), zx200_messages(store(), stamp, 0.05, -0.12))
    found = {sample.channel: sample for sample in sample_reader(bag, machine, sources=load_sources('zx200_opera'))}
    values = {name: sample.value for name, sample in found.items()}
    assert values == pytest.approx({
        **{f'position/{name}': value for name, value in zip(JOINTS, (0.1, -0.5, 1.0, 0.2))},
        'velocity/boom_joint': 0.02, 'position/base_roll': 0.05, 'position/base_pitch': -0.12,
        **{f'pressure/{name}': 1e6 * k for k, name in enumerate(machine.volumes, 1)},
        'command/boom_valve': 5.0, 'command/arm_valve': 2.0, 'command/bucket_valve': 3.0}, abs=1e-12)
    assert found['command/arm_valve'].stamp_ns == stamp + 500 and found['position/base_roll'].stamp_ns == stamp


def test_delay_is_taken_off_the_stamp():
    types = store(False)
    source = one('position/lift', '{topic: a, path: data, unit: m, stamp: arrival, delay: 20 ms}')
    topic = TopicSamples('/a', [source], 'std_msgs/msg/Float64', store_fields(types))
    assert topic.samples({'data': 2.0}, 10 ** 9, pytest.fail) == [
        ('position/lift', 10 ** 9 - 20_000_000, 2.0, 1.0)]
    refused = []
    assert not topic.samples({'data': math.nan}, 10 ** 9, refused.append) and refused[0].why == 'not finite'


def test_the_namespace_that_serves_most_channels():
    sources = parse_sources(HEAD + '  position/lift: {topic: j, path: data, unit: m}\n'
                                   '  pressure/pump: {topic: p, path: data, unit: Pa, type: std_msgs/msg/Float64}\n')
    kind = 'std_msgs/msg/Float64'
    assert find_namespace(sources, {'/a/j': kind, '/b/j': kind, '/b/p': kind}, None, 'bag') == '/b'
    assert find_namespace(sources, {'/a/j': kind, '/b/j': kind, '/b/p': 'x/msg/Y', '/a/p': kind}, None, 'bag') == '/a'
    assert find_namespace(sources, {'/j': kind, '/p': kind}, None, 'bag') == ''
    assert find_namespace(sources, {'/a/j': kind, '/b/j': kind}, 'b', 'bag') == '/b'
    with pytest.raises(BagError, match='choose a namespace: /a, /b'):
        find_namespace(sources, {'/a/j': kind, '/b/j': kind}, None, 'bag')
