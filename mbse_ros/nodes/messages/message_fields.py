# SPDX-License-Identifier: Apache-2.0
"""Fields of installed message types, as ``sources.fields`` asks for them."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...errors import MbseError, shown
from ...sources.fields import FieldType
from .wire import message_class

PACKAGE = 'mbse_ros'
_SEQUENCE = re.compile(r'sequence<(.+?)(?:, *\d+)?>')
_ARRAY = re.compile(r'(.+)\[\d+\]')
_BOUNDED = re.compile(r'(w?string)<\d+>')


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
