# SPDX-License-Identifier: Apache-2.0
"""Instant after instant into GTSAM's Bayes tree (ISAM2), which keeps all of them and solves again what changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DivergenceError
from ..graph import ALWAYS, FactorGraph
from .elimination import gtsam_module
from .to_gtsam import Keys, native_factor

RELINEARISE = 1e-6      # change of a value from which its factors are linearised again
UPDATES = 6             # at most, of an instant
TOLERANCE = 1e-9        # change of the newest values after which no more are needed


def solve_incremental(graph: FactorGraph, initial: np.ndarray, updates: int = UPDATES) -> np.ndarray:
    """All values (size,) of a graph, its instants given to ISAM2 one after the other.

    ``initial`` (size,): where each instant starts from; NaN is extrapolated from the two before. At the end the result
    is that of ``solve_batch``. Raises MissingModuleError; DivergenceError with the step.
    """
    gtsam = gtsam_module()
    parameters = gtsam.ISAM2Params()
    parameters.setFactorization('QR')           # Cholesky fails on stiff weights
    parameters.relinearizeSkip = 1
    parameters.setRelinearizeThreshold(RELINEARISE)
    tree, keys, x = gtsam.ISAM2(parameters), Keys(graph), np.array(initial, dtype=float)
    new_factors = _by_newest_step(graph)
    at_step, steps = graph.places_of_steps(), graph.instants
    groups = [[ALWAYS, int(steps[0])] if ALWAYS in at_step else [int(steps[0])], *([int(step)] for step in steps[1:])]
    for group in groups:
        factors, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
        for step in group:
            graph.extrapolate(x, at_step[step], *(at_step.get(step - k, {}) for k in (1, 2)))
            for name, at in at_step[step].items():
                values.insert(keys(name, step), x[at])
            for owner, instance in new_factors.get(step, []):
                factors.push_back(native_factor(gtsam, graph.factors[owner], instance, keys))
        _update(gtsam, tree, factors, values, keys, at_step[group[-1]], group[-1], updates)
        now = tree.calculateEstimate()
        if group is groups[-1]:
            for name, series in graph.series.items():
                graph.of(x, name)[...] = [now.atVector(keys(name, step)) for step in series.steps.tolist()]
        else:
            for name, at in at_step[group[-1]].items():
                x[at] = now.atVector(keys(name, group[-1]))
    return x


def _update(gtsam: Any, tree: Any, factors: Any, values: Any, keys: Keys, newest: dict[str, np.ndarray],
            step: int, updates: int) -> None:
    """Give an instant to the tree and repeat until its values stay."""
    last = None
    try:
        tree.update(factors, values)
        for _ in range(updates):
            found = np.concatenate([tree.calculateEstimateVector(keys(name, step)) for name in newest])
            if not np.isfinite(found).all():
                raise DivergenceError('ISAM2', step, 'not a number')
            if last is not None and np.max(np.abs(found - last) / (1 + np.abs(found))) <= TOLERANCE:
                return
            last = found
            tree.update()
    except RuntimeError as error:
        raise DivergenceError('ISAM2', step, str(error).strip().splitlines()[0]) from error


def _by_newest_step(graph: FactorGraph) -> dict[int, list[tuple[int, int]]]:
    """Factors, by group and instance, under the newest step that they touch."""
    found: dict[int, list[tuple[int, int]]] = {}
    for owner, factors in enumerate(graph.factors):
        for instance, step in enumerate(factors.steps.max(axis=1).tolist()):
            found.setdefault(step, []).append((owner, instance))
    return found
