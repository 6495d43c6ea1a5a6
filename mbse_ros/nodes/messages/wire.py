# SPDX-License-Identifier: Apache-2.0
"""Messages as they go over the wire, and their stamps.

Records, samples and estimates are serialized by the typestore of ``bags``: online and in a bag they are the same bytes,
and arrays cost less than by rclpy's conversion. Publishers take such bytes as they take messages.

With them transforms, poses, points, wrenches and numbers of a machine as messages of geometry_msgs, tf2_msgs and
std_msgs; and the fields of installed message types, as ``sources.fields`` asks for them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from std_msgs.msg import Header

from ...bags import messages
from ...bags.bag import RawMessage, decode
from ...bags.messages import serialized, typestore
from ...bags.topics import FLOAT64, JOINT_STATE, TOOL_FORCE
from ...errors import MbseError, SampleError, shown
from ...machine.frames import LoadPose, Transform
from ...sources.fields import FieldType
from ...streams.records import PayloadEstimate

PACKAGE = 'mbse_ros'
_SEQUENCE = re.compile(r'sequence<(.+?)(?:, *\d+)?>')
_ARRAY = re.compile(r'(.+)\[\d+\]')
_BOUNDED = re.compile(r'(w?string)<\d+>')
SECOND = messages.SECOND
SHORTEST = 12       # bytes of a message that begins with a stamp
_TYPE = re.compile(r'[a-z][a-z0-9_]*/[A-Z][A-Za-z0-9]*')
POSE, WRENCH = 'geometry_msgs/msg/PoseWithCovarianceStamped', 'geometry_msgs/msg/WrenchStamped'
POINT = 'geometry_msgs/msg/PointStamped'
TF_MESSAGE = 'tf2_msgs/msg/TFMessage'


def message_type(msgtype: str) -> type[Any]:
    """Class of a type that a stranger names: of a package of messages alone is anything imported. Raises MbseError."""
    package = msgtype.partition('/')[0]
    try:
        spec = find_spec(package) if package.isidentifier() else None
    except (ImportError, ValueError):
        spec = None
    places = list(spec.submodule_search_locations or ()) if spec else []
    if package != PACKAGE and not any((Path(place) / 'msg').is_dir() for place in places):
        raise MbseError(f'message type {shown(msgtype)} is not installed')
    return message_class(msgtype)


def class_fields(msgtype: str) -> dict[str, FieldType]:
    """Fields of a type by name; raises KeyError where it is not installed."""
    try:
        known = message_type(msgtype).get_fields_and_field_types()
    except MbseError:
        raise KeyError(msgtype) from None
    return {name: _kind(text) for name, text in known.items()}


def _kind(text: str) -> FieldType:
    for pattern in (_SEQUENCE, _ARRAY):
        match = pattern.fullmatch(text)
        if match:
            return _kind(match.group(1))._replace(repeated=True)
    bounded = _BOUNDED.fullmatch(text)
    if bounded:
        return FieldType(bounded.group(1))
    package, stroke, name = text.partition('/')
    return FieldType(f'{package}/msg/{name}' if stroke else text)


def message_class(name: str) -> type[Any]:
    """Class of ``package/msg/Type``; raises MbseError where it is not installed.

    The typestore learns here to read and write it, which takes it up to a second: not at the first message.
    """
    package, _, kind = name.replace('/msg/', '/').partition('/')
    if not _TYPE.fullmatch(f'{package}/{kind}'):        # a bag's or a sender's text: nothing else is imported
        raise MbseError(f'{shown(name)} is not a message type, expected package/msg/Type')
    try:
        found = getattr(import_module(f'{package}.msg'), kind)
    except (ImportError, AttributeError, ValueError):
        raise MbseError(f'message type {name} is not installed') from None
    if name in typestore().types:
        decode(RawMessage(0, '', name, serialized(name, messages.make_message(name, {}))))
    return found


def to_ns(stamp: Time) -> int:
    """Nanoseconds of a message's stamp."""
    return stamp.sec * SECOND + stamp.nanosec


def to_time(stamp_ns: int) -> Time:
    """Message stamp of nanoseconds."""
    sec, nanosec = divmod(int(stamp_ns), SECOND)
    return Time(sec=sec, nanosec=nanosec)


def stamp_of(cdr: bytes) -> int:
    """Stamp, ns, of a serialized message that begins with a header, without unpacking the rest; raises SampleError."""
    if len(cdr) < SHORTEST:
        raise SampleError('message', 0, f'{len(cdr)} bytes', f'at least {SHORTEST}, with a stamp')
    sec, nanosec = struct.unpack_from('<iI' if cdr[1] & 1 else '>iI', cdr, 4)
    stamp = sec * SECOND + nanosec
    if nanosec >= SECOND or abs(stamp) > messages.SENSOR_LAST_NS:
        raise SampleError('message', stamp, f'{sec} s and {nanosec} ns', 'a stamp')
    return stamp


