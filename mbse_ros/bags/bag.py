# SPDX-License-Identifier: Apache-2.0
"""A bag being read: a folder of rosbag2 or a single storage file, whole or damaged; what is readable is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import zstandard

from ..errors import BagError, SampleError
from ..resources import regular
from .message_layout import TYPES, MessageBatch, read
from .messages import PACKAGE, before_faults, is_ours, typestore, with_faults
from .storage.expand import Budget, blocks, expanded
from .storage.mcap_file import McapFile
from .storage.sqlite3_file import Sqlite3File
from .storage.storage_writer import listed_files

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

MCAP, SQLITE3 = '.mcap', '.db3'         # as the files are named
_MAGIC = {b'\x89MCAP0\r\n': MCAP, b'SQLite format 3\x00': SQLITE3}
ROS1 = b'#ROSBAG V'
FORMATS: dict[str, type[McapFile | Sqlite3File]] = {'.mcap': McapFile, '.db3': Sqlite3File}
_ZSTD = '.zstd'
TABLES = '.csv', '.tsv', '.txt'
_ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'


def storage_of(path: Path) -> str | None:
    """'.mcap' or '.db3' by the first bytes of a regular file, None of another; raises OSError."""
    with regular(path).open('rb') as stream:
        start = stream.read(16)
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)


def why_none(path: Path) -> str:
    """What a file is that is no storage file of rosbag2, with the way to convert it; '' where that is not known."""
    try:
        with regular(path).open('rb') as stream:
            start = stream.read(len(ROS1))
    except OSError:
        return ''
    if start == ROS1:
        name = path.name if path.suffix == '.bag' else f'{path.name.partition(".")[0] or path.stem}.bag'
        first = f'mv {path.name} {name}; ' * (name != path.name)        # the converter looks at the end of the name
        return (f'is a bag of ROS 1, expected one of ROS 2: {first}rosbags-convert --src {name} --dst {path.stem} '
                '(pip install rosbags) converts it')
    return 'is an empty file, of 0 bytes' if not start else ''


class RawMessage(NamedTuple):
    """A serialized message; ``stamp_ns`` is its time in the bag."""

    stamp_ns: int
    topic: str
    msgtype: str
    data: bytes


class FileBatches(NamedTuple):
    """Batches of one file: in the order of the bag, or else to be sorted by time; ``message`` of a time, ns, the place
    of a topic and bytes that are taken by themselves."""

    batches: Iterator[MessageBatch]
    in_order: bool
    message: Callable[[int, int, bytes], RawMessage]


class Bag:
    """A bag: ``topics`` to types, and ``warnings`` of what is damaged (more may come while messages are read).

    Raises BagError: not there, no storage file, nothing readable, empty.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._warnings: list[str] = []
        self.topics: dict[str, str] = {}
        self.definitions: dict[str, str] = {}
        self._before_faults: set[str] = set()       # types recorded without their last field
        self._unpacked: list[TemporaryDirectory[str]] = []
        files = [file for file in map(self._open, self._find_files()) if file]
        for file in files:
            self.topics.update(file.topics)
            self.definitions.update(file.definitions)
        self._files = [file for file in files if file.last_ns is not None]
        if not self._files:
            reason = 'nothing in it is readable' if self._warned(files) else 'the bag is empty'
            raise BagError(str(path), '; '.join([reason, *self._warned(files)]))

    @property
    def warnings(self) -> list[str]:
        """What is damaged or missing, one line each."""
        return self._warned(self._files)

    def messages(self, topics: Collection[str] | None = None) -> Iterator[RawMessage]:
        """Messages of some topics, or of all, in the order of the bag; may be called again."""
        for file in self._files:
            budget = Budget(file.path.stat().st_size)
            for stamp, topic, data in file.messages(topics):
                yield self._message(stamp, topic, data, budget)

    def batches(self, topics: Sequence[str]) -> Iterator[FileBatches]:
        """The same of some topics, many messages at a time, file by file; may be called again."""
        topics = tuple(topics)
        for file in self._files:
            budget = Budget(file.path.stat().st_size)

            def message(stamp: int, topic: int, data: bytes, budget: Budget = budget) -> RawMessage:
                return self._message(stamp, topics[topic], data, budget)
            yield FileBatches(file.batches(topics), file.IN_ORDER, message)

    def _message(self, stamp: int, topic: str, data: bytes, budget: Budget) -> RawMessage:
        if data[:4] == _ZSTD_MAGIC:     # no message begins so: the recorder compressed it
            data = _decompressed_message(data, budget)
        raw = RawMessage(stamp, topic, self.topics[topic], data)
        if raw.msgtype in self._before_faults:
            with suppress(SampleError):     # decoding reports it
                return raw._replace(data=with_faults(decode(raw, before_faults()), raw.msgtype))
        return raw

    def check_type(self, msgtype: str) -> None:
        """Raise BagError where the bag holds another version of one of this package's messages, but for that before
        ``faults``: such messages then come with them."""
        text = self.definitions.get(msgtype) if msgtype.startswith(PACKAGE) else None
        if text is None or is_ours(msgtype, text):
            return
        from rosbags.typesys import TypesysError, get_types_from_msg  # here: slow to import
        try:
            recorded = get_types_from_msg(text, msgtype)[msgtype][1]
        except (TypesysError, KeyError) as error:
            raise BagError(str(self.path), f'its definition of {msgtype} cannot be read: {error}') from error
        found, ours = ([tuple(field) for field in fields] for fields in (recorded, typestore().fielddefs[msgtype][1]))
        if ours[-1][0] == 'faults' and found == ours[:-1]:
            self._before_faults.add(msgtype)
        elif found != ours:
            raise BagError(str(self.path), f'recorded with another version of {msgtype}: fields '
                                           + ', '.join(name for name, _ in recorded))

    def _warned(self, files: list[McapFile | Sqlite3File]) -> list[str]:
        return self._warnings + [warning for file in files for warning in file.warnings]

    # Files

    def _find_files(self) -> list[Path]:
        """Storage files in the order of recording."""
        if self.path.is_file():
            return [self.path]
        if not self.path.is_dir():
            raise BagError(str(self.path), 'is not a regular file' if self.path.exists() else 'does not exist')
        found = sorted((path for path in self.path.iterdir() if _format(path)), key=_natural)
        if not found:
            others = (path for path in sorted(self.path.glob('*.bag*')) if path.is_file())
            old = next((f'{path.name} {why}' for path in others for why in [why_none(path)] if why), '')
            raise BagError(str(self.path), old or 'is not a bag: it has no file .mcap or .db3')
        try:
            listed = [self.path / name for name in listed_files(self.path)]
        except ValueError as error:
            self._warnings.append(f'metadata.yaml {error}: all storage files are read')
            return found
        for path in listed:
            if not path.is_file():
                self._warnings.append(f'{path.name}: is missing')
        return [path for path in listed if path.is_file()] or found

    def _open(self, path: Path) -> McapFile | Sqlite3File | None:
        """The file, or None and a warning where nothing in it can be read."""
        named = _format(path)
        try:
            regular(path)
            kind = (None if path.suffix == _ZSTD else storage_of(path)) or named
            if kind:
                return FORMATS[kind](self._decompressed(path) if path.suffix == _ZSTD else path)
        except (ValueError, OSError) as error:
            self._warnings.append(f'{path.name}: {why_none(path) or error}')
            return None
        table = '; `mbse import TABLE --map MAP -o BAG` makes a bag of a table' * (path.suffix.lower() in TABLES)
        raise BagError(str(path), why_none(path) or f'is not a bag: expected a folder, .mcap or .db3{table}')

    def _decompressed(self, path: Path) -> Path:
        """A copy of a compressed file without the compression, its beginning where it is damaged."""
        folder = TemporaryDirectory(prefix='mbse_ros_bag_')
        self._unpacked.append(folder)
        target = Path(folder.name) / path.stem
        with open(path, 'rb') as source, open(target, 'wb') as sink:
            try:
                for block in blocks(source, Budget(path.stat().st_size)):
                    sink.write(block)
            except (zstandard.ZstdError, ValueError) as error:
                self._warnings.append(f'{path.name}: damaged ({error}) before byte {source.tell()}')
        return target


