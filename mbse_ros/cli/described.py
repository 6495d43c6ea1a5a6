# SPDX-License-Identifier: Apache-2.0
"""What a name or a path on the command line describes: a machine or a mechanism."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from ..description.load import known_machines, known_mechanisms, load_mechanism
from ..description.model import MechanismDescription
from ..errors import DescriptionError, SettingError

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


def check_sensors(description: MechanismDescription, chosen: Sequence[str]) -> str:
    """What to say of pressures and inclinations of the base, which filters of a mechanism do not know; '' of none.

    Raises SettingError where one of them was chosen by name.
    """
    others = [name for name in description.sensors if name not in description.mechanical_sensors]
    for name in chosen:
        if name in others:
            raise SettingError('--sensors', name, 'sensors of the motion, this one is of the hydraulics or the base; '
                               f'of {description.name}: {", ".join(description.mechanical_sensors)} (mbse estimate BAG '
                               f'--machine {description.name} uses pressures)')
    if chosen or not others:
        return ''
    return (f'{", ".join(others)} not used: filters of a mechanism know neither hydraulics nor base (mbse estimate BAG '
            f'--machine {description.name} does)')
