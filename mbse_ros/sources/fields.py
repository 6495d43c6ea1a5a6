# SPDX-License-Identifier: Apache-2.0
"""What fields a message type has, asked alike of a bag and of installed message packages, and paths to them, as text:
``position[name=boom_joint]``, ``array[2].fluid_pressure``.

The types that a bag brings along are known by their definitions in it, or by .msg files that the map names.

A path is a list of fields joined by points. A field that is an array takes one element: ``[2]``, or ``[key=value]``.
The key is a path to text: from each element where these are messages (``array[header.frame_id=boom]``), or from the
message that holds the array, to an array as long (``position[name=boom]``, ``data[layout.dim.label=boom]``,
``transforms[joint_names=boom]``).
``[key=one|other]`` takes the first element that has either name; a name with odd letters stands between quotes.
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

EXAMPLE = 'a path such as position[name=boom_joint], array[header.frame_id=boom].fluid_pressure, data[2]'
_FIELD = re.compile(r'[A-Za-z][A-Za-z0-9_]*')
_KEY = re.compile(r'\s*([A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*)\s*=\s*')
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_PLAIN = re.compile(r"[^\]|'\"]+")
_PLACE = re.compile(r'\s*(\d{1,6})\s*\]')
HEADER_STAMP, ARRIVAL = 'header', 'arrival'      # where the instant of a sample comes from, or a path
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


class Selection(NamedTuple):
    """Which element of an array: at a ``place``, or, where that is None, the first whose ``key`` is one of
    ``names``."""

    place: int | None
    key: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class PathStep(NamedTuple):
    """A field, and which element of it where it is an array."""

    field: str
    selection: Selection | None = None

    def __str__(self) -> str:
        if self.selection is None:
            return self.field
        place, key, names = self.selection
        return f'{self.field}[{place}]' if place is not None else f'{self.field}[{".".join(key)}={_words(names)}]'


Path = tuple[PathStep, ...]


def parse_path(text: str) -> Path:
    """The steps of a path; raises ValueError, a phrase with what was expected."""
    steps: list[PathStep] = []
    place = 0
    while True:
        field = _FIELD.match(text, place)
        if field is None:
            raise ValueError(f'{EXAMPLE} (not understood from {text[place:place + 40]!r} on)')
        place, selection = field.end(), None
        if text[place:place + 1] == '[':
            selection, place = _selection(text, place + 1)
        steps.append(PathStep(field.group(), selection))
        if place == len(text):
            return tuple(steps)
        if text[place] != '.':
            raise ValueError(f'{EXAMPLE} (not understood from {text[place:place + 40]!r} on)')
        place += 1


def path_text(path: Path) -> str:
    """A path as text: the way back."""
    return '.'.join(map(str, path))


def _selection(text: str, place: int) -> tuple[Selection, int]:
    """What stands between brackets, and the place behind them."""
    number = _PLACE.match(text, place)
    if number:
        return Selection(int(number.group(1))), number.end()
    key = _KEY.match(text, place)
    if key is None:
        raise ValueError(f'a place [2] or a name [key=value] in the brackets {text[place - 1:place + 40]!r}')
    names: list[str] = []
    place = key.end()
    while True:
        found = _QUOTED.match(text, place) or _PLAIN.match(text, place)
        if found is None:
            raise ValueError(f'a name behind {text[:place]!r}')
        names.append(next(group for group in found.groups() if group is not None) if found.re is _QUOTED
                     else found.group().strip())
        place = found.end()
        if text[place:place + 1] == ']':
            return Selection(None, tuple(key.group(1).split('.')), tuple(names)), place + 1
        if text[place:place + 1] != '|':
            raise ValueError(f'a closing bracket behind {text[:place]!r}')
        place += 1


def _words(names: tuple[str, ...]) -> str:
    """Names as they are written in a path."""
    return '|'.join(name if _PLAIN.fullmatch(name) and name == name.strip() else
                    (f'"{name}"' if "'" in name else f"'{name}'") for name in names)


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
