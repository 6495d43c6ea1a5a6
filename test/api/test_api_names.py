# SPDX-License-Identifier: Apache-2.0
"""``import mbse_ros as mbse``: the public names, imported when they are used, documented, and no ROS among them."""

import inspect
import subprocess
import sys

import pytest
from source_tree import ROOT, imports, modules

import mbse_ros as mbse

HEAVY = ('casadi', 'numpy', 'scipy', 'matplotlib', 'pandas', 'rosbags', 'gtsam', 'rclpy', 'typer')


def loaded_after(code):
    """Modules of HEAVY that a fresh interpreter has after some code."""
    code += f'\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules))'
    done = subprocess.run([sys.executable, '-c', code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_top_level_imports_nothing_heavy():
    assert not loaded_after('import mbse_ros\ndir(mbse_ros)')


def test_names_need_neither_ros_nor_pictures_nor_tables():
    names = ', '.join(f'mbse_ros.{name}' for name in mbse.__all__)
    assert loaded_after(f'import mbse_ros\nprint(len([{names}]))').isdisjoint(
        {'matplotlib', 'pandas', 'rclpy', 'gtsam', 'typer'})


@pytest.mark.parametrize('name', mbse.__all__)
def test_each_name_is_there_and_documented(name):
    item = getattr(mbse, name)
    assert name in dir(mbse) and inspect.getdoc(item)
    assert f'`{name}`' in (ROOT / 'docs' / 'python_api.md').read_text()


def test_names_for_type_checkers_are_the_same():
    source = (ROOT / 'mbse_ros' / '__init__.py').read_text()
    named = {name.rpartition('.')[2] for name in imports(ROOT / 'mbse_ros' / '__init__.py', source)
             if name.startswith('mbse_ros.')}
    assert {*mbse.__all__, '__version__'} == named


def test_an_unknown_name():
    with pytest.raises(AttributeError, match='weigh'):
        mbse.weigh      # noqa: B018 (what raises)


def test_the_room_knows_neither_command_line_nor_nodes():
    taken = {name.split('.')[1] for path in modules('mbse_ros/api') for name in imports(path)
             if name.startswith('mbse_ros.')}
    assert 'dynamics' in taken and taken.isdisjoint({'cli', 'nodes', 'msg'})
