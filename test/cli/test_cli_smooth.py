# SPDX-License-Identifier: Apache-2.0
"""``mbse smooth BAG --mechanism``: filter and smoother of a bag, all at once and with a lag."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from cli_support import mbse, refused
from test_cli_linkage import START, write

from mbse_ros.dynamics.model import load_model
from mbse_ros.simulation.linkage import LinkagePlantSettings, SimulatedLinkage

SENSORS, COUNT = ('encoder', 'coupler_gyro'), 120


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    """A four-bar driven by a known torque."""
    model, folder = load_model('four_bar'), tmp_path_factory.mktemp('smooth') / 'bag'
    plant = SimulatedLinkage(model, SENSORS, 3, LinkagePlantSettings(amplitude=50.0))
    inputs = plant.inputs()
    frames = [plant.frame() for _ in range(COUNT)]
    write(folder, frames, model, plant.channels, inputs, 'rig')
    return folder


def smooth(bag, *words):
    return mbse('smooth', bag, '--mechanism', 'four_bar', '--sensors', ','.join(SENSORS), '--backend', 'vm', *words)


def test_whole_log(bag, tmp_path):
    done = smooth(bag, '--batch', '-o', tmp_path / 'out', '--json', tmp_path / 's.json', '--full')
    assert done.status == 0, done.err
    assert 'do not see' not in done.err and 'all at once' in done.out and 'within the 95 % interval' in done.out
    result = json.loads((tmp_path / 's.json').read_text())
    truth = result['truth']['theta']
    assert result['instants'] == COUNT and result['stretches'] == 1 and result['lag'] is None
    assert truth['smoother'] < 0.7 * truth['filter'] and truth['coverage'] > 0.8
    assert result['median_stddev'][0] < result['median_filter_stddev'][0]
    state = result['state']
    assert state['stamp_ns'] == [START + 5_000_000 * (k + 1) for k in range(COUNT)] and state['after'][-1] == 0.0
    with open(tmp_path / 'out' / 'smoothed.csv', encoding='utf-8') as file:
        rows = list(csv.reader(file))
    assert rows[0][:4] == ['stamp_ns', 'theta', 'theta rate', 'theta force'] and len(rows) == COUNT + 1
    assert float(rows[-1][1]) == pytest.approx(state['mean'][-1][0], rel=1e-12)
    assert (tmp_path / 'out' / 'smoothed.png').stat().st_size > 10_000


def test_lag(bag, tmp_path):
    done = smooth(bag, '--lag', '0.1', '--json', tmp_path / 's.json', '--full')
    assert done.status == 0 and '0.1 s of lag' in done.out, done.err
    after = np.array(json.loads((tmp_path / 's.json').read_text())['state']['after'])
    assert after[:COUNT - 20] == pytest.approx(np.full(COUNT - 20, 0.1)) and after[-1] == 0.0


def test_known_torque_counts(bag, tmp_path):
    """The smoother knows the input in the bag: what is missing in the model stays small against it (50 N m)."""
    smooth(bag, '--json', tmp_path / 's.json', '--full')
    mean = np.array(json.loads((tmp_path / 's.json').read_text())['state']['mean'])
    assert np.sqrt(np.mean(mean[:, 2] ** 2)) < 10.0


def test_what_no_sensor_sees_is_reported(tmp_path):
    """A gyro on a crank at rest: any angle would do, with another force."""
    model = load_model('four_bar', backend='vm')
    plant = SimulatedLinkage(model, ('crank_gyro',), 3, LinkagePlantSettings(amplitude=0.0))
    inputs, frames = plant.inputs(), [plant.frame() for _ in range(60)]
    rest = [replace(frame, samples=np.zeros(1)) for frame in frames]
    write(tmp_path / 'bag', rest, model, plant.channels, inputs)
    done = mbse('smooth', tmp_path / 'bag', '--mechanism', 'four_bar', '--sensors', 'crank_gyro', '--backend', 'vm')
    assert done.status == 0 and 'theta: the sensors do not see it' in done.err


@pytest.mark.parametrize('words, expected', [
    (('--lag', '0'), '--lag'), (('--batch', '--lag', '0.1'), '--batch'), (('--sensors', 'camera'), 'camera'),
    (('--machine', 'patu655_lift'), '--machine'), (('--set', 'linkage.estimator=UKF'), 'errorEKF_FE')])
def test_what_is_refused(bag, words, expected):
    words = ('--sensors', 'encoder', *words) if '--sensors' not in words else words
    assert expected in refused('smooth', bag, '--mechanism', 'four_bar', *words)
