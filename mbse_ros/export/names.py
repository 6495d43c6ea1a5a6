# SPDX-License-Identifier: Apache-2.0
"""Names, units and C macros of what an exported model takes and gives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..description.coordinate_units import input_unit, measured_unit, unit_of
from ..description.model import RATES
from ..dynamics.model import Model
from ..mechanism.sensors import SensorModel

COORDINATE_RATES = {**RATES, '1': '1/s'}
PARAMETERS = {'mass': 'kg', 'inertia': 'kg m^2', 'length': 'm', 'center_of_mass': 'm', 'points': 'm',
              'gravity': 'm/s^2'}


@dataclass(frozen=True)
class Item:
    """One number at a border: its ``name``, the ``macro`` of its place, its ``unit``."""

    name: str
    macro: str
    unit: str


@dataclass(frozen=True)
class Names:
    """Prefix of the C functions, and the items of each vector: all coordinates ``q``, the independent ones ``z``,
    inputs ``u``, sensors ``h``, parameters ``p``."""

    prefix: str
    q: tuple[Item, ...]
    z: tuple[Item, ...]
    u: tuple[Item, ...]
    h: tuple[Item, ...]
    p: tuple[Item, ...]

    @property
    def macro(self) -> str:
        """Prefix of the macros."""
        return self.prefix.upper()

    @property
    def groups(self) -> dict[str, tuple[Item, ...]]:
        """The vectors by what people call them."""
        return {'Coordinates q': self.q, 'Independent coordinates z': self.z, 'Inputs u': self.u, 'Sensors h': self.h,
                'Parameters p': self.p}


def export_names(model: Model, sensors: SensorModel) -> Names:
    """Names of a model's vectors."""
    prefix, description = _prefix(comment(model.description.name)), model.description
    q_units = [unit_of(description, name) or '1' for name in model.names]
    h_units = [measured_unit(description, name.partition('.')[0]) for name in sensors.channels]
    parameters = model.system.values.names
    return Names(
        prefix, _items(prefix, 'Q', model.names, q_units),
        _items(prefix, 'Z', model.independent, [q_units[i] for i in model.z]),
        _items(prefix, 'U', model.inputs, [input_unit(description, name) for name in model.inputs]),
        _items(prefix, 'H', sensors.channels, h_units),
        _items(prefix, 'P', parameters, [_parameter_unit(name) for name in parameters]))


def comment(text: str) -> str:
    """Text on one line that neither ends nor begins a C comment."""
    return ' '.join(text.split()).replace('*/', '* /').replace('/*', '/ *').replace('??', '? ?')


def _prefix(name: str) -> str:
    """The name as the beginning of a C identifier."""
    word = re.sub(r'\W', '_', name, flags=re.ASCII)
    if not word[:1].isalpha():
        word = f'm_{word}'
    return f'{word}_mechanism' if word in ('test_model', 'mbse') else word


def _items(prefix: str, group: str, names: Sequence[str], units: Sequence[str]) -> tuple[Item, ...]:
    taken: set[str] = set()
    items = []
    for name, unit in zip(names, units):
        word = base = f'{prefix}_{group}_' + re.sub(r'\W+', '_', name, flags=re.ASCII).strip('_')
        count = 1
        while word.upper() in taken:           # names that differ by a dot or in their case only
            count += 1
            word = f'{base}_{count}'
        taken.add(word.upper())
        items.append(Item(name, word.upper(), unit))
    return tuple(items)


def _parameter_unit(name: str) -> str:
    """Unit of a number by the end of its key; a parameter of the file is in the SI unit of its use."""
    parts = re.sub(r'\[\d+\]', '', name).split('.')
    return next((PARAMETERS[part] for part in reversed(parts) if part in PARAMETERS), 'SI')
