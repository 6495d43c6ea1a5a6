# SPDX-License-Identifier: Apache-2.0
"""A disk that is full, or will be: the bag is closed above a limit, and whole where a write is refused."""

import json
import shutil
import subprocess
import sys

import pytest
from bags_samples import write_bag
from cli_support import refused
from rosbags.highlevel import AnyReader
from source_tree import ROOT

from mbse_ros.bags import writer
from mbse_ros.bags.bag import Bag
from mbse_ros.bags.storage import disk_room as room
from mbse_ros.bags.storage.disk_room import LEAST_FREE, Reserve, free_bytes, megabytes
from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import BagError, DiskError

STORAGES = ('mcap', 'sqlite3')
EXABYTE = 10 ** 18

# Writes noise until the disk refuses it, and says what is in the bag then, from inside: the disk ends with the process.
FILL = '''
import json, os, resource, sys
sys.path[:0] = sys.argv[4:]
from pathlib import Path
from rosbags.highlevel import AnyReader
from mbse_ros.bags.bag import Bag
from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import DiskError
folder, storage, limit = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
said, count = '', 0
with BagWriter(folder, storage, least_free=0) as writer:
    try:
        while True:
            writer.write('noise', 'std_msgs/msg/String', count, {'data': f'{count} ' + os.urandom(1500).hex()})
            count += 1
    except DiskError as error:
        said, whole = str(error), writer.count
bag = Bag(folder)
found = [message.data[8:].split(b' ')[0] for message in bag.messages()]
answer = {'said': said, 'asked': count, 'whole': whole, 'found': len(found), 'warnings': bag.warnings,
          'first': found == [b'%d' % k for k in range(len(found))], 'files': sorted(p.name for p in folder.iterdir())}
if (folder / 'metadata.yaml').exists():
    with AnyReader([folder]) as reader:
        answer |= {'rosbags': sum(1 for _ in reader.messages()), 'listed': reader.message_count}
print(json.dumps(answer))
'''
# Many topics, each with the definition of its type, on a disk without room for them.
MANY = '''
import os, resource, sys
sys.path[:0] = sys.argv[4:]
from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import BagError
before = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), before[1]))
try:
    writer = BagWriter(sys.argv[1], sys.argv[2], least_free=0)
    for k in range(3000):
        writer.write(f'noise_{k}', 'std_msgs/msg/String', k, {'data': 'a'})
    writer.close()
except BagError as error:
    print('error:', error)
resource.setrlimit(resource.RLIMIT_FSIZE, before)      # what measures coverage has a file to write, too
'''
PATHS = [str(ROOT / 'test' / 'support'), str(ROOT)]


def filled(folder, storage, limit=0, before=()):
    """What FILL says of a bag."""
    words = [*before, sys.executable, '-c', FILL, str(folder / 'bag'), storage, str(limit), *PATHS]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and 'Traceback' not in done.stderr, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def small_disk(tmp_path):
    """A folder and the words by which a command finds a disk of 12 MB there."""
    if shutil.which('unshare') is None:
        pytest.skip('no unshare')
    words = ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c',
             'mount -t tmpfs -o size=12m none "$0" && exec "$@"', str(tmp_path)]
    if subprocess.run([*words, 'true'], capture_output=True).returncode != 0:
        pytest.skip('no file system may be mounted here')
    return tmp_path, words


@pytest.mark.parametrize('storage', STORAGES)
def test_on_a_full_disk_a_bag_is_closed_with_all_that_was_written(small_disk, storage):
    folder, words = small_disk
    found = filled(folder, storage, before=words)
    assert 'cannot be written any more' in found['said']
    assert f'it is closed, with {found["whole"]} messages' in found['said']
    assert found['whole'] > 1000 and found['whole'] >= found['asked'] and found['warnings'] == [] and found['first']
    assert found['whole'] == found['found'] == found['rosbags'] == found['listed']


