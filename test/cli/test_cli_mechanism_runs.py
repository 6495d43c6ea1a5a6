# SPDX-License-Identifier: Apache-2.0
"""`mbse simulate --runs`: what is drawn, tables that agree with each other and with single runs, failures, errors."""

import csv
import json

import numpy as np
import pytest
from cli_support import mbse, refused
from motion_examples import CRANK_ROCKER

from mbse_ros.compiled import have_compiler
from mbse_ros.report.files import read_table

pytestmark = [pytest.mark.skipif(not have_compiler(), reason='no C compiler: there are no compiled steps'),
              pytest.mark.usefixtures('blank_pictures')]
COMMON = '--duration', '0.5', '--outputs', '5'


def simulated(folder, name, *words):
    done = mbse('simulate', name, '-o', folder, *COMMON, *words)
    assert done.status == 0, done
    with open(folder / 'ends.csv', newline='') as file:
        ends = list(csv.DictReader(file))
    return ends, dict(np.load(folder / 'runs.npz')), json.loads((folder / 'summary.json').read_text()), done


@pytest.fixture(scope='module')
def uncertain(tmp_path_factory):
    """A mechanism whose file has a number with a standard deviation."""
    path = tmp_path_factory.mktemp('file') / 'uncertain.yaml'
    path.write_text(CRANK_ROCKER.replace('length: 1, mass: 3 kg', 'length: 1, mass: {value: 3 kg, stddev: 0.3 kg}'))
    return path


def test_ends_quantiles_and_summary_agree_with_all_states(tmp_path):
    ends, arrays, summary, done = simulated(
        tmp_path / 'x', 'four_bar', '--runs', '40', '--vary', 'theta=2 deg', '--vary', 'theta_dot=0.1', '--vary',
        'crank=1%', '--states', '--json', tmp_path / 'copy.json')
    assert {path.name for path in (tmp_path / 'x').iterdir()} == {
        'ends.csv', 'quantiles.csv', 'runs.npz', 'quantiles.png', 'summary.json'}
    assert done.out.startswith(f'wrote {tmp_path}/x: 40 of 40 runs complete over 0.5 s, 6 instants')
    assert json.loads((tmp_path / 'copy.json').read_text()) == summary and summary['completed'] == 40
    at = list(arrays['names']).index('theta')
    theta = arrays['q'][:, :, at]
    assert theta.shape == (40, 6) and np.array_equal([float(row['theta [rad]']) for row in ends], theta[:, -1])
    assert np.array_equal(theta[:, 0], [float(row['theta (start)']) for row in ends])
    assert [(item['name'], item['of'], item['by']) for item in summary['drawn']] == [
        ('theta', 'start', 'vary'), ('theta_dot', 'start', 'vary'), ('crank', 'file', 'vary')]
    assert [item['stddev'] for item in summary['drawn']] == pytest.approx([np.radians(2), 0.1, 0.02], rel=1e-12)
    columns, values = read_table(tmp_path / 'x' / 'quantiles.csv')
    table = dict(zip(columns, values.T))
    assert (table['runs'] == 40).all() and table['t [s]'] == pytest.approx(np.linspace(0, 0.5, 6))
    assert np.array_equal(table['theta [rad] 2.5 %'], np.quantile(theta, 0.025, axis=0))
    assert table['theta_dot [rad/s] mean'] == pytest.approx(arrays['qd'][:, :, at].mean(axis=0), abs=1e-12)
    assert np.array_equal(arrays['qd_quantiles'][2, :, at], table['theta_dot [rad/s] 50 %'])
    assert summary['end']['theta']['stddev'] == theta[:, -1].std(ddof=1)
    assert summary['end']['theta']['quantiles']['0.975'] == table['theta [rad] 97.5 %'][-1]


def test_the_seed_and_nothing_else_decides(tmp_path, uncertain):
    """Numbers of the file and starts do not depend on threads, on how many runs follow, on what else is varied."""
    words = '--runs', '30', '--vary', 'theta=0.05'
    _, first, summary, _ = simulated(tmp_path / 'a', uncertain, *words, '--jobs', '1')
    _, again, _, _ = simulated(tmp_path / 'b', uncertain, *words, '--jobs', '3', '--seed', '1')
    _, other, _, _ = simulated(tmp_path / 'c', uncertain, *words, '--seed', '2')
    _, longer, _, _ = simulated(tmp_path / 'd', uncertain, '--runs', '60', '--vary', 'theta_dot=1', *words[2:])
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.isin(first['starts'], other['starts']).any()
    assert not np.isin(first['parameters'], other['parameters']).any()
    assert np.array_equal(longer['parameters'][:30], first['parameters'])
    assert list(longer['start_names']) == ['theta_dot', 'theta']
    assert np.array_equal(longer['starts'][:30, 1], first['starts'][:, 0])
    assert [(item['by'], item['mean'], item['stddev']) for item in summary['drawn']] == [
        ('file', 3.0, 0.3), ('vary', pytest.approx(1.0, abs=0.6), 0.05)]
    mass, = first['parameters'].T
    assert 0.15 < mass.std() < 0.45 and abs(mass.mean() - 3.0) < 0.25 and abs(first['starts'].std() - 0.05) < 0.02
    name, = first['parameter_names']
    _, held, summary, _ = simulated(tmp_path / 'e', uncertain, *words, '--vary', f'{name}=0')
    assert (held['parameters'] == 3.0).all() and np.array_equal(held['starts'], first['starts'])


