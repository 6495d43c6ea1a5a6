# SPDX-License-Identifier: Apache-2.0
"""Weighing with an arm whose efforts are measured: from samples, and by a calibrated file from a bag."""

import re
from functools import cache

import numpy as np
import pytest
import small_arm
from source_tree import ROOT
from urdf_of import LIMIT, inertial, joint

import mbse_ros as mbse
from mbse_ros.bags.table_map import load_table_map
from mbse_ros.sources.machine import check_table

LOAD = 2.0      # kg
URDF = '''
<robot name="my_arm">
  <link name="base"/>
  <link name="fore">
    <inertial>
      <origin xyz="0 0 0.2"/><mass value="2"/>
      <inertia ixx="0.04" iyy="0.04" izz="0.01" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <link name="tool0"/>
  <joint name="elbow_joint" type="revolute">
    <parent link="base"/><child link="fore"/><axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="150" velocity="3"/>
  </joint>
  <joint name="flange" type="fixed"><origin xyz="0 0 0.4"/><parent link="fore"/><child link="tool0"/></joint>
</robot>
'''


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp('arm')
    (place / 'small_arm.yaml').write_text(small_arm.TEXT)
    (place / 'exact.yaml').write_text(re.sub(r', stddev: (30 %|0.1|1 N\*m|2 %|0.05 deg)\}', '}', small_arm.TEXT))
    return place


@cache
def samples(gain=(1.0, 1.0), duration=6.0):
    return small_arm.log(duration, LOAD, 1, gain)


def test_the_mass_of_a_load_with_its_interval(folder):
    found = mbse.estimate(samples(), folder / 'small_arm.yaml', every=0.1)
    assert found.mass[-1] == pytest.approx(LOAD, abs=0.06) and found.status[-1] == 'updating' and not found.warnings
    assert found.lower[-1] < LOAD < found.upper[-1] and found.upper[-1] - found.lower[-1] > 0.5       # gains of 10 %


def test_a_file_that_is_wrong_says_so(folder):
    """Gains that the file calls exact are not: it is known by the equations, which contradict each other."""
    right = mbse.estimate(samples(), folder / 'exact.yaml', every=0.1)
    wrong = mbse.estimate(samples((1.1, 0.9)), folder / 'exact.yaml', every=0.1)
    assert not right.warnings and right.upper[-1] - right.lower[-1] < 0.02
    assert len(wrong.warnings) == 1 and re.search(r'force balance does not fit the sensors.* N m', wrong.warnings[0])
    assert wrong.upper[-1] - wrong.lower[-1] > 5 * (right.upper[-1] - right.lower[-1])


@pytest.mark.parametrize('gain', [(1.1, 1.1), (0.9, 0.9), (0.9, 1.1), (1.1, 0.9)])
def test_its_interval_holds_what_wrong_gains_do(folder, gain):
    """Part of it looks like a load, which no residual shows."""
    found = mbse.estimate(samples(gain), folder / 'exact.yaml', every=0.1)
    assert abs(found.mass[-1] - LOAD) > 0.05 and found.lower[-1] < LOAD < found.upper[-1]
    assert 'the file calls exact may make' in found.warnings[0]
    assert sum(cause.kg ** 2 for cause in found.budget) == pytest.approx(
        ((found.upper[-1] - found.lower[-1]) / 2 / 1.96) ** 2, rel=1e-3)


def test_the_file_of_a_urdf_weighs(tmp_path):
    """Friction is typical and gains are known to 10 %; the rotors, which no URDF has, are not in it."""
    links = ''.join(f'<link name="{name}">{inertial(mass, (center, 0, 0), (0.01, moment, moment))}</link>'
                    for name, mass, center, moment in zip(('upper', 'fore'), small_arm.MASSES, small_arm.CENTRES,
                                                          small_arm.INERTIAS))
    lifts = '<axis xyz="0 -1 0"/>' + LIMIT
    (tmp_path / 'arm.urdf').write_text(
        f'<robot name="by_urdf"><link name="base"/><link name="tool"/>{links}'
        + joint('shoulder', 'base', 'upper', (0, 0, 0), more=lifts.format(-3, 3, 80), kind='revolute')
        + joint('elbow', 'upper', 'fore', (0.5, 0, 0), more=lifts.format(-3, 3, 40), kind='revolute')
        + joint('flange', 'fore', 'tool', (0.4, 0, 0)) + '</robot>')
    found = mbse.new({'urdf': str(tmp_path / 'arm.urdf'), 'shoulder': 'drive', 'elbow': 'drive', 'load': '5 kg',
                      'load_center': '0 m, 0 m, 0 m', 'positions': '2e-5 rad', 'effort_stddev': '0.3, 0.15'})
    found.write(tmp_path / 'by_urdf.yaml')
    log = {name.replace('_angle', ''): series for name, series in samples().items()}
    estimate = mbse.estimate(log, tmp_path / 'by_urdf.yaml', every=0.1)
    assert estimate.mass[-1] == pytest.approx(LOAD, abs=0.3) and not estimate.warnings
    assert estimate.lower[-1] < LOAD < estimate.upper[-1] < LOAD + 2.0


