# SPDX-License-Identifier: Apache-2.0
"""What ament's linters look at and ruff does not: package manifests, CMake, shell scripts, YAML and XML files."""

import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
import yaml
from source_tree import ROOT, files

# of package format 3 (REP-149), in the order of its schema; a group in any order
MANIFEST = [{'name'}, {'version'}, {'description'}, {'maintainer'}, {'license'}, {'url'}, {'author'},
            {'build_depend', 'build_export_depend', 'buildtool_depend', 'buildtool_export_depend', 'conflict',
             'depend', 'doc_depend', 'exec_depend', 'group_depend', 'member_of_group', 'replace', 'test_depend'},
            {'export'}]
REQUIRED = {'name', 'version', 'description', 'maintainer', 'license'}
OPENED = {'if': 'endif', 'foreach': 'endforeach', 'while': 'endwhile', 'function': 'endfunction', 'macro': 'endmacro'}
EVERY = list(files())
MANIFESTS = [path for path in EVERY if path.name == 'package.xml']
CMAKE = [path for path in EVERY if path.name == 'CMakeLists.txt' or path.suffix == '.cmake']
SCRIPTS = [path for path in EVERY if path.suffix in ('', '.sh') and path.read_bytes()[:2] == b'#!'
           and b'sh' in path.read_bytes().split(b'\n', 1)[0]]
XML = [path for path in EVERY if path.suffix in ('.xml', '.svg', '.xacro', '.urdf')]
YAML = [path for path in EVERY if path.suffix in ('.yaml', '.yml', '.rviz')]


def manifest_faults(text):
    """What package.xml has in a wrong place, does not know, or lacks."""
    root, found, place = ElementTree.fromstring(text), [], 0
    if (root.tag, root.get('format')) != ('package', '3'):
        found.append('no package of format 3')
    for item in root:
        at = next((k for k, group in enumerate(MANIFEST) if item.tag in group), None)
        if at is None:
            found.append(f'{item.tag} is not known')
        elif at < place:
            found.append(f'{item.tag} too late')
        else:
            place = at
        if item.tag == 'maintainer' and not re.fullmatch(r'[^@\s]+@[^@\s]+\.\w+', item.get('email', '')):
            found.append('a maintainer without an address')
    if not re.fullmatch(r'\d+\.\d+\.\d+', root.findtext('version', '')):
        found.append('version')
    return found + sorted(REQUIRED - {item.tag for item in root})


def cmake_faults(text):
    """Commands in capitals, tabs, blocks that do not end, conditions repeated at the end."""
    found, stack = ['tab'] if '\t' in text else [], []
    code = re.sub(r'"(?:[^"\\]|\\.)*"', '""', re.sub(r'(?m)(?<!\\)#.*$', '', re.sub(r'(?s)\[\[.*?\]\]', '', text)))
    for name, after in re.findall(r'(?m)^\s*([A-Za-z_]\w*)\s*\(([^)]*)', code):
        if name != name.lower():
            found.append(f'{name} in capitals')
        if name in OPENED:
            stack.append(OPENED[name])
        elif name in OPENED.values():
            if not stack or stack.pop() != name:
                found.append(f'{name} of nothing')
            elif after.strip():
                found.append(f'{name} repeats its condition')
    return found + stack


@pytest.mark.parametrize('path', MANIFESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_package_manifests(path):
    assert manifest_faults(path.read_text()) == []


@pytest.mark.parametrize('path', CMAKE, ids=lambda path: str(path.relative_to(ROOT)))
def test_cmake(path):
    assert cmake_faults(path.read_text()) == []


@pytest.mark.parametrize('path', SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_shell_scripts_can_be_read(path):
    done = subprocess.run(['bash', '-n', str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, '')


def test_xml_is_well_formed():
    assert len(XML) >= 2
    for path in XML:
        ElementTree.parse(path)


def test_yaml_is_read_and_has_no_key_twice():
    class Strict(yaml.SafeLoader):
        """Refuses what YAML forbids and PyYAML passes over."""

        def construct_mapping(self, node, deep=False):
            keys = [key.value for key, _ in node.value]
            assert len(keys) == len(set(keys)), (node.start_mark, keys)
            return super().construct_mapping(node, deep)
    assert len(YAML) > 20
    for path in YAML:
        list(yaml.load_all(path.read_text(), Strict))


def test_faults_are_seen():
    good = ('<package format="3"><name>a</name><version>1.0.0</version><description>b</description>'
            '<maintainer email="a@b.org">c</maintainer><license>d</license><depend>e</depend></package>')
    assert manifest_faults(good) == []
    assert manifest_faults(good.replace('"3"', '"2"')) == ['no package of format 3']
    assert manifest_faults(good.replace('depend>', 'needs>')) == ['needs is not known']
    assert manifest_faults(good.replace('<license>d</license>', '')) == ['license']
    assert manifest_faults(good.replace('a@b.org', 'a')) == ['a maintainer without an address']
    assert manifest_faults(good.replace('</package>', '<url>x</url></package>')) == ['url too late']
    assert cmake_faults('if(A)\n  set(B "(x)")  # SET(C)\nendif()\n') == []
    assert cmake_faults('IF(A)\nendif()\n') == ['IF in capitals', 'endif of nothing']
    assert cmake_faults('foreach(a b)\n') == ['endforeach']
    assert cmake_faults('if(A)\nendif(A)\n') == ['endif repeats its condition']
