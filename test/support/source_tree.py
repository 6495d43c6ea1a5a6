# SPDX-License-Identifier: Apache-2.0
"""The source tree as tests see it: its files, and what each module imports."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ('.ci', '.github', 'benchmarks', 'cmake', 'config', 'examples', 'launch', 'mbse_ros', 'msg', 'packaging',
           'rviz', 'srv', 'test', 'tools')


def files() -> Iterator[Path]:
    """All files of the project, without what builds and runs leave behind."""
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.name != '.git')      # a file in a worktree
    for folder in FOLDERS:
        yield from (path for path in (ROOT / folder).rglob('*') if path.is_file() and path.suffix != '.pyc')


@cache
def modules(folder: str = 'mbse_ros') -> list[Path]:
    """The Python modules below a folder."""
    return sorted((ROOT / folder).rglob('*.py'))


@lru_cache(maxsize=1)
def nodes(path: Path, text: str | None = None) -> tuple[ast.AST, ...]:
    """All of a module's syntax, or of another text in its place."""
    return tuple(ast.walk(ast.parse(path.read_text() if text is None else text)))


def imports(path: Path, text: str | None = None) -> tuple[str, ...]:
    """Dotted names of all a module imports, wherever in the file; relative imports are made absolute."""
    return _imports(path, text)


@cache
def _imports(path: Path, text: str | None) -> tuple[str, ...]:
    package, found = ('', *path.relative_to(ROOT).with_suffix('').parts), []
    for node in nodes(path, text):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[1:len(package) - node.level] if node.level else ()
            base = '.'.join((*base, *([node.module] if node.module else [])))
            found += [f'{base}.{alias.name}' for alias in node.names]
    return tuple(found)


def example(name: str) -> ModuleType:
    """An example of examples/ as a module, not run."""
    spec = importlib.util.spec_from_file_location(f'example_{name}', ROOT / 'examples' / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
