# SPDX-License-Identifier: Apache-2.0
"""``examples/notebooks``: percent scripts that run as plain Python; `make docs` executes them as notebooks."""

import re
import runpy

import pytest
from matplotlib import pyplot
from source_tree import ROOT

import mbse_ros

NOTEBOOKS = sorted((ROOT / 'examples' / 'notebooks').glob('*.py'))


@pytest.mark.parametrize('path', NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_as_plain_python(path, tmp_path, monkeypatch, capsys):
    """What they claim, they assert."""
    monkeypatch.chdir(tmp_path)
    if path.stem == 'observers_compared':       # short runs of many filters; the others run as users have them
        monkeypatch.setenv('MBSE_BACKEND', 'vm')
    text = path.read_text()
    assert 'format_name: percent' in text and re.search(r'^# %% \[markdown\]\n# # ', text, re.MULTILINE)
    assert text.count('\nassert ') + text.count('\n    assert ') >= 2
    try:
        runpy.run_path(str(path), run_name='__main__')
        assert pyplot.get_fignums() and capsys.readouterr().out and not list(tmp_path.iterdir())
    finally:
        pyplot.close('all')


@pytest.mark.parametrize('path', NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_use_the_public_names_alone(path):
    """What has the package's name is the module itself, and its names are those of ``__all__``."""
    text = path.read_text()
    assert re.findall(r'^.*\bmbse_ros\b.*$', text, re.MULTILINE) == ['import mbse_ros as mbse']
    assert set(re.findall(r'^(?!#).*?\bmbse\.(\w+)', text, re.MULTILINE)) <= set(mbse_ros.__all__)


def test_four_notebooks_are_listed():
    listed = re.findall(r'\]\(notebooks/(\w+)\.py\)', (ROOT / 'examples' / 'README.md').read_text())
    assert sorted(listed) == [path.stem for path in NOTEBOOKS] and len(listed) == 4


def test_every_example_is_listed():
    listed = re.findall(r'\]\((\w+)\.py\)', (ROOT / 'examples' / 'README.md').read_text())
    assert sorted(listed) == sorted(path.stem for path in (ROOT / 'examples').glob('*.py'))


def test_continuous_integration_builds_the_documentation():
    """Its errors and warnings fail the run, also from beside the linter."""
    text = (ROOT / '.ci' / 'run').read_text()
    assert re.search(r'^\{ .* && make docs .*\} >\S+ 2>&1 &\ndocs=\$!\n(.*\n)+wait "\$docs" \|\| status=1$', text,
                     re.MULTILINE) and 'pipefail' in text
