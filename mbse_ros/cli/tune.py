# SPDX-License-Identifier: Apache-2.0
"""``mbse tune``: process noises of a filter by maximum likelihood of its innovations on logs."""

from __future__ import annotations

from typing import Annotated

import typer

import mbse_ros as mbse

from .arguments import Backend, Json, Namespace, Sources, check_sensors, hand_over, names_of


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
        sources_: Sources = None,
        namespace: Namespace = None,
        backend: Backend = 'auto') -> None:
    """Find process noises of a filter by maximum likelihood.

    Shows NIS and whiteness of the innovations before and after. One search, in one process: its steps follow each
    other.
    """
    from ..api.tune import mechanism_of_logs
    from ..description.load import load_mechanism
    from ..report.files import check_file
    check_file(json_)
    chosen = names_of(sensors, 'sensors', 1)
    check_sensors(load_mechanism(str(mechanism_of_logs(sources, mechanism))), chosen)
    hand_over(mbse.tune(sources, estimator=estimator, sensors=chosen, mechanism=mechanism, seeds=seeds,
                        duration=duration, skip=skip, dt=dt, sources=sources_, namespace=namespace,
                        backend=backend), json_)
