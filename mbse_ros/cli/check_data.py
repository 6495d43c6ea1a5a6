# SPDX-License-Identifier: Apache-2.0
"""``mbse check-data``: what is wrong with the data of a bag for a machine or a mechanism, and how to fix it."""

from __future__ import annotations

from typing import Annotated

import typer

import mbse_ros as mbse

from .arguments import (
    Json,
    Namespace,
    OfBag,
    OfMachine,
    OfSensors,
    Sources,
    Valve,
    hand_over,
    mechanism_of,
    names_of,
)


def check_data(
        bag: OfBag,
        machine: OfMachine = None,
        mechanism: Annotated[str | None, typer.Option(
            help='Samples of a mechanism instead: name of a file in config/mechanisms, or a path.')] = None,
        sensors: OfSensors = None,
        valve: Valve = None,
        json_: Json = None,
        sources: Sources = None,
        namespace: Namespace = None) -> None:
    """Say what is wrong with the data of a bag.

    And how to fix it: units, signs, swapped chambers, reversed positions, sensors that repeat a value. Exit status
    1 where something is wrong.
    """
    from ..report.files import check_file
    check_file(json_)
    names = names_of(sensors)
    checked = mbse.check_data(bag, machine, mechanism=mechanism_of(mechanism, names, 'vm'),
                              sensors=names or None, valve=valve, sources=sources, namespace=namespace)
    for note in checked.notes:
        typer.echo(f'note: {note}', err=True)
    hand_over(checked, json_)
    if checked.findings:
        raise typer.Exit(1)
