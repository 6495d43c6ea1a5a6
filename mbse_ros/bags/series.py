# SPDX-License-Identifier: Apache-2.0
"""Records and truth out of a bag: as records of the pipeline, or as arrays over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BagError, SampleError
from ..streams.records import PayloadEstimate, Segment, StateEstimate
from .bag import Bag, decode, open_bag
from .messages import payload_record, segment_record, stamp_of, state_record
from .topics import PAYLOAD, SEGMENT, STATE, TRUTH, TopicMap

Source = Bag | str | Path


@dataclass(frozen=True)
class StateSeries:
    """States over k segments, SI; ``mean``, ``stddev`` (k, nx) at the last step, ``measured`` and so on (k, ny).

    ``step_stamp_ns`` (m,) and ``step_mean`` (m, nx) are at every step. NaN: missing.
    """

    stamp_ns: np.ndarray
    sequence: np.ndarray
    names: tuple[str, ...]
    mean: np.ndarray
    stddev: np.ndarray
    step_stamp_ns: np.ndarray
    step_mean: np.ndarray
    channels: tuple[str, ...]
    measured: np.ndarray
    innovation: np.ndarray
    innovation_stddev: np.ndarray
    nis: np.ndarray
    nis_dof: np.ndarray
    restart: np.ndarray
    status: np.ndarray
    reason: tuple[str, ...]


@dataclass(frozen=True)
class PayloadSeries:
    """Payload estimates over time, each (k,); kg; ``status`` as in PayloadStatus."""

    stamp_ns: np.ndarray
    sequence: np.ndarray
    mass: np.ndarray
    stddev: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    raw: np.ndarray
    low_passed: np.ndarray
    samples: np.ndarray
    status: np.ndarray
    reason: tuple[str, ...]


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


def segments(bag: Source, topics: TopicMap = TopicMap()) -> Iterator[Segment]:
    """Segments of the interpolation; none where the bag has no such topic. Raises BagError for one that is wrong."""
    return _records(open_bag(bag), topics, topics.segment, SEGMENT, segment_record)


def states(bag: Source, topics: TopicMap = TopicMap()) -> Iterator[StateEstimate]:
    """State estimates; none where the bag has no such topic. Raises BagError for one that is wrong."""
    return _records(open_bag(bag), topics, topics.state, STATE, state_record)


def payloads(bag: Source, topics: TopicMap = TopicMap()) -> Iterator[PayloadEstimate]:
    """Payload estimates; none where the bag has no such topic. Raises BagError for one that is wrong."""
    return _records(open_bag(bag), topics, topics.payload, PAYLOAD, payload_record)


def read_states(bag: Source, topics: TopicMap = TopicMap()) -> StateSeries | None:
    """All state estimates as arrays; None where the bag has none. Raises BagError, also where their names change."""
    bag = open_bag(bag)
    records = list(states(bag, topics))
    if not records:
        return None
    _same(bag, {(record.names, record.channels) for record in records})
    return StateSeries(
        **_columns(records, 'stamp_ns', 'sequence', 'measured', 'innovation', 'innovation_stddev', 'nis', 'nis_dof',
                   'restart', 'status'),
        names=records[0].names, channels=records[0].channels, reason=tuple(record.reason for record in records),
        mean=np.array([record.mean[-1] for record in records]),
        stddev=np.array([np.sqrt(np.diag(record.covariance)) for record in records]),
        step_mean=np.concatenate([record.mean for record in records]),
        step_stamp_ns=np.concatenate([_step_stamps(record) for record in records]))


def read_payload(bag: Source, topics: TopicMap = TopicMap()) -> PayloadSeries | None:
    """All payload estimates as arrays; None where the bag has none. Raises BagError."""
    records = list(payloads(bag, topics))
    if not records:
        return None
    return PayloadSeries(
        **_columns(records, 'stamp_ns', 'sequence', 'mass', 'stddev', 'lower', 'upper', 'raw', 'low_passed', 'samples',
                   'status'),
        reason=tuple(record.reason for record in records))


def read_truth(bag: Source, topics: TopicMap = TopicMap()) -> TruthSeries | None:
    """All true states as arrays; None where the bag has none. Raises BagError."""
    bag = open_bag(bag)
    messages = list(_records(bag, topics, topics.truth, TRUTH, _checked_truth))
    if not messages:
        return None
    _same(bag, {(tuple(message.cylinders), tuple(message.volumes)) for message in messages})
    return TruthSeries(
        **_columns(messages, 'position', 'velocity', 'acceleration', 'pressure', 'payload'),
        stamp_ns=np.array([stamp_of(message) for message in messages]),
        cylinders=tuple(messages[0].cylinders), volumes=tuple(messages[0].volumes))


def _records(bag: Bag, topics: TopicMap, name: str, msgtype: str, convert: Callable[[Any], Any]) -> Iterator[Any]:
    """Messages of one topic, converted."""
    topic = topics.absolute(name, topics.find_namespace(bag.topics, str(bag.path)))
    if topic not in bag.topics:
        return
    if bag.topics[topic] != msgtype:
        raise BagError(str(bag.path), f'{topic} is a {bag.topics[topic]}, expected {msgtype}')
    bag.check_type(msgtype)
    for raw in bag.messages([topic]):
        try:
            yield convert(decode(raw))
        except SampleError as error:
            raise BagError(str(bag.path), str(error)) from error


def _checked_truth(message: Any) -> Any:
    for names, arrays in (('cylinders', ('position', 'velocity', 'acceleration')), ('volumes', ('pressure',))):
        for name in arrays:
            if len(getattr(message, name)) != len(getattr(message, names)):
                raise SampleError(f'truth.{name}', stamp_of(message), len(getattr(message, name)),
                                  f'as many as {names}')
    return message


def _columns(records: list, *names: str) -> dict[str, np.ndarray]:
    return {name: np.array([getattr(record, name) for record in records]) for name in names}


def _step_stamps(record: StateEstimate) -> np.ndarray:
    """Instants of the steps of a segment, ns."""
    return record.stamp_ns - record.step_ns * np.arange(len(record.mean) - 1, -1, -1, dtype=np.int64)


def _same(bag: Bag, layouts: set) -> None:
    if len(layouts) > 1:
        raise BagError(str(bag.path), 'records of several machines on one topic: '
                       + ' and '.join(str(layout) for layout in sorted(layouts)[:2]))
