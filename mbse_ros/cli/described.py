# SPDX-License-Identifier: Apache-2.0
"""Which sensors of a machine the filters of a mechanism know."""

from __future__ import annotations

from collections.abc import Sequence

from ..description.model import MechanismDescription
from ..errors import SettingError


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
