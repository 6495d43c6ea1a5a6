# SPDX-License-Identifier: Apache-2.0
"""An iterator that works ahead of who takes from it, in a thread of its own."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

T = TypeVar('T')
PAUSE = 0.2         # s between two looks at whether anybody still takes


def ahead(source: Iterator[T], depth: int) -> Generator[T, None, None]:
    """The same items in the same order, up to ``depth`` of which wait; an error of the source is raised where it came.

    Who stops taking early closes this iterator: then the source is closed, too, and its thread has ended.
    """
    waiting: Queue[tuple[bool, Any]] = Queue(depth)
    stop = Event()
    thread = Thread(target=_work, args=(source, waiting, stop), name='ahead', daemon=True)
    thread.start()
    try:
        while True:
            good, item = waiting.get()
            if not good:
                if item is not None:
                    raise item
                return
            yield item
    finally:
        stop.set()
        thread.join()


def _work(source: Iterator[T], waiting: Queue[tuple[bool, Any]], stop: Event) -> None:
    """In the thread: items as (True, item), at the end (False, error or None)."""
    end: BaseException | None = None
    try:
        for item in source:
            if not _put(waiting, (True, item), stop):
                break
    except BaseException as error:      # whatever it is, who takes raises it
        end = error
    finally:
        if hasattr(source, 'close'):
            source.close()
    _put(waiting, (False, end), stop)


def _put(waiting: Queue[tuple[bool, Any]], item: tuple[bool, Any], stop: Event) -> bool:
    """Wait until there is room; False where nothing takes any more."""
    while not stop.is_set():
        try:
            waiting.put(item, timeout=PAUSE)
            return True
        except Full:
            continue
    return False
