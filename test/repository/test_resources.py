# SPDX-License-Identifier: Apache-2.0
"""The shared files are found from the source tree and from an installation; else the error names the places."""

import re
import shutil
import subprocess
import sys
from errno import EACCES, ENOSPC
from pathlib import Path

import pytest

from mbse_ros import resources
from mbse_ros.errors import MbseError

ROOT = Path(__file__).resolve().parents[2]


def pretend_installed(prefix: Path, monkeypatch: pytest.MonkeyPatch, library: str = 'lib') -> None:
    """Put the module where an installation into the prefix has it."""
    package = prefix / library / 'python3.10' / 'site-packages' / 'mbse_ros'
    package.mkdir(parents=True)
    monkeypatch.setattr(resources, '__file__', str(package / 'resources.py'))


def make_share(prefix: Path) -> Path:
    share = prefix / 'share' / 'mbse_ros'
    for folder in ('config', 'msg'):
        (share / folder).mkdir(parents=True)
    return share


def test_the_source_tree_comes_first(monkeypatch, tmp_path):
    make_share(tmp_path)
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    assert resources.share_directory() == ROOT


def test_an_installation_is_found_by_the_prefix_path(monkeypatch, tmp_path):
    pretend_installed(tmp_path / 'elsewhere', monkeypatch)
    share = make_share(tmp_path / 'second')
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'{tmp_path / "first"}:{tmp_path / "second"}')
    assert resources.share_directory() == share


@pytest.mark.parametrize('library', ['lib', 'local/lib'])
def test_an_installation_is_found_by_its_own_place(monkeypatch, tmp_path, library):
    pretend_installed(tmp_path, monkeypatch, library)
    share = make_share(tmp_path)
    monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)
    assert resources.share_directory() == share


def test_nowhere_is_an_error_that_names_the_places(monkeypatch, tmp_path):
    pretend_installed(tmp_path, monkeypatch)
    shutil.rmtree(make_share(tmp_path) / 'msg')
    monkeypatch.setenv('AMENT_PREFIX_PATH', '/opt/somewhere')
    with pytest.raises(MbseError, match='/opt/somewhere/share/mbse_ros'):
        resources.share_directory()


@pytest.mark.parametrize('error', [OSError(ENOSPC, 'No space left on device'), PermissionError(EACCES, 'no', 'beside')])
@pytest.mark.parametrize('where', ['open', 'sync'])
def test_a_file_that_cannot_be_written_is_named(monkeypatch, tmp_path, error, where):
    """Not the one beside it; and what was there is as it was."""
    def fail(*_):
        raise error

    path = tmp_path / 'result.json'
    path.write_text('before')
    monkeypatch.setattr(resources, 'synced', fail if where == 'sync' else lambda path: None)
    with pytest.raises(OSError, match='no|No') as caught:
        resources.write_whole(path, fail if where == 'open' else 'after')
    assert (caught.value.filename, caught.value.errno) == (str(path), error.errno)
    assert [item.name for item in tmp_path.iterdir()] == ['result.json'] and path.read_text() == 'before'


FULL = """
import resource, sys
from errno import EFBIG
from pathlib import Path
import numpy as np
from mbse_ros.report.data import Curve, Panel
from mbse_ros.report.files import write_json, write_table
from mbse_ros.report.plots import write_plots
folder, numbers = Path(sys.argv[1]), np.linspace(0, 1, 1000) ** 3
ways = {'x.csv': lambda path: write_table(path, ['t'], [numbers]), 'x.json': lambda path: write_json(path, numbers),
        'x.png': lambda path: write_plots([Panel('p', 'm', curves=[Curve('c', numbers, numbers)])], path)}
for name in ways:
    (folder / name).write_text('before')
sys.dont_write_bytecode = True       # a module that is imported now would leave 1000 bytes of its code for good
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
for name, write in ways.items():
    try:
        write(folder / name)
    except OSError as error:
        assert error.errno == EFBIG
        print(name, (folder / name).read_text())
"""


def test_nothing_half_written_is_left_on_a_full_disk(tmp_path):
    """A limit on the size of files fails in the middle of a file, as a full disk does."""
    done = subprocess.run([sys.executable, '-c', FULL, str(tmp_path)], cwd=ROOT, capture_output=True, text=True,
                          check=True)
    assert done.stdout.splitlines() == [f'{name} before' for name in ('x.csv', 'x.json', 'x.png')]
    assert sorted(path.name for path in tmp_path.iterdir()) == ['x.csv', 'x.json', 'x.png']


# who writes otherwise: bags (closed above a limit), the cache (sealed), rows that are appended, locks, demos
OTHERWISE = {'bags', 'compiled/cache.py', 'nodes/measuring', 'offline/fleet.py', 'resources.py', 'scale/table.py',
             'studies/many.py'}


def test_results_are_written_whole_or_not_at_all():
    """By ``write_whole``, whose functions get the ``part`` beside the file."""
    writes = re.compile(r"\.(write_text|write_bytes|savefig|savez)\((?!part)|open\([^)]*'[wax]b?'")
    found = [f'{path.relative_to(ROOT)}: {line.strip()}' for path in (ROOT / 'mbse_ros').rglob('*.py')
             if not any(path.is_relative_to(ROOT / 'mbse_ros' / place) for place in OTHERWISE)
             for line in path.read_text().splitlines()
             if writes.search(line) and not ('open(part' in line or '>>>' in line)]
    assert not found
