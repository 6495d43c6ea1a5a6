# SPDX-License-Identifier: Apache-2.0
"""``estimate``, ``read_bag``, ``write_bag``: a bag, its arrays and the command line give the same."""

import json
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from cli_support import mbse as command
from cli_support import refused

import mbse_ros as mbse
from mbse_ros.bags.bag import Bag
from mbse_ros.errors import BagError, DescriptionError, MbseError, SampleError, SettingError
from mbse_ros.filters.filters import OF_MACHINES
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.offline.track import NUMBERS, KeptNumber
from mbse_ros.report.files import read_table

SENSORS = ['encoder', 'crank_gyro']


@pytest.fixture(scope='module')
def lift(tmp_path_factory):
    """A simulated lift of 5 s and its bag."""
    run = mbse.simulate('patu655_lift', 5.0, payload=80.0)
    return run, mbse.write_bag(tmp_path_factory.mktemp('lift') / 'bag', run)


@pytest.fixture(scope='module')
def linkage(tmp_path_factory):
    """A simulated four-bar under a torque, and its bag."""
    run = mbse.simulate('four_bar', 1.0, sensors=SENSORS, inputs=lambda t, q, qd: np.array([5.0 * np.sin(9.0 * t)]))
    return run, mbse.write_bag(tmp_path_factory.mktemp('linkage') / 'bag', run)


def check_same(found, theirs, said):
    """Words and JSON of a result against those of the command line, except for the time that they took."""
    ours = json.loads(json.dumps(found.to_json(True), allow_nan=False))
    assert said.status == 0 and {**ours, 'cost': 0} == {**theirs, 'cost': 0}
    assert found.summary()[:-1] == said.out.splitlines()[:-1]


def test_a_machine_as_by_the_command_line(lift, tmp_path):
    run, bag = lift
    found = mbse.estimate(bag, 'patu655_lift')
    said = command('estimate', bag, '--machine', 'patu655_lift', '--full', '--json', tmp_path / 'x')
    theirs = json.loads((tmp_path / 'x').read_text())
    check_same(found, theirs, said)
    assert found.mass[-1] == theirs['payload']['mass'] and list(found.names) == theirs['state']['names']
    np.testing.assert_array_equal(found['velocity/lift'], np.array(theirs['state']['velocity'])[:, 0])
    assert found.status == tuple(theirs['state']['payload_status'])
    assert [load.mass for load in found.loads] == [load['mass'] for load in theirs['payload']['loads']]
    assert found.lower[-1] < 80.0 < found.upper[-1] and found.budget and found.warnings == ()


def test_arrays_give_what_the_bag_gives(lift):
    run, bag = lift
    of_bag, of_samples = mbse.estimate(bag, 'patu655_lift'), mbse.estimate(run.samples, run.machine)
    of_columns = mbse.estimate({name: (run.t, run.samples[name]) for name in run.samples.names}, 'patu655_lift')
    late = mbse.estimate(mbse.Samples(run.t + 7.0, run.samples.names, run.samples.values), 'patu655_lift')
    for found in (of_samples, of_columns, late):
        np.testing.assert_array_equal(found.mean, of_bag.mean)
        np.testing.assert_array_equal(found.mass, of_bag.mass)
    np.testing.assert_allclose(of_samples.t, of_bag.t, atol=1e-9)
    np.testing.assert_allclose(late.t, of_bag.t + 7.0, atol=1e-9)
    assert late.loads[0].start == pytest.approx(of_bag.loads[0].start + 7.0)


def test_the_truth_beside_it(lift):
    run, bag = lift
    found = mbse.estimate(bag, 'patu655_lift')
    np.testing.assert_allclose(found.truth['position/lift'], np.interp(found.t, run.t, run['position/lift']), atol=1e-9)
    assert mbse.estimate(run.samples, 'patu655_lift').truth is None
    error = found['velocity/lift'] - found.truth['velocity/lift']
    assert np.sqrt(np.nanmean(error[100:] ** 2)) < 1e-3        # m/s, of 20 mm/s


