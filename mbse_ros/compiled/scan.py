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
from .iterated import Iterated, Step, shapes_of
from .scan_blocks import Block, BlocksC, BlocksVm

NAME = 'mbse_step'


class Scan:
    """Runs ``step``: (x (nx,), u (nu,), p (np,)) -> (x_next (nx,), y (ny,)) over a series of u; may be ``Iterated``.

    ``backend`` and the attributes ``name``, ``backend``, ``note`` as in Kernel. A long series runs in blocks, so that
    memory is bounded; to split it over several calls changes no bit of the result. Safe with threads.
    ``in_lanes``: long functions of scalar operations compute four at a time, which is faster where they repeat.
    Raises ValueError when the function has other inputs or outputs.
    """

    _blocks: BlocksC | BlocksVm

    def __init__(self, step: Step, backend: str = 'auto', in_lanes: bool = True) -> None:
        shapes = shapes_of(step)
        self.name = shapes.name()
        check_signature(shapes)
        made = step.dense(NAME) if isinstance(step, Iterated) else dense(step, NAME)
        self._x_shape, self._u_shape, self._p_shape = ((shapes.numel_in(i),) for i in range(3))
        self._ny = shapes.numel_out(1)
        self._blocks, self.backend, self.note = build(
            backend, self.name, lambda: BlocksC(self.name, made, in_lanes), lambda: BlocksVm(made))
        self._longest = self._blocks.longest
        self._lock = Lock()

    def __call__(self, x0: Any, us: Any, p: Any) -> tuple[np.ndarray, np.ndarray]:
        """State after the last row of ``us`` (n, nu), and the outputs (n, ny) of all steps, both fresh.

        Raises ValueError (shape or kind of an array), DivergenceError (the step reports a failure; with its number,
        in the VM that of the first step of its block).
        """
        us = self._series(us)
        n = len(us)
        if 0 < n <= self._longest:
            with self._lock:
                block = self._step(x0, us, p, 0)
                return block.x_end.copy(), block.ys.copy()
        x, ys = np.empty(self._x_shape), np.empty((n, self._ny))
        self._steps(x0, us, p, x, ys)
        return x, ys

    def run(self, x0: np.ndarray, us: np.ndarray, p: np.ndarray, x_out: np.ndarray, ys: np.ndarray) -> None:
        """As ``__call__``, into the C-contiguous float64 arrays ``x_out`` (nx,) and ``ys`` (n, ny).

        ``x_out`` may be ``x0``; ``ys`` of a series of several blocks must be apart from ``us``, else ValueError. After
        an error ``x_out`` is as before, ``ys`` may be filled in part.
        """
        us = self._series(us)
        checked(x_out, self._x_shape, 'x_out', writable=True)
        checked(ys, (len(us), self._ny), 'ys', writable=True)
        if 0 < len(us) <= self._longest:
            with self._lock:
                block = self._step(x0, us, p, 0)
                x_out[...] = block.x_end
                ys[...] = block.ys
        elif np.may_share_memory(us, ys):
            raise ValueError('ys: must not share memory with us')
        else:
            self._steps(x0, us, p, x_out, ys)

    def _steps(self, x0: Any, us: np.ndarray, p: Any, x_out: np.ndarray, ys: np.ndarray) -> None:
        """All steps, block after block."""
        with self._lock:
            x, p = fitted(x0, self._x_shape, 'x0'), fitted(p, self._p_shape, 'p')
            for start in range(0, len(us), self._longest):
                stop = start + self._longest
                block = self._step(x, us[start:stop], p, start)
                ys[start:stop] = block.ys
                x = block.x_end
            x_out[...] = x

    def _step(self, x: Any, us: np.ndarray, p: Any, start: int) -> Block:
        """The block of the length of ``us``, after it ran; ``start`` is the number of its first step."""
        block = self._blocks[len(us)]
        block.x[...] = fitted(x, self._x_shape, 'x0')
        block.us[...] = us
        block.p[...] = fitted(p, self._p_shape, 'p')
        failed = block.run()
        if failed:
            raise DivergenceError(self.name, start + failed - 1, 'the function reports a failure')
        return block

    def _series(self, us: Any) -> np.ndarray:
        """``us`` as float64 (n, nu)."""
        if type(us) is np.ndarray and us.shape[1:] == self._u_shape and us.dtype is DOUBLE:
            return us
        shape = np.shape(us)
        if len(shape) != 2 or shape[1:] != self._u_shape:
            raise ValueError(f'us: got shape {shape}, expected (n, {self._u_shape[0]})')
        return fitted(us, shape, 'us')


def check_signature(step: ca.Function) -> None:
    """ValueError unless the function is (x, u, p) -> (x, y) of columns."""
    shapes = [step.size_in(i) for i in range(step.n_in())], [step.size_out(i) for i in range(step.n_out())]
    columns = all(rows == 0 or n == 1 for group in shapes for rows, n in group)
    if len(shapes[0]) != 3 or len(shapes[1]) != 2 or not columns or step.numel_in(0) != step.numel_out(0):
        raise ValueError(f'{step.name()}: got {shapes[0]} -> {shapes[1]}, expected columns (x, u, p) -> (x, y)')
