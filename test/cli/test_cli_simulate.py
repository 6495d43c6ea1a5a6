# SPDX-License-Identifier: Apache-2.0
"""`mbse simulate`: a bag that the same arguments give again, and what is refused."""

import re

import numpy as np
import pytest
from cli_support import START_NS, lift, mbse, refused
from source_tree import ROOT

from mbse_ros.bags.bag import Bag, decode
from mbse_ros.bags.series import read_truth
from mbse_ros.errors import MbseError
from mbse_ros.machine import load_machine
from mbse_ros.simulation.crane import cycle_by_name
from mbse_ros.simulation.work import physics_in

LIFT = (ROOT / 'config' / 'machines' / 'patu655_lift.yaml').read_text()


def test_same_arguments_same_bag_in_both_storages(tmp_path):
    done = mbse('simulate', 'patu655_lift', '-o', tmp_path / 'bag', '--storage', 'sqlite3')
    assert done == (0, f'wrote {tmp_path}/bag: 24.0 s at 100 Hz, payload 50 kg, seed 1\n', '')
    assert {path.name for path in (tmp_path / 'bag').iterdir()} == {'metadata.yaml', 'bag_0.db3'}
    again, first = Bag(tmp_path / 'bag'), lift()
    assert tuple(again.messages()) == first and len(first) == 2401 * 5
    assert set(again.topics) == {'/sensors/position', '/sensors/pressure/lift_piston', '/sensors/pressure/lift_rod',
                                 '/sensors/valve_command', '/truth'}


def test_arguments_have_an_effect(tmp_path):
    """Payload, seed, cycle and rate: the truth has them, and the noise is another."""
    assert mbse('simulate', 'lut_simple_crane', '-o', tmp_path / 'bag', '--payload', 7, '--seed', 3, '--rate', 20,
                '--cycle', 'random').status == 0
    truth = read_truth(tmp_path / 'bag')
    assert set(truth.payload) == {7.0} and set(np.diff(truth.stamp_ns)) == {50_000_000}
    assert truth.stamp_ns[0] == START_NS
    assert np.ptp(truth.position) > 0.02 and truth.cylinders == ('lift',)
    for seed in (3, 4):
        assert mbse('simulate', 'patu655_lift', '-o', tmp_path / f'{seed}', '--seed', seed, '--rate', 20).status == 0
    three, four = ([raw.data for raw in Bag(tmp_path / f'{seed}').messages(['/sensors/position'])] for seed in (3, 4))
    assert len(three) == len(four) == 481 and three != four
    motion = [read_truth(tmp_path / f'{seed}').position for seed in (3, 4)]
    assert np.abs(motion[0] - motion[1]).max() < 1e-3       # the operator only sees the noise


def test_random_cycles_go_by_the_seed():
    machine = load_machine('patu655_lift')
    three, four = (cycle_by_name('random', machine, seed, 0.2) for seed in (3, 4))
    assert cycle_by_name('random', machine, 3, 0.2) == three != four
    assert cycle_by_name('lift_hold_lower', machine, 3, 0.02).moves[1].ramp == 0.02


def test_an_excavator_takes_a_load_and_drops_it(tmp_path):
    """All channels are in the bag; the truth is in the independent coordinates, its payload what hangs there then."""
    done = mbse('simulate', 'zx200', '-o', tmp_path / 'bag', '--payload', 1200, '--cycle', 'dig', '--rate', 20)
    assert done.out == f'wrote {tmp_path}/bag: 22.0 s at 20 Hz, payload 1200 kg at times, seed 1\n'
    truth, machine = read_truth(tmp_path / 'bag'), load_machine('zx200')
    assert truth.cylinders == machine.coordinates == ('swing_joint', 'boom', 'arm', 'bucket')
    assert truth.payload[0] == truth.payload[-1] == 0.0 and truth.payload.max() == 1200.0
    assert 0.5 < np.ptp(truth.position[:, 0]) < 1.5 and np.ptp(truth.position[:, 1:], axis=0).min() > 0.2
    topics = set(Bag(tmp_path / 'bag').topics)
    assert {f'/sensors/pressure/{volume}' for volume in machine.volumes} <= topics
    (message, *_) = (decode(raw) for raw in Bag(tmp_path / 'bag').messages(['/sensors/position']))
    assert tuple(message.name) == machine.coordinates
    (message, *_) = (decode(raw) for raw in Bag(tmp_path / 'bag').messages(['/sensors/valve_command']))
    assert tuple(message.name) == machine.valves


