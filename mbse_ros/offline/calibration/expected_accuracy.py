# SPDX-License-Identifier: Apache-2.0
"""In words and numbers: how good a calibration is, and how well its machine weighs over the work area."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...calibration.grade import Grade
from ...calibration.held_out import HeldOut
from ...filters.observability.mass_map import MassMap
from ...machine import Machine
from ...report.data import Table
from ...report.text import number
from .readings import pose_words, readings


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


def blocks_table(blocks: Sequence[HeldOut]) -> Table:
    """Each block that was left out."""
    rows = []
    for item in blocks:
        start = min(one.begin for one in blocks if one.log == item.log)
        rows.append([f'{item.log}, {item.begin - start:.0f} to {item.end - start:.0f} s', str(item.count),
                     number(item.missing), number(item.stated), f'{item.inside:.0%}', number(item.mass_error),
                     number(item.mass_stddev)])
    return Table('each block of poses by the numbers of all other motion', [
        'block', 'forces', 'missing, N', 'stated, N', 'inside', 'mass off by, kg', 'stated, kg'], rows)
