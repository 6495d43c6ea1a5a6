# SPDX-License-Identifier: Apache-2.0
"""Lines of a mechanism's bodies at a position."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ...compiled import Kernel
from ...dynamics.model import Model


class Outline:
    """``at (q)``: points (k, d), m, of each body that has two or more, closed where there are more than two."""

    def __init__(self, model: Model) -> None:
        system = model.system
        bodies = model.description.bodies
        self._bodies = {name: [place for point in body.points if (place := f'{name}.{point}') in system.points]
                        for name, body in bodies.items()}
        self._places = [place for places in self._bodies.values() for place in places]
        self._parameters = np.asarray(model.parameters)
        self._kernel = Kernel(ca.Function('outline', [system.q, system.values.symbol], [
            ca.horzcat(*(system.points[place] for place in self._places))]), model.backend)

    def at(self, q: np.ndarray) -> dict[str, np.ndarray]:
        """Lines at coordinates (n,)."""
        points = dict(zip(self._places, self._kernel(q, self._parameters)[0].T))
        lines = {name: np.array([points[place] for place in places]) for name, places in self._bodies.items()
                 if len(places) > 1}
        return {name: np.vstack([line, line[:1]]) if len(line) > 2 else line for name, line in lines.items()}
