# SPDX-License-Identifier: Apache-2.0
"""A motion from a table: the rates of its interpolation, its units, and errors that name line, column and value."""

import re

import numpy as np
import pytest

from mbse_ros.dynamics.forces.driven_motion import inverse_dynamics
from mbse_ros.dynamics.forces.motion_table import interpolated, oddities, read_motion_table, row_motion
from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import BagError

UNITS = {'theta': 'rad', 'stroke': 'm'}
TABLE = 't,theta [deg]\n0,0\n0.1,1\n0.2,4\n0.3,9\n'


def motion(t):
    """Angle, rad, and rates of the driver of four_bar_adams_driven, by hand."""
    return 1.2 * (1 - np.cos(2 * t)), 2.4 * np.sin(2 * t), 4.8 * np.cos(2 * t)


def written(path, t, **columns):
    """A table to the last digit; returns its path."""
    rows = [','.join(['t', *(name.replace('__', '.') for name in columns)])]
    rows += [','.join(f'{value:.17g}' for value in row) for row in zip(t, *columns.values())]
    path.write_text('\n'.join(rows) + '\n')
    return path


def read(path, table=TABLE, **options):
    path.write_bytes(table if isinstance(table, bytes) else table.encode())
    return read_motion_table(path, UNITS, **options)


def bound(h):
    """Error of the acceleration, rad/s^2, of a spline of degree 5: of order h^4 times the sixth derivative, at most
    76.8 rad/s^6; the factor, measured at the ends, is below 1."""
    return 76.8 * h ** 4


def test_torque_of_the_driver(tmp_path):
    """The driver of the file and a table of the same motion, where rows are and between them, with h = 1/80, 1/40 s.

    The acceleration's error times the largest inertia about the crank is the torque's, the rest is of a higher order.
    """
    model, errors = load_model('four_bar_adams', backend='vm'), []
    for h in (1 / 40, 1 / 80):
        t = h * np.arange(round(3 / h) + 1)
        table = read_motion_table(written(tmp_path / 'x.csv', t, theta=motion(t)[0]), UNITS)
        times = np.sort(np.concatenate([t[::4], t[:-1:4] + 0.3 * h]))
        found = inverse_dynamics(model, times, interpolated(table, model.independent))
        expected = inverse_dynamics(load_model('four_bar_adams_driven', backend='vm'), times)
        speed = found.qd[:, model.names.index('theta')]
        moving = np.abs(speed) > 0.5
        energy = np.array([model.energy(q, qd).kinetic for q, qd in zip(found.q, found.qd)])
        inertia = np.max(2 * energy[moving] / speed[moving] ** 2)
        error = np.abs(found.forces['theta'] - expected.forces['motor'])
        assert error.max() < inertia * bound(h)
        assert found.q[:, :5] == pytest.approx(expected.q[:, :5], abs=bound(h) * h ** 2)
        for joint, values in found.reactions.items():
            assert values == pytest.approx(expected.reactions[joint], abs=10 * inertia * bound(h))
        errors.append(error.max())
    assert 12 < errors[0] / errors[1] < 20      # order 4


def test_the_positions_alone_give_the_spline(tmp_path):
    """Position, velocity and acceleration are those of one function: differences of it give its rates."""
    t = np.array([0.0, 0.1, 0.25, 0.3, 0.5, 0.55, 0.7])
    path = written(tmp_path / 'x.csv', t, theta=[0.3, 0.1, 0.4, -0.2, 0.0, 0.2, 0.1])
    function, h = interpolated(read_motion_table(path, UNITS), ['theta']), 1e-4
    assert [function(x)[0][0] for x in t] == pytest.approx([0.3, 0.1, 0.4, -0.2, 0.0, 0.2, 0.1], abs=1e-12)
    for x in (0.05, 0.25, 0.42, 0.69):
        ahead, here, behind = function(x + h), function(x), function(x - h)
        for rate in (1, 2):
            slope = (ahead[rate - 1] - behind[rate - 1]) / (2 * h)
            assert slope == pytest.approx(here[rate], rel=1e-4, abs=1e-2)
    assert np.isnan(function(0.71)[0]).all() and np.isnan(function(-0.01)[2]).all()


