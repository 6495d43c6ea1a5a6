# SPDX-License-Identifier: Apache-2.0
"""``mbse check``."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from ..machine import load_machine
from ..mechanism.description.explain import explain


def check_machine(name: str) -> None:
    """Print the tables of a machine file; building its model and solving its start position are part of the check."""
    machine = load_machine(name)
    console = Console()
    for section in explain(machine.description):
        table = Table(title=section.title, title_justify='left', show_header=False, box=None, padding=(0, 2))
        for row in section.rows:
            table.add_row(row.name, row.value, row.note)
        console.print(table)
        console.print()
    low, high = machine.stroke[:, 0], machine.stroke[:, 1]
    for share in (0.0, 0.5, 1.0):
        machine.outline(low + share * (high - low))
    console.print(f'[green]ok[/green]: {machine.description.file}; its cylinders reach their whole stroke')
