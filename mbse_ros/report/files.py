# SPDX-License-Identifier: Apache-2.0
"""Outputs that can be written, refused before the work where they cannot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import SettingError


def check_file(path: Path | None, option: str, suffixes: Sequence[str] = ()) -> None:
    """Raise SettingError for what cannot become a file of one of the suffixes."""
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        raise SettingError(option, str(path), 'a file that ends with ' + ' or '.join(suffixes))
    if path.is_dir():
        raise SettingError(option, str(path), 'a file, not a folder')
    _check_writable(path.parent, option, path)


def check_folder(path: Path | None, option: str = '--output') -> None:
    """Raise SettingError for what cannot become a folder with new files in it."""
    if path is None:
        return
    if path.exists() and not path.is_dir():
        raise SettingError(option, str(path), 'a folder, not a file')
    _check_writable(path, option, path)


def _check_writable(folder: Path, option: str, path: Path) -> None:
    """The nearest folder that is there must be one to write in."""
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise SettingError(option, str(path), f'a place that can be written, {nearest} cannot')
