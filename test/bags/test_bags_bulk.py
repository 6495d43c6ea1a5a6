# SPDX-License-Identifier: Apache-2.0
"""Messages read many at once against the same messages one by one: the same samples bit for bit, the same refusals."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import zstandard
from bags_samples import CHANNELS, COMMANDS, write_bag
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.writer import CompressionType, IndexType, Writer

from mbse_ros.bags import bulk_samples as room
from mbse_ros.bags.bag import Bag, RawMessage, decode
from mbse_ros.bags.message_layout import TYPES, read
from mbse_ros.bags.messages import definition, header, make_message, typestore
from mbse_ros.bags.reader import SampleReader
from mbse_ros.bags.storage import mcap_file
from mbse_ros.bags.topics import FLUID_PRESSURE, IMU, JOINT_STATE, TRUTH
from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import SampleError

WANTED = (*CHANNELS, 'velocity/lift', 'position/tilt', 'gyro/boom.z', 'accelerometer/boom.x')
SENSORS = '/sensors/position', '/sensors/pressure/lift_piston', '/sensors/pressure/lift_rod', '/sensors/imu/boom'


def one_by_one(reader: SampleReader) -> tuple[list, list[str]]:
    """What a reader of single messages gives: samples and refusals in words."""
    refused: list[SampleError] = []
    readers, samples = reader._make_readers(refused.append), []
    for raw in reader.bag.messages(readers):
        try:
            samples += readers[raw.topic].samples(raw.topic, decode(raw))
        except SampleError as error:
            refused.append(error)
    first: dict[tuple, list] = {}
    for error in refused:
        first.setdefault((error.channel, error.expected), [error, 0])[1] += 1
    return samples, [f'{error}' + (f' (and {count - 1} more)' if count > 1 else '') for error, count in first.values()]


def check(path: Path) -> list:
    """Both ways; gives the samples."""
    reader = SampleReader(path, WANTED, COMMANDS)
    expected, refused = one_by_one(reader)
    found = list(reader)
    assert [(s.channel, s.stamp_ns, s.share) for s in found] == [(s.channel, s.stamp_ns, s.share) for s in expected]
    assert np.array([s.value for s in found]).tobytes() == np.array([s.value for s in expected]).tobytes()
    lines = [line for line in reader.warnings if ': no sample in the bag' not in line]
    assert lines[len(reader.bag.warnings):] == refused
    silent = {line.partition(':')[0] for line in reader.warnings if ': no sample in the bag' in line}
    assert silent == {*WANTED, *COMMANDS} - {sample.channel for sample in expected}
    assert [x for block in reader.blocks() for x in block.stamps.tolist()] == [sample.stamp_ns for sample in expected]
    return found


class Bagged:
    """An mcap file of raw messages in small chunks."""

    def __init__(self, path: Path, compression: CompressionType = CompressionType.ZSTD, chunk: int = 2000,
                 index: IndexType = IndexType.ALL) -> None:
        self._stream = open(path, 'wb')
        self._writer = Writer(self._stream, chunk_size=chunk, compression=compression, index_types=index)
        self._writer.start(profile='ros2', library='test')
        self._topics: dict[str, int] = {}

    def write(self, topic: str, kind: str, time: int, cdr: bytes) -> None:
        if topic not in self._topics:
            schema = self._writer.register_schema(kind, 'ros2msg', definition(kind).encode())
            self._topics[topic] = self._writer.register_channel(topic, 'cdr', schema)
        self._writer.add_message(self._topics[topic], time, cdr, time)

    def close(self) -> None:
        self._writer.finish()
        self._stream.close()


def cdr_of(kind: str, values: dict, little: bool = True) -> bytes:
    return bytes(typestore().serialize_cdr(make_message(kind, values), kind, little_endian=little))


def random_message(random: np.random.Generator, stamp: int) -> tuple[str, str, bytes]:
    """A message of a sensor: mostly plain, sometimes odd in one of many ways."""
    topic = SENSORS[random.integers(len(SENSORS))]
    frame = str(random.choice(['m', 'crane', 'eine Säge']))
    values: dict = {'header': header(stamp, frame)}
    if topic == SENSORS[0]:
        kind, names = JOINT_STATE, list(random.permutation(['lift', 'tilt'][:random.integers(1, 3)]))
        if random.random() < 0.05:
            names[0] = 'other'
        values.update(name=names, position=random.normal(size=len(names)))
        if random.random() < 0.3:
            values['velocity'] = random.normal(size=len(names) + (random.random() < 0.1))
        if random.random() < 0.1:
            values['position'], values['effort'] = [], random.normal(size=3)
    elif topic == SENSORS[3]:
        kind = IMU
        covariance = [-1.0 if random.random() < 0.2 else 0.1, *[0.0] * 8]
        values.update(angular_velocity=dict(zip('xyz', random.normal(size=3))),
                      linear_acceleration=dict(zip('xyz', random.normal(size=3))),
                      angular_velocity_covariance=covariance)
    else:
        kind = FLUID_PRESSURE
        values.update(fluid_pressure=random.choice([1e6, np.nan, -np.inf, 5e-324]), variance=random.normal())
    cdr = bytearray(cdr_of(kind, values, random.random() < 0.93))
    odd = random.random()
    if odd < 0.03:
        del cdr[random.integers(len(cdr)):]
    elif odd < 0.06:
        cdr += bytes(int(random.choice([4, 8, 11, 12])))
    elif odd < 0.09:
        cdr[random.integers(len(cdr))] ^= 1 << int(random.integers(8))
    elif odd < 0.11:
        cdr[8:12] = struct.pack('<I', 2 ** 32 - 1)
    elif odd < 0.13:
        cdr = bytearray(zstandard.ZstdCompressor().compress(bytes(cdr)))
    return topic, kind, bytes(cdr)


@pytest.mark.parametrize('seed, compression, index', [
    (1, CompressionType.ZSTD, IndexType.ALL), (2, CompressionType.LZ4, IndexType.ALL),
    (3, CompressionType.NONE, IndexType.ALL), (4, CompressionType.ZSTD, IndexType.NONE),
    (5, CompressionType.ZSTD, IndexType.CHUNK)])
def test_the_same_samples_and_refusals(tmp_path: Path, seed: int, compression: CompressionType, index: IndexType
                                       ) -> None:
    """Of 1,500 messages, in chunks that overlap in time; with any index of the file, or none."""
    random = np.random.default_rng(seed)
    bag = Bagged(tmp_path / 'x.mcap', compression, int(random.choice([500, 3000, 20000])), index)
    for k in range(1500):
        time = 1_000_000 * (k + int(random.integers(-30, 30)) + 100)
        bag.write(*(message := random_message(random, time))[:2], time, message[2])
    bag.close()
    assert len(check(tmp_path / 'x.mcap')) > 1000


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_our_own_bags(tmp_path: Path, storage: str) -> None:
    assert len(check(write_bag(tmp_path / 'bag', storage, 300, ''))) == 1200


def test_sqlite3_keeps_the_order_of_the_file(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    with BagWriter(tmp_path / 'bag', 'sqlite3') as writer:
        for k in range(300):
            time = 1_000_000 * (k + int(random.integers(-30, 30)) + 100)
            topic, kind, cdr = random_message(random, time)
            writer.write_cdr(topic[1:], kind, time, cdr)
    check(tmp_path / 'bag')


def test_plain_messages_are_not_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that change their order are another layout, not a reason to give up; the index is used."""
    bag = Bagged(tmp_path / 'x.mcap', chunk=20000)
    for k in range(400):
        names = ['lift', 'tilt'] if k % 3 else ['tilt', 'lift']
        bag.write(SENSORS[0], JOINT_STATE, k, cdr_of(JOINT_STATE, {'header': header(k, 'm' * (k % 4)), 'name': names,
                                                                   'position': [k, -k]}))
    bag.close()
    expected = check(tmp_path / 'x.mcap')
    monkeypatch.setattr(SampleReader, '_alone', lambda self, raw: pytest.fail('read by itself'))
    monkeypatch.setattr(mcap_file, '_heads', lambda content: pytest.fail('records looked at one by one'))
    assert list(SampleReader(tmp_path / 'x.mcap', WANTED, COMMANDS)) == expected


