# SPDX-License-Identifier: Apache-2.0
"""`mbse simulate` and `mbse inverse` of mechanisms: files that read back, numbers that a hand computation gives."""

import json

import numpy as np
import pytest
from cli_support import mbse, refused
from four_bar_by_hand import inertia, joints, potential
from PIL import Image

from mbse_ros.report.files import read_table, write_table

ADAMS = {'lengths': (1.0, 2.0, np.sqrt(13.0), 4.0)}


def simulated(folder, *words):
    done = mbse('simulate', *words, '-o', folder)
    assert done.status == 0, done
    columns, values = read_table(folder / 'motion.csv')
    return dict(zip(columns, values.T)), json.loads((folder / 'summary.json').read_text()), done


def test_motion_of_the_four_bar(tmp_path):
    """The published angle at 0.5 s, coordinates and energies by hand, and that the summary says the same."""
    table, summary, done = simulated(tmp_path / 'x', 'four_bar', '--duration', '0.5', '--dt', '0.01', '--scheme',
                                     'dop853', '--json', tmp_path / 'copy.json')
    assert list(table)[:6] == ['t [s]', 'P1.x [m]', 'P1.y [m]', 'P2.x [m]', 'P2.y [m]', 'theta [rad]']
    assert {'theta_dot [rad/s]', 'theta_ddot [rad/s2]', 'input torque [N*m]', 'kinetic [J]'} <= set(table)
    t, theta, speed = table['t [s]'], table['theta [rad]'], table['theta_dot [rad/s]']
    assert len(t) == 51 and t[-1] == pytest.approx(0.5, abs=1e-12)
    assert theta[-1] == pytest.approx(0.897722896263, abs=1e-9)           # shared/data/README.md, section 3
    assert speed[-1] == pytest.approx(-0.716323044777, abs=1e-9)
    for k in (0, 30, 50):
        points = np.array([[table[f'P{i}.{axis} [m]'][k] for axis in 'xy'] for i in (1, 2)])
        assert np.allclose(points, joints(theta[k]), atol=1e-11)
        assert table['kinetic [J]'][k] == pytest.approx(inertia(theta[k]) * speed[k] ** 2 / 2, abs=1e-10)
        assert table['potential [J]'][k] == pytest.approx(potential(theta[k]), abs=1e-9)
    assert summary['end']['theta'] == {'position': theta[-1], 'velocity': speed[-1], 'unit': 'rad'}
    assert (summary['scheme'], summary['states'], summary['failure']) == ('dop853', 51, None)
    assert summary == json.loads((tmp_path / 'copy.json').read_text()) and '51 states over 0.5 s' in done.out
    assert summary['energy']['largest_error_J'] < 1e-8 and summary['violation']['position'] < 1e-11


def test_pictures(tmp_path):
    short = 'spatial_four_bar', '--duration', '0.2', '--dt', '0.01', '--order', '2'
    simulated(tmp_path / 'none', *short)
    assert {path.name for path in (tmp_path / 'none').iterdir()} == {'motion.csv', 'summary.json'}
    simulated(tmp_path / 'x', *short, '--pictures')
    for name in ('coordinates', 'energy', 'constraints'):
        with Image.open(tmp_path / 'x' / f'{name}.png') as picture:
            assert picture.size[0] == 1152
    with Image.open(tmp_path / 'x' / 'animation.gif') as gif:
        assert gif.n_frames == 21


def test_coordinates_and_independent_ones(tmp_path):
    """The same motion in other coordinates, described by others; a choice along the way is reported."""
    common = ('four_bar', '--duration', '0.2', '--dt', '0.02', '--scheme', 'dop853')
    first, _, _ = simulated(tmp_path / 'a', *common)
    second, summary, _ = simulated(tmp_path / 'b', *common, '--coordinates', 'relative', '--independent', 'auto')
    third, kept, _ = simulated(tmp_path / 'c', *common, '--independent', 'P2.x')
    assert np.allclose(first['theta [rad]'], second['theta [rad]'], atol=1e-9)
    assert np.allclose(first['theta [rad]'], third['theta [rad]'], atol=1e-9)
    assert summary['coordinates'] == 'relative' and summary['independent'][0]['since_s'] == 0.0
    assert kept['independent'] == [{'since_s': 0.0, 'names': ['P2.x']}]


def test_a_motion_that_ends_early_is_kept(tmp_path):
    """Fixed independent coordinates meet a dead point: files up to there, one line, status 2."""
    done = mbse('simulate', 'slider_crank', '-o', tmp_path / 'x', '--independent', 'stroke', '--duration', '2', '--dt',
                '0.005')
    assert done.status == 2 and len(done.err.splitlines()) == 1 and 't = ' in done.err
    summary = json.loads((tmp_path / 'x' / 'summary.json').read_text())
    _, values = read_table(tmp_path / 'x' / 'motion.csv')
    assert 0 < summary['reached_s'] < 2 and summary['failure'] in done.err and len(values) == summary['states']