def header(stamp_ns: int, frame: str) -> Header:
    """Header with a stamp in nanoseconds."""
    return Header(stamp=to_time(stamp_ns), frame_id=frame)


def unpacked(topic: str, kind: str, cdr: bytes) -> Any:
    """Message of serialized bytes; raises SampleError for bytes that are not of this type."""
    return decode(RawMessage(0, topic, kind, cdr))


def packed(kind: str, stamp_ns: int, frame: str, values: Mapping[str, Any]) -> bytes:
    """Serialized message of nested mappings, with a header except in a Float64; a field not given is zero or empty."""
    stamped = {} if kind == FLOAT64 else {'header': messages.header(stamp_ns, frame)}
    return serialized(kind, messages.make_message(kind, {**stamped, **values}))


def packed_joints(stamp_ns: int, frame: str, names: Iterable[str], position: Iterable[float],
                  velocity: Iterable[float] = (), effort: Iterable[float] = ()) -> bytes:
    """Serialized JointState with the fields that are given."""
    fields = {name: np.array(list(values), dtype=np.float64) for name, values in (
        ('position', position), ('velocity', velocity), ('effort', effort))}
    return serialized(JOINT_STATE, typestore().types[JOINT_STATE](
        header=messages.header(stamp_ns, frame), name=list(names), **fields))


def packed_transforms(stamp_ns: int, transforms: Iterable[Transform]) -> bytes:
    """Serialized TFMessage of transforms between frames of these names."""
    found = [_make('TransformStamped', messages.header(stamp_ns, parent), child, _make(
        'Transform', _make('Vector3', *place.tolist()), _quaternion(turn)))
        for parent, child, place, turn in transforms]
    return serialized(TF_MESSAGE, typestore().types[TF_MESSAGE](found))


def packed_pose(stamp_ns: int, frame: str, load: LoadPose, covariance: np.ndarray) -> bytes:
    """Serialized PoseWithCovarianceStamped of a load in the machine's frame, at a covariance (g + s, g + s) of what its
    ``jacobian`` is by."""
    from transforms3d.quaternions import mat2quat  # here: slow to import
    spread = load.jacobian @ covariance @ load.jacobian.T
    pose = _make('Pose', _make('Point', *load.place.tolist()), _quaternion(mat2quat(load.rotation)))
    return serialized(POSE, _make('PoseWithCovarianceStamped', messages.header(stamp_ns, frame), _make(
        'PoseWithCovariance', pose, ((spread + spread.T) / 2).ravel())))


def packed_weight(stamp_ns: int, frame: str, load: LoadPose, mass: float) -> bytes:
    """Serialized WrenchStamped of the weight of a mass, kg, in the load's frame: it acts at its origin, so that there
    is no torque."""
    force = _make('Vector3', *(mass * load.gravity).tolist())
    return serialized(WRENCH, _make('WrenchStamped', messages.header(stamp_ns, frame), _make(
        'Wrench', force, _make('Vector3', 0.0, 0.0, 0.0))))


def packed_tool_force(payload: PayloadEstimate, frame: str, machine: str) -> bytes:
    """Serialized ToolForce of an estimate that has one; ``frame``: the machine's name, ``machine``: its fingerprint."""
    values = dict(vars(payload.tool_force))
    return packed(TOOL_FORCE, values.pop('stamp_ns'), frame,
                  {'machine': machine, 'sequence': payload.sequence, **values})


def packed_wrench(stamp_ns: int, frame: str, point: np.ndarray, force: np.ndarray) -> bytes:
    """Serialized WrenchStamped of a force (3,), N, at a point (3,), m, about the origin of the frame."""
    return serialized(WRENCH, _make('WrenchStamped', messages.header(stamp_ns, frame), _make('Wrench', *(
        _make('Vector3', *part.tolist()) for part in (force, np.cross(point, force))))))


def packed_point(stamp_ns: int, frame: str, place: np.ndarray) -> bytes:
    """Serialized PointStamped of a place (3,), m."""
    return serialized(POINT, _make('PointStamped', messages.header(stamp_ns, frame), _make('Point', *place.tolist())))


def packed_number(value: float) -> bytes:
    """Serialized Float64."""
    return packed(FLOAT64, 0, '', {'data': value})


def _quaternion(wxyz: np.ndarray) -> Any:
    w, x, y, z = wxyz.tolist()
    return _make('Quaternion', x, y, z, w)


def _make(kind: str, *values: Any) -> Any:
    """Message of geometry_msgs with its fields in their order; `make_message` would take ten times as long."""
    return typestore().types[f'geometry_msgs/msg/{kind}'](*values)
