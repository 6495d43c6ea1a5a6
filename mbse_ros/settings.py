# SPDX-License-Identifier: Apache-2.0
"""Tuning parameters as frozen dataclasses whose fields know their unit, range and meaning.

A node declares its ROS parameters from such a dataclass, the command line and the docs read the same fields.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import Field, field, fields
from typing import Any, ClassVar

from .errors import SettingError, check_choice

GATE = 0.9999       # probability beyond which filters of mechanisms reject an innovation, if nothing else is said


def setting(default: Any, text: str, unit: str = '', low: float | None = None, high: float | None = None,
            choices: Collection[str] = (), needs: Mapping[str, str] | None = None) -> Any:
    """Field of a settings dataclass: default, description, unit, inclusive range or the allowed words; ``needs``: of
    words that are not allowed here, what they are for."""
    return field(default=default, metadata={'text': text, 'unit': unit, 'low': low, 'high': high,
                                            'choices': tuple(choices), 'needs': needs})


def same_as(kind: type[Settings], name: str, more: str = '', text: str = '', default: Any = None) -> Any:
    """Field with what another class says of its setting ``name``: default, text with ``more`` behind it, unit, range
    and words; ``text`` and ``default``: others."""
    item = next(item for item in fields(kind) if item.name == name)    # type: ignore[arg-type]
    said = text or item.metadata['text'] + more
    return field(default=item.default if default is None else default,
                 metadata={**item.metadata, 'text': said[0].upper() + said[1:]})


def names_in(text: str) -> list[str]:
    """Names in a text, separated by commas or blanks."""
    return text.replace(',', ' ').split()


class Settings:
    """Base of settings dataclasses: the values are checked when one is made.

    Raises SettingError (name, value, what was expected).
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __post_init__(self) -> None:
        for item in fields(self):   # type: ignore[arg-type]
            object.__setattr__(self, item.name, _checked(item, getattr(self, item.name)))


def _checked(item: Field[Any], value: Any) -> Any:
    """The value in its field's type, or SettingError."""
    kind: type[Any] = type(item.default)
    meta = item.metadata
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind:
        raise SettingError(item.name, value, f'a {kind.__name__}')
    if meta['choices']:
        check_choice(item.name, value, meta['choices'], meta['needs'])
    if kind in (int, float):
        low, high = meta['low'], meta['high']
        inside = math.isfinite(value) and (low is None or value >= low) and (high is None or value <= high)
        if not inside:
            raise SettingError(item.name, value, f'from {low} to {high} {meta["unit"]}'.rstrip())
    return value
