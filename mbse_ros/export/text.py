# SPDX-License-Identifier: Apache-2.0
"""Text of C files out of templates."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping


def render(template: str, words: Mapping[str, object]) -> str:
    """The template with its words, those inside of words too."""
    for _ in range(2):
        template = re.sub(r'@(\w+)@', lambda found: str(words.get(found[1], found[0])), template)
    return template


def wrapped(values: Iterable[str], indent: str = '  ') -> str:
    """Values on lines of up to 120 characters."""
    joined = ', '.join(values)
    return '\n'.join(textwrap.wrap(joined, 118, initial_indent=indent, subsequent_indent=indent,
                                   break_long_words=False, break_on_hyphens=False)) + '\n'
