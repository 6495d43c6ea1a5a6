# SPDX-License-Identifier: Apache-2.0
"""`mbse benchmark estimators`, `mbse observability`, `mbse tune`: forms of their results, refusals, logs from files."""

import json

import numpy as np
import pytest
from cli_support import START_NS, mbse, refused

from mbse_ros.api.bags import read_sensors
from mbse_ros.bags.messages import header
from mbse_ros.bags.topics import Sources
from mbse_ros.bags.writer import BagWriter
from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import BagError
from mbse_ros.filters.parts.problem import problem
from mbse_ros.simulation.three_simulations import noisy, true_motion

DT = 5e-3
pytestmark = pytest.mark.usefixtures('blank_pictures')

SENSORS = ('encoder', 'crank_gyro', 'crank_tip')
KEYS = {'mechanism', 'estimator', 'sensor', 'seeds', 'rmse_pos', 'rmse_vel', 'rmse_acc', 'rmse_pos_after_2s',
        'cpu_per_s', 'step_us', 'nees', 'nis', 'diverged', 'force_rmse', 'whiteness'}


def test_benchmark(tmp_path):
    done = mbse('benchmark', 'estimators', '--mechanism', 'four_bar', '--sensors', 'encoder,gyro_crank', '--estimators',
                'DEKF,errorEKF_FE', '--seeds', 2, '--duration', 2.5, '--backend', 'vm', '--json', tmp_path / 'b.json',
                '-o', tmp_path / 'plots')
    assert done.status == 0 and 'four_bar, gyro_crank: mean of 2 seeds' in done.out
    rows = json.loads((tmp_path / 'b.json').read_text())['rows']
    assert [(row['estimator'], row['sensor']) for row in rows] == [
        (name, sensor) for sensor in ('encoder', 'gyro_crank') for name in ('DEKF', 'errorEKF_FE')]
    assert all(KEYS <= set(row) and row['seeds'] == 2 and row['diverged'] == 0 for row in rows)
    assert {path.name for path in (tmp_path / 'plots').iterdir()} == {'fig6_errors_four_bar.png',
                                                                     'errors_over_time_four_bar.png'}


def test_benchmark_refusals(tmp_path):
    start = ('benchmark', 'estimators')
    assert refused(*start, '--mechanism', 'six_bar').startswith("six_bar: mechanism: got 'six_bar', expected a path")
    assert refused(*start, '--sensors', 'radar').startswith("--sensors: got 'radar'")
    assert refused(*start, '--estimators', 'KF').startswith("--estimators: got 'KF'")
    assert refused(*start, '--duration', 1).startswith('--duration')
    assert refused(*start, '--json', tmp_path).endswith('expected a file, not a folder')


def test_observability_says_what_the_paper_says(tmp_path):
    done = mbse('observability', 'four_bar', '--sensors', 'crank_gyro', '--duration', 1, '--json', tmp_path / 'o.json',
                '-o', tmp_path / 'plots')
    found = {item['model']: item for item in json.loads((tmp_path / 'o.json').read_text())['results']}
    assert [found[kind]['verdict'] for kind in ('simple', 'exact', 'force')] == ['blind', 'seen', 'seen']
    assert found['simple']['blind'] == {'theta': 2} and found['simple']['windows'][0]['condition'] is None
    assert 'crank_tip would help most' in done.out and (tmp_path / 'plots' / 'observability.png').is_file()
    rest = mbse('observability', 'four_bar', '--sensors', 'coupler_gyro', '--trajectory', 'rest')
    assert rest.status == 0 and rest.out.count('blind') == 2 and "use 'force'" in rest.out


def test_observability_refusals():
    start = ('observability', 'four_bar', '--sensors')
    assert refused(*start, 'radar').startswith("--sensors: got 'radar', expected one of encoder")
    assert refused(*start, ' , ').startswith('--sensors')
    assert refused(*start, 'encoder', '--trajectory', 'walk').startswith("--trajectory: got 'walk'")
    assert refused(*start, 'encoder', '--model', 'best').startswith("--model: got 'best'")
    assert refused(*start, 'encoder', '--duration', 0.1).startswith('--duration')
    assert 'degrees of freedom' in refused('observability', 'four_bar_adams_driven', '--sensors', 'x')


def test_observability_along_a_recorded_motion(tmp_path):
    model = load_model('four_bar', backend='vm')
    motion = true_motion(model, 1.0, DT).motion
    theta, speed = motion.q[:, model.z[0]], motion.qd[:, model.z[0]]
    table = tmp_path / 'motion.csv'

    def written(rows):
        table.write_text('t [s],theta [rad],theta_dot [rad/s]\n' + ''.join(f'{a},{b},{c}\n' for a, b, c in rows))

    rows = list(zip(motion.t.tolist(), theta.tolist(), speed.tolist()))
    written(rows)
    command = ('observability', 'four_bar', '--sensors', 'crank_gyro', '--model', 'exact', '--json')
    for name, options in (('free', ('--duration', 1)), ('table', ('--trajectory', table))):
        assert mbse(*command, tmp_path / name, *options).status == 0
    free, found = (json.loads((tmp_path / name).read_text())['results'][0] for name in ('free', 'table'))
    assert found['least_information'] == pytest.approx(free['least_information'], rel=1e-6)
    for bad, text in ((rows[:2], 'three rows'), ([*rows[:9], *rows[10:]], 'even steps'), (rows[:20], '--window')):
        written(bad)
        assert text in refused('observability', 'four_bar', '--sensors', 'encoder', '--trajectory', table)
    table.write_text('t,phi\n0,1\n')
    assert 'no theta' in refused('observability', 'four_bar', '--sensors', 'encoder', '--trajectory', table)


