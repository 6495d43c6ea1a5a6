# SPDX-License-Identifier: Apache-2.0
"""Do the tests of a room see that its code is wrong? Changes drawn over all rooms, one at a time, by their tests.

    tools/environment.sh python benchmarks/mutants.py --count 100 --json out/mutants.json
    tools/environment.sh python benchmarks/mutants.py --count 20 --rooms payload monitor --json out/mutants.json

A change is an operator, a comparison, a condition or a number of a function's body. Rooms are drawn by their lines, and
what is drawn depends on ``--seed`` and the code alone. The tests of the room run in a copy of the source tree until the
first one fails. What survives is printed with its line: it may change no result (a shortcut, a message), or a test is
missing. ``--json`` keeps what was found; such a change is not tried again while its line stays the same.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from thresholds import ROOT, copy_of_tree, tested

PAIRS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.MatMult: ast.Add, ast.Pow: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}


def changes(text: str) -> Iterator[tuple[ast.expr, str]]:
    """Expressions in functions of a module's text, and what each becomes."""
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        said = {inner for node in ast.walk(function) if isinstance(node, ast.JoinedStr) for inner in ast.walk(node)}
        for node in ast.walk(ast.Module(function.body, [])):
            new = changed(node) if isinstance(node, ast.expr) and node not in said else None
            if new is not None:     # not of messages, whose parts have no place before Python 3.12
                yield node, ast.unparse(new)


def changed(node: ast.expr) -> ast.expr | None:
    """Another expression in its place, or None."""
    if isinstance(node, ast.BinOp) and type(node.op) in PAIRS and not isinstance(node.left, ast.JoinedStr):
        return ast.BinOp(node.left, PAIRS[type(node.op)](), node.right)
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(PAIRS[type(node.op)](), node.values)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return ast.Compare(node.left, [PAIRS[type(node.ops[0])]()], node.comparators)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        return node.operand
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return ast.Constant(node.value * 2 if node.value else 1)
    return None


def drawn(rng: random.Random, files: list[Path]) -> tuple[Path, ast.expr, str]:
    """A file, by its lines, and one of its changes; a body of nested functions counts once more for each."""
    sizes = [len(file.read_text().splitlines()) for file in files]
    while True:
        file = rng.choices(files, sizes)[0]
        found = sorted(changes(file.read_text()), key=lambda pair: (pair[0].lineno, pair[0].col_offset, pair[1]))
        if found:
            return file, *rng.choice(found)


def run(count: int, seed: int, rooms: list[str], path: Path | None) -> dict[str, str]:
    """What became of each change, by ``file:line: old -> new``."""
    known: dict[str, str] = json.loads(path.read_text()) if path and path.exists() else {}
    rng, found = random.Random(seed), {}
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_of_tree(folder)
        files = sorted(file for file in (tree / 'mbse_ros').rglob('*.py')
                       if (tree / 'test' / file.relative_to(tree).parts[1]).is_dir()
                       and (not rooms or file.relative_to(tree).parts[1] in rooms))
        for _ in range(count):
            file, node, new = drawn(rng, files)
            text, room = file.read_text(), file.relative_to(tree).parts[1]
            old = ast.get_source_segment(text, node) or ''
            key = f'{file.relative_to(tree)}:{node.lineno}: {old} -> {new}'
            if key not in known:
                lines = text.splitlines(keepends=True)
                start = (sum(map(len, lines[:node.lineno - 1]))
                         + len(lines[node.lineno - 1].encode()[:node.col_offset].decode()))
                file.write_text(f'{text[:start]}({new}){text[start + len(old):]}')
                known[key], took = tested(tree, [f'test/{room}'])
                file.write_text(text)
                print(f'{took:6.1f} s  {key}: {known[key]}', flush=True)
            found[key] = known[key]
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(known, indent=1))
    return found


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--rooms', nargs='*', default=[], help='folders of mbse_ros [all that have tests]')
    parser.add_argument('--json', type=Path, help='file that keeps what was found')
    arguments = parser.parse_args()
    results = run(arguments.count, arguments.seed, arguments.rooms, arguments.json)
    print('\n'.join(key for key, state in sorted(results.items()) if state == 'survived'))
    print(dict(Counter(state.partition(':')[0] for state in results.values())), f'of {ROOT.name}')
