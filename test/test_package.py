# SPDX-License-Identifier: Apache-2.0
"""package.xml, setup.py, CMakeLists.txt, the requirement lists and the tree say the same."""

import ast
import re
import shutil
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
import zipfile
from configparser import ConfigParser
from subprocess import run

import pytest
import yaml
from source_tree import ROOT, imports, modules

import mbse_ros

CMAKE = (ROOT / 'CMakeLists.txt').read_text()
SETUP = (ROOT / 'setup.py').read_text()
MANIFEST = ElementTree.parse(ROOT / 'package.xml').getroot()
CITATION = yaml.safe_load((ROOT / 'CITATION.cff').read_text())
DISTRIBUTION = {'yaml': 'pyyaml', 'PIL': 'pillow'}      # where the name to import is not the name to install
KEYS = {'casadi': 'casadi-pip', 'rosbags': 'python3-rosbags-pip', 'pillow': 'python3-pil', 'pyyaml': 'python3-yaml'}
WITHOUT_KEY = {'lz4', 'mcap', 'pint', 'plotly', 'simpleeval', 'zstandard'}    # rosdep knows none: docs/installation.md
REQUIREMENTS = ROOT / 'tools' / 'requirements'


def required(name):
    """Lines of a requirement list: name of the distribution -> the rest."""
    lines = [line for line in (REQUIREMENTS / name).read_text().splitlines() if line and not line.startswith('#')]
    return {match[1].lower(): match[2] for line in lines if (match := re.match(r'([\w.-]+)(.*)', line))}


def depends(*kinds):
    return {item.text for kind in kinds for item in MANIFEST.iter(kind)}


def test_nodes_are_the_same_everywhere():
    in_tree = {path.stem for path in (ROOT / 'mbse_ros' / 'nodes').glob('*_node*.py')}      # machine_nodes, too
    in_cmake = set(re.search(r'set\(nodes ([^)]*)\)', CMAKE)[1].split())
    assert in_tree == in_cmake


def test_only_the_command_line_gets_on_the_path(tmp_path):
    """`ros2 run` finds the nodes in lib/mbse_ros; on PATH, by pip, their names would be too general."""
    pytest.importorskip('setuptools')
    run([sys.executable, 'setup.py', '-q', 'egg_info', '--egg-base', str(tmp_path)], cwd=ROOT, check=True)
    entries = ConfigParser()
    entries.read(tmp_path / 'mbse_ros.egg-info' / 'entry_points.txt')
    assert dict(entries['console_scripts']) == {'mbse': 'mbse_ros.cli:main'}


def test_a_source_distribution_becomes_a_wheel_with_all_that_is_needed(tmp_path):
    """From the sdist alone, as pip does; without ROS, so without the messages' Python classes. Of a copy: setuptools
    writes beside what it packs."""
    pytest.importorskip('setuptools', '70.1', 'bdist_wheel is in setuptools from 70.1 on')
    copy = shutil.copytree(ROOT, tmp_path / 'copy', ignore=shutil.ignore_patterns(
        '.git', '.env', '.hypothesis', '.*_cache', '__pycache__', 'build', 'install', 'log', 'out'))
    setup = [sys.executable, 'setup.py', '-q', 'egg_info', '--egg-base']
    run([*setup, tmp_path, 'sdist', '-d', tmp_path], cwd=copy, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob('*.tar.gz'))) as archive:
        archive.extractall(tmp_path)
    unpacked = next(tmp_path.glob('mbse_ros-*/setup.py')).parent
    run([*setup, unpacked, 'bdist_wheel', '-d', tmp_path], cwd=unpacked, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob('*.whl'))) as wheel:
        held = set(wheel.namelist())
    ours = {str(path.relative_to(ROOT)) for path in (ROOT / 'mbse_ros').rglob('*')
            if path.is_file() and path.suffix != '.pyc'}
    data = 'mbse_ros-0.1.0.data/data/share/mbse_ros'
    shared = {f'{data}/{path.relative_to(ROOT)}' for folder in ('config', 'launch', 'msg', 'rviz')
              for path in (ROOT / folder).rglob('*') if path.is_file()}
    assert ours and shared and ours | shared <= held, (ours | shared) - held


