# SPDX-License-Identifier: Apache-2.0
"""package.xml, pyproject.toml, CMakeLists.txt, the requirement lists and the tree say the same."""

import ast
import re
import shutil
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
import zipfile
from configparser import ConfigParser
from importlib import metadata
from importlib.util import module_from_spec, spec_from_file_location
from subprocess import run

import pytest
import release_notes
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from source_tree import ROOT, imports, modules

import mbse_ros

CMAKE = (ROOT / 'CMakeLists.txt').read_text()
SETUP = (ROOT / 'setup.py').read_text()
MANIFEST = ElementTree.parse(ROOT / 'package.xml').getroot()
CITATION = yaml.safe_load((ROOT / 'CITATION.cff').read_text())
# Where the name to import is not the name to install.
DISTRIBUTION = {'yaml': 'pyyaml', 'PIL': 'pillow', 'rerun': 'rerun-sdk'}
KEYS = {'pillow': 'python3-pil', 'pyyaml': 'python3-yaml'}
REQUIREMENTS = ROOT / 'tools' / 'requirements'
VENDORED = (REQUIREMENTS / 'vendored.in').read_text()
SPEC = spec_from_file_location('vendored', ROOT / 'cmake' / 'vendored.py')
vendored = module_from_spec(SPEC)
SPEC.loader.exec_module(vendored)


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
    pytest.importorskip('setuptools', '77', 'licences by SPDX are in setuptools from 77 on')
    run([sys.executable, 'setup.py', '-q', 'egg_info', '--egg-base', str(tmp_path)], cwd=ROOT, check=True)
    entries = ConfigParser()
    entries.read(tmp_path / 'mbse_ros.egg-info' / 'entry_points.txt')
    assert dict(entries['console_scripts']) == {'mbse': 'mbse_ros.cli:main'}


def test_a_source_distribution_becomes_a_wheel_with_all_that_is_needed(tmp_path):
    """From the sdist alone, as pip does; without ROS, so without the messages' Python classes. Of a copy: setuptools
    writes beside what it packs."""
    pytest.importorskip('setuptools', '77', 'licences by SPDX are in setuptools from 77 on')
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
    data = f'mbse_ros-{mbse_ros.__version__}.data/data/share/mbse_ros'
    shared = {f'{data}/{path.relative_to(ROOT)}' for folder in ('config', 'launch', 'msg', 'rviz')
              for path in (ROOT / folder).rglob('*') if path.is_file()}
    assert ours and shared and ours | shared <= held, (ours | shared) - held


