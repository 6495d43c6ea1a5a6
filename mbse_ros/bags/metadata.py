# SPDX-License-Identifier: Apache-2.0
"""metadata.yaml of a bag: written in version 8, which older readers accept too; read in all versions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import yaml

VERSION = 8
FILE = 'metadata.yaml'
_ROOT = 'rosbag2_bagfile_information'
_INFINITE = '{sec: 9223372036, nsec: 854775807}'
# Reliable, volatile, the last 10; numbers as versions up to 8 have them. Newer readers refuse an empty text here.
QOS = ('- {history: 1, depth: 10, reliability: 1, durability: 2, '
       f'deadline: {_INFINITE}, lifespan: {_INFINITE}, liveliness: 1, liveliness_lease_duration: {_INFINITE}, '
       'avoid_ros_namespace_conventions: false}')


@dataclass
class TopicInfo:
    """A topic of a bag being written."""

    name: str
    msgtype: str
    type_hash: str
    number: int
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
        part = folder / (FILE + '.part')
        part.write_text(yaml.safe_dump({_ROOT: self.information()}, sort_keys=False, width=1000), encoding='utf-8')
        part.replace(folder / FILE)

    def information(self) -> dict:
        """Nested plain data, the keys of rosbag2."""
        return {'version': VERSION, 'storage_identifier': self.storage, **self._extent(),
                'topics_with_message_count': [_topic(topic) for topic in self.topics.values()],
                'compression_format': '', 'compression_mode': '', 'relative_file_paths': [self.file],
                'files': [{'path': self.file, **self._extent()}], 'custom_data': None, 'ros_distro': 'jazzy'}

    def _extent(self) -> dict:
        """Times and number of messages, made anew each time: YAML would write an alias for one object twice."""
        start = self.first_ns or 0
        count = sum(topic.count for topic in self.topics.values())
        return {'duration': {'nanoseconds': self.last_ns - start if count else 0},
                'starting_time': {'nanoseconds_since_epoch': start}, 'message_count': count}


def _topic(topic: TopicInfo) -> dict:
    return {'topic_metadata': {'name': topic.name, 'type': topic.msgtype, 'serialization_format': 'cdr',
                               'offered_qos_profiles': QOS, 'type_description_hash': topic.type_hash},
            'message_count': topic.count}


def listed_files(folder: Path) -> list[str]:
    """Names of the storage files that metadata.yaml lists; raises ValueError, with the reason, where it cannot."""
    try:
        document = yaml.safe_load((folder / FILE).read_text(encoding='utf-8'))
    except FileNotFoundError:
        raise ValueError('is missing') from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError('cannot be read: ' + ' '.join(str(error).split())) from error
    try:
        names = [Path(name).name for name in document[_ROOT]['relative_file_paths']]
    except (KeyError, TypeError) as error:
        raise ValueError('lists no files') from error
    return names