def test_one_run_without_deviations_is_the_plain_motion(tmp_path):
    ends, _, _, _ = simulated(tmp_path / 'x', 'four_bar', '--runs', '1', '--no-pictures')
    done = mbse('simulate', 'four_bar', '-o', tmp_path / 'y', '--duration', '0.5', '--no-pictures')
    assert done.status == 0 and not (tmp_path / 'x' / 'quantiles.png').exists()
    columns, values = read_table(tmp_path / 'y' / 'motion.csv')
    assert float(ends[0]['theta [rad]']) == pytest.approx(values[-1, columns.index('theta [rad]')], abs=1e-12)


def test_failed_runs_are_counted_with_their_reasons(tmp_path):
    """Ground that is too long for the bars: the others go on, quantiles are of those that are there."""
    ends, arrays, summary, done = simulated(tmp_path / 'x', 'four_bar', '--runs', '60', '--vary', 'ground=40%',
                                            '--no-pictures')
    failed = np.array([bool(row['failure']) for row in ends])
    assert 0 < failed.sum() < 60 and summary['completed'] == 60 - failed.sum()
    assert sum(item['runs'] for item in summary['failed']) == failed.sum()
    assert all(np.isnan(float(row['theta [rad]'])) == bad for row, bad in zip(ends, failed))
    first = summary['failed'][0]
    assert ends[first['first_run']]['failure'] == first['reason'] and first['reason'].startswith(first['error'])
    assert f"{first['runs']} of 60 runs failed by {first['error']}" in done.err
    _, table = read_table(tmp_path / 'x' / 'quantiles.csv')
    assert table[-1, 1] == summary['completed'] and np.isfinite(table[-1]).all()
    assert (arrays['reached'][~failed] == 0.5).all() and (arrays['reached'][failed] < 0.5).all()


def test_where_no_run_is_complete_the_first_error_is_raised(tmp_path):
    done = mbse('simulate', 'slider_crank', '-o', tmp_path / 'x', '--independent', 'stroke', '--duration', '2', '--dt',
                '0.005', '--runs', '3', '--vary', 'stroke_dot=0.001')
    assert done.status == 2 and done.err.splitlines()[0].startswith('warning: 3 of 3 runs failed by Singular')
    assert 't = ' in done.err.splitlines()[-1]
    summary = json.loads((tmp_path / 'x' / 'summary.json').read_text())
    assert summary['completed'] == 0 and 0 < summary['failed'][0]['earliest_s'] < 2 and summary['end'] == {}


def test_numbers_of_the_wrong_sign_are_pointed_out(tmp_path, uncertain):
    *_, done = simulated(tmp_path / 'x', uncertain, '--runs', '20', '--vary', 'bodies.crank.mass=200%',
                         '--duration', '0.01', '--no-pictures')
    assert 'warning: bodies.crank.mass: ' in done.err and 'have not the sign of 3' in done.err


@pytest.mark.parametrize('words, text', [
    (['--runs', '0'], '--runs: got 0, expected a whole number from 1 on'),
    (['--runs', '5'], 'no number of four_bar has a standard deviation'),
    (['--runs', '5', '--vary', 'tetha=1'], "--vary: got 'tetha', expected one of theta, theta_dot, "),
    (['--runs', '5', '--vary', 'theta'], "NAME=STDDEV, such as theta='2 deg'"),
    (['--runs', '5', '--vary', 'theta=1 kg'], "--vary theta: got '1 kg', expected a number, in rad or with a unit"),
    (['--runs', '5', '--vary', 'theta_dot=1 rad'], 'in rad/s or with a unit'),
    (['--runs', '5', '--vary', 'crank=1 kg'], "--vary crank: got '1 kg', expected a number in SI, or a percentage"),
    (['--runs', '5', '--vary', 'crank=-1%'], 'a standard deviation of 0 or more'),
    (['--runs', '5', '--vary', 'theta=1', '--vary', 'theta=2'], 'each name once'),
    (['--runs', '5', '--vary', 'theta=1', '--scheme', 'dop853'], '--scheme: got \'dop853\', expected of many runs'),
    (['--runs', '5', '--vary', 'theta=1', '--outputs', '7'], '--outputs: got 7, expected a divisor of the 5000 steps'),
    (['--runs', '100000', '--vary', 'theta=1', '--outputs', '5000'], 'fewer instants, or fewer runs: 37.3 GiB'),
    (['--runs', '5', '--vary', 'theta=1', '--jobs', '0'], '--jobs: got 0'),
    (['--runs', '5', '--vary', 'theta=1', '--seed', '-1'], '--seed: got -1'),
    (['--vary', 'theta=1'], 'no such option here: it is for many runs (--runs)'),
    (['--seed', '3'], '--seed: got 3, expected no such option here')])
def test_what_is_refused(words, text, tmp_path):
    assert text in refused('simulate', 'four_bar', '-o', tmp_path / 'x', *words)
    assert not (tmp_path / 'x').exists()
