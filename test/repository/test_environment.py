# SPDX-License-Identifier: Apache-2.0
"""The scripts that choose and make the environment, run in a small tree with a stand-in for the slow part."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCED = ('python', 'test', 'graph', 'display', 'cluster', 'parquet', 'table')     # lists beside a sourced ROS
STAND_IN = r"""#!/usr/bin/env bash
echo "making ${1##*/} from ${@:3}" >&2
mkdir -p "$1/bin"
printf '%s\n' "$2" >"$1/.made_from"
"""
BESIDE = r"""#!/usr/bin/env bash
folder=$1.$(sha256sum <<<"$2" | cut -c 1-12)
mkdir -p "$folder/bin"
touch "$folder/bin/a library"
printf '%s\n' "$2" >"$folder/.made_from"
"${0%/*}/switch_environment.sh" "$1" "$folder"
"""
INHERITED = ('HASHES', 'ROS', 'MBSE_ROS_ENVIRONMENT', 'AMENT_PREFIX_PATH', 'ROS_DISTRO', 'PYTHONPATH')


@pytest.fixture
def tree(tmp_path):
    """A folder with what the environment is made from."""
    root = tmp_path / 'a tree'
    for name in ('tools/requirements', 'cmake', 'msg', '.env'):
        (root / name).mkdir(parents=True)
    shutil.copy(ROOT / 'tools' / 'environment.sh', root / 'tools')
    script = root / 'tools' / 'make_environment.sh'
    script.write_text(STAND_IN)
    script.chmod(0o755)
    for name in ('CMakeLists.txt', 'package.xml', 'cmake/a', 'msg/A.msg', *(f'tools/requirements/{name}' for name in (
            *(f'{part}.in' for part in SOURCED), 'ros-jazzy.txt', 'ros-kilted.txt', 'ros-jazzy.hashed.txt'))):
        (root / name).write_text(name)
    return root


def run(tree, *command, **variables):
    """Run a command in the tree's environment: what it printed, and what was made."""
    environment = {key: value for key, value in os.environ.items() if key not in INHERITED}
    done = subprocess.run([tree / 'tools' / 'environment.sh', *command], env={**environment, **variables},
                          capture_output=True, text=True, timeout=300)
    return done.stdout, done.stderr


def sourced_ros(folder):
    (folder / 'share' / 'rclpy').mkdir(parents=True)
    (folder / 'share' / 'rclpy' / 'package.xml').touch()
    return str(folder)


def test_wheels_of_jazzy_by_default_and_only_once(tree):
    assert run(tree, 'printenv', 'ROS_DISTRO') == ('jazzy\n', 'making jazzy from tools/requirements/ros-jazzy.txt\n')
    assert run(tree, 'printenv', 'AMENT_PREFIX_PATH') == (f'{tree}/.env/jazzy\n', '')


@pytest.mark.parametrize('change', ['CMakeLists.txt', 'package.xml', 'msg/A.msg', 'tools/requirements/ros-jazzy.txt'])
def test_a_changed_file_rebuilds_it(tree, change):
    run(tree)
    (tree / change).write_text('something else')
    assert 'making jazzy' in run(tree)[1]
    assert run(tree) == ('', '')


@pytest.fixture
def beside(tree):
    """The tree, where the stand-in makes each environment in a folder of its own, as the slow part does."""
    (tree / 'tools' / 'make_environment.sh').write_text(BESIDE)
    shutil.copy(ROOT / 'tools' / 'switch_environment.sh', tree / 'tools')
    return tree


def change(tree, text):
    """The folder that stands for the environment once a message has changed."""
    (tree / 'msg' / 'A.msg').write_text(text)
    run(tree)
    return (tree / '.env' / 'jazzy').resolve()


