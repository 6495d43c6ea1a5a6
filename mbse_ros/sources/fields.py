# SPDX-License-Identifier: Apache-2.0
"""What fields a message type has: asked alike of a bag's definitions and of installed message packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields as dataclass_fields
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rosbags.interfaces import Nodetype
    from rosbags.typesys.store import Typestore

HEADER, TIME, QUATERNION = 'std_msgs/msg/Header', 'builtin_interfaces/msg/Time', 'geometry_msgs/msg/Quaternion'
ANGLES = ('roll', 'pitch', 'yaw')      # that a quaternion has as well, rad
NUMBERS = {'float64', 'float32', 'float', 'double', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64',
           'uint64', 'bool', 'boolean', 'byte', 'octet', 'char'}
MOST = 60       # fields in one message
TEXTS = {'string', 'wstring'}


class FieldType(NamedTuple):
    """Type of a field: ``base`` is a number's ('float64'), 'string' or a message's ('sensor_msgs/msg/Imu');
    ``repeated``: an array of it."""

    base: str
    repeated: bool = False

    @property
    def is_message(self) -> bool:
        """Whether it has fields of its own."""
        return '/' in self.base

    @property
    def is_number(self) -> bool:
        """Whether it is a number, or an array of them."""
        return self.base in NUMBERS

    @property
    def is_text(self) -> bool:
        """Whether it is text, or an array of it."""
        return self.base in TEXTS

    def __str__(self) -> str:
        return f'{self.base}[]' if self.repeated else self.base


Fields = Callable[[str], Mapping[str, FieldType]]    # fields of a type by name; raises KeyError for an unknown type


def store_fields(store: Typestore) -> Fields:
    """Of the types of a typestore, by the names of the attributes: `class_` of a field `class`."""
    def fields(msgtype: str) -> dict[str, FieldType]:
        names = dataclass_fields(store.types[msgtype])    # type: ignore[arg-type]
        return {item.name: _kind(*kind) for item, (_, kind) in zip(names, store.fielddefs[msgtype][1])}
    return fields


def _kind(node: Nodetype, inner: Any) -> FieldType:
    from rosbags.interfaces import Nodetype  # here, for a map is checked without bags
    if node == Nodetype.BASE:
        return FieldType(inner[0])
    if node == Nodetype.NAME:
        return FieldType(inner)
    return _kind(*inner[0])._replace(repeated=True)


def described(fields: Mapping[str, FieldType]) -> str:
    """Names and types of fields, in words."""
    listed = [f'{name} ({kind})' for name, kind in list(fields.items())[:MOST]]
    return ', '.join(listed) + (f', ... ({len(fields)} in all)' if len(fields) > MOST else '') or 'none'
