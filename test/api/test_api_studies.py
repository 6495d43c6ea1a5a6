# SPDX-License-Identifier: Apache-2.0
"""``smooth``, ``observability``, ``inverse_dynamics``, ``export_c``: as by the parts they are made of."""

import json

import numpy as np
import pytest
from cli_support import mbse as command
from cli_support import refused
from matplotlib import pyplot

import mbse_ros as mbse
from mbse_ros.dynamics.forces.driven_motion import inverse_dynamics
from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import DescriptionError, GraphError, SettingError

SENSORS = ['encoder']


@pytest.fixture(scope='module')
def truth():
    return mbse.simulate('four_bar', 2.0, 5e-3, 'trapezoid', sensors=SENSORS)


@pytest.fixture(scope='module')
def bag(truth, tmp_path_factory):
    return mbse.write_bag(tmp_path_factory.mktemp('linkage') / 'bag', truth)


def rms(found, truth, name='theta'):
    return np.sqrt(np.mean((found[name] - np.interp(found.t, truth.t, truth[name])) ** 2))


def test_smoothing_a_mechanism_as_by_the_command_line(truth, bag, tmp_path):
    found = mbse.smooth(bag, 'four_bar', sensors=SENSORS, lag=0.2)
    assert command('smooth', bag, '--mechanism', 'four_bar', '--sensors', 'encoder', '--lag', 0.2, '--full', '--json',
                   tmp_path / 'x').status == 0
    theirs = json.loads((tmp_path / 'x').read_text())
    np.testing.assert_array_equal(found.mean, theirs['state']['mean'])
    ours = json.loads(json.dumps(found.to_json(True), allow_nan=False))
    assert {**ours, 'cost': 0} == {**theirs, 'cost': 0}
    assert found.names == ('position/theta', 'velocity/theta', 'force/theta') and found.estimator == 'smoother'
    np.testing.assert_allclose(found.t, truth.samples.t - truth.samples.t[0], atol=1e-9)      # of a bag: from its first


def test_what_the_sensors_do_not_see_is_a_warning_here_too():
    """A gyro on a crank at rest: any angle would do."""
    still = mbse.Samples(0.005 * np.arange(1, 61), ('crank_gyro',), np.zeros((60, 1)))
    found = mbse.smooth(still, 'four_bar', sensors=['crank_gyro'], backend='vm')
    assert any('theta: the sensors do not see it' in line for line in found.warnings)


def check_same(found, done, theirs):
    """JSON, words and titles of tables of a result are those of the command."""
    assert done.status == 0 and json.loads(json.dumps(found.to_json(), allow_nan=False)) == json.loads(
        theirs.read_text())
    said = ' '.join(done.out.split())
    assert all(' '.join(line.split()) in said for line in (*found.summary(), *(item.title for item in found.tables())))


@pytest.mark.parametrize('name, sensors, words, options', [
    ('four_bar', 'crank_gyro', ('--duration', 1), {'duration': 1.0, 'kind': 'all'}),
    ('four_bar', 'encoder', ('--trajectory', 'rest', '--model', 'exact'), {'trajectory': 'rest', 'kind': 'exact'}),
    ('patu655_lift', 'lift_stroke,lift_piston', (), {})])
def test_what_sensors_see_as_by_the_command_line(name, sensors, words, options, tmp_path):
    found = mbse.observability(name, sensors.split(','), **options)
    done = command('observability', name, '--sensors', sensors, *words, '--json', tmp_path / 'theirs', '-o',
                   tmp_path / 'plots')
    check_same(found, done, tmp_path / 'theirs')
    assert (found.report(tmp_path / 'report') / 'observability.png').read_bytes() == (
        tmp_path / 'plots' / 'observability.png').read_bytes()


def test_noises_as_by_the_command_line(tmp_path):
    """On simulated logs of a mechanism, and on a log of it."""
    of = {'estimator': 'DEKF', 'sensors': ['encoder'], 'skip': 0.5, 'backend': 'vm'}
    words = 'tune', '--estimator', 'DEKF', '--sensors', 'encoder', '--skip', 0.5, '--backend', 'vm', '--json'
    done = command(*words, tmp_path / 'theirs', '--duration', 1, 'four_bar')
    check_same(mbse.tune('four_bar', duration=1.0, **of), done, tmp_path / 'theirs')
    assert done.out.splitlines()[-1].startswith('DEKF on four_bar: log-likelihood ')
    bag = mbse.write_bag(tmp_path / 'bag', mbse.simulate('four_bar', 1.0, sensors=SENSORS))
    done = command(*words, tmp_path / 'log', '--mechanism', 'four_bar', bag)
    check_same(mbse.tune([bag], mechanism='four_bar', **of), done, tmp_path / 'log')
    for wrong, said in ((dict(duration=0.01), 'duration'), (dict(sensors=()), 'sensors'), (dict(z=[1.0]), 'z: got')):
        with pytest.raises(SettingError, match=said):
            mbse.tune('four_bar', **{**of, **wrong})
    assert refused(*words, tmp_path / 'x', bag).startswith('--mechanism: got None, expected the mechanism')


