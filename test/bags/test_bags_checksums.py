# SPDX-License-Identifier: Apache-2.0
"""Flipped bits in sqlite3 bags of ours are found, named and left out; bags without checksums are read as before."""

import random
import shutil
import sqlite3
import struct

import pytest
from bags_samples import write_bag
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as RosbagsWriter

from mbse_ros.bags.bag import Bag
from mbse_ros.bags.messages import make_message, typestore
from mbse_ros.bags.storage.sqlite3_file import TABLE, message_sum, packed, topic_sum
from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import BagError

START = 1_700_000_000_000_000_000       # eight bytes in the file
COUNT = 1200                            # more than one block
TOPIC = '/sensors/pressure/lift_rod'


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """A bag of pressures of two volumes, each value once, and its messages."""
    folder = tmp_path_factory.mktemp('whole') / 'bag'
    with BagWriter(folder, 'sqlite3') as writer:
        for k in range(COUNT):
            writer.write_pressure(START + k, ('lift_rod', 'lift_piston')[k % 2], 1e6 + k)
    bag = Bag(folder)
    messages = list(bag.messages())
    assert bag.warnings == [] and len(messages) == COUNT
    return folder, messages


@pytest.fixture
def copy(whole, tmp_path):
    """A copy of the bag; its storage file."""
    shutil.copytree(whole[0], tmp_path / 'bag')
    return tmp_path / 'bag' / 'bag_0.db3'


def places(file, wanted):
    """Where bytes are in the file."""
    content, found = file.read_bytes(), []
    while (place := content.find(wanted, found[-1] + 1 if found else 0)) >= 0:
        found.append(place)
    return found


def flip(file, place, bit=1):
    content = bytearray(file.read_bytes())
    content[place] ^= bit
    file.write_bytes(content)


def changed(file, *statements):
    with sqlite3.connect(file) as database:
        for statement in statements:
            database.execute(statement)
    database.close()


def test_a_flipped_bit_in_a_value_is_named_and_left_out(whole, copy):
    place, = places(copy, struct.pack('<d', 1e6 + 700))
    flip(copy, place + 5)
    bag = Bag(copy.parent)
    assert list(bag.messages()) == list(bag.messages()) == [*whole[1][:700], *whole[1][701:]]
    assert bag.warnings == [f'bag_0.db3: message 701 of {TOPIC} at {(START + 700) * 1e-9:.6f} s is damaged: '
                            'its checksum does not fit, it is left out']


@pytest.mark.parametrize('byte', [0, 7])
def test_a_flipped_bit_in_a_time_costs_nothing_where_the_other_copy_is_whole(whole, copy, byte):
    """The table and the index hold it; the times are read from the index."""
    said = []
    for place in places(copy, struct.pack('>q', START + 700)):
        flip(copy, place + byte)
        bag = Bag(copy.parent)
        assert list(bag.messages()) == whole[1]
        said += [bag.warnings]
        flip(copy, place + byte)
    assert sorted(said) == [[], ['bag_0.db3: index damaged: behind '
                                 f'{(START + 699) * 1e-9:.6f} s in the order written']]


def test_a_wrong_time_is_found(whole, copy):
    changed(copy, 'UPDATE messages SET timestamp = timestamp + 30 WHERE id = 701')
    bag = Bag(copy.parent)
    assert list(bag.messages()) == [*whole[1][:700], *whole[1][701:]]
    assert len(bag.warnings) == 1 and f'message 701 of {TOPIC} at ' in bag.warnings[0]


def test_a_topic_that_was_exchanged_is_found(whole, copy):
    changed(copy, 'UPDATE messages SET topic_id = 3 - topic_id WHERE id = 5',
            'UPDATE messages SET topic_id = 77 WHERE id = 7')
    bag = Bag(copy.parent)
    assert len(list(bag.messages())) == COUNT - 2
    assert 'message 5 of /sensors/pressure/lift_piston' in bag.warnings[0] and 'of topic 77' in bag.warnings[1]


def test_a_topic_of_another_name_loses_its_messages(whole, copy):
    changed(copy, "UPDATE topics SET name = '/sensors/pressure/lift_rad' WHERE id = 1")
    bag = Bag(copy.parent)
    assert list(bag.messages()) == whole[1][1::2]
    assert len(bag.warnings) == 6 and bag.warnings[5] == f'bag_0.db3: {COUNT // 2 - 5} more messages do not fit ' \
        'their checksums'


def test_missing_messages_are_noticed(whole, copy):
    changed(copy, 'DELETE FROM messages WHERE id BETWEEN 400 AND 402')
    bag = Bag(copy.parent)
    assert len(list(bag.messages([TOPIC]))) == COUNT // 2 - 1
    assert bag.warnings == ['bag_0.db3: 3 messages that were written are not there']