def test_the_filter_of_a_machine_has_a_name(lift):
    assert ObserverSettings().estimator == 'hydraulic' and 'hydraulic' in OF_MACHINES
    default, named = (mbse.estimate(lift[1], 'patu655_lift', estimator=name) for name in (None, 'hydraulic'))
    np.testing.assert_array_equal(default['payload/mass'], named['payload/mass'])
    assert named.facts['Tuning'] == 'observer.estimator=hydraulic'
    with pytest.raises(SettingError, match="estimator: got 'UKF', expected a mechanism; else one of hydraulic"):
        mbse.estimate(lift[1], 'patu655_lift', estimator='UKF')


def test_tuning(lift):
    apart = mbse.estimate(lift[1], 'patu655_lift', tuning={'observer.weighing': 'apart'})
    assert apart.names != mbse.estimate(lift[1], 'patu655_lift').names


def test_a_machine_s_bag_in_arrays_and_back(lift, tmp_path):
    run, bag = lift
    samples = mbse.read_bag(bag, 'patu655_lift')
    np.testing.assert_array_equal(samples.values, run.samples.columns(samples.names))
    assert samples.units == {**run.samples.units} and samples.start_ns == run.samples.start_ns
    again = mbse.read_bag(mbse.write_bag(tmp_path / 'again', samples, 'patu655_lift', storage='sqlite3'), run.machine)
    np.testing.assert_array_equal(again.values, samples.values)
    np.testing.assert_array_equal(again.stamps_ns, samples.stamps_ns)


def test_missing_samples_stay_missing(lift, tmp_path):
    values = lift[0].samples.values[:50].copy()
    values[10:20, 1] = np.nan
    samples = mbse.Samples(lift[0].t[:50], lift[0].samples.names, values)
    again = mbse.read_bag(mbse.write_bag(tmp_path / 'bag', samples, 'patu655_lift'), 'patu655_lift')
    np.testing.assert_array_equal(again.columns(samples.names), values)


def test_a_mechanism_as_by_the_command_line(linkage, tmp_path):
    run, bag = linkage
    found = mbse.estimate(bag, 'four_bar', sensors=SENSORS, tuning={'linkage.estimator': 'errorEKF_EJ'})
    said = command('estimate', bag, '--mechanism', 'four_bar', '--estimator', 'errorEKF_EJ', '--sensors',
                   ','.join(SENSORS), '--full', '--json', tmp_path / 'x')
    theirs = json.loads((tmp_path / 'x').read_text())
    check_same(found, theirs, said)
    np.testing.assert_array_equal(found.mean, theirs['state']['mean'])
    assert list(found.names) == theirs['names'] and found.estimator == 'errorEKF_EJ' and found.warnings == ()
    np.testing.assert_allclose(found.true_q, run.q[5::5], atol=1e-12)
    np.testing.assert_array_equal(found.truth['theta'], found.true_q[:, run.names.index('theta')])
    every = mbse.estimate(bag, 'four_bar')      # whose other sensors have no samples
    assert every.channels == found.channels and every.to_json()['channels'] == list(every.channels)
    np.testing.assert_array_equal(every.innovation, mbse.estimate(bag, 'four_bar', sensors=SENSORS).innovation)
    assert mbse.estimate(run.samples, 'four_bar').truth is None
    np.testing.assert_allclose(found.t, run.samples.t, atol=1e-9)


@cache
def sound_log():
    return mbse.simulate('four_bar', 8.0, sensors=['encoder', 'crank_gyro', 'coupler_gyro'], seed=3).samples


@pytest.mark.parametrize('wrong, factor', [('encoder', 180.0 / np.pi), ('encoder', np.pi / 180.0),
                                           ('crank_gyro', 180.0 / np.pi)])
