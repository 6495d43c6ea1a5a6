# SPDX-License-Identifier: Apache-2.0
"""The rules of the house: rooms import only what lies below, ROS stays in nodes/, the core is silent."""

import ast
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from source_tree import ROOT, files, imports, modules, nodes

# From the ground up; a room may import itself and the rooms before it.
ROOMS = ['errors', 'progress', 'settings', 'resources', 'workers', 'transition', 'description', 'report', 'compiled',
         'mechanism', 'hydraulics', 'dynamics', 'export', 'machine', 'filters', 'payload', 'monitor', 'graph',
         'calibration', 'simulation', 'streams', 'scale', 'bags', 'sources', 'offline', 'embedded', 'studies',
         'api', 'doctor', 'nodes', 'cli']
ROS = {'rclpy', 'rcl_interfaces', 'builtin_interfaces', 'std_srvs', 'launch', 'launch_ros', 'rosidl_runtime_py',
       'rosidl_parser', 'ament_index_python', 'unique_identifier_msgs'}
COMMENTED = {'.py', '.sh', '.cmake', '.js', '.yaml', '.xml', '.ini', '.rviz', '.css', '.html'}
TEXT = COMMENTED | {'.msg', '.txt', '.in', ''}
# Names of classes that stand twice, each with what is to be renamed: the list only gets shorter.
TWICE = {
    'Calibration': 'that of the description is in fingerprints of files; the other is a result of offline/calibration',
    'Drift': 'payload: whether a mass wanders; scale: the line through its errors',
    'Level': 'that of the description is in fingerprints of files; the other is a mass of the scale between two loads',
    'Series': 'report: documented for users; offline/checks: samples of a channel',
}
OPTIONS_SAID = 'embedded', 'export', 'studies', 'nodes', 'cli'      # C, scripts, options of ROS
LONGEST_FILE = 400
LONGEST_LINE = 120


def room_of(path: Path) -> str:
    return path.relative_to(ROOT / 'mbse_ros').with_suffix('').parts[0]


def broken_floors(path: Path, text: str | None = None) -> list[str]:
    """Rooms a module imports that do not lie below its own."""
    allowed = ROOMS[:ROOMS.index(room_of(path)) + 1]
    taken = [name.split('.')[1] for name in imports(path, text) if name.startswith('mbse_ros.')]
    return [room for room in taken if room in ROOMS and room not in allowed]


def ros_imports(path: Path, text: str | None = None) -> list[str]:
    """What a module imports of ROS: client library, message classes of others or our own."""
    names = imports(path, text)
    return [name for name in names if name.split('.')[0] in ROS or name.split('.')[0].endswith('_msgs')
            or name.startswith('mbse_ros.msg')]


def noises(path: Path, text: str | None = None) -> list[str]:
    """Calls of print, of a logger or of sleep."""
    found = [name for name in imports(path, text) if name.split('.')[0] == 'logging' or name == 'time.sleep']
    for node in nodes(path, text):
        if isinstance(node, ast.Call):
            call = ast.unparse(node.func)
            found += [call] if call in ('print', 'time.sleep') else []
    return found


def decisions_by_words(path, text=None):
    """Comparisons with a reason, and searches in one: what decides looks at `faults`."""
    def is_reason(node):
        return isinstance(node, ast.Attribute) and node.attr in ('reason', 'reasons', 'remark')
    found = []
    for node in nodes(path, text):
        if isinstance(node, ast.Compare) and any(map(is_reason, (node.left, *node.comparators))):
            found.append(ast.unparse(node))
        if isinstance(node, ast.Call) and (any(map(is_reason, node.args)) and ast.unparse(node.func).startswith('re.')
                                           or isinstance(node.func, ast.Attribute) and is_reason(node.func.value)):
            found.append(ast.unparse(node))
    return found


