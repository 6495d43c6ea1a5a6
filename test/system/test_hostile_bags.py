# SPDX-License-Identifier: Apache-2.0
"""Bags made to hurt: whatever their bytes, what is sound in them is read, or our own error says why not."""

from __future__ import annotations

import sqlite3
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import zstandard
from source_tree import ROOT

from mbse_ros.api.bags import read_sensors
from mbse_ros.bags.bag import Bag
from mbse_ros.bags.storage.expand import FLOOR, Budget, expanded
from mbse_ros.bags.storage.mcap_file import McapFile
from mbse_ros.bags.table import import_table
from mbse_ros.bags.writer import BagWriter
from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import BagError

CPU, MEMORY = 60, 2 << 30       # s and bytes of address space of a process that reads one bag; none needs a tenth
# Of each path on standard input: status of a process of its own, and the length and text of what it said.
READ = f"""
import os, resource, sys, tempfile, traceback
from mbse_ros.bags.bag import Bag
from mbse_ros.errors import BagError
from mbse_ros.api.bags import read_sensors

def read(path):
    resource.setrlimit(resource.RLIMIT_CPU, ({CPU}, {CPU}))
    resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
    try:
        bag = Bag(path)
        print('read', sum(1 for _ in bag.messages()), '; '.join(bag.warnings), flush=True)
    except BagError as error:
        print('refused', error, flush=True)

for line in sys.stdin:
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            status = 1
            try:
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                read(line.rstrip())
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        status = os.waitpid(child, 0)[1]
        said.seek(0)
        text = said.read()
        sys.stdout.buffer.write(b'%d %d\\n' % (os.waitstatus_to_exitcode(status), len(text)) + text)
        sys.stdout.buffer.flush()
"""
COUNT = 200     # messages of a whole bag
CHUNK, CHUNK_INDEX = 6, 8
LOOSE = 'CREATE TABLE loose(id INTEGER PRIMARY KEY, topic_id, timestamp, data);' \
        'INSERT INTO loose SELECT id, topic_id, timestamp, data FROM messages;' \
        'DROP TABLE messages; ALTER TABLE loose RENAME TO messages;'
ENDLESS = 'WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT '


