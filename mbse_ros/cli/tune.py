# SPDX-License-Identifier: Apache-2.0
"""``mbse tune`` and its options."""

from __future__ import annotations

from typing import Annotated

import typer

from .arguments import Json


def tune(
        sources: Annotated[list[str], typer.Argument(
            help='A mechanism, for simulated logs; or, with --mechanism, bags and CSV tables of its sensors.')],
        estimator: Annotated[str, typer.Option(help='Filter, by its name in Naya et al., review.')],
        sensors: Annotated[str, typer.Option(help="Names of the file's sensors, separated by commas.")],
        mechanism: Annotated[str | None, typer.Option(help='Mechanism that the logs are of.')] = None,
        seeds: Annotated[int, typer.Option(min=1, help='Simulated logs.')] = 1,
        duration: Annotated[float, typer.Option(help='Length of a simulated log, s.')] = 10.0,
        skip: Annotated[float, typer.Option(min=0, help='Start of each log that does not count, s.')] = 2.0,
        dt: Annotated[float | None, typer.Option(help="Step for recorded logs, s. [the samples']")] = None,
        json_: Json = None,
        backend: Annotated[str, typer.Option(help='auto, c or vm.')] = 'auto') -> None:
    """Find process noises of a filter by maximum likelihood.

    Shows NIS and whiteness of the innovations before and after. One search, in one process: its steps follow each
    other.
    """
    from .mechanisms.tune_filter import TuningRequest, tune_command
    tune_command(TuningRequest(sources, estimator, sensors, mechanism, seeds, duration, skip, dt), json_, backend)
