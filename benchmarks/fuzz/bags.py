# SPDX-License-Identifier: Apache-2.0
"""Bags changed by bytes, records, cells and messages, and read as the package reads them."""

from __future__ import annotations

import os
import sqlite3
import struct
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from zlib import crc32

import lz4.frame
import zstandard
from bags_samples import write_bag

from mbse_ros.bags.bag import decode
from mbse_ros.bags.messages import payload_record, segment_record, state_record
from mbse_ros.bags.reader import SampleReader
from mbse_ros.errors import MbseError
from mbse_ros.machine import load_machine

from .kind import Case, Kind, refused
from .raw import DOUBLES, INTEGERS, WORDS, mutate_bytes, mutate_text

_RECORD = struct.Struct('<BQ')
CHUNK = 6
RECORDS = {'SensorSegment': segment_record, 'HydraulicState': state_record, 'PayloadEstimate': payload_record}


class McapBag(Kind):
    """A bag of all topics of the graph as mcap."""

    storage = 'mcap'

    def make(self, random: Random) -> Case:
        """bag_0.mcap, its metadata."""
        files = dict(_whole(self.storage))
        name = next(name for name in files if name != 'metadata.yaml')
        if random.random() < 0.1:
            files['metadata.yaml'] = mutate_text(files['metadata.yaml'].decode(), random).encode('utf-8', 'replace')
        else:
            files[name] = self.change(files[name], random)
        if random.random() < 0.05:
            packed = zstandard.compress(files.pop(name))
            files[f'{name}.zstd'] = mutate_bytes(packed, random) if random.random() < 0.5 else packed
            files.pop('metadata.yaml')
        return files

    def change(self, data: bytes, random: Random) -> bytes:
        """The storage file with changes."""
        return change_mcap(data, random) if random.random() < 0.7 else mutate_bytes(data, random)

    def run(self, case: Case) -> Counter[str]:
        """Read all messages of the bag, as messages, as records and as samples of a machine."""
        machine = _lift()
        try:
            reader = SampleReader(self.folder, machine.channels, machine.commands)
            sum(1 for _ in reader)
            bag, lost = reader.bag, 0
            for msgtype in set(bag.topics.values()):
                bag.check_type(msgtype)
            for raw in bag.messages():
                try:
                    message = decode(raw)
                    record = RECORDS.get(raw.msgtype.rpartition('/')[2])
                    record(message) if record else None
                except MbseError as error:
                    refused(error)
                    lost += 1
            damaged = lost or reader.warnings
        except MbseError as error:
            return Counter([refused(error)])
        return Counter(['read with warnings' if damaged else 'read'])


class SqliteBag(McapBag):
    """The same as sqlite3."""

    storage = 'sqlite3'

    def change(self, data: bytes, random: Random) -> bytes:
        """The database with other bytes, or other cells."""
        return change_cells(data, random) if random.random() < 0.4 else mutate_bytes(data, random)


def change_mcap(data: bytes, random: Random) -> bytes:
    """One to three changes of records: of the file, or inside a chunk, with its checksum put right or not."""
    magic, records = data[:8], split(data[8:-8])
    for _ in range(random.choice([1, 1, 2, 3])):
        chunks = [k for k, (opcode, _, _) in enumerate(records) if opcode == CHUNK]
        if chunks and random.random() < 0.4:
            k = random.choice(chunks)
            try:
                records[k] = CHUNK, None, _in_chunk(records[k][2], random)
            except (struct.error, zstandard.ZstdError):     # an earlier change has spoilt it
                _change_record(records, random)
        elif records:
            _change_record(records, random)
    return magic + joined(records) + data[-8:]


def split(data: bytes) -> list[tuple[int, int | None, bytes]]:
    """Records: opcode, None (its length is that of the body) or another length that it states, body."""
    found, place = [], 0
    while place + _RECORD.size <= len(data):
        opcode, length = _RECORD.unpack_from(data, place)
        found.append((opcode, None, data[place + _RECORD.size:place + _RECORD.size + length]))
        place += _RECORD.size + length
    return found


def joined(records: list[tuple[int, int | None, bytes]]) -> bytes:
    """The bytes of records."""
    return b''.join(_RECORD.pack(opcode, len(body) if length is None else length) + body
                    for opcode, length, body in records)


