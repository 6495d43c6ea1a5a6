# SPDX-License-Identifier: Apache-2.0
"""Samples of a mechanism out of bags: of a machine's own topics, of other packages' by a map, live as offline."""

import json
from dataclasses import replace

import numpy as np
import pytest
from cli_support import mbse, refused

import mbse_ros
from mbse_ros.bags.messages import header
from mbse_ros.bags.topics import Sources
from mbse_ros.bags.writer import BagWriter
from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import BagError, DescriptionError
from mbse_ros.machine import load_machine
from mbse_ros.machine.channels import sensor_channels
from mbse_ros.mechanism.sensors import sensor_model
from mbse_ros.simulation.linkage import LinkagePlantSettings, SimulatedLinkage
from mbse_ros.sources.machine import for_mechanism
from mbse_ros.sources.map import parse_sources
from mbse_ros.sources.reader import mechanism_reader

SENSORS = ('encoder', 'crank_gyro', 'crank_tip')
START = 1_700_000_000_000_000_000
HEAD = 'format: mbse/sources/1\nchannels:\n'
MAP = HEAD + '''
  position/theta: {topic: plc/angles, path: 'position[name=crank]', unit: deg, offset: 10 deg, sign: -1}
  gyro/crank_gyro: {topic: /imu, path: angular_velocity.x, unit: rad/s}
  accelerometer/crank_tip.x: {topic: plc/tip, path: vector.x, unit: mm/s^2}
  accelerometer/crank_tip.y: {topic: plc/tip, path: vector.y, unit: mm/s^2}
'''


@pytest.fixture(scope='module')
def bags(tmp_path_factory):
    """The same samples of a four-bar on the package's own topics and on other people's, and the channels."""
    folder, model = tmp_path_factory.mktemp('bags'), load_model('four_bar')
    plant = SimulatedLinkage(model, SENSORS, 3, LinkagePlantSettings(amplitude=50.0))
    sources = Sources(model.description, plant.channels, model.inputs)
    with BagWriter(folder / 'ours') as ours, BagWriter(folder / 'theirs') as theirs:
        for _ in range(200):
            frame = plant.frame()
            stamp = START + frame.stamp_ns
            samples = dict(zip((*plant.channels, *sources.inputs.values()), (*frame.samples, *frame.inputs)))
            head = {'header': header(stamp, 'm')}
            for topic, values in sources.spread(samples).items():
                ours.write(topic, sources.topics[topic], stamp, values if 'data' in values else {**head, **values})
            theirs.write('/imu', 'sensor_msgs/msg/Imu', stamp, {
                **head, 'angular_velocity': {'x': samples['crank_gyro'], 'y': 0.0, 'z': 0.0}})
            theirs.write('plc/tip', 'geometry_msgs/msg/Vector3Stamped', stamp, {**head, 'vector': {
                'x': 1e3 * samples['crank_tip.x'], 'y': 1e3 * samples['crank_tip.y'], 'z': 0.0}})
            theirs.write('plc/angles', 'sensor_msgs/msg/JointState', stamp, {
                **head, 'name': ['other', 'crank'], 'position': [9.0, -np.degrees(samples['encoder']) - 10.0]})
            theirs.write('sensors/inputs', 'sensor_msgs/msg/JointState', stamp, {
                **head, 'name': model.inputs, 'effort': frame.inputs})
    (folder / 'map.yaml').write_text(MAP)
    return folder, model, plant.channels


@pytest.fixture(scope='module')
def crane(tmp_path_factory):
    """A bag that the machine itself recorded."""
    folder = tmp_path_factory.mktemp('crane') / 'bag'
    done = mbse('simulate', 'patu655_lift', '--duration', 3, '-o', folder)
    assert done.status == 0, done.err
    return folder


def test_a_machine_s_own_bag_is_read_as_its_mechanism(crane, tmp_path):
    done = mbse('estimate', crane, '--mechanism', 'patu655_lift', '--json', tmp_path / 'e.json', '--full')
    assert done.status == 0 and 'patu655_lift: lift_stroke' in done.out
    found = mbse_ros.read_bag(crane, load_model('patu655_lift'))
    machine = mbse_ros.read_bag(crane, load_machine('patu655_lift'))
    place = machine.names.index('position/lift')
    known = np.isfinite(machine.values[:, place])
    np.testing.assert_array_equal(found.values[:, found.names.index('lift_stroke')], machine.values[known, place])
    done = mbse('tune', crane, '--mechanism', 'patu655_lift', '--estimator', 'DEKF', '--sensors', 'lift_stroke',
                '--skip', 0.5, '--backend', 'vm')
    assert done.status == 0 and 'DEKF on patu655_lift' in done.out, done.err


