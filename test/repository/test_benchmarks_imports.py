# SPDX-License-Identifier: Apache-2.0
"""Scripts in benchmarks find what they import, whatever folder they are called from: by the paths that they add."""

from __future__ import annotations

import ast
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest
from source_tree import ROOT

SCRIPTS = sorted(path for path in (ROOT / 'benchmarks').glob('*.py') if '__main__' in path.read_text())
SITES = [place for place in sys.path if not Path(place or '.').resolve().is_relative_to(ROOT / 'test')]


def missing(text: str, path: Path) -> list[str]:
    """Top-level imports of a script that it would not find; its lines that set ``sys.path`` are run for it."""
    tree = ast.parse(text).body
    before, names = list(sys.path), {'__file__': str(path)}
    sys.path[:] = [str(path.parent), *SITES]
    try:
        for node in tree:
            adds = isinstance(node, (ast.Assign, ast.Expr)) and 'sys.path' in ast.unparse(node)
            if adds or isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == 'ROOT' or (
                    isinstance(node, (ast.Import, ast.ImportFrom)) and ast.unparse(node) in (
                        'import sys', 'from pathlib import Path')):
                exec(ast.unparse(node), names)
        wanted = [alias.name for node in tree if isinstance(node, ast.Import) for alias in node.names]
        wanted += [node.module for node in tree if isinstance(node, ast.ImportFrom) and node.module and not node.level]
        first = dict.fromkeys(name.partition('.')[0] for name in wanted)
        return [name for name in first if name not in sys.builtin_module_names and name not in sys.stdlib_module_names
                and PathFinder.find_spec(name, sys.path) is None]
    finally:
        sys.path[:] = before


@pytest.mark.parametrize('path', SCRIPTS, ids=lambda path: path.stem)
def test_what_a_script_imports_is_found(path):
    """`benchmarks/display.py` and three others ended at `import conftest`: the command of docs/display.md, too."""
    assert missing(path.read_text(), path) == []


def test_what_is_not_found_is_named():
    text = 'import sys\nfrom pathlib import Path\nROOT = Path(__file__).resolve().parents[1]\n'
    text += "sys.path[:0] = [str(ROOT / 'test' / 'support')]\nimport conftest\nimport nodes_support\n"
    assert missing(text, ROOT / 'benchmarks' / 'x.py') == ['conftest'] and len(SCRIPTS) > 20
