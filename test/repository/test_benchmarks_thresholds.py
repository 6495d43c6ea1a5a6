# SPDX-License-Identifier: Apache-2.0
"""benchmarks/thresholds.py finds the numbers of a module, changes one alone, and knows modules and tests that exist."""

from __future__ import annotations

import pytest
from source_tree import ROOT
from thresholds import TESTS, moved, numbers

TEXT = '''from math import sqrt
A = 1.5         # s
B, C = 3, -0.5
D = (1 << 2) * sqrt(4.0)
E: int = 7
F = 2, 'word', 0.25
NAME, lower, G = 'text', 5, len('ab')
'''


@pytest.mark.parametrize('name, factor, value', [
    ('A', 2.0, 3.0), ('B', 2.0, 6), ('B', 0.5, 1), ('C', 0.5, -0.25), ('D', 2.0, 16.0), ('E', 0.5, 3),
    ('F[2]', 2.0, 0.5)])
def test_one_number_is_changed_and_keeps_its_type(name: str, factor: float, value: float) -> None:
    before: dict[str, object] = {}
    after: dict[str, object] = {}
    node = dict(numbers(TEXT))[name]
    exec(TEXT, before)
    exec(moved(TEXT, node, factor), after)
    changed = {key for key in before if key != '__builtins__' and before[key] != after[key]}
    own = name.partition('[')[0]
    found = after[own][2] if '[' in name else after[own]        # type: ignore[index]
    assert changed == {own} and found == value and type(found) is type(value)


def test_what_is_a_number() -> None:
    assert list(dict(numbers(TEXT))) == ['A', 'B', 'C', 'D', 'E', 'F[0]', 'F[2]']


def test_modules_and_their_tests_exist() -> None:
    assert all((ROOT / f'mbse_ros/{module}.py').is_file() for module in TESTS)
    assert all(list(ROOT.glob(f'test/*/test_{name}.py')) for tests in TESTS.values() for name in tests.split())
