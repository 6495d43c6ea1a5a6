# SPDX-License-Identifier: Apache-2.0
"""Coordinates, velocities and accelerations of a mechanism as series."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...description.coordinate_units import input_unit, measured_unit, unit_of
from ...description.model import MechanismDescription
from ...dynamics.model import Model
from .series import Series

WORDS = {'position': '', 'velocity': '_dot', 'acceleration': '_ddot'}
RATES = {'position': '', 'velocity': '/s', 'acceleration': '/s^2'}


def unit_of_rate(description: MechanismDescription, name: str, kind: str) -> str:
    """Unit of a coordinate or its rate, SI; '1' where it has none."""
    unit = unit_of(description, name)
    return f'{unit or "1"}{RATES[kind]}' if RATES[kind] else unit or '1'


def column_of(kind: str, name: str) -> str:
    """'theta', 'theta_dot' or 'theta_ddot', as in the tables of the command line."""
    return f'{name}{WORDS[kind]}'


def first_names(model: Model) -> list[str]:
    """All coordinates, the independent ones first, then those that the file names."""
    return list(dict.fromkeys([*model.independent, *(n for n in model.description.coordinates if n in model.names),
                               *model.names]))


def motion_series(model: Model, arrays: dict[str, np.ndarray], names: Sequence[str] = ()) -> list[Series]:
    """Series of ``arrays`` (k, n) of all coordinates by kind ('position', ...), of these or all ``names``; all kinds of
    one coordinate after each other."""
    return [Series(column_of(kind, name), unit_of_rate(model.description, name, kind), values[:, place])
            for name in (names or first_names(model)) for place in [model.names.index(name)]
            for kind, values in arrays.items()]


def channel_units(model: Model, channels: Sequence[str]) -> dict[str, str]:
    """Units of sensors' channels and of ``input/<name>``, SI."""
    found = {f'input/{name}': input_unit(model.description, name) for name in model.inputs}
    return {channel: found[channel] if channel in found else measured_unit(model.description, channel.partition('.')[0])
            for channel in channels}
