# SPDX-License-Identifier: Apache-2.0
"""``loads``: the loads of bags, or of the records of a live scale; ``fleet``: of many bags, on cores or a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import workers
from ..errors import BagError, MissingModuleError, SettingError, refuse_options
from ..machine import Machine
from ..progress import lengthy
from ..report.result import Answer
from .checked import checked
from .estimate import Tuning, words
from .load import Loadable, loaded_sources, recorded, recorded_name

if TYPE_CHECKING:
    from ..offline.fleet import Done
    from ..offline.loads import Loads
    from ..scale.book import Tally

SEVERAL = 10_000        # bags that a cluster has at once
AHEAD = 2               # bags that a process of this computer has at once
SHOWN = 5               # failures in words
BAGS = 'metadata.yaml', '*.mcap', '*.db3'       # one of them is in a folder of a bag


@checked
@lengthy('reading bags and weighing loads')
def loads(bags: str | Path | Sequence[str | Path] = (), machine: Loadable | None = None, *,
          known: str | float | None = None, records: str | Path | None = None, scale: str | Path | None = None,
          attachment: str | None = None, truck: Sequence[str] = (), tuning: Tuning | None = None, every: float = 0.0,
          valve: str | None = None, sources: str | Path | None = None, namespace: str | None = None,
          backend: str = 'auto') -> Loads:
    """Count and weigh the loads in bags of one machine, in their order, as the scale of the live graph does.

    ``machine``: default the one that the bags name; ``known``: what is known of the masses, 500 or '500+-2.5 kg', of
    every load, or a CSV table by load, truck or bag; ``records``: those of a live scale, instead of bags; ``scale``:
    file of attachments and load chart, ``attachment``: the one on it; ``truck``: that each bag is for. Others as of
    ``estimate``, ``tuning`` with ``scale.``. Raises BagError, RecordsError, DescriptionError, SettingError, ScaleError.

    >>> [round(float(mass), -1) for mass in loads('lift').mass]
    [200.0]
    """
    from ..offline.bag import KINDS, parse_tuning  # here, as they take their time to import
    from ..offline.known_masses import check_known, compared
    from ..offline.weigh_bags import recorded_loads, weigh_bags
    from ..scale.comparison import compare
    from ..scale.record_file import is_records
    from ..scale.scale_file import scale_of
    some = [bags] if isinstance(bags, (str, Path)) else list(bags)
    if known is not None:
        known = f'{known:g}' if isinstance(known, (int, float)) else known
        check_known(known)
    if (records is None) == (not some):
        raise SettingError('bags', [str(bag) for bag in some], 'one bag or more, or the records of a live scale')
    for bag in some:
        if is_records(Path(bag)):
            raise SettingError('bags', str(bag), 'folders of bags; this file has the records of a live scale: give it '
                               f'as records (mbse loads --records {bag})')
    if records is not None:
        refuse_options('bags', {'machine': machine, 'scale': scale, 'attachment': attachment, 'truck': truck or None,
                                'tuning': tuning or None, 'valve': valve, 'sources': sources, 'namespace': namespace,
                                'every': every or None})
        found = recorded_loads(records)
    else:
        if len(truck) > len(some):
            raise SettingError('truck', truck[len(some)], f'one for each of the {len(some)} bags at most')
        settings = parse_tuning(words(tuning or {}), KINDS)
        item, assumed = recorded(some, machine, valve=valve, namespace=namespace, attachment=attachment, scale=scale)
        if not isinstance(item, Machine):
            raise SettingError('machine', item.description.name, 'a machine: this file has no cylinders')
        found = weigh_bags(some, item, settings, scale_of(item, scale or ''), truck, namespace, backend,
                           loaded_sources(sources), every)
        found = replace(found, warnings=(*assumed, *found.warnings))
    return replace(found, several=len(some) > 1,
                   comparison=None if known is None else compare(compared(known, found)))


@dataclass(frozen=True)
class Fleet(Answer):
    """What became of bags, ``good`` and ``failed``, in order of their names; ``before``: how many were done before;
    their tables are in ``output``."""

    output: Path
    good: tuple[Done, ...]
    failed: tuple[Done, ...]
    before: int
    warnings: tuple[str, ...]

    @property
    def tally(self) -> Tally:
        """All loads."""
        from ..scale.book import Tally  # here, as it takes its time to import
        found = Tally()
        for done in self.good:
            found.join(done.tally)
        return found

    @property
    def failures(self) -> list[str]:
        """What failed, a line each, the first ones."""
        more = len(self.failed) - SHOWN
        return [*(done.error for done in self.failed[:SHOWN]),
                *([f'and {more} more, see {self.output / "failures"}'] if more > 0 else [])]

    def summary(self) -> list[str]:
        """How many bags and hours, and the total of their loads."""
        from ..scale.table import total_text  # here, as it takes its time to import
        count, hours = len(self.good), sum(done.seconds for done in self.good) / 3600.0
        failed = f', {len(self.failed)} failed' if self.failed else ''
        return [f'{count} bag{"s" * (count != 1)} ({self.before} of them done before){failed}, {hours:.2f} h, '
                f'{total_text(self.tally)}: {self.output}']

    def _values(self, full: bool) -> dict[str, Any]:
        return {'bags': len(self.good) + len(self.failed), 'done_before': self.before, **self.tally.values,
                'faults': sorted({fault for done in self.good for fault in done.faults}),
                'seconds': sum(done.seconds for done in self.good),
                'failures': [{'bag': done.bag, 'error': done.error} for done in self.failed]}


@checked
def fleet(bags: str | Path | Sequence[str | Path], output: str | Path, machine: str | Path | None = None, *,
          jobs: int = 0, cluster: str | None = None, every: float = 0.0, valve: str | None = None,
          tuning: Tuning | None = None, sources: str | Path | None = None, namespace: str | None = None,
          attachment: str | None = None, scale: str | Path | None = None) -> Fleet:
    """Weigh the loads of many bags: a table for each, as ``loads`` makes it. What is done is not done again, what fails
    is written down and does not stop the others.

    ``bags``: folders, or patterns of them such as ``bags/*``; ``output``: folder of the tables, x.parquet or x.csv;
    what is there already stays. ``machine``: name or path, default the one that the bags name. ``jobs``: processes, 0:
    one for each core; ``cluster``: address of a Dask scheduler instead. ``attachment``: the same in all bags. Others as
    of ``loads``.

    The result: ``good`` and ``failed`` bags, ``tally`` of their loads, ``failures``, ``summary()``, ``to_json()``.
    Raises BagError, DescriptionError, SettingError, ScaleError, MissingModuleError.

    >>> found = fleet('lift', 'loads.csv', jobs=1)
    >>> len(found.good), len(found.failed)
    (1, 0)
    """
    from ..machine import load_machine  # here, as they take their time to import
    from ..offline.bag import KINDS, parse_tuning
    from ..offline.fleet import Task, held, known, run_fleet
    from ..report.files import check_folder
    from ..report.text import tracked
    from ..scale.scale_file import scale_of
    from ..scale.table import CSV, PARQUET
    place, settings = Path(output), words(tuning or {})
    suffix = place.suffix.lower()
    if suffix not in (CSV, PARQUET):
        raise SettingError('output', str(output), f'a folder whose name ends with {PARQUET} or {CSV}')
    check_folder(place, 'output')
    if suffix == PARQUET:
        _check_pyarrow()
    parse_tuning(settings, KINDS)
    if jobs < 0:
        raise SettingError('jobs', jobs, 'processes, or 0 for one for each core')
    if not bags:
        raise SettingError('bags', bags, 'one bag or more')
    folders, strange = _folders([bags] if isinstance(bags, (str, Path)) else bags)
    name, assumed = recorded_name(folders, namespace) if machine is None else (machine, ())
    described = load_machine(name, valve)
    file = described.description.file
    text, known_sources = Path(file).read_text(encoding='utf-8'), loaded_sources(sources)
    tool = scale_of(described, scale or '').attachment(attachment or '')
    tasks = [Task(bag, text, described.name, valve, tuple(settings), str(place.resolve()), suffix, known_sources,
                  namespace, every, file=file, tool=tool, scale=scale_of(described, scale) if scale else None)
             for bag in folders]
    count = jobs or workers.processors()
    make = workers.cluster(cluster) if cluster is not None else workers.processes(count)
    with held(place, tasks[0].about) as warnings:
        before = [done for done in map(known, tasks) if done is not None]
        there = {done.bag for done in before}
        todo = [task for task in tasks if task.bag not in there]
        window = SEVERAL if cluster is not None else AHEAD * count
        found = [*before, *tracked(run_fleet(todo, make, window), 'bags', len(todo))]
    found.sort(key=lambda done: done.bag)
    return Fleet(place, tuple(done for done in found if not done.error), tuple(done for done in found if done.error),
                 len(before), (*strange, *assumed, *warnings))


def _folders(patterns: Sequence[str | Path]) -> tuple[list[str], list[str]]:
    """Bags of all patterns, each once, in order of their names; and what was left out."""
    found: dict[str, None] = {}
    strange: list[str] = []
    for pattern in map(str, patterns):
        paths = sorted(glob(pattern))
        bags = [path for path in paths if any(any(Path(path).glob(kind)) for kind in BAGS)]
        if not bags:
            raise BagError(pattern, 'no folder of a bag has this name, or matches this pattern')
        if others := [path for path in paths if path not in bags]:
            what = 'not folders of bags' if len(others) > 1 else 'not a folder of a bag'
            strange.append(f'{", ".join(others)}: {what}, left out')
        found |= dict.fromkeys(str(Path(bag).resolve()) for bag in bags)
    return list(found), strange


def _check_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingModuleError('pyarrow', 'it writes Parquet', "`pip install 'mbse_ros[parquet]'`, or write .csv",
                                 str(error)) from None