@pytest.mark.parametrize('words, text', [
    (['--dt', '0'], '--dt: got 0.0, expected a number of seconds above 0'),
    (['--dt', '-1'], '--dt: got -1.0'),
    (['--duration', 'nan'], '--duration: got nan'),
    (['--dt', '0.3', '--duration', '1'], 'expected a step that divides the duration'),
    (['--dt', '1e-9'], 'expected at most 10000000 steps'),
    (['--scheme', 'rk45'], "--scheme: got 'rk45', expected one of forward_euler"),
    (['--order', '7'], "order: got '7', expected one of 0, 1"),
    (['--order', '2', '--scheme', 'dop853'], '--order: got '),
    (['--independent', 'phi'], "independent: got 'phi', expected one of the coordinates"),
    (['--coordinates', 'polar'], "coordinates: got 'polar'"),
    (['--payload', '3'], "--payload: got '3', expected no such option here: it is for a machine")])
def test_bad_options(words, text, tmp_path):
    assert text in refused('simulate', 'four_bar', '-o', tmp_path / 'x', *words)
    assert not (tmp_path / 'x').exists()


def test_bad_places_and_names(tmp_path):
    (tmp_path / 'file').write_text('')
    for place, text in ((tmp_path / 'file', 'expected a folder, not a file'),
                        (tmp_path / 'file' / 'x', 'expected a place that can be written')):
        assert text in refused('simulate', 'four_bar', '-o', place)
        assert text in refused('inverse', 'four_bar_adams_driven', '-o', place)
    assert 'one of the mechanisms' in refused('simulate', 'six_bar', '-o', tmp_path / 'x')
    assert 'one of the mechanisms' in refused('inverse', 'six_bar', '-o', tmp_path / 'x')
    assert 'expected no such option here: it is for a mechanism' in refused(
        'simulate', 'patu655_lift', '-o', tmp_path / 'x', '--dt', '0.1')


def test_inverse_dynamics(tmp_path):
    """The torque times the speed is the rate of an energy that two circles give; the pins carry the weight."""
    done = mbse('inverse', 'four_bar_adams_driven', '-o', tmp_path / 'x', '--duration', '1', '--dt', '0.05')
    assert done.status == 0, done
    columns, values = read_table(tmp_path / 'x' / 'inverse.csv')
    table = dict(zip(columns, values.T))
    g, masses = 9.80665, (1.0, 2.0, 4.0)

    def energy(t):
        theta, speed = 1.2 * (1 - np.cos(2 * t)), 2.4 * np.sin(2 * t)
        return (inertia(theta, masses, **ADAMS) * speed ** 2 / 2 + potential(theta, masses, g, **ADAMS))
    for k in (3, 10, 20):
        t, h = table['t [s]'][k], 1e-5
        power = (energy(t + h) - energy(t - h)) / (2 * h)
        assert table['driver motor [N*m]'][k] * 2.4 * np.sin(2 * t) == pytest.approx(power, rel=1e-8)
        assert table['power [W]'][k] == pytest.approx(power, rel=1e-8)
    summary = json.loads((tmp_path / 'x' / 'summary.json').read_text())
    assert summary['forces']['motor']['largest'] == np.max(np.abs(table['driver motor [N*m]']))
    assert summary['forces']['motor']['unit'] == 'N*m' and set(summary['reactions']) == {'A', 'B', 'P1', 'P2'}
    assert summary['power_imbalance_W'] < 1e-9 and (tmp_path / 'x' / 'inverse.png').is_file()


def test_inverse_dynamics_needs_a_driver(tmp_path):
    assert 'expected a driver' in refused('inverse', 'four_bar', '-o', tmp_path / 'x')
    assert '--dt: got 0.0' in refused('inverse', 'four_bar_adams_driven', '-o', tmp_path / 'x', '--dt', '0')
    assert not (tmp_path / 'x').exists()


def test_tables_read_back_to_the_last_digit(tmp_path):
    values = [np.array([0.1, np.pi, -1e-300]), np.array([1e22, 1 / 3, -0.0])]
    write_table(tmp_path / 'x.csv', ['a, with comma [m]', 'b "quoted"'], values)
    columns, found = read_table(tmp_path / 'x.csv')
    assert columns == ['a, with comma [m]', 'b "quoted"'] and np.array_equal(found, np.column_stack(values))
    with pytest.raises(ValueError, match='1 headings for 2 columns'):
        write_table(tmp_path / 'x.csv', ['a'], values)
