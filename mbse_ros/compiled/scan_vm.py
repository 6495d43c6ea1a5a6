# SPDX-License-Identifier: Apache-2.0
"""The scan in CasADi's virtual machine: blocks of up to 64 steps, so that memory is bounded."""

from __future__ import annotations

import casadi as ca
import numpy as np

BLOCK = 64


class ScanVm:
    """Loop over a dense step; blocks of each length up to 64 are made when first needed and kept."""

    def __init__(self, step: ca.Function) -> None:
        self._step = step
        self._blocks: dict[int, _Block] = {}

    def run(self, x0: np.ndarray, us: np.ndarray, p: np.ndarray, x_out: np.ndarray, ys: np.ndarray) -> int:
        """0, or the number, from 1, of the first step of the block that failed; arrays as checked by Scan."""
        x, n = x0, len(us)
        for start in range(0, n, BLOCK):
            stop = min(start + BLOCK, n)
            block = self._block(stop - start)
            if block.run(x, us[start:stop], p, ys[start:stop]):
                return start + 1
            x = block.states[-1]
        x_out[...] = x
        return 0

    def _block(self, n: int) -> _Block:
        if n not in self._blocks:
            self._blocks[n] = _Block(self._step, n)
        return self._blocks[n]


class _Block:
    """``n`` steps as one function; CasADi's columns side by side are the rows of C-ordered arrays."""

    def __init__(self, step: ca.Function, n: int) -> None:
        function = step.mapaccum(f'mbse_scan{n}', n)
        (nx, nu, n_p), ny = (step.numel_in(i) for i in range(3)), step.numel_out(1)
        self._x, self._us, self._p = np.zeros(nx), np.zeros((n, nu)), np.zeros((n, n_p))
        self.states, self._ys = np.zeros((n, nx)), np.zeros((n, ny))
        self._buffer, self._trigger = function.buffer()
        for i, array in enumerate((self._x, self._us, self._p)):
            self._buffer.set_arg(i, memoryview(array))
        for i, array in enumerate((self.states, self._ys)):
            self._buffer.set_res(i, memoryview(array))

    def run(self, x: np.ndarray, us: np.ndarray, p: np.ndarray, ys: np.ndarray) -> int:
        """Whether it failed; ``states`` (n, nx) holds the states after each step."""
        self._x[...] = x
        self._us[...] = us
        self._p[...] = p
        self._trigger()
        ys[...] = self._ys
        return self._buffer.ret()
