# SPDX-License-Identifier: Apache-2.0
"""Storage files of a bag being written: mcap and sqlite3, so that little is lost where the process is killed."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ...description.language.document import read_document
from ...errors import DescriptionError
from ...resources import regular, write_whole
from ..messages import definition
from .disk_room import Reserve, ReservedStream
from .sqlite3_file import CREATE, INSERT, message_sum, packed, topic_sum

CHUNK_BYTES = 1 << 18       # about a second of the crane graph: what a killed process loses
COMMIT_MESSAGES = 500

# Schema version 4 of rosbag2's sqlite3 storage.
_TABLES = """
CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT NOT NULL);
CREATE TABLE metadata(id INTEGER PRIMARY KEY, metadata_version INTEGER NOT NULL, metadata TEXT NOT NULL);
CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, serialization_format TEXT NOT NULL,
    offered_qos_profiles TEXT NOT NULL, type_description_hash TEXT NOT NULL);
CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT NOT NULL, encoding TEXT NOT NULL,
    encoded_message_definition TEXT NOT NULL, type_description_hash TEXT NOT NULL);
CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp INTEGER NOT NULL,
    data BLOB NOT NULL);
CREATE INDEX timestamp_idx ON messages (timestamp ASC);
INSERT INTO schema(schema_version, ros_distro) VALUES (4, 'jazzy');
"""
VERSION = 8
FILE = 'metadata.yaml'
_ROOT = 'rosbag2_bagfile_information'
_INFINITE = '{sec: 9223372036, nsec: 854775807}'
RELIABLE, VOLATILE = 1, 2       # numbers as versions up to 8 have them, which are those of rmw


def offered_qos(reliability: int = RELIABLE, durability: int = VOLATILE) -> str:
    """What one publisher offers; a player keeps ten messages. Newer readers refuse an empty text."""
    return (f'- {{history: 1, depth: 10, reliability: {reliability}, durability: {durability}, '
            f'deadline: {_INFINITE}, lifespan: {_INFINITE}, liveliness: 1, liveliness_lease_duration: {_INFINITE}, '
            'avoid_ros_namespace_conventions: false}')


class McapStorage:
    """An mcap file of zstd chunks with checksums and an index.

    ``failure``: why the disk took no more, None as long as it does; all that was written until then is in the file,
    which must be closed now. What cannot be kept at all raises OSError.
    """

    suffix = '.mcap'

    def __init__(self, path: Path) -> None:
        from mcap.writer import CompressionType, Writer  # here: slow to import
        self._reserve = Reserve(path.parent)
        self._stream = ReservedStream(path, self._reserve)
        self._writer = Writer(self._stream, chunk_size=CHUNK_BYTES,   # type: ignore[arg-type]
                              compression=CompressionType.ZSTD)
        self._writer.start(profile='ros2', library='mbse_ros')
        self._schemas: dict[str, int] = {}

    @property
    def failure(self) -> OSError | None:
        """See the class."""
        return self._stream.failure

    def add_topic(self, topic: TopicInfo) -> None:
        """Register a topic and the definition of its type; numbers run from 1."""
        if topic.msgtype not in self._schemas:
            text = definition(topic.msgtype).encode()
            self._schemas[topic.msgtype] = self._writer.register_schema(topic.msgtype, 'ros2msg', text)
        metadata = {'offered_qos_profiles': topic.qos, 'topic_type_hash': topic.type_hash}
        self._writer.register_channel(topic.name, 'cdr', self._schemas[topic.msgtype], metadata)

    def write(self, topic: TopicInfo, stamp_ns: int, data: bytes) -> None:
        """Append a message."""
        self._writer.add_message(topic.number, stamp_ns, data, stamp_ns, topic.count)

    def close(self, contents: Contents) -> None:
        """Write the index and close the file."""
        try:
            self._writer.add_metadata('rosbag2', {'serialized_metadata': contents.text()})
            self._writer.finish()       # type: ignore[no-untyped-call]
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the file as it is."""
        self._stream.close()
        self._reserve.release()


