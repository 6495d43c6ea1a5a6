# SPDX-License-Identifier: Apache-2.0
"""``mbse fleet``: the loads of many bags, on all cores or on a cluster."""

from __future__ import annotations

import os
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import workers
from ..errors import BagError, MissingModuleError, SettingError
from .arguments import Cluster, Every, Json, Namespace, OfMachine, Set, Sources, Valve

if TYPE_CHECKING:
    from ..offline.fleet import Done

SEVERAL = 10_000        # bags that a cluster has at once
AHEAD = 2               # bags that a process of this computer has at once
SHOWN = 5               # failures on the terminal
BAGS = 'metadata.yaml', '*.mcap', '*.db3'       # one of them is in a folder of a bag


def fleet(
        bags: Annotated[list[str], typer.Argument(help="Folders of bags, or patterns of them such as 'bags/*'.")],
        output: Annotated[Path, typer.Option(
            '-o', '--output', help='Folder of tables to write, x.parquet or x.csv; what is there already stays.')],
        machine: OfMachine = None,
        jobs: Annotated[int, typer.Option(min=0, help='Processes; 0: one for each core.')] = 0,
        cluster: Cluster = None,
        every: Every = 0.0,
        valve: Valve = None,
        set_: Set = None,
        sources: Sources = None,
        namespace: Namespace = None,
        json_: Json = None) -> None:
    """Weigh the loads of many bags, on cores or a cluster.

    A table for each bag, as mbse loads makes it. What is done is not done again; what fails is written down and does
    not stop the others.
    """
    from ..api.load import loaded_sources, recorded_name
    from ..machine import load_machine
    from ..offline.bag import KINDS, parse_tuning
    from ..offline.fleet import Task, held, known, run_fleet
    from ..report.files import check_file
    from ..report.sections import tracked
    from ..scale.export import CSV, PARQUET
    check_file(json_)
    suffix = output.suffix.lower()
    if suffix not in (CSV, PARQUET):
        raise SettingError('--output', str(output), f'a folder whose name ends with {PARQUET} or {CSV}')
    if suffix == PARQUET:
        _check_pyarrow()
    parse_tuning(set_ or [], KINDS, '--set')
    folders = _folders(bags)
    name, assumed = recorded_name(folders, namespace) if machine is None else (machine, ())
    described = load_machine(name, valve)
    text = Path(described.description.file).read_text(encoding='utf-8')
    known_sources = loaded_sources(sources)
    tasks = [Task(bag, text, described.name, valve, tuple(set_ or ()), str(output.resolve()), suffix, known_sources,
                  namespace, every, file=described.description.file) for bag in folders]
    make = workers.cluster(cluster) if cluster is not None else workers.processes(jobs or os.cpu_count() or 1)
    with held(output, tasks[0].about) as warnings:
        for line in (*assumed, *warnings):
            typer.echo(f'warning: {line}', err=True)
        before = [done for done in map(known, tasks) if done is not None]
        there = {done.bag for done in before}
        todo = [task for task in tasks if task.bag not in there]
        window = SEVERAL if cluster is not None else AHEAD * (jobs or os.cpu_count() or 1)
        found = [*before, *tracked(run_fleet(todo, make, window), 'bags', len(todo))]
    _report(found, len(before), output, json_)


def _folders(patterns: list[str]) -> list[str]:
    """Bags of all patterns, each once, in order of their names."""
    found: dict[str, None] = {}
    for pattern in patterns:
        paths = sorted(glob(pattern))
        bags = [path for path in paths if any(any(Path(path).glob(kind)) for kind in BAGS)]
        if not bags:
            raise BagError(pattern, 'no folder of a bag has this name, or matches this pattern')
        if others := [path for path in paths if path not in bags]:
            what = 'not folders of bags' if len(others) > 1 else 'not a folder of a bag'
            typer.echo(f'warning: {", ".join(others)}: {what}, left out', err=True)
        found |= dict.fromkeys(str(Path(bag).resolve()) for bag in bags)
    return list(found)


def _check_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingModuleError('pyarrow', 'it writes Parquet', "`pip install 'mbse_ros[parquet]'`, or write .csv",
                                 str(error)) from None


def _report(found: list[Done], before: int, output: Path, json_file: Path | None) -> None:
    """What was found, and what failed; exit status 1 where something did."""
    from ..report.files import write_json
    from ..scale.book import Tally
    from ..scale.table import total_text
    failed = sorted((done for done in found if done.error), key=lambda done: done.bag)
    good = sorted((done for done in found if not done.error), key=lambda done: done.bag)
    tally = Tally()
    for done in good:
        tally.join(done.tally)
    write_json(json_file, {'bags': len(found), 'done_before': before, **tally.values,
                           'faults': sorted({fault for done in good for fault in done.faults}),
                           'seconds': sum(done.seconds for done in good),
                           'failures': [{'bag': done.bag, 'error': done.error} for done in failed]})
    for done in failed[:SHOWN]:
        typer.echo(f'failed: {done.error}', err=True)
    if len(failed) > SHOWN:
        typer.echo(f'failed: and {len(failed) - SHOWN} more, see {output / "failures"}', err=True)
    typer.echo(f'{len(good)} bag{"s" * (len(good) != 1)} ({before} of them done before), '
               f'{sum(done.seconds for done in good) / 3600.0:.2f} h, {total_text(tally)}: {output}')
    if failed:
        raise typer.Exit(1)
