# SPDX-License-Identifier: Apache-2.0
"""Independent runs of a study: in this process, in several, or on a cluster, with a bar on a terminal; and where."""

from __future__ import annotations

import json
import platform
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ..report.text import tracked
from ..workers import results

T = TypeVar('T')
R = TypeVar('R')


def many(work: Callable[[T], R], items: Iterable[T], jobs: int = 1, cluster: str | None = None, what: str = 'runs',
         apart: bool = False) -> list[R]:
    """``work`` of each item, in their order, whoever was the first; see ``workers.results``."""
    given = list(enumerate(items))
    done = tracked(results(partial(_with_place, work), given, jobs, cluster, apart), what, len(given))
    return [found for _, found in sorted(done, key=lambda pair: pair[0])]


def kept(work: Callable[[T], dict[str, Any]], items: Mapping[tuple[Any, ...], T], names: tuple[str, ...], file: Path,
         jobs: int = 1, cluster: str | None = None, what: str = 'runs') -> list[dict[str, Any]]:
    """The rows in a file, a JSON object on each line, and those of the items that are not in it yet, which are written
    there as soon as they are known; the entries ``names`` of a row are the key of its item."""
    rows = [json.loads(text) for text in file.read_text(encoding='utf-8').splitlines()] if file.is_file() else []
    done = {tuple(row[name] for name in names) for row in rows}
    left = [item for key, item in items.items() if key not in done]
    file.parent.mkdir(parents=True, exist_ok=True)
    for row in tracked(results(work, left, jobs, cluster), what, len(left)):
        rows.append(row)
        with file.open('a', encoding='utf-8') as stream:
            stream.write(json.dumps(row) + '\n')
    return rows


def _with_place(work: Callable[[T], R], item: tuple[int, T]) -> tuple[int, R]:
    return item[0], work(item[1])


def add_workers(parser: ArgumentParser, jobs: int = 1) -> None:
    """The options ``--jobs`` and ``--cluster`` of a benchmark; its figures do not depend on them."""
    parser.add_argument('--jobs', type=int, default=jobs, help=f'processes; the figures do not depend on it [{jobs}]')
    parser.add_argument('--cluster', metavar='ADDRESS', help='a Dask scheduler, tcp://HOST:PORT, instead of processes '
                        'here; its workers have benchmarks/ and test/support/ on their PYTHONPATH')


def machine_name() -> str:
    """Processor and Python of this machine."""
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
        model = next(line.split(':', 1)[1].strip() for line in lines if line.startswith('model name'))
    except (OSError, StopIteration):
        model = platform.machine()
    return f'{model}, Python {platform.python_version()}'
