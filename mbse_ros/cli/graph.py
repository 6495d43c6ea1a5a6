# SPDX-License-Identifier: Apache-2.0
"""``mbse graph``: the factor graph of a mechanism as a picture, with what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import typer

from ..dynamics.model import Model, load_model
from ..errors import SettingError
from ..graph.draw import draw_graph
from ..graph.forward import forward_graph
from ..graph.graph import FactorGraph
from ..graph.inverse import inverse_graph

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
        output.write_text(draw_graph(graph, f'{model.description.name}: {kind} dynamics, {form} coordinates'),
                          encoding='utf-8')
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


KINDS: dict[str, Callable[[Model, str], FactorGraph]] = {'forward': _forward, 'inverse': _inverse}
