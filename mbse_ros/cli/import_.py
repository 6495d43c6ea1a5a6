# SPDX-License-Identifier: Apache-2.0
"""``mbse import``: a table, or a bag of messages of other packages, as a bag of this package's topics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import Sources, Valve, hand_over


def import_(
        table: Annotated[Path, typer.Argument(help='CSV file with a heading; or, with --machine, a bag.')],
        output: Annotated[Path, typer.Option('-o', '--output', help='Folder of the bag to write.')],
        map_: Annotated[Path | None, typer.Option(
            '--map', help='Of a table: YAML that says which column is which channel.')] = None,
        machine: Annotated[str | None, typer.Option(
            help='Of a bag: name of a file in config/machines, or a path to a .yaml file.')] = None,
        sources: Sources = None,
        valve: Valve = None,
        namespace: Annotated[str | None, typer.Option(
            help='Of a bag: namespace of its topics, where it has several.')] = None,
        storage: Annotated[str, typer.Option(help='mcap or sqlite3.')] = 'mcap') -> None:
    """Turn a table, or a bag of other topics, into a bag.

    Of measurements; of messages of other packages by a map (--sources). Its topics are those of this package.
    """
    from ..api.bags import import_log
    hand_over(import_log(table, output, map_, machine, valve=valve, sources=sources, namespace=namespace,
                         storage=storage), None, wrote=f'wrote {output}: ')
