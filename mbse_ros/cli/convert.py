# SPDX-License-Identifier: Apache-2.0
"""``mbse convert``: a machine file of an old format in the present one; what comes out must be a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import DescriptionError
from ..resources import write_whole


def convert(
        old: Annotated[Path, typer.Argument(help='Machine file of the old format mbse/machine/1.')],
        output: Annotated[Path, typer.Option('-o', '--output', help='New file to write, .yaml.')]) -> None:
    """Rewrite an old machine file in the present format.

    What did not change keeps its comments and layout.
    """
    from ..description.convert import convert_text
    from ..description.edit import for_folder
    from ..description.load import parse_mechanism
    from ..machine import Machine
    from ..report.files import check_file
    from ..resources import read_text
    check_file(output, 'output', ('.yaml', '.yml'))
    if output.exists():
        raise DescriptionError(str(output), '', 'a file that exists', 'the name of a new file')
    text = convert_text(read_text(old), str(old))
    machine = Machine(parse_mechanism(text, str(old)))
    write_whole(output, for_folder(text, old, output))
    typer.echo(f'wrote {output}: machine {machine.name}; mbse check {output} shows what was understood')
