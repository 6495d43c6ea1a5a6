# SPDX-License-Identifier: Apache-2.0
"""Samples of channels in the messages of one topic, by a map."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isclose, isfinite, radians
from types import SimpleNamespace
from typing import Any, NamedTuple

from ..bags.channel_samples import Refuse, Sample
from ..errors import DescriptionError, SampleError, shown
from .fields import Fields
from .getters import Absent, number_getter, of_quaternion
from .guards import Unfit, guard_of
from .map import ChannelSource
from .mount import mounted_getter
from .path import path_text
from .proposals.words import near
from .stamps import stamp_getter

ABSENT, UNFINITE, UNSTAMPED, UNREADABLE = 'no such element', 'not finite', 'no stamp', 'not readable'
FILLED = 'a stamp after 0: its publisher does not fill it in; `stamp: arrival` takes the time of arrival instead'
MOST = 40       # names in one message
DEGREE = radians(1.0)


class UnusableSample(SampleError):
    """A sample that a message does not have, or not as a number: ``why`` is one of the four words above or
    those of `guards`, ``source`` what was read."""

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
        self._bound = [self._bind(source, msgtype, fields, stamps) for source in sources]

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
            stamp, share = arrival_ns, 1.0
            try:
                if stamp_of is not None:
                    if stamp_of not in known:
                        known[stamp_of] = stamp_of(message)
                    stamp = known[stamp_of]
                    if stamp == 0:
                        refuse(UnusableSample(source, 0, 0, FILLED, UNSTAMPED))
                        continue
                if guard is not None:
                    share = guard(message)
                value = float(value_of(message))
            except Unfit as unfit:
                refuse(UnusableSample(source, stamp, unfit.what, unfit.expected, unfit.why))
                continue
            except Absent as absent:
                self.absent[source.channel] = absent
                refuse(UnusableSample(source, arrival_ns, absent.what, expected, ABSENT))
                continue
            except (ValueError, TypeError, OverflowError) as error:
                refuse(UnusableSample(source, arrival_ns, str(error), expected, UNREADABLE))
                continue
            if not isfinite(value):
                refuse(UnusableSample(source, stamp, value, f'a finite number in {expected}', UNFINITE))
                continue
            found.append(Sample(source.channel, stamp - source.delay_ns, source.gain * value + source.bias, share))
        return found

    def candidates(self, source: ChannelSource) -> str:
        """What the last message without the element of a source had instead, in words."""
        there = self.absent[source.channel].there if source.channel in self.absent else ()
        wanted = next((name for step in source.path if step.selection for name in step.selection.names), '')
        return (', '.join(map(shown, there[:MOST])) or 'none, the array is empty') + near(wanted, there)

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


def as_object(value: Any) -> Any:
    """Nested mappings as objects with attributes."""
    if isinstance(value, Mapping):
        return SimpleNamespace(**{name: as_object(item) for name, item in value.items()})
    if isinstance(value, (list, tuple)):
        return [as_object(item) for item in value]
    return value
