# SPDX-License-Identifier: Apache-2.0
"""`mbse estimate`: the fixed JSON, the bag of estimates, the report, the tuning; the same result every time."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from cli_support import COMMAND, mbse, recorded, refused
from source_tree import ROOT

from mbse_ros.bags.series import read_payload, read_states, records
from mbse_ros.compiled import compiler as remarks
from mbse_ros.machine import load_machine
from mbse_ros.offline.bag import estimate_bag, parse_tuning
from mbse_ros.offline.estimate_report import ONE_LIFT, one_way, report_run
from mbse_ros.offline.log_loads import WeighedLoad
from mbse_ros.scale.load import CARRIED, PUT_BACK, Load, UncertainMass
from mbse_ros.scale.record import load_record
from mbse_ros.streams.records import Segment

PAYLOAD = {'mass', 'stddev', 'interval', 'status', 'faults', 'samples', 'seconds', 'budget', 'loads', 'centre',
           'centre_stddev'}
PER_CYLINDER, PER_VOLUME = ('position', 'velocity', 'acceleration'), ('pressure',)


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp('estimate') / 'lift', until=6.5, truth=True)


@pytest.fixture(scope='module')
def full(bag):
    """Output and JSON of one run with everything but a report."""
    done = mbse('estimate', bag, '--json', bag.parent / 'new' / 'full.json', '--full', '-o', bag.parent / 'out')
    assert (done.status, done.err) == (0, '')
    return done.out, json.loads((bag.parent / 'new' / 'full.json').read_text())


def test_the_fixed_form(full):
    result = full[1]
    assert result['warnings'] == []
    assert set(result) == {'payload', 'state', 'cost', 'warnings'} and set(result['payload']) == PAYLOAD
    assert set(result['cost']) == {'seconds', 'real_time_share'}
    mass, stddev, (low, high) = (result['payload'][name] for name in ('mass', 'stddev', 'interval'))
    assert low < 50.0 < high and low < mass < high and abs(mass - 50.0) < 1.0 and 0.0 < stddev < high - low
    assert result['payload']['status'] == 'updating' and result['payload']['samples'] > 1000
    assert result['cost']['real_time_share'] == pytest.approx(result['cost']['seconds'] / 6.5)


def test_the_state_over_time(full):
    """Rows at the stamps, one number per cylinder or volume, SI, with standard deviations."""
    state = full[1]['state']
    stamps = state['stamp_ns']
    assert len(stamps) == 650 and all(isinstance(stamp, int) for stamp in stamps)
    assert set(np.diff(stamps)) == {10_000_000}
    widths = dict.fromkeys(PER_CYLINDER, 1) | dict.fromkeys(PER_VOLUME, 2) | {'spool': 1}
    for kind, width in widths.items():
        assert np.shape(state[kind]) == np.shape(state[f'{kind}_stddev']) == (650, width)
    assert 0.15 < min(state['position'])[0] < max(state['position'])[0] < 0.25 and np.ptp(state['pressure']) > 1e6
    assert sorted(state['names']) == sorted(['position/lift', 'velocity/lift', 'acceleration/lift',
                                             'pressure/lift_piston', 'pressure/lift_rod', 'spool/lift_valve',
                                             'payload/mass'])
    assert state['payload_mass'][0] is None and state['payload_mass'][-1] == full[1]['payload']['mass']
    assert state['payload_status'][0] == 'no_data' and state['payload_status'][-1] == 'updating'


def test_the_bag_of_estimates_holds_the_same(full, bag):
    states, payload, state = read_states(bag.parent / 'out'), read_payload(bag.parent / 'out'), full[1]['state']
    assert states.stamp_ns.tolist() == payload.stamp_ns.tolist() == state['stamp_ns']
    assert sum(1 for _ in records(bag.parent / 'out', Segment)) == 650
    column = states.names.index('velocity/lift')
    assert states.mean[:, column].tolist() == [row[0] for row in state['velocity']]
    assert states.stddev[:, column].tolist() == [row[0] for row in state['velocity_stddev']]
    known = np.isfinite(payload.mass)
    assert payload.mass[known].tolist() == [mass for mass in state['payload_mass'] if mass is not None]
    assert 'out' in refused('estimate', bag, '-o', bag.parent / 'out')


def test_what_is_printed(full):
    lines = full[0].splitlines()
    payload = full[1]['payload']
    assert lines[0] == (f'payload {payload["mass"]:.2f} kg, 95 % interval {payload["interval"][0]:.2f} to '
                        f'{payload["interval"][1]:.2f} kg, from {payload["samples"]} samples of the mass')
    causes = ', '.join(f'{cause["cause"]}{" (assumed)" * cause["assumed"]} {cause["kg"]:.2g} kg'
                       for cause in payload['budget'][:3])
    assert lines[1] == f'largest causes of the interval, 1 sigma: {causes}' and '(assumed)' in causes
    (load,) = payload['loads']
    lower, upper = load['interval']
    assert lines[2].startswith(f'load 1: {load["start_s"]:.1f} to {load["end_s"]:.1f} s, {load["mass"]:.1f} '
                               f'({lower:.1f} to {upper:.1f}) kg, its drop was not seen, 2023-11-14 22:13:2')
    assert lines[3].startswith('(payload: what hangs there at the end of the log; load: what was delivered, ')
    assert lines[4].startswith('6.5 s of data in ') and len(lines) == 5


@pytest.mark.parametrize('status, trusted, text', [
    ('weighed', True, ''), (PUT_BACK, True, ', put back'),
    (CARRIED, False, ', its drop was not seen, not trusted')])
def test_a_load_in_words(status, trusted, text):
    load = Load(0, 2_500_000_000, UncertainMass(50.0, 5.0 / 1.959964), trusted=trusted, status=status)
    assert WeighedLoad(load_record(load, 'truck 1'), 'bag', 0.0, 2.5).text == (
        f'0.0 to 2.5 s, 50.0 (45.0 to 55.0) kg{text}')


def test_the_same_in_another_process(full, bag, tmp_path):
    """Bit for bit, through `python -m mbse_ros.cli` and without --full."""
    words = [sys.executable, '-m', 'mbse_ros.cli', 'estimate', str(bag), '--json', 'x.json']
    done = subprocess.run(words, cwd=tmp_path, env={**os.environ, 'PYTHONPATH': str(ROOT)}, capture_output=True,
                          text=True)
    assert (done.returncode, done.stderr) == (0, '')
    result = json.loads((tmp_path / 'x.json').read_text())
    assert set(result) == {'payload', 'cost', 'warnings'} and result['payload'] == full[1]['payload']


@pytest.mark.usefixtures('few_frames')
def test_report(bag, tmp_path):
    """One page and its pictures; what was chosen stands in it."""
    done = mbse('estimate', bag, '--report', tmp_path / 'a' / 'b', '--set', 'observer.pressure_psd=0.4')
    assert done.status == 0 and done.out.startswith(f'report: {tmp_path}/a/b/index.html\n')
    names = {path.name for path in (tmp_path / 'a' / 'b').iterdir()}
    assert {'index.html', 'payload.png', 'position.png', 'velocity.png', 'pressures.png', 'errors.png',
            'innovations.png', 'nis.png', 'crane.png', 'crane.gif'} <= names
    page = (tmp_path / 'a' / 'b' / 'index.html').read_text()
    assert 'Estimate from lift' in page and 'observer.pressure_psd=0.4' in page and str(bag) in page


@pytest.mark.usefixtures('few_frames')
def test_slow_functions_are_a_warning(tmp_path, monkeypatch):
    """Once, with the reason, in the report too; the virtual machine that was asked for is none."""
    bag = recorded(tmp_path / 'bag', until=2.5)
    monkeypatch.setattr(remarks, '_REMARKS', {})
    monkeypatch.setattr('mbse_ros.compiled.compiler.have_compiler', lambda: False)
    monkeypatch.setenv('MBSE_BACKEND', 'vm')
    assert mbse('estimate', bag).err == ''
    monkeypatch.delenv('MBSE_BACKEND')
    (line,) = mbse('estimate', bag, '--report', tmp_path).warnings
    assert 'virtual machine' in line and line.endswith('slower than compiled C: no C compiler was found')
    assert 'no C compiler was found' in (tmp_path / 'index.html').read_text()


def test_what_the_report_is_made_of(bag):
    run = report_run(estimate_bag(bag, load_machine('patu655_lift'), parse_tuning([])), 'x', {'Given': 'yes'})
    assert run.facts['Valve model'] == 'orifice' and run.facts['Length of the log'] == '6.5 s in 650 segments'
    assert run.facts['Given'] == 'yes' and len(run.notes) == 1 and '95 % interval' in run.notes[0]
    signals = {signal.name: signal for signal in run.signals}
    assert set(signals) == {'position lift', 'velocity lift', 'acceleration lift', 'pressure lift_piston',
                            'pressure lift_rod', 'spool lift_valve', 'payload mass'}
    assert [signals[name].unit for name in ('position lift', 'velocity lift', 'pressure lift_rod')] == [
        'mm', 'mm/s', 'MPa']
    position = signals['position lift']
    assert np.abs(position.estimated.value - position.true.value)[100:].max() < 4e-4
    assert signals['velocity lift'].measured is None and signals['spool lift_valve'].true is None
    assert [(i.channel, i.unit, i.scale) for i in run.innovations] == [
        ('position/lift', 'mm', 1e3), ('pressure/lift_piston', 'kPa', 1e-3), ('pressure/lift_rod', 'kPa', 1e-3)]
    assert np.allclose((run.nis.lower[200], run.nis.upper[200]), (0.2158, 9.3484), atol=1e-4)    # chi2, 3 degrees
    loads, causes, table = run.tables
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows['pressure/lift_rod'][0].endswith(' kPa') and float(rows['position/lift'][0].split()[0]) < 0.1


def test_one_lift_cannot_separate_friction_from_load(tmp_path):
    """Said on the page and in the terminal, where the states over time are not kept; not of a log that goes both ways,
    nor of one without a mass."""
    bag, machine = recorded(tmp_path / 'bag', until=4.0), load_machine('patu655_lift')
    estimate = estimate_bag(bag, machine, parse_tuning([]))
    assert report_run(estimate, 'x').notes[0] == ONE_LIFT and ONE_LIFT in mbse('estimate', bag).out.splitlines()
    signs = estimate.track.signs
    assert one_way(estimate) and signs.sum(axis=0).max() > 0
    both = replace(estimate, track=replace(estimate.track, signs=np.maximum(signs, 0.06 * signs.max())))
    none = replace(estimate, track=replace(estimate.track, signs=0 * signs))
    for other in both, none:
        assert ONE_LIFT not in [*other.summary(), *report_run(other, 'x').notes]


def test_unknown_valve_needs_no_command(tmp_path):
    bag = recorded(tmp_path / 'bag', lambda topic, t, message: None if topic == COMMAND else message)
    done = mbse('estimate', bag, '--valve', 'unknown', '--json', tmp_path / 'x.json', '--full')
    result = json.loads((tmp_path / 'x.json').read_text())
    assert done.status == 0 and abs(result['payload']['mass'] - 50.0) < 2.0
    assert np.shape(result['state']['flow']) == (560, 2) and 'spool' not in result['state']


def test_tuning_has_an_effect(full, bag, tmp_path):
    """Every room's settings reach their stage."""
    words = 'interpolation.step=0.002', 'observer.acceleration_psd=100', 'payload.min_speed=0.1'
    for number, word in enumerate(words):
        assert mbse('estimate', bag, '--set', word, '--json', tmp_path / f'{number}.json').status == 0
        changed = json.loads((tmp_path / f'{number}.json').read_text())['payload']
        assert changed['mass'] != full[1]['payload']['mass'], word
    assert changed['mass'] is None      # never so fast


