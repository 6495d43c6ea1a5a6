# SPDX-License-Identifier: Apache-2.0
"""``mbse check``: what was understood of a file, what follows from it, what is odd about it, a drawing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import mbse_ros as mbse

from .arguments import Coordinates, Set


def check(
        name: Annotated[str, typer.Argument(
            help='Name of a file in config/machines or config/mechanisms, n_four_bar:N, or a path.')],
        draw: Annotated[Path | None, typer.Option(
            '--draw', '-o', help='Draw the start into this PNG.')] = None,
        coordinates: Coordinates = None,
        set_: Set = None) -> None:
    """Validate a machine or a mechanism and explain it.

    With --set: say, too, where settings contradict the file.
    """
    from rich.text import Text

    from ..report.files import check_file
    from ..report.text import print_sections, wide_console
    check_file(draw, 'draw', ('.png',))
    found, console = mbse.check(name, coordinates=coordinates, tuning=set_ or ()), wide_console()
    print_sections(console, found.sections)
    for warning in found.warnings:
        typer.echo(f'warning: {warning}', err=True)
    if draw is not None:
        found.draw(draw)
        console.print(Text('drawn', 'green'), str(draw), sep=': ', soft_wrap=True, markup=False, highlight=False)
    if found.trouble is not None:
        raise found.trouble
    console.print(Text('ok', 'green'), *found.summary(), sep=': ', soft_wrap=True, markup=False, highlight=False)