def open_bag(bag: Bag | str | Path) -> Bag:
    """The bag itself, or the one at a path."""
    return bag if isinstance(bag, Bag) else Bag(bag)


def decode(raw: RawMessage, store: Typestore | None = None) -> Any:
    """Message object of a typestore, by default this package's; raises SampleError where the bytes are not such a
    message."""
    from rosbags.serde import SerdeError  # here: slow to import
    try:
        return _deserialized(raw.data, raw.msgtype, store or typestore())
    except (SerdeError, KeyError, ValueError, IndexError, TypeError, AssertionError) as error:
        raise SampleError(raw.topic, raw.stamp_ns, f'{len(raw.data)} bytes', f'a {raw.msgtype} ({error})') from error


def looked_at(raw: RawMessage) -> Any:
    """The same fields of a message that is only read, of some types without their definitions, which cost a tenth of a
    second; raises SampleError as `decode`."""
    found = read(raw.data, raw.msgtype) if raw.msgtype in TYPES else None
    return decode(raw) if found is None else found.message


def _deserialized(data: bytes, msgtype: str, store: Typestore) -> Any:
    """The message; up to 11 bytes may follow it, which a publisher of serialized messages on Fast DDS leaves there."""
    from rosbags.serde import SerdeError  # here: slow to import
    for padding in (0, 4):
        try:
            return store.deserialize_cdr(data[:len(data) - padding], msgtype)
        except SerdeError:
            pass
    return store.deserialize_cdr(data[:-8], msgtype)


def _decompressed_message(data: bytes, budget: Budget) -> bytes:
    """The message, or the bytes as they are where they are damaged, or too many come out: decoding reports it."""
    try:
        return expanded(data, 'zstd', budget)
    except (zstandard.ZstdError, ValueError):
        return data


def _format(path: Path) -> str:
    """'.mcap' or '.db3', also of a compressed file; '' of another."""
    name = path.name[:-len(_ZSTD)] if path.suffix == _ZSTD else path.name
    suffix = Path(name).suffix
    return suffix if suffix in FORMATS else ''


def _natural(path: Path) -> list[int | str]:
    """Sorting key in which 10 comes after 9."""
    return [int(part) if part.isdigit() else part for part in re.split(r'(\d+)', path.name)]
