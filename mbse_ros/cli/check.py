# SPDX-License-Identifier: Apache-2.0
"""``mbse check``."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..errors import DescriptionError, PositionProblemError
from ..machine import Machine, load_machine
from ..mechanism.description.explain import explain


def check_machine(name: str) -> None:
    """Print the tables of a machine file; that it can be built and moved over its stroke is part of the check.

    Raises DescriptionError.
    """
    machine = load_machine(name)
    check_reach(machine)
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)      # rich's 80 columns would break the lines of a file or a pipe
    for section in explain(machine.description):
        table = Table(title=Text(section.title), title_justify='left', show_header=False, box=None, padding=(0, 2))
        for row in section.rows:
            table.add_row(Text(row.name), Text(row.value), Text(row.note))     # no markup in a file's words
        console.print(table)
        console.print()
    console.print(Text('ok', 'green'), f'{machine.description.file}: the cylinders reach their whole stroke', sep=': ',
                  soft_wrap=True, markup=False, highlight=False)


def check_reach(machine: Machine) -> None:
    """Solve the position problem over the stroke of each cylinder, the others at the middle of theirs.

    Raises DescriptionError.
    """
    middle = np.mean(machine.stroke, axis=1)
    for i, cylinder in enumerate(machine.cylinders):
        for position in np.linspace(*machine.stroke[i], 5):
            pistons = middle.copy()
            pistons[i] = position
            try:
                machine.outline(pistons)
            except PositionProblemError:
                raise DescriptionError(
                    machine.description.file, f'cylinders.{cylinder}', f'a piston at {position:.4g} m',
                    'closed_length, stroke and points with which the mechanism reaches it') from None
