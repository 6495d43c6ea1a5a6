# SPDX-License-Identifier: Apache-2.0
"""``mbse import``."""

from __future__ import annotations

from pathlib import Path

import typer

from ..bags.table import import_table


def import_command(table: Path, map_file: Path, output: Path, storage: str) -> None:
    """Import, and say what came in and what is missing."""
    found = import_table(table, map_file, output, storage=storage)
    typer.echo(f'wrote {output}: {found.rows} rows over {(found.last_ns - found.first_ns) * 1e-9:.1f} s of '
               + ', '.join(found.channels))
    for channel, count in found.missing.items():
        cells = 'cell' if count == 1 else 'cells'
        typer.echo(f'warning: {channel}: {count} {cells} of {found.rows} without a value', err=True)
