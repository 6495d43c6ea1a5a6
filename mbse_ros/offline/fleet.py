# SPDX-License-Identifier: Apache-2.0
"""Loads of many bags by many processes or computers: each bag once, whatever dies meanwhile.

A bag's loads are a file of their own in the folder of results, written whole or not at all. What is there, and is as it
was written, is not done again: a summary has a checksum, that of its table, and what its results depend on. No bag
knows of another, so results do not depend on the number of workers.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ..description.load import parse_mechanism
from ..description.machine_parts import Attachment
from ..description.model import fingerprint
from ..errors import MbseError, SettingError
from ..machine import Machine
from ..machine.attachment import with_attachment
from ..machine.find_machine import with_valves
from ..resources import write_whole
from ..scale.book import Tally
from ..scale.load import UncertainMass
from ..scale.scale_file import ScaleFile, scale_of
from ..scale.table import PARQUET, rows, write_csv, write_parquet
from ..sources.map import SourceMap
from ..version import __version__
from ..workers import stop
from .bag import KINDS, parse_tuning
from .weigh_bags import weigh_bags

ABOUT, LOCK, SUMMARIES, FAILURES, LOADS = 'fleet.json', 'fleet.lock', 'bags', 'failures', 'loads'
CHECKSUM = 'checksum'
ATTEMPTS = 3            # of a bag whose worker dies
MORE = {'bag': str, 'machine': str, 'start_s': float, 'end_s': float}
"""Columns of a fleet's tables besides those of a machine's; times of the bag, s."""


@dataclass(frozen=True)
class Task:
    """What a worker needs: a ``bag``; ``text`` and ``name`` of the machine's file; valves, tuning in words; the folder
    ``output`` and the ``suffix`` of its tables; a map of ``sources``, the namespace of topics; ``every`` so
    many s a result; the ``version`` of who asks; the ``tool`` on the machine, and the file of the ``scale``, None: the
    section of the machine's."""

    bag: str
    text: str
    name: str
    valve: str | None
    words: tuple[str, ...]
    output: str
    suffix: str
    sources: SourceMap | None = None
    namespace: str | None = None
    every: float = 0.0
    file: str = ''      # of the machine, for messages
    version: str = __version__
    tool: Attachment | None = None
    scale: ScaleFile | None = None

    @property
    def key(self) -> str:
        """Name of its files: the bag's own, and what tells it from others of that name."""
        path = Path(self.bag).resolve()
        return f'{path.name[:80]}-{sha256(str(path).encode()).hexdigest()[:12]}'

    @property
    def about(self) -> dict[str, Any]:
        """What its results depend on, except the bag."""
        return {'machine': self.name, 'machine_file': _fingerprint_of(self.text, self.name, self.valve, self.tool),
                **({} if self.tool is None else {'attachment': self.tool.name}),
                **({} if self.scale is None else {'scale': sha256(repr(self.scale).encode()).hexdigest()[:8]}),
                'tuning': list(self.words),
                'sources': None if self.sources is None else sha256(repr(self.sources).encode()).hexdigest()[:8],
                'namespace': self.namespace, 'every': self.every, 'format': self.suffix, 'version': self.version}


@dataclass(frozen=True)
class Done:
    """What became of a bag: ``loads`` counted, how many of them are ``untrusted``, ``total`` and ``doubted``, kg, of
    those that are trusted and of the others, with ``own`` and ``common`` deviations, see UncertainMass, the
    ``faults`` for which masses of loads were held, ``seconds`` of the bag, or the ``error``."""

    bag: str
    loads: int = 0
    untrusted: int = 0
    total: float = 0.0
    own: float = 0.0
    common: Mapping[str, float] = field(default_factory=dict)
    doubted: float = 0.0
    doubted_own: float = 0.0
    doubted_common: Mapping[str, float] = field(default_factory=dict)
    faults: Sequence[str] = ()
    seconds: float = 0.0
    error: str = ''

    @property
    def tally(self) -> Tally:
        """Its loads."""
        return Tally(self.loads - self.untrusted, UncertainMass(self.total, self.own, self.common), self.untrusted,
                     UncertainMass(self.doubted, self.doubted_own, self.doubted_common))


