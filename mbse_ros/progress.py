# SPDX-License-Identifier: Apache-2.0
"""Work that takes long says what it is, once, where one listens; a library is silent unless it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

UNTIL = 1.0     # s of work before it is said
_SAY: list[Callable[[str], object]] = []


def say_lengthy(say: Callable[[str], object] | None) -> None:
    """From here on ``say`` gets a text of work that takes longer than a second, in another thread; None: nobody.

    >>> say_lengthy(print)      # of Python, which is silent else
    """
    _SAY[:] = [] if say is None else [say]


@contextmanager
def lengthy(what: str, say: Callable[[str], object] | None = None, after: float | None = None) -> Iterator[None]:
    """A block, or a decorated function, that is said where it takes longer than ``after``, s, default ``UNTIL``;
    ``say``: to whom, default the one who listens."""
    listeners = _SAY if say is None else [say]
    if not listeners:
        yield
        return
    timer = Timer(UNTIL if after is None else after, listeners[0], [what])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
