# SPDX-License-Identifier: Apache-2.0
"""``mbse import``: a table, or a bag of messages of other packages, as a bag of this package's topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import BagError, SettingError
from .arguments import Sources, Valve, refuse_options

if TYPE_CHECKING:
    from ..bags.channel_samples import Sample
    from ..bags.table import ImportedTable


def import_(
        table: Annotated[Path, typer.Argument(help='CSV file with a heading; or, with --machine, a bag.')],
        output: Annotated[Path, typer.Option('-o', '--output', help='Folder of the bag to write.')],
        map_: Annotated[Path | None, typer.Option(
            '--map', help='Of a table: YAML that says which column is which channel.')] = None,
        machine: Annotated[str | None, typer.Option(
            help='Of a bag: name of a file in config/machines, or a path to a .yaml file.')] = None,
        sources: Sources = None,
        valve: Valve = None,
        namespace: Annotated[str | None, typer.Option(
            help='Of a bag: namespace of its topics, where it has several.')] = None,
        storage: Annotated[str, typer.Option(help='mcap or sqlite3.')] = 'mcap') -> None:
    """Turn a table, or a bag of other topics, into a bag.

    Of measurements; of messages of other packages by a map (--sources). Its topics are those of this package.
    """
    if (map_ is None) == (machine is None):
        raise SettingError('--map', map_ and str(map_), '--map for a table, or --machine (and --sources) for a bag')
    if map_ is not None:
        refuse_options('a bag, with --machine', {'sources': sources, 'valve': valve, 'namespace': namespace})
        _import_table(table, map_, output, storage)
    else:
        _import_bag(table, str(machine), valve, sources, namespace, output, storage)


def _import_table(table: Path, map_file: Path, output: Path, storage: str) -> None:
    """Import, and say what came in and what is missing."""
    from ..bags.table import import_table
    found: ImportedTable = import_table(table, map_file, output, storage=storage)
    typer.echo(f'wrote {output}: {found.rows} rows over {(found.last_ns - found.first_ns) * 1e-9:.1f} s of '
               + ', '.join(found.channels))
    for line in found.warnings:
        typer.echo(f'warning: {line}', err=True)
    for channel, count in found.missing.items():
        cells = 'cell' if count == 1 else 'cells'
        typer.echo(f'warning: {channel}: {count} {cells} of {found.rows} without a value', err=True)


def _import_bag(bag: Path, name: str, valve: str | None, sources: str | None, namespace: str | None, output: Path,
                storage: str) -> None:
    """The samples of a machine's channels, as the map finds them, in the order of the bag. Raises DescriptionError and
    BagError as ``sample_reader``, and BagError where nothing is found or written."""
    from ..api.load import loaded_sources
    from ..bags.writer import BagWriter
    from ..machine import load_machine
    from ..sources.reader import sample_reader
    machine = load_machine(name, valve)
    reader = sample_reader(bag, machine, namespace, loaded_sources(sources))
    samples = list(reader)
    if not samples:
        raise BagError(str(bag), '; '.join(['has no sample of ' + machine.name, *reader.warnings]))
    with BagWriter(output, storage, frame=machine.name) as writer:
        for stamp, values in _instants(samples):
            commands = {channel: value for channel, value in values.items() if channel.startswith('command/')}
            writer.write_samples(stamp, {channel: value for channel, value in values.items()
                                         if channel not in commands}, commands)
    for warning in reader.warnings:
        typer.echo(f'warning: {warning}', err=True)
    stamps = [sample.stamp_ns for sample in samples]
    typer.echo(f'wrote {output}: {len(samples)} samples over {(max(stamps) - min(stamps)) * 1e-9:.1f} s of '
               + ', '.join(dict.fromkeys(sample.channel for sample in samples)))


def _instants(samples: Iterable[Sample]) -> Iterator[tuple[int, dict[str, float]]]:
    """Stamps, ns, and values of samples with one stamp that follow each other, none of a channel twice."""
    for stamp, together in groupby(samples, key=lambda sample: sample.stamp_ns):
        left = list(together)
        while left:
            values, later = dict[str, float](), []
            for sample in left:
                if sample.channel in values:
                    later.append(sample)
                else:
                    values[sample.channel] = sample.value
            yield stamp, values
            left = later
