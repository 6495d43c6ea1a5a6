# SPDX-License-Identifier: Apache-2.0
"""``mbse loads`` and its options: the loads in bags, counted and weighed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import mbse_ros as mbse

from ..errors import SettingError
from .arguments import (
    Attachment,
    Backend,
    Every,
    Json,
    Namespace,
    OfMachine,
    Pictures,
    ScaleOf,
    Sources,
    Valve,
    hand_over,
    write_report,
)


def loads(
        bags: Annotated[list[Path] | None, typer.Argument(
            help='Folders of bags of one machine, in their order.')] = None,
        machine: OfMachine = None,
        output: Annotated[Path | None, typer.Option(
            '-o', '--output', help='Table of the loads to write: .csv, .parquet, or .xml for the counts of '
                                   'ISO 15143-3.')] = None,
        json_: Json = None,
        report: Annotated[Path | None, typer.Option(
            help='Folder for the report: loads, totals, drift, causes; index.html and PNGs.')] = None,
        pictures: Pictures = True,
        known: Annotated[str | None, typer.Option(
            help='What is known of the masses: 500 kg or 500+-2.5 kg, of every load, or a CSV table by load, truck or '
                 'bag.')] = None,
        records: Annotated[Path | None, typer.Option(
            help='Instead of bags: the records of a live scale, its SQLite file.')] = None,
        repair: Annotated[bool, typer.Option(
            '--repair', help='With --records: write what is whole of a damaged file into x.repaired.db.')] = False,
        scale: ScaleOf = None,
        attachment: Attachment = None,
        truck: Annotated[list[str] | None, typer.Option(
            help='Truck that a bag is for; repeat it, in the order of the bags.')] = None,
        words: Annotated[list[str] | None, typer.Option(
            '--set', help='Tuning, e.g. scale.least_load=200, scale.carry_back=true, payload.min_speed=0.02; '
                          'repeat it.')] = None,
        every: Every = 0.0,
        valve: Valve = None,
        sources: Sources = None,
        namespace: Namespace = None,
        backend: Backend = 'auto') -> None:
    """Count and weigh the loads in bags, with totals.

    Taken, carried, dropped, as the scale of the live graph counts them; intervals of totals take as common what is
    wrong in all loads alike.
    """
    from ..report.files import check_file, check_folder
    from ..scale.table import SUFFIXES
    check_file(json_)
    check_file(output, 'output', SUFFIXES)
    check_folder(report, 'report')
    if repair and records is None:
        raise SettingError('repair', True, '--records FILE with it')
    found = mbse.loads(bags or [], machine, known=known, records=records, scale=scale, attachment=attachment,
                       truck=truck or [], tuning=words or [], every=every, valve=valve, sources=sources,
                       namespace=namespace, backend=backend)
    if repair and records is not None:
        repair_records(records)

    def write() -> None:
        for line in found.overloads:
            typer.echo(f'overload: {line}', err=True)
        if output is not None:
            found.write(output)
        if report is not None:
            write_report(found, report, pictures)
    hand_over(found, json_, write=write)
    if found.damaged and not repair:
        raise typer.Exit(1)


def repair_records(path: Path) -> None:
    """What is whole into a new file; the damaged one stays as it is."""
    from ..scale.store import repair
    output = path.with_name(f'{path.stem}.repaired{path.suffix}')
    found = repair(path, output)
    whole, lost = len(found.rows), ', '.join(map(str, found.lost))
    kept = f'{whole} record is whole' if whole == 1 else f'{whole} records are whole'
    gone = f'record {lost} is lost' if len(found.lost) == 1 else f'records {lost} are lost' if lost else 'none is lost'
    if any(damage.number is None for damage in found.damages):
        gone += ' that is known of; there may have been more after the last one that is whole'
    typer.echo(f'{output}: {kept}, {gone}' if found.damages else f'{path}: {kept}, there is nothing to repair')
