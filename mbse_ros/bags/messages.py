# SPDX-License-Identifier: Apache-2.0
"""Plain values and records of the pipeline to messages of the typestore and back, SI on both sides."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import IntEnum
from functools import cache, lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SampleError, StampError
from ..filters.mass_information import OWN_COLUMNS
from ..monitor.faults import Fault, joined
from ..resources import share_directory
from ..streams.records import (
    LinkageEstimate,
    Measured,
    ObserverStatus,
    PayloadEstimate,
    PayloadStatus,
    Segment,
    StateEstimate,
)
from .topics import FLUID_PRESSURE, JOINT_STATE, LINKAGE_STATE, PAYLOAD, SEGMENT, STATE

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

SECOND = 1_000_000_000
LAST_NS = (1 << 31) * SECOND - 1        # the last stamp that a message holds
SENSOR_LAST_NS = LAST_NS - 100 * SECOND   # that of a sample: instants after it must have stamps, too
MOST_STEPS, LONGEST_NS = 100_000, 10 * SECOND     # of a record: the largest gap that is interpolated, its finest step
_STAMP = struct.Struct('<iI')
PACKAGE = 'mbse_ros/msg/'
# Records: their topic in TopicMap and type. Arrays in them: whose number of entries, or which number, their sizes are.
OWN = 'periods', 'payloads', 'tool_force'      # of a record alone, not of its message
RECORDS = {Segment: ('segment', SEGMENT), StateEstimate: ('state', STATE), PayloadEstimate: ('payload', PAYLOAD)}
SHAPES = {'values': ('steps', 'channels'), 'repeats': ('channels',), 'command_values': ('steps', 'commands'),
          'mean': ('steps', 'names'), 'covariance': ('names', 'names'), 'measured': ('channels',),
          'innovation': ('channels',), 'innovation_stddev': ('channels',)}
_SEPARATOR = '=' * 80 + '\n'
_OF_ESTIMATE = ('sequence', 'revision', 'restart', 'estimator', 'names', 'mean', 'force_names', 'force', 'force_stddev',
                'innovation', 'innovation_stddev', 'nis', 'dropped', 'status', 'reason', 'faults')
# Of records without ``faults``, which versions to 0.2.0 wrote: their reasons hold these words, as they were then.
_WORDS = {
    'missing: ': Fault.MISSING, 'constant: ': Fault.STUCK, 'rejected: ': Fault.REJECTED, 'jumped: ': Fault.JUMPED,
    'below vacuum: ': Fault.VACUUM, 'at the end of its range: ': Fault.SATURATED,
    'far outside its range: ': Fault.FAR, 'another unit?': Fault.UNIT, 'samples too rare': Fault.RARE,
    'nothing is measured': Fault.UNMEASURED, 'finite numbers': Fault.NOT_FINITE,
    ', far outside its range': Fault.OUT_OF_RANGE, ' not known to ': Fault.VAGUE, 'settling': Fault.SETTLING,
    'outside force: ': Fault.OUTSIDE_FORCE, 'not trusted within': Fault.DOUBTED, 'first mass': Fault.FIRST_MASS,
    'the mass is not within': Fault.LIMITS, 'masses of different poses': Fault.CONTRADICTION,
    'the load changes': Fault.LOAD_CHANGES, 'masses of these poses': Fault.SURPRISE,
    'not trusted yet': Fault.NOT_TRUSTED, 'position problem': Fault.SINGULAR, 'singular position': Fault.SINGULAR,
    'motion alone': Fault.UNWEIGHED}


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
            built[name] = _value(kind, values[name] if name in values else _default(kind))
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


def checked_stamp(topic: str, message: Any, last_ns: int = SENSOR_LAST_NS) -> int:
    """Stamp of a message's header, ns; raises StampError for one that is not a time."""
    stamp = stamp_of(message)
    if not 0 <= message.header.stamp.nanosec < SECOND or abs(stamp) > last_ns:
        raise StampError(topic, stamp, f'{message.header.stamp.sec} s and {message.header.stamp.nanosec} ns',
                         f'a stamp up to {last_ns // SECOND} s with less than {SECOND} ns')
    return stamp


class SensorTemplate:
    """Serialized sensor message in which only the stamp and the values change: cheaper than building each of them."""

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


def record_message(record: Segment | StateEstimate | PayloadEstimate, frame: str, machine: str = ''
                   ) -> tuple[str, Any]:
    """Type and message of a record of the pipeline; ``frame`` is the machine's name, ``machine`` its fingerprint.
    Hundreds come in a second, so it is made without the checks of `make_message`."""
    values = {name: getattr(record, name) for name in _names(type(record))}   # type: ignore[arg-type]
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            values[name] = np.ascontiguousarray(value, dtype=np.float64).ravel()
    values.update(header=header(record.stamp_ns, frame), machine=machine)
    if not isinstance(record, PayloadEstimate):
        values['steps'] = len(record.values if isinstance(record, Segment) else record.mean)
    msgtype = RECORDS[type(record)][1]
    return msgtype, typestore().types[msgtype](**values)