def test_the_boom_alone(tmp_path):
    assert mbse('simulate', 'zx200', '-o', tmp_path / 'bag', '--cycle', 'boom', '--rate', 20).status == 0
    moved = np.ptp(read_truth(tmp_path / 'bag').position, axis=0)
    assert moved[1] > 0.1 > moved[0] and moved[2:].max() < 0.02


def test_an_inclined_base(tmp_path):
    """Its attitude can be given where a sensor measures it; the load pushes less along a slope."""
    text = LIFT.replace('sensors:\n', 'sensors:\n  pitch: {kind: inclination, axis: pitch, stddev: 0.1 deg}\n')
    (tmp_path / 'x.yaml').write_text(text)
    pressure = []
    for degrees in (0, 30):
        bag = tmp_path / str(degrees)
        assert mbse('simulate', tmp_path / 'x.yaml', '-o', bag, '--base-pitch', degrees, '--rate', 10).status == 0
        (message, *_) = (decode(raw) for raw in Bag(bag).messages(['/sensors/position']))
        at = message.name.index('base_pitch')
        assert message.position[at] == pytest.approx(np.radians(degrees), abs=0.01)
        pressure.append(read_truth(bag).pressure[0, 0])
    assert pressure[0] > 2e6 and pressure[1] < pressure[0] - 5e4
    for words, text in ((['--base-roll', 1], '--base-roll: got 1.0, expected no such option for patu655_lift: no '
                         'sensor of kind inclination measures the roll of its base'),
                        (['--base-pitch', 60], '--base-pitch: got 60.0, expected from -45 to 45 deg')):
        assert refused('simulate', tmp_path / 'x.yaml', '-o', tmp_path / 'no', *words) == text


def test_a_load_that_hangs_is_let_go(tmp_path):
    """It swings, so the pressure that lifts it does too, more than where it hangs still."""
    text = LIFT.replace('  point: boom.tip\n', '  point: boom.tip\n  hanging: 2 m\n')
    (tmp_path / 'x.yaml').write_text(text)
    spread = []
    for degrees in (0, 20):
        bag = tmp_path / str(degrees)
        assert mbse('simulate', tmp_path / 'x.yaml', '-o', bag, '--swing', degrees, '--rate', 10).status == 0
        truth = read_truth(bag)
        spread.append(np.ptp(truth.pressure[1:6, 0]))
        assert truth.position.shape[1] == 1
    assert spread[1] > 1e4 > 10 * spread[0]
    assert refused('simulate', tmp_path / 'x.yaml', '-o', tmp_path / 'no', '--swing', 50) == (
        '--swing: got 50.0, expected from -45 to 45 deg')


def test_physics_in_a_file_have_units(tmp_path):
    """Those of the option, in SI."""
    file = tmp_path / 'worn.yaml'
    file.write_text('format: mbse/physics/1\nbending: 2 Hz\nripple: 3 bar\nplay: 2 mm\nholding: 150 %\ncold: 0.5\n')
    assert physics_in('bending=2 Hz  ripple = 3 bar play=2mm damper=100 kN*s/m') == pytest.approx(
        {'bending': 2.0, 'ripple': 3e5, 'play': 2e-3, 'damper': 1e5})
    assert physics_in(str(file)) == pytest.approx(physics_in('bending=2 ripple=3e5 play=2e-3 holding=1.5 cold=0.5'))
    for text, told in (('bending: 2 Hz', 'the key format'), ('format: mbse/physics/1\nbendin: 2 Hz', 'mean bending?'),
                       ('format: mbse/physics/1\nhose: [2]', 'hose: got'), ('format: mbse/machine/2', 'format: got'),
                       ('format: mbse/physics/1\nbending: 2 bar', "physics: bending: got '2 bar', expected one number "
                                                                  'Hz')):
        file.write_text(text)
        with pytest.raises(MbseError, match=re.escape(told)):
            physics_in(str(file))


