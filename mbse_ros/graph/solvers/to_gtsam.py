# SPDX-License-Identifier: Apache-2.0
"""A graph in GTSAM's own classes, for its optimizers, smoothers and tools; variables keep their names and steps.

``solve_incremental`` gives it instant after instant to GTSAM's Bayes tree (ISAM2), which solves again what changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import DivergenceError
from ..graph import ALWAYS, FactorGraph, Factors
from .elimination import gtsam_module, linear_factor

STEP_BITS = 40
LINEAR = ('prior', 'equality', 'euler', 'trapezoid')
RELINEARISE = 1e-6      # change of a value from which its factors are linearised again
UPDATES = 6             # at most, of an instant
TOLERANCE = 1e-9        # change of the newest values after which no more are needed


class Keys:
    """GTSAM's keys of a graph's variables: the number of the name above, the step below."""

    def __init__(self, graph: FactorGraph) -> None:
        self._number = {name: k + 1 for k, name in enumerate(graph.series)}

    def __call__(self, name: str, step: int) -> int:
        """Key of a variable."""
        return (self._number[name] << STEP_BITS) + (0 if step == ALWAYS else step + 1)


def to_gtsam(graph: FactorGraph, x: np.ndarray) -> tuple[Any, Any, Keys]:
    """``NonlinearFactorGraph``, ``Values`` at x (size,), and the keys of the variables.

    Priors, equalities and integrators become linear factors of GTSAM's own; factors of the model CustomFactors round
    the compiled functions. GTSAM's batch optimizers hand a copy of all values to each of these, at a cost of the square
    of the number of instants: for long series use ``solve_batch``, or ISAM2. Raises MissingModuleError.
    """
    gtsam = gtsam_module()
    keys, made = Keys(graph), gtsam.NonlinearFactorGraph()
    for factors in graph.factors:
        for instance in range(len(factors)):
            made.push_back(native_factor(gtsam, factors, instance, keys))
    return made, native_values(gtsam, graph, x, keys), keys


def native_values(gtsam: Any, graph: FactorGraph, x: np.ndarray, keys: Keys) -> Any:
    """GTSAM's Values at x (size,)."""
    values = gtsam.Values()
    for name, series in graph.series.items():
        for step, value in zip(series.steps.tolist(), graph.of(x, name)):
            values.insert(keys(name, step), np.array(value))
    return values


def native_factor(gtsam: Any, factors: Factors, instance: int, keys: Keys) -> Any:
    """One factor in GTSAM's classes."""
    on = [keys(name, step) for name, step in factors.keys(instance)]
    sigma = factors.sigma[instance]
    noise = gtsam.noiseModel.Constrained.MixedSigmas(1.0, sigma) if (sigma == 0).any() \
        else gtsam.noiseModel.Diagonal.Sigmas(sigma)
    if factors.kind.name in LINEAR:
        return _linear(gtsam, factors, instance, on, noise)
    return gtsam.CustomFactor(noise, on, _callback(factors, instance, on))


def _linear(gtsam: Any, factors: Factors, instance: int, on: list[int], noise: Any) -> Any:
    """A linear factor; its Jacobian is that at zero."""
    kind = factors.kind
    e, J = kind.evaluate(np.zeros((1, kind.width)), factors.constants[instance][None])
    blocks = np.split(J[0], np.cumsum(list(kind.variables.values()))[:-1], axis=1)
    whitened = linear_factor(gtsam, list(zip(on, blocks)), -e[0], noise)
    zero = gtsam.Values()
    for key, size in zip(on, kind.variables.values()):
        zero.insert(key, np.zeros(size))
    return gtsam.LinearContainerFactor(whitened, zero)


def _callback(factors: Factors, instance: int, on: list[int]) -> Callable[..., np.ndarray]:
    """GTSAM's error function of a factor of the model: residual and Jacobians in one compiled call."""
    kind, constants = factors.kind, factors.constants[instance][None]
    ends = np.cumsum(list(kind.variables.values()))

    def error(_: Any, values: Any, jacobians: list[np.ndarray] | None) -> np.ndarray:
        x = np.concatenate([values.atVector(key) for key in on])
        e, J = kind.evaluate(x[None], constants)
        if jacobians is not None:
            for k, end in enumerate(ends):
                jacobians[k] = J[0][:, (0 if k == 0 else ends[k - 1]):end]
        return e[0]
    return error


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
