# SPDX-License-Identifier: Apache-2.0
"""Results as JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import SettingError


def check_json_file(path: Path | None) -> None:
    """Refuse, before the work, what cannot become a file; raises SettingError."""
    if path is not None and path.is_dir():
        raise SettingError('--json', str(path), 'a file, not a folder')


def write_json(path: Path | None, value: Any, indent: int | None = 2) -> None:
    """Write a value, if there is a path; its folder is made. Raises OSError."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=indent, allow_nan=False) + '\n', encoding='utf-8')
