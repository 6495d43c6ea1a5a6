# SPDX-License-Identifier: Apache-2.0
"""``mbse check``: what was understood of a file, what follows from it, what is odd about it, a drawing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import mbse_ros as mbse

from .arguments import Coordinates, Set

COLUMNS = 80        # of a file or a pipe


def check(
        name: Annotated[str, typer.Argument(
            help='Name of a file in config/machines or config/mechanisms, n_four_bar:N, or a path.')],
        draw: Annotated[Path | None, typer.Option(
            '--draw', '-o', help='Draw the start into this PNG.')] = None,
        all_: Annotated[bool, typer.Option(
            '--all', '-a', help='Print all that was understood of a machine, number by number.')] = False,
        coordinates: Coordinates = None,
        set_: Set = None) -> None:
    """Validate a machine or a mechanism and explain it.

    With --set: say, too, where settings contradict the file.
    """
    from rich.text import Text

    from ..report.files import check_file
    from ..report.text import print_sections, wide_console
    check_file(draw, 'draw', ('.png',))
    found = mbse.check(name, coordinates=coordinates, tuning=set_ or ())
    console = wide_console() if all_ else wide_console(COLUMNS)
    if found.trouble is None:
        console.print(Text('ok', 'green'), *found.summary(), sep=': ', soft_wrap=True, markup=False, highlight=False)
    for warning in found.warnings:
        typer.echo(f'warning: {warning}', err=True)
    print_sections(console, found.sections if all_ else found.brief)
    if draw is not None:
        found.draw(draw)
        console.print(Text('drawn', 'green'), str(draw), sep=': ', soft_wrap=True, markup=False, highlight=False)
    if found.trouble is not None:
        raise found.trouble
