# SPDX-License-Identifier: Apache-2.0
"""Text with rounded numbers, as a page shows it and a program prints it: words agree exactly, numbers as far as their
digits go.

A number with decimals may differ by one unit of its last digit: two values that differ by next to nothing, as on two
processors, may be rounded to neighbours. Whole numbers are counts and agree exactly.
"""

from __future__ import annotations

import doctest
import re
from decimal import Decimal

NUMBER = re.compile(r'((?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w))')


def same(shown: str, printed: str, dots: str = '') -> bool:
    """Whether the texts agree, up to white space and last digits; ``dots`` in the shown one stand for anything."""
    found = _pattern(shown, dots).fullmatch(_plain(printed))
    return found is not None and _numbers_agree(shown, found)


def within(shown: str, printed: str) -> bool:
    """Whether the second text holds the first, up to white space and last digits."""
    pattern, printed, begin = _pattern(shown), _plain(printed), 0
    while found := pattern.search(printed, begin):
        if _numbers_agree(shown, found):
            return True
        begin = found.start() + 1
    return False


def alike(one: str, other: str) -> bool:
    """Whether two printed numbers agree as far as the digits of the longer one go."""
    a, b = Decimal(one), Decimal(other)
    unit = Decimal(1).scaleb(min(a.as_tuple().exponent, b.as_tuple().exponent))
    return a == b or unit < 1 and abs(a - b) <= unit


class Checker(doctest.OutputChecker):
    """Of a session's output."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """As doctest says, or up to last digits."""
        return super().check_output(want, got, optionflags) or same(want, got, dots=doctest.ELLIPSIS_MARKER)


def _plain(text: str) -> str:
    return ' '.join(text.split())


def _pattern(shown: str, dots: str = '') -> re.Pattern[str]:
    """Of the words of a text, with a group for each of its numbers."""
    words = NUMBER.split(_plain(shown))
    words[::2] = ['.*?'.join(map(re.escape, word.split(dots) if dots else [word])) for word in words[::2]]
    words[1::2] = [NUMBER.pattern] * len(words[1::2])
    return re.compile(''.join(words))


def _numbers_agree(shown: str, found: re.Match[str]) -> bool:
    return all(map(alike, NUMBER.findall(_plain(shown)), found.groups()))
