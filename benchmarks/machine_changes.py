# SPDX-License-Identifier: Apache-2.0
"""Machines of the package with other deviations of their numbers, and with sensors of another noise."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from mbse_ros.description.load import known_machines, parse_mechanism
from mbse_ros.machine import Machine
from mbse_ros.machine.find_machine import with_valves

NUMBERS = 'file', 'exact', 'wide'
"""Deviations: of the file; none but the load's centre; of a machine of which little is known (``_wide``)."""
EXACT = {'pressure': {'offset': 0, 'gain': 1}, **dict.fromkeys(('stroke', 'encoder', 'inclination'), {'bias': 0})}


@cache
def changed_machine(name: str, valve: str | None = None, numbers: str = 'file', noise: float = 1.0) -> Machine:
    """A machine of the package with a kind of valve (None: the file's), deviations ``NUMBERS`` and sensors whose
    noise is ``noise`` times the file's."""
    tree = yaml.safe_load(known_machines()[name].read_text(encoding='utf-8'))
    for sensor in tree['sensors'].values():
        number, unit = str(sensor['stddev']).split(' ', 1)
        sensor['stddev'] = f'{noise * float(number):.12g} {unit}'
    if numbers == 'exact':
        _certain({key: part for key, part in tree.items() if key not in ('sensors', 'payload')})
        tree['sensors'] = {key: {**EXACT[item['kind']], **item} for key, item in tree['sensors'].items()}
        tree['base'] = {'roll': 0, 'pitch': 0}
    if numbers == 'wide':
        _wide(tree)
    description = parse_mechanism(yaml.safe_dump(tree, sort_keys=False), f'{name}.yaml')
    return Machine(description if valve is None else with_valves(description, valve))


def _certain(part: Any) -> None:
    """Without deviations."""
    for item in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        if isinstance(item, dict):
            item.pop('stddev', None)
        _certain(item)


def _wide(tree: dict) -> None:
    """Friction 10 %, masses 1 %, centres of mass 1 cm, pins 2 mm, oil 10 %, offsets 50 kPa, gains 0.5 %, inclination
    1 deg, supplies 5 %."""
    for body in tree['bodies'].values():
        if body.get('mass'):
            body['mass'] = {'stddev': '1 %', **_as_dict(body['mass'])}
            body['center_of_mass'] = _spread(body['center_of_mass'], '10 mm')
        body['points'] = {key: _spread(point, '2 mm') for key, point in body.get('points', {}).items()}
    for cylinder in tree['cylinders'].values():
        cylinder['friction']['scale'] = {'value': 1, 'stddev': '10 %'}
    oil = tree['hydraulics']
    oil['oil_bulk_modulus'] = {**_as_dict(oil['oil_bulk_modulus']), 'stddev': '10 %'}
    oil['supplies'] = {key: {**_as_dict(supply), 'stddev': '5 %'} for key, supply in oil['supplies'].items()}
    for sensor in tree['sensors'].values():
        if sensor['kind'] == 'pressure':
            sensor.update(offset={'value': '0 Pa', 'stddev': '50 kPa'}, gain={'value': 1, 'stddev': '0.5 %'})
    tree['base'] = {axis: {'value': '0 deg', 'stddev': '1 deg'} for axis in ('roll', 'pitch')}


def _as_dict(number: Any) -> dict:
    return dict(number) if isinstance(number, dict) else {'value': number}


def _spread(point: Any, stddev: str) -> Any:
    """A point of a body in the plane of the machine; points at the body's origin are where the body is."""
    values = point['value'] if isinstance(point, dict) else point
    if not isinstance(values, list) or all(float(str(v).split()[0]) == 0 for v in values):
        return point
    return {'value': values, 'stddev': [stddev, '0 m', stddev] if len(values) == 3 else [stddev, stddev]}
