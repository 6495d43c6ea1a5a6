# SPDX-License-Identifier: Apache-2.0
"""``mbse check``: what was understood of a file, what follows from it, what is odd about it, a drawing."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from ..description.explain import explain
from ..dynamics.model import Model, load_model
from ..machine import Machine
from ..report.files import check_file
from ..report.sections import print_sections, wide_console
from .check_machine import channel_section, machine_section, reach_section
from .check_model import equation_section, start_section, warnings
from .described import describe


def check_described(name: str, draw: Path | None = None, coordinates: str | None = None) -> None:
    """Print the tables of a file and of its model; warnings go to stderr; draw the start where asked.

    Of a machine, that its sensors determine its motion and its cylinders reach over their strokes is part of the check.
    Raises DescriptionError, SettingError and the errors of the assembly.
    """
    check_file(draw, '--draw', ('.png',))
    description = describe(name)
    machine = Machine(description) if description.cylinders else None
    same = machine is not None and coordinates in (None, description.coordinate_type)
    model = machine.model if same else load_model(description, coordinates)
    sections = [*explain(description), equation_section(model, coordinates or description.coordinate_type),
                start_section(model)]
    if machine is not None:
        sections += [machine_section(machine), channel_section(machine), reach_section(machine)]
    console = wide_console()
    print_sections(console, sections)
    for warning in warnings(model):
        typer.echo(f'warning: {warning}', err=True)
    if draw is not None:
        _draw(console, model, draw)
    end = 'all loops close at the start' + (', the cylinders reach over their strokes' if machine is not None else '')
    console.print(Text('ok', 'green'), f'{description.file}: {end}', sep=': ', soft_wrap=True, markup=False,
                  highlight=False)


def _draw(console: Console, model: Model, path: Path) -> None:
    from ..report.linkage_drawing import write_linkage        # here, because plots take their time to import
    from .mechanism_picture import Picture
    path.parent.mkdir(parents=True, exist_ok=True)
    write_linkage(Picture(model).at(model.start.q), path)
    console.print(Text('drawn', 'green'), str(path), sep=': ', soft_wrap=True, markup=False, highlight=False)
