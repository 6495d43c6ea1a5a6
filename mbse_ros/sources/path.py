# SPDX-License-Identifier: Apache-2.0
"""Paths to a field of a message, as text: ``position[name=boom_joint]``, ``array[2].fluid_pressure``.

A path is a list of fields joined by points. A field that is an array takes one element: ``[2]``, or ``[key=value]``.
The key is a path to text: from each element where these are messages (``array[header.frame_id=boom]``), or from the
message that holds the array, to an array as long (``position[name=boom]``, ``data[layout.dim.label=boom]``,
``transforms[joint_names=boom]``).
``[key=one|other]`` takes the first element that has either name; a name with odd letters stands between quotes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

EXAMPLE = 'a path such as position[name=boom_joint], array[header.frame_id=boom].fluid_pressure, data[2]'
_FIELD = re.compile(r'[A-Za-z][A-Za-z0-9_]*')
_KEY = re.compile(r'\s*([A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*)\s*=\s*')
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_PLAIN = re.compile(r"[^\]|'\"]+")
_PLACE = re.compile(r'\s*(\d{1,6})\s*\]')


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
