# SPDX-License-Identifier: Apache-2.0
"""``mbse graph`` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..arguments import Coordinates


def graph(
        mechanism: Annotated[str, typer.Argument(
            help='Name of a file in config/mechanisms, n_four_bar:N, or a path.')],
        kind: Annotated[str, typer.Option(help='forward or inverse.')] = 'forward',
        form: Annotated[str, typer.Option(help='dependent or independent.')] = 'dependent',
        output: Annotated[Path | None, typer.Option('-o', '--output', help='Picture to write, .svg.')] = None,
        coordinates: Coordinates = None) -> None:
    """List and draw the factor graph of a mechanism.

    Variables and factors of its first instants, as in Blanco-Claraco et al., factor graphs, figures 2 to 4.
    """
    from ..mechanisms.graph_picture import graph_command
    graph_command(mechanism, kind, form, output, coordinates)
