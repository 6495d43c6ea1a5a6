# SPDX-License-Identifier: Apache-2.0
"""``mbse observability``: what a choice of sensors sees of a state, and what would help."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

import mbse_ros as mbse

from .arguments import Json, Plots, hand_over, names_of


def observability(
        mechanism: Annotated[str, typer.Argument(
            help='Name of a file in config/machines or config/mechanisms, or a path.')],
        sensors: Annotated[str, typer.Option(help="Names of the file's sensors, separated by commas.")],
        trajectory: Annotated[str, typer.Option(
            help='free: from the start; rest: standing there; or the motion.csv of mbse simulate.')] = 'free',
        duration: Annotated[float, typer.Option(help='Length of the motion, s.')] = 4.0,
        window: Annotated[float, typer.Option(help='Time over which the sensors are looked at together, s.')] = 0.5,
        model: Annotated[str | None, typer.Option(
            help='What the filter knows: simple, exact or force. [all three]')] = None,
        json_: Json = None,
        output: Plots = None) -> None:
    """Say what the sensors of a mechanism can see.

    Rank and condition along the motion, directions that are blind, the sensor that would help most.
    """
    from ..report.files import check_file, check_folder
    chosen = names_of(sensors, 'sensors', 1)
    check_file(json_)
    check_folder(output)
    found = mbse.observability(mechanism, chosen, trajectory=trajectory, kind=model or 'all',
                               duration=duration, window=window)
    hand_over(found, json_, write=None if output is None else partial(found.report, output))