@pytest.mark.parametrize('path', sorted((ROOT / 'mbse_ros' / 'nodes').glob('*_node.py')), ids=lambda path: path.stem)
def test_each_node_has_a_main(path):
    names = {name.id for node in ast.parse(path.read_text()).body if isinstance(node, ast.Assign)
             for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    assert 'main' in names


@pytest.mark.parametrize('kind', ['msg', 'srv'])
def test_messages_and_services_are_all_built(kind):
    found = set(re.findall(rf'"{kind}/(\w+\.{kind})"', CMAKE))
    assert found and found == {path.name for path in (ROOT / kind).iterdir()}


def test_shared_folders_are_the_same_everywhere():
    in_cmake = set(re.search(r'set\(shared ([^)]*)\)', CMAKE)[1].split())
    in_setup = set(ast.literal_eval(re.search(r'SHARED = (\[[^\]]*\])', SETUP)[1]))
    assert in_cmake | {'msg'} == in_setup       # the messages are installed by rosidl
    assert all((ROOT / folder).is_dir() for folder in in_setup)


def test_version_is_the_same_everywhere():
    """The changelog's may be ``Forthcoming``; a tag is refused then."""
    found = release_notes.versions()
    assert found.pop('CHANGELOG.rst') in (mbse_ros.__version__, 'Forthcoming')
    assert set(found.values()) == {mbse_ros.__version__} and len(found) == 4


def test_metadata_of_the_python_package_stand_in_one_place():
    """pyproject.toml says it; version and requirements are taken from where they are, and setup.py adds files alone."""
    project = pytest.importorskip('tomllib').loads((ROOT / 'pyproject.toml').read_text())
    told, taken = project['project'], project['tool']['setuptools']['dynamic']
    assert (told['name'], told['license']) == (MANIFEST.find('name').text, MANIFEST.find('license').text)
    assert told['description'] == MANIFEST.find('description').text
    assert taken['version'] == {'attr': 'mbse_ros.version.__version__'}
    assert not set(told) & set(told['dynamic']) and set(taken) == set(told['dynamic'])
    other = {'docs', 'lint', 'python', 'vendored'}
    extras = {path.stem for path in REQUIREMENTS.glob('*.in') if not path.stem.startswith('ros-')} - other
    assert taken['optional-dependencies'] == {name: {'file': f'tools/requirements/{name}.in'} for name in extras}
    assert taken['dependencies'] == {'file': 'tools/requirements/python.in'}
    assert re.findall(r'(?m)^setup\((.*)\)$', SETUP) == ['data_files=shared()']


def test_a_release_has_the_notes_of_its_version_and_no_other(tmp_path):
    for name in release_notes.PLACES:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / 'CHANGELOG.rst').write_text('^\nChangelog\n^\n\n9.1.0 (2030-01-01)\n------------------\n* new ``a``\n\n'
                                            '9.0.0 (2029-01-01)\n------------------\n* old\n')
    version = mbse_ros.__version__
    with pytest.raises(SystemExit, match=re.escape(f"CHANGELOG.rst: got '9.1.0', expected {version!r}")):
        release_notes.notes(version, tmp_path)
    for name in release_notes.PLACES.keys() - {'CHANGELOG.rst'}:
        with pytest.raises(SystemExit, match=f'{name}: got'):
            release_notes.notes('9.1.0', tmp_path)
        (tmp_path / name).write_text((tmp_path / name).read_text().replace(version, '9.1.0'))
    assert release_notes.notes('9.1.0', tmp_path) == '* new `a`\n'


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
    assert 'numpy' in used and used <= {*required('python.in'), *required('display.in'), *required('graph.in'),
                                       *required('parquet.in'), *required('peers.in'), *required('table.in'),
                                       *required('view.in'), *required('cluster.in'),
                                       'xarray'}        # in no list: to_xarray says how to install it


def test_rosdep_keys_and_vendored_wheels_cover_the_requirements():
    keys = {KEYS.get(name, f'python3-{name}') for name in required('python.in').keys() - set(vendored.names(VENDORED))}
    assert keys <= depends('exec_depend')
    assert {f'python3-{name}' for name in required('test.in')} <= depends('test_depend')
    assert not depends('exec_depend') & {f'python3-{name}' for name in vendored.names(VENDORED)}


@pytest.mark.parametrize('distro', ['humble', 'jazzy', 'kilted'])
def test_bloom_could_release_each_dependency(distro):
    """It refuses keys that are not defined, and those that pip installs."""
    table = yaml.safe_load((ROOT / 'test' / 'repository' / 'rosdep_keys.yaml').read_text())
    needed = {item.text for item in MANIFEST if item.tag.endswith('depend')}
    without = {name for name in needed if not table['keys'].get(name, {}).get(distro)}
    assert len(needed) > 20 and not without, f'{without}: tools/rosdep_keys.py; {table["source"]} of {table["date"]}'


def test_vendored_wheels_need_nothing_that_is_not_there():
    """Of each: what it needs is vendored, too, or a key of package.xml installs it."""
    declared = {name.removeprefix('python3-') for name in depends('exec_depend')}
    here = {**default_environment(), 'extra': ''}
    needed = {canonicalize_name(need.name): name for name in vendored.names(VENDORED)
              for need in map(Requirement, installed(name)) if not need.marker or need.marker.evaluate(here)}
    assert 'markdown-it-py' in needed and needed.keys() <= {*vendored.names(VENDORED), *declared}, needed


