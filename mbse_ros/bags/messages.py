# SPDX-License-Identifier: Apache-2.0
"""Plain values and records of the pipeline to messages of the typestore and back, SI on both sides."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any

import numpy as np
from rosbags.interfaces import Nodetype

from ..errors import SampleError
from ..streams.records import (LinkageEstimate, Measured, ObserverStatus, PayloadEstimate, PayloadStatus,
                               Segment, StateEstimate)
from .topics import FLUID_PRESSURE, JOINT_STATE, LINKAGE_STATE, PAYLOAD, SEGMENT, STATE
from .typestore import typestore

SECOND = 1_000_000_000
_STAMP = struct.Struct('<iI')
_OF_ESTIMATE = ('sequence', 'revision', 'restart', 'estimator', 'names', 'mean', 'force_names', 'force', 'force_stddev',
                'innovation', 'innovation_stddev', 'nis', 'dropped', 'status', 'reason')


def make_message(msgtype: str, values: Mapping[str, Any]) -> Any:
    """Message of nested mappings, lists and arrays (flattened row by row); a field not given is zero or empty.

    Raises KeyError for an unknown type, ValueError or TypeError, with the field, for values that do not fit.
    """
    kinds = _kinds(msgtype)
    unknown = sorted(set(values) - set(kinds))
    if unknown:
        raise ValueError(f'{msgtype} has no field {", ".join(unknown)}; it has {", ".join(kinds)}')
    built = {}
    for name, kind in kinds.items():
        try:
            built[name] = _value(kind, values[name]) if name in values else _default(kind)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f'{name}: {error}') from error
    return typestore().types[msgtype](**built)


def header(stamp_ns: int, frame: str) -> Any:
    """Header with a stamp in nanoseconds; raises ValueError for a stamp no message can hold."""
    sec, nanosec = divmod(int(stamp_ns), SECOND)
    if not -1 << 31 <= sec < 1 << 31:
        raise ValueError(f'stamp {stamp_ns} ns is not from -2^31 to 2^31 s')
    types = typestore().types
    return types['std_msgs/msg/Header'](types['builtin_interfaces/msg/Time'](sec, nanosec), frame)


def stamp_of(message: Any) -> int:
    """Stamp of a message's header, ns."""
    return message.header.stamp.sec * SECOND + message.header.stamp.nanosec


class SensorTemplate:
    """Serialized sensor message in which only the stamp and the values change: far cheaper than building each anew."""

    def __init__(self, frame: str, names: tuple[str, ...] | None) -> None:
        """JointState with positions of these names, or, without names, a FluidPressure with variance 0."""
        count = 1 if names is None else len(names)
        self.msgtype = FLUID_PRESSURE if names is None else JOINT_STATE
        values = {'header': header(0, frame)}
        if names is not None:
            values.update(name=names, position=np.zeros(count))
        message = make_message(self.msgtype, values)
        behind = 8      # bytes: the variance, or the lengths of velocity and effort
        self._data = bytearray(typestore().serialize_cdr(message, self.msgtype, little_endian=True))
        self._values, self._place = struct.Struct(f'<{count}d'), len(self._data) - behind - 8 * count

    def fill(self, stamp_ns: int, values: Iterable[float]) -> bytes:
        """The message; raises struct.error or TypeError for a stamp or values that it cannot hold."""
        _STAMP.pack_into(self._data, 4, *divmod(stamp_ns, SECOND))
        self._values.pack_into(self._data, self._place, *values)
        return bytes(self._data)


def record_message(record: Segment | StateEstimate | PayloadEstimate, frame: str) -> tuple[str, Any]:
    """Type and message of a record of the pipeline."""
    msgtype = {Segment: SEGMENT, StateEstimate: STATE, PayloadEstimate: PAYLOAD}[type(record)]
    values = {item.name: getattr(record, item.name) for item in fields(record) if item.name != 'stamp_ns'}
    values['header'] = header(record.stamp_ns, frame)
    if not isinstance(record, PayloadEstimate):
        values['steps'] = len(record.values if isinstance(record, Segment) else record.mean)
    return msgtype, make_message(msgtype, values)


def linkage_message(estimate: LinkageEstimate, frame: str, channels: tuple[str, ...]) -> tuple[str, Any]:
    """Type and message of an estimate of the linkage stage with these channels (s,). Hundreds come in a second, so it
    is made without the checks of `make_message`."""
    values, stddevs = np.array([*estimate.parameters.values()]).reshape(-1, 2).T.copy()
    health = estimate.health
    return LINKAGE_STATE, typestore().types[LINKAGE_STATE](
        **{name: getattr(estimate, name) for name in _OF_ESTIMATE}, header=header(estimate.stamp_ns, frame),
        covariance=estimate.covariance.ravel(), measured=np.array(estimate.measured, dtype=np.uint8),
        channels=channels, parameters=tuple(estimate.parameters), parameter_values=values, parameter_stddev=stddevs,
        nis_dof=estimate.measured.count(Measured.USED), mean_nis=health.mean_nis, whiteness=health.whiteness,
        observability_rank=health.rank, observability_size=health.size)