@pytest.mark.parametrize('count', [4, 5])
def test_few_rows_make_a_cubic(tmp_path, count):
    t = np.linspace(0.0, 1.0, count)
    table = read_motion_table(written(tmp_path / 'x.csv', t, theta=t ** 3 - t), UNITS)
    for x in (0.0, 0.4, 1.0):
        found = np.ravel(interpolated(table, ['theta'])(x))
        assert found == pytest.approx([x ** 3 - x, 3 * x * x - 1, 6 * x], abs=1e-9)


def test_given_rates_are_used(tmp_path):
    """At the rows exactly; those that are not given come from the next lower ones."""
    t = np.linspace(0.0, 1.0, 11)
    position, velocity, acceleration = (values + 0.01 * np.arange(11) for values in motion(t))
    for given in ((), ('velocity',), ('acceleration',), ('velocity', 'acceleration')):
        columns = {f'theta__{kind}': {'velocity': velocity, 'acceleration': acceleration}[kind] for kind in given}
        table = read_motion_table(written(tmp_path / 'x.csv', t, theta=position, **columns), UNITS)
        function = interpolated(table, ['theta'])
        found = np.array([function(x) for x in t])[:, :, 0].T
        assert found == pytest.approx(np.array(row_motion(table, 'theta')), abs=1e-9)
        assert np.allclose(found[0], position, rtol=0, atol=1e-12)
        assert np.allclose(found[1], velocity, atol=1e-9) == ('velocity' in given)
        assert np.allclose(found[2], acceleration, atol=1e-9) == ('acceleration' in given)
    velocity_alone = read_motion_table(written(tmp_path / 'x.csv', t, theta=position, theta__velocity=velocity), UNITS)
    assert row_motion(velocity_alone, 'theta')[2][5] == pytest.approx(motion(0.5)[2] + 0.1, abs=1e-3)


def test_units_blanks_and_order(tmp_path):
    table = read(tmp_path / 'x.csv', b'\xef\xbb\xbft [ms], stroke[cm] ,theta [deg],theta.velocity [deg/s],'
                 b'stroke.acceleration\n 0,1,180,90,7\n1,2,180,90,8\n\n2,3,180,90,9\n3, 4 ,180,90,1e1\n,,,,\n')
    assert table.t == pytest.approx([0, 0.001, 0.002, 0.003]) and table.lines.tolist() == [2, 3, 5, 6]
    assert list(table.position) == ['stroke', 'theta']
    assert table.position['stroke'] == pytest.approx([0.01, 0.02, 0.03, 0.04])
    assert table.position['theta'] == pytest.approx(np.full(4, np.pi))
    assert table.velocity['theta'] == pytest.approx(np.full(4, np.pi / 2)) and list(table.velocity) == ['theta']
    assert table.acceleration['stroke'].tolist() == [7.0, 8.0, 9.0, 10.0]


