# SPDX-License-Identifier: Apache-2.0
"""Storage files of a bag being written: mcap and sqlite3, so that little is lost where the process is killed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from mcap.writer import CompressionType, Writer

from .metadata import QOS, VERSION, Contents, TopicInfo
from .typestore import definition

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


class McapStorage:
    """An mcap file of zstd chunks with checksums and an index."""

    suffix = '.mcap'

    def __init__(self, path: Path) -> None:
        self._stream = open(path, 'xb')
        self._writer = Writer(self._stream, chunk_size=CHUNK_BYTES, compression=CompressionType.ZSTD)
        self._writer.start(profile='ros2', library='mbse_ros')
        self._schemas: dict[str, int] = {}

    def add_topic(self, topic: TopicInfo) -> None:
        """Register a topic and the definition of its type; numbers run from 1."""
        if topic.msgtype not in self._schemas:
            text = definition(topic.msgtype).encode()
            self._schemas[topic.msgtype] = self._writer.register_schema(topic.msgtype, 'ros2msg', text)
        metadata = {'offered_qos_profiles': QOS, 'topic_type_hash': topic.type_hash}
        self._writer.register_channel(topic.name, 'cdr', self._schemas[topic.msgtype], metadata)

    def write(self, topic: TopicInfo, stamp_ns: int, data: bytes) -> None:
        """Append a message."""
        self._writer.add_message(topic.number, stamp_ns, data, stamp_ns, topic.count)

    def close(self, contents: Contents) -> None:
        """Write the index and close the file."""
        try:
            self._writer.add_metadata('rosbag2', {'serialized_metadata': contents.text()})
            self._writer.finish()
        finally:
            self._stream.close()


class Sqlite3Storage:
    """A sqlite3 database, committed now and then."""

    suffix = '.db3'

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(_TABLES)
        self._database.execute('BEGIN')
        self._types: set[str] = set()
        self._pending = 0

    def add_topic(self, topic: TopicInfo) -> None:
        """Register a topic and the definition of its type."""
        if topic.msgtype not in self._types:
            self._types.add(topic.msgtype)
            self._database.execute(
                'INSERT INTO message_definitions(topic_type, encoding, encoded_message_definition, '
                'type_description_hash) VALUES (?, ?, ?, ?)',
                (topic.msgtype, 'ros2msg', definition(topic.msgtype), topic.type_hash))
        self._database.execute('INSERT INTO topics VALUES (?, ?, ?, ?, ?, ?)',
                               (topic.number, topic.name, topic.msgtype, 'cdr', QOS, topic.type_hash))

    def write(self, topic: TopicInfo, stamp_ns: int, data: bytes) -> None:
        """Append a message."""
        self._database.execute('INSERT INTO messages(topic_id, timestamp, data) VALUES (?, ?, ?)',
                               (topic.number, stamp_ns, data))
        self._pending += 1
        if self._pending >= COMMIT_MESSAGES:
            self._database.execute('COMMIT')
            self._database.execute('BEGIN')
            self._pending = 0

    def close(self, contents: Contents) -> None:
        """Write the metadata table and close the database."""
        try:
            self._database.execute('INSERT INTO metadata(metadata_version, metadata) VALUES (?, ?)',
                                   (VERSION, contents.text()))
            self._database.execute('COMMIT')
        finally:
            self._database.close()


STORAGES = {'mcap': McapStorage, 'sqlite3': Sqlite3Storage}
