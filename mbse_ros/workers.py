# SPDX-License-Identifier: Apache-2.0
"""Who does independent work: this process, others of this computer, or a Dask cluster."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, MutableMapping, MutableSequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from multiprocessing.context import SpawnContext, SpawnProcess
from threading import Lock, current_thread, main_thread
from typing import Any, TypeVar

from .errors import MissingModuleError, SettingError
from .version import __version__

T = TypeVar('T')
R = TypeVar('R')
PATIENCE = 20           # s for a scheduler, and for its first worker


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1


class _Quiet(SpawnProcess):
    """A process that Ctrl-C does not reach, from its first instant on (a mask is inherited): the terminal sends it to
    all, and each would print its traceback. The process that made it ends it, see ``stop``."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return SpawnProcess._Popen(process_obj)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Workers(ProcessPoolExecutor):
    """Starts its processes as a whole: one that is half started, or not yet known, would print a traceback."""

    def submit(self, *args: Any, **named: Any) -> Future[Any]:
        with _ctrl_c_waits():
            return super().submit(*args, **named)


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Until the end of the block, in the main thread, which alone gets it."""
    if current_thread() is not main_thread() or (before := signal.getsignal(signal.SIGINT)) is None:
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


class _Apart(_Quiet):
    """A process that does not import the main module: a script without ``if __name__ == '__main__'`` would run again
    in it. What Python says of that module is hidden while the process starts."""

    _lock = Lock()

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        main = vars(sys.modules['__main__'])
        with _Apart._lock:
            kept: dict[str, Any] = {name: main[name] for name in ('__file__', '__spec__') if name in main}
            main.update(dict.fromkeys(kept))
            try:
                return _Quiet._Popen(process_obj)
            finally:
                main.update(kept)


class _QuietContext(SpawnContext):
    Process = _Quiet


class _ApartContext(SpawnContext):
    Process = _Apart


def processes(jobs: int, apart: bool = True) -> Callable[[], Executor]:
    """Makes so many processes, which inherit nothing; ``apart``: nothing that they get is of the main module, and they
    do not import it. Raises SettingError."""
    if jobs < 1:
        raise SettingError('jobs', jobs, 'a whole number of processes from 1 on')
    context = _ApartContext() if apart else _QuietContext()
    return lambda: _Workers(jobs, mp_context=context, initializer=_end_in_order)


def _end_in_order() -> None:
    """In a worker: SIGTERM is an exception, so that files that are half written and temporary folders go."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def stop(workers: Executor, waiting: MutableMapping[Future[Any], Any] | MutableSequence[Future[Any]]) -> None:
    """End what the processes of this computer are doing; what a cluster does goes on.

    Of processes that end, the pool itself fails the futures that are ``waiting``. They are left to it: before Python
    3.12 its thread ends with a traceback at one that is cancelled."""
    processes = tuple((getattr(workers, '_processes', None) or {}).values())
    for process in processes:
        process.terminate()
    if processes:
        waiting.clear()


def cluster(address: str) -> Callable[[], Executor]:
    """Connects to a Dask scheduler. Raises MissingModuleError; what it makes raises SettingError where none answers."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingModuleError('distributed', 'cluster', "`pip install 'mbse_ros[cluster]'`", str(error)) from None

    def connect() -> Executor:
        try:
            client = Client(address, timeout=PATIENCE)
            client.wait_for_workers(1, timeout=PATIENCE)
        except (OSError, TimeoutError, ValueError) as error:
            raise SettingError('cluster', address, f'a Dask scheduler that answers, with workers: {error}') from None
        executor: Executor = client.get_executor(pure=False)
        return executor
    return connect


def results(work: Callable[[T], R], items: Iterable[T], jobs: int = 1, address: str | None = None,
            apart: bool = False) -> Iterator[R]:
    """``work`` of each item, in any order, by ``jobs`` processes, of which 1 is this one, or by the cluster at an
    ``address``; ``apart``: see ``processes``. Raises what the work raises, and SettingError where a worker has another
    version of this package, or ended before its work was done."""
    if jobs == 1 and address is None:
        yield from map(work, items)
        return
    workers = processes(jobs, apart)() if address is None else cluster(address)()
    futures: list[Future[R]] = []
    try:
        for item in items:
            futures.append(workers.submit(partial(_same_version, __version__, work), item))
        for done in as_completed(futures):
            yield done.result()
    except BrokenExecutor as error:
        stop(workers, futures)
        raise SettingError('jobs', jobs, f'processes that live until their work is done, or 1 for none: {error}'
                           ) from None
    except (KeyboardInterrupt, GeneratorExit):
        stop(workers, futures)
        raise
    finally:
        for future in futures:
            future.cancel()
        workers.shutdown()


def _same_version(version: str, work: Callable[[T], R], item: T) -> R:
    if version != __version__:
        raise SettingError('version', __version__, f'{version} on the workers, too')
    return work(item)