@pytest.mark.parametrize('old, new, reason', [
    (TABLE, '', 'is empty, expected the names of the columns in line 1: t and theta, stroke'),
    (TABLE, '\n \n', 'is empty'),
    ('0.3,9\n', '', '3 rows below the names of the columns, expected at least 4'),
    (TABLE[14:], '', '0 rows below'),
    ('t,', 'time,', "line 1: column time: got 'time', expected the time t in the first column"),
    ('t,', 't [mm],', "line 1: column t [mm]: got 'mm', expected a unit of s ('mm' is not a unit of s)"),
    ('theta [deg]', 'teta [deg]',
     "line 1: column teta [deg]: got 'teta', expected one of theta, stroke; did you mean theta?"),
    ('theta [deg]', 'theta.velocty',
     "got 'theta.velocty', expected one of theta, stroke; did you mean theta.velocity?"),
    ('theta [deg]', 'xyz', "got 'xyz', expected one of theta, stroke\n"),
    ('theta [deg]', 'theta [deg', "got 'theta [deg', expected one of"),
    ('theta [deg]', '', "line 1: column : got '', expected one of theta, stroke"),
    ('theta [deg]', 'theta [mm]', "got 'mm', expected a unit of rad ('mm' is not a unit of rad)"),
    ('theta [deg]', 'theta []', "got '', expected a unit of rad"),
    ('theta [deg]', 'theta.velocity [deg]', "got 'deg', expected a unit of rad/s"),
    ('theta [deg]', 'theta.velocity', 'column theta.velocity: got .* expected a column theta of positions too'),
    ('theta [deg]', 'fixed', "got 'fixed', expected one of theta, stroke: a driver moves it"),
    ('1\n', 'one\n', "line 3: column theta [deg]: got 'one', expected a number"),
    ('0.2,4', '0.2,', "line 4: column theta [deg]: got '', expected a number"),
    ('0.2,4', 'x,4', "line 4: column t: got 'x', expected a number"),
    ('0.2,4', '0.2,nan', "line 4: column theta [deg]: got 'nan', expected a finite number"),
    ('0.2,4', '0.2,-inf', "line 4: column theta [deg]: got '-inf', expected a finite number"),
    ('0.2,4', '0.2,4,5', 'line 4: 3 cells, expected 2 as in line 1'),
    ('0.2,4', '0.2;4', 'line 4: 1 cells, expected 2'),
    ('0.2,4', '0.1,4', 'line 4: column t: got 0.1, expected a later time than in the row before, 0.1'),
    ('0.2,4', '0.05,4', 'line 4: column t: got 0.05, expected a later time'),
    ('0.2,4', '0.2,"4', 'line 5: unexpected end of data')])
def test_errors_name_file_line_column_and_value(tmp_path, old, new, reason):
    assert old in TABLE
    with pytest.raises(BagError) as caught:
        read(tmp_path / 'x.csv', TABLE.replace(old, new, 1), impossible={'fixed': 'a driver moves it'})
    text = str(caught.value) + '\n'
    assert text.startswith(f'{tmp_path}/x.csv: ')
    assert re.search(re.escape(reason).replace(r'\.\*', '.*'), text), text


def test_files_that_cannot_be_read(tmp_path):
    for path in (tmp_path / 'none.csv', tmp_path):
        with pytest.raises(BagError, match=f'{path}: cannot be read'):
            read_motion_table(path, UNITS)
    with pytest.raises(BagError, match='cannot be read'):
        read(tmp_path / 'x.csv', b'\xff\xfe\x00')
    with pytest.raises(BagError, match='column theta: got .* expected each column once'):
        read(tmp_path / 'x.csv', 't,theta [deg],theta\n')


def test_what_is_odd(tmp_path):
    """A jump of 360 degrees; rates in degrees that are said to be in radians."""
    t = np.linspace(0.0, 2.0, 41)
    position, velocity, acceleration = motion(t)
    right = dict(theta=position, theta__velocity=velocity, theta__acceleration=acceleration)
    for wrong, line in (
            ({}, None), ({'theta': np.where(t > 1.0, position - 2 * np.pi, position)}, 'line 23: theta jumps by 6'),
            ({'theta__velocity': np.degrees(velocity)}, 'theta.velocity is not the rate of theta;'),
            ({'theta__acceleration': np.degrees(acceleration)},
             'theta.acceleration is not the rate of theta.velocity')):
        lines = oddities(read_motion_table(written(tmp_path / 'x.csv', t, **{**right, **wrong}), UNITS), UNITS)
        assert bool(lines) == (line is not None) and (line is None or line in lines[0])
