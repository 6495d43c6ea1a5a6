# SPDX-License-Identifier: Apache-2.0
"""A calibration in words: poses as the sensors show them, the grade, how well its machine weighs over the work area."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...calibration.grade import Grade
from ...calibration.held_out import HeldOut
from ...calibration.identifiability import LEARNT
from ...description.coordinate_units import unit_and_scale
from ...filters.observability.mass_map import MassMap
from ...machine import Machine
from ...machine.channels import Channel
from ...report.data import Table
from ...report.text import number


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


def force_words(machine: Machine) -> tuple[str, str, str]:
    """The unit of missing forces, where they are missing ('pistons', 'joints'), and one of what makes them."""
    unit, drives = machine.actuators.force_unit, machine.description.drives
    if not drives:
        return unit, 'pistons', 'cylinder'
    return (unit, 'actuators', 'actuator') if machine.cylinders else (unit, 'joints', 'drive')


def grade_line(grade: Grade, blocks: int) -> str:
    """Colour, what it rests on, and what keeps it from green; ``blocks``: how many were left out."""
    words = []
    if math.isfinite(grade.half_width):
        words.append(f'a mass to +- {number(grade.half_width, 2)} kg (95 %) in the middle of the work area, '
                     f'{grade.share:.2%} of full scale')
    if blocks:
        words.append(f'{grade.inside:.0%} of the forces of {blocks} blocks left out are within their 95 % intervals')
    return f'{grade.color}: ' + '; '.join([*words, *(f'why: {item}' for item in grade.reasons)])


def map_line(machine: Machine, found: MassMap) -> str:
    """The best and the worst pose, as the sensors show them."""
    poses = [f'{word} +- {number(found.half_width[k], 2)} kg at {pose_words(machine, found.z[k], found.pistons[k])} '
             f'(reach {found.reach[k]:.1f} m, height {found.height[k]:.1f} m)'
             for word, k in (('best', found.best), ('worst', found.worst))]
    return f'over the work area: {"; ".join(poses)}'


def map_values(machine: Machine, found: MassMap) -> dict[str, Any]:
    """Poses of the work area, SI; a half-width of None where the mass does not show."""
    rows = [{'half_width': half, 'reach': reach, 'height': height, 'measured': {
        name: value for name, (value, _) in readings(machine, z, pistons).items()}}
        for half, reach, height, z, pistons in zip(found.half_width.tolist(), found.reach.tolist(),
                                                   found.height.tolist(), found.z, found.pistons)]
    return {'middle': found.middle, 'best': rows[found.best], 'worst': rows[found.worst], 'poses': rows}


def blocks_table(blocks: Sequence[HeldOut], unit: str) -> Table:
    """Each block that was left out; ``unit`` of the forces."""
    rows = []
    for item in blocks:
        start = min(one.begin for one in blocks if one.log == item.log)
        rows.append([f'{item.log}, {item.begin - start:.0f} to {item.end - start:.0f} s', str(item.count),
                     number(item.missing), number(item.stated), f'{item.inside:.0%}', number(item.mass_error),
                     number(item.mass_stddev)])
    return Table('each block of poses by the numbers of all other motion', [
        'block', 'forces', f'missing, {unit}', f'stated, {unit}', 'inside', 'mass off by, kg', 'stated, kg'], rows)


Deviations = Sequence[tuple[str, float, float]]     # key of a number, its standard deviation before and after, SI


def determined(deviations: Deviations) -> Table:
    """What a procedure teaches of the numbers."""
    rows = [[key, number(before), number(after)] for key, before, after in deviations if after <= LEARNT * before]
    return Table('standard deviations, as in the file and as after the procedure, SI', ['number', 'before', 'after'],
                 rows)


def undetermined(deviations: Deviations) -> list[str]:
    """Of which numbers it teaches nothing, a line, or none."""
    left = [key for key, before, after in deviations if after > LEARNT * before]
    return [f'not determined by this procedure, {len(left)} of {len(deviations)}: ' + ', '.join(left)] if left else []
