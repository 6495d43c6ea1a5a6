# SPDX-License-Identifier: Apache-2.0
"""``mbse check`` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..arguments import Coordinates, Set


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
    from ..check import check_described
    check_described(name, draw, coordinates, set_ or [])
