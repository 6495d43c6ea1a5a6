# SPDX-License-Identifier: Apache-2.0
"""Bags that were cut, left open or damaged: what is readable is read, and a warning says up to where."""

import random
import re
import shutil
import sqlite3

import pytest
from bags_samples import CHANNELS, COMMANDS, PERIOD_NS, write_bag
from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.rosbag2 import Writer as RosbagsWriter

from mbse_ros.bags.bag import Bag
from mbse_ros.bags.messages import make_message, typestore
from mbse_ros.bags.reader import SampleReader
from mbse_ros.bags.series import read_payload, read_states, read_truth
from mbse_ros.bags.storage import storage_writer as storage
from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import BagError

COUNT = 200
RANDOM = random.Random(7)
SHARES = sorted(RANDOM.uniform(0.15, 0.97) for _ in range(10))


@pytest.fixture(scope='module', params=['mcap', 'sqlite3'])
def whole(request, tmp_path_factory):
    """A bag of 2 s, in small chunks, and all its messages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, 'CHUNK_BYTES', 1 << 14)
        folder = write_bag(tmp_path_factory.mktemp('whole') / 'bag', request.param, COUNT)
    return folder, list(Bag(folder).messages())


def copied(folder, target):
    """Copy of a bag; returns its storage file."""
    shutil.copytree(folder, target)
    return next(path for path in target.iterdir() if path.suffix in ('.mcap', '.db3'))


@pytest.mark.parametrize('share', SHARES)
@pytest.mark.parametrize('with_metadata', [True, False])
def test_a_cut_bag_is_read_up_to_the_cut(whole, tmp_path, share, with_metadata):
    folder, messages = whole
    file = copied(folder, tmp_path / 'cut')
    size = round(share * file.stat().st_size)
    with open(file, 'r+b') as stream:
        stream.truncate(size)
    if not with_metadata:
        (tmp_path / 'cut' / 'metadata.yaml').unlink()
    bag = Bag(tmp_path / 'cut')
    left = list(bag.messages())
    assert left == messages[:len(left)]
    assert len(left) > (share - 0.15) * len(messages)      # the index lies behind the messages or between them
    cut = next(warning for warning in bag.warnings if 'cut off' in warning)
    assert f'cut off after {size} bytes' in cut
    assert float(re.search(r'read up to ([0-9.]+) s', cut)[1]) == pytest.approx(left[-1].stamp_ns * 1e-9)
    assert len(list(bag.messages(['/crane/truth']))) == sum(message.topic == '/crane/truth' for message in left)


@pytest.mark.parametrize('size', [0, 5, 8, 20, 99, 150])
def test_where_nothing_is_left_the_error_says_so(whole, tmp_path, size):
    file = copied(whole[0], tmp_path / 'cut')
    with open(file, 'r+b') as stream:
        stream.truncate(size)
    with pytest.raises(BagError, match=f'nothing in it is readable; {file.name}: '):
        Bag(tmp_path / 'cut')


def test_what_lies_around_a_damaged_place_is_read(whole, tmp_path):
    folder, messages = whole
    file = copied(folder, tmp_path / 'damaged')
    place = file.stat().st_size // 2 // 4096 * 4096
    if file.suffix == '.mcap':
        with open(file, 'rb') as stream:
            chunks = make_reader(stream).get_summary().chunk_indexes
        place = chunks[len(chunks) // 2].chunk_start_offset + 100
    with open(file, 'r+b') as stream:
        stream.seek(place)
        stream.write(bytes(200))
    bag = Bag(tmp_path / 'damaged')
    left = list(bag.messages())
    assert 0.4 * len(messages) < len(left) < len(messages) and set(left) < set(messages)
    assert len(set(left)) == len(left)
    assert len(bag.warnings) == 1 and re.search('are lost|damaged', bag.warnings[0])
    if file.suffix == '.mcap':
        assert left[-1] == messages[-1]      # chunks stand alone


def numbers(folder, plugin, mode, count):
    """A bag of random numbers, which do not compress, as another writer makes it."""
    writer = RosbagsWriter(folder, version=8, storage_plugin=plugin)
    writer.set_compression(mode, CompressionFormat.ZSTD)
    noise = random.Random(1)
    with writer:
        connection = writer.add_connection('/a', 'std_msgs/msg/UInt64', typestore=typestore())
        for stamp in range(count):
            message = make_message('std_msgs/msg/UInt64', {'data': noise.getrandbits(64)})
            writer.write(connection, stamp, typestore().serialize_cdr(message, 'std_msgs/msg/UInt64'))
    return next(path for path in folder.iterdir() if path.name != 'metadata.yaml')


@pytest.mark.parametrize('mode', [CompressionMode.NONE, CompressionMode.STORAGE])
def test_of_a_cut_chunk_the_beginning_is_read(tmp_path, mode):
    file = numbers(tmp_path / 'bag', StoragePlugin.MCAP, mode, 10000)       # one chunk
    messages = list(Bag(tmp_path / 'bag').messages())
    with open(file, 'r+b') as stream:
        stream.truncate(file.stat().st_size // 4)       # the chunk's index is behind it
    left = list(Bag(tmp_path / 'bag').messages())
    assert 1000 < len(left) < 10000 and left == messages[:len(left)]


def test_a_wrong_checksum_is_noticed(tmp_path):
    with open(tmp_path / 'bag.mcap', 'wb') as stream:
        writer = Writer(stream, chunk_size=100, compression=CompressionType.NONE)
        writer.start('ros2')
        channel = writer.register_channel('/a', 'cdr', writer.register_schema('a/msg/B', 'ros2msg', b''))
        for stamp in range(9):
            writer.add_message(channel, stamp, b'\0\1\0\0' + b'number %d' % stamp, stamp)
        writer.finish()
    content = (tmp_path / 'bag.mcap').read_bytes()
    (tmp_path / 'bag.mcap').write_bytes(content.replace(b'number 4', b'number 5'))
    bag = Bag(tmp_path / 'bag.mcap')
    numbers_left = {message.data[-1:] for message in bag.messages()}
    assert b'4' not in numbers_left and 5 <= len(numbers_left) < 9
    assert len(bag.warnings) == 1 and 'checksum' in bag.warnings[0]


@pytest.mark.parametrize('mode', ['wal', 'delete'])
def test_a_database_that_was_left_open_is_read_with_its_log(tmp_path, mode):
    folder = write_bag(tmp_path / 'bag', 'sqlite3', 20)
    file = folder / 'bag_0.db3'
    database = sqlite3.connect(file, isolation_level=None)
    database.execute(f'PRAGMA journal_mode={mode}')
    database.execute('PRAGMA cache_size=1')     # so that changes reach the file before they are committed
    database.execute('BEGIN')
    database.execute('DELETE FROM messages WHERE id > 90')
    if mode == 'wal':
        database.execute('COMMIT')
    left_open = tmp_path / 'left_open'
    shutil.copytree(folder, left_open)
    database.close()
    content = {path.name: path.read_bytes() for path in left_open.iterdir()}
    bag = Bag(left_open)
    assert len(list(bag.messages())) == (90 if mode == 'wal' else 180)
    assert any('was not closed' in warning for warning in bag.warnings)
    assert {path.name: path.read_bytes() for path in left_open.iterdir()} == content


def test_a_cut_compressed_file_is_read_up_to_the_cut(tmp_path):
    file = numbers(tmp_path / 'bag', StoragePlugin.SQLITE3, CompressionMode.FILE, 8000)
    with open(file, 'r+b') as stream:
        stream.truncate(file.stat().st_size * 2 // 3)
    bag = Bag(tmp_path / 'bag')
    assert 1000 < len(list(bag.messages())) < 8000
    assert 'cut off' in bag.warnings[0]


@pytest.mark.parametrize('text, reason', [
    ('a: [', 'cannot be read'), ('a: 1', 'lists no files'), ('', 'lists no files')])
def test_a_damaged_metadata_file_is_not_needed(whole, tmp_path, text, reason):
    copied(whole[0], tmp_path / 'bag')
    (tmp_path / 'bag' / 'metadata.yaml').write_text(text)
    bag = Bag(tmp_path / 'bag')
    assert list(bag.messages()) == whole[1]
    assert len(bag.warnings) == 1 and f'metadata.yaml {reason}' in bag.warnings[0]


def test_a_missing_storage_file_is_named(whole, tmp_path):
    file = copied(whole[0], tmp_path / 'bag')
    renamed = file.rename(file.with_name('other' + file.suffix))
    bag = Bag(tmp_path / 'bag')
    assert list(bag.messages()) == whole[1] and bag.warnings == [f'{file.name}: is missing']
    renamed.unlink()
    with pytest.raises(BagError, match='no file .mcap or .db3'):
        Bag(tmp_path / 'bag')


def test_what_is_no_bag_is_refused(tmp_path):
    with pytest.raises(BagError, match='does not exist'):
        Bag(tmp_path / 'nothing')
    (tmp_path / 'table.csv').write_text('t,s\n')
    with pytest.raises(BagError, match='expected a folder, .mcap or .db3'):
        Bag(tmp_path / 'table.csv')


@pytest.mark.parametrize('name', ['old.bag', 'old.bag.active', 'old.mcap', 'old.db3', 'folder/old.bag',
                                  'folder/0.mcap'])
def test_a_bag_of_ros_1_is_named_with_the_way_to_convert_it(tmp_path, name):
    """By its first bytes, whatever its name."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b'#ROSBAG V2.0\n' + bytes(4096))
    for path in {file, tmp_path / name.partition('/')[0]}:
        bag = f'{file.name.partition(".")[0]}.bag'       # the converter looks at the end of the name
        renamed = '' if file.name == bag else f'mv {file.name} {bag}; '
        with pytest.raises(BagError, match=f'bag of ROS 1, .* 2: {renamed}rosbags-convert --src {bag} --dst'):
            Bag(path)