def test_a_machine_is_not_simulated_without_its_hydraulics_for_noises():
    """It would fall through the ends of its strokes."""
    of = {'estimator': 'errorEKF_FE', 'sensors': ['lift_stroke'], 'duration': 1.0, 'backend': 'vm'}
    for machine in ('patu655_lift', mbse.load('patu655_lift')):
        with pytest.raises(DescriptionError, match='cylinders: .*tune BAG --mechanism patu655_lift'):
            mbse.tune(machine, **of)


@pytest.mark.parametrize('words, options', [
    ((), {}), (('--duration', 1, '--dt', 0.1), {'duration': 1.0, 'dt': 0.1})])
def test_the_forces_of_drivers_as_by_the_command_line(words, options, tmp_path, few_frames):
    found = mbse.inverse_dynamics('four_bar_adams_driven', **options)
    done = command('inverse', 'four_bar_adams_driven', '-o', tmp_path / 'theirs', *words)
    assert done.out == f'wrote {tmp_path / "theirs"}: {found.summary()[0]}\n'
    columns = json.loads(json.dumps(found.to_json(True), allow_nan=False))
    assert columns.pop('t') == list(found.t) and columns.pop('state')['power'] == list(found['power'])
    assert columns == json.loads((tmp_path / 'theirs' / 'summary.json').read_text())
    for path in found.report(tmp_path / 'ours').iterdir():
        assert path.read_bytes() == (tmp_path / 'theirs' / path.name).read_bytes()


def test_the_forces_of_a_table_as_by_the_command_line(tmp_path):
    table = tmp_path / 'motion.csv'
    table.write_text('t,lift [m]\n0,0.1\n0.5,0.15\n1,0.2\n1.5,0.2\n')
    found = mbse.inverse_dynamics('patu655_lift', motion=table, dt=0.25)
    done = command('inverse', 'patu655_lift', '--motion', table, '--dt', 0.25, '-o', tmp_path / 'theirs')
    assert found.summary()[0] in done.out and found.to_json()['motion']['rows'] == 4
    assert [f'warning: {line}' for line in found.warnings] == done.err.splitlines()
    for wrong in (dict(dt=0.0), dict(duration=9.0), dict(z=np.zeros(4))):
        with pytest.raises(SettingError, match=next(iter(wrong))):
            mbse.inverse_dynamics('patu655_lift', motion=table, **wrong)


def test_a_whole_log_is_better_than_its_filter(truth):
    smoothed, filtered = mbse.smooth(truth.samples, 'four_bar'), mbse.estimate(truth.samples, 'four_bar')
    assert rms(smoothed, truth) < 0.7 * rms(filtered, truth)
    assert np.median(smoothed.stddev[:, 0]) < 0.7 * np.median(filtered.stddev[:, 0])
    assert smoothed.units['force/theta'] == 'N m' and len(smoothed.series()) > 10


def test_smoothing_a_machine():
    pytest.importorskip('gtsam', reason='GTSAM is not installed (extra "graph")')
    work = mbse.simulate('patu655_lift', 4.0, payload=80.0)
    found = mbse.smooth(work.samples, work.machine, lag=0.4, tuning={'graph.unknown_force': 1.0})
    assert found.lower[-1] < 80.0 < found.upper[-1] and rms(found, work, 'position/lift') < 1e-4
    np.testing.assert_allclose(found.t, found.filtered.t)
    assert set(found.names) == set(found.units) <= set(found.filtered.units)
    assert found.units['pressure/lift_rod'] == 'Pa'
    with pytest.raises(GraphError):
        mbse.smooth(mbse.simulate('patu655_lift', 0.4).samples, 'patu655_lift')     # nothing has moved yet


@pytest.mark.parametrize('make, said', [
    (lambda s: mbse.smooth(s, 'four_bar', lag=0.0), 'lag: got 0.0'),
    (lambda s: mbse.smooth(s, 'four_bar', tuning={'linkage.estimator': 'DEKF'}), 'errorEKF_FE, the filter of the same'),
    (lambda s: mbse.smooth(s, 'zx200', step=0.1), 'it is for a mechanism'),
    (lambda s: mbse.observability('four_bar', 'encoder'), r"such as \['encoder'\]"),
    (lambda s: mbse.observability('four_bar', ['radar']), 'crank_gyro'),
    (lambda s: mbse.observability('four_bar', SENSORS, kind='best'), 'simple'),
    (lambda s: mbse.observability('four_bar', SENSORS, trajectory='walk'), 'free'),
    (lambda s: mbse.observability('four_bar', SENSORS, duration=0.1), 'from window'),
    (lambda s: mbse.observability('four_bar', SENSORS, trajectory=mbse.simulate('four_bar', 0.1)), 'longer than'),
    (lambda s: mbse.observability('zx200', ['radar']), 'one of '),
    (lambda s: mbse.inverse_dynamics('four_bar', [0.0, 0.1]), 'which no driver moves'),
    (lambda s: mbse.inverse_dynamics('four_bar', np.arange(5.0), np.zeros((5, 2))), r'z: got \(5, 2\).*theta'),
    (lambda s: mbse.inverse_dynamics('four_bar', np.arange(3.0), np.zeros(3)), '4 times or more'),
    (lambda s: mbse.inverse_dynamics('four_bar_adams_driven', np.arange(5.0), np.zeros((5, 1))), 'drivers move all'),
    (lambda s: mbse.export_c('four_bar_adams_driven', 'nowhere'), 'drivers do not move completely')])
