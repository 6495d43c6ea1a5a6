# SPDX-License-Identifier: Apache-2.0
"""How likely the measurements of a graph are, all variables integrated out: to choose the size of a noise by."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .elimination import Packing
from .graph import FactorGraph
from .linearise import Linear, Lineariser


class Likelihood:
    """Logarithm of the likelihood of all constants of a graph of soft factors, linearised at x (size,), up to a number
    that depends on the number of rows alone.

    ``-|A dx + e|^2 / 2 - log det R - sum(log sigma)`` with the rows divided by their sigma, dx least squares, R of
    A = QR. A call takes how many times as large the sigmas of factors are, by their label: nothing is built anew.
    """

    def __init__(self, graph: FactorGraph, x: np.ndarray) -> None:
        self.graph, self.linear, self.packing = graph, Lineariser(graph)(x), Packing(graph)

    def __call__(self, scales: Mapping[str, float] | None = None) -> float:
        scales, packing = scales or {}, self.packing
        factors = [scales.get(item.factors.label, 1.0) for item in self.linear]
        linear = [Linear(item.factors, item.e / by, item.J / by) for item, by in zip(self.linear, factors)]
        net = packing.net(linear)
        values, dx = net.optimize(), np.empty(self.graph.size)
        for key, node in packing.nodes.items():
            dx[node.places] = values.at(key)
        found = 0.0
        for item, by in zip(linear, factors):
            rest = item.e + np.einsum('krw,kw->kr', item.J, dx[self.graph.places(item.factors)])
            found -= 0.5 * float(np.sum((rest / item.factors.sigma) ** 2))
            found -= float(np.sum(np.log(by * item.factors.sigma)))
        for i in range(len(packing.nodes)):
            conditional = net.at(i)
            noise = conditional.get_model()
            sigma = packing.scale * (1.0 if noise is None else noise.sigmas())
            found -= float(np.sum(np.log(np.abs(np.diag(conditional.R()) / sigma))))
        return found
