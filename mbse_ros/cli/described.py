# SPDX-License-Identifier: Apache-2.0
"""What a name or a path on the command line describes: a machine or a mechanism."""

from __future__ import annotations

import difflib
from pathlib import Path

from ..description.load import known_machines, known_mechanisms, load_mechanism
from ..description.model import MechanismDescription
from ..errors import DescriptionError

SUFFIXES = ('.yaml', '.yml')
CHAIN = 'n_four_bar'       # generated: n_four_bar:5


def describe(name: str) -> MechanismDescription:
    """What a name out of config/machines or config/mechanisms, n_four_bar:N, or a path describes.

    A machine has cylinders. Raises DescriptionError, for an unknown name with all that there are.
    """
    machines, mechanisms = known_machines(), known_mechanisms()
    if Path(name).suffix not in SUFFIXES and name.partition(':')[0] != CHAIN and name not in {**machines, **mechanisms}:
        close = difflib.get_close_matches(name, [*machines, *mechanisms], 1, 0.6)
        raise DescriptionError(name, 'name', name, 'a path to a .yaml file, one of the machines '
                               f'{", ".join(machines)}, or one of the mechanisms {", ".join(mechanisms)}, {CHAIN}:N'
                               + (f'; did you mean {close[0]}?' if close else ''))
    return load_mechanism(name)