def test_the_force_on_the_flange_is_that_by_the_transposed_jacobian(folder):
    """What the surroundings push with, from 12 s on, in the axes of the body that they push; mass and inertia of the
    load are not in it."""
    (folder / 'touched.yaml').write_text((folder / 'exact.yaml').read_text().replace(
        '{body: fore,', '{body: fore, contact: fore.tool,'))
    force, log, (t, q, *_) = np.array([20.0, -40.0]), small_arm.log(13.5, LOAD, 4), small_arm.motion(13.5)
    a, whole = q[:, 0], q.sum(axis=1)
    far = small_arm.FORE * np.array([-np.sin(whole), np.cos(whole)])
    near = small_arm.UPPER * np.array([-np.sin(a), np.cos(a)])
    for name, lever in (('shoulder', near + far), ('elbow', far)):
        effort = log[f'effort/{name}'][1]
        log[f'effort/{name}'] = t, effort - np.where(t > 12.0, force @ lever, 0.0)
    found = mbse.estimate(log, folder / 'touched.yaml').last.payload.tool_force
    turn = np.array([[np.cos(whole[-1]), np.sin(whole[-1])], [-np.sin(whole[-1]), np.cos(whole[-1])]])
    assert found.mass == pytest.approx(LOAD, abs=0.05) and found.reason == 'no drive that weighs shows z'
    assert np.linalg.norm(found.force[:2]) == pytest.approx(np.linalg.norm(force), rel=0.1)
    assert np.linalg.norm(found.force[:2] - turn @ force) < 0.3 * np.linalg.norm(force)     # a mean over 0.5 s


def test_a_silent_effort_takes_its_equation_out(folder):
    log = dict(samples())
    t, y = log['effort/elbow']
    log['effort/elbow'] = t, np.where(t > 4.0, np.nan, y)
    found = mbse.estimate(log, folder / 'small_arm.yaml', every=0.1)
    assert found.lower[-1] < LOAD < found.upper[-1]
    assert any('effort/elbow' in line for line in found.warnings)


def test_an_empty_calibration_finds_friction_gain_and_offset_and_the_new_file_weighs(folder):
    gain, offset, coulomb, viscous = (1.1, 0.92), (0.4, -0.3), (2.3, 0.85), (2.6, 1.7)
    log = small_arm.log(60.0, 0.0, 5, gain, offset, coulomb=coulomb, viscous=viscous)
    mbse.write_bag(folder / 'empty', log, folder / 'small_arm.yaml')
    found = mbse.calibrate(folder / 'empty', folder / 'small_arm.yaml')
    assert found.good and found.write(folder / 'calibrated.yaml')
    assert 0.0 < found.grade.half_width < 1.0 and 'RMS, N m' in found.tables()[1].title
    truth = {'sensors.effort_1.gain': gain[0], 'sensors.effort_2.gain': gain[1], 'sensors.effort_1.offset': offset[0],
             'sensors.effort_2.offset': offset[1], 'drives.shoulder.friction.coulomb': coulomb[0],
             'drives.shoulder.friction.viscous': viscous[0], 'drives.elbow.friction.coulomb': coulomb[1],
             'drives.elbow.friction.viscous': viscous[1]}
    for item in (item for item in found.parameters if item.key in truth):
        assert abs(item.after - truth[item.key]) < 3.5 * item.stddev_after < 0.6 * item.stddev_before, item.key
    assert {'shoulder', 'elbow'} == found.friction.keys()
    before, after = (mbse.estimate(small_arm.log(6.0, LOAD, 6, gain, offset, coulomb=coulomb, viscous=viscous),
                                   folder / name, every=0.1) for name in ('small_arm.yaml', 'calibrated.yaml'))
    assert after.mass[-1] == pytest.approx(LOAD, abs=0.08) and after.lower[-1] < LOAD < after.upper[-1]
    assert after.upper[-1] - after.lower[-1] < 0.5 * (before.upper[-1] - before.lower[-1])


def test_the_arm_of_the_page_is_a_machine(tmp_path):
    """docs/arm.md, with a URDF of its one joint."""
    text = re.search(r'```yaml\n(.*?)```', (ROOT / 'docs' / 'arm.md').read_text(), re.DOTALL)[1]
    (tmp_path / 'my_arm.yaml').write_text(text)
    (tmp_path / 'my_arm.urdf').write_text(URDF)
    found = mbse.load(tmp_path / 'my_arm.yaml')
    assert found.channels == ('position/elbow_joint', 'effort/elbow') and found.weighing == (0,)
    assert not mbse.check(tmp_path / 'my_arm.yaml').trouble


def test_a_report_and_the_table_of_topics_have_the_efforts(folder, tmp_path):
    mbse.write_bag(tmp_path / 'bag', small_arm.log(1.0, LOAD, 3), folder / 'small_arm.yaml')
    page = mbse.estimate(tmp_path / 'bag', folder / 'small_arm.yaml').report(tmp_path / 'report', pictures=False)
    assert 'effort elbow' in page.read_text()
    found = mbse.topics(tmp_path / 'bag', folder / 'small_arm.yaml', sources='none')
    rows = {row.channel: row for row in found.channels}
    assert rows['effort/elbow'].field == 'effort[name=elbow]' and rows['effort/elbow'].unit == 'N m'
    proposed = mbse.topics(tmp_path / 'bag', folder / 'small_arm.yaml').proposal.guesses['effort/elbow']
    assert proposed.candidate.text == 'effort[name=elbow]' and proposed.fits[0].unit == 'N*m'


def test_a_table_in_another_unit_than_the_sensors_is_refused(folder, tmp_path):
    (tmp_path / 'map.yaml').write_text('format: mbse/table/1\nname: log\ntime: {column: t, unit: s}\nchannels:\n'
                                       '  effort/elbow: {column: i, unit: A}\n')
    with pytest.raises(mbse.errors.DescriptionError, match="effort/elbow.unit: got 'A', expected a unit of N m"):
        check_table(load_table_map(tmp_path / 'map.yaml'), mbse.load(folder / 'small_arm.yaml').description)
