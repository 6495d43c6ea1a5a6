# SPDX-License-Identifier: Apache-2.0
"""Every example of docs/mechanism_yaml.md loads; a fragment is laid over the whole file that stands before it."""

import re
from pathlib import Path

import pytest
import yaml
from machine_variants import laid_over

from mbse_ros.description.explain import explain
from mbse_ros.description.language.expressions import FUNCTIONS
from mbse_ros.description.load import parse_mechanism

TEXT = (Path(__file__).parents[2] / 'docs' / 'mechanism_yaml.md').read_text(encoding='utf-8')
BLOCKS = re.findall(r'```yaml\n(.*?)```', TEXT, re.DOTALL)


def examples():
    whole = None
    for block in BLOCKS:
        tree = yaml.load(block, Loader=yaml.BaseLoader)
        whole = tree if 'format' in tree else laid_over(whole, tree)
        yield yaml.safe_dump(whole, sort_keys=False)


@pytest.mark.parametrize('text', list(examples()))
def test_examples_load(text):
    mechanism = parse_mechanism(text)
    assert all(row.value for section in explain(mechanism) for row in section.rows)


def test_the_page_names_all_functions():
    assert all(re.search(rf'\b{name}\b', TEXT) for name in FUNCTIONS)
