# SPDX-License-Identifier: Apache-2.0
"""A compiled step run from many states by many threads at once, each run as far as its steps hold."""

from __future__ import annotations

import ctypes

import casadi as ca
import numpy as np

from .arrays import checked
from .dense import dense
from .scan import NAME, check_signature
from .scan_blocks import Arguments, library_of


class Runs:
    """Runs ``step``: (x (nx,), u (nu,), p (np,)) -> (x_next (nx,), y (ny,)) while the last entry of y is above zero.

    The same step, compiled once, as of ``Scan``; always C. A run has memory of its own and lets other threads run, so
    any number of them go on at once. Raises ValueError when the function has other inputs or outputs,
    CompilationError, OSError.
    """

    def __init__(self, step: ca.Function, in_lanes: bool = True) -> None:
        check_signature(step)
        self.name, function = step.name(), dense(step, NAME)
        self._sizes = [function.numel_in(i) for i in range(3)] + [function.numel_out(1)]
        self._work = function.sz_w(), function.sz_iw()
        loaded = ctypes.CDLL(library_of(self.name, function, in_lanes))
        self._run, self._checkout, self._release = (loaded.mbse_run_while, loaded.mbse_step_checkout,
                                                    loaded.mbse_step_release)
        self._run.restype = ctypes.c_longlong
        self._run.argtypes = [ctypes.c_void_p, *[ctypes.c_longlong] * 3, ctypes.c_void_p]

    def __call__(self, x: np.ndarray, us: np.ndarray, p: np.ndarray, kept: np.ndarray, every: int = 1,
                 first: int = 0) -> int:
        """Number of the steps with inputs ``us`` (n, nu) that held, one after the other; ``x`` (nx,) is the state after
        the last of them.

        The first entries of y after each step whose number, counted from ``first``, is a multiple of ``every``, go
        into the row ``number // every`` of ``kept`` (rows, at most ny). Arrays: C-contiguous float64; else, or with
        too few rows, ValueError.
        """
        nx, nu, np_, ny = self._sizes
        if kept.ndim != 2 or kept.shape[1] > ny or len(us) and (first + len(us) - 1) // every >= len(kept):
            raise ValueError(f'{self.name}: got {kept.shape} kept numbers for {first + len(us)} steps')
        for array, shape, what in ((x, (nx,), 'x'), (us, (len(us), nu), 'us'), (p, (np_,), 'p'),
                                   (kept, kept.shape, 'kept')):
            checked(array, shape, f'{self.name}: {what}', writable=what in ('x', 'kept'))
        own = np.zeros(2 * nx + ny + self._work[0])
        own[:nx] = x
        iw, states, ys, w = np.zeros(self._work[1], np.int64), own, own[2 * nx:], own[2 * nx + ny:]
        memory = self._checkout()
        addresses = (array.ctypes.data for array in (us, p, ys, states, w, iw))
        arguments = Arguments(len(us), *addresses, memory)
        steps = self._run(ctypes.addressof(arguments), every, first, kept.shape[1], kept.ctypes.data)
        self._release(memory)
        x[...] = own[:nx]
        return steps
