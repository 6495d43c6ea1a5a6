# SPDX-License-Identifier: Apache-2.0
"""Compiled functions as calls without arguments, to be timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..dynamics.partitioned import Partitioned


@dataclass(frozen=True)
class Bound:
    """A compiled function on arguments that stay; its results are in ``outputs`` after each call."""

    trigger: Callable[[], object]
    outputs: list[np.ndarray]

    def __call__(self) -> None:
        """Evaluate."""
        self.trigger()


def bound(function: ca.Function, arguments: Sequence[np.ndarray], backend: str = 'auto') -> Bound:
    """The function on arguments that stay, results into arrays that stay."""
    kernel = Kernel(function, backend)
    outputs = [np.empty_like(output) for output in kernel(*arguments)]
    sizes = [function.size_in(i) for i in range(function.n_in())]
    inputs = [np.ascontiguousarray(argument, dtype=float).reshape((rows,) if columns == 1 else (rows, columns))
              for argument, (rows, columns) in zip(arguments, sizes)]
    return Bound(kernel.bind(inputs, outputs), outputs)


def bound_state(partition: Partitioned, q: np.ndarray, zd: np.ndarray, t: float = 0.0,
                backend: str = 'auto') -> Bound:
    """f with its exact Jacobian A at coordinates (n,) and independent velocities (g,), inputs zero."""
    u = np.zeros(partition.system.u.numel())
    return bound(partition.function, [q, zd, u, np.array([t]), np.asarray(partition.parameters, dtype=float)], backend)
