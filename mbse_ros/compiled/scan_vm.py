# SPDX-License-Identifier: Apache-2.0
"""Blocks of a scan in CasADi's virtual machine."""

from __future__ import annotations

import casadi as ca
import numpy as np

from .scan_block import Block


class BlocksVm(dict):
    """Block of each length up to ``longest``, a function of so many steps, made when first asked for."""

    longest = 64

    def __init__(self, step: ca.Function) -> None:
        super().__init__()
        self._step = step

    def __missing__(self, n: int) -> Block:
        # CasADi's columns side by side are the rows of C-ordered arrays
        function = self._step.mapaccum(f'mbse_scan{n}', n)
        x, us, p = (np.zeros((rows, self._step.numel_in(i))) for i, rows in enumerate((1, n, n)))
        xs, ys = (np.zeros((n, self._step.numel_out(i))) for i in range(2))
        buffer, trigger = function.buffer()
        for i, array in enumerate((x, us, p)):
            buffer.set_arg(i, memoryview(array))
        for i, array in enumerate((xs, ys)):
            buffer.set_res(i, memoryview(array))

        def run() -> int:
            trigger()
            return buffer.ret()
        self[n] = Block(x[0], us, p, xs[-1], ys, run)
        return self[n]
