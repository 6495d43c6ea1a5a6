# SPDX-License-Identifier: Apache-2.0
"""The attitude of the base in messages of others, and a map of them."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
from machine_frames import LEVEL_SENSORS
from machine_variants import changed
from scipy.spatial.transform import Rotation

from mbse_ros.sources.topic_samples import as_object

NOISE = np.radians(0.1)
MAP = '''
format: mbse/sources/1
topics:
  odometry/filtered: {type: nav_msgs/msg/Odometry, require: {child_frame_id: base_link, header.frame_id: odom}}
  pose: {type: geometry_msgs/msg/PoseWithCovarianceStamped}
  imu: {type: sensor_msgs/msg/Imu}
channels:
  position/base_roll:
    - {topic: odometry/filtered, path: pose.pose.orientation.roll, unit: rad, variance: 'pose.covariance[21]'}
    - {topic: pose, path: pose.pose.orientation.roll, unit: rad, variance: 'pose.covariance[21]'}
    - {topic: imu, path: orientation.roll, unit: rad, variance: 'orientation_covariance[0]'}
  position/base_pitch:
    - {topic: odometry/filtered, path: pose.pose.orientation.pitch, unit: rad, variance: 'pose.covariance[28]'}
    - {topic: pose, path: pose.pose.orientation.pitch, unit: rad, variance: 'pose.covariance[28]'}
    - {topic: imu, path: orientation.pitch, unit: rad, variance: 'orientation_covariance[4]'}
'''
KINDS = ['nav_msgs/msg/Odometry', 'geometry_msgs/msg/PoseWithCovarianceStamped', 'sensor_msgs/msg/Imu']


@cache
def machine():
    return changed('zx200', LEVEL_SENSORS)


def pose_message(kind, roll=0.05, pitch=-0.1, yaw=2.0, variances=(0.0, 0.0), child='base_link', frame='odom',
                 scale=1.0):
    turn = dict(zip('xyzw', scale * Rotation.from_euler('xyz', [roll, pitch, yaw]).as_quat()))
    header = {'stamp': {'sec': 1, 'nanosec': 0}, 'frame_id': frame}
    if kind.endswith('Imu'):
        return as_object({'header': header, 'orientation': turn,
                          'orientation_covariance': [variances[0], 0, 0, 0, variances[1], 0, 0, 0, 0]})
    covariance = np.zeros((6, 6))
    covariance[3, 3], covariance[4, 4] = variances
    pose = {'pose': {'orientation': turn}, 'covariance': covariance.ravel()}
    return SimpleNamespace(header=as_object(header), child_frame_id=child, pose=SimpleNamespace(
        pose=as_object(pose['pose']), covariance=pose['covariance']))
