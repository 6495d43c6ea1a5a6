# SPDX-License-Identifier: Apache-2.0
"""Random changes of good machine files: a valid description or a DescriptionError, never anything else."""

import math
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from mbse_ros.errors import DescriptionError
from mbse_ros.mechanism.description.explain import explain
from mbse_ros.mechanism.description.kinematics import cylinder_length, frames
from mbse_ros.mechanism.description.listing import quantities
from mbse_ros.mechanism.description.load import parse_description

TEXTS = [path.read_text(encoding='utf-8')
         for path in sorted((Path(__file__).parents[1] / 'config' / 'machines').glob('*.yaml'))]
LOADER, DUMPER = getattr(yaml, 'CBaseLoader', yaml.BaseLoader), getattr(yaml, 'CDumper', yaml.Dumper)
WORDS = st.sampled_from([
    '', '0', '-1', '1', '1e-9', '1e9', '.nan', '.inf', 'on', 'null', '5 %', '-5 deg', '90 deg', '1 kg', '3 mm', '2 m',
    '10 MPa', '24 l/min', '7 furlong', '1 degC', 'lift.rod', 'boom.tip', 'ground.boom_pivot', 'ground', 'fixed',
    'prismatic', 'unknown', 'pump', 'lift_rod', '__class__', '%', '1 ' + 'm*' * 50 + 'm'])
SCALARS = WORDS | st.text(max_size=8) | st.floats().map(str)
TREES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
                     max_leaves=4)


def places(tree, way=()):
    """All paths into a tree of dictionaries and lists."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, item in pairs:
        yield (*way, key)
        yield from places(item, (*way, key))


def mutate(tree, data):
    *way, last = data.draw(st.sampled_from(list(places(tree))))
    parent = tree
    for key in way:
        parent = parent[key]
    action = data.draw(st.sampled_from(['delete', 'rename', 'replace', 'move', 'repeat', *4 * ['scale']]))
    number, _, unit = parent[last].partition(' ') if isinstance(parent[last], str) else ('', '', '')
    if action == 'delete':
        del parent[last]
    elif action == 'scale' and number.strip('-').replace('.', '').isdigit():
        factor = data.draw(st.sampled_from([0.9, 1.01, 1.1, 2.0, -1.0, 0.0, 1e3, 1e300]))
        parent[last] = f'{float(number) * factor} {unit}'
    elif action in ('replace', 'scale'):
        parent[last] = data.draw(SCALARS if isinstance(parent[last], str) else TREES)
    elif isinstance(parent, list):
        parent.insert(0, parent[last])
    elif action == 'rename':
        parent[data.draw(SCALARS)] = parent.pop(last)
    elif action == 'move':
        tree[last] = parent.pop(last)
    else:
        parent[last + data.draw(st.sampled_from(['2', '_b', ' ']))] = parent[last]


def check_valid(machine):
    """What every later room relies on."""
    for key, item in quantities(machine).items():
        assert math.isfinite(item.value) and math.isfinite(item.stddev) and item.stddev >= 0.0, key
    assert all(body.mass.value > 0.0 for body in machine.bodies.values())
    free = [joint for joint in machine.joints.values() if joint.type != 'fixed']
    assert len(free) == len(machine.cylinders) == len(machine.sensors.position)
    assert all(joint.limits[0] <= joint.start <= joint.limits[1] for joint in free)
    placed = frames(machine)
    assert set(placed) == {'ground', *machine.bodies}
    for name, cylinder in machine.cylinders.items():
        assert cylinder.piston_area > cylinder.rod_area > 0.0
        length = cylinder_length(machine, placed, name) - cylinder.closed_length.value
        assert -1e-12 <= length <= cylinder.stroke.value + 1e-12
    chambers = [chamber for volume in machine.hydraulics.volumes.values() for chamber in volume.chambers]
    assert sorted(chambers) == sorted((name, side) for name in machine.cylinders for side in ('piston', 'rod'))
    assert all(row.value for section in explain(machine) for row in section.rows)


@pytest.mark.parametrize('text', TEXTS)
def test_the_files_as_they_are(text):
    check_valid(parse_description(text))


@settings(max_examples=300)
@given(st.sampled_from(TEXTS), st.integers(1, 3), st.data())
def test_changed_files_load_or_are_refused(text, count, data):
    tree = yaml.load(text, Loader=LOADER)
    for _ in range(count):
        mutate(tree, data)
    try:
        machine = parse_description(yaml.dump(tree, Dumper=DUMPER, allow_unicode=True))
    except DescriptionError as error:
        assert error.expected and '\n' not in error.expected and len(str(error)) < 1500
    else:
        check_valid(machine)


@settings(max_examples=100)
@given(st.sampled_from(TEXTS), st.integers(0, 5000), st.integers(0, 20), st.text(max_size=5))
def test_damaged_text_loads_or_is_refused(text, start, length, insert):
    try:
        check_valid(parse_description(text[:start] + insert + text[start + length:]))
    except DescriptionError as error:
        assert error.expected
