# SPDX-License-Identifier: Apache-2.0
"""Written bags: values come back equal, others read them too, and what was written survives mishaps."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from bags_samples import CHANNELS, COMMANDS, PERIOD_NS, assert_equal, payload, segment, state, write_bag
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader
from source_tree import ROOT

from mbse_ros.bags.bag import Bag
from mbse_ros.bags.messages import SensorTemplate, definition, header, make_message, type_hash, typestore
from mbse_ros.bags.reader import SampleReader
from mbse_ros.bags.series import records
from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import BagError
from mbse_ros.streams.records import PayloadEstimate, Segment, StateEstimate

STORAGES = ('mcap', 'sqlite3')
TYPES = {'/crane/sensors/position': 'sensor_msgs/msg/JointState',
         '/crane/sensors/pressure/lift_piston': 'sensor_msgs/msg/FluidPressure',
         '/crane/sensors/pressure/lift_rod': 'sensor_msgs/msg/FluidPressure',
         '/crane/sensors/valve_command': 'sensor_msgs/msg/JointState',
         '/crane/segment': 'mbse_ros/msg/SensorSegment', '/crane/state': 'mbse_ros/msg/HydraulicState',
         '/crane/payload': 'mbse_ros/msg/PayloadEstimate', '/crane/truth': 'mbse_ros/msg/MachineTruth',
         '/crane/estimated/joint_states': 'sensor_msgs/msg/JointState'}


@pytest.fixture(scope='module', params=STORAGES)
def bag(request, tmp_path_factory) -> Path:
    """A bag of 20 instants with all topics."""
    return write_bag(tmp_path_factory.mktemp('bags') / 'crane', request.param)


def test_records_come_back_equal(bag):
    for kind, make in ((Segment, segment), (StateEstimate, state), (PayloadEstimate, payload)):
        found = list(records(bag, kind))
        assert len(found) == 20
        for sequence, record in enumerate(found, 1):
            assert_equal(record, make(sequence))


def test_samples_come_back_equal(bag):
    samples = list(SampleReader(bag, CHANNELS, COMMANDS))
    expected = [value for k in range(1, 21) for value in (1e6 + k, np.nan, 0.1 * k, -0.5)]
    np.testing.assert_array_equal([sample.value for sample in samples], expected)
    assert [sample.stamp_ns for sample in samples[::4]] == [k * PERIOD_NS for k in range(1, 21)]


def test_rosbags_reads_it(bag):
    with AnyReader([bag]) as reader:
        assert {c.topic: c.msgtype for c in reader.connections} == TYPES
        assert all(c.msgcount == 20 and c.digest == type_hash(c.msgtype) for c in reader.connections)
        assert all(c.msgdef.data == definition(c.msgtype) for c in reader.connections)
        truth = [(stamp, reader.deserialize(data, c.msgtype)) for c, stamp, data in reader.messages()
                 if c.topic == '/crane/truth']
    assert [stamp for stamp, _ in truth] == [k * PERIOD_NS for k in range(1, 21)]
    np.testing.assert_array_equal(truth[7][1].pressure, [1e6, 2e6])
    assert truth[7][1].header.frame_id == 'patu655' and truth[7][1].payload == 50.0


def test_mcap_reads_it(tmp_path):
    bag = write_bag(tmp_path / 'crane', 'mcap')
    with open(bag / 'crane_0.mcap', 'rb') as stream:
        reader = make_reader(stream, validate_crcs=True)
        assert reader.get_header().profile == 'ros2'
        summary = reader.get_summary()
        assert {c.topic: summary.schemas[c.schema_id].name for c in summary.channels.values()} == TYPES
        for channel in summary.channels.values():
            assert channel.metadata['topic_type_hash'] == type_hash(TYPES[channel.topic])
        found = [(m.log_time, m.data) for _, c, m in reader.iter_messages() if c.topic == '/crane/payload']
    message = typestore().deserialize_cdr(found[4][1], 'mbse_ros/msg/PayloadEstimate')
    assert found[4][0] == 5 * PERIOD_NS and message.mass == 55.0 and message.reason == payload(5).reason


def test_metadata_is_of_version_8_and_counts(bag):
    information = yaml.safe_load((bag / 'metadata.yaml').read_text())['rosbag2_bagfile_information']
    assert information['version'] == 8
    assert information['message_count'] == 9 * 20
    assert information['starting_time']['nanoseconds_since_epoch'] == PERIOD_NS
    assert information['duration']['nanoseconds'] == 19 * PERIOD_NS
    for topic in information['topics_with_message_count']:
        profiles = yaml.safe_load(topic['topic_metadata']['offered_qos_profiles'])
        assert profiles[0]['reliability'] == 1 and profiles[0]['depth'] == 10


@given(names=st.none() | st.lists(st.text(max_size=9), max_size=4).map(tuple), frame=st.text(max_size=9),
       stamp=st.integers(0, 2 ** 31 * 10 ** 9 - 1), data=st.data())
@settings(max_examples=60)
def test_quick_sensor_messages_are_the_ordinary_ones(names, frame, stamp, data):
    names = names if names is None or all(name.isprintable() for name in names) else ('lift',)
    count = 1 if names is None else len(names)
    values = data.draw(st.lists(st.floats(), min_size=count, max_size=count))
    template = SensorTemplate(frame, names)
    template.fill(12345, [7.0] * count)     # what was filled in before leaves no trace
    fields = {'fluid_pressure': values[0]} if names is None else {'name': names, 'position': values}
    message = make_message(template.msgtype, {'header': header(stamp, frame), **fields})
    assert template.fill(stamp, values) == bytes(typestore().serialize_cdr(message, template.msgtype))


def test_an_existing_folder_is_never_touched(tmp_path):
    bag = write_bag(tmp_path / 'crane')
    before = {path.name: path.read_bytes() for path in bag.iterdir()}
    with pytest.raises(BagError, match='exists already'):
        BagWriter(bag)
    assert {path.name: path.read_bytes() for path in bag.iterdir()} == before


@pytest.mark.parametrize('storage', STORAGES)
def test_an_exception_leaves_a_whole_bag(tmp_path, storage):
    with pytest.raises(RuntimeError, match='unrelated'):
        with BagWriter(tmp_path / 'bag', storage) as writer:
            writer.write_pressure(5, 'lift_rod', 1e6)
            raise RuntimeError('unrelated')
    bag = Bag(tmp_path / 'bag')
    assert bag.warnings == [] and [message.stamp_ns for message in bag.messages()] == [5]


@pytest.mark.parametrize('storage', STORAGES)
def test_a_killed_process_leaves_what_was_written_before(tmp_path, storage):
    script = ('import os, signal, sys\nsys.path[:0] = sys.argv[3:]\nfrom bags_samples import write_instant\n'
              'from mbse_ros.bags.writer import BagWriter\nwriter = BagWriter(sys.argv[1], sys.argv[2], "/crane")\n'
              'for k in range(1, 400): write_instant(writer, k)\nos.kill(os.getpid(), signal.SIGKILL)\n')
    paths = [str(ROOT / 'test' / 'support'), str(ROOT)]
    run = subprocess.run([sys.executable, '-c', script, str(tmp_path / 'bag'), storage, *paths], timeout=300)
    assert run.returncode == -signal.SIGKILL
    reader = SampleReader(tmp_path / 'bag', CHANNELS, COMMANDS)
    samples = list(reader)
    assert 4 * 200 < len(samples) < 4 * 400
    assert [sample.stamp_ns for sample in samples[:800:4]] == [k * PERIOD_NS for k in range(1, 201)]
    assert any('metadata.yaml is missing' in warning for warning in reader.warnings)


@pytest.mark.parametrize('call, reason', [
    (lambda w: w.write('a', 'mbse_ros/msg/Nothing', 0, {}), "unknown message type 'mbse_ros/msg/Nothing'"),
    (lambda w: w.write('a', 'sensor_msgs/msg/JointState', 0, {'names': []}), 'has no field names; it has header'),
    (lambda w: w.write('a', 'std_msgs/msg/UInt8', 0, {'data': 256}), 'data: got 256, expected from 0 to 255'),
    (lambda w: w.write('a', 'std_msgs/msg/UInt8', 0, {'data': 1.5}), 'data: got 1.5, expected a whole number'),
    (lambda w: w.write('a', 'std_msgs/msg/String', 0, {'data': 1}), 'data: got 1, expected text'),
    (lambda w: w.write('a', 'std_msgs/msg/UInt8', -1, {'data': 1}), 'stamp -1 ns'),
    (lambda w: w.write_pressure(-1, 'lift_rod', 0.0), 'sensors/pressure/lift_rod at -1 ns|stamp -1 ns'),
    (lambda w: w.write_pressure(2 ** 31 * 10 ** 9, 'lift_rod', 0.0), 'at 2147483648000000000 ns'),
    (lambda w: w.write_pressure(0, 'lift_rod', 'high'), 'sensors/pressure/lift_rod'),
    (lambda w: w.write_samples(0, {'flow/lift': 0.0}), 'flow/lift is not a channel'),
    (lambda w: (w.write_pressure(0, 'a', 0.0), w.write('sensors/pressure/a', 'std_msgs/msg/UInt8', 0, {})),
     'holds sensor_msgs/msg/FluidPressure'),
    (lambda w: (w.close(), w.write_pressure(0, 'a', 0.0)), 'is closed'),
])
def test_what_a_message_cannot_hold_is_refused(tmp_path, call, reason):
    with BagWriter(tmp_path / 'bag') as writer:
        with pytest.raises(BagError, match=reason):
            call(writer)


def test_an_unknown_storage_is_refused(tmp_path):
    with pytest.raises(BagError, match="'rosbag1' is not one of mcap, sqlite3"):
        BagWriter(tmp_path / 'bag', 'rosbag1')
    assert not (tmp_path / 'bag').exists()
