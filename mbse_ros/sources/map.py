# SPDX-License-Identifier: Apache-2.0
"""The map of sources: which channel comes from which field of which topic; docs/sources.md describes the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from ..bags.channels import UNITS, Conversion, examples, parse_channel, read_conversion, read_number
from ..description.language.document import read_document
from ..description.language.entry import Entry
from ..description.language.problems import Problems
from ..errors import DescriptionError, did_you_mean
from ..resources import read_text, regular, share_directory
from .fields import ARRIVAL, EXAMPLE, HEADER_STAMP, parse_path, path_text
from .fields import Path as FieldPath
from .mount import Mount, read_mount

FORMAT = 'mbse/sources/1'
NO_MAP = 'none'         # as the name of a map: none, the machine's own section neither
USUAL = {'m': 'm, mm, cm', 'rad': 'rad, deg', 'm/s': 'm/s, mm/s', 'rad/s': 'rad/s, deg/s', 'Pa': 'Pa, kPa, MPa, bar',
         'm/s^2': 'm/s^2, standard_gravity', 'V': 'V, mV', 'N': 'N, kN', 'N*m': 'N*m, kN*m'}
_OF_TOPIC = ('type', 'stamp', 'delay', 'rate', 'require', 'mount')
_OF_CHANNEL = ('offset', 'scale', 'sign', 'optional', 'source', 'variance', *_OF_TOPIC)
T = TypeVar('T')
_TOPIC = re.compile(r'/?[A-Za-z_][A-Za-z0-9_]*(?:/[A-Za-z_][A-Za-z0-9_]*)*')
_TYPE = re.compile(r'[A-Za-z][A-Za-z0-9_]*/(?:msg/)?[A-Za-z][A-Za-z0-9]*')


class FilePlace(NamedTuple):
    """Where in a file something stands: to raise errors about it."""

    file: str
    key: str

    def error(self, key: str, value: object, expected: str) -> DescriptionError:
        """The error about a key here."""
        return DescriptionError(self.file, '.'.join(part for part in (self.key, key) if part), value, expected)


@dataclass(frozen=True)
class ChannelSource:
    """One way to get a channel: ``gain * number + bias``, in ``unit``, of the field at ``path``.

    ``stamp``: 'header', 'arrival', or a path; ``delay_ns`` is taken off it. ``rate``: expected, Hz, None: any.
    ``type``: of the message, '' where the topic's counts. ``optional``: a machine may lack the channel. ``variance``:
    path to that of the number, () where the machine's file counts alone; ``require``: paths, and the text that must be
    there. ``noise``: standard deviation of the machine's sensor, SI, 0 where it is not known. ``mount``: how an IMU is
    turned on its body, None: not at all. ``own``: of one of this package's topics, where NaN is a missing sample, a
    stamp of 0 the start of a simulation, and a message without the channel usual.
    """

    channel: str
    topic: str
    path: FieldPath
    gain: float
    bias: float
    unit: str
    place: FilePlace
    stamp: str = HEADER_STAMP
    delay_ns: int = 0
    rate: float | None = None
    type: str = ''
    optional: bool = False
    variance: FieldPath = ()
    require: tuple[tuple[str, str], ...] = ()
    noise: float = 0.0
    mount: Mount | None = None
    own: bool = False


@dataclass(frozen=True)
class SourceMap:
    """``channels``: ways to get each, the first whose topic is there counts; ``definitions``: texts of message types
    that a bag may lack, by type."""

    file: str
    name: str = ''
    channels: Mapping[str, tuple[ChannelSource, ...]] = field(default_factory=dict)
    definitions: Mapping[str, str] = field(default_factory=dict)

    @property
    def sources(self) -> list[ChannelSource]:
        """All of them."""
        return [source for ways in self.channels.values() for source in ways]


def load_sources(name_or_path: str | Path) -> SourceMap:
    """Read and check a map: a name out of config/sources, 'none', or a path to a YAML file; raises DescriptionError."""
    path = Path(name_or_path)
    if str(name_or_path) == NO_MAP:
        return SourceMap(NO_MAP)
    if path.suffix not in ('.yaml', '.yml'):
        known = known_sources()
        if str(name_or_path) not in known:
            raise DescriptionError(str(name_or_path), 'sources', str(name_or_path),
                                   f'a path to a .yaml file, {NO_MAP}, or one of ' + ', '.join(known)
                                   + did_you_mean(name_or_path, known))
        path = known[str(name_or_path)]
    return parse_sources(read_text(path), str(path))


def known_sources() -> dict[str, Path]:
    """The files of config/sources by name."""
    return {path.stem: path for path in sorted((share_directory() / 'config' / 'sources').glob('*.yaml'))}


def parse_sources(text: str, file: str = 'text') -> SourceMap:
    """As load_sources, from the text; ``definitions`` are found from the folder of ``file``. All errors of the map are
    raised at once, DescriptionErrors of several."""
    def read(root: Entry, problems: Problems) -> SourceMap:
        parts = root.mapping(['format', 'channels'], ['name', 'source', 'topics', 'definitions'])
        if 'format' in root.value:      # of another format nothing can be said
            parts['format'].choice([FORMAT], 'the format')
        return _map(file, parts)
    return Entry(file, '', read_document(text, file)).whole(read)


def sources_of_section(entry: Entry) -> SourceMap:
    """The same of the section `sources` of a machine's file."""
    return entry.whole(lambda entry, _: _map(entry.file, entry.mapping(['channels'], ['topics', 'definitions'])))