def test_the_sensor_of_a_mechanism_that_the_others_contradict_is_named(wrong, factor):
    """As of a machine, before all else, whichever the filter refused."""
    sound = sound_log()
    scale = np.where(np.array(sound.names) == wrong, factor, 1.0)
    log = replace(sound, values=scale * sound.values)
    found = mbse.estimate(log, mechanism='four_bar')
    if factor < 1.0:        # of the others the smoother has no solution, or none that it finds
        smoothed = mbse.smooth(log, mechanism='four_bar')
        assert smoothed.doubts == found.doubts and f'not trusted: {found.doubts[0]}' in smoothed.summary()
        assert smoothed.to_json()['doubts'] == [*found.doubts]
    assert found.warnings[0] == found.doubts[0] and found.doubts[0].startswith(f'{wrong}: ')
    assert f'multiply by {1.0 / factor:.6g}' in found.doubts[0] and not found.to_json()['trusted']


def test_a_sound_log_of_a_mechanism_has_no_warning():
    assert mbse.estimate(sound_log(), mechanism='four_bar').warnings == ()


@pytest.mark.parametrize('sensor', SENSORS)
def test_a_sensor_alone_in_another_unit_is_not_trusted(sensor):
    """Nothing contradicts it but its noise: the status of each instant stays ok."""
    sound = mbse.simulate('four_bar', 8.0, sensors=[sensor]).samples
    wrong = replace(sound, values=sound.values * np.pi / 180.0)
    for samples, trusted in (sound, True), (wrong, False):
        found = mbse.estimate(samples, mechanism='four_bar')
        said = [line for line in found.warnings if line.startswith(f'{sensor}: the noise')]
        assert found.status[-1] == 'ok' and bool(said) is not trusted
        assert any(line.startswith('ok; NIS') for line in found.summary()) is trusted
        assert [line for line in found.summary() if line.startswith('not trusted: ')] == [
            f'not trusted: {line}' for line in said]
        assert found.to_json().get('trusted', True) is trusted
        own = mbse.Observer('four_bar', 'errorEKF_FE', [sensor]).run(samples)
        assert bool([line for line in own.warnings if line.startswith(f'{sensor}: the noise')]) is not trusted


def test_a_run_that_is_no_log_has_words_too(linkage, tmp_path):
    found = mbse.Observer('four_bar', 'errorEKF_FE', SENSORS).start().run(linkage[0].samples)
    assert found.summary()[:2] == ['200 instants over 0.995 s; at the end',
                                   f'  theta {found["theta"][-1]:.6g} +- {found.stddev[-1, 0]:.2g} rad']
    end = found.to_json()['end']['theta']
    assert end == {'value': found['theta'][-1], 'unit': 'rad', 'stddev': found.stddev[-1, 0]}
    headings, values = read_table(found.report(tmp_path / 'report') / 'table.csv')
    assert headings[:2] == ['t [s]', 'theta [rad]'] and 'theta stddev [rad]' in headings
    np.testing.assert_array_equal(values[:, 1], found['theta'])
    assert (tmp_path / 'report' / 'plot.png').stat().st_size > 10_000


def test_a_number_that_is_kept_is_a_column(lift, monkeypatch, tmp_path):
    """One line of a table: JSON, series, units, tables and the report have it."""
    assert mbse.estimate(lift[1]).states.columns == {}
    monkeypatch.setitem(NUMBERS, 'samples', KeptNumber('1', lambda output: output.payload.samples))
    found = mbse.estimate(lift[1])
    assert found['samples'][-1] == found.last.payload.samples > 0 and found.units['samples'] == '1'
    np.testing.assert_array_equal(found.to_json(True)['state']['samples'], found['samples'])
    (signal,) = (signal for signal in found.run.signals if signal.name == 'samples')
    np.testing.assert_array_equal(signal.estimated.value, found['samples'])


