# SPDX-License-Identifier: Apache-2.0
"""`mbse inverse --motion`: a table instead of drivers, its columns as the independent coordinates."""

import json

import numpy as np
import pytest
from cli_support import mbse, refused

from mbse_ros.dynamics.model import load_model
from mbse_ros.report.files import read_table, write_table

T = np.arange(0, 81) / 40
THETA = 1.2 * (1 - np.cos(2 * T))       # of four_bar_adams_driven


@pytest.fixture(autouse=True)
def few_pictures(request, monkeypatch):
    """The first test draws; the others look at the numbers."""
    if 'of_the_driver' not in request.node.name:
        monkeypatch.setattr('mbse_ros.report.plots.write_plots', lambda plots, path: None)


@pytest.fixture
def table(tmp_path):
    write_table(tmp_path / 'motion.csv', ['t [ms]', 'theta [deg]'], [1e3 * T, np.degrees(THETA)])
    return tmp_path / 'motion.csv'


def inverse(name, folder, *words):
    """Columns of inverse.csv and what the command said."""
    done = mbse('inverse', name, '-o', folder, *words)
    assert done.status == 0, done
    columns, values = read_table(folder / 'inverse.csv')
    return dict(zip(columns, values.T)), done


def test_the_motion_of_the_driver(table, tmp_path):
    """The same torque and reactions as the driver's; the tolerance is the spline's, see test_dynamics_motion_table."""
    found, done = inverse('four_bar_adams', tmp_path / 'x', '--motion', table, '--json', tmp_path / 'copy.json')
    expected, _ = inverse('four_bar_adams_driven', tmp_path / 'y', '--duration', '2', '--dt', '0.025')
    assert found['t [s]'] == pytest.approx(T, abs=1e-12) and done.err == ''
    assert '81 instants over 2 s; largest theta 66' in done.out
    tolerance = 76.8 * 0.025 ** 4 * 4.6     # kg m^2: the largest inertia about the crank in this motion
    for name, values in found.items():
        name = name.replace('driver theta', 'driver motor')
        assert values == pytest.approx(expected[name], abs=10 * tolerance if name.startswith('joint') else tolerance)
    summary = json.loads((tmp_path / 'x' / 'summary.json').read_text())
    assert summary == json.loads((tmp_path / 'copy.json').read_text())
    assert summary['motion'] == {'file': str(table), 'rows': 81, 'coordinates': ['theta']}
    assert summary['forces']['theta']['unit'] == 'N*m' and summary['duration_s'] == pytest.approx(2.0)
    assert (tmp_path / 'x' / 'inverse.png').is_file()


def test_times_are_those_of_the_table_or_even(table, tmp_path):
    for words, count, last in ((['--duration', '0.5'], 21, 0.5), (['--dt', '0.3'], 7, 1.8), (['--dt', '0.1'], 21, 2.0),
                               (['--dt', '0.05', '--duration', '1'], 21, 1.0)):
        found, _ = inverse('four_bar_adams', tmp_path / 'x', '--motion', table, *words)
        assert len(found['t [s]']) == count and found['t [s]'][-1] == pytest.approx(last)
        assert found['theta [rad]'][-1] == pytest.approx(1.2 * (1 - np.cos(2 * last)), abs=1e-6)
    assert 'motion.csv' in refused('inverse', 'four_bar_adams', '-o', tmp_path / 'y', '--motion', table,
                                   '--duration', '2.1')
    assert '--dt: got 1e-07, expected at most 1000000 instants' in refused(
        'inverse', 'four_bar_adams', '-o', tmp_path / 'y', '--motion', table, '--dt', '1e-7')
    assert not (tmp_path / 'y').exists()


def test_a_table_that_begins_later(tmp_path):
    """Times are the table's own, and the mechanism is brought to its first row."""
    write_table(tmp_path / 'late.csv', ['t', 'theta'], [T + 100, THETA + 1.0])
    found, _ = inverse('four_bar_adams', tmp_path / 'x', '--motion', tmp_path / 'late.csv', '--dt', '0.5')
    assert found['t [s]'].tolist() == [100, 100.5, 101, 101.5, 102] and found['theta [rad]'][0] == pytest.approx(1.0)
    assert json.loads((tmp_path / 'x' / 'summary.json').read_text())['duration_s'] == pytest.approx(2.0)


def test_the_columns_choose_the_independent_coordinates(tmp_path):
    """The piston's stroke instead of the crank's angle: the power is the same, the force is along the stroke."""
    start = load_model('slider_crank', backend='vm').start
    names = load_model('slider_crank', backend='vm').names
    theta = start.q[names.index('theta')] + 0.8 + 0.3 * np.sin(3 * T)
    write_table(tmp_path / 'crank.csv', ['t [s]', 'theta [rad]'], [T, theta])
    by_crank, _ = inverse('slider_crank', tmp_path / 'x', '--motion', tmp_path / 'crank.csv')
    write_table(tmp_path / 'piston.csv', ['t [s]', 'stroke [mm]'], [T, 1e3 * by_crank['stroke [m]']])
    by_piston, done = inverse('slider_crank', tmp_path / 'y', '--motion', tmp_path / 'piston.csv')
    assert by_piston['theta [rad]'] == pytest.approx(theta, abs=1e-9)
    force, torque = by_piston['driver stroke [N]'], by_crank['driver theta [N*m]']
    moving = np.abs(by_crank['theta_dot [rad/s]']) > 0.1
    ratio = by_crank['stroke_dot [m/s]'][moving] / by_crank['theta_dot [rad/s]'][moving]
    assert torque[moving] == pytest.approx((force[moving] * ratio), abs=2e-3 * np.abs(torque).max())
    assert json.loads((tmp_path / 'y' / 'summary.json').read_text())['motion']['coordinates'] == ['stroke']