@lru_cache(maxsize=2)
def machine_of(text: str, name: str, valve: str | None, tool: Attachment | None = None) -> Machine:
    """The machine of a file's text."""
    description = parse_mechanism(text, name)
    description = description if valve is None else with_valves(description, valve)
    return Machine(description if tool is None else with_attachment(description, tool))


@lru_cache(maxsize=2)
def _fingerprint_of(text: str, name: str, valve: str | None, tool: Attachment | None) -> str:
    return fingerprint(machine_of(text, name, valve, tool).description)


def estimate_bag(task: Task) -> Done:
    """The work of a worker: one bag, its table and its summary. What is wrong with the bag is in the result.

    Raises SettingError where the worker has another version or does not see the folder of results.
    """
    if task.version != __version__:
        raise SettingError('version', __version__, f'{task.version} on the workers, too')
    root = Path(task.output)
    if not (root / ABOUT).is_file():
        raise SettingError('output', task.output, 'a folder that the workers see under this name')
    try:
        size, found = _size(task.bag), _weighed(task)
    except (MbseError, OSError) as error:
        return _failed(task, str(error))
    table = [{**row, 'bag': task.bag, 'machine': task.name, 'start_s': load.start, 'end_s': load.end}
             for row, load in zip(rows(found.records), found.loads)]
    total = found.book.all
    faults = list(dict.fromkeys(fault for load in found.loads for fault in load.faults))
    done = Done(task.bag, total.count, total.untrusted, total.mass.value, total.mass.own, dict(total.mass.common),
                total.doubted.value, total.doubted.own, dict(total.doubted.common), faults, found.seconds)
    write = write_parquet if task.suffix == PARQUET else write_csv
    written = root / LOADS / f'{task.key}{task.suffix}'
    write_whole(written, lambda path: write(table, path, MORE))
    lower, upper = total.mass.interval
    write_whole(root / SUMMARIES / f'{task.key}.json', sealed({
        **done.__dict__, 'interval': [lower, upper], 'size': size, 'warnings': list(found.warnings),
        'about': _digest(task.about), 'table': _of_file(written)}))
    (root / FAILURES / f'{task.key}.json').unlink(missing_ok=True)
    return done


def _weighed(task: Task) -> Any:
    machine = machine_of(task.text, task.file or task.name, task.valve, task.tool)
    scale = scale_of(machine) if task.scale is None else task.scale
    return weigh_bags([task.bag], machine, parse_tuning(list(task.words), KINDS), scale,
                      namespace=task.namespace, sources=task.sources, every=task.every)


def _bytes(task: Task) -> int:
    """Size of a bag; 0 where it cannot be looked at."""
    try:
        return sum(size for _, size, _ in _size(task.bag))
    except OSError:
        return 0


def _size(bag: str) -> list[list[Any]]:
    """What changes with a bag's content: names, sizes and times of its files."""
    files = sorted(path for path in Path(bag).iterdir() if path.is_file())
    return [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in files]


def sealed(values: Mapping[str, Any], indent: int | None = None) -> str:
    """JSON with a checksum of what is in it."""
    return json.dumps({**values, CHECKSUM: _digest(values)}, indent=indent) + '\n'


def unsealed(path: Path, older: bool = False) -> dict[str, Any]:
    """What was written so, by ``older`` versions without a checksum; raises OSError, and ValueError for what has
    changed since."""
    try:
        found = json.loads(path.read_text(encoding='utf-8'))
    except RecursionError as error:
        raise ValueError(str(error)) from None
    if not isinstance(found, dict):
        raise ValueError('not a mapping')
    if not (older and CHECKSUM not in found) and found.pop(CHECKSUM, None) != _digest(found):
        raise ValueError('it does not have its checksum: it has changed since it was written')
    return found


