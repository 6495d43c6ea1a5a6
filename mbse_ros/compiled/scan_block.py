# SPDX-License-Identifier: Apache-2.0
"""What both backends of a scan give: a fixed number of steps over buffers of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Block:
    """``n`` steps: fill ``x`` (nx,), ``us`` (n, nu) and ``p`` (any shape (np,) can be written to), then ``run()``.

    ``run`` gives 0, or the number from 1 of the step that failed, and leaves ``x_end`` (nx,) and ``ys`` (n, ny). To
    copy in and out costs less than to take the address of an array.
    """

    x: np.ndarray
    us: np.ndarray
    p: np.ndarray
    x_end: np.ndarray
    ys: np.ndarray
    run: Callable[[], int]
