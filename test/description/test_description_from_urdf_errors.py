# SPDX-License-Identifier: Apache-2.0
"""A URDF, or answers to what it lacks, that cannot be used: refused by file and key."""

from __future__ import annotations

from pathlib import Path

import pytest
from urdf_of import CRANE, MIMIC, PINS, crane, inertial, joint, made

from mbse_ros.errors import DescriptionError

EMPTY = '<robot name="r"><link name="base_link"/>{}</robot>'
ONE = f'<link name="a">{inertial(9.0, (0, 0, 0), (1.0, 1.0, 1.0))}</link>'
WRONG = {
    'no such file': (None, 'urdf', 'a file that can be read'),
    'not XML': ('robot', 'line 1', 'correct XML'),
    'xacro': ('<robot name="r" xmlns:xacro="http://ros.org/xacro"><xacro:include filename="a"/></robot>', 'robot',
              'xacro FILE > robot.urdf'),
    'no joints': (EMPTY.format(''), 'robot.link', 'joints join'),
    'none that moves': (EMPTY.format(ONE + joint('j', 'base_link', 'a', (0, 0, 0))), 'robot.joint', 'that moves'),
    'only mimics': (EMPTY.format(ONE + joint('j', 'base_link', 'a', (0, 0, 0), more=MIMIC, kind='revolute')),
                    'robot.joint', 'none that moves'),
    'floating': (EMPTY.format(ONE + joint('j', 'base_link', 'a', (0, 0, 0), kind='floating')), 'robot.joint[j].type',
                 'revolute, continuous, prismatic or fixed'),
    'a closed loop': (EMPTY.format(ONE + ''.join(joint(name, 'base_link', 'a', (0, 0, 0), kind='continuous')
                                                for name in 'jk')), 'robot.joint[k].child.link', 'of one joint'),
    'millimetres': (EMPTY.format(ONE + joint('j', 'base_link', 'a', (250, 0, 0), kind='continuous')),
                    'robot.joint[j].origin.xyz', 'millimetres'),
    'many millimetres': (EMPTY.format(ONE + joint('j', 'base_link', 'a', (2000, 0, 0), kind='continuous')),
                         'robot.joint[j].origin.xyz', 'from -1000 to 1000 m')}


@pytest.mark.parametrize('what', WRONG)
def test_a_wrong_urdf_is_refused_by_its_key(what: str, tmp_path: Path) -> None:
    text, key, expected = WRONG[what]
    if text is not None:
        (tmp_path / 'r.urdf').write_text(text)
    with pytest.raises(DescriptionError) as caught:
        made({'urdf': str(tmp_path / 'r.urdf'), 'load': '1 kg'})
    assert caught.value.key == key and expected in f'{caught.value}', str(caught.value)
    assert Path(caught.value.file).name == ('answers' if text is None else 'r.urdf')


ANSWERS = {
    'no tool': ('tool', 'boom_tip', 'tool', 'which joints move: one at the end'),
    'the base as a tool': ('tool', 'base_link', 'tool', 'which joints move'),
    'a word that is none': ('boom_joint', 'hydraulic', 'boom_joint', 'cylinder, linkage, drive, sensor, still'),
    'all still': ('boom_joint', 'still', '', 'a joint that moves'),
    'measured alone': ('boom_joint', 'sensor', '', 'a cylinder, a linkage or a drive'),
    'a linkage of the first joint': ('boom_joint', 'linkage', 'boom_joint', 'after a joint that a cylinder moves'),
    'a pin of no triangle': ('boom_eye', '0.1 m, 2 m', 'boom_eye', 'make no triangle'),
    'one length': ('boom_eye', '0.3 m', 'boom_eye', 'a link of the URDF'),
    'a stroke out of the limits': ('boom_cylinder', '100 mm, 56 mm, 1.2 m, 1.36 m', 'boom_cylinder', 'within the '),
    'too long': ('boom_cylinder', '100 mm, 56 mm, 0.82 m, 1.6 m', 'boom_cylinder', 'closes over its whole stroke'),
    'a load without a unit': ('load', '500', 'load', 'a mass with its unit'),
    'a question of another machine': ('arm_eye', '1 m, 1 m', 'arm_eye', 'one of the keys')}


@pytest.mark.parametrize('what', ANSWERS)
def test_a_wrong_answer_is_refused_by_its_name(what: str, tmp_path: Path) -> None:
    key, value, place, expected = ANSWERS[what]
    with pytest.raises(DescriptionError) as caught:
        made({**CRANE, **PINS, 'urdf': crane(tmp_path), key: value})
    error = getattr(caught.value, 'errors', [caught.value])[0]
    assert error.key == place and expected in f'{error}', str(caught.value)


def test_names_with_blanks_stay_those_of_joint_states(tmp_path: Path) -> None:
    path = Path(crane(tmp_path))
    path.write_text(path.read_text().replace('"boom_joint"', '"boom joint"'))
    found = made({**CRANE, **PINS, 'positions': 'angles', 'urdf': str(path)})
    assert found.sources is not None and 'boom_joint' in found.joints
    assert found.sources.value['channels']['position/boom_joint']['path'] == 'position[name="boom joint"]'
