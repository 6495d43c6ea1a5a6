# SPDX-License-Identifier: Apache-2.0
"""The process of a node as the operating system runs it: real-time priority, processors, locked memory.

It begins when the nodes serve: what they compile at their start must not keep others from a processor. What the system
refuses is an error in the log and a warning in the diagnostics as long as the process lives; the estimates go on.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable
from errno import EPERM
from pathlib import Path
from typing import TypeVar

from ...doctor.checks import OK
from ...doctor.computer import memory_check, memory_mend, priority_mend
from ...errors import SettingError
from .node_settings import LifecycleSettings

T = TypeVar('T', int, str)
THREADS = Path('/proc/self/task')
MOST = 10_000               # processors
CURRENT_AND_FUTURE = 3      # MCL_CURRENT | MCL_FUTURE of mlockall(2)


def processors(text: str) -> set[int]:
    """Numbers of the processors in a list as taskset's, '0,2-3'; raises SettingError where it is none, or one is not
    there or not for this process."""
    own, found = os.sched_getaffinity(0), set()
    for part in text.split(','):
        first, dash, last = part.strip().partition('-')
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            raise SettingError('cpu_affinity', text, 'processors as 1 or 0,2-3')
        found |= set(range(int(first), min(int(last), int(first) + MOST) + 1))
    if not found <= own:
        raise SettingError('cpu_affinity', text, f'processors of this process: {", ".join(map(str, sorted(own)))}')
    return found


class RealTime:
    """What the nodes of one process ask for; raises SettingError where two differ, or for processors that are not
    there.

    ``words``: what is in force; ``refused``: what is not, and the way out, '' where nothing.
    """

    def __init__(self, settings: Iterable[LifecycleSettings]) -> None:
        asked = [item for item in settings if isinstance(item, LifecycleSettings)]
        self._priority = _one('thread_priority', {item.thread_priority for item in asked} - {0}) or 0
        cores = _one('cpu_affinity', {item.cpu_affinity.strip() for item in asked} - {''})
        self._processors = processors(cores) if cores else set()
        self._lock = any(item.lock_memory for item in asked)
        self.words, self.refused = 'as any other program', ''

    def begin(self) -> None:
        """Ask the system for it, for all threads of the process and those that they begin."""
        done, refused = [], []
        for wanted, call, words, mend in (
                (self._processors, self._set_processors, f'processors {_list(self._processors)}', 'ask for others'),
                (self._priority, self._set_priority, f'SCHED_FIFO {self._priority}', priority_mend(self._priority)),
                (self._lock, _lock_memory, 'memory locked', memory_mend())):
            if wanted:
                try:
                    call()
                    done.append(words)
                except OSError as error:
                    refused.append(f'{words}: refused ({error.strerror}); {mend}')
        self.words = ', '.join(done) or ('none' if refused else self.words)
        self.refused = '; '.join(refused)

    def _set_processors(self) -> None:
        _each_thread(lambda thread: os.sched_setaffinity(thread, self._processors))

    def _set_priority(self) -> None:
        _each_thread(lambda thread: os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(self._priority)))


def _one(name: str, values: set[T]) -> T | None:
    """The value that is asked for, None without one."""
    if len(values) > 1:
        raise SettingError(name, ' and '.join(map(str, sorted(values))), 'one value for all nodes of a process')
    return next(iter(values), None)


def _each_thread(call: Callable[[int], object]) -> None:
    for thread in sorted(int(path.name) for path in THREADS.iterdir()):
        try:
            call(thread)
        except ProcessLookupError:      # it has just ended
            continue


def _lock_memory() -> None:
    # With a limit, memory that is asked for later would be refused, in the middle of the work.
    if memory_check().status != OK:
        raise PermissionError(EPERM, os.strerror(EPERM))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(CURRENT_AND_FUTURE):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _list(numbers: Iterable[int]) -> str:
    return ','.join(map(str, sorted(numbers)))
