# SPDX-License-Identifier: Apache-2.0
"""The command line on machines of several coordinates: units, truth, findings, pictures; the tools of mechanisms."""

import json
from dataclasses import replace

import numpy as np
import pytest
from cli_support import mbse, refused

from mbse_ros.api.check import model_warnings, reach_warnings
from mbse_ros.bags.bag import Bag
from mbse_ros.bags.reader import Sample
from mbse_ros.bags.series import read_states
from mbse_ros.bags.writer import BagWriter
from mbse_ros.description.coordinate_units import unit_and_scale
from mbse_ros.description.load import known_machines, load_mechanism
from mbse_ros.errors import DescriptionError
from mbse_ros.machine import Machine, load_machine
from mbse_ros.machine.reach import reach_of
from mbse_ros.offline.bag import estimate_bag, parse_tuning
from mbse_ros.offline.checks.log_verdict import stroke_lines
from mbse_ros.offline.estimate_report import report_run
from mbse_ros.offline.log_samples import LogSamples
from mbse_ros.report.charts import charts_of
from mbse_ros.report.crane import FROM_AXIS, scene_of
from mbse_ros.report.writer import page, time_span


@pytest.fixture(scope='module')
def dig(tmp_path_factory):
    """An excavator digs, swings and dumps: 22 s at 50 Hz."""
    folder = tmp_path_factory.mktemp('dig') / 'bag'
    done = mbse('simulate', 'zx200', '-o', folder, '--payload', 1000, '--cycle', 'dig', '--rate', 50)
    assert done.status == 0, done
    return folder


@pytest.fixture(scope='module')
def estimate(dig):
    return estimate_bag(dig, load_machine('zx200'), parse_tuning([]))


@pytest.fixture(scope='module')
def second(dig):
    """The first second of it."""
    folder = dig.parent / 'second'
    with BagWriter(folder) as writer:
        messages = list(Bag(dig).messages())
        for raw in messages:
            if raw.stamp_ns - messages[0].stamp_ns < 1e9:
                writer.write_cdr(raw.topic, raw.msgtype, raw.stamp_ns, raw.data)
    return folder


def test_the_whole_state_as_json(second, tmp_path):
    done = mbse('estimate', second, '--machine', 'zx200', '--full', '--json', tmp_path / 'x.json', '-o',
                tmp_path / 'out')
    assert done.status == 0, done
    state = json.loads((tmp_path / 'x.json').read_text())['state']
    assert len(state['names']) == 22 and np.shape(state['position']) == (len(state['stamp_ns']), 4)
    assert np.shape(state['pressure']) == (len(state['stamp_ns']), 6)
    series = read_states(tmp_path / 'out')
    assert list(series.names) == state['names'] and series.stamp_ns.tolist() == state['stamp_ns']


@pytest.mark.usefixtures('vm')
def test_the_other_valves(second, tmp_path):
    """Compensated valves take the same data; unknown ones need no commands."""
    for valve, count in (('compensated', 22), ('unknown', 25)):
        done = mbse('estimate', second, '--machine', 'zx200', '--valve', valve, '--full', '--json',
                    tmp_path / 'x.json')
        assert done.status == 0, done
        assert len(json.loads((tmp_path / 'x.json').read_text())['state']['names']) == count


def test_units_go_by_the_coordinate(estimate):
    """Lengths in mm, angles in degrees, and the table of errors in the same."""
    run = report_run(estimate, 'x')
    units = {signal.name: (signal.unit, signal.scale) for signal in run.signals}
    degrees = 180 / np.pi
    assert units['position boom'] == ('mm', 1e3) and units['acceleration boom'] == ('m/s²', 1.0)
    assert units['position swing_joint'] == ('deg', degrees) and units['velocity swing_joint'] == ('deg/s', degrees)
    assert {signal.name: signal.group for signal in run.signals}['position swing_joint'] == 'Position'
    swing = next(signal for signal in run.signals if signal.name == 'position swing_joint')
    assert 30 < degrees * np.nanmax(swing.true.value) < 80
    np.testing.assert_allclose(swing.estimated.value[50:], swing.true.value[50:], atol=0.01)
    loads, causes, table = run.tables
    rows = {row[0]: row[1] for row in table.rows}
    assert rows['position/swing_joint'].endswith(' deg') and rows['position/arm'].endswith(' mm')
    assert rows['pressure/arm_rod'].endswith(' kPa')