@pytest.mark.parametrize('word, text', [
    ('observer', "--set: got 'observer', expected <interpolation|observer|payload|scale>.<name>=<value>"),
    ('crane.mass=3', "--set: got 'crane.mass=3', expected <"),
    ('observer.presure_psd=3', "--set: got 'observer.presure_psd', expected a setting of observer: pressure_psd"),
    ('payload.nonsense=1', "--set: got 'payload.nonsense', expected a setting of payload: "),
    ('observer.pressure_psd=much', "observer.pressure_psd: got 'much', expected a number"),
    ('observer.pressure_psd=-1', 'observer.pressure_psd: got -1.0, expected from 0.0 to 10000.0 MPa^2/s'),
    ('observer.pressure_psd=nan', 'observer.pressure_psd: got nan, expected from'),
    ('payload.window=4.5', "payload.window: got '4.5', expected a whole number"),
    ('observer.transition=9', "observer.transition: got '9', expected one of 0, 1, 2, 3, 4, exact"),
])
def test_wrong_tuning(word, text, tmp_path):
    assert refused('estimate', tmp_path, '--set', word).startswith(text)


def test_other_wrong_words(bag):
    assert 'expected one of orifice, compensated, unknown' in refused('estimate', bag, '--valve', 'servo')
    assert refused('estimate', bag, '--backend', 'gpu') == (
        "--backend: got 'gpu', expected one of auto, vm, c")
    assert 'none of the topics /other/sensors/position' in refused('estimate', bag, '--namespace', 'other')