def segment_record(message: Any) -> Segment:
    """Segment of a message; raises SampleError where the lengths of its arrays disagree."""
    stamp, n, channels, commands = stamp_of(message), message.steps, tuple(message.channels), tuple(message.commands)
    if n < 1 or message.step_ns < 1:
        raise SampleError('segment', stamp, (n, message.step_ns), 'at least one step of at least 1 ns')
    return Segment(
        message.sequence, message.start_ns, message.step_ns, message.restart, channels,
        _shaped('segment.values', stamp, message.values, n, len(channels)),
        _shaped('segment.repeats', stamp, message.repeats, len(channels)), commands,
        _shaped('segment.command_values', stamp, message.command_values, n, len(commands)))


def state_record(message: Any) -> StateEstimate:
    """State estimate of a message; raises SampleError where the lengths of its arrays disagree."""
    stamp, names, channels = stamp_of(message), tuple(message.names), tuple(message.channels)
    if message.steps < 1:
        raise SampleError('state.steps', stamp, message.steps, 'at least one step')
    nx, ny = len(names), len(channels)
    return StateEstimate(
        message.sequence, stamp, message.step_ns, message.restart, names,
        _shaped('state.mean', stamp, message.mean, message.steps, nx),
        _shaped('state.covariance', stamp, message.covariance, nx, nx), channels,
        _shaped('state.measured', stamp, message.measured, ny),
        _shaped('state.innovation', stamp, message.innovation, ny),
        _shaped('state.innovation_stddev', stamp, message.innovation_stddev, ny),
        message.nis, message.nis_dof, _status(ObserverStatus, 'state.status', stamp, message.status), message.reason)


def payload_record(message: Any) -> PayloadEstimate:
    """Payload estimate of a message; raises SampleError for an unknown status."""
    stamp = stamp_of(message)
    status = _status(PayloadStatus, 'payload.status', stamp, message.status)
    return PayloadEstimate(message.sequence, stamp, message.mass, message.stddev, message.lower, message.upper,
                           message.raw, message.low_passed, message.samples, status, message.reason)


@lru_cache(maxsize=None)
def _kinds(msgtype: str) -> dict[str, tuple]:
    """Fields of a type to their kinds."""
    return dict(typestore().fielddefs[msgtype][1])


def _value(kind: tuple, value: Any) -> Any:
    """The value as the typestore's serializer wants it."""
    node, inner = kind
    if node == Nodetype.BASE:
        return _scalar(inner[0], value)
    if node == Nodetype.NAME:
        return make_message(inner, value) if isinstance(value, Mapping) else value
    (item, detail), length = inner
    if item == Nodetype.BASE and detail[0] != 'string':
        array = _array(detail[0], value)
    else:
        array = [_value((item, detail), element) for element in value]
    if node == Nodetype.ARRAY and len(array) != length:
        raise ValueError(f'{len(array)} values, expected {length}')
    return array


def _scalar(name: str, value: Any) -> Any:
    if name == 'string':
        if not isinstance(value, str):
            raise TypeError(f'got {value!r}, expected text')
        return value
    if name.startswith('float'):
        return float(value)
    whole = int(value)
    if whole != value:
        raise ValueError(f'got {value!r}, expected a whole number')
    if name == 'bool':
        return bool(whole)
    span = np.iinfo('uint8' if name in ('byte', 'char') else name)
    if not span.min <= whole <= span.max:
        raise ValueError(f'got {value!r}, expected from {span.min} to {span.max}')
    return whole


def _array(name: str, value: Any) -> np.ndarray:
    """Flat array in the field's type; a value that changes by the cast is refused."""
    given = np.asarray(value).ravel()
    array = given.astype({'byte': 'uint8', 'char': 'uint8'}.get(name, name))
    if not name.startswith('float') and not np.array_equal(array, given):
        raise ValueError(f'values do not fit {name}')
    return array


def _default(kind: tuple) -> Any:
    node, inner = kind
    if node == Nodetype.BASE:
        return '' if inner[0] == 'string' else _scalar(inner[0], 0)
    if node == Nodetype.NAME:
        return make_message(inner, {})
    (item, detail), length = inner
    if item == Nodetype.BASE and detail[0] != 'string':
        return _array(detail[0], np.zeros(length if node == Nodetype.ARRAY else 0))
    return [_default((item, detail)) for _ in range(length if node == Nodetype.ARRAY else 0)]


def _shaped(name: str, stamp_ns: int, values: np.ndarray, *shape: int) -> np.ndarray:
    """Array of a float64[] field in its shape, or SampleError."""
    if values.size != int(np.prod(shape)):
        raise SampleError(name, stamp_ns, values.size, f'{" x ".join(map(str, shape))} values')
    return np.array(values, dtype=np.float64).reshape(shape)


def _status(kind: type, name: str, stamp_ns: int, value: int) -> Any:
    """The status word of a number, or SampleError."""
    try:
        return kind(value)
    except ValueError:
        raise SampleError(name, stamp_ns, value, ', '.join(f'{s.value} {s.name}' for s in kind)) from None