def test_units_of_channels_that_are_no_coordinates():
    described = load_machine('zx200').description
    assert [unit_and_scale(described, name)[0] for name in ('gyro/cab', 'accelerometer/cab.x', 'position/base_roll',
                                                 'inclination/roll', 'supply/pump', 'flow/x.a', 'spool/x')] == [
        'deg/s', 'm/s²', 'deg', 'deg', 'MPa', 'l/min', 'V']


def test_the_machine_is_drawn_from_its_own_side_and_from_above(estimate):
    """Who swings with it sees the boom's foot stand still, and all in one plane; from above it turns by the swing."""
    animation = report_run(estimate, 'x').animation
    assert animation.turn is not None and np.ptp(animation.turn.angle) > 0.5
    scene = scene_of(animation, 30.0)
    assert scene.labels == (FROM_AXIS, 'z') and scene.above.labels == ('x', 'y')
    assert np.ptp(scene.estimated['upper'], axis=0).max() < 1e-9
    stand, upper = (next(one for one in scene.solids if one.kind == kind and not one.ghost)
                    for kind in ('stand', 'body'))
    assert np.ptp(stand.at(0)[:, 1]) > 1.0 and np.ptp(upper.places, axis=0).max() < 1e-9
    np.testing.assert_allclose(stand.at(0)[:, 0].mean(), 0.0, atol=1e-6)
    swung = scene.above.estimated['upper'][:, 1] - scene.above.estimated['upper'][:, 0]
    angle = np.unwrap(np.arctan2(swung[:, 1], swung[:, 0]))
    np.testing.assert_allclose(angle - angle[0], animation.turn.angle - animation.turn.angle[0], atol=1e-9)
    teeth = scene.estimated['bucket'][:, 4]
    level = scene.above.estimated['bucket'][:, 4] - np.array(animation.turn.axis)
    np.testing.assert_allclose(np.hypot(*level.T), np.abs(teeth[:, 0]), atol=0.01)
    estimated, measured = (side['payload'][:, 0] for side in (scene.estimated, scene.measured))
    assert np.nanmedian(np.linalg.norm(estimated - measured, axis=1)) < 0.1
    run = report_run(estimate, 'x')
    html = page(run, charts_of(run), scene, time_span(run))
    assert 'id="above"' in html and 'from its own side and from above' in html


def test_frames_stay_on_their_branch(estimate):
    """The linkage of the bucket does not jump from frame to frame."""
    animation = report_run(estimate, 'x').animation
    for name in ('rocker', 'link', 'bucket'):
        steps = np.linalg.norm(np.diff(animation.estimated[name], axis=0), axis=2)
        assert np.nanmax(steps) < 0.4, name


def test_a_pose_that_cannot_be_is_not_drawn(estimate):
    mean = estimate.states.mean.copy()
    mean[100:200, 2] = 9.0
    track = replace(estimate.track, states=replace(estimate.states, mean=mean))
    animation = report_run(replace(estimate, track=track), 'x').animation
    drawn = np.isfinite(animation.estimated['bucket'][:, 0, 0])
    inside = (animation.t > 2.05) & (animation.t < 3.95)
    assert not drawn[inside].any() and drawn[~inside & (np.abs(animation.t - 3.0) > 1.1)].all()


def test_positions_that_cannot_be():
    """Strokes and limits of joints, by the coordinate."""
    machine = load_machine('zx200_can')
    samples = [Sample('position/boom_joint', k, value) for k, value in enumerate((-0.5, -0.5, 0.2))]
    samples += [Sample('position/swing_joint', 0, 9.0), Sample('pressure/boom_rod', 0, 9.0)]
    assert stroke_lines(LogSamples.of(samples), machine) == [
        'position/boom_joint: 1 sample of 3 outside the limits of -1.137 to -0.1 rad, the first 0.2 rad']
    strokes = stroke_lines(LogSamples.of([Sample('position/arm', 0, 1.6)]), load_machine('zx200'))
    assert strokes == ['position/arm: 1 sample of 1 outside the stroke of 0 to 1.49 m, the first 1.6 m']