def installed(name):
    """What a distribution says it needs; nothing where it is for another Python."""
    try:
        return metadata.requires(name) or ()
    except metadata.PackageNotFoundError:
        return ()


@pytest.mark.parametrize('distro', ['jazzy', 'kilted'])
def test_vendored_wheels_are_held_by_their_hashes(distro):
    pinned = vendored.pinned(vendored.names(VENDORED), (REQUIREMENTS / f'ros-{distro}.hashed.txt').read_text())
    entries = re.split(r'\n(?=\w)', pinned)
    assert {re.match(r'[\w.-]+', entry)[0] for entry in entries} == set(vendored.names(VENDORED))
    assert all('==' in entry and '--hash=sha256:' in entry for entry in entries)
    with pytest.raises(ValueError, match='the lock has no casadi, lz4: make lock'):
        vendored.pinned(['lz4', 'casadi'], 'numpy==1.0 \\\n    --hash=sha256:00\n')


def test_what_is_missing_or_too_old_is_vendored():
    least = (REQUIREMENTS / 'python.in').read_text()
    found = {**dict.fromkeys(vendored.names(VENDORED), '99.1'), 'typer': '0.9.0'}     # as Ubuntu 24.04 has it
    del found['casadi']

    def version(name):
        if name not in found:
            raise metadata.PackageNotFoundError(name)
        return found[name]

    assert vendored.missing(vendored.names(VENDORED), least, version) == ['casadi', 'typer']
    assert vendored.missing(vendored.names(VENDORED), least) == []      # the environment of the tests has them


def test_vendored_wheels_are_found_first(tmp_path):
    """Of a package with its _vendored beside an older module on the path."""
    wheels = tmp_path / 'installed' / 'mbse_ros' / '_vendored'
    wheels.mkdir(parents=True)
    shutil.copy(ROOT / 'mbse_ros' / '__init__.py', wheels.parent)
    (wheels / 'some_wheel.py').write_text('version = "tested"')
    (tmp_path / 'installed' / 'some_wheel.py').write_text('version = "older"')
    code = 'import some_wheel, sys; del sys.modules["some_wheel"]; import mbse_ros, some_wheel as w; print(w.version)'
    done = run([sys.executable, '-S', '-c', code], env={'PYTHONPATH': str(tmp_path / 'installed')}, check=True,
               capture_output=True, text=True)
    assert done.stdout.strip() == 'tested'


@pytest.mark.parametrize('distro', ['jazzy', 'kilted'])
def test_locks_hold_all_that_is_required(distro):
    lock = required(f'ros-{distro}.txt')
    wanted = {**required('python.in'), **required('test.in'), **required(f'ros-{distro}.in')}
    assert set(wanted) <= set(lock)
    assert all('==' in rest for rest in lock.values())
    assert {name: rest for name, rest in wanted.items() if '==' in rest and '[' not in rest}.items() <= lock.items()


def test_recipe_and_entry_of_rosdistro_say_what_the_package_says():
    """As YAML, against pyproject's lists; conda calls one package otherwise. Neither was built."""
    recipe = yaml.safe_load((ROOT / 'packaging' / 'conda' / 'recipe.yaml').read_text())
    run = dict(line.split(' ', 1) for line in recipe['requirements']['run'])
    assert run.pop('python') == '>=3.10'
    run['matplotlib'] = run.pop('matplotlib-base')
    assert run == required('python.in')
    assert recipe['about']['summary'] == MANIFEST.find('description').text
    assert recipe['about']['license'] == MANIFEST.find('license').text
    assert recipe['build']['python']['entry_points'] == ['mbse = mbse_ros.cli:main']
    entry = yaml.safe_load((ROOT / 'packaging' / 'rosdistro.yaml').read_text())['repositories']
    assert list(entry) == [MANIFEST.find('name').text] and {'doc', 'source', 'status'} == set(entry['mbse_ros'])
    assert all(entry['mbse_ros'][kind]['type'] == 'git' for kind in ('doc', 'source'))
