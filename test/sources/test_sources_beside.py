# SPDX-License-Identifier: Apache-2.0
"""Elements of arrays of messages by names beside them, as ros2_control, Gazebo and MoveIt send them; and what of them
`mbse topics` lists."""

import numpy as np
import pytest
from rosbags.typesys import get_types_from_msg
from sources_support import header, make, store

from mbse_ros.sources.fields import parse_path, path_text, store_fields
from mbse_ros.sources.getters import Absent, number_getter
from mbse_ros.sources.survey import leaves

TYPES = store(False)
VALUES, DYNAMIC = 'control_msgs/msg/InterfaceValue', 'control_msgs/msg/DynamicJointState'
LINKS, MULTI = 'gazebo_msgs/msg/LinkStates', 'sensor_msgs/msg/MultiDOFJointState'
for name, text in ((VALUES, 'string[] interface_names\nfloat64[] values\n'),
                   (DYNAMIC, 'std_msgs/Header header\nstring[] joint_names\n'
                             'control_msgs/InterfaceValue[] interface_values\n'),
                   (LINKS, 'string[] name\ngeometry_msgs/Pose[] pose\ngeometry_msgs/Twist[] twist\n')):
    TYPES.register(get_types_from_msg(text, name))
FIELDS = store_fields(TYPES)


def dynamic(joints):
    return make(TYPES, DYNAMIC, header=header(TYPES, 0), joint_names=list(joints), interface_values=[
        make(TYPES, VALUES, interface_names=list(values), values=np.array(list(values.values()), float))
        for values in joints.values()])


def vector(kind, **values):
    return make(TYPES, f'geometry_msgs/msg/{kind}', **values)


def pose(x, angle):
    q = vector('Quaternion', x=0.0, y=float(np.sin(angle / 2)), z=0.0, w=float(np.cos(angle / 2)))
    return x, q


def links(**angles):
    return make(TYPES, LINKS, name=list(angles), twist=[], pose=[
        vector('Pose', position=vector('Point', x=float(k), y=0.0, z=0.0), orientation=pose(k, angle)[1])
        for k, angle in enumerate(angles.values())])


def multi(**angles):
    return make(TYPES, MULTI, header=header(TYPES, 0), joint_names=list(angles), twist=[], wrench=[], transforms=[
        vector('Transform', translation=vector('Vector3', x=float(k), y=0.0, z=0.0), rotation=pose(k, angle)[1])
        for k, angle in enumerate(angles.values())])


def get(path, msgtype):
    return number_getter(parse_path(path), msgtype, FIELDS)


def test_a_joint_and_one_of_its_interfaces():
    """In whatever order they come; a name that is missing is absent."""
    boom = get('interface_values[joint_names=boom].values[interface_names=position]', DYNAMIC)
    message = {'arm': {'position': 1.0, 'velocity': 2.0}, 'boom': {'velocity': 3.0, 'position': 4.0}}
    assert boom(dynamic(message)) == 4.0
    assert boom(dynamic(dict(reversed(message.items())))) == 4.0
    assert boom(dynamic({'boom': {'position': 5.0}})) == 5.0
    for missing, words in (({'arm': {'position': 1.0}}, 'no boom in joint_names'),
                           ({'boom': {'velocity': 1.0}}, 'no position in interface_names')):
        with pytest.raises(Absent, match=words):
            boom(dynamic(missing))


@pytest.mark.parametrize('path, message, msgtype', [
    ('pose[name=boom].orientation.pitch', links, LINKS), ('pose[name="boom"].position.x', links, LINKS),
    ('transforms[joint_names=boom].rotation.pitch', multi, MULTI)])
def test_a_link_and_a_joint_by_name(path, message, msgtype):
    wanted = 1.0 if path.endswith('x') else 0.4
    assert get(path, msgtype)(message(arm=-0.3, boom=0.4)) == pytest.approx(wanted)
    with pytest.raises(Absent, match='no boom'):
        get(path, msgtype)(message(arm=-0.3))


@pytest.mark.parametrize('path, msgtype, words', [
    ('pose.position.x', LINKS, r'pose\[0\], pose\[name=...\]'),
    ('transforms.rotation.pitch', MULTI, r'transforms\[joint_names=...\]'),
    ('interface_values[names=boom].values[0]', DYNAMIC, 'a key among the fields'),
    ('interface_values[header=boom].values[0]', DYNAMIC, 'a key to an array of text'),
    ('pose[twist=boom].position.x', LINKS, 'a key to an array of text')])
def test_wrong_paths_say_which_would_do(path, msgtype, words):
    with pytest.raises(ValueError, match=words):
        get(path, msgtype)


def test_they_are_listed_by_their_names():
    found = {path_text(path) for path in leaves(dynamic({'boom': {'position': 1.0, 'velocity': 2.0}}), DYNAMIC, FIELDS)}
    assert found == {f'interface_values[joint_names=boom].values[interface_names={name}]'
                     for name in ('position', 'velocity')}
    assert 'pose[name=arm].orientation.pitch' in {path_text(path) for path in leaves(links(arm=0.1, boom=0.2), LINKS,
                                                                                    FIELDS)}
    for path in leaves(multi(arm=0.1, boom=0.2), MULTI, FIELDS):
        assert path[0].selection.key == ('joint_names',)
        assert np.isfinite(get(path_text(path), MULTI)(multi(arm=0.0, boom=0.0)))
