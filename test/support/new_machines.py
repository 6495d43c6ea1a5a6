# SPDX-License-Identifier: Apache-2.0
"""Answers of invented machines, and those that a true machine would give to a tape measure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mbse_ros.description.load import load_mechanism

Pins = dict[str, dict[str, tuple[float, float]]]
EXCAVATOR = {
    'kind': 'excavator', 'name': 'mini8', 'mass': '8 t', 'load': '1 t', 'boom': '3.84 m',
    'boom_base': '0.315 m, -0.41 m', 'boom_eye': '1.65 m, 2.41 m',
    'boom_cylinder': '100 mm, 65 mm, 1.65 m, 2.075 m', 'boom_cylinders': '2',
    'arm': '1.965 m', 'arm_base': '2.45 m, 1.705 m', 'arm_eye': '0.595 m, 0.84 m',
    'arm_cylinder': '95 mm, 65 mm, 1.23 m, 2.24 m', 'bucket': '0.32 m, 1.03 m, 1.135 m',
    'bucket_base': '0.53 m, 1.755 m', 'rocker_pin': '0.295 m, 0.03 m', 'rocker': '0.395 m', 'link': '0.38 m',
    'bucket_cylinder': '85 mm, 55 mm, 1.125 m, 1.81 m', 'positions': 'angles, 0.1 deg', 'pressures': 'all'}
CRANE = {
    'kind': 'loader_crane', 'name': 'crane_9', 'mass': '1.1 t', 'load': '900 kg', 'boom': '2.70 m',
    'lift_base': '0.25 m, -1.05 m', 'lift_eye': '0.33 m, 2.42 m', 'lift_cylinder': '110 mm, 63 mm, 0.82 m, 1.34 m',
    'outer_boom': '2.60 m', 'tilt_base': '1.30 m, 1.46 m', 'tilt_eye': '0.32 m, 2.66 m',
    'tilt_cylinder': '90 mm, 50 mm, 1.20 m, 1.74 m', 'positions': 'strokes, 1 mm', 'pressure_sensors': '250 bar, gauge'}
TWO_PIECE = {
    'kind': 'two_piece_excavator', 'name': 'two_piece', 'mass': '9 t', 'boom': '1.9 m', 'boom_base': '0.30 m, -0.35 m',
    'boom_eye': '1.3 m, 0.75 m', 'boom_cylinder': '110 mm, 70 mm, 1.12 m, 1.70 m', 'boom_cylinders': '2',
    'upper_boom': '2.1 m', 'adjust_base': '1.0 m, 1.0 m', 'adjust_eye': '0.45 m, 1.75 m',
    'adjust_cylinder': '120 mm, 80 mm, 0.75 m, 1.20 m', 'arm': '1.85 m', 'arm_base': '1.15 m, 1.15 m',
    'arm_eye': '0.50 m, 0.70 m', 'arm_cylinder': '95 mm, 65 mm, 0.90 m, 1.50 m', 'bucket': '0.32 m, 1.03 m, 1.135 m',
    'bucket_base': '0.45 m, 1.72 m', 'rocker_pin': '0.30 m, 0.03 m', 'rocker': '0.40 m', 'link': '0.38 m',
    'bucket_cylinder': '80 mm, 55 mm, 1.10 m, 1.70 m', 'positions': 'inclinations', 'swing': '0.2 m'}
SINGLE = {
    'kind': 'single_cylinder', 'name': 'arm', 'mass': '300 kg', 'load': '400 kg', 'arm': '2 m',
    'lift_base': '0.3 m, -0.8 m', 'lift_eye': '0.7 m, 1.4 m', 'lift_cylinder': '80 mm, 45 mm, 0.75 m, 1.15 m',
    'positions': 'strokes', 'hanging': '1.5 m'}
LOADER = {
    'kind': 'wheel_loader', 'name': 'loader12', 'mass': '12 t', 'load': '4 t', 'boom': '2.6 m',
    'lift_base': '-0.25 m, -0.75 m', 'lift_eye': '1.35 m, 1.35 m', 'lift_cylinder': '110 mm, 60 mm, 1.11 m, 1.97 m',
    'lift_cylinders': '2', 'bucket': '0.45 m, 1.25 m, 1.30 m', 'tilt_base': '0.05 m, 0.45 m',
    'bellcrank_pin': '1.5 m, 1.15 m', 'bellcrank': '0.60 m, 0.65 m, 1.20 m', 'link': '1.20 m',
    'tilt_cylinder': '130 mm, 70 mm, 1.05 m, 1.60 m', 'positions': 'angles, 0.1 deg'}
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