# What a process uses of its environment: by the path, where environment.sh has started it, or by a library, else.
BY_PATH = 'import os, sys; print(os.environ["AMENT_PREFIX_PATH"], flush=True); sys.stdin.read()'
BY_LIBRARY = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
assert libc.mmap(None, ctypes.c_size_t(4096), 1, 2, os.open(sys.argv[1], os.O_RDONLY), ctypes.c_size_t(0))
print(os.path.dirname(os.path.dirname(sys.argv[1])), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize('started', ['by environment.sh', 'by itself', 'by a process that has ended'])
def test_what_runs_keeps_its_environment_while_another_is_made(beside, started):
    """It is removed once nothing uses it, when the next one is made."""
    first = change(beside, 'first')
    command = {'by environment.sh': [beside / 'tools' / 'environment.sh', sys.executable, '-c', BY_PATH],
               'by itself': [sys.executable, '-c', BY_LIBRARY, first / 'bin' / 'a library'],
               'by a process that has ended': [beside / 'tools' / 'environment.sh', 'bash', '-c',
                                               '"$0" -c "$1" <&0 & exit', sys.executable, BY_PATH]}[started]
    (first / 'bin' / 'a library').write_bytes(bytes(4096))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().strip() == str(first)
        second = change(beside, 'second')
        assert second != first and (first / 'bin').is_dir() and (second / '.made_from').is_file()
        assert run(beside, 'printenv', 'VIRTUAL_ENV') == (f'{second}\n', '')
    finally:
        process.communicate(timeout=60)     # the end of its input ends it
    third = change(beside, 'third')
    assert sorted(path.name for path in (beside / '.env').iterdir()) == ['jazzy', third.name]


def test_the_folder_of_a_version_without_links_is_replaced(beside):
    (beside / '.env' / 'jazzy').mkdir()
    first = change(beside, 'first')
    assert first.name.startswith('jazzy.') and [p.name for p in (beside / '.env').iterdir() if not p.is_symlink()] == [
        first.name]


def test_hashes_are_asked_for_once(tree):
    assert run(tree, HASHES='1')[1] == 'making jazzy from tools/requirements/ros-jazzy.hashed.txt\n'
    assert run(tree) == ('', '')
    (tree / '.env' / 'hashes').unlink()
    assert run(tree)[1] == 'making jazzy from tools/requirements/ros-jazzy.txt\n'


@pytest.mark.parametrize('ros', ('jazzy', 'kilted'))
def test_the_list_with_hashes_has_the_same_versions(ros):
    folder = ROOT / 'tools' / 'requirements'
    hashed = (folder / f'ros-{ros}.hashed.txt').read_text().splitlines()
    plain = [line.removesuffix(' \\') for line in hashed if '--hash=' not in line]
    assert plain == (folder / f'ros-{ros}.txt').read_text().splitlines()
    for line, after in zip(hashed, [*hashed[1:], '']):
        assert '--hash=' in line or '--hash=sha256:' in after


def test_a_new_message_rebuilds_it(tree):
    run(tree)
    (tree / 'msg' / 'B.msg').touch()
    assert 'making jazzy' in run(tree)[1]


def test_a_sourced_ros_is_used(tree, tmp_path):
    prefix = sourced_ros(tmp_path / 'ros')
    output, made = run(tree, 'printenv', 'AMENT_PREFIX_PATH', AMENT_PREFIX_PATH=prefix, ROS_DISTRO='humble')
    assert output == f'{tree}/.env/sourced-humble:{prefix}\n'
    lists = ' '.join(f'tools/requirements/{name}.in' for name in SOURCED)
    assert made == f'making sourced-humble from {lists}\n'


def test_a_prefix_without_rclpy_is_no_ros(tree, tmp_path):
    assert 'making jazzy' in run(tree, AMENT_PREFIX_PATH=str(tmp_path))[1]


def test_a_named_ros_hides_the_sourced_one(tree, tmp_path):
    prefix = sourced_ros(tmp_path / 'ros')
    output, made = run(tree, 'sh', '-c', 'echo $AMENT_PREFIX_PATH $PYTHONPATH', ROS='kilted', AMENT_PREFIX_PATH=prefix,
                       ROS_DISTRO='jazzy', PYTHONPATH=f'{prefix}/lib/python')
    assert output == f'{tree}/.env/kilted\n'
    assert 'making kilted' in made


def test_a_process_inside_stays_inside(tree):
    script = tree / 'tools' / 'environment.sh'
    run(tree, ROS='kilted')
    assert run(tree, script, script, 'printenv', 'ROS_DISTRO', ROS='kilted') == ('kilted\n', '')
    assert run(tree, 'env', '-u', 'ROS', script, 'printenv', 'ROS_DISTRO', ROS='kilted') == ('kilted\n', '')
    output, made = run(tree, 'env', 'ROS=jazzy', script, 'printenv', 'ROS_DISTRO', ROS='kilted')
    assert output == 'jazzy\n' and 'making jazzy' in made


def test_an_unknown_ros_is_refused(tree):
    assert run(tree, 'true', ROS='foxy')[1] == (
        'mbse_ros: ROS=foxy: expected jazzy or kilted (or no ROS= and a sourced ROS 2)\n')


def test_without_root_missing_packages_are_one_line_to_type(tmp_path):
    user = tmp_path / 'id'
    user.write_text('#!/bin/sh\necho 1000\n')
    user.chmod(0o755)
    done = subprocess.run([ROOT / 'tools' / 'system_packages.sh', 'cmake', 'g++'], capture_output=True, text=True,
                          env={**os.environ, 'PATH': f'{tmp_path}:{os.environ["PATH"]}'}, timeout=300)
    assert done.returncode == 1
    assert done.stderr == 'mbse_ros: system packages are missing; type: sudo apt-get install cmake g++\n'


def test_bytecode_is_kept_in_the_environment_where_it_is_kept_out_of_source_trees(tree):
    """Else each start would compile all that it imports. What somebody has chosen, or nobody has forbidden, stays."""
    show = 'bash', '-c', 'echo "${PYTHONDONTWRITEBYTECODE-no} ${PYTHONPYCACHEPREFIX-no}"'
    forbidden = {'PYTHONDONTWRITEBYTECODE': '1', 'PYTHONPYCACHEPREFIX': ''}
    assert run(tree, *show, **forbidden)[0] == f'no {tree}/.env/jazzy/bytecode\n'
    assert run(tree, *show, **{**forbidden, 'PYTHONPYCACHEPREFIX': '/var/own'})[0] == 'no /var/own\n'
    assert run(tree, *show, PYTHONDONTWRITEBYTECODE='', PYTHONPYCACHEPREFIX='')[0] == ' \n'
