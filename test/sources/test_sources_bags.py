# SPDX-License-Identifier: Apache-2.0
"""Bags of other people's messages, estimated by a map alone: the mass is that of the same samples on our own topics."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from cli_support import mbse, refused
from rosbags.rosbag2 import StoragePlugin
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from source_tree import ROOT
from sources_support import (
    FRAMES,
    JOINTS,
    LABELS,
    MACHINE,
    PACKAGE,
    TRACKS,
    VOLUMES,
    header,
    instants,
    joint_state,
    make,
    multi_array,
    pressure_array,
    store,
    write,
)

import mbse_ros
from mbse_ros.bags.bag import Bag
from mbse_ros.bags.reader import SampleReader
from mbse_ros.bags.writer import BagWriter, write_frame
from mbse_ros.errors import DescriptionError, SettingError
from mbse_ros.machine import load_machine
from mbse_ros.simulation.work import START_NS, working_machine

END = 6         # s of the log
OPERA = ROOT / 'config' / 'sources' / 'zx200_opera.yaml'
SHARE = 0.1     # of the interval's half-width, by which masses may differ
JOINT_STATE, MULTI = 'sensor_msgs/msg/JointState', 'std_msgs/msg/Float64MultiArray'
ARRAY = f'{PACKAGE}/msg/FluidPressureArray'
CAN = '/zx200/main_pressure_1'


@pytest.fixture(scope='module')
def ours(tmp_path_factory) -> Path:
    """A boom that lifts 1200 kg, at 50 Hz, on our own topics: up, and a hold."""
    folder, machine = tmp_path_factory.mktemp('ours') / 'bag', load_machine('zx200_can')
    crane = working_machine(machine, 1200.0, cycle='boom', rate=50.0)
    with BagWriter(folder, 'mcap', frame=machine.name) as writer:
        for frame in crane.advance(START_NS + END * 10 ** 9):
            write_frame(writer, machine, frame)
    return folder


@pytest.fixture(scope='module')
def short(ours):
    """Its stamps and samples."""
    return instants(ours)


def written(folder, short, shape, types, storage=StoragePlugin.MCAP):
    messages = (message for stamp, values in short for message in shape(types, stamp, values))
    return write(folder, types, messages, storage)


def own_topics(types, stamp, values):
    yield '/sensors/position', JOINT_STATE, stamp, joint_state(types, stamp, JOINTS, angles(values))
    for name in VOLUMES:
        yield f'/sensors/pressure/{name}', 'sensor_msgs/msg/FluidPressure', stamp, make(
            types, 'sensor_msgs/msg/FluidPressure', header=header(types, stamp), variance=0.0,
            fluid_pressure=values[f'pressure/{name}'])


@pytest.fixture(scope='module')
def own(short, tmp_path_factory):
    """Mass and half of its interval on our own topics, without commands."""
    folder = tmp_path_factory.mktemp('own')
    return mass(written(folder / 'bag', short, own_topics, get_typestore(Stores.ROS2_JAZZY)), folder)


def mass(bag, folder, *options):
    """Mass, half of its interval and the warnings."""
    done = mbse('estimate', bag, *MACHINE, *options, '--json', folder / 'x.json')
    assert done.status == 0, done
    payload = json.loads((folder / 'x.json').read_text())['payload']
    low, high = payload['interval']
    assert math.isfinite(high - low)
    return payload['mass'], 0.5 * (high - low), done.warnings


def angles(values):
    return [values[f'position/{joint}'] for joint in JOINTS]


def pressures(values, factor=1.0):
    return [factor * values[f'pressure/{name}'] for name in VOLUMES]


def simulator(types, stamp, values):
    """An array without a header, of elements that have one; joints the other way round."""
    yield '/zx200/joint_state', JOINT_STATE, stamp, joint_state(types, stamp, JOINTS[::-1], angles(values)[::-1])
    names = [f'{name}_main_pressure' for name in (*FRAMES, 'swing_right')]
    yield '/zx200/main_fluid_pressure', ARRAY, stamp, pressure_array(types, stamp, names, [*pressures(values), 5.0])


def machine(rng, types, stamp, values):
    """No stamp, MPa, up to 2 ms late, and a message of the tracks on the same topic."""
    yield '/zx200/joint_states', JOINT_STATE, stamp, joint_state(types, stamp, JOINTS, angles(values))
    late = stamp + int(rng.uniform(0.0, 2e6))
    yield CAN, MULTI, late, multi_array(types, LABELS, pressures(values, 1e-6))
    yield CAN, MULTI, late + 1000, multi_array(types, TRACKS, [1.0, 2.0])


def test_what_the_simulator_publishes_gives_the_same_mass(short, own, tmp_path):
    bag = written(tmp_path / 'bag', short, simulator, store())
    found, _, warnings = mass(bag, tmp_path, '--sources', 'zx200_opera')
    assert found == pytest.approx(own[0], rel=1e-9)         # the very same samples
    assert [line for line in warnings if line not in own[2]] == []


def test_what_the_machine_publishes_gives_the_same_mass(short, own, tmp_path):
    bag = written(tmp_path / 'bag', short, partial(machine, np.random.default_rng(1)), store(False))
    found, _, warnings = mass(bag, tmp_path, '--sources', OPERA)
    assert abs(found - own[0]) < SHARE * own[1]
    new = [line for line in warnings if line not in own[2]]
    assert len(new) == 2 and all(f'pressure/{name}' in line for name in VOLUMES for line in new)
    assert f'{len(short)} samples left out, no such element' in new[0] and '50 Hz, expected 100 Hz (rate)' in new[1]


def test_the_array_by_its_arrival(short, own, tmp_path):
    """Elements without stamps: the error says what helps, and it does."""
    def unstamped(types, stamp, values):
        for topic, kind, time, message in simulator(types, stamp, values):
            for element in message.array if kind == ARRAY else ():
                element.header = header(types, 0, element.header.frame_id)
            yield topic, kind, time, message
    bag = written(tmp_path / 'bag', short, unstamped, store())
    line = refused('estimate', bag, *MACHINE, '--sources', OPERA)
    assert 'channels.pressure/boom_piston[0].stamp' in line and '`stamp: arrival`' in line
    by_arrival = tmp_path / 'arrival.yaml'
    by_arrival.write_text(OPERA.read_text().replace("'array[0].header'", 'arrival'))
    assert abs(mass(bag, tmp_path, '--sources', by_arrival)[0] - own[0]) < SHARE * own[1]


OTHERS = {'rig_msgs/msg/Chambers': 'float32 head_bar\nfloat32 rod_bar\n',
          'rig_msgs/msg/Hydraulics': 'rig_msgs/Info info\nrig_msgs/Chambers[3] cylinders\n',
          'rig_msgs/msg/Info': 'std_msgs/Header header\nuint32 counter\n',
          'rig_msgs/msg/Angles': 'builtin_interfaces/Time when\nfloat64[] degrees\nstring[] joints\n'}
RIG = '''
format: mbse/sources/1
topics:
  /rig/angles: {stamp: when}
  hydraulics: {type: rig_msgs/msg/Hydraulics, stamp: info.header, rate: 50 Hz}
channels:
  position/swing_joint: {topic: /rig/angles, path: 'degrees[joints=turret]', unit: deg}
  position/boom_joint: {topic: /rig/angles, path: 'degrees[joints=boom]', unit: deg, offset: -10 deg, sign: -1}
  position/arm_joint: {topic: /rig/angles, path: 'degrees[2]', unit: deg}
  position/bucket_joint: {topic: /rig/angles, path: 'degrees[joints=shovel]', unit: deg, scale: 0.5}
''' + ''.join(f"  pressure/{part}_{side}: {{topic: hydraulics, path: 'cylinders[{k}].{field}', unit: bar}}\n"
              for k, part in enumerate(('boom', 'arm', 'bucket')) for side, field in (('piston', 'head_bar'),
                                                                                        ('rod', 'rod_bar')))


def rig_store():
    types = get_typestore(Stores.ROS2_JAZZY)
    found = {}
    for name, text in OTHERS.items():
        found |= get_types_from_msg(text, name)
    types.register(found)
    return types


def rig(types, stamp, values):
    """Types of their own, nothing but the definitions in the bag is known of them."""
    swing, boom, arm, bucket = np.degrees(angles(values))
    clock = header(types, stamp).stamp
    yield '/rig/angles', 'rig_msgs/msg/Angles', stamp + 5_000_000, make(
        types, 'rig_msgs/msg/Angles', when=clock, degrees=np.array([swing, 10.0 - boom, arm, 2.0 * bucket]),
        joints=['turret', 'boom', 'stick', 'shovel'])
    chambers = np.reshape(pressures(values, 1e-5), (3, 2))
    yield '/rig/hydraulics', 'rig_msgs/msg/Hydraulics', stamp + 7_000_000, make(
        types, 'rig_msgs/msg/Hydraulics', info=make(types, 'rig_msgs/msg/Info', header=header(types, stamp), counter=0),
        cylinders=[make(types, 'rig_msgs/msg/Chambers', head_bar=a, rod_bar=b) for a, b in chambers])


@pytest.fixture(scope='module')
def rig_bag(short, tmp_path_factory):
    folder = tmp_path_factory.mktemp('rig')
    (folder / 'rig.yaml').write_text(RIG)
    return written(folder / 'bag', short, rig, rig_store(), StoragePlugin.SQLITE3)


def changed(bag, old, new, name='changed.yaml'):
    """The map with a mistake."""
    assert old in RIG
    path = bag.parent / name
    path.write_text(RIG.replace(old, new))
    return path


def test_a_bag_of_types_that_nobody_knows_is_estimated_from_its_map(rig_bag, own, tmp_path):
    found, _, warnings = mass(rig_bag, tmp_path, '--sources', rig_bag.parent / 'rig.yaml')
    assert abs(found - own[0]) < 1e-3 * own[1]              # pressures are float32 there
    assert [line for line in warnings if line not in own[2]] == []


def test_the_map_in_the_machine_s_file(rig_bag, ours, own, tmp_path):
    """It serves where a bag has its topics; a bag with ours is read as ever."""
    text = (ROOT / 'config' / 'machines' / 'zx200_can.yaml').read_text()
    section = RIG.replace('format: mbse/sources/1\n', '').strip('\n').replace('\n', '\n  ')
    file = tmp_path / 'with_sources.yaml'
    file.write_text(f'{text.rstrip()}\nsources:\n  {section}\n')
    done = mbse('check-data', rig_bag, '--machine', file, '--valve', 'unknown')
    assert 'nothing wrong is seen' in done.out and done.status == 0, done
    assert mbse('check-data', ours, '--machine', file, '--valve', 'unknown').status == 0
    line = refused('check-data', rig_bag, '--machine', file, '--valve', 'unknown', '--sources', 'none')
    assert 'none of the topics /sensors/position' in line
    assert '[joints=turret] of /rig/angles' in ' '.join(mbse('check', file, '--all').out.split())
    channels = 'position/boom: {topic: a, path: b, unit: m, of_set: 3 mm}'
    file.write_text(f'{text.rstrip()}\nsources:\n  channels: {{{channels}}}\n')
    assert 'sources.channels.position/boom.of_set' in refused('check', file)
    file.write_text(f'{text.rstrip()}\nsources:\n  channels: {{{channels.replace(", of_set: 3 mm", "")}}}\n')
    assert 'sources.channels.position/boom' in refused('check', file)


def test_an_imported_bag_is_one_of_ours(rig_bag, own, tmp_path):
    done = mbse('import', rig_bag, *MACHINE, '--sources', rig_bag.parent / 'rig.yaml', '-o', tmp_path / 'out')
    assert done.status == 0 and 'of position/swing_joint' in done.out and not done.err, done
    assert '/sensors/pressure/boom_piston' in Bag(tmp_path / 'out').topics
    assert abs(mass(tmp_path / 'out', tmp_path)[0] - own[0]) < 1e-3 * own[1]
    assert 'the map of a table' in refused('import', rig_bag, '-o', tmp_path / 'other')
    assert 'it is for a bag' in refused('import', 'x.csv', '--map', 'm.yaml', '--sources', 'none', '-o', tmp_path / 'o')


def test_a_recorder_that_wrote_no_definitions(rig_bag, short, tmp_path):
    """As before 2023: the types come from files that the map names."""
    bag = written(tmp_path / 'bag', short[:20], rig, rig_store(), StoragePlugin.SQLITE3)
    strip_definitions(bag)
    done = mbse('import', bag, *MACHINE, '--sources', rig_bag.parent / 'rig.yaml', '-o', tmp_path / 'out')
    assert done.status == 2 and done.err.count('name its .msg file below `definitions`') == 2      # types
    (tmp_path / 'msg').mkdir()
    lines = ['definitions:']
    for name, text in OTHERS.items():
        file = f'msg/{name.rpartition("/")[2]}.msg'
        (tmp_path / file).write_text(text)
        lines.append(f'  {name}: {file}')
    (tmp_path / 'rig.yaml').write_text(RIG + '\n'.join(lines) + '\n')
    done = mbse('import', bag, *MACHINE, '--sources', tmp_path / 'rig.yaml', '-o', tmp_path / 'out')
    assert done.status == 0 and 'wrote' in done.out, done
    (tmp_path / 'msg' / 'Info.msg').write_text('float64 [')
    assert 'definitions.rig_msgs/msg/Info' in refused(
        'import', bag, *MACHINE, '--sources', tmp_path / 'rig.yaml', '-o', tmp_path / 'two')


def strip_definitions(bag):
    import sqlite3
    for file in bag.glob('*.db3'):
        with sqlite3.connect(file) as database:
            database.execute('DELETE FROM message_definitions')


@pytest.mark.parametrize('old, new, expected', [
    ('hydraulics', 'hydraulic', ["got 'hydraulic'", '/rig/hydraulics (rig_msgs/msg/Hydraulics)']),
    ('topic: hydraulics', 'topic: hydraulic', ['topics.hydraulics', '/rig/angles, hydraulic']),
    ('cylinders[0].head_bar', 'cylinders[0].head',
     ['channels.pressure/boom_piston.path', "got 'cylinders[0].head'", 'head_bar (float32), rod_bar (float32)',
      'did you mean head_bar?']),
    ('[joints=boom]', '[joints=bom]', ["got 'degrees[joints=bom]'", 'turret, boom, stick, shovel; did you mean boom?']),
    ('degrees[2]', 'degrees[7]', ["got 'degrees[7]'", '4 elements']),
    ("joints=boom]', ", "joints=boom]', variance: 'degrees[joints=stik]', ",
     ["position/boom_joint.variance: got 'degrees[joints=stik]'", 'shovel; did you mean stick?']),
    ("joints=boom]', ", "joints=boom]', require: {'joints[7]': x}, ",
     ["position/boom_joint.require: got 'joints[7]'", 'has: 4 elements']),
    ('stamp: when', 'stamp: header', ['channels.position/swing_joint.stamp', 'when (nested in rig_msgs/msg/Angles) or '
                                      'arrival', 'has no header']),
    ('type: rig_msgs/msg/Hydraulics', 'type: rig_msgs/msg/Angles',
     ['channels.pressure/boom_piston.type', "got 'rig_msgs/msg/Angles'", 'Hydraulics, the type of /rig/hydraulics']),
    ('position/boom_joint', 'position/boom_join', ['did you mean position/boom_joint?', 'optional: true']),
    ("joints=shovel]', unit: deg", "joints=shovel]', unit: mm", ['position/bucket_joint.unit', 'a unit of rad']),
    ("rod_bar', unit: bar", "rod_bar', unit: barr", ['unit', 'Pa, kPa, MPa, bar']),
    ("rod_bar', unit: bar", "rod_bar', unit: deg", ['a unit of Pa (Pa, kPa, MPa, bar)'])])
def test_a_mistake_in_the_map_is_an_error_with_what_there_is(rig_bag, old, new, expected):
    path = changed(rig_bag, old, new)
    line = refused('check-data', rig_bag, *MACHINE, '--sources', path)
    assert str(path) in line, line
    for words in expected:
        assert words in line, line


@pytest.mark.parametrize('command', [('estimate',), ('smooth',), ('import', '-o', 'out')])
def test_every_command_that_reads_a_bag_takes_a_map(rig_bag, command):
    path = changed(rig_bag, '[joints=boom]', '[joints=bom]')
    assert 'did you mean boom?' in refused(command[0], rig_bag, *MACHINE, '--sources', path, *command[1:])


def test_a_map_is_for_its_machine(rig_bag):
    for command in ('estimate', 'smooth'):
        line = refused(command, rig_bag, '--mechanism', 'five_bar', '--sources', 'zx200_opera')
        assert 'zx200_opera.yaml: channels: got' in line and 'expected a channel of five_bar: position/theta1' in line
        assert 'is it a map of five_bar?' in line


def test_a_wrong_unit_of_the_right_kind_is_found_in_the_data(rig_bag, tmp_path):
    done = mbse('check-data', rig_bag, *MACHINE, '--sources', changed(rig_bag, 'unit: bar', 'unit: Pa', 'pa.yaml'))
    assert done.status == 1 and 'multiply by 100000: the values look like bar' in done.out


def test_samples_that_are_not_there_are_left_out_and_counted(short, tmp_path):
    """A NaN, infinity, a name that lacks, an empty array, an absurd stamp: the rest of each message counts."""
    def spoilt(types, k, message, kind):
        if kind == JOINT_STATE and k == 30:
            message.header.stamp.nanosec = 2 * 10 ** 9
        if kind == MULTI and k in (10, 11):
            message.data[0] = [math.nan, math.inf][k - 10]
        if kind == MULTI and k == 12:
            message.layout.dim[2].label = 'x'
        if kind == MULTI and k == 13:
            message.data = np.zeros(0)
        if kind == MULTI and k == 14:
            message.layout.dim, message.data = [], np.zeros(0)
        return message
    types, rng = store(False), np.random.default_rng(2)
    messages = []
    for k, (stamp, values) in enumerate(short[:60]):
        messages += [(topic, kind, time, spoilt(types, k, message, kind))
                     for topic, kind, time, message in list(machine(rng, types, stamp, values))[:2]]
    bag = write(tmp_path / 'bag', types, messages)
    done = mbse('import', bag, *MACHINE, '--sources', OPERA, '-o', tmp_path / 'out')
    assert done.status == 0, done
    found = dict.fromkeys(('position/arm_joint', 'pressure/boom_piston', 'pressure/arm_piston', 'pressure/arm_rod'), 0)
    for sample in SampleReader(tmp_path / 'out', list(found)):
        found[sample.channel] += sample.value == sample.value
    assert found == {'position/arm_joint': 59, 'pressure/boom_piston': 56, 'pressure/arm_piston': 57,
                     'pressure/arm_rod': 58}
    text = '\n'.join(done.warnings)
    assert '4 samples left out' not in text and 'pressure/boom_piston: 2 samples left out, not finite' in text
    assert '1 sample left out, not readable' in text and '2000000000 ns' in text


def test_from_python(rig_bag, short):
    machine = mbse_ros.load('zx200_can', valve='unknown')
    samples = mbse_ros.read_bag(rig_bag, machine, sources=rig_bag.parent / 'rig.yaml')
    np.testing.assert_allclose(samples['position/boom_joint'], [v['position/boom_joint'] for _, v in short], atol=1e-12)
    with pytest.raises(DescriptionError, match='a channel of four_bar'):
        mbse_ros.read_bag(rig_bag, 'four_bar', sources='zx200_opera')
    with pytest.raises(SettingError, match='it is for a bag'):
        mbse_ros.estimate(samples, 'zx200_can', sources='zx200_opera')


def test_two_machines_in_one_bag(short, tmp_path):
    def both(types, stamp, values):
        for topic, kind, time, message in simulator(types, stamp, values):
            yield topic, kind, time, message
            yield topic.replace('zx200', 'other'), kind, time, message
    bag = written(tmp_path / 'bag', short[:50], both, store())
    assert 'several machines, choose a namespace: /other, /zx200' in refused(
        'check-data', bag, *MACHINE, '--sources', OPERA)
    done = mbse('import', bag, *MACHINE, '--sources', OPERA, '--namespace', 'other', '-o', tmp_path / 'out')
    assert done.status == 0, done


