# SPDX-License-Identifier: Apache-2.0
"""docs/mechanisms.md: its files load, its Python runs, its messages are the ones that come."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from cli_support import mbse
from printed import Checker, same, within

from mbse_ros.description.load import known_mechanisms, parse_mechanism
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.errors import DescriptionError
from mbse_ros.report.files import read_table

DOCS = Path(__file__).parents[2] / 'docs'
TEXT = (DOCS / 'mechanisms.md').read_text()
BLOCKS = re.findall(r'^```(\w+)\n(.*?)^```$', TEXT, re.MULTILINE | re.DOTALL)


def merged(tree, further):
    """Sections and their entries added or replaced."""
    return {**tree, **{key: {**tree[key], **value} if isinstance(value, dict) and isinstance(tree.get(key), dict)
                       else value for key, value in further.items()}}


def written(tree):
    return yaml.safe_dump(tree, sort_keys=False)


def read(text):
    return yaml.load(text, yaml.BaseLoader)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """All files of the page, as they are at its end, and those on the way."""
    folder, trees = tmp_path_factory.mktemp('page'), {}
    for kind, text in BLOCKS:
        head, _, body = text.partition('\n')
        if kind == 'xml':
            (folder / head.split()[1]).write_text(text)
        if kind == 'csv':
            (folder / 'stroke.csv').write_text(text)
        if kind != 'yaml' or head.startswith('# wrong'):
            continue
        name, new = head.split()[1].rstrip(',:'), read(body)
        if ': as ' in head:
            old, *without = re.search(r': as (\S+), without (\w+) and (\w+), and', head).groups()
            trees[name] = merged({key: value for key, value in trees[old].items() if key not in without}, new)
        else:
            trees[name] = merged(trees.get(name, {}), new)
        (folder / name).write_text(written(trees[name]))
        load_model(folder / name, backend='vm')
    return folder


def test_the_files_assemble(folder):
    expected = {'pump_jack': 1, 'pump_jack_driven': 0, 'hatch': 1, 'arm': 2, 'wheels': 1}
    assert {path.stem for path in folder.glob('*.yaml')} == set(expected)
    for name, degrees in expected.items():
        model = load_model(folder / f'{name}.yaml', backend='vm')
        assert model.degrees_of_freedom == degrees
        assert np.max(np.abs(model.residual(model.start.q)[0])) < 1e-12


def test_the_python_sessions(folder, monkeypatch):
    monkeypatch.chdir(folder)
    session = '\n'.join(text for kind, text in BLOCKS if kind == 'python')
    example = doctest.DocTestParser().get_doctest(session, {}, 'mechanisms.md', None, 0)
    runner = doctest.DocTestRunner(Checker(), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(example)
    assert runner.failures == 0 and runner.tries > 15


def test_the_messages(folder):
    text, tried = (folder / 'pump_jack.yaml').read_text(), 0
    for (kind, body), (after, message) in zip(BLOCKS, BLOCKS[1:]):
        if kind == 'yaml' and body.startswith('# wrong in pump_jack.yaml') and after == 'text':
            with pytest.raises(DescriptionError) as caught:
                Model(parse_mechanism(written(merged(read(text), read(body))), 'pump_jack.yaml'), backend='vm')
            assert same(message, str(caught.value)), caught.value
            tried += 1
    assert tried == 3


QUICK = {'check': [], 'export-c': [], 'inverse': ['--duration', '0.1'],
         'simulate': ['--duration', '0.02', '--dt', '0.01']}


@pytest.mark.parametrize('command', re.findall(r'^(?:`)?(\./mbse \w[^`\n]*)', TEXT, re.MULTILINE))
def test_the_commands(folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    words = command.split()[1:]
    done = mbse(*words, *QUICK[words[0]])
    assert done.status == 0, done.err
    assert (folder / words[-1]).exists()


def test_the_table_is_the_drivers_motion(folder, tmp_path):
    found = []
    for words in ([folder / 'pump_jack_driven.yaml', '--duration', '6', '--dt', '1'],
                  [folder / 'pump_jack.yaml', '--motion', folder / 'stroke.csv']):
        assert mbse('inverse', *words, '-o', tmp_path / 'x').status == 0
        found.append(read_table(tmp_path / 'x' / 'inverse.csv')[1])
    assert found[0].shape == found[1].shape and np.abs(found[0]).max() > 1e3
    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_what_check_prints(folder, monkeypatch):
    """The table on the page, as the file is in step 2."""
    monkeypatch.chdir(folder)
    first = next(text for kind, text in BLOCKS if kind == 'yaml')
    Path('first.yaml').write_text(first)
    printed = mbse('check', 'first.yaml').out
    shown = next(text for kind, text in BLOCKS if kind == 'text' and text.startswith('equations of motion'))
    Path('first.yaml').unlink()
    assert within(shown, printed), printed


def test_the_table_names_all_mechanisms():
    table = TEXT[TEXT.index('## The mechanisms that come with it'):]
    rows = [line.split('|')[1] for line in table.splitlines() if line.startswith('| `')]
    named = {name for row in rows for name in re.findall(r'`(\w+)`', row)}
    assert named == set(known_mechanisms())
