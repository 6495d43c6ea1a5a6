# SPDX-License-Identifier: Apache-2.0
"""Which topics of a bag or a graph a map means: its namespace, and of several ways to a channel the first that is
there."""

from __future__ import annotations

from collections.abc import Mapping

from ..bags.topics import TopicMap, one_namespace
from ..errors import BagError
from .map import ChannelSource, SourceMap
from .proposals.words import near

MOST = 60       # topics in one message


def find_namespace(sources: SourceMap, topics: Mapping[str, str], given: str | None, path: str) -> str:
    """The namespace given, else the one under which ``topics`` (to their types) serve most channels of the map.

    '' where none serves any; raises BagError where several serve as many.
    """
    if given is not None:
        return one_namespace(given, set(), path)
    spaces = {space for source in sources.sources for space in _spaces(source, topics)}
    served = {space: sum(any(_there(way, topics, space) for way in ways) for ways in sources.channels.values())
              for space in spaces}
    best = max(served.values(), default=0)
    found = {space for space, count in served.items() if count == best}
    return one_namespace(None, found if best or len(found) == 1 else set(), path)


def _spaces(source: ChannelSource, topics: Mapping[str, str]) -> list[str]:
    """Namespaces in which a topic of a source's name is."""
    return [] if source.topic.startswith('/') else [topic[:-len(source.topic) - 1] for topic in topics
                                                    if topic.endswith(f'/{source.topic}')]


def _there(source: ChannelSource, topics: Mapping[str, str], space: str) -> bool:
    kind = topics.get(TopicMap().absolute(source.topic, space))
    return kind is not None and source.type in ('', kind)


def chosen(sources: SourceMap, topics: Mapping[str, str], space: str) -> dict[str, list[ChannelSource]]:
    """Sources by the full names of their topics: of each channel the first whose topic is there; of a channel without
    any, none."""
    found: dict[str, list[ChannelSource]] = {}
    for ways in sources.channels.values():
        way = next((way for way in ways if _there(way, topics, space)), None)
        if way is not None:
            found.setdefault(TopicMap().absolute(way.topic, space), []).append(way)
    return found


def refuse_absent(sources: SourceMap, topics: Mapping[str, str], space: str, path: str) -> None:
    """Raise DescriptionError for a channel whose topic is not there, with those that are."""
    if not topics:
        raise BagError(path, 'has no topics')
    for ways in sources.channels.values():
        if any(_there(way, topics, space) for way in ways):
            continue
        way = ways[0]
        full = TopicMap().absolute(way.topic, space)
        if full in topics:
            raise way.place.error('type', way.type, f'{topics[full]}, the type of {full} in {path}')
        listed = [f'{topic} ({kind})' for topic, kind in sorted(topics.items())]
        more = f', ... ({len(listed)} in all)' if len(listed) > MOST else ''
        others = ''.join(f', or {other.topic}' for other in ways[1:])
        hint = ' (--valve unknown needs no command)' if way.channel.startswith('command/') else ''
        raise way.place.error('topic', way.topic + others, f'a topic of {path}: ' + ', '.join(listed[:MOST]) + more
                              + near(full, topics) + hint)
