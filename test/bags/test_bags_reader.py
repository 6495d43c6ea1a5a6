# SPDX-License-Identifier: Apache-2.0
"""Samples out of bags of others: namespaces, foreign joints, wrong lengths, every compression of the recorders."""

import re

import numpy as np
import pytest
from bags_samples import CHANNELS, COMMANDS, PERIOD_NS, write_bag
from mcap.writer import CompressionType, Writer
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.rosbag2 import Writer as RosbagsWriter

from mbse_ros.bags.bag import Bag, RawMessage, decode
from mbse_ros.bags.messages import definition, header, make_message, typestore
from mbse_ros.bags.reader import Sample, SampleReader, held_instead
from mbse_ros.bags.topics import LINKAGE_STATE, PAYLOAD, STATE, TopicMap
from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import BagError, SampleError

JOINT_STATE = 'sensor_msgs/msg/JointState'


def joints(writer: BagWriter, topic: str, stamp: int, names: list, position: list, logged: int | None = None) -> None:
    """Write a JointState; it is recorded at ``logged``."""
    message = {'header': header(stamp, ''), 'name': names, 'position': position}
    writer.write(topic, JOINT_STATE, stamp if logged is None else logged, message)


def test_the_stamp_is_the_headers_and_the_order_is_the_bags(tmp_path):
    with BagWriter(tmp_path / 'bag') as writer:
        joints(writer, 'sensors/position', 300, ['lift'], [0.3], logged=1000)
        joints(writer, 'sensors/position', 100, ['lift'], [0.1], logged=2000)
        joints(writer, 'sensors/position', 200, ['lift'], [0.2], logged=1500)
    assert list(SampleReader(tmp_path / 'bag', CHANNELS[:1])) == [
        Sample('position/lift', 300, 0.3), Sample('position/lift', 200, 0.2), Sample('position/lift', 100, 0.1)]


def test_foreign_joints_and_wrong_lengths_are_reported_and_nothing_else_is_lost(tmp_path):
    with BagWriter(tmp_path / 'bag') as writer:
        for k in range(3):
            joints(writer, 'sensors/position', 10 * k, ['slew', 'lift'], [9.0, 0.1 * k])
        joints(writer, 'sensors/position', 30, ['lift', 'tilt'], [0.3])
        joints(writer, 'sensors/position', 40, ['lift'], [np.nan])
        writer.write_pressure(40, 'grapple', 1e5)
        writer.write_cdr('sensors/pressure/lift_rod', 'sensor_msgs/msg/FluidPressure', 50, b'\0\1\0\0\7\7\7')
    reader = SampleReader(tmp_path / 'bag', CHANNELS, COMMANDS)
    samples = list(reader)
    np.testing.assert_array_equal([sample.value for sample in samples], [0.0, 0.1, 0.2, np.nan])
    assert [(error.channel, error.stamp_ns, error.value) for error in reader.refused] == [
        ('/sensors/position slew', 0, 'slew'), ('/sensors/position', 30, '1 positions'),
        ('/sensors/pressure/lift_rod', 50, '7 bytes')]
    text = '\n'.join(reader.warnings)
    for part in ("got 'slew', expected one of lift (and 2 more)", 'expected as many positions as names',
                 'expected a sensor_msgs/msg/FluidPressure', '/sensors/pressure/grapple: no channel of the machine',
                 'pressure/lift_piston: no sample in the bag', 'command/lift_valve: no sample in the bag'):
        assert part in text
    assert len(reader.warnings) == 7 and 'position/lift: no sample' not in text


def test_a_reader_can_be_iterated_again(tmp_path):
    reader = SampleReader(write_bag(tmp_path / 'bag'), CHANNELS[:2], COMMANDS)
    assert list(reader) == list(reader) and len(list(reader)) == 60
    assert reader.warnings == ['/crane/sensors/pressure/lift_rod: no channel of the machine, not read']


@pytest.mark.parametrize('namespace', ['', '/crane', 'yard/crane_2/'])
def test_the_namespace_is_found(tmp_path, namespace):
    reader = SampleReader(write_bag(tmp_path / 'bag', namespace=namespace), CHANNELS)
    assert reader.namespace == ('/' + namespace.strip('/')).rstrip('/')
    assert len(list(reader)) == 60


def test_of_several_machines_one_must_be_chosen(tmp_path):
    with BagWriter(tmp_path / 'bag') as writer:
        joints(writer, '/a/sensors/position', 0, ['lift'], [0.1])
        joints(writer, '/b/sensors/position', 1, ['lift'], [0.2])
        writer.write('/c/state', 'std_msgs/msg/UInt8', 2, {})    # the name alone makes no machine
    with pytest.raises(BagError, match='several machines, choose a namespace: /a, /b'):
        SampleReader(tmp_path / 'bag', CHANNELS)
    assert list(SampleReader(tmp_path / 'bag', CHANNELS, topics=TopicMap(namespace='b'))) == [
        Sample('position/lift', 1, 0.2)]


def test_topics_of_other_names_are_mapped(tmp_path):
    with BagWriter(tmp_path / 'bag') as writer:
        joints(writer, '/joint_states', 5, ['lift'], [0.1])
    assert list(SampleReader(tmp_path / 'bag', CHANNELS, topics=TopicMap(position='/joint_states'))) == [
        Sample('position/lift', 5, 0.1)]


def test_without_a_wanted_topic_the_error_names_those_there_are(tmp_path):
    with BagWriter(tmp_path / 'bag') as writer:
        joints(writer, '/joint_states', 5, ['lift'], [0.1])
    with pytest.raises(BagError, match='none of the topics /sensors/position.*there are /joint_states'):
        SampleReader(tmp_path / 'bag', CHANNELS)


