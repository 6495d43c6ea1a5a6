# SPDX-License-Identifier: Apache-2.0
"""Marginal covariances of a solution, from the eliminated graph; exact rows give zero variance across them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ..graph import FactorGraph
from .batch_solver import Solution
from .elimination import Packing


@dataclass(frozen=True)
class Marginals:
    """Covariances by node (instant, or variable that does not change) of a graph's variables."""

    graph: FactorGraph
    _nodes: dict[int, tuple[np.ndarray, np.ndarray]]
    _node_of: np.ndarray

    def covariance(self, name: str) -> np.ndarray:
        """Covariances (k, size, size) of all variables of a name."""
        series = self.graph.series[name]
        found = np.empty((len(series.steps), series.size, series.size))
        for out, places in zip(found, series.places(series.steps)):
            out[...] = self.joint(places)
        return found

    def stddev(self, name: str) -> np.ndarray:
        """Standard deviations (k, size) of all variables of a name."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance(name), axis1=1, axis2=2), 0.0))

    def joint(self, places: np.ndarray) -> np.ndarray:
        """Covariance of places of one node in the vector of all values."""
        own, covariance = self._nodes[int(self._node_of[places[0]])]
        at = np.searchsorted(own, places)
        return covariance[np.ix_(at, at)]


def marginals(solution: Solution) -> Marginals:
    """Marginal covariances at a solution, in time proportional to the number of instants.

    From the last conditional ``R x = d - S s + noise`` to the first: ``P = R^-1 (D + S P_s S') R^-T``.
    """
    packing = Packing(solution.graph)
    net = packing.net(solution.linear)
    joint: dict[int, tuple[list[int], np.ndarray]] = {}
    nodes = {}
    for i in range(len(packing.nodes) - 1, -1, -1):
        keys, covariance = _with_parents(net.at(i), joint, packing)
        joint[keys[0]] = keys, covariance
        own = packing.nodes[keys[0]]
        order = np.argsort(own)
        nodes[keys[0]] = own[order], covariance[np.ix_(order, order)]
    return Marginals(solution.graph, nodes, packing.node_of)


def _with_parents(conditional: Any, joint: dict[int, tuple[list[int], np.ndarray]], packing: Packing
                  ) -> tuple[list[int], np.ndarray]:
    """Keys of a node and of those it depends on, and their joint covariance."""
    keys = list(conditional.keys())
    R, S = conditional.R(), conditional.S()
    G = solve_triangular(R, np.diag(packing.sigmas(conditional, len(R))))
    if len(keys) == 1:
        return keys, G @ G.T
    parents = _select(*joint[min(keys[1:])], keys[1:], packing)       # the next node has all of them with it
    T = -solve_triangular(R, S)
    cross = T @ parents
    return keys, np.block([[G @ G.T + cross @ T.T, cross], [cross.T, parents]])


def _select(keys: list[int], covariance: np.ndarray, wanted: list[int], packing: Packing) -> np.ndarray:
    """Part of a joint covariance."""
    first = dict(zip(keys, np.cumsum([0, *(len(packing.nodes[key]) for key in keys)])))
    at = np.concatenate([first[key] + np.arange(len(packing.nodes[key])) for key in wanted])
    return covariance[np.ix_(at, at)]
