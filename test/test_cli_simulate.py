# SPDX-License-Identifier: Apache-2.0
"""`mbse simulate`: a bag that the same arguments give again, and what is refused."""

import numpy as np
import pytest
from cli_support import START_NS, lift, mbse, refused

from mbse_ros.bags.bag import Bag
from mbse_ros.bags.series import read_truth
from mbse_ros.cli.simulate import cycle_of


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
    assert cycle_of('random', 0.2, 3) == cycle_of('random', 0.2, 3) != cycle_of('random', 0.2, 4)
    assert cycle_of('lift_hold_lower', 0.02, 3).moves[1].ramp == 0.02


@pytest.mark.parametrize('words, text', [
    (['excavator'], "excavator: name: got 'excavator', expected a path to a .yaml file, one of the machines"),
    (['patu655_lift', '--payload', '1001'], 'payload: got 1001.0, expected from 0.0 to 1000.0 kg (payload.limits of '
                                            'patu655_lift)'),
    (['patu655_lift', '--payload', '-1'], 'payload: got -1.0, expected'),
    (['patu655_lift', '--payload', 'nan'], 'payload: got nan, expected'),
    (['patu655_lift', '--seed', '-1'], 'seed: got -1, expected a whole number from 0'),
    (['patu655_lift', '--cycle', 'dig'], "cycle: got 'dig', expected one of lift_hold_lower, random"),
    (['patu655_lift', '--ramp', '3'], 'ramp: got 3.0, expected from 0.001 to 2.0 s'),
    (['patu655_lift', '--rate', '0'], 'rate: got 0.0, expected from 1.0 to 1000.0 Hz'),
    (['patu655_lift', '--storage', 'csv'], "storage 'csv' is not one of mcap, sqlite3"),
    (['patu655_measured'], 'lift_valve.nominal_flow: got None, expected the data of an orifice valve'),
])
def test_refused(words, text, tmp_path):
    assert text in refused('simulate', *words, '-o', tmp_path / 'bag')
    assert not (tmp_path / 'bag').exists()


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / 'kept').write_text('x')
    assert refused('simulate', 'patu655_lift', '-o', tmp_path) == f'{tmp_path}: exists already and is not overwritten'
    assert [path.name for path in tmp_path.iterdir()] == ['kept']
    assert 'cannot be made' in refused('simulate', 'patu655_lift', '-o', tmp_path / 'kept' / 'bag')
