# SPDX-License-Identifier: Apache-2.0
"""``mbse inverse``: forces that a motion takes, prescribed by drivers or by a table, and the joint reactions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import mbse_ros as mbse

from .arguments import Coordinates, hand_over


def inverse(
        mechanism: Annotated[str, typer.Argument(help='Name of a file in config/mechanisms, or a path.')],
        output: Annotated[Path, typer.Option('-o', '--output', help='Folder for table, summary and plot.')],
        motion: Annotated[Path | None, typer.Option(
            help='CSV table of the motion: t, and the independent coordinates, such as theta [deg].')] = None,
        duration: Annotated[float | None, typer.Option(
            help="Length of the motion, s. [10, or the table's]")] = None,
        dt: Annotated[float | None, typer.Option(
            help="Time between two instants, s. [0.005, or the table's times]")] = None,
        coordinates: Coordinates = None,
        json_: Annotated[Path | None, typer.Option('--json', help='Write the summary to this file too.')] = None,
) -> None:
    """Compute the forces that a motion needs.

    Its drivers prescribe the motion, or a table does.
    """
    from ..report.files import check_file, check_folder
    check_folder(output)
    check_file(json_)
    found = mbse.inverse_dynamics(mechanism, motion=motion, duration=duration, dt=dt, coordinates=coordinates)
    hand_over(found, json_, write=partial(found.report, output), wrote=f'wrote {output}: ')
