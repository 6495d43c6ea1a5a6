# SPDX-License-Identifier: Apache-2.0
"""Timing that can be compared: all cases in turn, in short bursts, the fastest burst of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import casadi as ca
import numpy as np

from mbse_ros.compiled import Kernel
from mbse_ros.dynamics.partitioned import Partitioned


def interleaved(calls: Mapping[str, tuple[Callable[[], object], int]], rounds: int) -> dict[str, float]:
    """Seconds a call, by name: the minimum over ``rounds`` bursts of so many calls, the cases taking turns."""
    best = {name: float('inf') for name in calls}
    for _ in range(rounds):
        for name, (call, burst) in calls.items():
            start = time.perf_counter()
            for _ in range(burst):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / burst)
    return best


def bound(function: ca.Function, arguments: Sequence[np.ndarray], backend: str = 'auto'
          ) -> tuple[Callable[[], object], list[np.ndarray]]:
    """The function on arguments that stay, as a call without arguments, and the arrays that it fills."""
    kernel = Kernel(function, backend)
    outputs = [np.empty_like(output) for output in kernel(*arguments)]
    sizes = [function.size_in(i) for i in range(function.n_in())]
    inputs = [np.ascontiguousarray(argument, dtype=float).reshape((rows,) if columns == 1 else (rows, columns))
              for argument, (rows, columns) in zip(arguments, sizes)]
    return kernel.bind(inputs, outputs), outputs


def bound_state(partition: Partitioned, q: np.ndarray, zd: np.ndarray, t: float = 0.0,
                backend: str = 'auto') -> Callable[[], object]:
    """f with its exact Jacobian A at coordinates (n,) and independent velocities (g,), inputs zero."""
    u, p = np.zeros(partition.system.u.numel()), np.asarray(partition.parameters, dtype=float)
    return bound(partition.function, [q, zd, u, np.array([t]), p], backend)[0]
