# SPDX-License-Identifier: Apache-2.0
"""``mbse convert`` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def convert(
        old: Annotated[Path, typer.Argument(help='Machine file of the old format mbse/machine/1.')],
        output: Annotated[Path, typer.Option('-o', '--output', help='New file to write, .yaml.')]) -> None:
    """Rewrite an old machine file in the present format.

    What did not change keeps its comments and layout.
    """
    from ..convert import convert_command
    convert_command(old, output)
