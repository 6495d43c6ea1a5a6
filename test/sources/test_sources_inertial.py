# SPDX-License-Identifier: Apache-2.0
"""IMUs: whose rates, accelerations and attitude ``mbse topics`` takes for which channel, and in which unit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from machine_variants import changed
from rosbags.typesys import Stores, get_typestore
from scipy.spatial.transform import Rotation
from sources_support import joint_state

from mbse_ros.errors import DescriptionError
from mbse_ros.sources.fields import store_fields
from mbse_ros.sources.map import parse_sources
from mbse_ros.sources.propose import propose
from mbse_ros.sources.survey import Survey
from mbse_ros.sources.topic_samples import TopicSamples, as_object

TYPES = get_typestore(Stores.ROS2_JAZZY)
FIELDS = store_fields(TYPES)
IMU = 'sensor_msgs/msg/Imu'
SENSORS = {'tilt_gyro': {'kind': 'gyro', 'body': 'tilt_boom', 'stddev': '0.01 rad/s'},
           'tip_acceleration': {'kind': 'accelerometer', 'point': 'extension.tip', 'stddev': '0.1 m/s^2'},
           'base_roll': {'kind': 'inclination', 'axis': 'roll', 'stddev': '0.1 deg'},
           'base_pitch': {'kind': 'inclination', 'axis': 'pitch', 'stddev': '0.1 deg'}}
G = 9.80665


@cache
def crane():
    return changed('patu655', {'base': {}, **{f'sensors/{name}': sensor for name, sensor in SENSORS.items()}})


def imu(attitude, rate, force):
    """``attitude``: roll, pitch, yaw, rad."""
    vectors = [dict(zip('xyz', vector)) for vector in (rate, force)]
    return as_object({'header': {'stamp': {'sec': 1, 'nanosec': 0}, 'frame_id': 'imu'},
                      'orientation': dict(zip('xyzw', Rotation.from_euler('xyz', attitude).as_quat())),
                      'orientation_covariance': [], 'angular_velocity': vectors[0], 'angular_velocity_covariance': [],
                      'linear_acceleration': vectors[1], 'linear_acceleration_covariance': []})


def proposed(topics=('/imu/base', '/imu/tilt_boom', '/imu/tip'), force=1.0, rate=1.0, roll=0.0):
    """Of a crane whose IMUs all move alike, so that names alone decide; ``roll``: how the IMUs are mounted."""
    survey = Survey(FIELDS)
    for k, wave in enumerate(np.sin(np.linspace(0.0, 9.0, 300))):
        message = imu((roll + 0.02 * wave, 0.03 * wave, 0.5), (0.1 * rate * wave, 0.3 * rate * wave, 0.0),
                      (force * wave, 0.0, force * G))
        for topic in topics:
            survey.add(topic, IMU, k * 10_000_000, message)
        survey.add('/cylinders', 'sensor_msgs/msg/JointState', k * 10_000_000,
                   joint_state(TYPES, k * 10_000_000, ['lift_cylinder', 'tilt_cylinder'], [0.3 + 0.1 * wave] * 2))
    return propose(survey.topics, crane())


def chosen(proposal):
    return {name: f'{guess.candidate.topic} {guess.candidate.text} {guess.fits[0].unit}'
            for name, guess in proposal.guesses.items()}


def test_each_imu_is_that_of_the_body_it_is_named_after():
    proposal = proposed()
    assert chosen(proposal) == {
        **{f'position/{name}': f'/cylinders position[name={name}_cylinder] m' for name in ('lift', 'tilt')},
        **{f'position/base_{angle}': f'/imu/base orientation.{angle} rad' for angle in ('roll', 'pitch')},
        **{f'gyro/tilt_gyro.{axis}': f'/imu/tilt_boom angular_velocity.{axis} rad/s' for axis in 'xyz'},
        **{f'accelerometer/tip_acceleration.{axis}': f'/imu/tip linear_acceleration.{axis} m/s^2' for axis in 'xyz'}}
    assert proposal.guesses['position/base_pitch'].doubts == (
        'is it level with the base, or does it swing with the upper structure?',)
    assert 'pressure/lift_rod' in proposal.left


def test_what_a_name_does_not_decide_stays_open():
    """Quantities in names (`acceleration`) are no names of a part; the boom's attitude is not the base's."""
    found = proposed(('/imu/left', '/imu/right', '/imu/tilt_boom'))
    assert {name.partition('/')[0] for name in found.guesses} == {'position', 'gyro'}
    assert {name for name in found.guesses if name.startswith('position')} == {'position/lift', 'position/tilt'}
    assert 'no name decides' in found.left['position/base_roll']
    assert 'tilt_boom' not in found.left['position/base_roll']
    assert 'linear_acceleration.z of /imu/left' in found.left['accelerometer/tip_acceleration.z']
    boom = proposed(('/imu/tilt_boom',))
    assert 'position/base_roll' not in boom.guesses
    assert boom.left['position/base_roll'] == 'no number has a fitting name and possible values'


def test_the_only_attitude_there_is():
    found = proposed(('/imu/data',))
    assert found.guesses['position/base_roll'].candidate.topic == '/imu/data'
    assert 'no name supports it, but no other number is possible' in found.guesses['position/base_roll'].doubts


def test_rates_and_accelerations_in_other_units():
    """Against the definition of the message, but seen: an accelerometer in g, a gyro in deg/s."""
    assert chosen(proposed(rate=180 / np.pi))['gyro/tilt_gyro.y'].endswith(' deg/s')
    assert {chosen(proposed(force=force))[f'accelerometer/tip_acceleration.{axis}'].rpartition(' ')[2]
            for force in (0.9 / G, 1.1 / G) for axis in 'xyz'} == {'standard_gravity'}
    assert proposed().guesses['accelerometer/tip_acceleration.x'].doubts == ()
    weak = proposed(force=0.3)
    assert 'accelerometer/tip_acceleration.z' not in weak.guesses
    assert weak.left['accelerometer/tip_acceleration.z'].endswith('is possible in no unit')


def test_an_imu_upside_down_is_no_small_angle_in_degrees():
    """A quaternion has its angles in rad: 3.1 is half a turn, not 3.1 deg."""
    found = proposed(roll=np.pi - 0.1)
    assert 'position/base_roll' not in found.guesses
    assert found.left['position/base_roll'].endswith('is possible in no unit')


@pytest.mark.parametrize('more', ['', ', sign: -1', ', mount: {roll: 180 deg}'])
def test_a_map_with_a_quaternion_in_degrees_is_refused(more):
    def bind(unit):
        return TopicSamples('imu', parse_sources(
            'format: mbse/sources/1\nchannels:\n  position/base_roll: '
            f'{{topic: imu, path: orientation.roll, unit: {unit}{more}}}\n', 'map.yaml').sources, IMU, FIELDS)
    assert len(bind('rad').samples(imu((0.1, 0.0, 0.0), (0, 0, 0), (0, 0, G)), 0, pytest.fail)) == 1
    with pytest.raises(DescriptionError, match='map.yaml: channels.position/base_roll.unit: .*deg.* rad, in which'):
        bind('deg')