def test_the_order_of_two_columns_does_not_matter(tmp_path):
    one, two = 0.3 * np.sin(2 * T), np.pi + 0.2 * np.sin(3 * T)
    write_table(tmp_path / 'a.csv', ['t', 'theta1', 'theta2'], [T, one, two])
    write_table(tmp_path / 'b.csv', ['t', 'theta2', 'theta1'], [T, two, one])
    a, b = (inverse('five_bar', tmp_path / name, '--motion', tmp_path / f'{name}.csv')[0] for name in 'ab')
    assert a['theta1 [rad]'] == pytest.approx(one) and list(a) == list(b)
    for name, values in a.items():
        assert values == pytest.approx(b[name], abs=1e-9)


@pytest.mark.parametrize('name, columns, text', [
    ('four_bar_adams', ['t'], 'motion.csv: line 1: got 0 coordinates (none), expected 1, the degrees of freedom: such '
     'as theta'),
    ('five_bar', ['t', 'theta1'], 'got 1 coordinates (theta1), expected 2, the degrees of freedom: such as theta1, '
     'theta2'),
    ('slider_crank', ['t', 'theta', 'stroke'], 'got 2 coordinates (theta, stroke), expected 1'),
    ('four_bar_adams', ['t', 'thet'], "column thet: got 'thet', expected one of theta; did you mean theta?"),
    ('four_bar_adams', ['t', 'P1.x'], "got 'P1.x', expected one of theta: "),
    ('four_bar_adams_driven', ['t', 'theta'],
     "drivers: got ['motor'], expected a degree of freedom that no driver moves")])
def test_columns_that_do_not_move_the_mechanism(name, columns, text, tmp_path):
    write_table(tmp_path / 'motion.csv', columns, [T + 0.1 * i for i, _ in enumerate(columns)])
    assert text in refused('inverse', name, '-o', tmp_path / 'x', '--motion', tmp_path / 'motion.csv')
    assert not (tmp_path / 'x').exists()


def test_a_coordinate_that_a_driver_moves(tmp_path):
    from mbse_ros.resources import share_directory
    text = (share_directory() / 'config' / 'mechanisms' / 'five_bar.yaml').read_text()
    text = text.replace('independent: [theta1, theta2]', 'independent: [theta1]\ndrivers: {motor: {coordinate: theta2, '
                        'motion: "pi + 0.2*sin(3*t)"}}').replace('{theta1: 0, theta2: pi}', '{theta1: 0}')
    (tmp_path / 'five.yaml').write_text(text)
    write_table(tmp_path / 'a.csv', ['t', 'theta2'], [T, T])
    assert f"got 'theta2', expected one of theta1: driver motor of {tmp_path}/five.yaml moves it already" in refused(
        'inverse', tmp_path / 'five.yaml', '-o', tmp_path / 'x', '--motion', tmp_path / 'a.csv')
    write_table(tmp_path / 'b.csv', ['t', 'theta1'], [T, 0.3 * np.sin(2 * T)])      # the driver moves the other one
    write_table(tmp_path / 'c.csv', ['t', 'theta1', 'theta2'], [T, 0.3 * np.sin(2 * T), np.pi + 0.2 * np.sin(3 * T)])
    mixed, _ = inverse(tmp_path / 'five.yaml', tmp_path / 'y', '--motion', tmp_path / 'b.csv', '--dt', '0.1')
    alone, _ = inverse('five_bar', tmp_path / 'z', '--motion', tmp_path / 'c.csv', '--dt', '0.1')
    scale = np.abs(alone['driver theta2 [N*m]']).max()
    for one, other in (('driver motor [N*m]', 'driver theta2 [N*m]'), ('driver theta1 [N*m]', 'driver theta1 [N*m]')):
        assert mixed[one] == pytest.approx(alone[other], abs=1e-3 * scale)


def test_bad_tables_and_motions_out_of_reach(table, tmp_path):
    def line(name, *columns):
        write_table(tmp_path / 'bad.csv', ['t', name], [T, *columns])
        return refused('inverse', 'slider_crank', '-o', tmp_path / 'x', '--motion', tmp_path / 'bad.csv')
    assert 't = ' in line('stroke', 0.3 + 5 * T)        # beyond the reach of the rods
    text = table.read_text().splitlines()
    text[7] = text[7].split(',')[0] + ',x'
    table.write_text('\n'.join(text))
    words = ('inverse', 'four_bar_adams', '-o', tmp_path / 'x', '--motion')
    assert refused(*words, table) == f"{table}: line 8: column theta [deg]: got 'x', expected a number"
    assert 'none.csv: cannot be read: No such file' in refused(*words, 'none.csv')
    assert not (tmp_path / 'x').exists()


def test_an_odd_table_is_computed_with_a_warning(tmp_path):
    write_table(tmp_path / 'motion.csv', ['t', 'theta', 'theta.velocity'], [T, THETA, np.degrees(2.4 * np.sin(2 * T))])
    _, done = inverse('four_bar_adams', tmp_path / 'x', '--motion', tmp_path / 'motion.csv', '--dt', '0.5')
    assert done.warnings == [f'{tmp_path}/motion.csv: theta.velocity is not the rate of theta; are their units right?']
