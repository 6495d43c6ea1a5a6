# SPDX-License-Identifier: Apache-2.0
"""Message types that a bag brings along: known by their definitions in it, or by .msg files that the map names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..bags.bag import Bag
from ..bags.messages import typestore
from ..errors import BagError, DescriptionError, shown

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

Types = dict[str, tuple[Any, Any]]      # constants and fields, by the name of the type
LONGEST = 200_000       # characters of a definition
DEEPEST, ENDLESS = 20, 1000
_TYPE = re.compile(r'[A-Za-z][A-Za-z0-9_]*/(?:msg|srv|action)/[A-Za-z][A-Za-z0-9_]*')


def bag_store(bag: Bag, msgtypes: Iterable[str], definitions: Mapping[str, str] = {}, file: str = '') -> Typestore:
    """Typestore with these types as far as they are known: as the bag defines them, else as the texts ``definitions``
    of the map ``file`` do, else as of ROS 2 Jazzy and this package.

    Raises BagError or DescriptionError for a definition that cannot be read.
    """
    from rosbags.typesys import Stores, get_typestore  # here: slow to import
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
