# SPDX-License-Identifier: Apache-2.0
"""The factor graph of a mechanism: what it is made of, and as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..dynamics.model import Model, load_model
from ..errors import SettingError, check_choice
from ..report.result import Answer
from ..resources import write_whole
from .checked import checked

if TYPE_CHECKING:
    from ..graph.graph import FactorGraph

STEP = 1e-3             # s, between the instants of a picture, which does not show it
INSTANTS = 3
TITLES = {'forward': 'forward dynamics', 'inverse': 'inverse dynamics', 'estimate': 'estimation'}


@dataclass(frozen=True)
class MechanismGraph(Answer):
    """The graph ``found`` over the first instants of a motion."""

    title: str
    found: FactorGraph

    def summary(self) -> list[str]:
        """Its variables, then its factors."""
        lines = [f'variable {series.name} of size {series.size}' for series in self.found.series.values()]
        for factors in self.found.factors:
            exact = 'exact' if (factors.sigma == 0).all() else f'sigma {factors.sigma[factors.sigma > 0].min():g}'
            lines.append(f'factor {factors.label} on {", ".join(dict.fromkeys(factors.names))}: {factors.kind.rows} '
                         f'rows, {exact}')
        return lines

    def write(self, path: Path) -> None:
        """As a picture, .svg. Raises OSError."""
        from ..graph.draw import draw_graph  # here, as it is seldom needed
        write_whole(path, draw_graph(self.found, self.title))


@checked
def mechanism_graph(mechanism: str, kind: str = 'forward', form: str = 'dependent', coordinates: str | None = None
                    ) -> MechanismGraph:
    """The graph of a kind of TITLES, with 'dependent' or 'independent' coordinates. Raises SettingError,
    DescriptionError."""
    from ..dynamics.singular import check_start  # here, as it takes its time to import
    check_choice('kind', kind, TITLES)
    model = load_model(mechanism, coordinates, backend='vm')
    check_start(model)
    return MechanismGraph(f'{model.description.name}: {TITLES[kind]}, {form} coordinates', graph_of(model, kind, form))


def graph_of(model: Model, kind: str, form: str) -> FactorGraph:
    """The graph of a kind over the first instants; raises SettingError."""
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
    from ..filters.parts.problem import problem
    from ..graph.estimate import EstimatedMotion, estimation_graph
    if form != 'dependent':
        raise SettingError('form', form, 'dependent: the graph of an estimate has all coordinates')
    sensors = tuple(name for name, sensor in model.description.sensors.items() if sensor.stddev > 0)
    if not sensors:
        raise SettingError('kind', 'estimate', "a mechanism with sensors that have a 'stddev'")
    start, none = model.start, np.zeros((INSTANTS, len(model.names)))
    guess = EstimatedMotion(STEP * np.arange(INSTANTS), none + start.q, none + start.qd, none,
                            np.zeros((INSTANTS, model.degrees_of_freedom)))
    channels = len(problem(model, sensors).channels)
    return estimation_graph(model, sensors, np.zeros((INSTANTS, channels)), guess).graph