@pytest.mark.parametrize('storage', STORAGES)
def test_where_the_reserve_does_not_help_the_beginning_can_be_read(tmp_path, storage):
    found = filled(tmp_path, storage, limit=6_000_000)
    assert 'cannot be' in found['said'] and found['first'] and 'metadata.yaml' not in found['files']
    assert found['whole'] - 1000 < found['found'] and found['found'] >= 1000
    assert any('metadata.yaml is missing' in line for line in found['warnings'])


@pytest.mark.parametrize('storage', STORAGES)
def test_below_the_limit_no_bag_is_begun(tmp_path, storage):
    with pytest.raises(DiskError, match=r'is not begun: .* of the disk are free, 1000000000.0 GB must stay free'):
        BagWriter(tmp_path / 'deep' / 'bag', storage, least_free=EXABYTE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('storage', STORAGES)
@pytest.mark.parametrize('seconds, size', [(0.0, 1 << 40), (1e9, 1000)])
def test_at_the_limit_a_bag_is_closed(tmp_path, monkeypatch, storage, seconds, size):
    """Looked at after some time, or after so many bytes."""
    monkeypatch.setattr(writer, 'LOOK_SECONDS', seconds)
    monkeypatch.setattr(writer, 'LOOK_BYTES', size)
    with BagWriter(tmp_path / 'bag', storage) as bag:
        for stamp in range(20):
            bag.write('a', 'std_msgs/msg/String', stamp, {'data': 100 * 'a'})
        bag.least_free = EXABYTE
        with pytest.raises(DiskError, match=r'must stay free: it is closed, with \d+ messages') as caught:
            for stamp in range(20, 40):
                bag.write('a', 'std_msgs/msg/String', stamp, {'data': 100 * 'a'})
        with pytest.raises(BagError, match='is closed'):
            bag.write('a', 'std_msgs/msg/String', 40, {'data': ''})
    assert 20 <= caught.value.count < 40
    found = Bag(tmp_path / 'bag')
    assert [message.stamp_ns for message in found.messages()] == list(range(caught.value.count))
    assert found.warnings == []
    with AnyReader([tmp_path / 'bag']) as reader:
        assert reader.message_count == caught.value.count


def test_commands_say_it_in_one_line(tmp_path, monkeypatch):
    disk = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(room.shutil, 'disk_usage', lambda path: disk._replace(free=LEAST_FREE - 1))
    line = refused('simulate', 'patu655_lift', '-o', tmp_path / 'bag')
    assert line == f'{tmp_path}/bag: is not begun: 49 MB of the disk are free, 50 MB must stay free'


def test_the_reserve_leaves_nothing_behind(tmp_path):
    reserve = Reserve(tmp_path / 'nowhere')      # none to be had
    reserve.release()
    folder = write_bag(tmp_path / 'bag')
    assert sorted(path.name for path in folder.iterdir()) == ['bag_0.mcap', 'metadata.yaml']


def test_free_room_is_that_of_the_disk(tmp_path):
    assert free_bytes(tmp_path / 'not' / 'yet') == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.2)
    assert [megabytes(count) for count in (0, 38_400_000, 1_250_000_000)] == ['0 MB', '38 MB', '1.2 GB']


@pytest.mark.parametrize('size', [2_000, 3_000, 8_000, 40_000])
@pytest.mark.parametrize('storage', STORAGES)
def test_wherever_the_disk_ends_it_is_one_line(tmp_path, storage, size):
    """Also where not even the topics find room: an error of ours, and a bag that says of itself what is left."""
    run = subprocess.run([sys.executable, '-c', MANY, str(tmp_path / 'bag'), storage, str(size), *PATHS],
                         capture_output=True, text=True, timeout=300)
    assert run.returncode == 0 and run.stderr == '' and run.stdout.startswith(f'error: {tmp_path}/bag: cannot be ')
    assert len(run.stdout.splitlines()) == 1
