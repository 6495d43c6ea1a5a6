# SPDX-License-Identifier: Apache-2.0
"""``mbse check`` of a machine."""

from __future__ import annotations

import numpy as np
from rich.text import Text

from ..errors import DescriptionError, PositionProblemError
from ..machine import Machine, load_machine
from ..mechanism.description.explain import explain
from ..report.sections import print_sections, wide_console


def check_machine(name: str) -> None:
    """Print the tables of a machine file; that it can be built and moved over its stroke is part of the check.

    Raises DescriptionError.
    """
    machine = load_machine(name)
    check_reach(machine)
    console = wide_console()
    print_sections(console, explain(machine.description))
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
