# SPDX-License-Identifier: Apache-2.0
"""Options that are lists of names."""

from __future__ import annotations

from ..errors import SettingError


def names_of(text: str | None, option: str = '', least: int = 0) -> list[str]:
    """Names separated by commas, each once; raises SettingError where there are fewer than ``least``."""
    names = list(dict.fromkeys(name.strip() for name in (text or '').split(',') if name.strip()))
    if len(names) < least:
        raise SettingError(option, text, 'names separated by commas')
    return names