def test_every_option_of_the_command_in_one_call(lift, linkage, tmp_path):
    """The machine that the bag names, another valve, estimates as a bag, the report; a mechanism by its filter."""
    (_, bag), (_, motion) = lift, linkage
    found = mbse.estimate(bag, valve='unknown', tuning=['observer.weighing=apart'], every=0.1, output=tmp_path / 'ours')
    said = command('estimate', bag, '--valve', 'unknown', '--set', 'observer.weighing=apart', '--every', '0.1', '-o',
                   tmp_path / 'theirs', '--report', tmp_path / 'command')
    assert said.out.splitlines()[1].startswith('written in ')
    assert found.machine.name == 'patu655_lift' and found.summary()[:-1] == said.out.splitlines()[2:-1]
    ours, theirs = (dict(Counter(raw.data for raw in Bag(tmp_path / name).messages())) for name in ('ours', 'theirs'))
    assert ours == theirs and len(ours) > 100
    assert found.run.facts['Tuning'] == 'observer.weighing=apart' and found.run.title == 'Estimate from bag'
    page = found.report(tmp_path / 'report')
    assert page.name == 'index.html' and sorted(path.name for path in page.parent.iterdir()) == sorted(
        path.name for path in (tmp_path / 'command').iterdir())
    for log, of, word in ((bag, {}, 'observer.presure_psd'), (motion, {'mechanism': 'four_bar'}, 'linkage.estimatr')):
        with pytest.raises(SettingError, match=f"^tuning: got '{word}'"):      # the command says --set
            mbse.estimate(log, tuning={word: '1'}, **of)
    small = mbse.estimate(bag, full=False)
    assert small.to_json() and small.summary() and '<MachineEstimate patu655_lift: ' in repr(small)
    with pytest.raises(MbseError, match='were not kept'):
        small.report(tmp_path / 'none')
    by_filter = mbse.estimate(motion, mechanism='four_bar', estimator='UKF', sensors=SENSORS, step=0.01)
    assert by_filter.estimator == 'UKF'


@pytest.mark.parametrize('words, said', [
    (('--mechanism', 'four_bar', '--valve', 'unknown'), "--valve: got 'unknown', expected no such option here"),
    (('--mechanism', 'four_bar', '--every', '0.1'), '--every: got 0.1, expected no such option here: it is for a mach'),
    (('--mechanism', 'four_bar', '--machine', 'zx200'), "--machine: got 'zx200', expected a machine or a mechanism"),
    (('--mechanism', 'four_bar', '--preset', 'paper'),
     "--preset: got 'paper', expected settings of a mechanism: this preset is of machines"),
    (('--mechanism', 'four_bar', '--set', 'linkage.options=formulation=kkk'),
     "linkage.options: got 'formulation=kkk', expected formulation: one of matrix_r"),
    (('--step', '0.1'), '--step: got 0.1, expected no such option here: it is for a mechanism'),
    (('--estimator', 'UKF'), "--estimator: got 'UKF', expected a mechanism; else one of hydraulic")])
def test_an_argument_that_is_refused_is_named_as_the_option(lift, words, said):
    assert refused('estimate', lift[1], *words).startswith(said)


def test_a_channel_without_numbers_is_named(lift):
    samples, values = lift[0].samples, lift[0].samples.values.copy()
    values[:, 1] = np.nan
    with pytest.raises(SampleError, match=f'^{samples.names[1]} at .*got nan, expected numbers: all samples are NaN'):
        mbse.estimate(replace(samples, values=values), 'patu655_lift')


def test_kinematic_is_refused_where_a_bag_lacks_the_accelerometers(linkage):
    for sensors in (None, ['encoder']):
        with pytest.raises(SettingError, match='accelerometers.*accelerations of theta: these determine 0 of 1'):
            mbse.estimate(linkage[1], mechanism='four_bar', estimator='kinematic', sensors=sensors)


def test_a_mechanism_s_arrays(linkage):
    """The bag has a message for each sensor, so that its start knows one of them only: they meet after a while."""
    run, bag = linkage
    found, of_bag = mbse.estimate(run.samples, 'four_bar'), mbse.estimate(bag, 'four_bar', sensors=SENSORS)
    np.testing.assert_allclose(found.q[-50:], of_bag.q[-50:], atol=1e-5)
    np.testing.assert_allclose(found.t, of_bag.t, atol=1e-9)
    without = mbse.Samples(run.samples.t, tuple(SENSORS), run.samples.columns(SENSORS))
    force = mbse.estimate(without, 'four_bar')['force/theta']
    applied = run.samples['input/torque']
    known = found['force/theta']
    assert np.corrcoef(force[40:], applied[40:])[0, 1] > 0.5 > np.corrcoef(known[40:], applied[40:])[0, 1]


