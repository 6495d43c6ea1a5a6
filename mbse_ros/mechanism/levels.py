# SPDX-License-Identifier: Apache-2.0
"""Hierarchy of a mechanism (Orsino, modular modelling, section 2): which constraint rows each level enforces."""

from __future__ import annotations

from ..description.basics import GROUND
from ..description.sections.load_coordinates import bodies_of
from .assembly import MechanismSystem


def level_rows(system: MechanismSystem) -> list[list[int]]:
    """Constraint rows by level, from the lowest: each row is in the first level that holds all its bodies.

    A level of modules enforces what lies inside one of them (the ground belongs to every module); the last level
    takes all that is left, drivers included. Without ``levels`` there is one.
    """
    left, found = list(range(len(system.owners))), []
    for level in system.description.levels:
        groups = [bodies_of(name, system.description.modules) for name in level.modules]
        taken = [row for row in left if _inside(system, row, groups)] if groups else list(left)
        left = [row for row in left if row not in taken]
        found.append(taken)
    if left:
        found.append(left)
    return [rows for rows in found if rows]


def joint_groups(system: MechanismSystem) -> dict[str, list[int]]:
    """Constraint rows by owner: joint, body, named coordinate or driver."""
    groups: dict[str, list[int]] = {}
    for row, owner in enumerate(system.owners):
        groups.setdefault(owner, []).append(row)
    return groups


def _inside(system: MechanismSystem, row: int, groups: list[set[str]]) -> bool:
    bodies = set(system.row_bodies[row]) - {GROUND}
    return bool(bodies) and any(bodies <= group for group in groups)