def _map(file: str, parts: Mapping[str, Entry]) -> SourceMap:
    topics: dict[str, dict[str, Entry]] = {}
    if 'topics' in parts:
        topics = parts['topics'].tried(lambda: _topics(parts['topics']), topics)
    channels = parts['channels']
    expected = 'a mapping from channels such as ' + examples(UNITS)
    if not isinstance(channels.value, dict) or not channels.value:
        raise channels.error(expected)
    found: dict[str, tuple[ChannelSource, ...]] = {}
    for name, value in channels.value.items():
        try:
            kind = parse_channel(name, tuple(UNITS)).kind
        except ValueError:
            channels.wrong(expected, name, name)
            continue
        item = channels.part(name, value)
        ways = item.items('ways to get the channel') if isinstance(value, list) and value else [item]
        sources = (way.tried(partial(_source, name, way, UNITS[kind], topics), None) for way in ways)
        found[name] = tuple(source for source in sources if source is not None)
    used = dict.fromkeys(source.topic for ways in found.values() for source in ways)
    for topic in topics:
        if topic not in used and channels.sound:
            parts['topics'].wrong('a topic of one of the channels: ' + ', '.join(used), topic, topic)
    name = parts['name'].tried(parts['name'].name, '') if 'name' in parts else ''
    return SourceMap(file, name, found, _definitions(parts['definitions']) if 'definitions' in parts else {})


def _topics(entry: Entry) -> dict[str, dict[str, Entry]]:
    """What holds for all channels of a topic, by topic."""
    if not isinstance(entry.value, dict):
        raise entry.error('a mapping from topics to what holds for all their channels: ' + ', '.join(_OF_TOPIC))
    return {_topic_name(replace(entry, value=topic)): entry.part(topic, value).mapping([], _OF_TOPIC)
            for topic, value in entry.value.items()}


