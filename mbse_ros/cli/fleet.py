# SPDX-License-Identifier: Apache-2.0
"""``mbse fleet``: the loads of many bags, on all cores or on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import mbse_ros as mbse

from .arguments import (
    Attachment,
    Cluster,
    Every,
    Json,
    Namespace,
    OfMachine,
    ScaleOf,
    Set,
    Sources,
    Valve,
    hand_over,
)


def fleet(
        bags: Annotated[list[str], typer.Argument(help="Folders of bags, or patterns of them such as 'bags/*'.")],
        output: Annotated[Path, typer.Option(
            '-o', '--output', help='Folder of tables to write, x.parquet or x.csv; what is there already stays.')],
        machine: OfMachine = None,
        jobs: Annotated[int, typer.Option(min=0, help='Processes; 0: one for each core.')] = 0,
        cluster: Cluster = None,
        every: Every = 0.0,
        valve: Valve = None,
        attachment: Attachment = None,
        scale: ScaleOf = None,
        set_: Set = None,
        sources: Sources = None,
        namespace: Namespace = None,
        json_: Json = None) -> None:
    """Weigh the loads of many bags, on cores or a cluster.

    A table for each bag, as mbse loads makes it. What is done is not done again; what fails is written down and does
    not stop the others.
    """
    from ..report.files import check_file
    check_file(json_)
    found = mbse.fleet(bags, output, machine, jobs=jobs, cluster=cluster, every=every, valve=valve,
                       tuning=set_ or (), sources=sources, namespace=namespace, attachment=attachment, scale=scale)

    def write() -> None:
        for failure in found.failures:
            typer.echo(f'failed: {failure}', err=True)
    hand_over(found, json_, write=write)
    if found.failed:
        raise typer.Exit(1)
