# SPDX-License-Identifier: Apache-2.0
"""``mbse check-data``: what is wrong with the data of a bag for a machine, and how to fix it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from ..machine import load_machine
from ..offline.checks.check_bag import Checked, check_bag
from ..report.files import check_file, write_json
from ..sources.map import SourceMap


def check_data(bag: Path, machine: str, valve: str | None, namespace: str | None, json_file: Path | None,
               sources: SourceMap | None = None) -> bool:
    """Check, write and print; whether nothing is wrong."""
    check_file(json_file)
    checked = check_bag(bag, load_machine(machine, valve), namespace, sources)
    for note in checked.notes:
        typer.echo(f'note: {note}', err=True)
    write_json(json_file, as_json(checked, machine, bag))
    typer.echo('\n'.join(lines(checked)))
    return not checked.findings


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