def test_of_all_sensors_those_are_read_that_have_samples(tmp_path):
    """The others are named in a warning; one that is chosen by name is an error."""
    bag = mbse_ros.write_bag(tmp_path / 'bag', mbse_ros.simulate('five_bar', 0.5, 5e-3, 'trapezoid', sensors=[
        'encoder_1', 'encoder_2']))
    with pytest.warns(UserWarning, match='bag: no samples of crank_gyro_1, crank_gyro_2, .*tip_2.y$'):
        found = mbse_ros.read_bag(bag, 'five_bar')
    assert [name for name in found.names if not name.startswith('input/')] == ['encoder_1', 'encoder_2']
    chosen = mbse_ros.read_bag(bag, 'five_bar', sensors=['encoder_1', 'encoder_2'])
    np.testing.assert_array_equal(found.values, chosen.values)
    with pytest.raises(BagError, match='no samples of crank_gyro_1'):
        mbse_ros.read_bag(bag, 'five_bar', sensors=['encoder_1', 'crank_gyro_1'])


@pytest.mark.parametrize('name', ['patu655_lift', 'zx200', 'lut_simple_crane'])
def test_channels_of_a_machine_are_those_of_its_mechanism(name):
    machine = load_machine(name)
    channels = {channel.name: channel.output for channel in sensor_channels(machine.description)}
    assert {channel.name: channel.output for channel in machine.all_channels} == channels
    assert {*sensor_model(machine.model.system).channels} <= {*channels.values()}