@pytest.mark.parametrize('topics, text', [
    ({'/crane/state': STATE, '/crane/payload': PAYLOAD}, 'holds estimates .*/crane/payload, /crane/state.*no sensors'),
    ({'/linkage_state': LINKAGE_STATE}, 'holds estimates'),
    ({'/sensors/joint_states': JOINT_STATE, '/linkage_state': LINKAGE_STATE}, 'of a mechanism .*--mechanism'),
    ({'/sensors/value/encoder': 'std_msgs/msg/Float64'}, 'of a mechanism .*/sensors/value/encoder'),
    ({'/joint_states': JOINT_STATE, '/state': STATE}, '^$'), ({'/image': 'sensor_msgs/msg/Image'}, '^$')])
def test_a_bag_of_estimates_or_of_a_mechanism_is_called_so(topics, text):
    """By its topics and their types."""
    assert re.search(text, held_instead(topics))


def test_a_topic_of_another_type_is_refused(tmp_path):
    with BagWriter(tmp_path / 'bag') as writer:
        writer.write('sensors/pressure/lift_rod', 'std_msgs/msg/Float64', 0, {'data': 1e5})
    with pytest.raises(BagError, match='is a std_msgs/msg/Float64, expected sensor_msgs/msg/FluidPressure'):
        SampleReader(tmp_path / 'bag', CHANNELS)


def positions(count: int):
    """Serialized messages with their stamps."""
    store = typestore()
    for k in range(count):
        message = store.types[JOINT_STATE](header(k * PERIOD_NS, ''), ['lift'], np.array([0.1 * k]), np.zeros(0),
                                           np.zeros(0))
        yield k * PERIOD_NS, bytes(store.serialize_cdr(message, JOINT_STATE))


@pytest.mark.parametrize('plugin, mode', [
    (StoragePlugin.SQLITE3, 'NONE'), (StoragePlugin.SQLITE3, 'MESSAGE'), (StoragePlugin.SQLITE3, 'FILE'),
    (StoragePlugin.MCAP, 'NONE'), (StoragePlugin.MCAP, 'STORAGE'), (StoragePlugin.MCAP, 'FILE')])
@pytest.mark.parametrize('metadata', [True, False])
def test_bags_of_other_writers_are_read(tmp_path, plugin, mode, metadata):
    writer = RosbagsWriter(tmp_path / 'bag', version=9, storage_plugin=plugin)
    writer.set_compression(CompressionMode[mode], CompressionFormat.ZSTD)
    with writer:
        connection = writer.add_connection('/sensors/position', JOINT_STATE, typestore=typestore())
        for stamp, data in positions(50):
            writer.write(connection, stamp, data)
    if not metadata:
        (tmp_path / 'bag' / 'metadata.yaml').unlink()
    reader = SampleReader(tmp_path / 'bag', CHANNELS[:1])
    assert list(reader) == [Sample('position/lift', k * PERIOD_NS, 0.1 * k) for k in range(50)]
    assert len(reader.warnings) == (not metadata)


@pytest.mark.parametrize('chunking', [True, False])
@pytest.mark.parametrize('compression', [CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD])
@pytest.mark.parametrize('finished', [True, False])
def test_mcap_files_of_all_kinds_are_read_in_the_order_of_time(tmp_path, chunking, compression, finished):
    path = tmp_path / 'recording.mcap'
    with open(path, 'wb') as stream:
        writer = Writer(stream, chunk_size=500, compression=compression, use_chunking=chunking)
        writer.start('ros2')
        schema = writer.register_schema(JOINT_STATE, 'ros2msg', definition(JOINT_STATE).encode())
        channel = writer.register_channel('/sensors/position', 'cdr', schema)
        messages = list(positions(60))
        for stamp, data in messages[0::2] + messages[1::2]:
            writer.add_message(channel, stamp, data, stamp)
        if finished:
            writer.finish()
    reader = SampleReader(path, CHANNELS[:1])
    samples = list(reader)
    assert [sample.stamp_ns for sample in samples] == sorted(sample.stamp_ns for sample in samples)
    assert len(samples) == 60 if finished or not chunking else 50 < len(samples) <= 60
    assert len(reader.warnings) == (not finished)


def test_split_bags_are_read_in_the_order_of_recording(tmp_path):
    folder = tmp_path / 'bag'
    for part in (10, 9, 2):
        with BagWriter(tmp_path / f'part{part}') as writer:
            joints(writer, 'sensors/position', part, ['lift'], [float(part)])
        folder.mkdir(exist_ok=True)
        (tmp_path / f'part{part}' / f'part{part}_0.mcap').rename(folder / f'bag_{part}.mcap')
    assert [sample.value for sample in SampleReader(folder, CHANNELS[:1])] == [2.0, 9.0, 10.0]
    assert Bag(folder).warnings == ['metadata.yaml is missing: all storage files are read']


def test_bytes_that_fast_dds_leaves_behind_a_message_do_not_matter():
    """A publisher of serialized messages sends up to 11 of them; a message cut short is still refused."""
    message = make_message(JOINT_STATE, {'header': header(5, 'crane'), 'name': ['lift'], 'position': [0.25]})
    data = bytes(typestore().serialize_cdr(message, JOINT_STATE))
    for padding in range(12):
        message = decode(RawMessage(5, '/sensors/position', JOINT_STATE, data + b'\x7f' * padding))
        assert message.position.tolist() == [0.25] and list(message.name) == ['lift']
    with pytest.raises(SampleError):
        decode(RawMessage(5, '/sensors/position', JOINT_STATE, data[:-20]))
