# SPDX-License-Identifier: Apache-2.0
"""What there is on the topics of a bag or a graph: types, rates, stamps, and every number over time, by the path that a
map would give it: by names where the message has some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from operator import attrgetter
from random import Random
from typing import Any

import numpy as np

from ..bags.bag import Bag, decode
from ..bags.channels import IMU_FIELDS, UNITS
from ..bags.topics import JOINT_STATE, PAYLOAD, TOOL_FORCE, TRUTH, TopicMap
from ..errors import MbseError, SampleError
from ..report.result import OTHERS
from .fields import (
    ARRIVAL,
    HEADER,
    HEADER_STAMP,
    QUATERNION,
    TIME,
    Fields,
    FieldType,
    Path,
    PathStep,
    Selection,
    bag_store,
    store_fields,
)
from .getters import Absent, number_getter, of_quaternion, stamp_getter, time_paths

DEPTH = 5               # fields of fields
LONGEST = 64            # elements of an array: a longer one is a picture or a cloud of points
PASSED = ('covariance', 'variance', 'data_offset', 'stride', 'size', 'seq')      # endings of what is not a measurement
_CLOCKS = (HEADER, TIME, 'builtin_interfaces/msg/Duration')
MOST = 4000         # values of a number that are kept; of more half of them, by lot, as messages may alternate
NUMBERS = 256       # of one topic
NEW = 8             # messages of a topic that are searched for numbers, and then each
EACH = 50           # so manieth one
OWN = 'mbse_ros/msg/'
# Kinds of quantities by the fields of messages: of any, of JointState, and of this package's.
_ANYWHERE = {name: kind for kind, name in IMU_FIELDS.items()} | {'fluid_pressure': 'pressure'}
_OF_TYPE = {
    JOINT_STATE: {name: name for name in ('position', 'velocity', 'effort')},
    TRUTH: {name: name for name in ('position', 'velocity', 'acceleration', 'pressure', 'payload')},
    PAYLOAD: dict.fromkeys(('mass', 'stddev', 'lower', 'upper', 'raw', 'low_passed'), 'payload'),
    TOOL_FORCE: {'mass': 'payload', 'mass_stddev': 'payload',
                 **dict.fromkeys(('force', 'component', 'component_stddev'), 'force')}}
_PER_CHANNEL = ('mean', 'measured', 'innovation', 'innovation_stddev', 'values', 'command_values')   # position/boom
_UNIT_OF = {**OTHERS, **{kind: ' or '.join(units).replace('*', ' ') for kind, units in UNITS.items()},
            'acceleration': 'm/s^2 or rad/s^2', 'force': 'N'}


def leaves(message: Any, msgtype: str, fields: Fields, depth: int = DEPTH) -> Iterator[Path]:
    """Paths to the numbers of a message; of a quaternion roll and pitch. KeyError for an unknown type."""
    if msgtype == QUATERNION:
        yield from ((PathStep('roll'),), (PathStep('pitch'),))
        return
    inside = fields(msgtype)
    for name, kind in inside.items():
        if kind.base in _CLOCKS or name.endswith(PASSED) or depth == 0:
            continue
        value = getattr(message, name)
        if not kind.repeated:
            if kind.is_number:
                yield (PathStep(name),)
            elif kind.is_message:
                yield from ((PathStep(name), *rest) for rest in leaves(value, kind.base, fields, depth - 1))
        elif (kind.is_number or kind.is_message) and 0 < len(value) <= LONGEST:
            yield from _elements(message, name, kind, value, inside, fields, depth)


def _elements(message: Any, name: str, kind: FieldType, values: Sequence[Any], holder: Mapping[str, FieldType],
              fields: Fields, depth: int) -> Iterator[Path]:
    """Of an array, chosen by names where each element has one of its own."""
    within = _labels_within(values, kind.base, fields) if kind.is_message else []
    selections = within or _labels_beside(message, len(values), holder, fields) or [
        Selection(place) for place in range(len(values))]
    for selection, value in zip(selections, values):
        step = PathStep(name, selection)
        if kind.is_number:
            yield (step,)
        else:
            yield from ((step, *rest) for rest in leaves(value, kind.base, fields, depth - 1))


def _labels_within(elements: Sequence[Any], msgtype: str, fields: Fields) -> list[Selection]:
    """Names of messages by a text in them, their header's frame included."""
    for key in _texts(msgtype, fields, 2):
        found = _distinct([attrgetter('.'.join(key))(element) for element in elements], key)
        if found:
            return found
    return []


