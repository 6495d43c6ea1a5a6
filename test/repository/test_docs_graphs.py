# SPDX-License-Identifier: Apache-2.0
"""docs/factor_graphs.md: its Python and its commands run, its links lead somewhere."""

import re
import shlex
from pathlib import Path

import pytest
from cli_support import mbse

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / 'docs' / 'factor_graphs.md').read_text()
BLOCKS = re.findall(r'^```(\w+)\n(.*?)^```$', TEXT, re.MULTILINE | re.DOTALL)
LINES = [line for name, text in BLOCKS if name == 'sh' for line in text.splitlines()]


def test_python():
    pytest.importorskip('gtsam', reason='the extra graph is not installed')
    blocks = [text for name, text in BLOCKS if name == 'python']
    assert blocks
    exec(compile('\n'.join(blocks), 'docs/factor_graphs.md', 'exec'), {})


@pytest.mark.usefixtures('vm')
@pytest.mark.parametrize('line', LINES)
def test_commands(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line)
    assert words[0] == './mbse'
    done = mbse(*words[1:])
    assert done.status == 0, done.err


def test_links():
    for target in re.findall(r'\]\(([^)#]+)\)', TEXT):
        assert (ROOT / 'docs' / target).exists(), target
