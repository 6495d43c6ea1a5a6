# SPDX-License-Identifier: Apache-2.0
"""All errors of a file, collected while reading goes on after each of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from ...errors import DescriptionError, DescriptionErrors

T = TypeVar('T')


class _Known:
    """In the place of a value whose error is kept already, such as that of a key that is missing."""

    def __repr__(self) -> str:
        return 'what an error is kept of'


KNOWN = _Known()
_WORD = re.compile(r'\w+')


@dataclass
class Problems:
    """Errors in the order of reading; ``broken``: names that the file gives and that could not be read."""

    found: list[DescriptionError] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)

    def about(self, value: object) -> object:
        """The value of an error, or KNOWN of one that only follows from what is broken."""
        return KNOWN if isinstance(value, str) and self.broken & set(_WORD.findall(value)) else value

    def add(self, error: DescriptionError) -> None:
        """Keep an error, or each of several, unless it follows from a kept one or is about the whole of what has
        one."""
        if isinstance(error, DescriptionErrors):
            for one in error.errors:
                self.add(one)
        elif error.value is not KNOWN and not any(f'{other.key}.'.startswith(f'{error.key}.') for other in self.found):
            self.found.append(error)

    def tried(self, read: Callable[[], T], default: T) -> T:
        """What ``read`` gives; the default after an error, which is kept."""
        try:
            return read()
        except DescriptionError as error:
            self.add(error)
            return default

    def check(self) -> None:
        """Raise what was found: the error, or DescriptionErrors of several."""
        if self.found:
            raise self.found[0] if len(self.found) == 1 else DescriptionErrors(self.found)