def options(path, text=None):
    """Texts with an option of the command line, if not of a command ``mbse ...``: users of Python read them, too."""
    tree = nodes(path, text)
    docs = {ast.get_docstring(node, clean=False) for node in tree
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))}
    said = [node.value for node in tree if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [line for line in said if room_of(path) not in OPTIONS_SAID and line not in docs and 'mbse ' not in line
            and re.search(r'(?<![\w-])--(?!src|dst)[a-z]', line)]       # of rosbags-convert


def test_every_module_is_in_a_room():
    strangers = {room_of(path) for path in modules()} - set(ROOMS) - {'__init__', 'version'}
    assert not strangers, f'no floor in test_architecture.py for {strangers}'


@pytest.mark.parametrize('room', ROOMS)
def test_rooms(room):
    rules = [broken_floors, decisions_by_words, options] + [ros_imports] * (room != 'nodes')
    rules += [noises] * (room not in ('nodes', 'cli'))
    own = [path for path in modules() if room_of(path) == room]
    broken = {(str(path.relative_to(ROOT)), rule.__name__): found for path in own for rule in rules
              if (found := rule(path))}
    if room == 'bags':          # of bags before `faults`
        del broken['mbse_ros/bags/messages.py', 'decisions_by_words']
    assert own and not broken


def test_tests_stand_by_room():
    """Each is in the folder of its room, and imports none of another room; what several need is in support."""
    strangers, foreign = [], []
    for path in (ROOT / 'test').rglob('test_*.py'):
        room = path.parent.name
        if room in ROOMS and not path.name.startswith(f'test_{room}') or room not in {
                *ROOMS, 'repository', 'system'}:
            strangers.append(path.name)
        foreign += [(path.name, name) for name in imports(path) if name.startswith('test_')
                    and not (path.parent / f'{name.partition(".")[0]}.py').is_file()]
    assert not strangers and not foreign


def circles(graph: dict[str, set[str]]) -> set[tuple[str, ...]]:
    """Groups of modules each of which imports all others of its group, directly or through them."""
    names = sorted(graph)
    edges = np.array([[other in graph[name] for other in names] for name in names])
    _, group = connected_components(edges, connection='strong')
    members = [tuple(name for name, own in zip(names, group == k) if own) for k in set(group.tolist())]
    return {item for item in members if len(item) > 1}


def test_no_module_imports_one_that_imports_it():
    """Imports in functions and for types count, too."""
    names = {'.'.join(path.relative_to(ROOT).with_suffix('').parts).removesuffix('.__init__'): path
             for path in modules()}
    graph = {}
    for name, path in names.items():
        taken = {full if full in names else full.rpartition('.')[0] for full in imports(path)}
        graph[name] = taken & set(names) - {name}
    assert circles(graph) == set()
    assert circles({'a': {'b'}, 'b': {'c'}, 'c': {'b'}, 'd': {'a', 'b'}}) == {('b', 'c')}


def class_names(text: str) -> list[str]:
    """Names of the classes of a module, also of those in functions."""
    return [node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]


def test_a_class_has_a_name_of_its_own():
    """A name in a message, a search or an import leads to one class; a name of TWICE that is single again goes."""
    found = Counter(name for path in modules() for name in class_names(path.read_text()))
    assert {name for name, count in found.items() if count > 1} == set(TWICE)
    assert class_names('class A:\n    pass\ndef make():\n    class A: pass') == ['A', 'A']


@pytest.mark.parametrize('rule, text', [
    (broken_floors, 'from ..streams.records import Segment'),
    (broken_floors, 'from .. import machine'),
    (broken_floors, 'def later():\n    import mbse_ros.nodes.graphs.machine_graph'),
    (ros_imports, 'import rclpy.node'),
    (ros_imports, 'from sensor_msgs.msg import JointState'),
    (ros_imports, 'from mbse_ros.msg import SensorSegment'),
    (ros_imports, 'from ..msg import SensorSegment'),
    (decisions_by_words, "if 'rejected' in state.reason: pass"),
    (decisions_by_words, "state.reason.startswith('x')"),
    (decisions_by_words, "re.search('x', state.reason)"),
    (noises, 'print(1)'),
    (noises, 'import logging'),
    (noises, 'import time\ntime.sleep(1)'),
])
def test_the_rules_see_a_breach(rule, text):
    path = ROOT / 'mbse_ros' / 'mechanism' / 'system.py'
    assert rule(path, text)
    assert not rule(path, 'import time\nfrom ..errors import MbseError\nfrom .rotation import rotation')


def test_files_are_short():
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in files()
             if path.suffix in {'.py', '.sh', '.js', '.css', '.html'}}
    assert not {name: size for name, size in sizes.items() if size > LONGEST_FILE}


def test_lines_are_short():
    wide = [f'{path.relative_to(ROOT)}:{number}' for path in files() if path.suffix in {'.py', '.sh'}
            for number, line in enumerate(path.read_text().splitlines(), 1) if len(line) > LONGEST_LINE]
    assert not wide


def test_files_name_their_licence():
    silent = [str(path.relative_to(ROOT)) for path in files()
              if path.suffix in COMMENTED and 'SPDX-License-Identifier: Apache-2.0' not in path.read_text()[:400]]
    assert not silent


def test_nothing_names_a_workplace():
    """No path of the machine that wrote a file, and no host of a package registry."""
    words = ['/' + 'work/', '/opt/' + 'dev', 'pythonhosted' + '.org', 'pypi' + '.org/simple']
    found = [f'{path.relative_to(ROOT)}: {word}' for path in files() if path.suffix in TEXT and path.name != 'LICENSE'
             for word in words if word in path.read_text()]
    assert not found
