# SPDX-License-Identifier: Apache-2.0
"""``mbse check`` of a mechanism: what was understood, what follows from it, what is odd about it, a drawing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import typer
from rich.text import Text

from ..dynamics.configurations import neighbours
from ..dynamics.model import Model, load_model
from ..dynamics.partition import alternatives, choose_independent, condition
from ..dynamics.redundancy import redundant_rows
from ..description.tables import Row, Section
from ..description.explain import explain
from ..report.files import check_file
from .mechanism_units import shown, unit_of
from ..report.sections import print_sections, wide_console

BADLY = 50.0           # condition of the independent coordinates from which others are proposed
FAR = 0.05             # change of the guess by the assembly, m or rad, that is worth telling
_LONGEST = 40          # coordinates of the start that are listed


def check_mechanism(name: str, draw: Path | None = None, coordinates: str | None = None) -> None:
    """Print the tables of a mechanism file and of its model; warnings go to stderr; draw the start where asked.

    Raises DescriptionError, SettingError and the errors of the assembly.
    """
    check_file(draw, '--draw', ('.png',))
    model = load_model(name, coordinates)
    console = wide_console()
    kind = coordinates or model.description.coordinate_type
    print_sections(console, [*explain(model.description), _equations(model, kind), _start(model)])
    for warning in warnings(model):
        typer.echo(f'warning: {warning}', err=True)
    if draw is not None:
        from ..report.linkage_drawing import write_linkage        # here, because plots take their time to import
        from .mechanism_picture import Picture
        draw.parent.mkdir(parents=True, exist_ok=True)
        write_linkage(Picture(model).at(model.start.q), draw)
        console.print(Text('drawn', 'green'), str(draw), sep=': ', soft_wrap=True, markup=False, highlight=False)
    console.print(Text('ok', 'green'), f'{model.description.file}: all loops close at the start', sep=': ',
                  soft_wrap=True, markup=False, highlight=False)


def _equations(model: Model, coordinates: str) -> Section:
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


def _start(model: Model) -> Section:
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
    for item in _redundant(model):
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
