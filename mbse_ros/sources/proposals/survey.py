# SPDX-License-Identifier: Apache-2.0
"""What there is on the topics of a bag or a graph: types, rates, stamps, and every number over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import nan
from random import Random
from typing import Any

import numpy as np

from ...bags.bag import Bag, decode
from ...errors import MbseError, SampleError
from ..definitions import bag_store
from ..fields import Fields, store_fields
from ..getters import Absent, number_getter, of_quaternion
from ..leaves import leaves
from ..map import ARRIVAL, HEADER_STAMP
from ..path import Path
from ..stamps import stamp_getter, time_paths

MOST = 4000         # values of a number that are kept; of more half of them, by lot, as messages may alternate
NUMBERS = 256       # of one topic
NEW = 8             # messages of a topic that are searched for numbers, and then each
EACH = 50           # so manieth one


@dataclass
class TopicSurvey:
    """One topic: ``count`` of its messages, first and last arrival, ns, where stamps come from, and the numbers.

    ``values``: (k,) by path, NaN where a message lacks it; ``angles``: paths to those of a quaternion, rad; ``fault``:
    why nothing is known of what is in it.
    """

    msgtype: str
    count: int = 0
    first_ns: int = 0
    last_ns: int = 0
    stamp: str = ARRIVAL
    values: dict[Path, list[float]] = field(default_factory=dict)
    angles: set[Path] = field(default_factory=set)
    fault: str = ''

    @property
    def rate(self) -> float:
        """Messages per second; 0 of less than two."""
        return (self.count - 1) / ((self.last_ns - self.first_ns) * 1e-9) if self.last_ns > self.first_ns else 0.0

    def series(self, path: Path) -> np.ndarray:
        """Finite values of a number, in the order of the messages."""
        values = np.array(self.values[path], dtype=float)
        return values[np.isfinite(values)]


class _TopicNumbers:
    """The numbers of the messages of one topic."""

    def __init__(self, survey: TopicSurvey, fields: Fields) -> None:
        self._survey, self._fields = survey, fields
        self._getters: dict[Path, Callable[[Any], Any]] = {}
        self._share, self._kept, self._lot = 1.0, 0, Random(1)

    def take(self, message: Any) -> None:
        """One more message."""
        survey = self._survey
        number = survey.count - 1
        if number < NEW or number % EACH == 0:
            self._search(message)
        if self._lot.random() >= self._share:
            return
        for path, get in self._getters.items():
            try:
                survey.values[path].append(float(get(message)))
            except (Absent, ValueError, TypeError, OverflowError):
                survey.values[path].append(nan)
        self._kept += 1
        if self._kept >= MOST:
            left = sorted(self._lot.sample(range(self._kept), self._kept // 2))
            self._share, self._kept = 0.5 * self._share, len(left)
            survey.values.update({path: [values[k] for k in left] for path, values in survey.values.items()})

    def _search(self, message: Any) -> None:
        """Numbers that were not there before, and whether a stamp is filled in."""
        survey = self._survey
        for path in leaves(message, survey.msgtype, self._fields):
            if path not in self._getters and len(self._getters) < NUMBERS:
                self._getters[path] = number_getter(path, survey.msgtype, self._fields)
                survey.values[path] = [nan] * self._kept
                if of_quaternion(path, survey.msgtype, self._fields):
                    survey.angles.add(path)
        if survey.stamp == ARRIVAL:
            survey.stamp = filled_stamp(message, survey.msgtype, self._fields)


class Survey:
    """Topics by their names; ``fields``: of their types."""

    def __init__(self, fields: Fields) -> None:
        self.topics: dict[str, TopicSurvey] = {}
        self._fields = fields
        self._readers: dict[str, _TopicNumbers] = {}

    def add(self, topic: str, msgtype: str, arrival_ns: int, message: Any = None, fault: str = '') -> None:
        """A message, or, with ``fault``, one that nothing is known of but that it came."""
        survey = self.topics.get(topic)
        if survey is None:
            survey = self.topics[topic] = TopicSurvey(msgtype, first_ns=arrival_ns, last_ns=arrival_ns, fault=fault)
            self._readers[topic] = _TopicNumbers(survey, self._fields)
        survey.count += 1
        survey.last_ns = max(survey.last_ns, arrival_ns)
        if not fault and not survey.fault:
            try:
                self._readers[topic].take(message)
            except KeyError as error:
                survey.fault = f'no definition of {error.args[0]}'


def filled_stamp(message: Any, msgtype: str, fields: Fields) -> str:
    """Where a message has a stamp that is not 0: 'header', a path, or 'arrival' where it has none."""
    for text in time_paths(msgtype, fields):
        stamp = HEADER_STAMP if text == 'header' else text
        get = stamp_getter(stamp, msgtype, fields)
        try:
            if get is not None and get(message):
                return stamp
        except (Absent, ValueError):
            continue
    return ARRIVAL


def survey_bag(bag: Bag) -> Survey:
    """All topics of a bag; one of an unknown type is there with its fault. Raises BagError."""
    store = bag_store(bag, known_types(bag))
    fields = store_fields(store)
    survey = Survey(fields)
    for raw in bag.messages():
        fault = '' if raw.msgtype in store.fielddefs else f'no definition of {raw.msgtype}'
        message = None
        if not fault:
            try:
                message = decode(raw, store)
            except SampleError:
                continue
        survey.add(raw.topic, raw.msgtype, raw.stamp_ns, message, fault)
    for topic, msgtype in bag.topics.items():
        survey.topics.setdefault(topic, TopicSurvey(msgtype))
    return survey


def known_types(bag: Bag) -> list[str]:
    """Types of a bag whose definitions can be read."""
    found = []
    for msgtype in dict.fromkeys(bag.topics.values()):
        try:
            bag_store(bag, [msgtype])
        except MbseError:
            continue
        found.append(msgtype)
    return found


