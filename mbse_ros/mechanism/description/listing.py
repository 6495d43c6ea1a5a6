# SPDX-License-Identifier: Apache-2.0
"""All quantities of a description by key path: what is uncertain, and by how much."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from .model import MachineDescription, Quantity

_COMPONENTS = {3: ('x', 'y', 'z'), 6: ('xx', 'yy', 'zz', 'xy', 'xz', 'yz')}
_KEYS = {'ground_points': 'ground.points'}


def quantities(machine: MachineDescription) -> dict[str, Quantity]:
    """Every quantity by its key path, such as 'bodies.boom.points.rod_eye.x' or 'cylinders.lift.friction.scale'."""
    return dict(_walk(machine, ''))


def uncertain(machine: MachineDescription) -> dict[str, Quantity]:
    """The quantities that have a standard deviation, by key path."""
    return {key: item for key, item in quantities(machine).items() if item.stddev > 0.0}


def _walk(part: object, key: str) -> Iterator[tuple[str, Quantity]]:
    if isinstance(part, Quantity):
        yield key, part
    for name, item in _parts(part, key):
        name = _KEYS.get(name, name)
        yield from _walk(item, f'{key}.{name}' if key else name)


def _parts(part: object, key: str) -> list[tuple[str, object]]:
    """Named children of a dataclass, dictionary or tuple; the angles of rpy are numbered."""
    if isinstance(part, Quantity):
        return []
    if is_dataclass(part):
        return [(item.name, getattr(part, item.name)) for item in fields(part)]
    if isinstance(part, dict):
        return list(part.items())
    if isinstance(part, tuple):
        components = part and all(isinstance(item, Quantity) for item in part) and not key.endswith('.rpy')
        return list(zip(_COMPONENTS[len(part)] if components else map(str, range(len(part))), part))
    return []
