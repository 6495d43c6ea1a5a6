# SPDX-License-Identifier: Apache-2.0
"""``mbse convert``."""

from __future__ import annotations

from pathlib import Path

import typer

from ..description.convert import convert_text
from ..description.edit import for_folder
from ..description.load import parse_mechanism
from ..errors import DescriptionError
from ..machine import Machine
from ..report.files import check_file
from ..resources import regular


def convert_command(old: Path, output: Path) -> None:
    """Rewrite a file of the old format; what comes out must be a machine, or nothing is written.

    Raises DescriptionError, for a file that was wrong already with the key in the present format.
    """
    check_file(output, '--output', ('.yaml', '.yml'))
    if output.exists():
        raise DescriptionError(str(output), '', 'a file that exists', 'the name of a new file')
    try:
        text = convert_text(regular(old).read_text(encoding='utf-8'), str(old))
    except (OSError, UnicodeDecodeError) as error:
        raise DescriptionError(str(old), '', str(error), 'a readable text file in UTF-8') from error
    machine = Machine(parse_mechanism(text, str(old)))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(for_folder(text, old, output), encoding='utf-8')
    typer.echo(f'wrote {output}: machine {machine.name}; mbse check {output} shows what was understood')
