# SPDX-License-Identifier: Apache-2.0
"""What a name or a path describes: a machine or a mechanism."""

from __future__ import annotations

import difflib
from pathlib import Path

from ..errors import DescriptionError
from .generate import CHAIN
from .load import known_machines, known_mechanisms, load_mechanism
from .model import MechanismDescription

SUFFIXES = ('.yaml', '.yml')


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
