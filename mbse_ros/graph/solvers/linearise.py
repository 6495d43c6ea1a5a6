# SPDX-License-Identifier: Apache-2.0
"""Residuals and Jacobians of a whole graph: one compiled call for each group of factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..graph import FactorGraph, Factors


@dataclass(frozen=True)
class Linear:
    """Residuals ``e`` (k, rows) and Jacobians ``J`` (k, rows, width) of a group of factors."""

    factors: Factors
    e: np.ndarray
    J: np.ndarray


class Lineariser:
    """Linearises a graph again and again; ``places`` of each group's arguments are found once."""

    def __init__(self, graph: FactorGraph) -> None:
        self.graph = graph
        self.places = [graph.places(factors) for factors in graph.factors]

    def __call__(self, x: np.ndarray) -> list[Linear]:
        """All groups at the values x (size,)."""
        return [Linear(factors, *factors.kind.evaluate(x[places], factors.constants))
                for factors, places in zip(self.graph.factors, self.places)]


@dataclass(frozen=True)
class Cost:
    """``soft``: half the sum of squared residuals, each by its sigma; ``hard``: largest residual of the rows that hold
    exactly, and ``worst``, the label of its factors and its step."""

    soft: float
    hard: float
    worst: str = ''

    @property
    def finite(self) -> bool:
        """Whether both are numbers."""
        return bool(np.isfinite(self.soft) and np.isfinite(self.hard))


def cost(linear: Sequence[Linear]) -> Cost:
    """Cost of a linearised graph."""
    soft, hard, worst = 0.0, 0.0, ''
    for item in linear:
        exact = item.factors.sigma == 0
        soft += float(np.sum((item.e[~exact] / item.factors.sigma[~exact]) ** 2)) / 2
        if exact.any():
            size = np.where(exact, np.abs(item.e), 0.0).max(axis=1)
            place = int(np.argmax(np.where(np.isnan(size), np.inf, size)))
            if not size[place] <= hard:
                hard, worst = float(size[place]), f'{item.factors.label} at step {item.factors.steps[place].max()}'
    return Cost(soft, hard, worst)


def reach(linear: Sequence[Linear], places: Sequence[np.ndarray], step: np.ndarray) -> float:
    """Largest change that a step dx (size,) could make in a row that holds exactly: ``max |J| |dx|``."""
    largest = 0.0
    for item, at in zip(linear, places):
        exact = item.factors.sigma == 0
        if exact.any():
            change = np.einsum('krw,kw->kr', np.abs(item.J), np.abs(step[at]))
            largest = max(largest, float(change[exact].max()))
    return largest
