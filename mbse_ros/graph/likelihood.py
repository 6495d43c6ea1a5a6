# SPDX-License-Identifier: Apache-2.0
"""How likely the measurements of a graph are, all variables integrated out: to choose the size of a noise by."""

from __future__ import annotations

import numpy as np

from .elimination import Packing
from .graph import FactorGraph
from .linearise import Lineariser


def log_likelihood(graph: FactorGraph, x: np.ndarray) -> float:
    """Logarithm of the likelihood of all constants of a graph of soft factors, linearised at x (size,), up to a number
    that depends on the number of rows alone.

    ``-|A dx + e|^2 / 2 - log det R - sum(log sigma)`` with the rows divided by their sigma, dx least
    squares, R of A = QR.
    """
    linear, packing = Lineariser(graph)(x), Packing(graph)
    net = packing.net(linear)
    values = net.optimize()
    dx = np.empty(graph.size)
    for key, node in packing.nodes.items():
        dx[node.places] = values.at(key)
    found = 0.0
    for item in linear:
        rest = item.e + np.einsum('krw,kw->kr', item.J, dx[graph.places(item.factors)])
        found -= 0.5 * float(np.sum((rest / item.factors.sigma) ** 2)) + float(np.sum(np.log(item.factors.sigma)))
    for i in range(len(packing.nodes)):
        conditional = net.at(i)
        noise = conditional.get_model()
        sigma = packing.scale * (1.0 if noise is None else noise.sigmas())
        found -= float(np.sum(np.log(np.abs(np.diag(conditional.R()) / sigma))))
    return found
