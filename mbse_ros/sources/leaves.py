# SPDX-License-Identifier: Apache-2.0
"""All numbers in a message, each by the path that a map would give it: by names where the message has some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from .fields import HEADER, QUATERNION, TIME, Fields, FieldType
from .path import Path, PathStep, Selection

DEPTH = 5               # fields of fields
LONGEST = 64            # elements of an array: a longer one is a picture or a cloud of points
PASSED = ('covariance', 'variance', 'data_offset', 'stride', 'size', 'seq')      # endings of what is not a measurement
_CLOCKS = (HEADER, TIME, 'builtin_interfaces/msg/Duration')


def leaves(message: Any, msgtype: str, fields: Fields, depth: int = DEPTH) -> Iterator[Path]:
    """Paths to the numbers of a message; of a quaternion roll and pitch. KeyError for an unknown type."""
    if msgtype == QUATERNION:
        yield from ((PathStep('roll'),), (PathStep('pitch'),))
        return
    inside = fields(msgtype)
    for name, kind in inside.items():
        if kind.base in _CLOCKS or name.endswith(PASSED) or depth == 0:
            continue
        value = getattr(message, name)
        if not kind.repeated:
            if kind.is_number:
                yield (PathStep(name),)
            elif kind.is_message:
                yield from ((PathStep(name), *rest) for rest in leaves(value, kind.base, fields, depth - 1))
        elif (kind.is_number or kind.is_message) and 0 < len(value) <= LONGEST:
            yield from _elements(message, name, kind, value, inside, fields, depth)


def _elements(message: Any, name: str, kind: FieldType, values: Sequence[Any], holder: Mapping[str, FieldType],
              fields: Fields, depth: int) -> Iterator[Path]:
    """Of an array, chosen by names where each element has one of its own."""
    within = _labels_within(values, kind.base, fields) if kind.is_message else []
    selections = within or _labels_beside(message, len(values), holder, fields) or [
        Selection(place) for place in range(len(values))]
    for selection, value in zip(selections, values):
        step = PathStep(name, selection)
        if kind.is_number:
            yield (step,)
        else:
            yield from ((step, *rest) for rest in leaves(value, kind.base, fields, depth - 1))


def _labels_within(elements: Sequence[Any], msgtype: str, fields: Fields) -> list[Selection]:
    """Names of messages by a text in them, their header's frame included."""
    for key in _texts(msgtype, fields, 2):
        found = _distinct([attrgetter('.'.join(key))(element) for element in elements], key)
        if found:
            return found
    return []


def _texts(msgtype: str, fields: Fields, depth: int) -> Iterator[tuple[str, ...]]:
    """Keys of texts in messages of a type, the nearest first."""
    inside = fields(msgtype)
    yield from ((name,) for name, kind in inside.items() if kind.is_text and not kind.repeated)
    for name, kind in inside.items():
        if kind.is_message and not kind.repeated and kind.base != TIME and depth > 1:
            yield from ((name, *rest) for rest in _texts(kind.base, fields, depth - 1))


def _labels_beside(message: Any, count: int, holder: Mapping[str, FieldType], fields: Fields) -> list[Selection]:
    """Names of the elements of an array by an array of text that is as long, in the message or in a field of it."""
    for key, names in _text_arrays(message, holder, fields, 2):
        found = _distinct(names, key) if len(names) == count else []
        if found:
            return found
    return []


def _text_arrays(message: Any, inside: Mapping[str, FieldType], fields: Fields,
                 depth: int) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    for name, kind in inside.items():
        value = getattr(message, name)
        if kind.is_text and kind.repeated:
            yield (name,), list(value)
        elif kind.is_message and kind.repeated:
            for key in _texts(kind.base, fields, 1):
                yield (name, *key), [attrgetter('.'.join(key))(element) for element in value]
        elif kind.is_message and depth > 1:
            for key, names in _text_arrays(value, fields(kind.base), fields, depth - 1):
                yield (name, *key), names


def _distinct(names: Sequence[str], key: tuple[str, ...]) -> list[Selection]:
    """Selections by names, where each is there once and can be written between quotes."""
    usable = all(name and not ("'" in name and '"' in name) for name in names)
    return [Selection(None, key, (name,)) for name in names] if usable and len(set(names)) == len(names) else []
