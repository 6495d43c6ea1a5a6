# SPDX-License-Identifier: Apache-2.0
"""What a map of sources found in a graph, judged channel by channel. No ROS in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from statistics import median

from ..errors import did_you_mean, shown
from ..machine import Machine
from ..monitor.bounds import RangeCheck, machine_ends
from ..monitor.faults import NONE, Fault, reason_of
from ..sources.map import SourceMap
from ..sources.topic_samples import FEWEST, NEAR
from .checks import FAILS, OK, WARNING, Check
from .traffic import AHEAD, LATE

MOST = 20           # topics in one message
STAMPS = 'stamp messages by a synchronised clock, or `stamp: arrival` in the map'


@dataclass
class Fed:
    """A channel of a map while it was listened to: the ``topic`` that serves it ('' none is there) and its publishers,
    stamps, ns, ages on arrival, s, the newest value, SI, and why samples were left out, with how often."""

    topic: str = ''
    publishers: tuple[str, ...] = ()
    stamps: list[int] = field(default_factory=list)
    ages: list[float] = field(default_factory=list)
    value: float = nan
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Samples a second by their stamps, Hz; 0 of fewer than two."""
        span = (max(self.stamps) - min(self.stamps)) * 1e-9 if self.stamps else 0.0
        return (len(self.stamps) - 1) / span if span > 0.0 else 0.0


@dataclass(frozen=True)
class MapTraffic:
    """What came within ``seconds``: by channel; ``faults`` of the map in this graph, in words; ``topics`` that somebody
    publishes."""

    seconds: float
    channels: Mapping[str, Fed]
    faults: Sequence[str] = ()
    topics: Sequence[str] = ()


def map_checks(found: MapTraffic, sources: SourceMap, machine: Machine) -> list[Check]:
    """One line for each channel of the map, with how to fix it."""
    values = [found.channels[name].value if name in found.channels else nan for name in machine.channels]
    odd = {machine.channels[place]: fault for fault, places in RangeCheck(machine_ends(machine)).take(values).items()
           for place in places}
    checks = [Check('map', FAILS, text, 'correct the map (docs/sources.md)') for text in found.faults]
    return checks + [_channel(name, found, sources, odd.get(name, NONE)) for name in sources.channels]


def _channel(name: str, found: MapTraffic, sources: SourceMap, odd: Fault) -> Check:
    fed, title = found.channels.get(name, Fed()), f'channel {name}'
    ways = sources.channels[name]
    if not fed.topic and any(topic == way.topic or topic.endswith(f'/{way.topic}') for way in ways
                             for topic in found.topics if found.faults):
        return Check(title, FAILS, f'not read: the map does not fit the messages of {ways[0].topic}', 'see map above')
    if not fed.topic:
        wanted = ' or '.join(dict.fromkeys(way.topic for way in ways))
        there = ', '.join(map(shown, found.topics[:MOST])) or 'none'
        return Check(title, FAILS, f'no publisher of {wanted} with a type of the map',
                     f'start its driver, or correct the topic; there are {there}'
                     + did_you_mean(ways[0].topic, found.topics))
    where = f'{fed.topic}' + (f', from {shown(fed.publishers[0])}' if fed.publishers else '')
    left = max(fed.left_out, key=fed.left_out.__getitem__, default='')
    if not fed.stamps:
        rests = name.startswith('command/') and not left
        return Check(title, WARNING if rests else FAILS,
                     f'left out: {left} ({where})' if left else f'no message in {found.seconds:g} s ({where})',
                     'correct path, stamp or require in the map' if left else
                     'it may be sent only when it changes, but must have been sent once' if rests else
                     'look whether the driver runs and its sensor is connected')
    age = median(fed.ages)
    text = f'{fed.value:.6g} {ways[0].unit}, ' + (f'{fed.rate:.1f} Hz' if fed.rate else f'{len(fed.stamps)} sample')
    text += f', {abs(age) * 1e3:.0f} ms ' + ('old' if age >= 0.0 else 'in the future') + f' ({where})'
    if len(fed.publishers) > 1:
        return Check(title, FAILS, f'{text}: {len(fed.publishers)} publishers', 'end one, or name another topic')
    if odd:
        return Check(title, FAILS, f'{text}: {reason_of(odd)}', 'correct unit, offset, scale or sign in the map'
                     if odd is Fault.FAR else 'correct the unit in the map, or look after the sensor')
    if left:
        return Check(title, WARNING, f'{text}; {fed.left_out[left]} left out: {left}', 'look after the publisher')
    rate = next((way.rate for way in ways if way.rate), None)
    if rate and len(fed.stamps) > FEWEST and not rate / NEAR <= fed.rate <= NEAR * rate:
        return Check(title, WARNING, f'{text}, expected {rate:g} Hz', 'correct `rate`, or look for lost messages')
    if age > LATE or age < -AHEAD:
        return Check(title, WARNING, text, STAMPS)
    return Check(title, OK, text)
