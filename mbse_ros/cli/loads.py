# SPDX-License-Identifier: Apache-2.0
"""``mbse loads`` and its options: the loads in bags, counted and weighed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import SettingError
from .arguments import (
    Backend,
    Every,
    Json,
    Namespace,
    OfMachine,
    Sources,
    Valve,
    machine_name,
    refuse_options,
    sources_of,
)

if TYPE_CHECKING:
    from ..offline.weigh_bags import WeighedBags


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
        known: Annotated[str | None, typer.Option(
            help='What is known of the masses: 500 kg or 500+-2.5 kg, of every load, or a CSV table by load, truck or '
                 'bag.')] = None,
        records: Annotated[Path | None, typer.Option(
            help='Instead of bags: the records of a live scale, its SQLite file.')] = None,
        repair: Annotated[bool, typer.Option(
            '--repair', help='With --records: write what is whole of a damaged file into x.repaired.db.')] = False,
        scale: Annotated[str | None, typer.Option(
            help="File of attachments and load chart. [the section `scale` of the machine's file]")] = None,
        attachment: Annotated[str | None, typer.Option(
            help='Attachment on the machine, by its name in that file. [none]')] = None,
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
    from ..machine import load_machine
    from ..offline.bag import KINDS, parse_tuning
    from ..offline.known_masses import check_known
    from ..offline.weigh_bags import recorded_loads, weigh_bags
    from ..report.files import check_file, check_folder
    from ..scale.export import SUFFIXES
    from ..scale.record_file import is_records
    from ..scale.scale_file import scale_of
    check_file(json_)
    check_file(output, '--output', SUFFIXES)
    check_folder(report, '--report')
    if known is not None:
        check_known(known)
    bags = bags or []
    if (records is None) == (not bags):
        raise SettingError('bags', [str(bag) for bag in bags], 'one bag or more, or --records')
    for bag in bags:
        if is_records(bag):
            raise SettingError('bags', str(bag), f'folders of bags; the records of a live scale: --records {bag}')
    if records is not None:
        refuse_options('bags', {'machine': machine, 'scale': scale, 'attachment': attachment, 'truck': truck,
                                'set': words, 'valve': valve, 'sources': sources, 'namespace': namespace,
                                'every': every or None})
        if repair:
            repair_records(records)
        found = recorded_loads(records)
        for line in found.warnings:
            typer.echo(f'warning: {line}', err=True)
        hand_over(found, output, json_, report, known, False)
        if found.damaged and not repair:
            raise typer.Exit(1)
        return
    if repair:
        raise SettingError('--repair', True, '--records FILE with it')
    if truck and len(truck) > len(bags):
        raise SettingError('--truck', truck[len(bags)], f'one for each of the {len(bags)} bags at most')
    tuning = parse_tuning(words or [], KINDS)
    described = load_machine(machine_name(machine, bags, namespace), valve)
    found = weigh_bags(bags, described, tuning, scale_of(described, scale or ''),
                       attachment or '', truck or [], namespace, backend, sources_of(sources), every)
    for line in found.warnings:
        typer.echo(f'warning: {line}', err=True)
    for line in found.overloads:
        typer.echo(f'overload: {line}', err=True)
    hand_over(found, output, json_, report, known, len(bags) > 1)


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


def hand_over(found: WeighedBags, output: Path | None, json_file: Path | None, report: Path | None, known: str | None,
              several: bool) -> None:
    """Write what was asked for, and print; ``several`` bags have a column of their names."""
    from ..offline.log_loads import CELLS
    from ..report.files import write_json
    from ..report.sections import print_table, wide_console
    from ..scale.export import Equipment, write_loads
    from ..scale.table import undone_loads
    comparison = None
    if known is not None:
        from ..offline.known_masses import compared
        from ..scale.comparison import compare
        comparison = compare(compared(known, found))
    if output is not None:
        write_loads(found.records, output, Equipment(found.machine))
    write_json(json_file, found.to_json() | ({} if comparison is None else {'comparison': comparison.values}))
    if report is not None:
        from ..offline.loads_report import loads_report
        from ..report.writer import write_report
        typer.echo(f'report: {write_report(loads_report(found, comparison), report)}')
    undone = undone_loads(found.records)
    rows = [[*([Path(load.bag).resolve().name] if several else []), *load.cells(undone, found.named_trucks)]
            for load in found.loads]
    if rows:
        print_table(wide_console(), f'{found.machine}: loads', [*(['bag'] if several else []), *CELLS], rows)
    for line in found.summary():
        typer.echo(line)
    for name, words in (comparison.facts if comparison is not None else {}).items():
        typer.echo(f'{name}: {words}')
