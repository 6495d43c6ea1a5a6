# SPDX-License-Identifier: Apache-2.0
"""The worker that runs cases with a limit of its memory, and the watch over it from another process."""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from .kind import Case, Kind

LIMIT, MEMORY = 10.0, 500 << 20     # s of the processor for a case, bytes of a worker
PATIENCE = 6                        # times the limit that a case may take by the clock: others may keep the processor
REPORT = 1.0                        # s between two messages of a worker
START = 300.0                       # s that the first case may take: what it needs is made, and compiled
MB = 1 << 20


@dataclass
class Tally:
    """What became of the mutations of a kind."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    peak: int = 0           # bytes of the largest worker
    slowest: tuple[float, int] = (0.0, -1)      # s of the processor, and of which case


def random_of(kind: str, seed: int, index: int) -> Random:
    """The Random of a case."""
    return Random(f'{kind} {seed} {index}')


def written(case: Case, folder: Path) -> None:
    """The files of a case, in an empty folder."""
    for name, content in case.items():
        (folder / name).write_bytes(content)


def emptied(folder: Path) -> None:
    """Take everything out of a folder."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def work(make_kind: Callable[[Path], Kind], name: str, seed: int, first: int, stop: int, now, pipe: Connection) -> None:
    """Run cases; ``now`` holds the number of the present one and when it began."""
    with tempfile.TemporaryDirectory(dir='/dev/shm' if os.path.isdir('/dev/shm') else None) as top:
        folder = Path(top) / 'case'
        folder.mkdir()
        os.chdir(top)
        log = open(Path(top) / 'log', 'w+b', buffering=0)
        for number in (1, 2):
            os.dup2(log.fileno(), number)
        kind, tally, told = make_kind(folder), Tally(), time.monotonic()
        kind.prepare()
        for index in range(first, stop):
            case = kind.make(random_of(name, seed, index))
            written(case, folder)
            began, used = time.monotonic(), time.process_time()
            now[0], now[1], now[2], now[3] = index, began, index == first, time.process_time()
            wrong = ''
            try:
                tally.outcomes += kind.run(case)
            except BaseException:       # the very thing that is looked for
                wrong = traceback.format_exc()
            peak = _peak_memory()
            if index == first:
                _limit_memory()
            else:
                tally.slowest = max(tally.slowest, (round(time.process_time() - used, 2), index))
            said = _said(log)
            wrong = wrong or (said if 'Traceback' in said else '')
            wrong = wrong or (f'{peak / MB:.0f} MB' if peak > MEMORY else '')
            if wrong:
                tally.failures.append((index, wrong))
            tally.cases, tally.peak = tally.cases + 1, max(tally.peak, peak)
            emptied(folder)
            last = index == stop - 1 or index - first >= kind.most or peak > MEMORY
            if wrong or last or time.monotonic() - told > REPORT:
                pipe.send((index + 1, tally))
                tally, told = Tally(), time.monotonic()
            if last:
                break
        now[2] = 2
        pipe.close()
        os._exit(0)     # not through the ends of rclpy and its threads


def _peak_memory() -> int:
    """Bytes of this program; ``ru_maxrss`` has those of the process that started it, too."""
    status = Path('/proc/self/status').read_text()
    return 1024 * int(status.partition('VmHWM:')[2].split()[0])


def _limit_memory() -> None:
    """500 MB beyond what the worker has mapped now: threads and libraries map much that they never use."""
    pages = int(Path('/proc/self/statm').read_text().split()[0])
    size = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _said(log) -> str:
    """What was printed since the last look, its end."""
    size = os.fstat(log.fileno()).st_size
    if not size:
        return ''
    text = os.pread(log.fileno(), 1 << 20, 0).decode(errors='replace')
    os.ftruncate(log.fileno(), 0)
    os.lseek(log.fileno(), 0, os.SEEK_SET)
    return text


def watched(make_kind: Callable[[Path], Kind], name: str, seed: int, first: int, stop: int, until: float,
            tell: Callable[[int, str], None]) -> Tally:
    """Run cases first to stop, or until a time (monotonic); ``tell`` gets each failure. A worker that dies or hangs is
    a failure of the case it was at, and another one goes on behind it."""
    context, total = multiprocessing.get_context('spawn'), Tally()
    while first < stop and time.monotonic() < until:
        now, (ours, theirs) = context.Array('d', 4, lock=False), context.Pipe(duplex=False)
        now[0], now[1], now[2] = first, time.monotonic(), 1
        worker = context.Process(target=work, args=(make_kind, name, seed, first, stop, now, theirs))
        worker.start()
        theirs.close()
        killed, done = '', first
        while True:
            try:
                while ours.poll(0.1):
                    done, part = ours.recv()
                    _add(total, part, tell)
            except EOFError:
                break
            late, used = time.monotonic() - now[1], processor_time(worker.pid) - now[3]
            if now[2] != 2 and (late > START if now[2] else used > LIMIT or late > PATIENCE * LIMIT):
                killed = f'hangs: {late:.0f} s, of the processor {used:.0f} s'
            if killed or time.monotonic() > until:
                worker.kill()
                break
        worker.join()
        if not killed and (worker.exitcode == 0 or time.monotonic() > until):
            first = max(done, first + 1) if worker.exitcode == 0 else stop
            continue
        index = int(now[0])
        how = killed or f'died: {_cause(worker.exitcode)}'
        total.failures.append((index, how))
        total.cases += index + 1 - done
        tell(index, how)
        first = index + 1
    return total


def processor_time(pid: int) -> float:
    """Seconds of the processor that a process has had."""
    try:
        fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def _cause(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f'exit status {code}'


def _add(total: Tally, part: Tally, tell: Callable[[int, str], None]) -> None:
    total.cases += part.cases
    total.outcomes += part.outcomes
    total.failures += part.failures
    total.peak, total.slowest = max(total.peak, part.peak), max(total.slowest, part.slowest)
    for index, text in part.failures:
        tell(index, text)
    sys.stdout.flush()
