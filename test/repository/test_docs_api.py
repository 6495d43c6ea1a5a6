# SPDX-License-Identifier: Apache-2.0
"""docs/api_reference.md: all public names are there, and what is there exists and has a docstring."""

import inspect
import re
from importlib import import_module

import pytest
from source_tree import ROOT

import mbse_ros

PAGE = (ROOT / 'docs' / 'api_reference.md').read_text()
NAMED = re.findall(r'^\.\. auto(function|class):: ([\w.]+)$', PAGE, re.MULTILINE)


def test_all_public_names_are_documented():
    documented = {name.removeprefix('mbse_ros.') for _, name in NAMED}
    assert set(mbse_ros.__all__) - {'errors'} <= documented
    assert '.. automodule:: mbse_ros.errors' in PAGE


@pytest.mark.parametrize(('kind', 'name'), NAMED, ids=lambda value: value.rpartition('.')[2])
def test_what_is_documented_exists(kind, name):
    module, _, item = (name if '.' in name else f'mbse_ros.{name}').rpartition('.')
    found = getattr(import_module(module), item)
    assert inspect.isclass(found) is (kind == 'class') and inspect.getdoc(found)
