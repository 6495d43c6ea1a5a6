# SPDX-License-Identifier: Apache-2.0
"""Records and truth out of a bag: as records of the pipeline, or as arrays over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import BagError, SampleError
from ..streams.records import PayloadEstimate, StateEstimate
from .bag import Bag, RawMessage, looked_at, open_bag
from .message_layout import in_columns
from .messages import RECORDS, record_of, stamp_of
from .topics import TRUTH, TopicMap

Source = Bag | str | Path


class RecordSeries(SimpleNamespace):
    """Records over time: their fields by name, each an array (k, ...), SI, texts as a tuple; NaN: missing."""


@dataclass(frozen=True)
class TruthSeries:
    """True states of a simulated machine over time: (k, cylinders), (k, volumes), payload (k,); SI."""

    stamp_ns: np.ndarray
    cylinders: tuple[str, ...]
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    volumes: tuple[str, ...]
    pressure: np.ndarray
    payload: np.ndarray


def records(bag: Source, kind: type, topics: TopicMap = TopicMap()) -> Iterator[Any]:
    """Segments, StateEstimates or PayloadEstimates, by their class; none where the bag has no such topic.

    Raises BagError for one that is wrong.
    """
    name, msgtype = RECORDS[kind]
    return _messages(open_bag(bag), topics, getattr(topics, name), msgtype, partial(record_of, kind))


def read_states(bag: Source, topics: TopicMap = TopicMap()) -> RecordSeries | None:
    """All state estimates: ``mean``, ``stddev`` (k, nx) at the last step of each segment, ``measured`` and so on (k,
    ny); ``step_stamp_ns`` (m,) and ``step_mean`` (m, nx) at every step.

    None where the bag has none. Raises BagError, also where their names change.
    """
    bag = open_bag(bag)
    found = list(records(bag, StateEstimate, topics))
    if not found:
        return None
    _same(bag, {(record.names, record.channels) for record in found})
    return _series(found, names=found[0].names, channels=found[0].channels,
                   mean=np.array([record.mean[-1] for record in found]),
                   stddev=np.array([np.sqrt(np.diag(record.covariance)) for record in found]),
                   step_mean=np.concatenate([record.mean for record in found]),
                   step_stamp_ns=np.concatenate([_step_stamps(record) for record in found]))


def read_payload(bag: Source, topics: TopicMap = TopicMap()) -> RecordSeries | None:
    """All payload estimates, each field (k,); None where the bag has none. Raises BagError."""
    found = list(records(bag, PayloadEstimate, topics))
    return _series(found) if found else None


def read_truth(bag: Source, topics: TopicMap = TopicMap()) -> TruthSeries | None:
    """All true states as arrays; None where the bag has none. Raises BagError."""
    bag = open_bag(bag)
    found = list(_raw(bag, topics, topics.truth, TRUTH))
    if not found:
        return None
    bulk = in_columns([raw.data for raw in found], TRUTH)
    if bulk is not None:
        message = _converted(bag, found[0], _checked_truth)
        return TruthSeries(**bulk[2], stamp_ns=bulk[1], cylinders=tuple(message.cylinders),
                           volumes=tuple(message.volumes))
    messages = [_converted(bag, raw, _checked_truth) for raw in found]
    _same(bag, {(tuple(message.cylinders), tuple(message.volumes)) for message in messages})
    columns = {name: np.array([getattr(message, name) for message in messages])
               for name in ('position', 'velocity', 'acceleration', 'pressure', 'payload')}
    return TruthSeries(
        **columns, stamp_ns=np.array([stamp_of(message) for message in messages]),
        cylinders=tuple(messages[0].cylinders), volumes=tuple(messages[0].volumes))


def _messages(bag: Bag, topics: TopicMap, name: str, msgtype: str, convert: Callable[[Any], Any]) -> Iterator[Any]:
    """Messages of one topic, converted."""
    return (_converted(bag, raw, convert) for raw in _raw(bag, topics, name, msgtype))


def _raw(bag: Bag, topics: TopicMap, name: str, msgtype: str) -> Iterator[RawMessage]:
    """Messages of one topic, serialized."""
    topic = topics.absolute(name, topics.find_namespace(bag.topics, str(bag.path)))
    if topic not in bag.topics:
        return
    if bag.topics[topic] != msgtype:
        raise BagError(str(bag.path), f'{topic} is a {bag.topics[topic]}, expected {msgtype}')
    bag.check_type(msgtype)
    yield from bag.messages([topic])


def _converted(bag: Bag, raw: RawMessage, convert: Callable[[Any], Any]) -> Any:
    try:
        return convert(looked_at(raw))
    except SampleError as error:
        raise BagError(str(bag.path), str(error)) from error


def _checked_truth(message: Any) -> Any:
    for names, arrays in (('cylinders', ('position', 'velocity', 'acceleration')), ('volumes', ('pressure',))):
        for name in arrays:
            if len(getattr(message, name)) != len(getattr(message, names)):
                raise SampleError(f'truth.{name}', stamp_of(message), len(getattr(message, name)),
                                  f'as many as {names}')
    return message


def _series(found: list[Any], **others: Any) -> RecordSeries:
    """Columns of all fields, but ``others`` as they are given."""
    names = {item.name for item in fields(found[0])} - {*others, 'covariance', 'reason'}
    return RecordSeries(**{name: np.array([getattr(record, name) for record in found]) for name in names},
                        reason=tuple(record.reason for record in found), **others)


def _step_stamps(record: StateEstimate) -> np.ndarray:
    """Instants of the steps of a segment, ns."""
    return record.stamp_ns - record.step_ns * np.arange(len(record.mean) - 1, -1, -1, dtype=np.int64)


def _same(bag: Bag, layouts: set[tuple[tuple[str, ...], ...]]) -> None:
    if len(layouts) > 1:
        raise BagError(str(bag.path), 'records of several machines on one topic: '
                       + ' and '.join(str(layout) for layout in sorted(layouts)[:2]))
