# SPDX-License-Identifier: Apache-2.0
"""What each kind of sensor shows: against positions of points over time, and by hand."""

import casadi as ca
import numpy as np
import pytest
from sensor_mechanisms import CASES, central, description, model, sensors, states

from mbse_ros.compiled import Kernel
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.dynamics.sensor_equations import sensor_function, state_sensors
from mbse_ros.mechanism.sensors import sensor_model

STEP = 4e-3


class Motion:
    """A model moving through a state: geometry at times near it, by the accelerations there alone."""

    def __init__(self, name, coordinates):
        self.made = model(name, coordinates)
        self.system = system = self.made.partition().system
        self.q, self.zd, self.u, self.t = states(name, coordinates, 1)[0]
        self.zdd = self.made.partition().rates(self.q, self.zd, self.u, self.t).zdd
        frames = [system.frames[body].rotation for body in system.frames]
        self.bodies, self.points = list(system.frames), list(system.points)
        self._geometry = ca.Function('geometry', [system.q, system.t, system.values.symbol],
                                     [*system.points.values(), *frames])

    def at(self, s):
        """Points and rotations, s after the state."""
        z = self.q[self.made.z] + s * self.zd + s ** 2 / 2 * self.zdd
        q = self.made.partition().position(z, self.q, self.t + s)
        found = [item.full() for item in self._geometry(q, self.t + s, self.made.parameters)]
        places = {name: item[:, 0] for name, item in zip(self.points, found)}
        return q, places, dict(zip(self.bodies, found[len(places):]))

    def velocity(self, f):
        return central(lambda s: f(*self.at(s)), STEP)

    def acceleration(self, f):
        weights = {0: -205 / 72, 1: 8 / 5, 2: -1 / 5, 3: 8 / 315, 4: -1 / 560}
        return sum(w * (f(*self.at(k * STEP)) + f(*self.at(-k * STEP))) * (0.5 if k == 0 else 1.0)
                   for k, w in weights.items()) / STEP ** 2


@pytest.mark.parametrize('name, coordinates', CASES)
def test_sensors_show_the_motion(name, coordinates):
    motion = Motion(name, coordinates)
    shown = state_sensors(motion.system)
    h = sensors(name, coordinates)(motion.q, motion.zd, motion.u, [motion.t], motion.made.parameters)[0]
    sensor = {}
    for channel, value in zip(shown.channels, h):
        sensor.setdefault(channel.partition('.')[0], []).append(value)
    declared = description(name).sensors
    index, body = motion.system.names.index(declared['angle'].coordinate), declared['gyro'].body
    tip, own = str(declared['place'].points[0]), str(declared['imu'].points[0])
    q, places, turns = motion.at(0.0)
    turn = turns[body]
    spin = turn.T @ motion.velocity(lambda q, points, turns: turns[body])
    acceleration = motion.acceleration(lambda q, points, turns: points[own])
    gravity = [scalar.value for scalar in description(name).gravity]
    ends = [str(point) for point in declared['reach'].points]
    expected = {
        'angle': [q[index]], 'rate': [motion.velocity(lambda q, points, turns: q[index])],
        'place': places[tip], 'speed': motion.velocity(lambda q, points, turns: points[tip]),
        'gyro': [spin[1, 0]] if len(turn) == 2 else [spin[2, 1], spin[0, 2], spin[1, 0]],
        'imu': np.array(declared['imu'].axes) @ turn.T @ (acceleration - gravity),
        'motion': turn.T @ acceleration,
        'reach': [np.linalg.norm(places[ends[1]] - places[ends[0]])]}
    if len(turn) == 2:
        expected['tilt'] = [np.arctan2(turn[1, 0], turn[0, 0])]
    for kind, values in expected.items():
        assert sensor[kind] == pytest.approx(values, rel=1e-7, abs=1e-6), kind
    assert set(sensor) - {'torque'} == set(expected)


def test_channels_and_noise():
    """One name a component, the file's order, one standard deviation each; only an inclinometer wraps."""
    made = Model(description('four_bar'), backend='vm')
    shown = sensor_model(made.system)
    assert shown.channels == ('angle', 'rate', 'place.x', 'place.y', 'speed.x', 'speed.y', 'gyro', 'imu.x', 'imu.y',
                              'imu.z', 'motion.x', 'motion.y', 'reach', 'tilt')
    assert shown.angular.count(True) == 1 and shown.angular[-1]
    paper = sensor_model(load_model('four_bar', backend='vm').system)
    assert paper.stddev == pytest.approx([17.453e-3, 983.943e-6, 983.943e-6, 5.637583e-2, 5.637583e-2])


def test_crank_accelerometer_by_hand():
    """At the tip of a crank: l theta'' across, -l theta'^2 along, and the weight's reaction."""
    made = load_model('four_bar', backend='vm')
    partition, zd, theta = made.partition(), np.array([1.7]), np.pi / 3
    kernel = Kernel(sensor_function(partition.system, partition.system.values.symbol), 'vm')
    h = kernel(made.start.q, zd, [4.0], [0.0], made.parameters)[0]
    zdd = partition.rates(made.start.q, zd, np.array([4.0])).zdd[0]
    assert h[3] == pytest.approx(2 * zdd + 9.81 * np.cos(theta), rel=1e-12)
    assert h[4] == pytest.approx(-2 * 1.7 ** 2 + 9.81 * np.sin(theta), rel=1e-12)


def test_slider_at_rest_feels_the_weight():
    """An accelerometer on a body that stands still shows minus g."""
    made = Model(description('slider_crank'), backend='vm')
    channels = state_sensors(made.partition().system).channels
    assert [c for c in channels if c.startswith('imu')] == ['imu.x', 'imu.y', 'imu.z']
    output = sensor_model(made.system)
    still = ca.Function('still', [made.system.q, made.system.qd, output.qdd, made.system.values.symbol],
                        [output.output])(made.start.q, 0, 0, made.parameters).full()[:, 0]
    places = [channels.index(c) for c in ('imu.x', 'imu.y', 'imu.z', 'motion.x', 'motion.y', 'tilt')]
    x, y, z, mx, my, tilt = still[places]
    assert (mx, my) == (0.0, 0.0)
    assert y == pytest.approx(9.81 * np.cos(tilt), rel=1e-12) and z == pytest.approx(9.81 * np.sin(tilt), rel=1e-12)
    assert x == pytest.approx(0.6 * z + 0.8 * y, rel=1e-12)
