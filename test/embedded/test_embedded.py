# SPDX-License-Identifier: Apache-2.0
"""The exported estimator against the Python pipeline, tick by tick: motion, mass, interval, statuses, faults."""

import shutil
from datetime import timedelta

import numpy as np
import pytest
from cli_support import mbse, refused
from core_support import crane, kinematic, simulate
from embedded_support import ExportedEstimator
from export_support import run_test
from machine_variants import changed

from mbse_ros.description.age import today
from mbse_ros.description.load import known_machines, parse_mechanism
from mbse_ros.embedded.record import PythonEstimator
from mbse_ros.embedded.tables import EstimatorSetup, student_coefficients
from mbse_ros.embedded.write import export_estimator
from mbse_ros.errors import SettingError
from mbse_ros.machine import Machine, load_machine
from mbse_ros.payload.filter import t_quantile
from mbse_ros.payload.mass import PayloadSettings

pytestmark = pytest.mark.skipif(shutil.which('cc') is None, reason='no C compiler')
UPDATING, NO_DATA, NOT_OBSERVABLE, CONTRADICTED = 0, 1, 3, 7
COASTING, LOST = 2, 3
BETWEEN = {'doubt_after': 0.205, 'lost_after': 0.505, 'constant_after': 0.995}     # between ticks


def setup_of(name='patu655_lift', **changes):
    machine = crane() if name == 'patu655_lift' else load_machine(name)
    return EstimatorSetup(machine, kinematic(**changes), PayloadSettings())


def test_a_mass_with_a_wide_interval_is_not_observable(cycle, tmp_path):
    """As in Python: of the excavator the first seconds."""
    of = EstimatorSetup(crane(), kinematic(**BETWEEN), PayloadSettings(max_interval_share=0.02))
    export_estimator(of, tmp_path / 'lift')
    found = compared(ExportedEstimator(tmp_path / 'lift', 'patu655_lift'), of, *(part[:800] for part in cycle))
    wide = [got for got in found if got.status == NOT_OBSERVABLE]
    assert wide and all(got.held_upper - got.held_lower > 0.02 * 1000.0 for got in wide)
    assert any(got.status == UPDATING for got in found)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp('c') / 'lift'
    export_estimator(setup_of(**BETWEEN), path)
    return path


@pytest.fixture(scope='module')
def cycle():
    """Samples and commands of a cycle, with what befalls the sensors by tick."""
    frames, machine = simulate(80.0, 3), crane()
    samples = np.array([[frame.samples[name] for name in machine.channels] for frame in frames])
    commands = np.array([[frame.commands[name] for name in machine.commands] for frame in frames])
    return samples, commands


def compared(exported, of, samples, commands):
    """Outputs of the C; asserts that those of Python are the same."""
    python, found = PythonEstimator(of, 'auto'), []
    for k, (sample, command) in enumerate(zip(samples, commands)):
        status, expected = python.step(sample, command)
        got = exported.step(sample, command)
        assert (got.observer, got.status) == status, (k, got)
        values = [got.held_mass, got.held_lower, got.held_upper, *got.state[:len(expected) - 3]]
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-9, err_msg=f'tick {k}')
        assert (got.status == UPDATING) == np.isfinite(got.mass) == np.isfinite(got.upper)
        found.append(got)
    return found


def test_a_cycle_with_faults_is_that_of_python(folder, cycle):
    samples, commands = (part[:1700].copy() for part in cycle)
    samples[900, 1] = np.nan
    samples[950:952, 1] += 2e6              # a spike that a shock explains
    samples[1000:1030, 2] += 2e6 * np.minimum(np.arange(1, 31) / 4, 1.0)       # rejected for long, and no step
    samples[1027:1030, 2] -= 2e6 * np.arange(1, 4) / 4
    samples[1480:1520, 2] += 5e5            # steps alone, and back
    samples[1100:1103, 0] -= 0.1            # jumps, and back
    samples[1150:1155, 1] = -3e5            # below vacuum
    samples[1200:1210, 0] = 3.0             # far away
    samples[1250:1460, 1] = samples[1250, 1]        # stuck
    found = compared(ExportedEstimator(folder, 'patu655_lift'), setup_of(**BETWEEN), samples, commands)
    seen = np.bitwise_or.reduce([[*one.channel] for one in found])
    assert seen.tolist() == [1 | 32 | 64, 1 | 4 | 8, 1 | 2 | 64]      # as in the header
    assert {one.observer for one in found} == {0, 1, COASTING, LOST}
    assert sum(one.status == UPDATING for one in found) > 400


def test_single_precision(tmp_path, cycle):
    done = mbse('export-c', 'patu655_lift', '--estimator', '--single', '--set', 'observer.weighing=apart', '-o',
                tmp_path / 'c')
    assert done.status == 0 and 'single precision' in done.out
    run = run_test(tmp_path / 'c', 'cc', '-Wdouble-promotion', '-O1')
    assert run.returncode == 0, run.stdout
    exported = ExportedEstimator(tmp_path / 'c', 'patu655_lift', '-O1')
    python, samples, commands = PythonEstimator(setup_of(), 'auto'), *cycle
    off = [abs(exported.step(sample, command).held_mass - python.step(sample, command)[1][0])
           for sample, command in zip(samples[:1200], commands)]
    assert 1e-9 < np.nanmax(off) < 0.01     # kg