def test_outputs_are_checked_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr('mbse_ros.offline.bag.estimate_bag', lambda *_: pytest.fail('worked before looking'))
    (tmp_path / 'file').write_text('x')
    assert refused('estimate', tmp_path, '-o', tmp_path).endswith('exists already and is not overwritten')
    assert refused('estimate', tmp_path, '--json', tmp_path) == (
        f"--json: got '{tmp_path}', expected a file, not a folder")
    assert refused('estimate', tmp_path, '--report', tmp_path / 'file') == (
        f"--report: got '{tmp_path}/file', expected a folder, not a file")


@pytest.mark.parametrize('words', [
    ('estimate', '--report'), ('smooth', '-o'), ('smooth', '--json'), ('loads', '--report'), ('view', '-o'),
    ('check-data', '--json'), ('calibrate', 'patu655_lift', '-o'), ('graph', '-o'), ('doctor', '--json')])
def test_a_place_in_which_nothing_can_be_made_is_refused_before_the_work(words, tmp_path):
    """The rights say that the superuser may write there; the bag, which is not there, is not looked at."""
    command, *names, option = words
    bag = [] if command == 'doctor' else ['four_bar'] if command == 'graph' else [tmp_path / 'no bag']
    suffix = {'view': '.rrd', 'calibrate': '.yaml', 'graph': '.svg'}.get(command, '')
    assert '/proc' in refused(command, *names, *bag, option, f'/proc/none/x{suffix}')


def test_a_file_that_cannot_be_written(bag, tmp_path):
    (tmp_path / 'file').write_text('x')
    assert str(tmp_path / 'file') in refused('estimate', bag, '--json', tmp_path / 'file' / 'x.json')
