# SPDX-License-Identifier: Apache-2.0
"""A graph in GTSAM's own classes, for its optimizers, smoothers and tools; variables keep their names and steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph import ALWAYS, FactorGraph, Factors
from .elimination import gtsam_module, linear_factor

STEP_BITS = 40
LINEAR = ('prior', 'equality', 'euler', 'trapezoid')


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


