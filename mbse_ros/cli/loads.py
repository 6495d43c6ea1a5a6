# SPDX-License-Identifier: Apache-2.0
"""``mbse loads`` and its options: the loads in bags, counted and weighed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ..errors import SettingError
from .arguments import Every, Json, OfMachine, Sources, Valve, machine_name, refuse_options, sources_of

if TYPE_CHECKING:
    from ..offline.log_loads import WeighedLoad
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
        namespace: Annotated[str | None, typer.Option(
            help='Namespace of the topics, where the bags have several.')] = None,
        backend: Annotated[str, typer.Option(help='auto, c or vm.')] = 'auto') -> None:
    """Count and weigh the loads in bags, with totals.

    Taken, carried, dropped, as the scale of the live graph counts them; intervals of totals take as common what is
    wrong in all loads alike.
    """
    from ..machine import load_machine
    from ..offline.bag import KINDS, parse_tuning
    from ..offline.weigh_bags import recorded_loads, weigh_bags
    from ..report.files import check_file, check_folder
    from ..scale.export import SUFFIXES
    from ..scale.record_file import is_records
    from ..scale.scale_file import scale_of
    check_file(json_)
    check_file(output, '--output', SUFFIXES)
    check_folder(report, '--report')
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
        hand_over(found, Handed(output, json_, report, known))
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
    hand_over(found, Handed(output, json_, report, known, len(bags) > 1))


def repair_records(path: Path) -> None:
    """What is whole into a new file; the damaged one stays as it is."""
    from ..scale.store import repair
    output = path.with_name(f'{path.stem}.repaired{path.suffix}')
    found = repair(path, output)
    whole, lost = len(found.rows), ', '.join(map(str, found.lost))
    kept = f'{whole} record is whole' if whole == 1 else f'{whole} records are whole'
    gone = f'record {lost} is lost' if len(found.lost) == 1 else f'records {lost} are lost' if lost else 'none is lost'
    typer.echo(f'{output}: {kept}, {gone}' if found.damages else f'{path}: {kept}, there is nothing to repair')


class Handed(NamedTuple):
    """What was asked for: table, JSON, report, what is ``known``; whether there are ``several`` bags."""

    output: Path | None = None
    json_file: Path | None = None
    report: Path | None = None
    known: str | None = None
    several: bool = False


def hand_over(found: WeighedBags, asked: Handed) -> None:
    """Write what was asked for, and print."""
    from ..report.files import write_json
    from ..scale.export import Equipment, write_loads
    comparison = None
    if asked.known is not None:
        from ..offline.known_masses import compared
        from ..scale.comparison import compare
        comparison = compare(compared(asked.known, found, counted_loads(found)))
    if asked.output is not None:
        write_loads(found.records, asked.output, Equipment(found.machine))
    write_json(asked.json_file, as_json(found) | ({} if comparison is None else {'comparison': comparison.values}))
    if asked.report is not None:
        from ..offline.loads_report import loads_report
        from ..report.writer import write_report
        typer.echo(f'report: {write_report(loads_report(found, counted_loads(found), comparison), asked.report)}')
    show(found, asked.several)
    for name, words in (comparison.facts if comparison is not None else {}).items():
        typer.echo(f'{name}: {words}')


def counted_loads(found: WeighedBags) -> list[WeighedLoad]:
    """The loads that count, in their order; the first is load 1."""
    from ..scale.table import undone_loads
    undone = undone_loads(found.records)
    return [load for load in found.loads if load.record.counts and load.record.number not in undone]


def as_json(found: WeighedBags) -> dict[str, Any]:
    """Loads and total, kg, s."""
    total, book = found.book.all.mass, found.book
    trucks = {name: {'loads': tally.count, 'untrusted': tally.untrusted, 'total': tally.mass.value,
                     'total_interval': list(tally.mass.interval)} for name, tally in book.trucks.items()}
    from ..scale.table import undone_loads
    undone = undone_loads(found.records)
    return {'loads': [load.values(load.record.number in undone) for load in found.loads], 'total': total.value,
            'total_interval': list(total.interval), 'count': book.all.count, 'untrusted': book.all.untrusted,
            'trucks': trucks, 'overloads': list(found.overloads), 'held_s': dict(found.held)}


def show(found: WeighedBags, several: bool) -> None:
    """Table of the loads, totals by truck, and of all."""
    from ..report.sections import print_table, wide_console
    from ..report.text import wall_time
    from ..scale.table import count_text, mass_text, place_text, remark_of, undone_loads
    undone = undone_loads(found.records)
    rows = [[*([Path(load.bag).resolve().name] if several else []), f'{load.start:.1f}', f'{load.end:.1f}',
             wall_time(load.record.data['start_ns'], load.record.data['end_ns']), mass_text(load.record.mass),
             load.record.data['truck'], place_text(load.record.data['taken']), place_text(load.record.data['dropped']),
             remark_of(load.record, undone)] for load in found.loads]
    if rows:
        print_table(wide_console(), f'{found.machine}: loads', [
            *(['bag'] if several else []), 'from, s', 'to, s', 'by the clock', 'mass, kg', 'truck', 'taken', 'dropped',
            ''], rows)
    for name, tally in found.book.trucks.items() if len(found.book.trucks) > 1 else ():
        typer.echo(f'{name}: {count_text(tally)}, {mass_text(tally.mass)} kg')
    total = found.book.all
    typer.echo(f'{count_text(total)} in {found.seconds:.1f} s, total {mass_text(total.mass)} kg' if total.count
               else f'no load in {found.seconds:.1f} s')
    for why in dict.fromkeys(load.record.data.get('why', '') for load in found.loads):
        typer.echo(f'not trusted: {why}') if why else None
