# SPDX-License-Identifier: Apache-2.0
"""docs/estimators.md: its Python and its commands run, its names exist, its sensor is read."""

import re
import shlex
from pathlib import Path

import pytest
import yaml
from cli_support import mbse

from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.model import Model
from mbse_ros.estimators.filters.filters import FILTERS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / 'docs' / 'estimators.md').read_text()
BLOCKS = re.findall(r'^```(\w+)\n(.*?)^```$', TEXT, re.MULTILINE | re.DOTALL)


def blocks(kind):
    return [text for name, text in BLOCKS if name == kind]


def test_python():
    assert blocks('python')
    exec(compile('\n'.join(blocks('python')), 'docs/estimators.md', 'exec'), {})


@pytest.mark.parametrize('line', [line for text in blocks('sh') for line in text.splitlines()])
def test_commands(line, tmp_path):
    words = shlex.split(line)
    assert words[0] == './mbse'
    done = mbse(*words[1:])
    assert done.status == 0, done.err


def test_every_filter_has_its_words():
    for name in FILTERS:
        assert re.search(rf'(?<![\w_]){name}(?![\w_])', TEXT), name


def test_the_sensor_is_read():
    tree = yaml.safe_load((ROOT / 'config' / 'mechanisms' / 'four_bar.yaml').read_text())
    tree['sensors'] = {**tree['sensors'], **yaml.safe_load(blocks('yaml')[0])['sensors']}
    assert 'rocker_gyro' in Model(parse_mechanism(yaml.safe_dump(tree)), backend='vm').description.sensors


def test_links():
    for target in re.findall(r'\]\(([^)#]+)\)', TEXT):
        assert (ROOT / 'docs' / target).exists(), target