@pytest.mark.parametrize('kind, other', [('mcap', 'x.db3'), ('sqlite3', 'x.mcap'), ('mcap', 'x.bag')])
def test_the_first_bytes_say_what_a_file_is(tmp_path, kind, other):
    """Of a file, not its name; of one without a byte that it is empty."""
    with BagWriter(tmp_path / 'bag', kind) as writer:
        writer.write_samples(5, {'position/lift': 0.25})
    file, = (path for path in (tmp_path / 'bag').iterdir() if path.suffix in ('.mcap', '.db3'))
    renamed = file.rename(tmp_path / other)
    assert [message.stamp_ns for message in Bag(renamed).messages()] == [5]
    renamed.write_bytes(b'')
    with pytest.raises(BagError, match='is an empty file'):
        Bag(renamed)


@pytest.mark.parametrize('kind', ['mcap', 'sqlite3'])
def test_an_empty_bag_is_refused(tmp_path, kind):
    BagWriter(tmp_path / 'bag', kind).close()
    with pytest.raises(BagError, match='the bag is empty$'):
        Bag(tmp_path / 'bag')


def test_a_cut_bag_still_gives_samples_and_series(whole, tmp_path):
    file = copied(whole[0], tmp_path / 'cut')
    with open(file, 'r+b') as stream:
        stream.truncate(file.stat().st_size // 2)
    reader = SampleReader(tmp_path / 'cut', CHANNELS, COMMANDS)
    samples = list(reader)
    assert samples[0].stamp_ns == PERIOD_NS and len(samples) > 4 * COUNT // 3
    assert 'cut off' in reader.warnings[0]
    for read in (read_states, read_payload, read_truth):
        assert COUNT // 3 < len(read(tmp_path / 'cut').stamp_ns) < COUNT


def test_messages_of_ros_1_in_an_mcap_are_named(tmp_path):
    """As converters of bags keep them; what other topics hold is read."""
    from mcap.writer import Writer  # here, for this test alone
    path = tmp_path / 'x.mcap'
    with path.open('wb') as stream:
        writer = Writer(stream)
        writer.start('ros1')
        schema = writer.register_schema('std_msgs/Float64', 'ros1msg', b'float64 data')
        channel = writer.register_channel('/boom', 'ros1', schema)
        writer.add_message(channel, 5, bytes(8), 5)
        writer.finish()
    bag = Bag(path)
    assert bag.topics == {'/boom': 'std_msgs/Float64'} and len(list(bag.messages())) == 1
    warning, = bag.warnings
    assert "/boom: messages in 'ros1' of ROS 1" in warning and 'rosbags-convert' in warning
