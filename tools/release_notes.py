#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The section of CHANGELOG.rst of a version, where all files agree on it: tools/release_notes.py VERSION."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# file -> what stands before its version and after it
PLACES = {'mbse_ros/version.py': r"__version__ = '(.*)'", 'package.xml': r'<version>(.*)</version>',
          'CITATION.cff': r'\nversion: (.*)\n', 'packaging/conda/recipe.yaml': r'\n  version: (\d.*)\n',
          'CHANGELOG.rst': r'\^\n\n(\S+).*\n-+\n'}


def versions(root: Path = ROOT) -> dict[str, str]:
    """File -> the version that it names, '' where it names none."""
    found = {name: re.search(pattern, (root / name).read_text(encoding='utf-8')) for name, pattern in PLACES.items()}
    return {name: match[1] if match else '' for name, match in found.items()}


def notes(tag: str, root: Path = ROOT) -> str:
    """What the changelog says of the version; raises SystemExit where a file names another one."""
    others = [f'{name}: got {found!r}, expected {tag!r}' for name, found in versions(root).items() if found != tag]
    if others:
        raise SystemExit('\n'.join(others))
    text = (root / 'CHANGELOG.rst').read_text(encoding='utf-8')
    section = re.split(r'(?m)^\S.*\n-+\n', text)[1]
    return section.strip().replace('``', '`') + '\n'


if __name__ == '__main__':
    if len(sys.argv) != 2:
        raise SystemExit('usage: tools/release_notes.py VERSION')
    sys.stdout.write(notes(sys.argv[1]))
