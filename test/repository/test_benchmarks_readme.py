# SPDX-License-Identifier: Apache-2.0
"""benchmarks/README.md lists all scripts, with what their heads say and a command each."""

from __future__ import annotations

import ast
import re

from source_tree import ROOT

from mbse_ros.cli.benchmark import IN_SOURCES

FOLDER = ROOT / 'benchmarks'
TEXT = (FOLDER / 'README.md').read_text()


def heads() -> list[tuple[str, str]]:
    """Files of the folder with the first sentences of their heads: scripts, then modules that they share."""
    found: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for path in sorted(FOLDER.glob('*.py')):
        head = ast.get_docstring(ast.parse(path.read_text())) or ''
        what = ' '.join(head.split('\n\n')[0].split()).replace('``', '`')
        found['__main__' in path.read_text()].append((path.name, what))
    return found[True] + found[False]


def test_all_scripts_are_listed():
    """Behind the name of a script come its options."""
    assert re.findall(r'^\| `(\w+\.py)[^|]*` \| (.*) \|$', TEXT, re.MULTILINE) == heads() and len(heads()) > 40


def test_all_studies_are_listed():
    listed = re.findall(r'^\| `mbse benchmark (\w+)', TEXT, re.MULTILINE)
    studies = {path.stem for path in (FOLDER / 'studies').glob('*.py')}
    assert listed == list(IN_SOURCES) and set(listed) < studies
