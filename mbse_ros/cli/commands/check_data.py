# SPDX-License-Identifier: Apache-2.0
"""``mbse check-data`` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..arguments import Json, OfMachine, Sources, Valve, machine_name, sources_of


def check_data(
        bag: Annotated[Path, typer.Argument(help='Folder of a bag.')],
        machine: OfMachine = None,
        valve: Valve = None,
        json_: Json = None,
        sources: Sources = None,
        namespace: Annotated[str | None, typer.Option(
            help='Namespace of the topics, where the bag has several.')] = None) -> None:
    """Say what is wrong with the data of a bag.

    And how to fix it: units, signs, swapped chambers, reversed positions, sensors that repeat a value. Exit status
    1 where something is wrong.
    """
    from ..check_data import check_data as run
    if not run(bag, machine_name(machine, [bag], namespace), valve, namespace, json_, sources_of(sources)):
        raise typer.Exit(1)