@pytest.mark.parametrize('path', sorted((ROOT / 'mbse_ros' / 'nodes').glob('*_node.py')), ids=lambda path: path.stem)
def test_each_node_has_a_main(path):
    names = {target.id for node in ast.parse(path.read_text()).body if isinstance(node, ast.Assign)
             for target in node.targets}
    assert 'main' in names


def test_messages_are_all_built():
    assert set(re.findall(r'"msg/(\w+\.msg)"', CMAKE)) == {path.name for path in (ROOT / 'msg').iterdir()}


def test_shared_folders_are_the_same_everywhere():
    in_cmake = set(re.search(r'set\(shared ([^)]*)\)', CMAKE)[1].split())
    in_setup = set(ast.literal_eval(re.search(r'SHARED = (\[[^\]]*\])', SETUP)[1]))
    assert in_cmake | {'msg'} == in_setup       # the messages are installed by rosidl
    assert all((ROOT / folder).is_dir() for folder in in_setup)


def test_version_is_the_same_everywhere():
    assert MANIFEST.find('version').text == re.search(r"version='([^']*)'", SETUP)[1] == mbse_ros.__version__
    assert CITATION['version'] == mbse_ros.__version__


def test_citation_says_what_the_package_and_the_page_of_papers_say():
    assert (CITATION['title'], CITATION['license']) == (MANIFEST.find('name').text, MANIFEST.find('license').text)
    assert CITATION['abstract'] == MANIFEST.find('description').text
    page = (ROOT / 'docs' / 'papers.md').read_text()
    cited = CITATION['references']
    assert [item['doi'] for item in cited] == re.findall(r'\[doi:([^\]]+)\]\(https://doi.org/\1\)', page)
    assert len(cited) == 5 and all(f'*{item["title"]}*. {item["journal"]}' in page for item in cited)
    assert all(f'{who["given-names"]} {who["family-names"]}' in page for item in cited for who in item['authors'])


def test_ruff_is_the_same_everywhere():
    hook = yaml.safe_load((ROOT / '.pre-commit-config.yaml').read_text())['repos'][0]['hooks'][0]
    assert hook['additional_dependencies'] == [f"ruff{required('lint.in')['ruff']}"]
    assert required('lint.in')['ruff'].startswith('==')


def test_ros_packages_in_use_are_declared():
    declared = depends('depend', 'exec_depend')
    ros = {name.split('.')[0] for folder in ('mbse_ros', 'launch') for path in modules(folder) for name in imports(path)
           if re.match(r'(rclpy|launch|launch_ros|\w+_msgs|\w+_interfaces|std_srvs)\b', name)}
    assert ros and ros <= declared


def test_python_packages_in_use_are_declared():
    used = {name.split('.')[0] for path in modules() for name in imports(path)} - set(sys.stdlib_module_names)
    ros = {name for name in used if re.match(r'(mbse_ros|rclpy|launch(_ros)?|\w+_(msgs|interfaces|srvs))$', name)}
    used = {DISTRIBUTION.get(name, name) for name in used - ros}
    assert 'numpy' in used and used <= {*required('python.in'), *required('graph.in'), *required('parquet.in'),
                                       *required('peers.in'), *required('table.in')}


def test_rosdep_keys_cover_the_requirements():
    keys = {KEYS.get(name, f'python3-{name}') for name in required('python.in') if name not in WITHOUT_KEY}
    assert keys <= depends('exec_depend')
    assert {f'python3-{name}' for name in required('test.in')} <= depends('test_depend')


@pytest.mark.parametrize('distro', ['jazzy', 'kilted'])
def test_locks_hold_all_that_is_required(distro):
    lock = required(f'ros-{distro}.txt')
    wanted = {**required('python.in'), **required('test.in'), **required(f'ros-{distro}.in')}
    assert set(wanted) <= set(lock)
    assert all('==' in rest for rest in lock.values())
    assert {name: rest for name, rest in wanted.items() if '==' in rest and '[' not in rest}.items() <= lock.items()