@pytest.mark.parametrize('statement', [
    f'UPDATE {TABLE} SET sums = zeroblob(2004) WHERE first = 501', f'UPDATE {TABLE} SET first = 502 WHERE first = 501',
    f"UPDATE {TABLE} SET sums = 'text' WHERE first = 501", f"UPDATE {TABLE} SET sums = x'' WHERE first = 501",
    f'UPDATE {TABLE} SET sums = substr(sums, 5) WHERE first = 501'])
def test_damaged_checksums_cost_no_message(whole, copy, statement):
    changed(copy, statement)
    bag = Bag(copy.parent)
    assert list(bag.messages()) == whole[1]
    assert bag.warnings == ['bag_0.db3: checksums are damaged, some messages are not checked']


@pytest.mark.parametrize('statements', [
    [f'DROP TABLE {TABLE}'], [f'DELETE FROM {TABLE}'],
    [f'DROP TABLE {TABLE}', f'CREATE TABLE {TABLE}(other TEXT)']])
def test_without_checksums_all_is_read_as_it_stands(whole, copy, statements):
    changed(copy, *statements, 'UPDATE messages SET timestamp = timestamp + 5000 WHERE id = 5')
    bag = Bag(copy.parent)
    assert len(list(bag.messages())) == COUNT
    assert bag.warnings == [] or 'no such column' in bag.warnings[0] and len(bag.warnings) == 1


def test_a_view_in_the_place_of_the_checksums_is_refused(copy):
    changed(copy, f'DROP TABLE {TABLE}', f'CREATE VIEW {TABLE} AS SELECT 1 AS first, zeroblob(8) AS sums')
    with pytest.raises(BagError, match=f'{TABLE} is no plain table'):
        Bag(copy.parent)


def test_a_foreign_bag_is_read(tmp_path):
    writer = RosbagsWriter(tmp_path / 'bag', version=8, storage_plugin=StoragePlugin.SQLITE3)
    with writer:
        connection = writer.add_connection('/a', 'std_msgs/msg/UInt64', typestore=typestore())
        for stamp in range(20):
            message = make_message('std_msgs/msg/UInt64', {'data': stamp})
            writer.write(connection, stamp, typestore().serialize_cdr(message, 'std_msgs/msg/UInt64'))
    bag = Bag(tmp_path / 'bag')
    assert [message.stamp_ns for message in bag.messages()] == list(range(20)) and bag.warnings == []


def test_others_read_a_bag_with_checksums(whole):
    with AnyReader([whole[0]]) as reader:
        found = [(stamp, connection.topic, bytes(data)) for connection, stamp, data in reader.messages()]
    assert found == [(message.stamp_ns, message.topic, message.data) for message in whole[1]]
    with sqlite3.connect(whole[0] / 'bag_0.db3') as database:
        assert database.execute('PRAGMA integrity_check').fetchone() == ('ok',)
        assert database.execute(f'SELECT first, length(sums) FROM {TABLE}').fetchall() == [
            (1, 2004), (501, 2004), (1001, 804)]
    database.close()


def test_a_row_of_checksums_is_what_it_says(whole):
    """So that others may check: the format is in docs/bags.md."""
    with sqlite3.connect(whole[0] / 'bag_0.db3') as database:
        rows = database.execute('SELECT m.id, m.timestamp, m.data, t.name, t.type FROM messages m JOIN topics t '
                                'ON t.id = m.topic_id WHERE m.id > 1000 ORDER BY m.id').fetchall()
        sums, = database.execute(f'SELECT sums FROM {TABLE} WHERE first = 1001').fetchone()
    database.close()
    assert packed(1001, [message_sum(topic_sum(name, kind), number, stamp, data)
                         for number, stamp, data, name, kind in rows]) == sums


def test_whatever_bit_flips_no_wrong_message_is_read(tmp_path):
    """Any byte of the file: what is read was written, and what is not read is warned of."""
    folder = write_bag(tmp_path / 'bag', 'sqlite3', 60)
    file, noise = folder / 'bag_0.db3', random.Random(3)
    whole, size = list(Bag(folder).messages()), file.stat().st_size
    known, damaged = set(whole), 0
    for _ in range(250):
        place, bit = noise.randrange(100, size), 1 << noise.randrange(8)
        flip(file, place, bit)
        try:
            bag = Bag(folder)
            left = list(bag.messages())
        except BagError:
            damaged += 1
        else:
            assert set(left) <= known, place
            assert left == whole or bag.warnings, place
            damaged += left != whole
        flip(file, place, bit)
    assert damaged > 100
