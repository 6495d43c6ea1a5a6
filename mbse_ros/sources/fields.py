# SPDX-License-Identifier: Apache-2.0
"""What fields a message type has, asked alike of a bag and of installed message packages.

The types that a bag brings along are known by their definitions in it, or by .msg files that the map names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields as dataclass_fields
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import BagError, DescriptionError, shown

if TYPE_CHECKING:
    from rosbags.interfaces import Nodetype
    from rosbags.typesys.store import Typestore

    from ..bags.bag import Bag

HEADER, TIME, QUATERNION = 'std_msgs/msg/Header', 'builtin_interfaces/msg/Time', 'geometry_msgs/msg/Quaternion'
ANGLES = ('roll', 'pitch', 'yaw')      # that a quaternion has as well, rad
NUMBERS = {'float64', 'float32', 'float', 'double', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64',
           'uint64', 'bool', 'boolean', 'byte', 'octet', 'char'}
MOST = 60       # fields in one message
TEXTS = {'string', 'wstring'}
Types = dict[str, tuple[Any, Any]]      # constants and fields, by the name of the type
LONGEST = 200_000       # characters of a definition
DEEPEST, ENDLESS = 20, 1000
_TYPE = re.compile(r'[A-Za-z][A-Za-z0-9_]*/(?:msg|srv|action)/[A-Za-z][A-Za-z0-9_]*')


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


def bag_store(bag: Bag, msgtypes: Iterable[str], definitions: Mapping[str, str] = {}, file: str = '') -> Typestore:
    """Typestore with these types as far as they are known: as the bag defines them, else as the texts ``definitions``
    of the map ``file`` do, else as of ROS 2 Jazzy and this package.

    Raises BagError or DescriptionError for a definition that cannot be read.
    """
    from rosbags.typesys import Stores, get_typestore  # here: slow to import

    from ..bags.messages import typestore
    types: Types = {}
    for msgtype in msgtypes:
        if msgtype in bag.definitions:
            found = _parsed(bag.definitions[msgtype], msgtype)
            if isinstance(found, str):
                raise BagError(str(bag.path), f'its definition of {shown(msgtype)} cannot be read: {shown(found)}')
            types |= found
    for msgtype, text in definitions.items():
        found = _parsed(text, msgtype)
        if isinstance(found, str):
            raise DescriptionError(file, f'definitions.{msgtype}', 'its .msg file', f'a message definition ({found})')
        types |= {name: kind for name, kind in found.items() if name not in types}
    wanted = [*types, *msgtypes]
    while wanted:       # what they contain
        name = wanted.pop()
        if name not in types and name in typestore().fielddefs:
            types[name] = typestore().fielddefs[name]
        wanted += [inner for inner in _contained(types.get(name)) if inner not in types and inner in
                   typestore().fielddefs]
    store = get_typestore(Stores.EMPTY)
    depths: dict[str, int] = {}
    known = {name: kind for name, kind in types.items() if _depth(name, types, depths) <= DEEPEST}
    try:
        store.register(known)
    except Exception as error:      # of generated code: names and constants of a stranger's file
        raise BagError(str(bag.path), f'its message definitions cannot be used: {shown(str(error))}') from error
    return store


def _parsed(text: str, msgtype: str) -> Types | str:
    """Types of a definition, or what is wrong with it."""
    from rosbags.typesys import TypesysError, get_types_from_msg  # here: slow to import
    if len(text) > LONGEST:
        return f'{len(text)} characters, at most {LONGEST} are read'
    try:
        found = dict(get_types_from_msg(text, msgtype))
    except (TypesysError, ValueError, KeyError, IndexError, AttributeError, RecursionError) as error:
        return str(error).splitlines()[0] if str(error) else type(error).__name__
    odd = [name for name in found if not _TYPE.fullmatch(name)]
    return f'{odd[0]} is not the name of a type' if odd else found


def _contained(kind: tuple[Any, Any] | None) -> list[str]:
    """Types of the fields of a type that are messages."""
    from rosbags.interfaces import Nodetype  # here: slow to import
    found = []
    for _, (node, inner) in kind[1] if kind else ():
        if node in (Nodetype.ARRAY, Nodetype.SEQUENCE):
            node, inner = inner[0]
        if node == Nodetype.NAME:
            found.append(inner)
    return found


def _depth(name: str, types: Types, known: dict[str, int]) -> int:
    """How deep messages are inside messages of a type; more than any limit where a type is unknown, or in itself."""
    if name not in known:
        known[name] = ENDLESS       # until it is known: a type in itself
        if name in types:
            known[name] = 1 + max((_depth(inner, types, known) for inner in _contained(types[name])), default=0)
    return known[name]
