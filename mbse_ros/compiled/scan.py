# SPDX-License-Identifier: Apache-2.0
"""Many steps of ``x, y = step(x, u, p)`` in one compiled call."""

from __future__ import annotations

from threading import Lock
from typing import Any

import casadi as ca
import numpy as np

from ..errors import DivergenceError
from .arrays import DOUBLE, checked, fitted
from .backend import build
from .dense import dense
from .scan_c import ScanC
from .scan_vm import ScanVm

NAME = 'mbse_step'


class Scan:
    """Runs ``step``: (x (nx,), u (nu,), p (np,)) -> (x_next (nx,), y (ny,)) over a series of u.

    ``backend`` and the attributes ``name``, ``backend``, ``note`` as in Kernel. Splitting a series over several calls
    changes no bit of the result. Raises ValueError when the function has other inputs or outputs.
    """

    def __init__(self, step: ca.Function, backend: str = 'auto') -> None:
        self.name = step.name()
        _check_signature(step)
        function = dense(step, NAME)
        self.nx, self.nu, self.np = (function.numel_in(i) for i in range(3))
        self.ny = function.numel_out(1)
        self._runner, self.backend, self.note = build(
            backend, self.name, lambda: ScanC(self.name, function), lambda: ScanVm(function))
        self._lock = Lock()

    def __call__(self, x0: Any, us: Any, p: Any) -> tuple[np.ndarray, np.ndarray]:
        """State after the last row of ``us`` (n, nu), and the outputs (n, ny) of all steps, both fresh.

        Raises ValueError (shape or kind of an array), DivergenceError (the step reports a failure; with its number).
        """
        us = self._series(us)
        x, ys = np.empty(self.nx), np.empty((len(us), self.ny))
        self._execute(self._vector(x0, self.nx, 'x0'), us, self._vector(p, self.np, 'p'), x, ys)
        return x, ys

    def run(self, x0: np.ndarray, us: np.ndarray, p: np.ndarray, x_out: np.ndarray, ys: np.ndarray) -> None:
        """As ``__call__``, into the C-contiguous float64 arrays ``x_out`` (nx,) and ``ys`` (n, ny).

        ``x_out`` may be ``x0``; ``ys`` must not share memory with ``us``.
        """
        us = self._series(us)
        checked(x_out, (self.nx,), f'{self.name}: x_out', writable=True)
        checked(ys, (len(us), self.ny), f'{self.name}: ys', writable=True)
        self._execute(self._vector(x0, self.nx, 'x0'), us, self._vector(p, self.np, 'p'), x_out, ys)

    def _execute(self, x0: np.ndarray, us: np.ndarray, p: np.ndarray, x_out: np.ndarray, ys: np.ndarray) -> None:
        with self._lock:
            failed = self._runner.run(x0, us, p, x_out, ys)
        if failed:
            raise DivergenceError(self.name, failed - 1, 'the function reports a failure')

    def _vector(self, array: Any, size: int, what: str) -> np.ndarray:
        if type(array) is np.ndarray and array.shape == (size,) and array.dtype is DOUBLE:
            return array
        return fitted(array, (size,), f'{self.name}: {what}')

    def _series(self, us: Any) -> np.ndarray:
        """``us`` as a C-contiguous float64 array (n, nu)."""
        if type(us) is np.ndarray and us.dtype is DOUBLE and us.ndim == 2 and us.shape[1] == self.nu \
                and us.flags.c_contiguous:
            return us
        if np.ndim(us) != 2 or np.shape(us)[1] != self.nu:
            raise ValueError(f'{self.name}: us: got shape {np.shape(us)}, expected (n, {self.nu})')
        return np.ascontiguousarray(fitted(us, np.shape(us), f'{self.name}: us'))


def _check_signature(step: ca.Function) -> None:
    """ValueError unless the function is (x, u, p) -> (x, y) of columns."""
    shapes = [step.size_in(i) for i in range(step.n_in())], [step.size_out(i) for i in range(step.n_out())]
    columns = all(min(s) == 0 or s[1] == 1 for group in shapes for s in group)
    if len(shapes[0]) != 3 or len(shapes[1]) != 2 or not columns or step.numel_in(0) != step.numel_out(0):
        raise ValueError(f'{step.name()}: got {shapes[0]} -> {shapes[1]}, expected columns (x, u, p) -> (x, y)')
