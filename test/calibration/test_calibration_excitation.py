# SPDX-License-Identifier: Apache-2.0
"""Motions to calibrate an arm with, of an arm by hand."""

import json
import re

import cli_support
import numpy as np
import pytest
import small_arm
from source_tree import ROOT

import mbse_ros as mbse
from mbse_ros.api.calibrate import plan_calibration
from mbse_ros.calibration.balance import CalibrationBalance
from mbse_ros.calibration.excitation import CLEAR, FASTEST, LARGEST, Exciter

MOST = np.array([80.0, 40.0])       # N m, largest efforts of the file
GAIN, OFFSET, COULOMB, VISCOUS = (1.07, 0.94), (0.5, -0.4), (2.2, 0.9), (2.7, 1.7)
TRUTH = {'sensors.effort_1.gain': GAIN[0], 'sensors.effort_2.gain': GAIN[1],
         'drives.shoulder.friction.coulomb': COULOMB[0], 'drives.elbow.friction.coulomb': COULOMB[1],
         'drives.shoulder.friction.viscous': VISCOUS[0], 'drives.elbow.friction.viscous': VISCOUS[1]}


@pytest.fixture(scope='module')
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp('arm') / 'small_arm.yaml'
    path.write_text(small_arm.TEXT)
    return path


@pytest.fixture(scope='module')
def plan(file):
    return plan_calibration(file)


def test_motions_are_smooth_from_rest_to_rest_and_within_speed_and_effort(plan):
    found = plan.found
    assert len(found.motions) >= 2 and len(found.loaded) == 1 and found.load == 2.5
    for motion, load in [*((item, 0.0) for item in found.motions), *((item, 2.5) for item in found.loaded)]:
        t = np.arange(0.0, motion.duration + 1e-9, 0.002)
        q, qd, qdd = motion.at(t)
        assert np.abs(np.gradient(q, t, axis=0) - qd)[1:-1].max() < 1e-5
        assert np.abs(np.gradient(qd, t, axis=0) - qdd)[1:-1].max() < 1e-4
        assert np.abs(qd[[0, -1]]).max() < 1e-12 and np.abs(qdd[[0, -1]]).max() < 1e-12
        assert q[0] == pytest.approx(q[-1]) and np.abs(qd).max() <= FASTEST['rad'] * 1.001
        assert (np.abs(small_arm.torques(q, qd, qdd, load)) <= 1.01 * LARGEST * MOST).all()


def test_limits_of_joints_are_kept(tmp_path):
    """Also where the arm starts close to one: at 90 deg."""
    text = (ROOT / 'config/arms/ur10e.yaml').read_text()
    (tmp_path / 'arm.yaml').write_text(text.replace('limits: [-180 deg, 180 deg]', 'limits: [20 deg, 92 deg]'))
    exciter, rng = Exciter(CalibrationBalance(mbse.load(tmp_path / 'arm.yaml'))), np.random.default_rng(1)
    low, high = np.deg2rad([20, 92])
    room = CLEAR * (high - low)
    for motion in (exciter.motion(rng) for _ in range(5)):
        elbow = motion.at(np.arange(0.0, motion.duration, 0.05))[0][:, 2]
        assert low + room - 1e-3 < elbow.min() < elbow.max() < high - room + 1e-3 and np.ptp(elbow) > np.deg2rad(20)


def test_a_calibration_by_the_motions_is_as_exact_as_the_plan_says(file, plan, tmp_path):
    """Of another arm than the file's, whose efforts are those of Lagrange's equations."""
    rng, bags = np.random.default_rng(2), []
    for name, motions, load in ('empty', plan.found.motions, 0.0), ('load', plan.found.loaded, plan.found.load):
        rate, log, begin = 250.0, {}, 0.0
        for motion in motions:
            t = np.arange(0.0, motion.duration, 1 / rate)
            q, qd, qdd = motion.at(t)
            efforts = small_arm.torques(q, qd, qdd, load, COULOMB, VISCOUS)
            for k, joint in enumerate(small_arm.JOINTS):
                noise = rng.standard_normal((2, len(t)))
                for channel, values in ((f'position/{joint}_angle', q[:, k] + small_arm.ANGLE * noise[0]), (
                        f'effort/{joint}', GAIN[k] * efforts[:, k] + OFFSET[k] + small_arm.NOISE[k] * noise[1])):
                    log.setdefault(channel, []).append((begin + t, values))
            begin += motion.duration + 5.0      # the way to the next
        series = {channel: tuple(np.concatenate(item) for item in zip(*parts)) for channel, parts in log.items()}
        mbse.write_bag(tmp_path / name, series, file)
        bags.append(tmp_path / name)
    found = mbse.calibrate(bags, file, payloads={'load': plan.found.load})
    foretold = dict(zip(plan.found.keys, plan.found.after))
    own = {item.key: item for item in found.parameters if item.key in TRUTH}
    assert found.good and own.keys() == TRUTH.keys()
    for key, item in own.items():
        assert abs(item.after - TRUTH[key]) < 4 * item.stddev_after, key
        assert item.stddev_after < 0.2 * item.stddev_before, key
        # the plan takes 1 % of all forces for what no model knows, and its load is exact
        assert 0.1 < item.stddev_after / foretold[key] < 3.0, key


def test_the_command_prints_poses_and_writes_the_trajectory(file, tmp_path):
    text = cli_support.mbse('calibrate', '--plan', file, '--json', tmp_path / 'plan.json').out
    said = json.loads((tmp_path / 'plan.json').read_text())
    assert 'for collisions' in text and f'--payload load={said["load"]:g} --machine {file}' in re.sub(r'\s+', ' ', text)
    first = said['motions'][0]
    assert said['joints'] == ['shoulder_angle', 'elbow_angle'] and np.shape(first['velocities']) == (441, 2)
    assert f'{np.rad2deg(first["positions"][20][0]):.1f}' in text       # after 1 s
