# SPDX-License-Identifier: Apache-2.0
"""What was heard of a machine's graph, judged: publishers, rates, stamps, names. No ROS in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from statistics import median

from ..bags.channel_samples import own_place
from ..bags.topics import TopicMap
from ..errors import shown
from ..monitor.clocks import Age, apart_ages, offsets
from ..streams.interpolation import InterpolationSettings
from .checks import FAILS, OK, WARNING, Check

LATE = 0.1          # s: median age of a message from which it is worth a word
AHEAD = 0.01        # s in the future
SILENT = InterpolationSettings().lost_after     # s between two sensors: one is taken for silent then
NEAR = 0.75         # likeness of names from which one is taken for a slip of the pen


@dataclass
class Heard:
    """A topic while it was listened to: types and publishers of the graph, arrivals (steady clock, s) and ages, s.

    ``ages``: time of the arrival less the header's stamp, by the wall clock, or by /clock where that is published.
    """

    kinds: tuple[str, ...] = ()
    publishers: tuple[str, ...] = ()
    arrivals: list[float] = field(default_factory=list)
    ages: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Messages a second between the first and the last one, Hz; 0 of fewer than two."""
        span = self.arrivals[-1] - self.arrivals[0] if self.arrivals else 0.0
        return (len(self.arrivals) - 1) / span if span > 0.0 else 0.0


@dataclass
class Traffic:
    """What came within ``seconds``, by topics relative to the namespace.

    ``channels``: channels that had a sample; ``slips``: lines about names that nearly are the machine's; ``passed``:
    lines about other names; ``refused``: the first line about a bad message of each topic.
    """

    seconds: float
    topics: dict[str, Heard] = field(default_factory=dict)
    channels: set[str] = field(default_factory=set)
    slips: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Expected:
    """What a machine's graph has: topics to their types, channels, and the topics that may rest (commands)."""

    sensors: Mapping[str, str]
    produced: Mapping[str, str]
    channels: tuple[str, ...]
    resting: frozenset[str] = frozenset()


def traffic_checks(traffic: Traffic, expected: Expected) -> list[Check]:
    """One line a topic, and one for each stranger among the sensors."""
    known = {**expected.sensors, **expected.produced}
    alive = [topic for topic, heard in traffic.topics.items() if heard.publishers]
    if not alive:
        return [Check('topics', WARNING, f'no publisher for this machine ({traffic.seconds:g} s)',
                      'start the graph, e.g. mbse up machine; or give --namespace, ROS_DOMAIN_ID')]
    found = [_sensor(topic, kind, traffic, topic in expected.resting) for topic, kind in expected.sensors.items()]
    found += [_produced(topic, kind, traffic) for topic, kind in expected.produced.items()]
    found += [_stranger(topic, known) for topic in sorted(alive) if topic not in known]
    found += [Check(f'channel {name}', FAILS, 'no sample, though its topic is there',
                    'name it in the messages as the machine\'s file does (docs/topics.md)')
              for name in expected.channels if name not in traffic.channels and _spoken(name, traffic)]
    return [*found, *_names(traffic), *_apart(traffic, expected)]


def _sensor(topic: str, kind: str, traffic: Traffic, rests: bool) -> Check:
    heard, name = traffic.topics.get(topic, Heard()), f'topic {topic}'
    if not heard.publishers:
        return Check(name, FAILS, 'no publisher', f'publish it ({kind}), or remap the topic of your driver to it')
    bad = _type_or_double(name, kind, heard)
    if bad:
        return bad
    if not heard.arrivals:
        return Check(name, WARNING if rests else FAILS, f'no message in {traffic.seconds:g} s{_of(heard)}',
                     'it may be sent only when it changes, but must have been sent once' if rests else
                     'look whether the driver runs and its sensor is connected')
    return _timing(name, heard)


