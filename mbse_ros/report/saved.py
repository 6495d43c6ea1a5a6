# SPDX-License-Identifier: Apache-2.0
"""Results from files .npz: series with names, units and deviations, the covariances, what was odd."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ..errors import SettingError
from ..resources import regular
from .files import SAVED
from .result import Result, ResultSeries


@dataclass(frozen=True, repr=False)
class SavedResult(Result):
    """What ``save`` wrote: series over ``t`` (k,), s, with names, units and deviations; ``kind`` of the result before;
    ``arrays``: all else by name, such as ``covariances`` (k, l, l) of the entries ``names`` (l,)."""

    t: np.ndarray
    kind: str
    columns: tuple[ResultSeries, ...]
    main: tuple[str, ...]
    names: tuple[str, ...]
    arrays: Mapping[str, np.ndarray]
    warnings: tuple[str, ...] = ()

    def series(self) -> list[ResultSeries]:
        """All columns, as before."""
        return list(self.columns)

    def main_series(self) -> list[ResultSeries]:
        """Those that are drawn where no names are given."""
        return [item for item in self.columns if item.name in self.main]


def read_result(path: str | Path) -> SavedResult:
    """A result that its ``save(path)`` wrote into a file .npz: the same series, units, intervals, warnings; in
    ``arrays`` what else was kept (``covariances``, ``innovation``, ...). Raises SettingError, OSError.

    >>> found = simulate('four_bar', 1.0, sensors=[])
    >>> bool((read_result(found.save('motion.npz'))['theta'] == found['theta']).all())
    True
    """
    if not isinstance(path, (str, Path)):
        raise SettingError('path', path, 'a name or a path')
    try:
        with np.load(regular(path), allow_pickle=False) as file:
            data = {name: file[name] for name in file.files}
    except (ValueError, BadZipFile, EOFError, KeyError) as error:
        raise SettingError('path', str(path), 'a file .npz that save() wrote') from error
    if str(data.get('format')) != SAVED:
        raise SettingError('path', str(path), f'a file .npz that save() wrote, format {SAVED}')
    rows = []
    for k, (name, unit, panel) in enumerate(zip(*(data[f'series_{item}'].tolist() for item in
                                                  ('name', 'unit', 'panel')))):
        more = {item: data[f'series_{item}'][k] for item in ('stddev', 'lower', 'upper')
                if f'series_has_{item}' in data and data[f'series_has_{item}'][k]}
        rows.append(ResultSeries(name, unit, data['series_values'][k], panel=panel, **more))
    return SavedResult(data['t'], str(data['kind']), tuple(rows), tuple(data['main'].tolist()),
                       tuple(data['names'].tolist()),
                       {name.removeprefix('array_'): value for name, value in data.items()
                        if name.startswith('array_')},
                       tuple(data['warnings'].tolist()))