def _source(channel: str, entry: Entry, wanted: tuple[str, ...],
            topics: Mapping[str, dict[str, Entry]]) -> ChannelSource:
    own = entry.mapping(['topic', 'path', 'unit'], _OF_CHANNEL)
    topic = own['topic'].tried(lambda: _topic_name(own['topic']), '')
    parts = {**topics.get(topic, {}), **own}

    def read(key: str, reader: Callable[[Entry], T], default: T) -> T:
        return parts[key].tried(lambda: reader(parts[key]), default) if key in parts else default

    sign = read('sign', _sign, 1.0)
    gain, bias, unit = entry.tried(lambda: read_conversion(parts, wanted, USUAL), Conversion(1.0, 0.0, ''))
    return ChannelSource(
        channel, topic, read('path', _path, ()), sign * gain, sign * bias, unit, FilePlace(entry.file, entry.key),
        read('stamp', _stamp, HEADER_STAMP), read('delay', _delay, 0), read('rate', _rate, None),
        read('type', _type, ''), read('optional', Entry.flag, False), read('variance', _path, ()),
        read('require', _require, ()), mount=read('mount', lambda entry: _mount(entry, parts), None))


def _topic_name(entry: Entry) -> str:
    name = entry.text('the name of a topic')
    if not _TOPIC.fullmatch(name):
        raise entry.error('the name of a topic such as joint_states, relative to the namespace, or /crane/joint_states',
                          name)
    return name


def _type(entry: Entry) -> str:
    name = entry.text('a message type')
    if not _TYPE.fullmatch(name):
        raise entry.error('a message type such as sensor_msgs/msg/JointState')
    package, _, kind = name.replace('/msg/', '/').partition('/')
    return f'{package}/msg/{kind}'


def _path(entry: Entry) -> FieldPath:
    text = entry.text(EXAMPLE)
    try:
        return parse_path(text)
    except ValueError as error:
        raise entry.error(str(error)) from None


def _stamp(entry: Entry) -> str:
    text = entry.text(f'{HEADER_STAMP}, {ARRIVAL}, or a path to a nested header')
    if text not in (HEADER_STAMP, ARRIVAL):
        _path(entry)
    return text


def _require(entry: Entry) -> tuple[tuple[str, str], ...]:
    """Paths to text, and what must stand there."""
    if not isinstance(entry.value, dict) or not entry.value:
        raise entry.error('a mapping from paths to text such as {child_frame_id: base_link}')
    found = {path: Entry(entry.file, f'{entry.key}.{path}', text) for path, text in entry.value.items()}
    return tuple((path_text(_path(Entry(entry.file, entry.key, path))), item.text('the text that must be there'))
                 for path, item in found.items())


def _mount(entry: Entry, parts: Mapping[str, Entry]) -> Mount | None:
    if 'variance' in parts:
        raise parts['variance'].error('no variance where `mount` is given: it is about the axes of the IMU')
    return read_mount(entry)


def _sign(entry: Entry) -> float:
    return float(entry.choice(('+1', '1', '-1'), '+1 or -1'))


def _delay(entry: Entry) -> int:
    return round(1e9 * _number(entry, 's', '20 ms'))


def _rate(entry: Entry) -> float:
    rate = _number(entry, 'Hz', '100 Hz')
    if not 0.0 < rate <= 1e6:
        raise entry.error('a rate above 0, such as 100 Hz')
    return rate


def _number(entry: Entry, unit: str, example: str) -> float:
    number, dimension = read_number(entry)
    if dimension != {'s': 1 if unit == 's' else -1}:
        raise entry.error(f'a number with a unit of {unit}, such as {example}')
    return number


def _definitions(entry: Entry) -> dict[str, str]:
    """Texts of message definitions by type, out of files beside the map."""
    if not isinstance(entry.value, dict):
        raise entry.error('a mapping from message types to .msg files')
    found = {}
    for name, value in entry.value.items():
        item = entry.part(name, value)
        path = Path(entry.file).parent / item.text('a path to a .msg file, from the folder of this file')
        try:
            found[_type(Entry(entry.file, entry.key, name))] = regular(path).read_text(encoding='utf-8')
        except (OSError, UnicodeDecodeError) as error:
            raise item.error(f'a readable .msg file ({error})') from error
    return found
