# SPDX-License-Identifier: Apache-2.0
"""Poses of a machine as the sensors of its positions show them."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ...description.coordinate_units import unit_and_scale
from ...machine import Machine
from ...machine.channels import Channel


def position_channels(machine: Machine) -> list[Channel]:
    """Channels of positions that are coordinates or pistons."""
    return [channel for channel in machine.all_channels if channel.sensor.kind == 'encoder'
            and channel.sensor.coordinate in (*machine.coordinates, *machine.cylinders)]


def readings(machine: Machine, z: np.ndarray, pistons: np.ndarray, moved: Mapping[str, float] | None = None
             ) -> dict[str, tuple[float, float]]:
    """What the channels show, SI, where coordinates are at ``z`` (g,) and pistons at ``pistons`` (c,); and how far that
    goes to both sides where coordinates and pistons move by ``moved``."""
    found, places = {}, dict(zip(machine.cylinders, pistons)) | dict(zip(machine.coordinates, z))
    for channel in position_channels(machine):
        gain, offset, zero = channel.nominal
        value = gain * (places[channel.sensor.coordinate] - zero) + offset
        if channel.sensor.wraps:
            value = (value + math.pi) % (2 * math.pi) - math.pi
        around = (moved or {}).get(channel.sensor.coordinate, 0.0)
        found[channel.name] = float(value), abs(gain) * float(around)
    return found


def cell(reading: tuple[float, float], shown: tuple[str, float]) -> str:
    """A place and how far to move around it, in a unit by its scale."""
    (value, around), (unit, scale) = reading, shown
    decimals = 0 if unit == 'mm' else 1
    return f'{scale * value:.{decimals}f}' + (f' +- {scale * around:.{decimals}f}' if around else '')


def pose_words(machine: Machine, z: np.ndarray, pistons: np.ndarray) -> str:
    """A pose as the sensors of what cylinders move show it: 'position/boom 312 mm, ...'."""
    moved = {*machine.cylinders, *(machine.coordinates[k] for k in machine.actuated)}
    own = [channel for channel in position_channels(machine) if channel.sensor.coordinate in moved]
    found = readings(machine, z, pistons)
    shown = {channel.name: unit_and_scale(machine.description, channel.name) for channel in own}
    return ', '.join(f'{name} {cell(found[name], unit)} {unit[0]}' for name, unit in shown.items())