def test_a_mass_that_is_held_cannot_be_taken_for_one(folder, cycle):
    exported, (samples, commands) = ExportedEstimator(folder, 'patu655_lift'), cycle
    first = exported.step(samples[0], commands[0])
    assert (first.status, first.observer, first.reasons) == (NO_DATA, LOST, 32) and np.isnan(first.held_mass)
    assert first.held_for == np.inf and np.isnan(first.state).all()
    ticks = [exported.step(*row) for row in zip(samples[1:800], commands[1:800])]
    last = max(k for k, one in enumerate(ticks) if one.status == UPDATING)
    at, held = ticks[last], ticks[last + 1:last + 1] or [exported.step(np.full(3, np.nan), commands[800])]
    assert at.mass == at.held_mass and at.held_for == 0.0 and at.taken > 0
    assert all(np.isnan(one.mass) and np.isnan(one.lower) and np.isfinite(one.held_mass) for one in held)
    later = exported.step(np.full(3, np.nan), commands[800])
    assert later.status == NO_DATA and later.held_for > held[0].held_for > 0.0
    exported.gap()
    assert exported.step(samples[801], commands[801]).reasons == 32
    exported.new_load()
    assert np.isnan(exported.step(samples[802], commands[802]).held_mass)


def test_samples_that_contradict_the_model_close_the_mass(folder, cycle):
    """The file's noise is that of the sensors: six times as much is within the gate, and wrong."""
    exported, (samples, commands) = ExportedEstimator(folder, 'patu655_lift'), cycle
    noise = np.random.default_rng(1).standard_normal(samples.shape) * [0.4e-3, 12e3, 8e3]
    statuses = {exported.step(*row).status for row in zip(samples[:900] + 5.0 * noise[:900], commands)}
    assert CONTRADICTED in statuses and UPDATING not in statuses


def test_a_sensor_that_measures_through_a_loop(tmp_path):
    """An inclinometer on the boom: the observer solves for the dependent coordinates, from its start on."""
    machine = changed('patu655_lift', {'sensors/tilt': {'kind': 'inclinometer', 'body': 'boom', 'stddev': '0.1 deg'}})
    of = EstimatorSetup(machine, kinematic(), PayloadSettings(), rate=200.0, step=5e-3)
    export_estimator(of, tmp_path / 'c')
    assert 'place(e, e->x, e->x + ' in (tmp_path / 'c' / 'patu655_lift.c').read_text()
    done = run_test(tmp_path / 'c', 'cc', '-O0')
    assert done.returncode == 0, done.stdout


def test_a_machine_without_data_of_its_valves_stands_still(tmp_path):
    export_estimator(setup_of('patu655_measured'), tmp_path / 'c')
    assert run_test(tmp_path / 'c', 'cc', '-O0').returncode == 0


def test_zeros_that_drift_are_those_of_the_day_of_the_export(tmp_path):
    """The header says of which day, and the C has their deviations: it gives what Python gives on that day."""
    text, day = known_machines()['patu655_lift'].read_text(), today()
    text = text.replace('volume: lift_piston, ', 'volume: lift_piston, drift: 5 kPa/sqrt(day), ')
    text += f'\ncalibration: {{date: {day - timedelta(90)}}}\n'
    export_estimator(EstimatorSetup(Machine(parse_mechanism(text)), kinematic(), PayloadSettings()), tmp_path / 'c')
    header = (tmp_path / 'c' / 'patu655_lift.h').read_text()
    assert f'Zeros that drift (lift_piston) are as uncertain as on {day},' in header
    assert f'90 days after {day - timedelta(90)}' in header
    assert run_test(tmp_path / 'c', 'cc', '-O0').returncode == 0
    export_estimator(setup_of(), tmp_path / 'plain')
    assert 'drift' not in (tmp_path / 'plain' / 'patu655_lift.h').read_text()


def test_quantile():
    freedom = np.array([1.0, 1.5, 2.0, 7.3, 100.0, 9e5])
    found = np.exp(np.polynomial.chebyshev.chebval(2.0 / freedom - 1.0, student_coefficients()))
    np.testing.assert_allclose(found, [t_quantile(item) for item in freedom], rtol=1e-14)


@pytest.mark.parametrize('words, text', [
    (['four_bar'], '--estimator: got True, expected a machine: four_bar has no cylinders'),
    (['patu655_lift', '--rate', '50'], '--rate: got 50.0, expected 100 Hz or more'),
    (['patu655_lift', '--dt', '3e-3'], '--dt: got 0.003'), (['patu655_lift', '--order', '2'], 'a mechanism'),
    (['patu655_lift', '--dt', '5e-3'], '--dt: got 0.005, expected at most 0.002 s'),
    (['patu655_lift', '--set', 'observer.weighing=apart', '--set', 'payload.guard_time=0'], 'guard_time'),
    (['patu655_lift', '--set', 'observer.measurements=interpolated'], 'observer.measurements'),
    (['patu655_lift', '--set', 'payload.low_pass=plain'], 'payload.low_pass'),
    (['patu655_lift', '--set', 'interpolation.step=1'], '--set')])
def test_refused(words, text, tmp_path):
    assert text in refused('export-c', *words, '--estimator', '-o', tmp_path / 'c')
    assert not (tmp_path / 'c').exists()


def test_options_of_the_estimator_are_refused_elsewhere(tmp_path):
    for words in (['--single'], ['--rate', '200'], ['--set', 'observer.gate=1']):
        assert 'it is for an estimator' in refused('export-c', 'four_bar', *words, '-o', tmp_path / 'c')


def test_a_load_that_hangs_is_refused(tmp_path):
    machine = changed('patu655_lift', {'payload/hanging': '2 m'})
    with pytest.raises(SettingError, match='patu655_lift.*does not hang'):
        export_estimator(EstimatorSetup(machine, kinematic(), PayloadSettings()), tmp_path / 'c')
