# SPDX-License-Identifier: Apache-2.0
"""``mbse check-data``: what is wrong with the data of a bag for a machine, and how to fix it."""

from __future__ import annotations

import typer

import mbse_ros as mbse

from .arguments import Json, Namespace, OfBag, OfMachine, Sources, Valve, called, hand_over


def check_data(
        bag: OfBag,
        machine: OfMachine = None,
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
    checked = called(mbse.check_data, bag, machine, valve=valve, sources=sources, namespace=namespace)
    for note in checked.notes:
        typer.echo(f'note: {note}', err=True)
    hand_over(checked, json_)
    if checked.findings:
        raise typer.Exit(1)
