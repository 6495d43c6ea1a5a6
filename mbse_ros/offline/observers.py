# SPDX-License-Identifier: Apache-2.0
"""The observer of a long log in processes of their own: between two long pauses a log is a stretch of its own.

After one the observer begins afresh (``Segment.independent``), so each stretch is observed by one process, as in one
thread, and several stretches at once. What a process is given and what it has found wait in its own threads, so that
two that send never wait for each other.
"""

from __future__ import annotations

import signal
import sys
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pickle import HIGHEST_PROTOCOL, PicklingError, dumps, loads
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

import numpy as np

from ..description.model import MechanismDescription
from ..errors import MbseError
from ..estimators.observer_settings import ObserverSettings
from ..machine import Machine
from ..streams.records import Segment, StateEstimate
from ..streams.stages import ObserverStage

SWITCH = 0.0005     # s that a thread waits at most for the interpreter; of itself Python takes ten times as much
GOOD, WRONG = b'good', b'wrong'     # what comes before states, before an error
Observed = list[tuple[Segment, StateEstimate]]
Record = TypeVar('Record')
FLOAT = np.dtype(np.float64)


class Observers:
    """Processes that observe one log; ``waiting``: steps given and not taken. To be closed.

    Raises OSError where no process can be started.
    """

    def __init__(self, machine: Machine, settings: ObserverSettings, backend: str, count: int) -> None:
        self.waiting = 0
        self._workers: list[_Worker] = []
        self._given: deque[tuple[_Worker, Sequence[Segment]]] = deque()
        try:
            if type(machine) is not Machine:
                raise OSError('the machine cannot be made again in another process')
            for _ in range(count):
                self._workers.append(_Worker(machine.description, settings, backend))
        except (OSError, AssertionError, PicklingError, TypeError, AttributeError) as error:
            self.close()        # a daemon may have no children, a description of one's own may not be pickled
            raise OSError(f'no process for the observer: {error}') from error
        self._last, self._before_ns = self._workers[0], 0

    def give(self, segments: Sequence[Segment]) -> None:
        """Segments that follow those given before. Raises MbseError where the process has ended."""
        before = [self._before_ns, *(segment.stamp_ns for segment in segments)]
        starts = [k for k, segment in enumerate(segments) if segment.independent(before[k])]
        self._before_ns = before[-1]
        for first, stop in zip([0, *starts], [*starts, len(segments)]):
            part = segments[first:stop]
            if not part:
                continue
            if first in starts:
                self._last = min(self._workers, key=lambda worker: worker.waiting)
            self._last.give(part)
            self._given.append((self._last, part))
            self.waiting += _steps(part)

    @property
    def ready(self) -> bool:
        """Whether ``take`` need not wait."""
        return bool(self._given) and self._given[0][0].ready

    def take(self) -> Observed:
        """The next ones observed, in the order in which they were given. Raises what the observer raises; MbseError
        where its process has ended."""
        worker, segments = self._given.popleft()
        self.waiting -= _steps(segments)
        return list(zip(segments, worker.take(_steps(segments))))

    def close(self) -> None:
        """End the processes, whatever they are at."""
        for worker in self._workers:
            worker.close()


class _Worker:
    """One process; ``waiting``: steps given to it and not taken."""

    def __init__(self, description: MechanismDescription, settings: ObserverSettings, backend: str) -> None:
        context = get_context('spawn')
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_observe, args=(other, description, settings, backend), daemon=True)
        self.waiting = 0
        try:
            self._process.start()
        except BaseException:
            self._connection.close()
            raise
        finally:
            other.close()       # so that the end of the process is the end of the connection

    def give(self, segments: Sequence[Segment]) -> None:
        self.waiting += _steps(segments)
        try:
            self._connection.send_bytes(packed(segments))
        except OSError:
            raise self._ended() from None

    @property
    def ready(self) -> bool:
        return self._connection.poll()

    def take(self, steps: int) -> list[StateEstimate]:
        try:
            good, parcel = self._connection.recv_bytes(), self._connection.recv_bytes()
        except (EOFError, OSError):
            raise self._ended() from None
        if good != GOOD:
            raise loads(parcel)
        self.waiting -= steps
        return unpacked(parcel)

    def _ended(self) -> MbseError:
        self._process.join()
        return MbseError(f'a process of the observer ended with code {self._process.exitcode} before the log did')

    def close(self) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.join()
        self._process.close()


