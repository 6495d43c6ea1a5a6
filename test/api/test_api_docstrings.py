# SPDX-License-Identifier: Apache-2.0
"""Every public function and class has an example in its docstring, and it gives what it says."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path

import numpy as np
import pytest

import mbse_ros

NAMES = [name for name in mbse_ros.__all__ if callable(getattr(mbse_ros, name))]


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the bag that the examples read."""
    folder = tmp_path_factory.mktemp('examples')
    mbse_ros.write_bag(folder / 'lift', mbse_ros.simulate('patu655_lift', payload=200.0, duration=8.0))
    return folder


@pytest.mark.parametrize('name', NAMES)
def test_the_example_is_true(name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path if name == 'write_bag' else folder)
    public = {other: getattr(mbse_ros, other) for other in NAMES}
    text = inspect.getdoc(getattr(mbse_ros, name)) or ''
    test = doctest.DocTestParser().get_doctest(text, {'np': np, **public}, name, None, None)
    assert test.examples
    found: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(test, out=found.append)
    assert not found, ''.join(found)
