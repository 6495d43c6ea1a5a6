# SPDX-License-Identifier: Apache-2.0
"""``mbse estimate BAG --mechanism``: the linkage stage on a bag."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from cli_support import mbse, refused

from mbse_ros.bags.bag import decode, open_bag
from mbse_ros.bags.messages import header
from mbse_ros.bags.topics import INPUTS, Sources
from mbse_ros.bags.writer import BagWriter
from mbse_ros.dynamics.model import load_model
from mbse_ros.simulation.linkage import LinkagePlantSettings, SimulatedLinkage
from mbse_ros.streams.linkage import LinkageSettings, LinkageStage

START = 1_700_000_000_000_000_000
SENSORS = ('encoder', 'crank_gyro', 'crank_tip')
COUNT = 400


def write(folder, frames, model, channels, inputs, namespace=''):
    sources = Sources(model.description, channels, model.inputs)
    with BagWriter(folder, namespace=namespace, frame=model.description.name) as writer:
        def put(topic, stamp, values):
            writer.write(topic, sources.topics.get(topic, 'sensor_msgs/msg/JointState'), stamp,
                         {'header': header(stamp, 'm'), **values})
        if inputs is not None:
            put(INPUTS, START, {'name': list(model.inputs), 'effort': inputs})
        for frame in frames:
            stamp = START + frame.stamp_ns
            for topic, values in sources.spread(dict(zip(channels, frame.samples))).items():
                put(topic, stamp, values)
            if inputs is not None:
                put(INPUTS, stamp, {'name': list(model.inputs), 'effort': frame.inputs})
            put('truth/joint_states', stamp, {'name': list(model.names), 'position': frame.q, 'velocity': frame.qd})


@pytest.fixture(scope='module')
def recorded(tmp_path_factory):
    """A four-bar driven by a known torque: model, frames, first inputs, bag."""
    model, folder = load_model('four_bar'), tmp_path_factory.mktemp('linkage') / 'bag'
    plant = SimulatedLinkage(model, SENSORS, 3, LinkagePlantSettings(amplitude=50.0))
    inputs = plant.inputs()
    frames = [plant.frame() for _ in range(COUNT)]
    write(folder, frames, model, plant.channels, inputs, 'rig')
    return model, frames, inputs, folder, plant.channels


def test_estimate_is_that_of_the_stage(recorded, tmp_path):
    model, frames, inputs, bag, channels = recorded
    done = mbse('estimate', bag, '--mechanism', 'four_bar', '--estimator', 'errorEKF_EJ', '--json', tmp_path / 'e.json',
                '--full', '-o', tmp_path / 'out', '--sensors', ','.join(SENSORS))
    assert done.status == 0, done.err
    assert 'errorEKF_EJ on four_bar' in done.out and 'RMSE against the truth: theta' in done.out
    result = json.loads((tmp_path / 'e.json').read_text())
    assert result['instants'] == COUNT and result['dropped'] == {} and result['rmse']['theta'] < 0.01
    stage = LinkageStage(model, LinkageSettings(estimator='errorEKF_EJ'), SENSORS, 0.005)
    stage.add(START, {'input/torque': inputs[0]})
    means = {}
    sources = Sources(model.description, channels, model.inputs)
    for frame in frames:
        samples = dict(zip(channels, frame.samples))
        for part in sources.imus.values():
            for estimate in stage.add(START + frame.stamp_ns, {name: samples.pop(name) for _, name in part[1]}):
                means[estimate.stamp_ns] = estimate.mean
        for estimate in stage.add(START + frame.stamp_ns, samples):
            means[estimate.stamp_ns] = estimate.mean
        stage.add(START + frame.stamp_ns, {'input/torque': frame.inputs[0]})
    np.testing.assert_allclose(result['state']['mean'], [means[s] for s in result['state']['stamp_ns']], atol=1e-12)
    written = [decode(raw) for raw in open_bag(tmp_path / 'out').messages(['/linkage_state'])]
    assert len(written) == COUNT
    np.testing.assert_array_equal(written[-1].mean, result['mean'])
    assert list(written[-1].names) == result['names'] and written[-1].estimator == 'errorEKF_EJ'


def test_what_was_used_is_named_and_when_and_why_the_filter_coasted(recorded, tmp_path):
    """A bag without the gyro, whose encoder is silent from 1 s to 1.5 s."""
    model, frames, inputs, _, _ = recorded
    some = [SimpleNamespace(**{name: getattr(frame, name) for name in ('stamp_ns', 'q', 'qd', 'inputs')},
                            samples=frame.samples[:1]) for frame in frames]
    for frame in some:
        if 1.0 < (frame.stamp_ns - some[0].stamp_ns) * 1e-9 < 1.5:
            frame.samples = [np.nan]
    write(tmp_path / 'bag', some, model, ('encoder',), inputs)
    for command in ('estimate', 'smooth'):
        done = mbse(command, tmp_path / 'bag', '--mechanism', 'four_bar', '--json', tmp_path / f'{command}.json')
        assert done.status == 0 and 'four_bar: encoder; ' in done.out, done
        assert json.loads((tmp_path / f'{command}.json').read_text())['channels'] == ['encoder']
        line, = (line for line in done.warnings if 'coasted' in line)
        at = float(line.partition('first at t = ')[2].partition(' s: ')[0])
        assert 1.0 < at < 1.5 and 'silent: encoder' in line
    assert refused('smooth', tmp_path / 'bag', '--mechanism', 'four_bar', '--batch', '--lag', 0.2).startswith(
        '--lag: got 0.2, expected no lag with --batch')


def test_the_same_bag_gives_the_same_result(recorded, tmp_path):
    for name in 'ab':
        mbse('estimate', recorded[3], '--mechanism', 'four_bar', '--sensors', 'encoder', '--json', tmp_path / name)
    a, b = (json.loads((tmp_path / name).read_text()) for name in 'ab')
    assert a['mean'] == b['mean'] and a['estimator'] == 'errorEKF_FE'


@pytest.mark.parametrize('words, text', [
    (('--estimator', 'nose'), 'estimator'), (('--sensors', 'nose'), 'sensors'),
    (('--machine', 'patu655_lift'), 'machine'), (('--estimator', 'hydraulic'), 'expected a machine with hydraulics'),
    (('--set', 'linkage.estimator=hydraulic'), 'expected a machine with hydraulics'),
    (('--set', 'linkage.nose=1'), 'linkage.'), (('--set', 'linkage.gate=2'), 'gate'),
    (('--set', 'linkage.noises=nose=1'), 'noises'), (('--namespace', 'elsewhere'), 'no samples')])
def test_what_cannot_be_is_one_line(recorded, words, text):
    done = mbse('estimate', recorded[3], '--mechanism', 'four_bar', *words)
    assert done.status == 2 and text in done.err.splitlines()[-1] and 'Traceback' not in done.err


def test_options_of_a_mechanism_are_refused_for_a_machine(recorded):
    done = mbse('estimate', recorded[3], '--estimator', 'UKF')
    assert done.status == 2 and "--estimator: got 'UKF', expected a mechanism" in done.err


def test_what_is_wrong_with_the_data_and_a_map_of_the_topics(recorded, tmp_path):
    """Sound samples; the gyro in degrees; a sensor that is not there; the map that is proposed is one."""
    model, frames, inputs, bag, channels = recorded
    done = mbse('check-data', bag, '--mechanism', 'four_bar', '--sensors', ','.join(SENSORS), '--json',
                tmp_path / 'x.json')
    assert done.status == 0 and done.out.startswith('nothing wrong is seen in '), done
    result = json.loads((tmp_path / 'x.json').read_text())
    assert result['mechanism'] == 'four_bar' and 'machine' not in result and result['unchecked'] == []
    write(tmp_path / 'alone', frames, model, channels, None)
    done = mbse('check-data', tmp_path / 'alone', '--mechanism', 'four_bar', '--sensors', ','.join(SENSORS))
    assert done.status == 0 and 'input/torque: no sample in the bag: an estimate takes 0 for it' in done.err, done
    place = channels.index('crank_gyro')
    wrong = [SimpleNamespace(**{**vars(frame), 'samples': np.where(np.arange(len(channels)) == place, np.degrees(
        frame.samples), frame.samples)}) for frame in frames]
    write(tmp_path / 'wrong', wrong, model, channels, inputs)
    done = mbse('check-data', tmp_path / 'wrong', '--mechanism', 'four_bar')
    assert done.status == 1 and 'multiply by 0.0174533: the values look like degrees' in done.out
    assert 'coupler_gyro: no sample in the bag; record them under these names, or name the sensors' in done.out
    assert done.out.splitlines()[-1].startswith('2 findings in ')
    both = refused('check-data', bag, '--mechanism', 'four_bar', '--machine', 'zx200')
    assert both.startswith("--machine: got 'zx200'")
    assert refused('check-data', bag, '--sensors', 'encoder').startswith("--sensors: got ['encoder'], expected no such")
    done = mbse('topics', bag, '--mechanism', 'four_bar', '-o', tmp_path / 'map.yaml')
    assert done.status == 0 and done.out.endswith('channels of four_bar\n')
    text = (tmp_path / 'map.yaml').read_text()
    assert '# All of these are the topics of this package' in text and '#   input/torque: a force or torque' in text
    assert '  position/theta:' in text and '  gyro/crank_gyro:' in text
    done = mbse('check-data', bag, '--mechanism', 'four_bar', '--sources', tmp_path / 'map.yaml')
    assert done.out.count('no sample in the bag') == 1 and 'coupler_gyro' in done.out
    both = refused('topics', bag, '--mechanism', 'four_bar', '--machine', 'zx200')
    assert both.startswith("--machine: got 'zx200'")
