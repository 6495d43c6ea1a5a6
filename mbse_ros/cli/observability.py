# SPDX-License-Identifier: Apache-2.0
"""``mbse observability`` and its options."""

from __future__ import annotations

from typing import Annotated

import typer

from .arguments import Json, Plots


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
    from .mechanisms.sensor_choice import ObservabilityRequest, observability_command
    observability_command(ObservabilityRequest(mechanism, sensors, trajectory, duration, window, model), json_, output)