def test_messages_of_ever_new_layouts_are_left_to_the_reader_of_single_ones(tmp_path: Path,
                                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """A bag made to teach a layout with each message does not get more than so many of them."""
    bag, learnt = Bagged(tmp_path / 'x.mcap', chunk=1 << 20), []
    for k in range(2000):
        bag.write(SENSORS[1], FLUID_PRESSURE, k, cdr_of(FLUID_PRESSURE, {
            'header': header(k, f'{k:05d}'), 'fluid_pressure': float(k)}))
    bag.close()
    check(tmp_path / 'x.mcap')
    real = room.Bulk._learnt
    monkeypatch.setattr(room.Bulk, '_learnt', lambda self, *more: learnt.append(1) or real(self, *more))
    list(SampleReader(tmp_path / 'x.mcap', WANTED, COMMANDS))
    assert 0 < len(learnt) <= room.LAYOUTS + room.MISSES + 1


@pytest.mark.parametrize('spoil', ['missing', 'wrong place', 'overlapping', 'beyond', 'cut', 'not ours'])
def test_an_index_that_lies_is_not_believed(tmp_path: Path, spoil: str) -> None:
    """The messages are those that reading record after record finds."""
    path = write_bag(tmp_path / 'bag', count=60, namespace='')
    file = next(path.glob('*.mcap'))
    reader = mcap_file.McapFile(file)
    with open(file, 'rb') as stream:
        content, index = reader._content(stream, reader._blocks[0])
    heads, places = mcap_file.messages_in(content, index, mcap_file._records)
    assert np.array_equal(places, mcap_file._heads(content)[1]) and np.array_equal(heads, mcap_file._heads(content)[0])
    spoilt = bytearray(index)
    if spoil == 'missing':
        del spoilt[-(9 + 6 + int.from_bytes(spoilt[11:15], 'little')):]
        spoilt = spoilt[:0] if not spoilt else spoilt
    elif spoil == 'cut':
        del spoilt[-3:]
    elif spoil == 'not ours':
        spoilt[0] = 5
    else:
        move = {'wrong place': 1, 'overlapping': -40, 'beyond': 1 << 40}[spoil]
        place = 9 + 6 + 8
        spoilt[place:place + 8] = struct.pack('<q', struct.unpack_from('<q', index, place)[0] + move
                                              if spoil != 'overlapping' else int(places[-1]) - 40)
    found = mcap_file.messages_in(content, bytes(spoilt), mcap_file._records)
    assert found is None


@given(st.sampled_from(sorted(TYPES)), st.data())
@settings(max_examples=150, deadline=None)
def test_a_quick_message_is_the_typestores_or_none(kind: str, data: st.DataObject) -> None:
    numbers, names = st.lists(st.floats(width=64), max_size=3), st.lists(st.text('aäz', max_size=4), max_size=3)
    values = {'header': header(data.draw(st.integers(-10 ** 18, 10 ** 18)), data.draw(st.text('aß', max_size=5)))}
    for name, form in TYPES[kind][1:]:
        if form in ('doubles', 'strings'):
            values[name] = data.draw(numbers if form == 'doubles' else names)
    cdr = bytearray(cdr_of(kind, values))
    for _ in range(data.draw(st.integers(0, 3))):
        cdr[data.draw(st.integers(0, len(cdr) - 1))] = data.draw(st.integers(0, 255))
    cdr = bytes(cdr[:data.draw(st.integers(0, 2 * len(cdr)))])
    found = read(cdr, kind)
    if found is None:
        return
    expected = decode(RawMessage(0, 'topic', kind, cdr))
    assert (found.message.header.stamp.sec, found.message.header.stamp.nanosec, found.message.header.frame_id) == (
        expected.header.stamp.sec, expected.header.stamp.nanosec, expected.header.frame_id)
    for name, form in TYPES[kind][1:]:
        one, other = getattr(found.message, name), getattr(expected, name)
        if form == 'strings':
            assert one == list(other)
        elif form.startswith('double['):
            assert np.array_equal([getattr(one, axis) for axis in vars(one)],
                                  [getattr(other, axis) for axis in vars(one)], equal_nan=True)
        else:
            assert np.array_equal(one, other, equal_nan=True)
    places = [cdr[start:start + 8 * count] for start, count in found.doubles]
    assert all(len(place) % 8 == 0 for place in places)


def test_all_types_are_read_quickly() -> None:
    for kind in (JOINT_STATE, FLUID_PRESSURE, IMU, TRUTH):
        assert kind in TYPES and read(cdr_of(kind, {'header': header(5, 'm')}), kind) is not None
        assert read(cdr_of(kind, {'header': header(5, 'm')}, little=False), kind) is None


def test_memory_does_not_grow_with_the_bag(tmp_path: Path) -> None:
    """What waits after each block is at most what overlaps with the next one."""
    path = write_bag(tmp_path / 'bag', count=3000, namespace='')
    bag = Bag(path)
    sizes = [len(block.stamps) for block in SampleReader(bag, CHANNELS, COMMANDS).blocks()]
    assert len(sizes) > 4 and max(sizes) < 0.5 * sum(sizes) and sum(sizes) == 12000
