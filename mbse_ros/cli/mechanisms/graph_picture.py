# SPDX-License-Identifier: Apache-2.0
"""``mbse graph``: the factor graph of a mechanism as a picture, with what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import typer

from ...dynamics.model import Model, load_model
from ...errors import SettingError
from ...estimators.filters.parts.problem import problem
from ...graph.draw import draw_graph
from ...graph.estimate import EstimatedMotion, estimation_graph
from ...graph.forward import forward_graph
from ...graph.graph import FactorGraph
from ...graph.inverse import inverse_graph

STEP = 1e-3             # s, between the instants of a picture, which does not show it
INSTANTS = 3


def graph_command(mechanism: str, kind: str, form: str, output: Path | None, coordinates: str | None) -> None:
    """Build, count and draw; raises SettingError for a kind that is not known."""
    if kind not in KINDS:
        raise SettingError('--kind', kind, 'one of ' + ', '.join(KINDS))
    if output is not None and (output.is_dir() or output.suffix != '.svg'):
        raise SettingError('--output', str(output), 'a file that ends in .svg')
    model = load_model(mechanism, coordinates, backend='vm')
    graph = KINDS[kind](model, form)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        title = f'{model.description.name}: {TITLES[kind]}, {form} coordinates'
        output.write_text(draw_graph(graph, title), encoding='utf-8')
        typer.echo(f'wrote {output}')
    for series in graph.series.values():
        typer.echo(f'variable {series.name} of size {series.size}')
    for factors in graph.factors:
        exact = 'exact' if (factors.sigma == 0).all() else f'sigma {factors.sigma[factors.sigma > 0].min():g}'
        typer.echo(f'factor {factors.label} on {", ".join(dict.fromkeys(factors.names))}: {factors.kind.rows} rows, '
                   f'{exact}')


def _forward(model: Model, form: str) -> FactorGraph:
    return forward_graph(model, (INSTANTS - 1) * STEP, STEP, form=form).graph


def _inverse(model: Model, form: str) -> FactorGraph:
    z = model.start.q[model.z]
    return inverse_graph(model, STEP * np.arange(INSTANTS), lambda t: z, form=form).graph


def _estimate(model: Model, form: str) -> FactorGraph:
    """With all sensors of the file."""
    if form != 'dependent':
        raise SettingError('--form', form, 'dependent: the graph of an estimate has all coordinates')
    sensors = tuple(name for name, sensor in model.description.sensors.items() if sensor.stddev > 0)
    if not sensors:
        raise SettingError('--kind', 'estimate', "a mechanism with sensors that have a 'stddev'")
    start, none = model.start, np.zeros((INSTANTS, len(model.names)))
    guess = EstimatedMotion(STEP * np.arange(INSTANTS), none + start.q, none + start.qd, none,
                            np.zeros((INSTANTS, model.degrees_of_freedom)))
    channels = len(problem(model, sensors).channels)
    return estimation_graph(model, sensors, np.zeros((INSTANTS, channels)), guess).graph


KINDS: dict[str, Callable[[Model, str], FactorGraph]] = {'forward': _forward, 'inverse': _inverse,
                                                         'estimate': _estimate}
TITLES = {'forward': 'forward dynamics', 'inverse': 'inverse dynamics', 'estimate': 'estimation'}
