# SPDX-License-Identifier: Apache-2.0
"""``Likelihood``: how likely the measurements are with other noises than the graph's, and how uncertain a solution is
in truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..factors.dynamics_factors import prior
from ..graph import ALWAYS, FactorGraph
from ..solvers.elimination import Packing
from ..solvers.linearise import Linear, Lineariser


class Likelihood:
    """Logarithm of the likelihood of all constants of a graph of soft factors, linearised at x (size,), up to a number
    that depends on the number of rows alone.

    ``-|A dx + e|^2 / 2 - log det R - sum(log sigma)`` with the rows divided by their sigma, dx least squares, R of
    A = QR. A call takes how many times as large the sigmas of factors are, by their label: nothing is built again.
    """

    def __init__(self, graph: FactorGraph, x: np.ndarray) -> None:
        self.graph, self.linear, self.packing = graph, Lineariser(graph)(x), Packing(graph)

    def __call__(self, scales: Mapping[str, float] | None = None) -> float:
        """Logarithm of the likelihood with the sigmas of these labels so many times as large (``{label: factor}``)."""
        scales, packing = scales or {}, self.packing
        factors = [scales.get(item.factors.label, 1.0) for item in self.linear]
        linear = [Linear(item.factors, item.e / by, item.J / by) for item, by in zip(self.linear, factors)]
        net = packing.net(linear)
        dx, found = packing.optimum(net), 0.0
        for item, by in zip(linear, factors):
            rest = item.e + np.einsum('krw,kw->kr', item.J, dx[self.graph.places(item.factors)])
            found -= 0.5 * float(np.sum((rest / item.factors.sigma) ** 2))
            found -= float(np.sum(np.log(by * item.factors.sigma)))
        for i in range(len(packing.nodes)):
            R = np.diag(net.at(i).R())
            found -= float(np.sum(np.log(np.abs(R / packing.sigmas(net.at(i), len(R))))))
        return found


def sandwich_stddev(graph: FactorGraph, x: np.ndarray, name: str, likely: Mapping[str, float]) -> float:
    """Standard deviation of a constant of size 1, found with the graph's sigmas, where those of the factors labelled
    as in ``likely`` are in truth so many times as large.

    ``x^ = x - P J' W r`` for rows J with residuals r, so the variance is ``sum((J u)^2 w^2 var r)`` with u the column
    of P that belongs to the constant. It is found by pulling at the constant: ``(P^-1 + e e'/s^2) dx = e/s^2``.
    """
    probed = replace(graph, factors=list(graph.factors), _series=None)
    probe = probed.add(prior(1), {'x': (name, ALWAYS)}, 1.0, {'x0': np.zeros(1)}, label='probe')
    pulled = [replace(item, e=np.zeros_like(item.e) if item.factors is not probe else -np.ones_like(item.e))
              for item in Lineariser(probed)(x)]
    dx = Packing(probed).solve(pulled)
    share = float(dx[graph.series[name].first])         # P / (1 + P)
    u, variance = dx / (1.0 - share), 0.0
    for item in pulled:
        if item.factors is not probe:
            ratio = np.einsum('krw,kw->kr', item.J, u[graph.places(item.factors)]) / item.factors.sigma
            variance += float(np.sum(ratio ** 2)) * likely.get(item.factors.label, 1.0) ** 2
    return float(np.sqrt(variance))