def packed_record(record: Segment | StateEstimate | PayloadEstimate, frame: str, machine: str = '') -> bytes:
    """The same, serialized."""
    return serialized(*record_message(record, frame, machine))


def serialized(msgtype: str, message: Any) -> bytes:
    """Bytes of a message of the typestore."""
    return bytes(typestore().serialize_cdr(message, msgtype))


@cache
def _names(kind: type) -> tuple[str, ...]:
    """Fields of a record but its stamp, which is in the header, and what messages do not have."""
    held = _kinds(RECORDS[kind][1])
    return tuple(item.name for item in fields(kind) if item.name in held)


def record_of(kind: type, message: Any) -> Any:
    """Record of a message; raises SampleError where the lengths of its arrays disagree, and for an unknown status."""
    stamp, values = checked_stamp(RECORDS[kind][0], message, LAST_NS), {}
    if kind is Segment and not -LAST_NS <= message.start_ns <= LAST_NS - message.steps * message.step_ns:
        raise SampleError('segment.start_ns', stamp, message.start_ns, f'an instant up to {LAST_NS} ns')
    if kind is not PayloadEstimate:
        _check_steps(RECORDS[kind][0], stamp, message)
    for item in fields(kind):
        if item.name in OWN:
            continue
        name, label = item.name, f'{RECORDS[kind][0]}.{item.name}'
        value: Any = stamp if name == 'stamp_ns' else getattr(message, name)
        if name in SHAPES:
            sizes = [getattr(message, size) for size in SHAPES[name]]
            value = _shaped(label, stamp, value, *(size if isinstance(size, int) else len(size) for size in sizes))
        elif name == 'weighing':
            value = _shaped(label, stamp, value, *_weighing_shape(message))
        elif name == 'status':
            value = _status(ObserverStatus if kind is StateEstimate else PayloadStatus, label, stamp, value)
        elif name == 'faults':
            value = Fault(value)
        values[name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


segment_record, state_record, payload_record = (partial(record_of, kind) for kind in RECORDS)


def linkage_message(estimate: LinkageEstimate, frame: str, channels: tuple[str, ...], machine: str = ''
                    ) -> tuple[str, Any]:
    """Type and message of an estimate of the linkage stage with these channels (s,); ``machine``: its fingerprint.
    Hundreds come in a second, so it is made without the checks of `make_message`."""
    values, stddevs = np.array([*estimate.parameters.values()]).reshape(-1, 2).T.copy()
    health = estimate.health
    return LINKAGE_STATE, typestore().types[LINKAGE_STATE](
        **{name: getattr(estimate, name) for name in _OF_ESTIMATE}, header=header(estimate.stamp_ns, frame),
        machine=machine,
        covariance=estimate.covariance.ravel(), measured=np.array(estimate.measured, dtype=np.uint8),
        channels=channels, parameters=tuple(estimate.parameters), parameter_values=values, parameter_stddev=stddevs,
        nis_dof=estimate.measured.count(Measured.USED), mean_nis=health.mean_nis, whiteness=health.whiteness,
        observability_rank=health.rank, observability_size=health.size)


def _check_steps(topic: str, stamp_ns: int, message: Any) -> None:
    """Raise SampleError for steps and repeats that no interpolation makes: one message could keep a node for hours."""
    shortest = int(topic == 'segment')
    if not 1 <= message.steps <= MOST_STEPS or not shortest <= message.step_ns * message.steps <= LONGEST_NS:
        raise SampleError(f'{topic}.steps', stamp_ns, f'{message.steps} of {message.step_ns} ns',
                          f'at least one step of at least 1 ns, at most {MOST_STEPS} and {LONGEST_NS // SECOND} s')
    if topic == 'segment' and not np.all((message.repeats >= 1.0) & (message.repeats <= MOST_STEPS)):
        raise SampleError(f'{topic}.repeats', stamp_ns, message.repeats.tolist(), f'numbers from 1 to {MOST_STEPS}')


def _weighing_shape(message: Any) -> tuple[int, int]:
    """Shape (steps, 4 + k) of what the steps of a state measure of the mass; (0, 3) where empty."""
    count = len(message.weighing)
    return (message.steps, max(OWN_COLUMNS, count // message.steps)) if count else (0, OWN_COLUMNS)


@cache
def _kinds(msgtype: str) -> dict[str, tuple[Any, ...]]:
    """Fields of a type to their kinds."""
    return dict(typestore().fielddefs[msgtype][1])


def _value(kind: tuple[Any, ...], value: Any) -> Any:
    """The value as the typestore's serializer wants it."""
    from rosbags.interfaces import Nodetype  # here: slow to import
    node, inner = kind
    if node == Nodetype.BASE:
        return _scalar(inner[0], value)
    if node == Nodetype.NAME:
        return make_message(inner, value) if isinstance(value, Mapping) else value
    (item, detail), length = inner
    if item == Nodetype.BASE and detail[0] != 'string':
        array: np.ndarray | list[Any] = _array(detail[0], value)
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
    return _array(name, value).item()


def _array(name: str, value: Any) -> np.ndarray:
    """Flat array in the field's type; a value that changes by the cast is refused."""
    given = np.asarray(value).ravel()
    kind = np.dtype({'byte': 'uint8', 'char': 'uint8'}.get(name, name))
    if kind.kind in 'iub' and given.size:
        span = np.iinfo(kind) if kind.kind in 'iu' else SimpleNamespace(min=0, max=1)
        if not np.all(given == np.floor(given)):
            raise ValueError(f'got {value!r}, expected a whole number')
        if given.min() < span.min or given.max() > span.max:
            raise ValueError(f'got {value!r}, expected from {span.min} to {span.max}')
    return given.astype(kind)


def _default(kind: tuple[Any, ...]) -> Any:
    from rosbags.interfaces import Nodetype  # here: slow to import
    node, inner = kind
    if node == Nodetype.BASE:
        return '' if inner[0] == 'string' else 0
    if node == Nodetype.NAME:
        return {}
    return [_default(inner[0])] * (inner[1] if node == Nodetype.ARRAY else 0)


def _shaped(name: str, stamp_ns: int, values: np.ndarray, *shape: int) -> np.ndarray:
    """Array of a float64[] field in its shape, or SampleError."""
    if values.size != int(np.prod(shape)):
        raise SampleError(name, stamp_ns, values.size, f'{" x ".join(map(str, shape))} values')
    return np.array(values, dtype=np.float64).reshape(shape)


def _status(kind: type[IntEnum], name: str, stamp_ns: int, value: int) -> Any:
    """The status word of a number, or SampleError."""
    try:
        return kind(value)
    except ValueError:
        raise SampleError(name, stamp_ns, value, ', '.join(f'{s.value} {s.name}' for s in kind)) from None


@lru_cache(maxsize=1)
def typestore() -> Typestore:
    """The types of ROS 2 Jazzy and this package's; a type is named as 'sensor_msgs/msg/JointState'."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore  # here: slow to import
    store = get_typestore(Stores.ROS2_JAZZY)
    types = {}
    for name, path in _own_files().items():
        types.update(get_types_from_msg(path.read_text(encoding='utf-8'), name))
    store.register(types)
    return store


@cache
def before_faults() -> Typestore:
    """The same, but records without their field ``faults``, as versions to 0.2.0 wrote them."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore  # here: slow to import
    store, ended = get_typestore(Stores.ROS2_JAZZY), 'uint32 faults'
    for name, path in _own_files().items():
        store.register(get_types_from_msg(path.read_text(encoding='utf-8').partition(ended)[0], name))
    return store


def with_faults(message: Any, msgtype: str) -> bytes:
    """A record without ``faults`` as a serialized one of now: its faults are those that its reason names."""
    faults = joined(fault for words, fault in _WORDS.items() if words in message.reason)
    values = {name: getattr(message, name) for name in _kinds(msgtype) if name != 'faults'}
    return serialized(msgtype, typestore().types[msgtype](**values, faults=faults))


@cache
def definition(msgtype: str) -> str:
    """Definition of a type and of all it contains, as a bag holds it ('ros2msg'); raises KeyError for an unknown type.

    This package's own come with the comments (units) of their files.
    """
    store = typestore()
    if msgtype not in store.fielddefs:
        raise KeyError(msgtype)
    own, separator, contained = store.generate_msgdef(msgtype, ros_version=2)[0].partition(_SEPARATOR)
    path = _own_files().get(msgtype)
    return (path.read_text(encoding='utf-8') if path else own) + separator + contained


def is_ours(msgtype: str, text: str) -> bool:
    """Whether a definition begins with this package's own file of the type."""
    path = _own_files().get(msgtype)
    return path is not None and text.partition(_SEPARATOR)[0] == path.read_text(encoding='utf-8')


@cache
def type_hash(msgtype: str) -> str:
    """Type hash as rosidl computes it, 'RIHS01_...'; raises KeyError for an unknown type."""
    return typestore().hash_rihs01(msgtype)


def _own_files() -> dict[str, Path]:
    """Files of this package's messages by type."""
    return {PACKAGE + path.stem: path for path in sorted((share_directory() / 'msg').glob('*.msg'))}
