# SPDX-License-Identifier: Apache-2.0
"""The quantities of a description by key path: which are uncertain, and the same machine with other values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace

from ...errors import DescriptionError
from .model import MachineDescription, Quantity

_COMPONENTS = {3: ('x', 'y', 'z'), 6: ('xx', 'yy', 'zz', 'xy', 'xz', 'yz')}
_KEYS = {'ground_points': 'ground.points'}


def quantities(machine: MachineDescription) -> dict[str, Quantity]:
    """All quantities by key path as in the file, such as 'bodies.boom.points.rod_eye.x' (a component after the point)."""
    found: dict[str, Quantity] = {}

    def keep(key: str, quantity: Quantity) -> Quantity:
        return found.setdefault(key, quantity)

    _rebuilt(machine, '', keep)
    return found


def uncertain(machine: MachineDescription) -> dict[str, Quantity]:
    """The quantities that have a standard deviation, by key path."""
    return {key: item for key, item in quantities(machine).items() if item.stddev > 0.0}


def with_values(machine: MachineDescription, values: Mapping[str, float]) -> MachineDescription:
    """The same machine with other values (SI) at some key paths; their standard deviations stay.

    Raises DescriptionError for an unknown key path. The values are not checked against each other.
    """
    known = quantities(machine)
    for key, value in values.items():
        if key not in known:
            raise DescriptionError(machine.file, key, value, 'the key path of a quantity')
    return _rebuilt(machine, '', lambda key, item: replace(item, value=float(values[key])) if key in values else item)


def _rebuilt(part: object, key: str, change: Callable[[str, Quantity], Quantity]) -> object:
    """A copy of the tree of dataclasses, dicts and tuples with `change` applied to every quantity."""
    if isinstance(part, Quantity):
        return change(key, part)
    if is_dataclass(part):
        return replace(part, **{item.name: _rebuilt(getattr(part, item.name), _joined(key, item.name), change)
                                for item in fields(part)})
    if isinstance(part, dict):
        return {name: _rebuilt(item, _joined(key, name), change) for name, item in part.items()}
    if isinstance(part, tuple):
        return tuple(_rebuilt(item, name, change) for item, name in zip(part, _names(part, key)))
    return part


def _names(part: tuple, key: str) -> list[str]:
    if part and all(isinstance(item, Quantity) for item in part):
        return [f'{key}.{name}' for name in _COMPONENTS[len(part)]]
    return [f'{key}[{index}]' for index in range(len(part))]


def _joined(key: str, name: str) -> str:
    name = _KEYS.get(name, name)
    return f'{key}.{name}' if key else name