def whole(folder: Path, storage: str) -> Path:
    """The storage file of a small sound bag."""
    with BagWriter(folder, storage) as writer:
        for k in range(COUNT // 2):
            writer.write_samples(k * 10_000_000, {'position/lift': 0.1, 'pressure/lift_piston': 1e6})
    return next(path for path in folder.iterdir() if path.suffix in ('.mcap', '.db3'))


@cache
def zeros(count: int, before: bytes = b'') -> bytes:
    """Compressed text of MB of zeros."""
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    return b''.join([packer.compress(before), *(packer.compress(bytes(1 << 20)) for _ in range(count)), packer.flush()])


@cache
def reader() -> subprocess.Popen:
    """The process that forks for each bag, so that modules are imported once; it ends with the tests'."""
    return subprocess.Popen([sys.executable, '-c', READ], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)


def read(path: Path) -> str:
    """What a process with little memory and time makes of a bag."""
    process = reader()
    process.stdin.write(f'{path}\n'.encode())
    process.stdin.flush()
    status, length = (int(word) for word in process.stdout.readline().split())
    said = process.stdout.read(length).decode()
    assert status == 0, f'{status}: {said[-500:]}'
    return said


def records(content: bytes) -> list[tuple[int, int]]:
    """Opcode and place of each record of an mcap file."""
    found, place = [], 8
    while place + 9 < len(content):
        opcode, length = struct.unpack_from('<BQ', content, place)
        found.append((opcode, place))
        place += 9 + length
    return found


def chunk(data: bytes, size: int) -> bytes:
    """A chunk of zstd that says to be of a size."""
    body = struct.pack('<QQQII', 0, 10 ** 9, size, 0, 4) + b'zstd' + struct.pack('<Q', len(data)) + data
    return struct.pack('<BQ', CHUNK, len(body)) + body


def test_a_file_that_expands_without_end(tmp_path: Path) -> None:
    path = whole(tmp_path / 'bag', 'mcap')
    path.with_name(path.name + '.zstd').write_bytes(zeros(2_000, path.read_bytes()))
    path.unlink()
    (tmp_path / 'bag' / 'metadata.yaml').unlink()
    said = read(tmp_path / 'bag')
    assert said.startswith(f'read {COUNT}') and 'times its size' in said


def test_a_message_that_expands_without_end(tmp_path: Path) -> None:
    path = whole(tmp_path / 'bag', 'sqlite3')
    with sqlite3.connect(path) as database:
        database.execute('UPDATE messages SET data = ? WHERE id = 5', (zeros(2_000),))
        database.execute('DROP TABLE mbse_ros_checksums')       # as of another recorder
    database.close()
    assert read(tmp_path / 'bag').startswith(f'read {COUNT}')


@pytest.mark.parametrize('size', [2_000 << 20, 100, 1 << 62])
def test_a_chunk_that_expands_without_end(tmp_path: Path, size: int) -> None:
    path = tmp_path / 'bomb.mcap'
    path.write_bytes(b'\x89MCAP0\r\n' + struct.pack('<BQII', 1, 8, 0, 0) + chunk(zeros(2_000), size))
    said = read(path)
    assert said.startswith('refused') and 'times its size' in said


def test_many_chunks_share_one_budget(tmp_path: Path) -> None:
    path = tmp_path / 'bomb.mcap'
    one = chunk(zstandard.ZstdCompressor(level=3).compress(struct.pack('<BQ', 1, 0) * 3_000_000), 27_000_000)
    path.write_bytes(b'\x89MCAP0\r\n' + struct.pack('<BQII', 1, 8, 0, 0) + 40 * one)
    assert 'times its size' in read(path)


@pytest.mark.parametrize('length', [0, 1 << 40, 1 << 62, (1 << 64) - 1])
@pytest.mark.parametrize('opcode, field', [(CHUNK, -8), (CHUNK_INDEX, 16), (CHUNK_INDEX, 24)],
                         ids=['chunk', 'place in the index', 'length in the index'])
def test_impossible_lengths(tmp_path: Path, opcode: int, field: int, length: int) -> None:
    path = whole(tmp_path / 'bag', 'mcap')
    content = bytearray(path.read_bytes())
    for found, place in records(content):
        if found == opcode:
            struct.pack_into('<Q', content, place + 9 + field, length)
    path.write_bytes(content)
    assert read(tmp_path / 'bag').startswith(f'read {COUNT}')


@pytest.mark.parametrize('change, said', [
    ('UPDATE messages SET data = 5 WHERE id = 3', f'read {COUNT - 1} '),
    ('UPDATE messages SET data = NULL WHERE id = 3', f'read {COUNT - 1} '),
    ("UPDATE messages SET data = 'text' WHERE id = 3", f'read {COUNT - 1} '),
    ("UPDATE messages SET timestamp = 'late' WHERE id = 3", f'read {COUNT - 1} '),
    ('UPDATE messages SET timestamp = 1e300 WHERE id = 3', f'read {COUNT - 1} '),
    ('UPDATE messages SET timestamp = NULL', 'refused'),
    ('CREATE TABLE t(id, name, type); INSERT INTO t SELECT id, NULL, type FROM topics; DROP TABLE topics; '
     'ALTER TABLE t RENAME TO topics', 'read 0'),
    (f'ALTER TABLE messages RENAME TO m; CREATE VIEW messages AS {ENDLESS} n AS id, 1 AS topic_id, n AS timestamp, '
     "x'00' AS data FROM r", 'refused'),
    (f"ALTER TABLE topics RENAME TO t; CREATE VIEW topics AS {ENDLESS} n AS id, 'a' || n AS name, 'x' AS type FROM r",
     'refused'),
    ('ALTER TABLE message_definitions RENAME TO d; CREATE VIEW message_definitions AS '
     f"{ENDLESS} 'a' || n AS topic_type, 'ros2msg' AS encoding, 'x' AS encoded_message_definition FROM r", 'refused'),
])
def test_databases_of_other_things(tmp_path: Path, change: str, said: str) -> None:
    path = whole(tmp_path / 'bag', 'sqlite3')
    database = sqlite3.connect(path)
    database.executescript(LOOSE + change)
    database.close()
    assert read(tmp_path / 'bag').startswith(said)


def test_brackets_for_metadata(tmp_path: Path) -> None:
    whole(tmp_path / 'bag', 'mcap')
    (tmp_path / 'bag' / 'metadata.yaml').write_text('[' * 100_000)
    said = read(tmp_path / 'bag')
    assert said.startswith(f'read {COUNT}') and 'metadata.yaml cannot be read' in said


@pytest.mark.parametrize('time', ['1e308', '-1e308', '1e10'])
def test_times_beyond_all(tmp_path: Path, time: str) -> None:
    (tmp_path / 'map.yaml').write_text('format: mbse/table/1\nname: t\ntime: {column: t, unit: s}\n'
                                       'channels:\n  position/lift: {column: s, unit: m}\n')
    (tmp_path / 't.csv').write_text(f't,s\n0,0.1\n{time},0.1\n')
    with pytest.raises(BagError, match='line 3: column t: .*less than 2'):
        import_table(tmp_path / 't.csv', tmp_path / 'map.yaml', tmp_path / 'bag')
    (tmp_path / 'm.csv').write_text(f't,encoder_1\n0,0.1\n0.1,0.1\n{time},0.1\n')
    with pytest.raises(BagError, match='line 4: t is .*less than 2'):
        read_sensors(tmp_path / 'm.csv', load_model('five_bar', backend='vm'), ['encoder_1'])


def test_what_is_within_the_budget_comes_out_whole() -> None:
    text = bytes(range(256)) * 1_000
    budget = Budget(len(text))
    assert expanded(zstandard.ZstdCompressor().compress(text), 'zstd', budget) == expanded(text, '', budget) == text
    assert budget.left == FLOOR + 98 * len(text)


def test_a_file_is_read_again_and_again(tmp_path: Path) -> None:
    """The budget is that of one passage."""
    file = McapFile(whole(tmp_path / 'bag', 'mcap'))
    file._budget.left = 0
    counts: list[int] = [sum(1 for _ in file.messages()) for _ in range(3)]
    assert counts == [COUNT] * 3 and Bag(tmp_path / 'bag').warnings == []
