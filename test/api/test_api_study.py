# SPDX-License-Identifier: Apache-2.0
"""``study``: a mechanism of one's own, filters beside ours, runs that are the same again, logs, and what it finds."""

import json

import numpy as np
import pytest
from cli_support import mbse as command
from mechanism_samples import RIG_AT_REST

import mbse_ros as mbse
from mbse_ros.api.study import StudyCase, run_case
from mbse_ros.errors import BagError, SettingError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """With a mechanism of one's own and a table of it at 40 Hz, whose stamps jitter by 2 ms."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'rig.yaml').write_text(RIG_AT_REST)
    run, draw = mbse.simulate('rig.yaml', 2.0, noise=0.0), np.random.default_rng(3)
    t = np.arange(0.05, 1.95, 0.025) + 0.002 * draw.uniform(-1, 1, 76)
    values = np.interp(t, run.t, run['theta']) + 0.01 * draw.standard_normal(76)
    lines = (f'{a:.6f},{b:.6f}\n' for a, b in zip(t, values))
    (tmp_path / 'rig.csv').write_text('t [s],encoder [rad]\n' + ''.join(lines))
    return tmp_path


class Sure:
    """Runs the model, and is too sure of it."""

    def __init__(self, equations):
        self.equations = equations

    def predict(self, mean, P, u, t, dt):
        return self.equations.step(mean, u, t, dt), P

    def correct(self, mean, P, y, u, t):
        off = self.equations.difference(y, self.equations.sensors(mean, u, t))
        return mean, 1e-6 * np.eye(2), off, np.diag(self.equations.stddev ** 2)


class Ends(Sure):
    """Leaves the finite numbers in the second run."""

    def predict(self, mean, P, u, t, dt):
        return (mean * np.nan if mean[0] < np.pi / 3 else mean), P


def test_the_script_of_a_researcher(folder):
    """Of docs/python_api.md with fewer runs: own linkage, table at 40 Hz, five filters, NEES, PDF."""
    filters = ['errorEKF_FE', 'UKF', 'CEKF', 'DEKF', Sure]
    log = mbse.estimate('rig.csv', mechanism='rig.yaml', estimator='UKF', step=0.005)
    log.plot('theta').savefig('log.pdf')
    found = mbse.study('rig.yaml', filters, ['encoder'], runs=3, rate=40.0, duration=2.0, jobs=1)
    found.report('out')
    assert (folder / 'out' / 'study.pdf').stat().st_size > 5000 and (folder / 'log.pdf').is_file()
    assert abs(log['theta'][-1] - np.loadtxt('rig.csv', delimiter=',', skiprows=1)[-1, 1]) < 0.05 and not log.warnings
    [table] = found.tables()
    assert [row[0] for row in table.rows] == ['errorEKF_FE', 'UKF', 'CEKF', 'DEKF', 'Sure']
    assert all(row[1] == '0 of 3' for row in table.rows) and len(found.rows) == 15
    assert np.median(found.column('Sure', 'nees')) > 100 > 20 > np.median(found.column('UKF', 'nees'))
    assert found.column('Sure', 'nees_inside').max() < 0.2
    assert len(found.plot().axes) == 2 and json.dumps(found.to_json())
    of_logs = mbse.study('rig.yaml', ['UKF', Sure], ['encoder'], logs=['rig.csv'])
    assert of_logs.column('UKF', 'nis')[0] < of_logs.column('Sure', 'nis')[0]
    assert 'nees' not in of_logs.tables()[0].columns


def test_a_run_is_the_same_whatever_else_runs_and_a_study_continues(folder):
    whole = mbse.study('rig.yaml', ['UKF'], runs=3, rate=40.0, duration=2.0, jobs=1, file='runs.jsonl')
    text = (folder / 'runs.jsonl').read_text().splitlines()
    (folder / 'runs.jsonl').write_text('\n'.join(text[:2]) + '\n')
    again = mbse.study('rig.yaml', ['UKF'], runs=3, rate=40.0, duration=2.0, jobs=1, file='runs.jsonl')
    other = mbse.study('rig.yaml', ['DEKF', 'UKF'], runs=3, rate=40.0, duration=2.0, jobs=1)
    for name in ('rmse theta', 'nees', 'nis'):
        np.testing.assert_array_equal(again.column('UKF', name), whole.column('UKF', name))
        np.testing.assert_array_equal(other.column('UKF', name), whole.column('UKF', name))
    assert len((folder / 'runs.jsonl').read_text().splitlines()) == 3 and again.rows[0] == json.loads(text[0])
    assert len(set(whole.column('UKF', 'nees'))) == 3
    seeded = mbse.study('rig.yaml', ['UKF'], runs=3, rate=40.0, duration=2.0, jobs=1, seed=2, file='runs.jsonl')
    assert len((folder / 'runs.jsonl').read_text().splitlines()) == 6
    assert set(seeded.column('UKF', 'nees')).isdisjoint(whole.column('UKF', 'nees'))


def test_a_model_in_error_and_a_wrong_start_cost_accuracy(folder):
    def error(**more):
        return np.median(mbse.study('rig.yaml', ['DEKF'], runs=4, rate=40.0, duration=2.0, jobs=1, **more
                                    ).column('DEKF', 'rmse theta'))
    assert error(gravity=3.0) > 1.2 * error()
    far, near = (run_case(StudyCase('k', str(folder / 'rig.yaml'), Sure, ('encoder',), 0, 1, 2.0, 200.0, (start, 0.0),
                                    0.0, 0.0))['rmse theta'] for start in (0.3, 0.0))
    assert near < 0.05 < far


def test_a_filter_that_fails_is_a_row_and_what_is_wrong_is_named(folder):
    found = mbse.study('rig.yaml', [Ends, 'UKF'], runs=6, rate=40.0, duration=2.0, jobs=1)
    failed = [row['run'] for row in found.rows if row['failed']]
    assert 0 < len(failed) < 6 and len(found.column('Ends', 'nees')) == 6 - len(failed)
    assert found.tables()[0].rows[0][1] == f'{len(failed)} of 6' and found.warnings[0].startswith('Ends, run ')
    (folder / 'bad.csv').write_text('t,other\n0,1\n')
    for make, kind, said in (
            (lambda: mbse.study('rig.yaml', [], runs=2), SettingError, 'one filter or more'),
            (lambda: mbse.study('rig.yaml', ['UKF'], runs=0), SettingError, 'runs: got 0'),
            (lambda: mbse.study('rig.yaml', ['KF'], runs=1, jobs=1), SettingError, 'errorEKF_FE'),
            (lambda: mbse.study('rig.yaml', ['UKF'], ['radar'], 1, jobs=1), SettingError, 'encoder'),
            (lambda: found.column('UKF', 'nes'), SettingError, 'nees_inside'),
            (lambda: mbse.estimate('bad.csv', mechanism='rig.yaml'), BagError, 'no column of encoder; there are o')):
        with pytest.raises(kind, match=said):
            make()


def test_the_command_takes_any_file(folder):
    out = command('benchmark', 'estimators', '--mechanism', 'rig.yaml', '--sensors', 'encoder', '--estimators',
                  'UKF', '--seeds', '2', '--duration', '2', '--json', 'a.json').out
    assert 'UKF' in out and '0 of 2' in out
    assert len(json.loads((folder / 'a.json').read_text())['rows']) == 2
