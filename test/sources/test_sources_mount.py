# SPDX-License-Identifier: Apache-2.0
"""An IMU that is turned on its body gives the same attitude, rates and accelerations of the body as one that is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.typesys import Stores, get_typestore
from scipy.spatial.transform import Rotation

from mbse_ros.errors import DescriptionError
from mbse_ros.sources.fields import store_fields
from mbse_ros.sources.map import parse_sources
from mbse_ros.sources.topic_samples import TopicSamples, as_object

FIELDS = store_fields(get_typestore(Stores.ROS2_JAZZY))
IMU = 'sensor_msgs/msg/Imu'
MAP = '''
format: mbse/sources/1
topics:
  imu: {type: sensor_msgs/msg/Imu, mount: MOUNT}
channels:
  position/base_roll: {topic: imu, path: orientation.roll, unit: rad}
  position/base_pitch: {topic: imu, path: orientation.pitch, unit: rad}
  gyro/base.x: {topic: imu, path: angular_velocity.x, unit: rad/s}
  gyro/base.y: {topic: imu, path: angular_velocity.y, unit: rad/s}
  accelerometer/base.z: {topic: imu, path: linear_acceleration.z, unit: m/s^2}
'''
angles = st.floats(-180.0, 180.0)


def samples_of(text, attitude, rate, specific_force):
    """What a map makes of the message of an IMU with an attitude (Rotation) and vectors in its own axes."""
    x, y, z, w = attitude.as_quat()
    message = as_object({'header': {'stamp': {'sec': 1, 'nanosec': 0}, 'frame_id': 'imu'},
                         'orientation': {'x': x, 'y': y, 'z': z, 'w': w},
                         'angular_velocity': dict(zip('xyz', rate)),
                         'linear_acceleration': dict(zip('xyz', specific_force))})
    sources = parse_sources(text).sources
    found = TopicSamples('imu', sources, IMU, FIELDS).samples(message, 0, pytest.fail)
    return [sample.value for sample in found]


@given(st.tuples(angles, angles, angles), st.floats(-40.0, 40.0), st.floats(-40.0, 40.0), angles)
def test_a_turned_imu_gives_what_a_straight_one_does(mount, roll, pitch, yaw):
    """SciPy's rotations share no code with ours: attitude of the IMU is that of the body times the mount."""
    base = Rotation.from_euler('xyz', [roll, pitch, yaw], degrees=True)
    turn = Rotation.from_euler('xyz', mount, degrees=True)
    rate, force = np.array([0.1, -0.2, 0.3]), np.array([1.0, 2.0, 9.0])
    text = MAP.replace('MOUNT', '{{roll: {} deg, pitch: {} deg, yaw: {} deg}}'.format(
        *map(repr, mount)))
    found = samples_of(text, base * turn, turn.inv().apply(rate), turn.inv().apply(force))
    expected = [*np.radians([roll, pitch]), rate[0], rate[1], force[2]]
    assert np.allclose(found, expected, rtol=0.0, atol=1e-9)
    straight = samples_of(MAP.replace(', mount: MOUNT', ''), base, rate, force)
    assert np.allclose(found, straight, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize('mount, path, expected', [
    ('90 deg', 'orientation.roll', 'base_roll.mount'), ('{}', 'orientation.roll', 'angles such as'),
    ('{yaw: 90}', 'orientation.roll', 'an angle with its unit'), ('{yaw: 90 mm}', 'orientation.roll', 'with its unit'),
    ('{heading: 90 deg}', 'orientation.roll', 'heading'), ('{yaw: .nan deg}', 'orientation.roll', 'number'),
    ('{yaw: 90 deg}', 'orientation.w', 'roll, pitch or yaw of a quaternion'),
    ('{yaw: 90 deg}', 'orientation_covariance[0]', 'roll, pitch or yaw of a quaternion'),
    ('{yaw: 90 deg}', 'header.stamp.sec', 'roll, pitch or yaw of a quaternion'),
    ('{yaw: 90 deg}', 'orientation.x', 'a quaternion or a geometry_msgs/msg/Vector3 before x'),
    ("{yaw: 90 deg}, variance: 'orientation_covariance[0]'", 'orientation.roll', 'about the axes of the IMU')])
def test_what_is_no_mount_is_refused(mount, path, expected):
    """With the file's key and what was expected."""
    text = f"""
format: mbse/sources/1
channels:
  position/base_roll: {{topic: imu, path: '{path}', unit: rad, type: {IMU}, mount: {mount}}}
"""
    with pytest.raises(DescriptionError) as caught:
        TopicSamples('imu', parse_sources(text).sources, IMU, FIELDS)
    assert expected in str(caught.value)
