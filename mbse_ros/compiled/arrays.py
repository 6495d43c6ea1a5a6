# SPDX-License-Identifier: Apache-2.0
"""Checks of the arrays given to compiled functions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

DOUBLE = np.dtype(np.float64)


def fitted(array: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """The numbers as float64 of the shape; a vector may come as a scalar, 1-D, row or column. Raises ValueError."""
    if type(array) is np.ndarray and array.shape == shape and array.dtype is DOUBLE:
        return array
    result = np.asarray(array)
    if result.dtype.kind not in 'fiub':
        raise ValueError(f'{what}: got dtype {result.dtype}, expected real numbers')
    as_vector = result.size == max(result.shape, default=1) == max(shape, default=1) == prod(shape)
    if result.shape != shape and not as_vector:
        raise ValueError(f'{what}: got shape {result.shape}, expected {shape}')
    return result.astype(DOUBLE, copy=False).reshape(shape)


def checked(array: np.ndarray, shape: tuple[int, ...], what: str, writable: bool = False) -> None:
    """ValueError unless the array is C-contiguous float64 of the shape (and writable, if asked)."""
    if type(array) is not np.ndarray or array.dtype is not DOUBLE or array.shape != shape:
        got = f'{array.dtype} {array.shape}' if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f'{what}: got {got}, expected a float64 array of shape {shape}')
    flags = array.flags
    if not flags.c_contiguous or (writable and not flags.writeable):
        raise ValueError(f'{what}: must be C-contiguous{" and writable" if writable else ""}')
