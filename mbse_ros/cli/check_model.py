# SPDX-License-Identifier: Apache-2.0
"""What follows from a mechanism's file: counts of the equations of motion, the assembled start, what is odd."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..description.tables import Row, Section
from ..dynamics.configurations import neighbours
from ..dynamics.model import Model
from ..dynamics.partition import alternatives, choose_independent, condition
from ..dynamics.redundancy import redundant_rows
from .mechanism_units import shown, unit_of

BADLY = 50.0           # condition of the independent coordinates from which others are proposed
FAR = 0.05             # change of the guess by the assembly, m or rad, that is worth telling
_LONGEST = 40          # coordinates of the start that are listed


def equation_section(model: Model, coordinates: str) -> Section:
    """Counts of coordinates and constraints, and what was chosen."""
    count, g = len(model.names), model.degrees_of_freedom
    kind = coordinates.replace('_', '-') + ' coordinates'
    rows = [Row('coordinates', str(count), kind),
            Row('constraints', str(len(model.rows)),
                f'{len(model.active)} that count' if model.redundant else 'none redundant'),
            Row('degrees of freedom', str(g), 'moved by drivers alone' if g == 0 and model.system.driven else ''),
            Row('independent coordinates', ', '.join(model.independent) or 'none',
                f'condition {_condition(model):.3g} at the start (1 is best)' if g else '')]
    rows += [Row('inputs', ', '.join(model.inputs))] if model.inputs else []
    rows += [Row('redundant constraint', item.name, f'implied by {", ".join(item.depends_on)}' if item.depends_on
                 else 'always true') for item in _redundant(model)]
    return Section('equations of motion', tuple(rows))


def start_section(model: Model) -> Section:
    """The assembled start: named coordinates first."""
    start, d = model.start, model.description
    named = [name for name in model.names if name in d.coordinates]
    others = [name for name in model.names if name not in d.coordinates]
    listed = (named + others)[:_LONGEST]
    rows = [_value(model, name, start.q, start.qd) for name in listed]
    if len(listed) < len(model.names):
        rows.append(Row('...', f'{len(model.names) - len(listed)} more'))
    energy = model.energy(start.q, start.qd)
    rows.append(Row('energy', f'{energy.total:.7g} J', f'kinetic {energy.kinetic:.7g} J, potential '
                                                       f'{energy.potential:.7g} J'))
    return Section('assembled start', tuple(rows))


def _value(model: Model, name: str, q: np.ndarray, qd: np.ndarray) -> Row:
    i, unit = model.names.index(name), unit_of(model.description, name)
    moving = abs(qd[i]) > 1e-12
    return Row(name, shown(q[i], unit), f'moving at {qd[i]:.7g} {unit or 1}/s' if moving else '')


def warnings(model: Model) -> Iterable[str]:
    """What is odd about a model that can be built."""
    if not model.degrees_of_freedom and not model.system.driven:
        yield 'nothing can move: no degree of freedom is left, and there is no driver'
    for item in _redundant(model) if not model.description.cylinders else ():     # a machine's table has them
        yield (f'constraint {item}: the motion is determined, the reactions in the joints concerned are not')
    yield from _dead_point(model)
    yield from _guess(model)


def _dead_point(model: Model) -> Iterable[str]:
    """Independent coordinates that hardly determine the motion, and those that would do better."""
    if not model.degrees_of_freedom:
        return
    J = model.residual(model.start.q)[1][model.active]
    worst = _condition(model)
    if worst < BADLY:
        return
    best = choose_independent(J)
    better = [choice for choice in alternatives(J, model.z) if condition(J, choice) < worst / 2] or [best]
    texts = [f'{", ".join(model.names[i] for i in choice)} (condition {condition(J, choice):.3g})'
             for choice in better]
    yield (f'the start is near a dead point: the motion is hardly determined by {", ".join(model.independent)} '
           f'(condition {worst:.3g}); better here: {"; or ".join(texts)}')


def _guess(model: Model) -> Iterable[str]:
    """Coordinates that the assembly moved far, though none that the file gives asked for it."""
    moved = np.abs(model.start.q - model.system.start)
    given = model.description.initial.position
    far = [(size, name) for size, name in zip(moved, model.names) if size > FAR]
    if far and not any(name in given for _, name in far):
        size, name = max(far)
        yield (f'the guess of the start was moved to close the loops: {len(far)} of {len(model.names)} coordinates by '
               f'more than {FAR:g}, most {name} by {shown(size, unit_of(model.description, name))}; look at the '
               'drawing (--draw) whether it is the branch you mean')


def _condition(model: Model) -> float:
    return condition(model.residual(model.start.q)[1][model.active], model.z)


def _redundant(model: Model) -> list:
    if not model.redundant:
        return []
    samples = np.array([model.residual(q)[1] for q in neighbours(model.residual, model.start.q)])
    return redundant_rows(samples, model.rows)