def _digest(values: Mapping[str, Any]) -> str:
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _of_file(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def known(task: Task) -> Done | None:
    """What became of a bag before; None where it has not been done, or the bag, its summary or its table have changed
    since, or depend on other values."""
    root = Path(task.output)
    try:
        said = unsealed(root / SUMMARIES / f'{task.key}.json')
        if said['size'] == _size(task.bag) and said['about'] == _digest(task.about) \
                and said['table'] == _of_file(root / LOADS / f'{task.key}{task.suffix}'):
            return Done(**{name: said[name] for name in Done.__dataclass_fields__})
    except (OSError, ValueError, KeyError):
        pass
    return None


@contextmanager
def held(output: Path, about: Mapping[str, Any]) -> Iterator[list[str]]:
    """The folder of results, for one fleet at a time, and what was wrong with its description. One that is damaged is
    written again. Raises SettingError for a folder in use, or of another fleet."""
    import fcntl
    output.mkdir(parents=True, exist_ok=True)
    with open(output / LOCK, 'w') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SettingError('output', str(output), 'a folder that no other fleet is writing') from None
        file, warnings = output / ABOUT, []
        if file.exists():
            try:
                _check_fleet(output, about, unsealed(file, older=True))
            except ValueError as error:
                _check_summaries(output, about)
                warnings.append(f'{file}: damaged ({error}): it is written again')
        elif any(path.name != LOCK for path in output.iterdir()):
            raise SettingError('output', str(output), 'a new folder, or one of an earlier fleet')
        write_whole(file, sealed(about, 1))
        yield warnings


def _check_fleet(output: Path, about: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    differ = [f'{key} {before.get(key)!r}' for key in about if before.get(key) != about[key]]
    if differ:
        raise SettingError('output', f'{output} of a fleet with {", ".join(differ)}',
                           'another folder, or the values of that fleet')


def _check_summaries(output: Path, about: Mapping[str, Any]) -> None:
    """Where the description is damaged each summary says of which fleet it is."""
    for path in sorted((output / SUMMARIES).glob('*.json')):
        with suppress(OSError, ValueError):
            if unsealed(path).get('about') != _digest(about):
                raise SettingError('output', f'{output}, whose {ABOUT} is damaged, with bags of a fleet with other '
                                   f'values ({path.name})', 'another folder, or the values of that fleet')


def run_fleet(tasks: Sequence[Task], make: Callable[[], Executor], window: int) -> Iterator[Done]:
    """What becomes of each bag, as they are done, the largest first, so that none of the workers is left with a long
    one at the end; ``make`` gives the workers, again where they died, which get at most ``window`` bags at once.

    A bag whose worker dies is tried again, the last time alone, so that the others are not blamed. Raises SettingError
    of a worker: see ``estimate_bag``.
    """
    left = deque(sorted(tasks, key=_bytes, reverse=True))
    tries = dict.fromkeys((task.key for task in tasks), 0)
    while left:
        alone = tries[left[0].key] == ATTEMPTS - 1
        lost: list[Task] = []
        yield from _batch(left, 1 if alone else window, alone, make, lost)
        for task in lost:
            tries[task.key] += 1
            if (done := known(task)) is not None:       # its worker died after it, or with it
                yield done
            elif tries[task.key] < ATTEMPTS:
                left.append(task)
            else:
                yield _failed(task, f'{task.bag}: each process that read it ended before it was done')


def _batch(left: deque[Task], window: int, alone: bool, make: Callable[[], Executor], lost: list[Task]
           ) -> Iterator[Done]:
    """Bags until none is left, or workers die; those that they had are ``lost``. ``alone``: the first one only."""
    workers = make()
    running: dict[Future[Done], Task] = {}
    finished: SimpleQueue[Future[Done]] = SimpleQueue()
    broken = False
    try:
        while not lost and (running or left):
            while left and len(running) < window and not (alone and running):
                future = workers.submit(estimate_bag, left[0])
                running[future] = left.popleft()
                future.add_done_callback(finished.put)
            for future in [finished.get(), *(finished.get() for _ in range(finished.qsize()))]:
                task = running.pop(future)
                try:
                    done = future.result()
                except MbseError:
                    raise
                except (BrokenExecutor, CancelledError) as error:
                    lost.append(task)
                    broken |= isinstance(error, BrokenExecutor)
                    continue
                except Exception as error:      # of a cluster: its workers died of this bag
                    done = _failed(task, f'{type(error).__name__}: {error}'[:500])
                yield done
            if alone:
                break
        lost += running.values()
        if broken:
            stop(workers, running)
    except (KeyboardInterrupt, GeneratorExit):
        stop(workers, running)
        raise
    finally:
        for future in running:
            future.cancel()
        workers.shutdown(wait=True)


def _failed(task: Task, error: str) -> Done:
    """Written down, and returned."""
    done = Done(task.bag, error=error)
    write_whole(Path(task.output) / FAILURES / f'{task.key}.json', json.dumps(done.__dict__) + '\n')
    return done