def test_a_mechanism_s_bag_in_arrays(linkage, tmp_path):
    run, bag = linkage
    samples = mbse.read_bag(bag, 'four_bar', sensors=SENSORS)
    np.testing.assert_allclose(samples.values[1:], run.samples.values[1:], atol=1e-12)
    np.testing.assert_array_equal(samples.values[0, :2], run.samples.values[0, :2])
    np.testing.assert_allclose(np.diff(samples.t), np.diff(run.samples.t), atol=1e-9)
    again = mbse.read_bag(mbse.write_bag(tmp_path / 'again', samples, 'four_bar'), 'four_bar', sensors=SENSORS)
    np.testing.assert_allclose(again.values, samples.values, atol=1e-12)


@pytest.mark.usefixtures('vm')
def test_angles_of_all_kinds_of_sensors_come_back(tmp_path):
    """Imu, JointState and Float64 messages; several components."""
    for name in ('excavator_arm', 'spatial_four_bar', 'five_bar'):
        run = mbse.simulate(name, 0.1)
        back = mbse.read_bag(mbse.write_bag(tmp_path / name, run), name)
        np.testing.assert_allclose(back.columns(run.samples.names), run.samples.values, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize('make, kind, said', [
    (lambda r: mbse.estimate('/nowhere/bag', 'patu655_lift'), BagError, 'does not exist'),
    (lambda r: mbse.estimate(r.samples, 'patu'), DescriptionError, 'patu655'),
    (lambda r: mbse.estimate(3, 'patu655_lift'), SettingError, 'path of a bag, Samples'),
    (lambda r: mbse.estimate({'position/lift': (r.t, r['position/lift'])}, 'patu655_lift'), SettingError,
     r"^samples: got \['position/lift'\], .*; missing: pressure/lift_piston, "),
    (lambda r: mbse.estimate({'position/lifft': (r.t, r['position/lift'])}, 'patu655_lift'), SettingError,
     r"^samples: got \['position/lifft'\], expected the channels position/lift, .*; did you mean position/lift"),
    (lambda r: mbse.estimate(mbse.Samples(r.t[:1], r.samples.names, r.samples.values[:1]), 'patu655_lift'), SampleError,
     'only one sample of position/lift'),
    (lambda r: mbse.estimate(r.samples, 'patu655_lift', sensors=['lift']), SettingError, 'it is for a mechanism'),
    (lambda r: mbse.estimate(r.samples, 'patu655_lift', tuning={'observer.speed': 1}), SettingError, 'pressure_psd'),
    (lambda r: mbse.estimate(r.samples, 'four_bar'), SettingError, 'channels of encoder'),
    (lambda r: mbse.estimate({'encoder': ([0.0], [np.nan])}, 'four_bar'), SampleError, 'samples of encoder'),
    (lambda r: mbse.write_bag('/nowhere/bag', r.samples), SettingError, 'machine'),
    (lambda r: mbse.write_bag('/nowhere/bag', r.samples, 'four_bar'), SettingError, 'sensors and inputs of four_bar'),
    (lambda r: mbse.write_bag('/nowhere/bag', {'position/boom': ([0.0], [0.1])}, 'patu655_lift'), SettingError,
     'channels of patu655_lift: position/lift'),
    (lambda r: mbse.write_bag('/nowhere/bag', mbse.simulate('four_bar', 0.1, sensors=[])), SettingError, 'with sensors')
])
def test_what_is_refused(lift, make, kind, said):
    with pytest.raises(kind, match=said):
        make(lift[0])


def test_nothing_is_overwritten(lift):
    with pytest.raises(BagError, match='not overwritten'):
        mbse.write_bag(lift[1], lift[0])
