# SPDX-License-Identifier: Apache-2.0
"""``mbse import``: a table, or a bag of messages of other packages, as a bag of this package's topics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import SettingError
from .arguments import Sources, Valve, refuse_options

if TYPE_CHECKING:
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


def _import_bag(bag: Path, machine: str, valve: str | None, sources: str | None, namespace: str | None, output: Path,
                storage: str) -> None:
    """The samples of a machine's channels, as the map finds them."""
    from ..api.load import loaded_sources
    from ..machine import load_machine
    from ..sources.import_bag import import_bag
    found = import_bag(bag, load_machine(machine, valve), output, loaded_sources(sources), namespace, storage)
    for warning in found.warnings:
        typer.echo(f'warning: {warning}', err=True)
    typer.echo(f'wrote {output}: {found.samples} samples over {found.seconds:.1f} s of ' + ', '.join(found.channels))
