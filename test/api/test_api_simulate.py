# SPDX-License-Identifier: Apache-2.0
"""``load`` and ``simulate``: the same motion and the same samples as by the parts they are made of."""

from pathlib import Path

import numpy as np
import pytest
from cli_support import mbse as command

import mbse_ros as mbse
from mbse_ros.bags.bag import Bag
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.dynamics.motion import simulate as integrate
from mbse_ros.errors import DescriptionError, MbseError, SettingError
from mbse_ros.machine import Machine
from mbse_ros.simulation.three_simulations import true_motion


def test_load_by_name_and_by_path(tmp_path):
    path = tmp_path / 'mine.yaml'
    path.write_text(Path(mbse.load('four_bar').description.file).read_text())
    assert isinstance(mbse.load(path), Model) and isinstance(mbse.load('zx200'), Machine)
    assert mbse.load('four_bar', coordinates='relative').names != mbse.load(path).names
    assert mbse.load('patu655_lift', valve='unknown').unknown_valves == ('lift_valve',)


@pytest.mark.parametrize('make, kind, said', [
    (lambda: mbse.load('four_bra'), DescriptionError, 'did you mean four_bar'),
    (lambda: mbse.load('four_bar', valve='unknown'), SettingError, 'it is for a machine'),
    (lambda: mbse.load('zx200', coordinates='natural'), SettingError, 'it is for a mechanism'),
    (lambda: mbse.simulate(3), SettingError, 'a name, a path'),
    (lambda: mbse.simulate('four_bar', 1.0, sensors=['radar']), SettingError, 'encoder'),
    (lambda: mbse.simulate('four_bar', 1.0, rate=300.0), SettingError, 'every whole number of steps'),
    (lambda: mbse.simulate('four_bar', 0.004), SettingError, 'a sample within'),
    (lambda: mbse.simulate('four_bar', 1.0, payload=50), SettingError, 'it is for a machine'),
    (lambda: mbse.simulate('four_bar', duratoin=1.0), SettingError, 'duratoin: got 1.0.*did you mean duration'),
    (lambda: mbse.simulate('patu655_lift', duratoin=1.0), SettingError, 'duratoin: got 1.0.*did you mean duration'),
    (lambda: mbse.simulate('patu655_lift', 1.0, sensors=['x']), SettingError, 'it is for a mechanism'),
    (lambda: mbse.simulate('patu655_lift', 1.0, payloda=50), SettingError, 'payloda: .*did you mean payload'),
    (lambda: mbse.simulate('patu655_lift', 1.0, payload=1e6), SettingError, 'payload.limits'),
    (lambda: mbse.simulate('patu655_lift', -1.0), SettingError, 'above 0')])
def test_what_is_refused(make, kind, said):
    with pytest.raises(kind, match=said) as raised:
        make()
    assert isinstance(raised.value, MbseError)


def test_a_machine_works_as_long_as_it_is_told_to_by_its_cycle_again():
    once, twice = (mbse.simulate('zx200', duration, cycle='dig', rate=20.0, payload=800.0) for duration in (None, 40.0))
    assert (once.t[-1], twice.t[-1]) == (22.0, 40.0)
    np.testing.assert_array_equal(twice.samples.values[:440], once.samples.values[:440])
    # taken and dropped once more; times of the second cycle are rounded at 22 s and more
    np.testing.assert_allclose(twice.payload[440:], once.payload[:361], rtol=0, atol=1e-9)
    assert np.ptp(twice.velocity[440:], axis=0).min() > 0.1


def test_the_motion_is_the_integrator_s():
    run = mbse.simulate('four_bar', 0.5, 5e-3, 'exponential', sensors=[], options={'order': 2})
    motion = integrate(load_model('four_bar'), 0.5, 5e-3, 'exponential', order=2)
    np.testing.assert_array_equal(run.q, motion.q)
    assert run.samples is None and run.names == motion.names


def test_samples_are_the_sensors_outputs_with_their_noise():
    run, again, other = (mbse.simulate('four_bar', 2.0, 5e-3, 'trapezoid', sensors=['encoder', 'crank_tip'], seed=seed)
                         for seed in (1, 1, 2))
    np.testing.assert_array_equal(run.samples.values, again.samples.values)
    assert (run.samples.values != other.samples.values).all()
    exact = true_motion(load_model('four_bar'), 2.0, 5e-3).sensors(('encoder', 'crank_tip'))
    error = run.samples.values - exact
    expected = [run.model.description.sensors[name].noise for name in ('encoder', 'crank_tip', 'crank_tip')]
    np.testing.assert_allclose(error.std(axis=0), expected, rtol=0.15)        # 400 samples: 3.5 % is one sigma
    assert run.samples.names == ('encoder', 'crank_tip.x', 'crank_tip.y') and len(run.samples.t) == 400
    none = mbse.simulate('four_bar', 2.0, 5e-3, 'trapezoid', sensors=['encoder'], noise=0.0)
    np.testing.assert_allclose(none.samples['encoder'], exact[:, 0], atol=1e-12)


def test_inputs_are_means_over_the_step_before():
    run = mbse.simulate('four_bar', 0.1, 1e-3, sensors=['encoder'], rate=100.0, inputs=lambda t, q, qd: np.array([t]))
    np.testing.assert_allclose(run.samples['input/torque'], run.samples.t - 0.0055, atol=1e-12)   # of 0 to 9 ms and on
    assert run.samples.units['input/torque'] == 'N m'


def test_a_machine_is_the_command_line_s(tmp_path):
    assert command('simulate', 'patu655_lift', '-o', tmp_path / 'bag', '--payload', 80, '--seed', 3).status == 0
    run = mbse.simulate('patu655_lift', payload=80, seed=3)
    mbse.write_bag(tmp_path / 'mine', run)
    theirs, ours = (list(Bag(tmp_path / name).messages()) for name in ('bag', 'mine'))
    assert theirs == ours and len(ours) > 1000
    part = mbse.simulate('patu655_lift', 1.0, payload=80, seed=3)
    np.testing.assert_array_equal(part.samples.values, run.samples.values[:101])
    np.testing.assert_array_equal(part.position, run.position[:101])
    assert part.payload[0] == 80.0 and part.units['velocity/lift'] == 'm/s' and part.t[-1] == pytest.approx(1.0)


def test_a_machine_has_physics_beyond_its_file_here_and_on_the_command_line(tmp_path):
    assert command('simulate', 'patu655_lift', '-o', tmp_path / 'bag', '--duration', 1, '--physics', 'play=4e-3'
                   ).status == 0
    plain, loose = (mbse.simulate('patu655_lift', 1.0, physics=physics) for physics in (None, {'play': 4e-3}))
    off = (loose.samples.values - plain.samples.values)[:, loose.samples.names.index('position/lift')]
    assert np.allclose(off, 2e-3) and np.array_equal(plain.position, loose.position)
    mbse.write_bag(tmp_path / 'mine', loose)
    theirs, ours = (list(Bag(tmp_path / name).messages()) for name in ('bag', 'mine'))
    assert theirs == ours
    for wrong in ({'plays': 1.0}, {'play': 'much'}, {'play': float('nan')}, 'play=1'):
        with pytest.raises(SettingError, match='p(lay|hysics)'):
            mbse.simulate('patu655_lift', physics=wrong)