def _change_record(records: list[tuple[int, int | None, bytes]], random: Random) -> None:
    k, action = random.randrange(len(records)), random.randrange(8)
    opcode, length, body = records[k]
    if action == 0:
        del records[k]
    elif action == 1:
        records[k:k] = [records[k]] * random.choice([1, 1, 2, 300])
    elif action == 2:
        j = random.randrange(len(records))
        records[k], records[j] = records[j], records[k]
    elif action == 3:
        records[k] = random.choice([0, *range(1, 16), 0x80, 0xff]), length, body
    elif action == 4:
        records[k] = opcode, random.choice([*INTEGERS, len(body) + 1, max(0, len(body) - 1)]), body
    else:
        records[k] = opcode, length, mutate_bytes(body, random, 1)


def _in_chunk(body: bytes, random: Random) -> bytes:
    """A chunk with other records in it, or another head."""
    start, end, size, crc, letters = struct.unpack_from('<QQQII', body)
    word = body[32:32 + letters]
    place = 32 + letters + 8
    content = zstandard.ZstdDecompressor().decompressobj().decompress(body[place:])
    records = split(content)
    for _ in range(random.choice([1, 2, 5])):
        if records:
            _change_record(records, random)
    content = joined(records)
    crc = random.choice([0, crc32(content), crc])
    size = random.choice([len(content)] * 6 + [size, *random.sample(INTEGERS, 2)])
    word, packed = random.choice([(word, zstandard.compress(content))] * 4 + [
        (b'lz4', lz4.frame.compress(content)), (b'', content), (b'zstd', content), (b'lz4', content), (b'xz', content)])
    return (struct.pack('<QQQII', random.choice([start] * 5 + INTEGERS) % (1 << 64), end, size % (1 << 64), crc,
                        len(word)) + word + struct.pack('<Q', random.choice([len(packed)] * 9 + [1 << 62])) + packed)


def change_cells(data: bytes, random: Random) -> bytes:
    """One to three statements that no recorder makes, in the database."""
    with TemporaryDirectory(dir=_memory()) as folder:
        path = Path(folder) / 'x.db3'
        path.write_bytes(data)
        database = sqlite3.connect(path, isolation_level=None)
        database.execute('PRAGMA synchronous=OFF')
        database.execute('PRAGMA journal_mode=MEMORY')
        for _ in range(random.choice([1, 1, 2, 3])):
            statement, values = _statement(random)
            try:
                database.execute(statement, values)
            except sqlite3.Error:
                pass
        database.close()
        changed = path.read_bytes()
    return mutate_bytes(changed, random) if random.random() < 0.1 else changed


def _statement(random: Random) -> tuple[str, tuple]:
    table, columns = random.choice([
        ('messages', ['id', 'topic_id', 'timestamp', 'data']), ('topics', ['id', 'name', 'type']),
        ('message_definitions', ['topic_type', 'encoding', 'encoded_message_definition']),
        ('mbse_ros_checksums', ['first', 'sums']), ('metadata', ['metadata'])])
    value = random.choice([None, random.choice(WORDS), random.choice(DOUBLES), random.randbytes(20), b'',
                           random.choice(INTEGERS) - (1 << 63) if random.random() < 0.5 else random.randrange(300),
                           b'\x28\xb5\x2f\xfd' + random.randbytes(9), zstandard.compress(bytes(1000))])
    if type(value) is int and not -(1 << 63) <= value < 1 << 63:
        value = (1 << 63) - 1
    where = random.choice(['', ' WHERE rowid = 2', ' WHERE rowid > 50', ' WHERE rowid % 7 = 0'])
    column = random.choice(columns)
    return random.choice([(f'UPDATE OR REPLACE {table} SET {column} = ?{where}', (value,))] * 6 + [
        (f'DELETE FROM {table}{where}', ()), (f'DROP TABLE {table}', ()), ('DROP INDEX timestamp_idx', ()),
        (f'ALTER TABLE {table} RENAME COLUMN {column} TO other', ()),
        (f'INSERT INTO {table} SELECT * FROM {table}', ()),
        (f'CREATE TRIGGER t AFTER INSERT ON {table} BEGIN SELECT 1; END', ()),
        (f'ALTER TABLE {table} ADD COLUMN more', ())])


@cache
def _whole(storage: str) -> dict[str, bytes]:
    with TemporaryDirectory(dir=_memory()) as folder:
        write_bag(Path(folder) / 'bag', storage, 4)
        return {path.name: path.read_bytes() for path in sorted((Path(folder) / 'bag').iterdir())}


@cache
def _lift():
    return load_machine('patu655_lift')


def _memory() -> str | None:
    return '/dev/shm' if os.path.isdir('/dev/shm') else None
