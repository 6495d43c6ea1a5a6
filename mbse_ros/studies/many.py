# SPDX-License-Identifier: Apache-2.0
"""Independent runs of a study: in this process, in several, or on a cluster, with a bar on a terminal; and where."""

from __future__ import annotations

import platform
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TypeVar

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
