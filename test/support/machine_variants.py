# SPDX-License-Identifier: Apache-2.0
"""Machines of the package with a few keys of their files changed."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml
from linkage_mutations import REMOVED, copy

from mbse_ros.description.load import known_machines, parse_mechanism
from mbse_ros.machine import Machine

LOADER = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
DUMPER = getattr(yaml, 'CSafeDumper', yaml.SafeDumper)


def tree_of(name: str) -> dict[str, Any]:
    """The file of a machine of the package, to be changed."""
    return copy(_tree(name))


@cache
def _tree(name: str) -> dict[str, Any]:
    return yaml.load(known_machines()[name].read_text(encoding='utf-8'), Loader=LOADER)


def exact_sensors(name: str) -> dict[str, Any]:
    """Changes that state the errors of the machine's sensors, and its base's, to be none: nothing is assumed."""
    zero = {'pressure': {'offset': 0, 'gain': 1}, 'stroke': {'bias': 0}, 'encoder': {'bias': 0}}
    changes = {f'sensors/{sensor}': {**zero[item['kind']], **item} for sensor, item in tree_of(name)['sensors'].items()}
    return {**changes, 'base': {'roll': 0, 'pitch': 0}}


def variant(name: str, **changes: Any) -> Machine:
    """The machine with keys set or removed; '__' divides the levels of a key, as in
    ``hydraulics__supplies__pump='20 MPa'``."""
    return changed(name, {key.replace('__', '/'): value for key, value in changes.items()})


def changed(name: str, changes: dict[str, Any]) -> Machine:
    """The same with '/' between the levels."""
    tree = tree_of(name)
    for path, value in changes.items():
        *way, last = path.split('/')
        place = tree
        for key in way:
            place = place.setdefault(key, {})
        if value is REMOVED:
            del place[last]
        else:
            place[last] = value
    return Machine(parse_mechanism(yaml.dump(tree, Dumper=DUMPER, sort_keys=False), f'{name}.yaml'))


def laid_over(base, change):
    """Dictionaries are merged, everything else is replaced."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    return {**base, **{key: laid_over(base.get(key), item) for key, item in change.items()}}