def test_what_is_refused(truth, make, said):
    with pytest.raises(SettingError, match=said):
        make(truth.samples)


def test_observability_as_by_the_command_line(tmp_path):
    assert command('observability', 'four_bar', '--sensors', 'crank_gyro', '--json', tmp_path / 'x').status == 0
    for theirs in json.loads((tmp_path / 'x').read_text())['results']:
        found = mbse.observability('four_bar', ['crank_gyro'], kind=theirs['model'])
        assert found.verdict == theirs['verdict'] and found.blind == theirs['blind']
        np.testing.assert_allclose(found.information, [window['information'] for window in theirs['windows']])
        np.testing.assert_allclose(found.t, [window['t'] + 0.25 for window in theirs['windows']])
        assert list(found.helpers) == [item['sensor'] for item in theirs['helpers']]
    ax, = found.plot().axes
    assert ax.get_yscale() == 'log' and len(ax.get_lines()) == len(found.names)
    pyplot.close('all')


def test_observability_along_a_simulation(truth):
    free = mbse.observability('four_bar', SENSORS, duration=2.0)
    along = mbse.observability('four_bar', SENSORS, trajectory=truth)
    np.testing.assert_allclose(along.information, free.information, rtol=1e-9)
    rest = mbse.observability('four_bar', ['crank_gyro'], trajectory='rest')
    assert rest.verdict == 'blind' and len(rest.t) == 1


def test_observability_of_a_machine():
    found = mbse.observability('patu655_lift', ['lift_stroke', 'lift_piston', 'lift_rod'])
    assert found.verdict == 'seen' and found.payload['all coordinates, accelerating'].rank >= 1
    assert mbse.observability('patu655_lift', ['lift_piston'], trajectory='rest').verdict == 'blind'


def test_forces_of_a_motion():
    """Of sines whose rates are known, given or found by a spline; the same as by the function that is behind it."""
    t = np.linspace(0.0, 1.0, 201)
    z, zd, zdd = 1.0 + 0.3 * np.sin(3 * t), 0.9 * np.cos(3 * t), -2.7 * np.sin(3 * t)
    exact, fitted = mbse.inverse_dynamics('four_bar', t, z, zd, zdd), mbse.inverse_dynamics('four_bar', t, z)
    expected = inverse_dynamics(load_model('four_bar'), t, (z[:, None], zd[:, None], zdd[:, None]))
    np.testing.assert_array_equal(exact.forces[:, 0], expected.forces['theta'])
    inner = slice(5, -5)                # the spline's ends bend a little
    np.testing.assert_allclose(fitted['force/theta'][inner], exact['force/theta'][inner], rtol=1e-4, atol=1e-3)
    assert exact.names == ('theta',) and exact.units['A.fx'] == 'N' and exact.units['power'] == 'W'
    np.testing.assert_array_equal(exact['theta'], exact.found.q[:, load_model('four_bar').names.index('theta')])


def test_forces_of_drivers():
    found = mbse.inverse_dynamics('four_bar_adams_driven', np.arange(20) * 0.01)
    assert found.names == ('motor',) and found.forces.shape == (20, 1) and found.units['force/motor'] == 'N m'
    assert len(found.plot().axes) <= 8
    pyplot.close('all')


def test_c(tmp_path):
    export = mbse.export_c('four_bar', tmp_path / 'c')
    assert 'state of 2 (theta and rates)' in export.summary()[0]
    relative = mbse.export_c('four_bar', tmp_path / 'relative', 2e-3, '2', coordinates='relative',
                             independent=['theta'], free=['crank'])
    assert len(relative.names.q) < len(export.names.q) and [item.name for item in relative.names.p] == ['crank']
    of_machine = mbse.export_c('patu655_lift', tmp_path / 'estimator', estimator=True, rate=200.0)
    done = command('export-c', 'patu655_lift', '-o', tmp_path / 'theirs', '--estimator', '--rate', 200)
    assert [line.replace(str(tmp_path / 'estimator'), 'X') for line in of_machine.summary()] == [
        line.replace(str(tmp_path / 'theirs'), 'X') for line in done.out.splitlines()]
    for name in of_machine.files:
        assert (tmp_path / 'estimator' / name).read_bytes() == (tmp_path / 'theirs' / name).read_bytes()
    assert 'four_bar.h' in export.files and (export.folder / 'four_bar.h').is_file()
    assert [item.unit for item in export.names.h] == ['rad', 'rad/s', 'rad/s', 'm/s^2', 'm/s^2']
