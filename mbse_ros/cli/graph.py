# SPDX-License-Identifier: Apache-2.0
"""``mbse graph``: the factor graph of a mechanism as a picture, with what it is made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import SettingError, check_choice
from .arguments import Coordinates

if TYPE_CHECKING:
    from ..dynamics.model import Model
    from ..graph.graph import FactorGraph

STEP = 1e-3             # s, between the instants of a picture, which does not show it
INSTANTS = 3
TITLES = {'forward': 'forward dynamics', 'inverse': 'inverse dynamics', 'estimate': 'estimation'}


def graph(
        mechanism: Annotated[str, typer.Argument(
            help='Name of a file in config/mechanisms, n_four_bar:N, or a path.')],
        kind: Annotated[str, typer.Option(help='forward, inverse or estimate.')] = 'forward',
        form: Annotated[str, typer.Option(help='dependent or independent.')] = 'dependent',
        output: Annotated[Path | None, typer.Option('-o', '--output', help='Picture to write, .svg.')] = None,
        coordinates: Coordinates = None) -> None:
    """List and draw the factor graph of a mechanism.

    Variables and factors of its first instants, as in Blanco-Claraco et al., factor graphs, figures 2 to 4.
    """
    from ..dynamics.model import load_model
    from ..dynamics.singular import check_start
    from ..report.files import check_file
    check_choice('--kind', kind, TITLES)
    check_file(output, '--output', ('.svg',))
    model = load_model(mechanism, coordinates, backend='vm')
    check_start(model)
    drawn = graph_of(model, kind, form)
    if output is not None:
        from ..graph.draw import draw_graph
        output.parent.mkdir(parents=True, exist_ok=True)
        title = f'{model.description.name}: {TITLES[kind]}, {form} coordinates'
        output.write_text(draw_graph(drawn, title), encoding='utf-8')
        typer.echo(f'wrote {output}')
    for series in drawn.series.values():
        typer.echo(f'variable {series.name} of size {series.size}')
    for factors in drawn.factors:
        exact = 'exact' if (factors.sigma == 0).all() else f'sigma {factors.sigma[factors.sigma > 0].min():g}'
        typer.echo(f'factor {factors.label} on {", ".join(dict.fromkeys(factors.names))}: {factors.kind.rows} rows, '
                   f'{exact}')


def graph_of(model: Model, kind: str, form: str) -> FactorGraph:
    """The graph of a kind over the first instants; raises SettingError."""
    import numpy as np
    if kind == 'forward':
        from ..graph.forward import forward_graph
        return forward_graph(model, (INSTANTS - 1) * STEP, STEP, form=form).graph
    if kind == 'inverse':
        from ..graph.inverse import inverse_graph
        z = model.start.q[model.z]
        return inverse_graph(model, STEP * np.arange(INSTANTS), lambda t: z, form=form).graph
    return _estimate(model, form)


def _estimate(model: Model, form: str) -> FactorGraph:
    """With all sensors of the file."""
    import numpy as np

    from ..estimators.filters.parts.problem import problem
    from ..graph.estimate import EstimatedMotion, estimation_graph
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
