# SPDX-License-Identifier: Apache-2.0
"""Outputs that can be written, refused before the work where they cannot; results as JSON and .npz, and tables of
numbers as CSV, to the last digit."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from ..errors import BagError, SettingError, check_choice
from ..resources import regular, write_whole

COVARIANCE = 'none', 'bands', 'full'
SAVED = 'mbse/result/1'     # format of a result as .npz


def check_file(path: Path | None, option: str = 'json', suffixes: Sequence[str] = ()) -> None:
    """Raise SettingError for what cannot become a file of one of the suffixes."""
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        raise SettingError(option, str(path), 'a file that ends with ' + ' or '.join(suffixes))
    if path.is_dir():
        raise SettingError(option, str(path), 'a file, not a folder')
    _check_writable(path.parent, option, path)


def check_folder(path: Path | None, option: str = 'output') -> None:
    """Raise SettingError for what cannot become a folder with new files in it."""
    if path is None:
        return
    if path.exists() and not path.is_dir():
        raise SettingError(option, str(path), 'a folder, not a file')
    _check_writable(path, option, path)


def check_new(path: Path | None, option: str = 'output', check: Callable[[Path, str], None] = check_folder) -> None:
    """Raise BagError for a place that is taken, and what ``check`` raises."""
    if path is not None:
        if path.exists():
            raise BagError(str(path), 'exists already and is not overwritten')
        check(path, option)


def _check_writable(folder: Path, option: str, path: Path) -> None:
    """The nearest folder that is there must be one to write in: only a file that is made there shows it."""
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    try:
        with TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise SettingError(option, str(path), f'a place that can be written, {nearest} cannot ({error.strerror})'
                           ) from None


def write_json(path: Path | None, value: Any, indent: int | None = 2) -> None:
    """Write a value as ``plain`` gives it, if there is a path; its folder is made. Raises OSError."""
    if path is not None:
        write_plain(path, plain(value), indent)


def write_plain(path: Path, value: Any, indent: int | None = 2) -> None:
    """The same of what is plain already. Raises OSError, ValueError for what is not finite."""
    write_whole(path, json.dumps(value, indent=indent, allow_nan=False) + '\n')


def plain(value: Any) -> Any:
    """What JSON has a word for: arrays and tuples become lists, numbers of NumPy those of Python, a status its word in
    small letters, what is not finite None."""
    if isinstance(value, IntEnum):
        return value.name.lower()
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_table(path: Path, columns: Sequence[str], values: Sequence[np.ndarray]) -> None:
    """Write columns (k,) under their headings; numbers with 17 digits, so that they read back the same.

    Raises OSError; ValueError where headings and columns differ in number.
    """
    if len(columns) != len(values):
        raise ValueError(f'{len(columns)} headings for {len(values)} columns')

    def write(part: Path) -> None:
        with open(part, 'w', newline='', encoding='utf-8') as file:
            rows = zip(*(np.asarray(column).tolist() for column in values))
            csv.writer(file).writerows([columns, *(
                [f'{value:.17g}' if isinstance(value, float) else value for value in row] for row in rows)])
    write_whole(path, write)


def read_table(path: Path) -> tuple[list[str], np.ndarray]:
    """Headings and numbers (k, columns) of such a file."""
    with open(regular(path), newline='', encoding='utf-8') as file:
        rows = list(csv.reader(file))
    return rows[0], np.array(rows[1:], dtype=float).reshape(-1, len(rows[0]))


def write_between(page: Path, name: str, text: str) -> None:
    """Replace what stands between the two marks of this name, ``<!-- NAME: begin -->`` and ``end``, in a page.

    Raises SettingError where the page does not have both.
    """
    before, after = parts_of(page, name)
    write_whole(page, f'{before}\n{text}\n{after}')


def parts_of(page: Path, name: str) -> tuple[str, str]:
    """A page up to its mark ``begin`` of this name, and from its mark ``end`` on; raises SettingError."""
    begin, end = (f'<!-- {name}: {word} -->' for word in ('begin', 'end'))
    text = page.read_text(encoding='utf-8') if page.is_file() else ''
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SettingError('page', str(page), f'a page with the marks {begin} and {end}')
    return before + begin, end + after


def save_result(result: Any, path: Path, covariance: str) -> Path:
    """Series with names, units and deviations, the covariances, what was odd, as .npz: see ``Result.save``."""
    check_choice('covariance', covariance, COVARIANCE)
    check_file(path, 'path', ('.npz',))
    full, bands = getattr(result, 'covariances', np.zeros(0)), covariance != 'none'
    if covariance == 'full' and not np.size(full):
        raise SettingError('covariance', covariance, f'none or bands: a {type(result).__name__} has no covariances')
    arrays: dict[str, np.ndarray] = {
        'format': np.array(SAVED), 'kind': np.array(type(result).__name__), 't': result.t,
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