class Sqlite3Storage:
    """A sqlite3 database with checksums, to which a block of messages goes at once; ``failure`` as of McapStorage.

    What cannot be kept at all raises sqlite3.Error.
    """

    suffix = '.db3'

    def __init__(self, path: Path) -> None:
        self._reserve = Reserve(path.parent)
        self.failure: sqlite3.Error | None = None
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(_TABLES + CREATE)
        self._types: set[str] = set()
        self._topics: list[TopicInfo] = []
        self._messages: list[tuple[int, int, int, bytes]] = []      # id, topic, time, bytes
        self._sums: list[int] = []
        self._seeds: dict[int, int] = {}
        self._count = 0

    def add_topic(self, topic: TopicInfo) -> None:
        """Register a topic and the definition of its type."""
        self._topics.append(topic)
        self._seeds[topic.number] = topic_sum(topic.name, topic.msgtype)

    def write(self, topic: TopicInfo, stamp_ns: int, data: bytes) -> None:
        """Append a message."""
        self._count += 1
        self._messages.append((self._count, topic.number, stamp_ns, data))
        self._sums.append(message_sum(self._seeds[topic.number], self._count, stamp_ns, data))
        if len(self._messages) >= COMMIT_MESSAGES:
            self._commit()

    def close(self, contents: Contents) -> None:
        """Write the metadata table and close the database."""
        try:
            self._commit(contents.text())
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the database as it is."""
        self._database.close()
        self._reserve.release()

    def _commit(self, metadata: str = '') -> None:
        """Write what waits; where the disk refuses it, once more with the room of the reserve."""
        try:
            self._insert(metadata)
        except sqlite3.Error as error:
            if self.failure is not None:
                raise
            self.failure = error
            self._reserve.release()
            self._insert(metadata)
        self._types.update(topic.msgtype for topic in self._topics)
        for waiting in (self._topics, self._messages, self._sums):
            waiting.clear()

    def _insert(self, metadata: str) -> None:
        """All that waits in one transaction, or nothing of it."""
        execute = self._database.execute
        execute('BEGIN')
        try:
            new = {topic.msgtype: topic for topic in self._topics if topic.msgtype not in self._types}
            for topic in new.values():
                execute('INSERT INTO message_definitions(topic_type, encoding, encoded_message_definition, '
                        'type_description_hash) VALUES (?, ?, ?, ?)',
                        (topic.msgtype, 'ros2msg', definition(topic.msgtype), topic.type_hash))
            for topic in self._topics:
                execute('INSERT INTO topics VALUES (?, ?, ?, ?, ?, ?)',
                        (topic.number, topic.name, topic.msgtype, 'cdr', topic.qos, topic.type_hash))
            self._database.executemany('INSERT INTO messages VALUES (?, ?, ?, ?)', self._messages)
            if self._messages:
                first = self._messages[0][0]
                execute(INSERT, (first, packed(first, self._sums)))
            if metadata:
                execute('INSERT INTO metadata(metadata_version, metadata) VALUES (?, ?)', (VERSION, metadata))
            execute('COMMIT')
        except sqlite3.Error:
            if self._database.in_transaction:       # a full disk may have ended it already
                execute('ROLLBACK')
            raise


STORAGES: dict[str, type[McapStorage | Sqlite3Storage]] = {'mcap': McapStorage, 'sqlite3': Sqlite3Storage}


@dataclass
class TopicInfo:
    """A topic of a bag being written; ``qos``: what its publishers offer, as ``offered_qos``, a line each."""

    name: str
    msgtype: str
    type_hash: str
    number: int
    qos: str
    count: int = 0


@dataclass
class Contents:
    """What a bag being written holds so far; times in ns."""

    storage: str
    file: str
    topics: dict[str, TopicInfo] = field(default_factory=dict)
    first_ns: int | None = None
    last_ns: int = 0

    def text(self) -> str:
        """The information of metadata.yaml without its root key."""
        return yaml.safe_dump(self.information(), sort_keys=False, width=1000)

    def write(self, folder: Path) -> None:
        """Write metadata.yaml at once: a reader sees all of it or nothing."""
        write_whole(folder / FILE, yaml.safe_dump({_ROOT: self.information()}, sort_keys=False, width=1000))

    def information(self) -> dict[str, Any]:
        """Nested plain data, the keys of rosbag2."""
        return {'version': VERSION, 'storage_identifier': self.storage, **self._extent(),
                'topics_with_message_count': [_topic(topic) for topic in self.topics.values()],
                'compression_format': '', 'compression_mode': '', 'relative_file_paths': [self.file],
                'files': [{'path': self.file, **self._extent()}], 'custom_data': None, 'ros_distro': 'jazzy'}

    def _extent(self) -> dict[str, Any]:
        """Times and number of messages, new objects each time: YAML would write an alias for one object twice."""
        start = self.first_ns or 0
        count = sum(topic.count for topic in self.topics.values())
        return {'duration': {'nanoseconds': self.last_ns - start if count else 0},
                'starting_time': {'nanoseconds_since_epoch': start}, 'message_count': count}


def _topic(topic: TopicInfo) -> dict[str, Any]:
    return {'topic_metadata': {'name': topic.name, 'type': topic.msgtype, 'serialization_format': 'cdr',
                               'offered_qos_profiles': topic.qos, 'type_description_hash': topic.type_hash},
            'message_count': topic.count}


def listed_files(folder: Path) -> list[str]:
    """Names of the storage files that metadata.yaml lists; raises ValueError, with the reason, where it cannot."""
    try:
        text = regular(folder / FILE).read_text(encoding='utf-8')
        document: Any = read_document(text, FILE) if text.strip() else None
    except FileNotFoundError:
        raise ValueError('is missing') from None
    except (OSError, UnicodeDecodeError, DescriptionError) as error:
        raise ValueError('cannot be read: ' + ' '.join(str(error).split())) from error
    try:
        names = [Path(name).name for name in document[_ROOT]['relative_file_paths']]
    except (KeyError, TypeError) as error:
        raise ValueError('lists no files') from error
    return names