def _texts(msgtype: str, fields: Fields, depth: int) -> Iterator[tuple[str, ...]]:
    """Keys of texts in messages of a type, the nearest first."""
    inside = fields(msgtype)
    yield from ((name,) for name, kind in inside.items() if kind.is_text and not kind.repeated)
    for name, kind in inside.items():
        if kind.is_message and not kind.repeated and kind.base != TIME and depth > 1:
            yield from ((name, *rest) for rest in _texts(kind.base, fields, depth - 1))


def _labels_beside(message: Any, count: int, holder: Mapping[str, FieldType], fields: Fields) -> list[Selection]:
    """Names of the elements of an array by an array of text that is as long, in the message or in a field of it."""
    for key, names in _text_arrays(message, holder, fields, 2):
        found = _distinct(names, key) if len(names) == count else []
        if found:
            return found
    return []


def _text_arrays(message: Any, inside: Mapping[str, FieldType], fields: Fields,
                 depth: int) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    for name, kind in inside.items():
        value = getattr(message, name)
        if kind.is_text and kind.repeated:
            yield (name,), list(value)
        elif kind.is_message and kind.repeated:
            for key in _texts(kind.base, fields, 1):
                yield (name, *key), [attrgetter('.'.join(key))(element) for element in value]
        elif kind.is_message and depth > 1:
            for key, names in _text_arrays(value, fields(kind.base), fields, depth - 1):
                yield (name, *key), names


def _distinct(names: Sequence[str], key: tuple[str, ...]) -> list[Selection]:
    """Selections by names, where each is there once and can be written between quotes."""
    usable = all(name and not ("'" in name and '"' in name) for name in names)
    return [Selection(None, key, (name,)) for name in names] if usable and len(set(names)) == len(names) else []


@dataclass
class TopicSurvey:
    """One topic: ``count`` of its messages, first and last arrival, ns, where stamps come from, and the numbers.

    ``values``: (k,) by path, NaN where a message lacks it, and their ``arrivals``, ns; ``angles``: paths to those of a
    quaternion, rad; ``fault``: why nothing is known of what is in it.
    """

    msgtype: str
    count: int = 0
    first_ns: int = 0
    last_ns: int = 0
    stamp: str = ARRIVAL
    values: dict[Path, list[float]] = field(default_factory=dict)
    arrivals: list[int] = field(default_factory=list)
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


def stated_unit(topic: str, survey: TopicSurvey, path: Path) -> str:
    """Unit of a number by the definition of its message, such as 'Pa', or 'm or rad' where the type leaves both;
    '' where it states none: of messages of others."""
    if path in survey.angles:
        return 'rad'
    kinds = [_ANYWHERE[step.field] for step in path if step.field in _ANYWHERE]
    if survey.msgtype == JOINT_STATE and topic.endswith(f'/{TopicMap().command}'):
        kinds = ['command']
    elif path[0].field in _PER_CHANNEL and survey.msgtype.startswith(OWN) and path[0].selection is not None:
        kinds = [name.partition('/')[0] for name in path[0].selection.names]
    else:
        kinds += [kind for name, kind in _OF_TYPE.get(survey.msgtype, {}).items() if name == path[0].field]
    return _UNIT_OF.get(kinds[0], '') if kinds else ''


class _TopicNumbers:
    """The numbers of the messages of one topic."""

    def __init__(self, survey: TopicSurvey, fields: Fields) -> None:
        self._survey, self._fields = survey, fields
        self._getters: dict[Path, Callable[[Any], Any]] = {}
        self._share, self._kept, self._lot = 1.0, 0, Random(1)

    def take(self, message: Any, arrival_ns: int) -> None:
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
        survey.arrivals.append(arrival_ns)
        self._kept += 1
        if self._kept >= MOST:
            left = sorted(self._lot.sample(range(self._kept), self._kept // 2))
            self._share, self._kept = 0.5 * self._share, len(left)
            survey.values.update({path: [values[k] for k in left] for path, values in survey.values.items()})
            survey.arrivals = [survey.arrivals[k] for k in left]

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
                self._readers[topic].take(message, arrival_ns)
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
