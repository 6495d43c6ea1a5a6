# SPDX-License-Identifier: Apache-2.0
"""docs/estimators.md, docs/factor_graphs.md: their Python and commands run, names exist, the sensor is read."""

import re
import shlex
from pathlib import Path

import pytest
import yaml
from cli_support import mbse

from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.model import Model
from mbse_ros.filters.filters import FILTERS

ROOT = Path(__file__).parents[2]
TEXTS = {page: (ROOT / 'docs' / page).read_text() for page in ('estimators.md', 'factor_graphs.md')}


def blocks(page, kind):
    return re.findall(rf'^```{kind}\n(.*?)^```$', TEXTS[page], re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize('page', TEXTS)
def test_python(page):
    if 'graph' in page:
        pytest.importorskip('gtsam', reason='the extra graph is not installed')
    assert blocks(page, 'python')
    exec(compile('\n'.join(blocks(page, 'python')), f'docs/{page}', 'exec'), {})


@pytest.mark.usefixtures('vm')
@pytest.mark.parametrize('line', [line for page in TEXTS for text in blocks(page, 'sh') for line in text.splitlines()])
def test_commands(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line)
    assert words[0] == './mbse'
    done = mbse(*words[1:])
    assert done.status == 0, done.err


def test_every_filter_has_its_words():
    for name in FILTERS:
        assert re.search(rf'(?<![\w_]){name}(?![\w_])', TEXTS['estimators.md']), name


def test_the_sensor_is_read():
    tree = yaml.safe_load((ROOT / 'config' / 'mechanisms' / 'four_bar.yaml').read_text())
    tree['sensors'] = {**tree['sensors'], **yaml.safe_load(blocks('estimators.md', 'yaml')[0])['sensors']}
    assert 'rocker_gyro' in Model(parse_mechanism(yaml.safe_dump(tree)), backend='vm').description.sensors
