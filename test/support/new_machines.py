# SPDX-License-Identifier: Apache-2.0
"""Answers of invented machines, and those that a true machine would give to a tape measure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mbse_ros.description.load import load_mechanism
from mbse_ros.description.templates.examples import EXAMPLES

Pins = dict[str, dict[str, tuple[float, float]]]
EXCAVATOR = {'kind': 'excavator', **EXAMPLES['excavator'], 'load': '1 t', 'boom_cylinders': '2', 'pressures': 'all'}
CRANE = {'kind': 'loader_crane', **EXAMPLES['loader_crane'], 'load': '900 kg', 'pressure_sensors': '250 bar, gauge'}
TWO_PIECE = {'kind': 'two_piece_excavator', **EXAMPLES['two_piece_excavator'], 'boom_cylinders': '2', 'swing': '0.2 m'}
SINGLE = {'kind': 'single_cylinder', **EXAMPLES['single_cylinder'], 'load': '400 kg', 'positions': 'strokes',
          'hanging': '1.5 m'}
LOADER = {'kind': 'wheel_loader', **EXAMPLES['wheel_loader'], 'load': '4 t', 'lift_cylinders': '2'}
MACHINES = {item['name']: item for item in (EXCAVATOR, CRANE, TWO_PIECE, SINGLE, LOADER)}


def pins_of(name: str) -> Pins:
    """Pins x, z of the bodies of a machine of the package."""
    return {body.name: {pin: (place[0].value, place[2].value) for pin, place in body.points.items()}
            for body in load_mechanism(name).bodies.values()}


def along(line: tuple[tuple[float, float], tuple[float, float]], pin: tuple[float, float]) -> tuple[float, float]:
    """Place of a pin along a line of two pins, and to its left."""
    (x0, z0), (x1, z1) = line
    ux, uz = (x1 - x0) / math.dist(*line), (z1 - z0) / math.dist(*line)
    x, z = pin[0] - x0, pin[1] - z0
    return ux * x + uz * z, ux * z - uz * x


def measured(pins: Pins) -> dict[str, Any]:
    """The answers of an excavator with the pins of zx200, measured without an error; m."""
    upper, boom, arm, bucket, rocker, link = (pins[name] for name in (
        'upper', 'boom', 'arm', 'bucket', 'rocker', 'link'))
    foot, base = upper['boom_foot'], upper['boom_cylinder_base']
    before, above = along((arm['boom_pin'], arm['bucket_pin']), arm['rocker_pin'])
    d = math.dist
    return {
        'kind': 'excavator', 'name': 'copy', 'mass': '20 t', 'positions': 'strokes',
        'boom': d(boom['foot'], boom['arm_pin']),
        'boom_base': [base[0] - foot[0], base[1] - foot[1]], 'arm': d(arm['boom_pin'], arm['bucket_pin']),
        'boom_eye': [d(boom[end], boom['boom_cylinder_eye']) for end in ('foot', 'arm_pin')],
        'arm_base': [d(boom[end], boom['arm_cylinder_base']) for end in ('foot', 'arm_pin')],
        'arm_eye': [d(arm[end], arm['arm_cylinder_eye']) for end in ('boom_pin', 'bucket_cylinder_base')],
        'bucket': [d(bucket['arm_pin'], bucket['link_pin']), d(bucket['arm_pin'], bucket['teeth']),
                   d(bucket['link_pin'], bucket['teeth'])],
        'bucket_base': [d(arm[end], arm['bucket_cylinder_base']) for end in ('boom_pin', 'bucket_pin')],
        'rocker_pin': [d(arm['boom_pin'], arm['bucket_pin']) - before, above],
        'rocker': d(rocker['arm_pin'], rocker['eye']), 'link': d(link['eye'], link['bucket_pin']),
        **{f'{name}_cylinder': [item.bore.value, item.rod.value, item.closed_length.value,
                                item.closed_length.value + item.stroke.value]
           for name, item in load_mechanism('zx200').cylinders.items()}}


def with_answer(answers: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """With another answer; None: without it."""
    found = {**answers, key: value}
    return found if value is not None else {name: item for name, item in found.items() if name != key}
