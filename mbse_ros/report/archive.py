# SPDX-License-Identifier: Apache-2.0
"""A result as a file .npz: its series with names, units and deviations, the covariances, what was odd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SettingError, check_choice
from ..resources import write_whole

KINDS = 'none', 'bands', 'full'
FORMAT = 'mbse/result/1'


def save_result(result: Any, path: Path, covariance: str) -> Path:
    """See ``Result.save``."""
    check_choice('covariance', covariance, KINDS)
    if path.suffix != '.npz':
        raise SettingError('path', str(path), 'a name that ends with .npz')
    full, bands = getattr(result, 'covariances', np.zeros(0)), covariance != 'none'
    if covariance == 'full' and not np.size(full):
        raise SettingError('covariance', covariance, f'none or bands: a {type(result).__name__} has no covariances')
    arrays: dict[str, np.ndarray] = {
        'format': np.array(FORMAT), 'kind': np.array(type(result).__name__), 't': result.t,
        'names': np.array(getattr(result, 'names', ()), dtype=str), 'warnings': np.array(result.warnings, dtype=str),
        'main': np.array([item.name for item in result.main_series()], dtype=str)}
    series = result.series()
    for name in ('name', 'unit', 'panel'):
        arrays[f'series_{name}'] = np.array([getattr(item, name) for item in series], dtype=str)
    arrays['series_values'] = np.array([item.values for item in series], dtype=float)
    for name in ('stddev', 'lower', 'upper') if bands else ():
        arrays[f'series_{name}'] = np.array([
            np.full(len(result.t), np.nan) if getattr(item, name) is None else getattr(item, name) for item in series])
        arrays[f'series_has_{name}'] = np.array([getattr(item, name) is not None for item in series])
    arrays |= {f'array_{name}': value for name, value in result._saved().items()}
    if covariance == 'full':
        arrays['array_covariances'] = full

    def write(part: Path) -> None:
        with open(part, 'wb') as stream:
            np.savez_compressed(stream, allow_pickle=False, **arrays)
    write_whole(path, write)
    return path