def _produced(topic: str, kind: str, traffic: Traffic) -> Check:
    heard, name = traffic.topics.get(topic, Heard()), f'topic {topic}'
    if not heard.publishers:
        return Check(name, WARNING, 'no publisher', 'start the nodes: mbse up machine simulate:=false')
    bad = _type_or_double(name, kind, heard)
    if bad:
        return bad
    if not heard.arrivals:
        return Check(name, WARNING, f'no message in {traffic.seconds:g} s{_of(heard)}',
                     'look at /diagnostics and the log of this node')
    return _timing(name, heard)


def _type_or_double(name: str, kind: str, heard: Heard) -> Check | None:
    if kind not in heard.kinds:
        return Check(name, FAILS, f'type {", ".join(map(shown, heard.kinds))}, expected {kind}',
                     'publish that type, or remap this topic')
    if len(heard.publishers) > 1:
        return Check(name, FAILS, f'two publishers or more: {", ".join(map(shown, heard.publishers))}',
                     'end one of them, or give one graph a namespace; a node that was killed is gone after 10 s')
    return None


def _timing(name: str, heard: Heard) -> Check:
    text, age = f'{heard.rate:.1f} Hz' if heard.rate else f'{len(heard.arrivals)} message', None
    if heard.ages:
        age = median(heard.ages)
        text += f', {_milliseconds(age)}{_of(heard)}'
    if age is not None and age > LATE:
        return Check(name, WARNING, text, 'stamp messages when the sample is taken by a synchronised clock; where the '
                     'stamps are right, look for load or a slow network')
    if age is not None and age < -AHEAD:
        return Check(name, WARNING, text, 'the clock of the sender is ahead: synchronise both computers; or '
                     'use_sim_time with /clock')
    return Check(name, OK, text)


def _stranger(topic: str, known: Iterable[str]) -> Check:
    near = get_close_matches(topic, list(known), 1, NEAR)
    mend = f'did you mean {near[0]}? Remap it' if near else 'remap it, where it is one of the machine\'s sensors'
    return Check(f'topic {shown(topic)}', WARNING, 'the machine has no such topic', mend)


def _names(traffic: Traffic) -> list[Check]:
    found = [Check('names', WARNING, text, 'rename it in the driver or in the machine\'s file')
             for text in traffic.slips]
    found += [Check('names', OK, text) for text in traffic.passed]
    return found + [Check(f'samples of {topic}', WARNING, f'dropped: {text}', 'correct the driver (docs/topics.md)')
                    for topic, text in traffic.refused.items()]


def _apart(traffic: Traffic, expected: Expected) -> list[Check]:
    ages = {topic: median(heard.ages) for topic in expected.sensors if topic not in expected.resting
            and (heard := traffic.topics.get(topic)) and heard.ages}
    if not ages:
        return []
    slow, quick = max(ages, key=ages.__getitem__), min(ages, key=ages.__getitem__)
    apart = ages[slow] - ages[quick]
    if apart > SILENT:
        return [Check('stamps', FAILS, f'{slow} is {apart:.3f} s behind {quick}: it is taken for silent',
                      'stamp both by one clock, or raise lost_after of interpolation_node')]
    strange = apart_ages({topic: Age(offset, 0.0) for topic, offset in offsets(ages).items()})
    if strange:
        return [Check('stamps', WARNING, f'{topic}: {age.words}', 'stamp all by one synchronised clock at the instant '
                      'of the sample; where the stamps are right, look for what keeps this topic')
                for topic, age in strange.items()]
    return [Check('stamps', OK, f'sensors are {apart * 1000:.0f} ms apart at most')]


def _spoken(channel: str, traffic: Traffic) -> bool:
    """Whether messages came on the topic of a channel; where none came, the topic's line says so."""
    heard = traffic.topics.get(own_place(channel, TopicMap())[0])
    return heard is not None and bool(heard.arrivals)


def _milliseconds(age: float) -> str:
    size = f'{abs(age) * 1000:.0f} ms' if abs(age) < 10.0 else f'{abs(age):.0f} s'
    return f'{size} old' if age >= 0.0 else f'{size} in the future'


def _of(heard: Heard) -> str:
    return f', from {shown(heard.publishers[0])}' if heard.publishers else ''
