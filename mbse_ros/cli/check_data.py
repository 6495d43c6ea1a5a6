# SPDX-License-Identifier: Apache-2.0
"""``mbse check-data``: what is wrong with the data of a bag for a machine, and how to fix it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .arguments import Json, Namespace, OfBag, OfMachine, Sources, Valve, machine_name, sources_of

if TYPE_CHECKING:
    from ..offline.checks.check_bag import Checked


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
    from ..machine import load_machine
    from ..offline.checks.check_bag import check_bag
    from ..report.files import check_file, write_json
    name, maps = machine_name(machine, [bag], namespace), sources_of(sources)
    check_file(json_)
    checked = check_bag(bag, load_machine(name, valve), namespace, maps)
    for note in checked.notes:
        typer.echo(f'note: {note}', err=True)
    write_json(json_, as_json(checked, name, bag))
    typer.echo('\n'.join(lines(checked)))
    if checked.findings:
        raise typer.Exit(1)


def lines(checked: Checked) -> list[str]:
    """Findings, what was not looked at, and the sum of it."""
    count, size = len(checked.findings), f'{checked.samples} samples, {checked.seconds:.1f} s'
    found = [finding.line for finding in checked.findings]
    found += [f'not checked: {reason}' for reason in checked.unchecked]
    return [*found, f'{count} finding{"s" * (count != 1)} in {size}' if count else f'nothing wrong is seen in {size}']


def as_json(checked: Checked, machine: str, bag: Path) -> dict[str, Any]:
    """The same."""
    return {'bag': str(bag), 'machine': machine, 'samples': checked.samples, 'seconds': checked.seconds,
            'findings': [{'kind': item.kind, 'channels': list(item.channels), 'seen': item.seen,
                          'remedy': item.remedy} for item in checked.findings],
            'unchecked': list(checked.unchecked), 'notes': list(checked.notes)}