@pytest.fixture(scope='module')
def logs(tmp_path_factory):
    """Samples (k, s) of a four-bar as a table and as a bag, and their channels."""
    folder, model = tmp_path_factory.mktemp('logs'), load_model('four_bar', backend='vm')
    of = problem(model, SENSORS)
    truth = true_motion(model, 1.0, DT)
    values, times = noisy(truth.sensors(SENSORS), of.stddev, 0), truth.motion.t[1:]
    heads = ','.join(['t [s]', *of.channels])
    np.savetxt(folder / 'log.csv', np.column_stack([times, values]), delimiter=',', header=heads, comments='')
    sources = Sources(model.description, of.channels)
    with BagWriter(folder / 'bag', namespace='linkage') as writer:
        for t, row in zip(times, values):
            stamp = START_NS + round(1e9 * t)
            for topic, message in sources.spread(dict(zip(of.channels, row.tolist()))).items():
                stamped = {'header': header(stamp, ''), **message}
                writer.write(f'/linkage/{topic}', sources.topics[topic], stamp, stamped)
    return folder, model, of.channels, values


@pytest.mark.parametrize('name', ['log.csv', 'bag'])
def test_samples_out_of_files(logs, name):
    folder, model, channels, values = logs
    table = read_sensors(folder / name, model, channels)
    np.testing.assert_allclose(table.values, values, rtol=1e-12)
    np.testing.assert_allclose(table.t, DT * np.arange(len(values)), atol=1e-9)
    assert table.inputs.shape == (len(values), 1) and not table.inputs.any()


def test_gaps_and_inputs_of_a_table(tmp_path):
    model = load_model('four_bar', backend='vm')
    (tmp_path / 'log.csv').write_text('t [s],encoder [rad],torque\n0,1,\n0.01,,5\n0.02,3,\n0.04,4,6\n')
    table = read_sensors(tmp_path / 'log.csv', model, ['encoder'], 0.01)
    np.testing.assert_array_equal(table.values[:, 0], [1, np.nan, 3, np.nan, 4])
    np.testing.assert_array_equal(table.inputs[:, 0], [0, 5, 5, 5, 6])
    for text, said in (('t,theta\n0,1\n', "0 columns 'encoder'"), ('t,encoder\n0,x\n', 'line 2'),
                       ('t,encoder\n0,1\n', 'only one sample'), ('', "0 columns 't'"),
                       ('t,encoder\n0,\n', 'no samples')):
        (tmp_path / 'bad.csv').write_text(text)
        with pytest.raises(BagError, match=said):
            read_sensors(tmp_path / 'bad.csv', model, ['encoder'])


def test_tune_on_a_mechanism_and_on_its_logs(tmp_path, logs):
    folder, options = logs[0], ('--estimator', 'DEKF', '--sensors', 'encoder,crank_gyro', '--backend', 'vm')
    done = mbse('tune', 'four_bar', *options, '--duration', 1.5, '--skip', 0.5, '--json', tmp_path / 't.json')
    assert done.status == 0 and 'Ljung-Box' in done.out
    result = json.loads((tmp_path / 't.json').read_text())
    assert result['after']['log_likelihood'] > result['before']['log_likelihood'] and result['converged']
    assert result['noises'] == result['after']['noises']
    assert set(result['after']['ljung_box']) == {'encoder', 'crank_gyro'}
    done = mbse('tune', folder / 'log.csv', folder / 'bag', '--mechanism', 'four_bar', *options, '--skip', 0.2,
                '--json', tmp_path / 'logs.json')
    found = json.loads((tmp_path / 'logs.json').read_text())
    assert done.status == 0 and found['after']['log_likelihood'] > found['before']['log_likelihood']
    assert found['noises']['acceleration'][0] < 0.01        # of a model without error the noise vanishes


def test_tune_refusals(tmp_path, logs):
    options = ('--estimator', 'DEKF', '--sensors', 'encoder')
    assert refused('tune', logs[0] / 'log.csv', *options).startswith('--mechanism')
    assert 'No such file' in refused('tune', tmp_path / 'no.csv', '--mechanism', 'four_bar', *options)
    assert refused('tune', 'four_bar', '--estimator', 'KF', '--sensors', 'encoder').startswith("--estimator: got 'KF'")
    assert refused('tune', 'four_bar', *options, '--duration', 1).startswith('--skip')
    assert 'no samples of coupler_gyro' in refused('tune', logs[0] / 'bag', '--mechanism', 'four_bar', '--estimator',
                                                   'DEKF', '--sensors', 'coupler_gyro')
