# SPDX-License-Identifier: Apache-2.0
"""How uncertain a solution is where the noises are others than those it was found with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from .elimination import Packing
from .graph import ALWAYS, FactorGraph
from .integration_factors import prior
from .linearise import Lineariser


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