def test_reach_of_the_cylinders():
    """The bucket's linkage as in the file's own comments: strokes are what the limits of the joints ask for."""
    found = {item.cylinder: item.moved for item in reach_of(load_machine('zx200'))}
    for cylinder, joint, low, high in (('boom', 'boom_joint', -1.137, -0.1), ('arm', 'arm_joint', 0.594, 2.687),
                                       ('bucket', 'bucket_joint', -0.622, 2.372)):
        reached = found[cylinder][joint]
        assert low - 0.03 < reached[0] <= low and high <= reached[1] < high + 0.03
    assert set(found['boom']) == {'boom_joint'}
    assert set(found['bucket']) == {'bucket_joint', 'rocker_joint', 'link_joint'}
    by_angles = [item.moved.keys() for item in reach_of(load_machine('zx200_can'))]
    assert by_angles == [item.keys() for item in found.values()]


def test_tools_of_mechanisms_take_machines(tmp_path):
    (tmp_path / 'm.csv').write_text('t,lift [m]\n0,0.1\n0.5,0.15\n1,0.2\n1.5,0.2\n')
    done = mbse('inverse', 'patu655_lift', '--motion', tmp_path / 'm.csv', '-o', tmp_path / 'inverse')
    assert done.status == 0 and 'largest lift ' in done.out, done
    done = mbse('export-c', 'patu655_lift', '-o', tmp_path / 'c')
    assert done.status == 0 and 'state of 2 (lift and rates)' in done.out
    assert 'drivers: got None' in refused('inverse', 'zx200', '-o', tmp_path / 'no')


def test_filters_of_mechanisms_know_no_pressures(tmp_path):
    """A pressure by name is refused before anything is compiled; without names they are left out, with a note."""
    line = refused('tune', 'zx200', '--sensors', 'boom_stroke,boom_piston', '--estimator', 'DEKF')
    assert line.startswith("--sensors: got 'boom_piston', expected sensors of the motion, this one is of")
    assert 'swing_angle, boom_stroke' in line and 'mbse estimate BAG --machine zx200' in line
    with BagWriter(tmp_path / 'bag') as writer:
        writer.write('/x', 'std_msgs/msg/Float64', 1, {'data': 1.0})
    for command in ('estimate', 'smooth'):
        words = command, tmp_path / 'bag', '--mechanism', 'patu655_lift'
        done = mbse(*words)
        assert done.status == 2 and done.err.startswith('note: lift_piston, lift_rod not used: filters of a mechanism')
        assert 'expected sensors of the motion' in refused(*words, '--sensors', 'lift_piston')


def linkage(tmp_path, link, limits='limits: [-0.622 rad, 2.372 rad]'):
    """zx200 with another start of the bucket's link, and other limits of the bucket."""
    text = known_machines()['zx200'].read_text()
    for old, new in ((LINK, LINK.replace('0 deg', link)), ('limits: [-0.622 rad, 2.372 rad]', limits)):
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = tmp_path / 'zx200.yaml'
    path.write_text(text)
    return path


LINK = '    child: link.eye\n    axis: [0, 1, 0]\n    start: 0 deg'


@pytest.mark.usefixtures('vm')
def test_a_linkage_on_its_other_branch_is_found(tmp_path):
    """By the joint's limits; where a little of the stroke is beyond them, this is said."""
    machine = Machine(load_mechanism(linkage(tmp_path, '90 deg')))
    with pytest.raises(DescriptionError, match='other branch') as caught:
        list(reach_warnings(machine, reach_of(machine)))
    assert caught.value.key == 'joints.bucket_joint' and '-65.4' in caught.value.value
    machine = Machine(load_mechanism(linkage(tmp_path, '0 deg', 'limits: [-0.622 rad, 2.0 rad]')))
    found, = reach_warnings(machine, reach_of(machine))
    assert '137.1' in found and '114.5' in found
    assert 'joints.bucket_joint' in refused('check', linkage(tmp_path, '90 deg'))


@pytest.mark.usefixtures('vm')
@pytest.mark.parametrize('name', list(known_machines()))
def test_no_shipped_machine_moves_beyond_its_limits(name):
    machine = load_machine(name)
    assert not list(reach_warnings(machine, reach_of(machine))) and not list(model_warnings(machine.model))
