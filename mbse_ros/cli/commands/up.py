# SPDX-License-Identifier: Apache-2.0
"""``mbse up`` and its options."""

from __future__ import annotations

from typing import Annotated

import typer


def up(context: typer.Context,
       graph: Annotated[str, typer.Argument(help='machine, crane or linkage')],
       duration: Annotated[float | None, typer.Option(help='Stop after so many seconds.')] = None) -> None:
    """Start the nodes, as ros2 launch does.

    Arguments as there, e.g. mbse up machine machine:=zx200 payload:=800, mbse up linkage mechanism:=five_bar
    estimator:=UKF; docs/parameters.md has all.
    """
    from ..up import up_graph
    raise typer.Exit(up_graph(graph, context.args, duration))