def test_other_people_s_topics_give_what_ours_do(bags, tmp_path):
    folder, model, channels = bags
    ours = mbse_ros.read_bag(folder / 'ours', model, sensors=SENSORS)
    theirs = mbse_ros.read_bag(folder / 'theirs', model, sensors=SENSORS, sources=folder / 'map.yaml')
    assert ours.names == theirs.names
    np.testing.assert_allclose(theirs.values, ours.values, rtol=1e-12, atol=1e-12)
    for command in ('estimate', 'smooth'):
        for name, options in ('ours', ()), ('theirs', ('--sources', folder / 'map.yaml')):
            done = mbse(command, folder / name, '--mechanism', 'four_bar', '--sensors', ','.join(SENSORS), *options,
                        '--json', tmp_path / name)
            assert done.status == 0 and 'warning' not in done.err, done.err
        first, second = (json.loads((tmp_path / name).read_text()) for name in ('ours', 'theirs'))
        assert first.keys() == second.keys()
        if command == 'estimate':
            np.testing.assert_allclose(first['mean'], second['mean'], rtol=1e-9)
    found = [mbse_ros.smooth(folder / name, model, sensors=SENSORS, lag=0.1, sources=path) for name, path in (
        ('ours', None), ('theirs', folder / 'map.yaml'))]
    np.testing.assert_allclose(found[0].mean, found[1].mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize('name, text', [('ours', None), ('theirs', MAP), ('theirs', HEAD + """
  position/theta: {topic: plc/angles, path: 'position[name=crank]', unit: deg}""")])
def test_many_at_once_are_the_samples_of_single_messages(bags, name, text):
    """Of the package's own topics, of a map, and of both on one bag: samples, their order and warnings."""
    folder, model, channels = bags
    reader = mechanism_reader(folder / name, model, channels, sources=text and parse_sources(text))
    single = [sample for message in reader.messages() for sample in message]
    warnings = reader.warnings
    assert list(reader) == single and len(single) >= 400 and reader.warnings == warnings
    blocks = list(reader.blocks())
    assert [reader.channels[place] for block in blocks for place in block.channels] == [one.channel for one in single]
    assert np.concatenate([block.values for block in blocks]).tobytes() == np.array(
        [sample.value for sample in single]).tobytes()


def test_delays_and_several_ways(bags):
    folder, model, _ = bags
    text = HEAD + '''
  position/theta:
    - {topic: nowhere, path: data, unit: rad}
    - {topic: plc/angles, path: 'position[name=crank]', unit: deg, offset: 10 deg, sign: -1, delay: 30 ms}
  gyro/crank_gyro:
    {topic: /imu, path: angular_velocity.x, unit: rad/s, variance: 'angular_velocity_covariance[0]'}
'''
    reader = mechanism_reader(folder / 'theirs', model, ('encoder', 'crank_gyro'), sources=parse_sources(text))
    stamps = {name: [stamp for stamp, values in reader.instants() if name in values]
              for name in ('encoder', 'crank_gyro')}
    assert set(np.subtract(stamps['crank_gyro'], stamps['encoder'])) == {30_000_000}
    assert any(line.startswith('crank_gyro: `variance` of the map only') for line in reader.warnings)


@pytest.mark.parametrize('entry, expected', [
    ('gyro/cranck_gyro: {topic: /imu, path: angular_velocity.x, unit: rad/s}', 'did you mean gyro/crank_gyro?'),
    ('position/theta: {topic: /imu, path: angular_velocity.x, unit: m}', 'a unit of rad'),
    ('accelerometer/crank_tip.x: {topic: /imu, path: angular_velocity.x, unit: m/s}', 'a unit of m/s^2'),
    ('input/torque: {topic: /imu, path: angular_velocity.x, unit: N}', 'a unit of N m'),
    ('position/theta: {topic: plc/angels, path: data, unit: rad}', 'did you mean /plc/angles?'),
    ('position/theta: {topic: plc/angles, path: "position[name=cranck]", unit: rad}', 'other, crank'),
])
def test_a_mistake_in_the_map_is_an_error_with_what_there_is(bags, tmp_path, entry, expected):
    (tmp_path / 'm.yaml').write_text(f'{HEAD}  {entry}\n')
    line = refused('estimate', bags[0] / 'theirs', '--mechanism', 'four_bar', '--sources', tmp_path / 'm.yaml')
    assert line.startswith(f'{tmp_path}/m.yaml: channels.') and expected in line, line


def test_a_machine_s_map_serves_its_mechanism():
    text = HEAD + '''
  position/lift: {topic: wire, path: data, unit: mm, stamp: arrival}
  pressure/lift_rod: {topic: rod, path: data, unit: bar, stamp: arrival}
  command/lift_valve: {topic: valve, path: data, unit: V, stamp: arrival}
'''
    found = for_mechanism(parse_sources(text), load_model('patu655_lift'), ('lift_stroke',))
    assert list(found.channels) == ['lift_stroke'] and found.channels['lift_stroke'][0].gain == 1e-3
    with pytest.raises(DescriptionError, match='a channel of four_bar: position/theta'):
        for_mechanism(parse_sources(text), load_model('four_bar'), ('encoder',))


def test_a_sensor_without_a_topic_is_named_with_what_there_is(bags, crane, tmp_path):
    folder, model, _ = bags
    line = refused('estimate', folder / 'theirs', '--mechanism', 'five_bar')
    assert line.startswith(f'{folder}/theirs: ') and 'encoder_1, encoder_2' in line
    assert 'encoder_2: no sample in the bag; the bag has no /sensors/joint_states and no /sensors/position' in line
    assert '/plc/angles (sensor_msgs/msg/JointState)' in line
    done = mbse('estimate', folder / 'ours', '--mechanism', 'four_bar', '--sensors', 'encoder,coupler_gyro',
                '--backend', 'vm')
    assert done.status == 0
    assert 'coupler_gyro: no sample in the bag; the bag has no /sensors/imu/coupler_gyro; the last' in done.err
    line = refused('estimate', crane, '--mechanism', 'five_bar')
    assert 'no sample' in line and '/sensors/position has: lift' in line
    line = refused('tune', crane, '--mechanism', 'four_bar', '--estimator', 'DEKF', '--sensors', 'encoder')
    assert 'no samples of encoder' in line and 'has: lift' in line


def test_lengths_that_differ_are_an_error(tmp_path):
    model = load_model('four_bar', backend='vm')
    with BagWriter(tmp_path / 'bag') as writer:
        for k in range(4):
            values = {'header': header(START + k, 'm'), 'name': ['a', 'encoder'], 'position': [1.0, 2.0, 3.0]}
            writer.write('sensors/joint_states', 'sensor_msgs/msg/JointState', START + k, values)
    reader = mechanism_reader(tmp_path / 'bag', model, ('encoder',))
    assert not list(reader.instants())
    assert any('3 values in position for 2 in name' in line and '4 samples' in line for line in reader.warnings)
    assert replace(next(iter(reader.refused)).source, own=False).topic == 'sensors/joint_states'


def test_a_field_that_an_imu_says_it_lacks_is_no_sample(tmp_path):
    """As of a machine."""
    model = load_model('four_bar', backend='vm')
    with BagWriter(tmp_path / 'bag') as writer:
        for k in range(6):
            writer.write('sensors/imu/crank_gyro', 'sensor_msgs/msg/Imu', START + k, {
                'header': header(START + k, 'm'), 'angular_velocity': {'x': 0.0, 'y': 0.0, 'z': float(k)},
                'angular_velocity_covariance': [-1.0 * (k < 4), *[0.0] * 8]})
    reader = mechanism_reader(tmp_path / 'bag', model, ('crank_gyro',))
    assert list(reader.instants()) == [(START + 4, {'crank_gyro': 4.0}), (START + 5, {'crank_gyro': 5.0})]
