# SPDX-License-Identifier: Apache-2.0
"""``mbse graph``: the factor graph of a mechanism as a picture, with what it is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import Coordinates, hand_over


def graph(
        mechanism: Annotated[str, typer.Argument(
            help='Name of a file in config/mechanisms, n_four_bar:N, or a path.')],
        kind: Annotated[str, typer.Option(help='forward, inverse or estimate.')] = 'forward',
        form: Annotated[str, typer.Option(help='dependent or independent.')] = 'dependent',
        output: Annotated[Path | None, typer.Option('-o', '--output', help='Picture to write, .svg.')] = None,
        coordinates: Coordinates = None) -> None:
    """List and draw the factor graph of a mechanism.

    Variables and factors of its first instants, as in Blanco-Claraco et al., factor graphs, figures 2 to 4.
    """
    from ..api.mechanism_graph import mechanism_graph
    from ..report.files import check_file
    check_file(output, 'output', ('.svg',))
    found = mechanism_graph(mechanism, kind, form, coordinates)
    if output is not None:
        found.write(output)
        typer.echo(f'wrote {output}')
    hand_over(found, None)