@pytest.mark.parametrize('words, text', [
    (['excavator'], "excavator: name: got 'excavator', expected a path to a .yaml file, one of the machines"),
    (['patu655_lift', '--payload', '1001'], 'payload: got 1001.0, expected from 0.0 to 1000.0 kg (payload.limits of '
                                            'patu655_lift)'),
    (['patu655_lift', '--payload', '-1'], 'payload: got -1.0, expected'),
    (['patu655_lift', '--payload', 'nan'], 'payload: got nan, expected'),
    (['patu655_lift', '--seed', '-1'], 'seed: got -1, expected a whole number from 0'),
    (['patu655_lift', '--cycle', 'dig'], "cycle: got 'dig', expected another cycle: this one "
                                          'takes cylinders named boom, arm and bucket, not lift'),
    (['patu655_lift', '--cycle', 'drop'], "cycle: got 'drop', expected one of lift_hold_lower, random, boom, dig"),
    (['patu655_lift', '--base-roll', '3'], 'base-roll: got 3.0, expected no such option for patu655_lift'),
    (['patu655_lift', '--swing', '5'], 'swing: got 5.0, expected 0 deg: the file of patu655_lift has no '
                                       '`payload.hanging`'),
    (['patu655_lift', '--physics', 'bend=2'], "physics: got 'bend', expected one of line_loss,"),
    (['patu655_lift', '--physics', 'bending=2,3'], "--physics: bending: got '2,3', expected one number Hz"),
    (['patu655_lift', '--physics', 'bending=60'], '--physics: bending: got 60.0, expected from 0.0 to 50.0 Hz'),
    (['patu655_lift', '--physics', 'hose=2bar'], "--physics: hose: got '2bar', expected one number m"),
    (['patu655_lift', '--physics', 'hose=0.1'], '--physics: hose: got 0.1, expected 0, or from 0.5 to 20 m'),
    (['patu655_lift', '--physics', 'none.yaml'], "none.yaml: got 'No such file or directory'"),
    (['patu655_lift', '--physics', 'sag=nan'], "--physics: sag: got 'nan', expected one number"),
    (['patu655_lift', '--physics', 'bending'], "physics: got 'bending', expected name=value"),
    (['patu655_lift', '--physics', 'bending=2 bending=3'], 'expected name=value, each name once, such as'),
    (['patu655_lift', '--physics', 'bending=2 ripple'], "bending: got '2 ripple', expected one number Hz, or with a"),
    (['four_bar', '--physics', 'bending=2'], "--physics: got 'bending=2', expected no such option here: it is for a"),
    (['four_bar', '--base-roll', '3'], '--base-roll: got 3.0, expected no such option here: it is for a machine'),
    (['patu655_lift', '--ramp', '3'], 'ramp: got 3.0, expected from 0.001 to 2.0 s'),
    (['patu655_lift', '--duration', '0'], 'duration: got 0.0, expected seconds above 0'),
    (['patu655_lift', '--duration', 'inf'], 'duration: got inf, expected seconds above 0'),
    (['patu655_lift', '--rate', '0'], 'rate: got 0.0, expected from 1.0 to 1000.0 Hz'),
    (['patu655_lift', '--storage', 'csv'], "storage 'csv' is not one of mcap, sqlite3"),
    (['patu655_measured'], 'lift_valve.nominal_flow: got None, expected the data of a valve of kind orifice'),
])
def test_refused(words, text, tmp_path):
    assert text in refused('simulate', *words, '-o', tmp_path / 'bag')
    assert not (tmp_path / 'bag').exists()


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / 'kept').write_text('x')
    assert refused('simulate', 'patu655_lift', '-o', tmp_path) == f'{tmp_path}: exists already and is not overwritten'
    assert [path.name for path in tmp_path.iterdir()] == ['kept']
    assert 'a place that can be written' in refused('simulate', 'patu655_lift', '-o', tmp_path / 'kept' / 'bag')
