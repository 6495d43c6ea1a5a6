# SPDX-License-Identifier: Apache-2.0
"""Files written again: numbers of a URDF's links, and paths from another folder."""

import pytest
import yaml
from test_description_urdf import ARM, HEAD, OVERLAY

from mbse_ros.calibration.free import freed
from mbse_ros.description.basics import scalars
from mbse_ros.description.edit import Number, for_folder, with_numbers, with_part
from mbse_ros.description.load import parse_mechanism
from mbse_ros.errors import DescriptionError

BLOCK = HEAD + 'urdf:\n  file: robot.urdf   # ours\n  joints: {elbow: {start: 40 deg}}\nindependent: auto\n'


@pytest.fixture
def file(tmp_path):
    (tmp_path / 'robot.urdf').write_text(ARM)
    return str(tmp_path / 'arm.yaml')


@pytest.mark.parametrize('text', [HEAD + 'urdf: robot.urdf\n', BLOCK, OVERLAY])
def test_numbers_of_a_urdf_get_deviations(file, text):
    """And are written again: what does not change stays, a second time as well."""
    before = scalars(parse_mechanism(text, file))
    new = freed(text, file, ['bodies.upper.mass=5 %', 'bodies.upper.center_of_mass[1]=1 cm', 'bodies.slide.inertia.zz'])
    after = scalars(parse_mechanism(new, file))
    assert after['bodies.upper.mass'].stddev == pytest.approx(0.15)
    assert after['bodies.upper.center_of_mass[1]'].stddev == pytest.approx(0.01)
    assert after['bodies.slide.inertia.zz'].stddev == pytest.approx(0.02)
    assert {key: item.value for key, item in before.items()} == pytest.approx(
        {key: item.value for key, item in after.items()})
    changed = {'bodies.upper.mass', 'bodies.upper.center_of_mass[1]', 'bodies.slide.inertia.zz'}
    assert all(after[key].stddev == pytest.approx(item.stddev) for key, item in before.items() if key not in changed)
    again = with_numbers(new, file, {'bodies.upper.mass': Number(3.25, 0.05, 'calibrated')}, after)
    assert scalars(parse_mechanism(again, file))['bodies.upper.mass'].value == 3.25
    with pytest.raises(DescriptionError, match='three numbers'):
        with_numbers(text, file, {'bodies.upper.center_of_mass[1]': Number(0.0, 0.01)})


SOURCES = 'sources:\n  definitions:\n    a/msg/B: msg/B.msg\n    a/msg/C: /opt/C.msg\n  channels: {}\n'


@pytest.mark.parametrize('urdf', ['urdf: robot.urdf', 'urdf: {file: ./robot.urdf}', 'urdf:\n  file: "robot.urdf"'])
def test_paths_lead_where_they_did(tmp_path, file, urdf):
    text = HEAD + urdf + '\n'
    whole = parse_mechanism(text, file)
    for name in ('sub/x.yaml', '../x.yaml', '../other folder/x.yaml', 'a/b/c/x.yaml'):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        moved = for_folder(text, file, target)
        assert moved != text and parse_mechanism(moved, str(target)).bodies == whole.bodies
    assert for_folder(text, file, tmp_path / 'x.yaml') == text
    moved = for_folder(text + SOURCES, file, tmp_path / 'sub' / 'x.yaml')
    assert 'a/msg/B: ../msg/B.msg' in moved and 'a/msg/C: /opt/C.msg' in moved


def test_a_file_without_paths_stays():
    text = HEAD + 'bodies: {a: {mass: 1}}  # urdf: x\n'
    assert for_folder(text, '/a/x.yaml', '/b/x.yaml') == text


@pytest.mark.parametrize('text', [
    'a:\n  b:\n    c: 1   # one\n  d: 2\n', 'a: {b: {c: 1}, d: 2}\n',
    'a:\n  b:\n    c: 1\n    e:\n      f: 3\n  d: 2\n', 'a: {b: {c: 1, e: {f: 4, g: 5}}, d: 2}\n'])
def test_a_part_is_put_in_and_replaced(text):
    new = with_part(text, 'file', 'a.b', 'e', '{f: 7}')
    assert yaml.safe_load(new) == {'a': {'b': {'c': 1, 'e': {'f': 7}}, 'd': 2}}
    assert ('# one' in new) == ('# one' in text)
    assert yaml.safe_load(with_part(new, 'file', 'a.b', 'e', '{f: 8}'))['a']['b'] == {'c': 1, 'e': {'f': 8}}
    with pytest.raises(DescriptionError, match='a.x'):
        with_part(text, 'file', 'a.x', 'e', '{}')
