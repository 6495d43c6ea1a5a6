# SPDX-License-Identifier: Apache-2.0
"""``mbse check``: what was understood of a file, what follows from it, what is odd about it, a drawing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import DescriptionError
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

    from ..description.explain import explain
    from ..description.load import describe
    from ..doctor import described as about
    from ..dynamics.model import load_model
    from ..dynamics.singular import check_determined, check_start
    from ..estimators.observability.mass_accuracy import check_counts
    from ..machine import Machine
    from ..machine.equations import check_weighs, why_unweighed
    from ..machine.reach import reach_of
    from ..report.files import check_file
    from ..report.sections import print_sections, wide_console
    check_file(draw, '--draw', ('.png',))
    description = describe(name)
    machine = Machine(description) if description.cylinders else None
    model = machine.model if machine is not None and coordinates in (None, description.coordinate_type) else (
        load_model(description, coordinates))
    check_start(model)
    check_determined(model)
    sections = [*explain(description), about.equation_section(model, coordinates or description.coordinate_type),
                about.start_section(model)]
    odd = list(about.warnings(model))
    if set_ and machine is not None:
        odd += about.contradictions(machine, set_)
    elif set_:
        about.try_filter(model, set_)
    if machine is not None:
        reach = reach_of(machine)
        odd += about.reach_warnings(machine, reach)
        sections += [about.machine_section(machine), about.channel_section(machine), *about.source_sections(machine),
                     about.reach_section(machine, reach), about.weighing_section(machine)]
    console = wide_console()
    print_sections(console, sections)
    for warning in odd:
        typer.echo(f'warning: {warning}', err=True)
    if draw is not None:
        from ..api.results.mechanism_picture import Picture  # here, as it takes its time to import
        from ..report.linkage_drawing import write_linkage
        draw.parent.mkdir(parents=True, exist_ok=True)
        write_linkage(Picture(model).at(model.start.q), draw)
        console.print(Text('drawn', 'green'), str(draw), sep=': ', soft_wrap=True, markup=False, highlight=False)
    end = 'all loops close at the start'
    if machine is not None:
        if machine.measured_volumes and machine.description.payload is not None:
            check_weighs(machine)
            try:
                check_counts(machine)
            except DescriptionError as error:
                typer.echo(f'warning: loads are not counted: {error}', err=True)
        unweighed = why_unweighed(machine)
        end += ', the cylinders reach over their strokes' + (f'; no mass: {unweighed}' if unweighed else '')
    console.print(Text('ok', 'green'), f'{description.file}: {end}', sep=': ', soft_wrap=True, markup=False,
                  highlight=False)
