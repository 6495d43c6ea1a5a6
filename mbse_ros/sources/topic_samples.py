# SPDX-License-Identifier: Apache-2.0
"""Samples of channels in the messages of one topic, by a map: what a message says of its own sample (of which frame it
is, how exact), and whether channels come as often as their map expects."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isclose, isfinite, radians
from types import SimpleNamespace
from typing import Any, NamedTuple

from ..bags.bag import RawMessage, looked_at
from ..bags.channel_samples import Refuse, Sample, TopicReader
from ..bags.message_layout import Forms
from ..bags.messages import SECOND, SENSOR_LAST_NS, typestore
from ..bags.topics import IMU
from ..description.language.problems import Problems
from ..errors import DescriptionError, SampleError, did_you_mean, shown
from .fields import Fields, parse_path, path_text, store_fields
from .getters import Absent, getter, number_getter, of_quaternion, stamp_getter
from .map import ChannelSource
from .mount import mounted_getter

OTHER, UNCERTAIN = 'of another frame', 'too uncertain'
LARGEST = 1000.0        # times the variance of the machine's file: such a sample would tell nothing
NEAR = 1.5      # times the expected rate, or so much less
FEWEST = 20     # samples before a rate says something
ABSENT, UNFINITE, UNSTAMPED, UNREADABLE = 'no such element', 'not finite', 'no stamp', 'not readable'
A_STAMP = f'a stamp up to {SENSOR_LAST_NS // SECOND} s with less than {SECOND} ns'
FILLED = 'a stamp after 0: its publisher does not fill it in; `stamp: arrival` takes the time of arrival instead'
MOST = 40       # names in one message
DEGREE = radians(1.0)


class Unfit(Exception):
    """A sample that must not be used: ``why`` in words that are the same each time, ``what`` was ``expected``."""

    def __init__(self, why: str, what: object, expected: str) -> None:
        super().__init__(why)
        self.why, self.what, self.expected = why, what, expected


def guard_of(source: ChannelSource, msgtype: str, fields: Fields) -> Callable[[Any], float] | None:
    """Function from a message to how many samples of the machine's noise are worth one of it, 1 or more; None where the
    map asks nothing.

    It raises Unfit. Raises ValueError, a phrase with what there is, for a path that messages of this type do not have.
    """
    texts = [(_text_getter(path, msgtype, fields), path, name) for path, name in source.require]
    variance = number_getter(source.variance, msgtype, fields) if source.variance else None
    if not texts and variance is None:
        return None
    where, noise = path_text(source.variance), source.noise ** 2

    def guard(message: Any) -> float:
        key = 'require'
        try:
            for get, path, name in texts:
                if get(message) != name:
                    raise Unfit(OTHER, f'{path} {shown(get(message))}', f'{name}')
            if variance is None:
                return 1.0
            key = 'variance'
            value = source.gain ** 2 * float(variance(message))
        except Absent as absent:
            absent.key = key
            raise
        if not value >= 0.0:        # -1: the message has no such field (sensor_msgs/Imu)
            raise Unfit(UNCERTAIN, value, f'a variance of 0 (not known) or more in {where}')
        share = value / noise if noise else 1.0
        if share > LARGEST:
            raise Unfit(UNCERTAIN, value, f'a variance in {where} of at most {LARGEST:g} times that of the sensor in '
                                          f'the file of the machine, {noise:.3g}')
        return coarse(share)
    return guard


def coarse(share: float) -> float:
    """The next power of the square root of 2, at least 1: variances that differ little give the same plan of a
    segment."""
    return 1.0 if share <= 1.0 else 2.0 ** (math.ceil(2.0 * math.log2(share) - 1e-9) / 2.0)


def _text_getter(path: str, msgtype: str, fields: Fields) -> Callable[[Any], Any]:
    found = getter(parse_path(path), msgtype, fields)
    if not found.kind.is_text or found.kind.repeated:
        raise ValueError(f'a path to text in `require`; {path} is a {found.kind}')
    return found.get


class RateCounter:
    """Counts samples of the ``sources`` that expect a rate."""

    def __init__(self, sources: Sequence[ChannelSource]) -> None:
        self._expected = {source.channel: source.rate for source in sources if source.rate}
        self._seen: dict[str, list[int]] = {}

    def clear(self) -> None:
        """Forget all samples."""
        self._seen.clear()

    def add(self, channel: str, stamp_ns: int) -> None:
        """One more sample."""
        if channel in self._expected:
            seen = self._seen.setdefault(channel, [stamp_ns, stamp_ns, 0])      # first, last, intervals
            if stamp_ns > seen[1]:
                seen[1] = stamp_ns
                seen[2] += 1

    def lines(self) -> list[str]:
        """One line for all channels that come too often or too seldom alike; a second publisher, or lost messages."""
        found: dict[str, list[str]] = {}
        for channel, (first, last, count) in self._seen.items():
            rate, expected = count / ((last - first) * 1e-9) if last > first else 0.0, self._expected[channel]
            if count >= FEWEST and not expected / NEAR <= rate <= NEAR * expected:
                found.setdefault(f'{rate:.3g} Hz, expected {expected:g} Hz (rate)', []).append(channel)
        return [f'{", ".join(channels)}: {text}' for text, channels in found.items()]


class UnusableSample(SampleError):
    """A sample that a message does not have, or not as a number: ``why`` is one of the four words above or
    those of `guard_of`, ``source`` what was read."""

    def __init__(self, source: ChannelSource, stamp_ns: int, value: object, expected: str, why: str) -> None:
        super().__init__(source.channel, stamp_ns, value, expected)
        self.source, self.why = source, why

    def __reduce__(self) -> tuple[Any, ...]:
        return UnusableSample, (self.source, self.stamp_ns, self.value, self.expected, self.why)


class _Bound(NamedTuple):
    """A source, with the functions for its type."""

    source: ChannelSource
    value: Callable[[Any], Any]
    stamp: Callable[[Any], int] | None
    expected: str
    guard: Callable[[Any], float] | None


class TopicSamples:
    """The channels of ``sources``, all of one ``topic``, out of messages of type ``msgtype``.

    ``absent``: of channels whose element was missing, what the last such message had instead. Raises DescriptionError
    (file, key, value, what there is) for a path, stamp or type that does not fit the type of the messages.
    """

    def __init__(self, topic: str, sources: Sequence[ChannelSource], msgtype: str, fields: Fields) -> None:
        self.topic, self.msgtype = topic, msgtype
        self.absent: dict[str, Absent] = {}
        stamps: dict[str, Callable[[Any], int] | None] = {}
        problems = Problems()
        found = [problems.tried(partial(self._bind, source, msgtype, fields, stamps), None) for source in sources]
        problems.check()
        self._bound = [bound for bound in found if bound is not None]

    @property
    def sources(self) -> list[ChannelSource]:
        """What is read here."""
        return [bound.source for bound in self._bound]

    def samples(self, message: Any, arrival_ns: int, refuse: Refuse) -> list[Sample]:
        """Samples of a message, an object or nested mappings, that arrived at a time, ns.

        ``refuse`` gets a LeftOut for each that is left out.
        """
        if isinstance(message, Mapping):
            message = as_object(message)
        found: list[Sample] = []
        known: dict[Callable[[Any], int], int] = {}
        for source, value_of, stamp_of, expected, guard in self._bound:
            stamp, share, wanted = arrival_ns, 1.0, expected
            try:
                if stamp_of is not None:
                    wanted = A_STAMP
                    if stamp_of not in known:
                        known[stamp_of] = stamp_of(message)
                    stamp = known[stamp_of]
                    if stamp == 0 and not source.own:
                        refuse(UnusableSample(source, 0, 0, FILLED, UNSTAMPED))
                        continue
                wanted = expected
                if guard is not None:
                    share = guard(message)
                value = float(value_of(message))
            except Unfit as unfit:
                refuse(UnusableSample(source, stamp, unfit.what, unfit.expected, unfit.why))
                continue
            except Absent as absent:
                self.absent[source.channel] = absent
                if source.own:
                    continue
                refuse(UnusableSample(source, arrival_ns, absent.what, expected if absent.key == 'path' else
                                      f'what `{absent.key}` of {source.place.key} names', ABSENT))
                continue
            except (ValueError, TypeError, OverflowError) as error:
                refuse(UnusableSample(source, arrival_ns, str(error), wanted, UNREADABLE))
                continue
            if not isfinite(value) and not source.own:
                refuse(UnusableSample(source, stamp, value, f'a finite number in {expected}', UNFINITE))
                continue
            found.append(Sample(source.channel, stamp - source.delay_ns, source.gain * value + source.bias, share))
        return found

    def candidates(self, source: ChannelSource) -> str:
        """What the last message without the element of a source had instead, in words."""
        there = self.absent[source.channel].there if source.channel in self.absent else ()
        path = source.variance if source.channel in self.absent and self.absent[source.channel].key == 'variance' else (
            source.path)
        wanted = next((name for step in path if step.selection for name in step.selection.names), '')
        return (', '.join(map(shown, there[:MOST])) or 'none, the array is empty') + did_you_mean(wanted, there)

    def _bind(self, source: ChannelSource, msgtype: str, fields: Fields,
              stamps: dict[str, Callable[[Any], int] | None]) -> _Bound:
        key, value = 'type', msgtype
        try:
            if source.type and source.type != msgtype:
                raise DescriptionError(source.place.file, f'{source.place.key}.type', source.type,
                                       f'{msgtype}, the type of {self.topic}')
            fields(msgtype)
            key, value = 'path', path_text(source.path)
            get = (number_getter(source.path, msgtype, fields) if source.mount is None else
                   mounted_getter(source.path, msgtype, fields, source.mount))
            if isclose(abs(source.gain), DEGREE, rel_tol=1e-9) and of_quaternion(source.path, msgtype, fields):
                key, value = 'unit', 'deg'
                raise ValueError('rad, in which the angles of a quaternion are')
            key, value = 'stamp', source.stamp
            if source.stamp not in stamps:
                stamps[source.stamp] = stamp_getter(source.stamp, msgtype, fields)
            key, value = 'variance', path_text(source.variance)
            guard = guard_of(source, msgtype, fields)
        except KeyError as error:
            raise source.place.error('type', msgtype, f'a message type whose definition is known; {error.args[0]} is '
                                     'neither in the bag nor installed: name its .msg file below `definitions`'
                                     ) from error
        except ValueError as error:
            raise source.place.error(key, value, f'{error} (messages of {self.topic}: {msgtype})') from None
        return _Bound(source, get, stamps[source.stamp], f'{path_text(source.path)} of {self.topic}', guard)


class OwnTopicSamples(TopicSamples):
    """The same of one of this package's own topics, out of serialized messages; those that differ in stamp and numbers
    alone cost a tenth."""

    def __init__(self, topic: str, sources: Sequence[ChannelSource]) -> None:
        super().__init__(topic, sources, sources[0].type, store_fields(typestore()))
        self._arrival_ns = 0        # of the message that is read by itself
        refused: list[SampleError] = []
        self._forms = Forms(topic, self.reader(refused.append), refused)

    def reader(self, refuse: Refuse) -> TopicReader:
        """What reads single messages, for those with the same layout."""
        return TopicReader(self.msgtype, lambda _, message: self.samples(message, self._arrival_ns, refuse))

    def _bind(self, source: ChannelSource, msgtype: str, fields: Fields,
              stamps: dict[str, Callable[[Any], int] | None]) -> _Bound:
        """A field of an Imu whose covariance begins with -1 is not there, as the definition of the message says."""
        bound = super()._bind(source, msgtype, fields, stamps)
        if msgtype != IMU:
            return bound
        field, value = source.path[0].field, bound.value

        def measured(message: Any) -> Any:
            if getattr(message, f'{field}_covariance')[0] == -1.0:
                raise Absent(f'no {field}', [f'{field}_covariance of -1'])
            return value(message)
        return bound._replace(value=measured)

    def serialized(self, cdr: bytes, arrival_ns: int, refuse: Refuse) -> list[Sample]:
        """Samples of a message that arrived at a time, ns; raises SampleError for bytes that are not one."""
        self._arrival_ns = arrival_ns
        return self._forms.read(cdr, lambda cdr: looked_at(RawMessage(arrival_ns, self.topic, self.msgtype, cdr)),
                                refuse)


def as_object(value: Any) -> Any:
    """Nested mappings as objects with attributes."""
    if isinstance(value, Mapping):
        return SimpleNamespace(**{name: as_object(item) for name, item in value.items()})
    if isinstance(value, (list, tuple)):
        return [as_object(item) for item in value]
    return value
