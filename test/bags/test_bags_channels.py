# SPDX-License-Identifier: Apache-2.0
"""Velocity, gyro and accelerometer channels: written, read back equal, beside the channels that were there before."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from bags_samples import PERIOD_NS, write_bag
from cli_support import mbse

from mbse_ros.bags.bag import Bag, decode
from mbse_ros.bags.channels import COMMANDS, OF_MECHANISMS, SENSORS, UNITS, ChannelName, parse_channel
from mbse_ros.bags.messages import header
from mbse_ros.bags.reader import Sample, SampleReader
from mbse_ros.bags.table import import_table, load_table_map
from mbse_ros.bags.topics import IMU, TopicMap
from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import BagError

STORAGES = ('mcap', 'sqlite3')
CHANNELS = ('position/lift', 'position/base_pitch', 'velocity/lift', 'velocity/slew', 'pressure/lift_rod',
            'pressure/pump', 'gyro/boom', 'gyro/cabin.x', 'gyro/cabin.y', 'gyro/cabin.z', 'accelerometer/cabin.x',
            'accelerometer/cabin.y', 'accelerometer/boom', 'accelerometer/tip.z')
JOINT_STATE = 'sensor_msgs/msg/JointState'


def values(k):
    """Samples of one instant, different in every channel; one missing."""
    found = {channel: 10.0 * place + 0.1 * k for place, channel in enumerate(CHANNELS)}
    return found | ({'gyro/cabin.y': math.nan} if k == 3 else {})


@pytest.fixture(params=STORAGES)
def bag(request, tmp_path):
    with BagWriter(tmp_path / 'bag', request.param, '/crane', 'crane') as writer:
        for k in range(5):
            writer.write_samples(k * PERIOD_NS, values(k), {'command/lift_valve': 0.5})
    return tmp_path / 'bag'


def by_channel(samples):
    """(stamp, value) by channel."""
    found = {}
    for sample in samples:
        found.setdefault(sample.channel, []).append((sample.stamp_ns, sample.value))
    return found


def test_all_channels_come_back_equal(bag):
    reader = SampleReader(bag, CHANNELS, ('command/lift_valve',))
    found = by_channel(reader)
    assert reader.namespace == '/crane' and reader.warnings == [] and list(reader.refused) == []
    for channel in CHANNELS:
        np.testing.assert_array_equal(found[channel], [(k * PERIOD_NS, values(k)[channel]) for k in range(5)])
    assert found['command/lift_valve'] == [(k * PERIOD_NS, 0.5) for k in range(5)] and len(found) == len(CHANNELS) + 1


def test_topics_and_fields(bag):
    """As any program sees them: what is not measured is NaN, or has a covariance that begins with -1."""
    source, messages = Bag(bag), {}
    for raw in source.messages():
        messages.setdefault(raw.topic, decode(raw))
    assert {topic for topic, kind in source.topics.items() if kind == IMU} == {
        f'/crane/sensors/imu/{name}' for name in ('boom', 'cabin', 'tip')}
    joints = messages['/crane/sensors/position']
    assert joints.name == ['lift', 'base_pitch', 'slew'] and joints.header.frame_id == 'crane'
    np.testing.assert_array_equal(joints.position, [0.0, 10.0, np.nan])
    np.testing.assert_array_equal(joints.velocity, [20.0, np.nan, 30.0])
    cabin, tip = messages['/crane/sensors/imu/cabin'], messages['/crane/sensors/imu/tip']
    assert (cabin.angular_velocity.x, cabin.angular_velocity.y, cabin.angular_velocity.z) == (70.0, 80.0, 90.0)
    assert cabin.linear_acceleration.y == 110.0 and math.isnan(cabin.linear_acceleration.z)
    assert cabin.orientation_covariance[0] == tip.angular_velocity_covariance[0] == -1.0
    assert not cabin.angular_velocity_covariance.any() and not tip.linear_acceleration_covariance.any()


def test_some_of_the_channels(bag):
    """Of what shares a message only what was asked for; IMUs nobody asked for are named where one was."""
    assert set(by_channel(SampleReader(bag, ['velocity/slew']))) == {'velocity/slew'}
    assert set(by_channel(SampleReader(bag, ['gyro/cabin.z']))) == {'gyro/cabin.z'}
    reader = SampleReader(bag, ['position/lift', 'gyro/boom.x'])
    assert set(by_channel(reader)) == {'position/lift', 'gyro/boom.x'}
    assert [line for line in reader.warnings if 'imu' in line] == [
        f'/crane/sensors/imu/{name}: no channel of the machine, not read' for name in ('cabin', 'tip')]
    assert not any('imu' in line for line in SampleReader(bag, ['position/lift']).warnings)


def test_an_accelerometer_alone_has_no_gyro(bag):
    reader = SampleReader(bag, ['gyro/tip.x', 'accelerometer/tip.z'])
    assert set(by_channel(reader)) == {'accelerometer/tip.z'} and 'gyro/tip.x: no sample in the bag' in reader.warnings


@pytest.mark.parametrize('storage', STORAGES)
def test_velocities_without_positions(tmp_path, storage):
    with BagWriter(tmp_path / 'bag', storage) as writer:
        writer.write_samples(7, {'velocity/lift': 0.25})
        writer.write_samples(8, {'position/lift': 0.5})
    reader = SampleReader(tmp_path / 'bag', ['velocity/lift', 'position/lift'])
    assert list(reader) == [Sample('velocity/lift', 7, 0.25), Sample('position/lift', 8, 0.5)]
    assert reader.warnings == []


def test_an_old_bag_has_no_velocity_and_reads_as_before(tmp_path):
    write_bag(tmp_path / 'bag')
    reader = SampleReader(tmp_path / 'bag', ['position/lift', 'velocity/lift', 'gyro/boom'])
    assert set(by_channel(reader)) == {'position/lift'}
    assert reader.warnings[-2:] == ['velocity/lift: no sample in the bag', 'gyro/boom: no sample in the bag']


def test_fields_of_wrong_length(tmp_path):
    """The other field is read; a bag whose velocities nobody asks for is read as before."""
    with BagWriter(tmp_path / 'bag') as writer:
        for stamp, position, velocity in ((0, [0.1], [1.0, 2.0]), (1, [], [3.0]), (2, [], []), (3, [0.2, 0.3], [4.0])):
            writer.write('sensors/position', JOINT_STATE, stamp, {
                'header': header(stamp, ''), 'name': ['lift'], 'position': position, 'velocity': velocity})
    reader = SampleReader(tmp_path / 'bag', ['position/lift', 'velocity/lift'])
    assert list(reader) == [Sample('position/lift', 0, 0.1), Sample('velocity/lift', 1, 3.0),
                            Sample('velocity/lift', 3, 4.0)]
    assert [(error.stamp_ns, error.value, error.expected) for error in reader.refused] == [
        (0, '2 velocities', 'as many velocities as names'), (2, '0 positions', 'as many positions as names')]
    reader = SampleReader(tmp_path / 'bag', ['position/lift'])
    assert list(reader) == [Sample('position/lift', 0, 0.1)]
    assert [(error.stamp_ns, error.value) for error in reader.refused] == [(1, '0 positions')]


def test_the_namespace_of_imus_counts_only_where_nothing_else_shows_one(tmp_path):
    with BagWriter(tmp_path / 'both') as writer:
        writer.write('/rover/sensors/imu/mast', IMU, 0, {'header': header(0, '')})
        writer.write('/crane/sensors/position', JOINT_STATE, 0, {'header': header(0, ''), 'name': ['lift'],
                                                                 'position': [0.1]})
    assert SampleReader(tmp_path / 'both', ['position/lift']).namespace == '/crane'
    with BagWriter(tmp_path / 'imu', namespace='yard') as writer:
        writer.write_samples(5, {'gyro/boom': 1.0})
    assert list(SampleReader(tmp_path / 'imu', ['gyro/boom'])) == [Sample('gyro/boom', 5, 1.0)]


def test_imu_topics_of_another_name_and_type(tmp_path):
    topics = TopicMap(imu='/imus')
    with BagWriter(tmp_path / 'bag', topics=topics) as writer:
        writer.write_samples(5, {'accelerometer/boom.y': 9.8})
    assert list(Bag(tmp_path / 'bag').topics) == ['/imus/boom']
    assert list(SampleReader(tmp_path / 'bag', ['accelerometer/boom.y'], topics=topics))[0].value == 9.8
    with BagWriter(tmp_path / 'other') as writer:
        writer.write('sensors/imu/boom', 'std_msgs/msg/Float64', 0, {'data': 1.0})
    with pytest.raises(BagError, match='is a std_msgs/msg/Float64, expected sensor_msgs/msg/Imu'):
        SampleReader(tmp_path / 'other', ['gyro/boom'])


@pytest.mark.parametrize('samples, commands, text', [
    ({'pressure/rod': 1.0, 'flow/lift': 1.0}, {}, 'flow/lift is not a channel such as position/lift, velocity/lift, '),
    ({'pressure/rod': 1.0, 'gyro/boom.w': 1.0}, {}, 'gyro/boom.w is not a channel such as .* gyro/boom.z'),
    ({'pressure/rod': 1.0, 'position/': 1.0}, {}, 'position/ is not a channel'),
    ({'pressure/rod': 1.0, 'position': 1.0}, {}, 'position is not a channel'),
    ({'pressure/rod': 1.0, 'gyro/.x': 1.0}, {}, 'gyro/.x is not a channel'),
    ({'pressure/rod': 1.0, 'command/valve': 1.0}, {}, 'command/valve is not a channel'),
    ({'pressure/rod': 1.0}, {'position/lift': 1.0}, 'position/lift is not a channel such as command/lift_valve'),
    ({'pressure/rod': 1.0, 'gyro/boom': 1.0, 'gyro/boom.z': 1.0}, {}, 'gyro/boom.z is a second value of axis z')])
def test_unknown_kinds_are_refused_and_nothing_is_written(tmp_path, samples, commands, text):
    with BagWriter(tmp_path / 'bag') as writer:
        with pytest.raises(BagError, match=f'{tmp_path}/bag: {text}'):
            writer.write_samples(0, samples, commands)
        assert writer.count == 0
        writer.write_samples(0, {'pressure/rod': 1.0})
    if 'second' not in text:
        with pytest.raises(BagError, match=text):
            SampleReader(tmp_path / 'bag', samples, commands)


def test_names_of_channels():
    assert parse_channel('gyro/boom') == ChannelName('gyro', 'boom', 'z') == parse_channel('gyro/boom.z')
    assert parse_channel('accelerometer/boom') == ChannelName('accelerometer', 'boom', 'x')
    assert parse_channel('position/base_pitch') == ChannelName('position', 'base_pitch')
    assert sorted((*SENSORS, *COMMANDS, *OF_MECHANISMS)) == sorted(UNITS)


MAP = '''
format: mbse/table/1
name: crane
time: {column: t, unit: s}
channels:
  position/lift: {column: s, unit: mm, offset: -0.82 m}
  velocity/lift: {column: v, unit: mm/s}
  position/base_pitch: {column: pitch, unit: deg, offset: -1 deg}
  position/boom: {column: U, unit: V, offset: -0.5 V, scale: 45 deg/V}
  velocity/boom: {column: rate, unit: deg/s}
  pressure/pump: {column: p, unit: bar}
  gyro/boom: {column: rate, unit: deg/s, scale: -1}
  gyro/cabin.x: {column: n, unit: rpm}
  accelerometer/boom.x: {column: g, unit: 1, scale: 9.80665 m/s^2}
  accelerometer/boom.y: {column: g, unit: standard_gravity}
commands:
  command/valve: {column: u, unit: mV}
'''
TABLE = 't,s,v,pitch,U,rate,p,n,g,u\n0,820,0,1,0.5,0,0,0,0,0\n0.01,920,-50,91,2.5,180,200,30,-1,500\n'
EXPECTED = {'position/lift': 0.1, 'velocity/lift': -0.05, 'position/base_pitch': math.pi / 2,
            'position/boom': math.pi / 2, 'velocity/boom': math.pi, 'pressure/pump': 2e7, 'gyro/boom': -math.pi,
            'gyro/cabin.x': math.pi, 'accelerometer/boom.x': -9.80665, 'accelerometer/boom.y': -9.80665,
            'command/valve': 0.5}


@pytest.mark.parametrize('storage', STORAGES)
def test_a_table_of_all_channels(tmp_path, storage):
    """Units, by hand, through `mbse import` and back."""
    (tmp_path / 'table.csv').write_text(TABLE)
    (tmp_path / 'map.yaml').write_text(MAP)
    done = mbse('import', tmp_path / 'table.csv', '--map', tmp_path / 'map.yaml', '-o', tmp_path / 'bag', '--storage',
                storage)
    assert (done.status, done.err) == (0, '') and 'gyro/cabin.x, accelerometer/boom.x' in done.out
    sensors = [channel for channel in EXPECTED if not channel.startswith('command')]
    reader = SampleReader(tmp_path / 'bag', sensors, ['command/valve'])
    found = by_channel(reader)
    assert reader.warnings == [] and {channel: series[1][0] for channel, series in found.items()} == dict.fromkeys(
        EXPECTED, PERIOD_NS)
    assert {channel: series[1][1] for channel, series in found.items()} == pytest.approx(EXPECTED, rel=1e-12)
    assert all(abs(series[0][1]) < 1e-12 for series in found.values())


def test_a_missing_cell_of_each_channel(tmp_path):
    (tmp_path / 'map.yaml').write_text(MAP)
    (tmp_path / 'table.csv').write_text(TABLE + '0.02,,,,,,,,,\n')
    assert import_table(tmp_path / 'table.csv', tmp_path / 'map.yaml', tmp_path / 'bag').missing == dict.fromkeys(
        EXPECTED, 1)
    found = by_channel(SampleReader(tmp_path / 'bag', [c for c in EXPECTED if c[:3] != 'com'], ['command/valve']))
    assert all(len(series) == 3 and math.isnan(series[2][1]) for series in found.values())


def test_the_map_of_the_page(tmp_path):
    """docs/bags.md: its map loads and shows every kind of channel."""
    page = Path(__file__).parents[2] / 'docs' / 'bags.md'
    maps = re.findall(r'^```yaml\n(.*?)^```$', page.read_text(), re.MULTILINE | re.DOTALL)
    kinds = set()
    for number, text in enumerate(maps):
        (tmp_path / f'{number}.yaml').write_text(text)
        kinds |= {channel.partition('/')[0] for channel in load_table_map(tmp_path / f'{number}.yaml').columns}
    assert kinds == {*SENSORS, *COMMANDS}
