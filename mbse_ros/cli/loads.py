# SPDX-License-Identifier: Apache-2.0
"""``mbse loads`` and its options: the loads in bags, counted and weighed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import SettingError
from .arguments import Json, Sources, Valve, refuse_options, sources_of

if TYPE_CHECKING:
    from ..offline.loads import WeighedBags, WeighedLoad

UNDONE = 'undone'
KNOWN = {'weighed': '', 'put_back': 'put back', 'carried': 'still carried'}


def loads(
        bags: Annotated[list[Path] | None, typer.Argument(
            help='Folders of bags of one machine, in their order.')] = None,
        machine: Annotated[str | None, typer.Option(
            help='Name of a file in config/machines, or a path to a .yaml file. [patu655_lift]')] = None,
        output: Annotated[Path | None, typer.Option(
            '-o', '--output', help='Table of the loads to write: .csv, .parquet, or .xml for the counts of '
                                   'ISO 15143-3.')] = None,
        json_: Json = None,
        records: Annotated[Path | None, typer.Option(
            help='Instead of bags: the records of a live scale, its SQLite file.')] = None,
        scale: Annotated[str | None, typer.Option(
            help="File of attachments and load chart. [the section `scale` of the machine's file]")] = None,
        attachment: Annotated[str | None, typer.Option(
            help='Attachment on the machine, by its name in that file. [none]')] = None,
        truck: Annotated[list[str] | None, typer.Option(
            help='Truck that a bag is for; repeat it, in the order of the bags.')] = None,
        words: Annotated[list[str] | None, typer.Option(
            '--set', help='Tuning, e.g. scale.least_load=200, scale.carry_back=true, payload.min_speed=0.02; '
                          'repeat it.')] = None,
        valve: Valve = None,
        sources: Sources = None,
        namespace: Annotated[str | None, typer.Option(
            help='Namespace of the topics, where the bags have several.')] = None,
        backend: Annotated[str, typer.Option(help='auto, c or vm.')] = 'auto') -> None:
    """Loads in bags: each with its mass, and the total.

    Taken, carried, dropped, as the scale of the live graph counts them; intervals of totals take as common what is
    wrong in all loads alike.
    """
    from ..machine import load_machine
    from ..offline.bag import parse_tuning
    from ..offline.loads import KINDS, recorded_loads, weigh_bags
    from ..report.files import check_file
    from ..scale.export import SUFFIXES
    from ..scale.scale_file import scale_of
    check_file(json_)
    check_file(output, '--output', SUFFIXES)
    if (records is None) == (not bags):
        raise SettingError('bags', [str(bag) for bag in bags or []], 'one bag or more, or --records')
    if records is not None:
        refuse_options('bags', {'machine': machine, 'scale': scale, 'attachment': attachment, 'truck': truck,
                                'set': words, 'valve': valve, 'sources': sources, 'namespace': namespace})
        hand_over(recorded_loads(records), output, json_)
        return
    if truck and len(truck) > len(bags):
        raise SettingError('--truck', truck[len(bags)], f'one for each of the {len(bags)} bags at most')
    described = load_machine(machine or 'patu655_lift', valve)
    found = weigh_bags(bags, described, parse_tuning(words or [], KINDS), scale_of(described, scale or ''),
                       attachment or '', truck or [], namespace, backend, sources_of(sources))
    for line in found.warnings:
        typer.echo(f'warning: {line}', err=True)
    for line in found.overloads:
        typer.echo(f'overload: {line}', err=True)
    hand_over(found, output, json_, len(bags) > 1)


def hand_over(found: WeighedBags, output: Path | None, json_file: Path | None, several: bool = False) -> None:
    """Write what was asked for, and print."""
    from ..report.files import write_json
    from ..scale.aemp import Equipment
    from ..scale.export import write_loads
    if output is not None:
        write_loads(found.records, output, Equipment(found.machine))
    write_json(json_file, as_json(found))
    show(found, several)


def as_json(found: WeighedBags) -> dict[str, Any]:
    """Loads and total, kg, s."""
    total = found.book.all.mass
    trucks = {name: {'loads': tally.count, 'total': tally.mass.value, 'total_interval': list(tally.mass.interval)}
              for name, tally in found.book.trucks.items()}
    undone = undone_loads(found)
    return {'loads': [_load(load, undone) for load in found.loads], 'total': total.value,
            'total_interval': list(total.interval), 'count': found.book.all.count, 'trucks': trucks,
            'overloads': list(found.overloads)}


def undone_loads(found: WeighedBags) -> set[int]:
    """Numbers of the loads that were undone."""
    return {record.data['load'] for record in found.records if record.kind == 'undo'}


def _load(load: WeighedLoad, undone: set[int]) -> dict[str, Any]:
    data, gone = load.record.data, load.record.number in undone
    return {'start_s': load.start, 'end_s': load.end, 'mass': data['mass'], 'interval': data['interval'],
            'truck': data['truck'], 'status': UNDONE if gone else data['status'],
            'counts': data['counts'] and not gone, 'bag': load.bag,
            'start_ns': data['start_ns'], 'end_ns': data['end_ns'], 'most': data['most'],
            'trusted': data['trusted'], 'taken': data['taken'],
            'dropped': data['dropped']}


def show(found: WeighedBags, several: bool) -> None:
    """Table of the loads, totals by truck, and of all."""
    from ..report.sections import print_table, wide_console
    undone = undone_loads(found)
    rows = [[*([Path(load.bag).resolve().name] if several else []), f'{load.start:.1f}', f'{load.end:.1f}',
             mass_text(load.record.mass.value, load.record.mass.interval), load.record.data['truck'],
             _place(load.record.data['taken']), _place(load.record.data['dropped']),
             _remark(load, undone)] for load in found.loads]
    if rows:
        print_table(wide_console(), f'{found.machine}: loads', [*(['bag'] if several else []), 'from, s', 'to, s',
                                                                     'mass, kg', 'truck', 'taken', 'dropped', ''], rows)
    for name, tally in found.book.trucks.items() if len(found.book.trucks) > 1 else ():
        typer.echo(f'{name}: {tally.count} loads, {mass_text(tally.mass.value, tally.mass.interval)} kg')
    total = found.book.all
    typer.echo(f'{total.count} loads in {found.seconds:.1f} s, total '
               f'{mass_text(total.mass.value, total.mass.interval)} kg' if total.count
               else f'no load in {found.seconds:.1f} s')


def _remark(load: WeighedLoad, undone: set[int]) -> str:
    """What is odd about a load."""
    data = load.record.data
    if load.record.number in undone:
        return UNDONE
    return ', '.join(filter(None, [KNOWN[data['status']], '' if data['trusted'] else 'not trusted']))


def mass_text(mass: float, interval: tuple[float, float]) -> str:
    """A mass and its interval, kg."""
    lower, upper = interval
    return f'{mass:.1f} ({lower:.1f} to {upper:.1f})'


def _place(place: dict[str, float] | None) -> str:
    """A place in words: its swing, or x, y, z."""
    if place is None:
        return ''
    if 'swing' in place:
        return f'{math.degrees(place["swing"]):.0f} deg'
    return ' '.join(f'{place[axis]:.1f}' for axis in 'xyz') + ' m'
