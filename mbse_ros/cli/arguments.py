# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import SettingError

Json = Annotated[Path | None, typer.Option('--json', help='Write the result as JSON to this file.')]
Plots = Annotated[Path | None, typer.Option('-o', '--output', help='Folder for the plots.')]


def names_of(text: str | None, option: str = '', least: int = 0) -> list[str]:
    """Names separated by commas, each once; raises SettingError where there are fewer than ``least``."""
    names = list(dict.fromkeys((text or '').replace(',', ' ').split()))
    if len(names) < least:
        raise SettingError(option, text, 'names separated by commas')
    return names


def independent_of(text: str | None) -> tuple[str, ...] | None:
    """Independent coordinates separated by commas; None: the file's; empty, of the word auto: to be chosen."""
    return None if text is None else () if text.strip() == 'auto' else tuple(names_of(text))


def whole_numbers(option: str, text: str) -> list[int]:
    """Whole numbers above zero, separated by commas; raises SettingError."""
    try:
        found = [int(part) for part in text.split(',') if part.strip()]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise SettingError(option, text, 'whole numbers above zero, separated by commas')
    return found
