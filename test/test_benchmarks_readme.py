# SPDX-License-Identifier: Apache-2.0
"""benchmarks/README.md lists all scripts, with what their heads say and a command each."""

from __future__ import annotations

import ast
import re

from source_tree import ROOT

from mbse_ros.cli.studies import IN_SOURCES

FOLDER = ROOT / 'benchmarks'
TEXT = (FOLDER / 'README.md').read_text()


def rows() -> tuple[list[str], list[str]]:
    """Rows of scripts, with a command of the head, and of the modules that they share."""
    scripts, shared = [], []
    for path in sorted(FOLDER.glob('*.py')):
        head = ast.get_docstring(ast.parse(path.read_text())) or ''
        what = ' '.join(head.split('\n\n')[0].split()).replace('``', '`')
        commands = re.findall(rf'python (benchmarks/{path.name}[^\n`#]*)', head)
        if '__main__' in path.read_text():
            scripts.append(f'| `{commands[0].strip().removeprefix("benchmarks/")}` | {what} |' if commands
                           else f'{path.name}: no command in its head')
        else:
            shared.append(f'| `{path.name}` | {what} |')
    return scripts, shared


def test_all_scripts_are_listed():
    scripts, shared = rows()
    assert re.findall(r'^\| `\w+\.py.*$', TEXT, re.MULTILINE) == scripts + shared and len(scripts) > 30


def test_all_studies_are_listed():
    listed = re.findall(r'^\| `mbse benchmark (\w+)', TEXT, re.MULTILINE)
    studies = {path.stem for path in (FOLDER / 'studies').glob('*.py')}
    assert listed == list(IN_SOURCES) and set(listed) < studies
