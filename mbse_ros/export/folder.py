# SPDX-License-Identifier: Apache-2.0
"""The folder of an export: only what an earlier export wrote is replaced. Text of C files out of templates."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import SettingError
from ..resources import write_whole

FORMAT = 'mbse/export-c/1'
ESTIMATOR = 'mbse/export-c/estimator/1'
FORMATS = FORMAT, ESTIMATOR
MANIFEST = 'mbse_export.json'


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files by their names, the manifest first; those of an earlier export that are no longer there go.

    Raises SettingError for a folder with files of others, OSError.
    """
    old = earlier(folder)
    for name in files:
        if name not in old and (folder / name).exists():
            raise SettingError('folder', str(folder), f'a folder without a {name} of others')
    folder.mkdir(parents=True, exist_ok=True)
    for name in (MANIFEST, *(name for name in files if name != MANIFEST)):
        write_whole(folder / name, files[name])
    for name in set(old) - set(files):
        (folder / name).unlink(missing_ok=True)


def check_earlier(folder: Path) -> None:
    """Raise SettingError where `write_files` would, but for names; before anything is computed."""
    earlier(folder)


def earlier(folder: Path) -> list[str]:
    """Files of an earlier export; SettingError for a folder that holds something else."""
    wrong = SettingError('folder', str(folder), 'a new or empty folder, or one that export-c wrote')
    if not folder.exists() and not folder.is_symlink():
        return []
    if not folder.is_dir():
        raise wrong
    if not any(folder.iterdir()):
        return []
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding='utf-8'))
        if manifest['format'] not in FORMATS:
            raise wrong
        return [name for name in manifest['files'] if re.fullmatch(r'\w[\w.]*', name, flags=re.ASCII)]
    except (OSError, ValueError, KeyError, TypeError):
        raise wrong from None


def render(template: str, words: Mapping[str, object]) -> str:
    """The template with its words, those inside of words too."""
    for _ in range(2):
        template = re.sub(r'@(\w+)@', lambda found: str(words.get(found[1], found[0])), template)
    return template


def wrapped(values: Iterable[str], indent: str = '  ') -> str:
    """Values on lines of up to 120 characters."""
    joined = ', '.join(values)
    return '\n'.join(textwrap.wrap(joined, 118, initial_indent=indent, subsequent_indent=indent,
                                   break_long_words=False, break_on_hyphens=False)) + '\n'