def _steps(segments: Sequence[Segment]) -> int:
    return sum(len(segment.values) for segment in segments)


def _observe(connection: Connection, description: MechanismDescription, settings: ObserverSettings,
             backend: str) -> None:
    """In the process: segments in, GOOD and states out, or WRONG and the error once; until the other side closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)        # Ctrl-C: the caller ends this process
    sys.setswitchinterval(SWITCH)
    given: SimpleQueue[bytes | None] = SimpleQueue()
    found: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_receive, args=(connection, given), daemon=True).start()
    Thread(target=_send, args=(connection, found), daemon=True).start()
    good = True
    try:
        stage = ObserverStage(Machine(description), settings, backend)
        for data in iter(given.get, None):
            segments: list[Segment] = unpacked(data)
            states = packed([stage.process(segment) for segment in segments])
            found.put(GOOD)
            found.put(states)
    except Exception as error:      # whatever it is, who takes raises it
        found.put(WRONG)
        found.put(_pickled(error))
        good = False
    while not good and given.get() is not None:     # the error is on its way
        pass


def _pickled(error: Exception) -> bytes:
    try:
        data = dumps(error, HIGHEST_PROTOCOL)
        loads(data)
        return data
    except Exception:       # one that cannot be made again there
        return dumps(MbseError(f'{type(error).__name__}: {error}'), HIGHEST_PROTOCOL)


def _receive(connection: Connection, given: SimpleQueue[bytes | None]) -> None:
    try:
        while True:
            given.put(connection.recv_bytes())
    except (EOFError, OSError):
        given.put(None)


def _send(connection: Connection, found: SimpleQueue[bytes]) -> None:
    try:
        while True:
            connection.send_bytes(found.get())
    except OSError:     # nobody takes any more: the receiving thread has found out, too
        return


def observed(blocks: Iterator[Sequence[Segment]], observers: Observers, most: int) -> Generator[Observed, None, None]:
    """The segments of all blocks, observed, while up to ``most`` steps, or those of one block, wait; an error of the
    blocks is raised where it came."""
    problem: Exception | None = None
    while True:
        try:
            segments = next(blocks, None)
        except Exception as error:
            problem = error
            break
        if segments is None:
            break
        observers.give(segments)
        while observers.waiting and (observers.waiting > most or observers.ready):
            yield observers.take()
    while observers.waiting:
        yield observers.take()
    if problem is not None:
        raise problem


def packed(records: Sequence[Record]) -> bytes:
    """Dataclasses of one kind for another process, their arrays of float64 as they lie in memory, all else pickled at
    once: a pickle of each array would cost more than what is done with it."""
    rows, shapes, arrays = [], [], []
    for record in records:
        row = []
        for value in vars(record).values():
            if type(value) is np.ndarray and value.dtype is FLOAT:
                shapes.append(value.shape)
                arrays.append(np.ascontiguousarray(value).data)
                value = ...
            row.append(value)
        rows.append(row)
    head = dumps(([type(record) for record in records[:1]], rows, shapes), HIGHEST_PROTOCOL)
    room = -len(head) % FLOAT.itemsize
    return b''.join([len(head).to_bytes(FLOAT.itemsize, 'little'), head, bytes(room), *arrays])


def unpacked(parcel: bytes) -> list[Record]:
    """The records of ``packed``, with arrays of their own."""
    place = FLOAT.itemsize
    size = int.from_bytes(parcel[:place], 'little')
    kinds, rows, shapes = loads(memoryview(parcel)[place:place + size])
    numbers = np.frombuffer(parcel, FLOAT, offset=place + size + -size % place)
    shape_of, first, found = iter(shapes), 0, []
    for row in rows:
        for k, value in enumerate(row):
            if value is ...:
                shape = next(shape_of)
                stop = first + (shape[0] if len(shape) == 1 else shape[0] * shape[1])
                row[k], first = numbers[first:stop].reshape(shape).copy(), stop
        found.append(kinds[0](*row))
    return found
