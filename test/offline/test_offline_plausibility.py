# SPDX-License-Identifier: Apache-2.0
"""What samples say of units, signs, chambers and zeros; and nothing of good data."""

from collections import Counter
from math import degrees

import numpy as np
import pytest
from machine_variants import REMOVED
from machine_variants import changed as changed_machine
from measured_lift import measured_samples
from plausibility_logs import HIGH, MACHINES, changed, log_of, machine_of, named, verdict, wrong_log

from mbse_ros.offline.checks.command_rules import _unsent
from mbse_ros.offline.checks.force_fit import EVERY, ForceFit
from mbse_ros.offline.checks.value_rules import outside_range
from mbse_ros.offline.log_samples import STEP, LogSamples, Means, means_of, series_of
from mbse_ros.simulation.sensor_faults import pair_of

LIFT = 'patu655_lift'
PISTON, ROD = 'pressure/lift_piston', 'pressure/lift_rod'


@pytest.mark.parametrize('name', MACHINES)
@pytest.mark.parametrize('load', [0.0, 1.0])
def test_good_data(name, load):
    for valve in (None, 'unknown'):
        found = verdict(log_of(name, load * HIGH[name]), machine_of(name, valve))
        assert found.findings == () and found.unchecked == ()


@pytest.mark.parametrize('name, valve, sensor', [
    (LIFT, None, PISTON), (LIFT, 'unknown', ROD), ('patu655', None, 'pressure/tilt_rod'),
    ('zx200', 'unknown', 'pressure/boom_rod'), ('zx200_can', None, 'pressure/bucket_piston')])
def test_pressures(name, valve, sensor):
    machine = machine_of(name, valve)
    both = list(pair_of(machine, sensor))
    for fault, unit in (('in_bar', 'bar'), ('in_kPa', 'kPa')):
        found = verdict(wrong_log(name, fault, sensor), machine)
        assert named(found) == {'unit': [sensor]} and found.findings[0].remedy.endswith(f'look like {unit}')
        found = verdict(wrong_log(name, f'both_{fault}', both[0]), machine)
        assert named(found) == {'unit': both}
        assert all(finding.remedy.endswith(f'look like {unit}') for finding in found.findings)
    assert named(verdict(wrong_log(name, 'negated', sensor), machine)) == {'negated': [sensor]}
    assert named(verdict(wrong_log(name, 'swapped', both[0]), machine)) == {'swapped': both}


@pytest.mark.parametrize('name, sensor, unit', [
    (LIFT, 'position/lift', 'mm'), ('patu655', 'position/tilt', 'mm'), ('zx200', 'position/arm', 'mm'),
    ('zx200', 'position/swing_joint', 'degrees'), ('zx200_can', 'position/boom_joint', 'degrees'),
    ('zx200_can', 'position/bucket_joint', 'degrees')])
def test_positions(name, sensor, unit):
    machine = machine_of(name)
    found = verdict(wrong_log(name, 'wrong_unit', sensor), machine)
    assert named(found) == {'unit': [sensor]} and found.findings[0].remedy.endswith(f'look like {unit}')
    if sensor != 'position/swing_joint':        # gravity does not tell one side from the other
        assert named(verdict(wrong_log(name, 'reversed', sensor), machine)) == {'reversed': [sensor]}


def test_several_at_once():
    """All pressures of an excavator in psi; chambers of two cylinders swapped, in bar; degrees and bar."""
    machine = machine_of('zx200_can')
    pressures = [name for name in machine.channels if name.startswith('pressure/')]
    found = verdict(changed(log_of('zx200_can'), lambda c, v: (c, v / 6894.757 if c in pressures else v)), machine)
    assert named(found) == {'unit': pressures} and 'psi' in found.findings[0].remedy
    pairs = [('pressure/boom_piston', 'pressure/boom_rod'), ('pressure/arm_piston', 'pressure/arm_rod')]
    other = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
    found = verdict(changed(log_of('zx200_can'), lambda c, v: (other.get(c, c), v / 1e5 if c in pressures else v)),
                    machine)
    assert named(found) == {'unit': pressures, 'swapped': [*pairs[0], *pairs[1]]}
    found = verdict(changed(log_of('zx200_can'), lambda c, v: (
        c, v / 1e5 if c in pressures else degrees(v) if c.startswith('position/') else v)), machine)
    assert sorted(named(found)['unit']) == sorted(machine.channels)


def test_the_length_from_pin_to_pin_its_offset_with_the_wrong_sign_and_a_command_the_wrong_way():
    machine = machine_of(LIFT)
    found = verdict(changed(log_of(LIFT), lambda c, v: (c, (v + 0.82) * 1e3 if c == 'position/lift' else v)), machine)
    assert named(found) == {'unit': ['position/lift']}
    assert 'multiply by 0.001 and subtract the closed length of 0.82 m' in found.findings[0].remedy
    found = verdict(changed(log_of(LIFT), lambda c, v: (c, v + 1.64 if c == 'position/lift' else v)), machine)
    assert named(found) == {'offset': ['position/lift']}        # not cm, in which the values are in range, too
    assert found.findings[0].remedy.startswith('subtract 1.64 m, twice the closed length of 0.82 m')
    found = verdict(changed(log_of(LIFT), lambda c, v: (c, -v if c == 'command/lift_valve' else v)), machine)
    assert named(found) == {'reversed': ['command/lift_valve']}


def test_a_range_of_no_unit_is_another_machine():
    log = changed(log_of(LIFT), lambda c, v: (c, v + 3000.0 if c == 'position/lift' else v))
    found = verdict(log, machine_of(LIFT))
    assert named(found) == {'range': ['position/lift']} and 'another machine' in found.findings[0].remedy
    assert 'do not reach' in found.unchecked[0]
    heavy = changed(log_of(LIFT), lambda c, v: (c, 12 * v if c.startswith('pressure/') else v))
    found = verdict(heavy, machine_of(LIFT))
    assert named(found) == {'mass': [PISTON, ROD]}


def gauge_log(rest: float) -> list[tuple[str, int, float]]:
    """The lift with a rod side whose pressure is ``rest``, Pa, more than 0 at its lowest."""
    log = log_of(LIFT, 100.0)
    lowest = np.percentile([value for channel, _, value in log if channel == ROD], 30)
    noise = np.random.default_rng(1).normal(size=len(log)) * 8e3
    return [(c, t, max(v - lowest, 0.0) + rest + noise[i] if c == ROD else v) for i, (c, t, v) in enumerate(log)]


def test_gauge():
    """Told where a chamber rests at the pressure of the tank, or below vacuum."""
    machine = machine_of(LIFT)
    for rest in (0.0, -30e3):
        found = verdict(gauge_log(rest), machine)
        assert 'gauge' in named(found) and named(found)['gauge'] == [ROD]
        assert 'add 101325 Pa' in found.findings[0].remedy
    assert 'gauge' not in named(verdict(gauge_log(101325.0), machine))


def test_stuck_saturated_coarse():
    machine = machine_of('patu655')
    for sensor in ('pressure/tilt_piston', 'position/lift'):
        found = verdict(wrong_log('patu655', 'stuck', sensor), machine)
        assert 'stuck' in named(found) and named(found)['stuck'] == [sensor]
    found = verdict(wrong_log('patu655', 'zero', 'pressure/lift_rod'), machine)
    assert named(found)['stuck'] == ['pressure/lift_rod'] and 'gauge' not in named(found)
    top = np.percentile([v for c, _, v in log_of('patu655') if c == 'pressure/lift_piston'], 60)
    found = verdict(changed(log_of('patu655'), lambda c, v: (c, min(v, top) if c == 'pressure/lift_piston' else v)),
                    machine)
    assert named(found)['saturated'] == ['pressure/lift_piston']
    found = verdict(changed(log_of('patu655'), lambda c, v: (c, 5e-3 * round(v / 5e-3) if c == 'position/tilt' else v)),
                    machine)
    assert 'resolution: 5 mm)' in found.findings[0].remedy and named(found)['coarse'] == ['position/tilt']
    assert verdict(wrong_log('patu655', 'quantised', 'position/tilt', 0.0), machine).findings == ()


def test_a_swing_that_goes_on_between_the_windows_is_no_swing_in_degrees():
    """A long log is looked at here and there, a turn may be counted from 0 again, and a sample may be missing."""
    machine, name = machine_of('zx200'), 'position/swing_joint'
    t = np.concatenate([start + 0.05 * np.arange(60) for start in (0.0, 9.0, 30.0, 90.0)])
    swing = np.where(t < 50.0, 0.3 * t, 0.3 * t - 2 * np.pi * (t > 91.0))
    missing = np.where(np.arange(len(t)) % 3 == 0, np.nan, swing)
    for values in (swing, missing):
        assert outside_range(machine, name, values, t) == ''
        assert outside_range(machine, name, np.degrees(values), t).endswith('speeds up to 17.2 rad/s')


@pytest.mark.parametrize('name', ['patu655_lift', 'patu655', 'zx200'])
def test_a_stroke_in_metres_that_was_taken_for_millimetres_is_named(name):
    """It lies in its range, and looks like a piston that rests at its end; one that does has all of its noise. Each
    cylinder of the cranes, and the last one of the excavator."""
    machine, rng = machine_of(name), np.random.default_rng(1)
    for cylinder in machine.cylinders[-1:] if name == 'zx200' else machine.cylinders:
        wrong = f'position/{cylinder}'
        found = verdict(changed(log_of(name), lambda c, v: (c, 1e-3 * v if c == wrong else v)), machine)
        assert named(found).get('unit') == [wrong] and 'multiply by 1000' in found.findings[0].remedy, (wrong, found)
        noise = next(channel.sensor.noise for channel in machine.all_channels if channel.name == wrong)
        for share in (1.0, 0.02):
            rests = verdict(changed(log_of(name), lambda c, v: (
                c, share * noise * rng.normal() if c == wrong else v)), machine)
            assert 'unit' not in named(rests), (wrong, rests)


@pytest.mark.parametrize('low', [-np.pi, 0.0])
def test_a_swing_that_does_not_count_its_turns_is_named_as_such(low):
    """Wherever its zero is, also where the machine rests there."""
    machine, name = machine_of('zx200'), 'position/swing_joint'
    first = next(value for channel, _, value in log_of('zx200') if channel == name)
    log = changed(log_of('zx200'), lambda c, v: (c, (v - first) % (2 * np.pi) + low if c == name else v))
    finding, = verdict(log, machine).findings
    assert (finding.kind, finding.channels) == ('step', (name,)) and 'wraps: true' in finding.remedy
    assert 'whole turn' in finding.seen


@pytest.mark.parametrize('fault', ['spikes', 'dropouts', 'nan', 'late', 'drift', 'gain_1.02', 'bias_200_kPa'])
def test_what_is_no_matter_of_the_file_gives_no_advice(fault):
    """Nobody is told to swap or to multiply where a sensor drifts or is late."""
    for name, sensor in ((LIFT, PISTON), ('zx200_can', 'pressure/arm_rod')):
        found = verdict(wrong_log(name, fault, sensor), machine_of(name))
        assert named(found) == ({'spikes': [sensor]} if fault == 'spikes' else {})


def only(name: str, sensor: str, change) -> dict[str, list[str]]:
    """What is named where the samples of one channel of a log are changed, by their number and value."""
    places = Counter[str]()

    def changing(channel: str, value: float) -> tuple[str, float]:
        places[channel] += 1
        return channel, change(places[channel], value) if channel == sensor else value
    return named(verdict(changed(log_of(name), changing), machine_of(name)))


@pytest.mark.parametrize('name, sensor', [(LIFT, PISTON), ('zx200', 'pressure/arm_rod'), ('zx200', 'position/boom')])
def test_noise_spikes_and_numbers_that_nothing_measures(name, sensor):
    dice, size = np.random.default_rng(1), 1e6 if sensor.startswith('pressure') else 0.02
    assert only(name, sensor, lambda k, v: v + size * dice.normal()) == {'noise': [sensor]}
    assert only(name, sensor, lambda k, v: v + 5.0 * size * (k % 90 == 7)) == {'spikes': [sensor]}
    for huge in (1e308, -1e300):
        assert only(name, sensor, lambda k, v, huge=huge: huge if k % 90 == 7 else v) == {'huge': [sensor]}
        assert only(name, sensor, lambda k, v, huge=huge: huge) == {'huge': [sensor]}


@pytest.mark.parametrize('name, command, since', [
    (LIFT, 'command/lift_valve', 250), ('zx200', 'command/arm_valve', 60)])
def test_commands_that_no_valve_has_got(name, command, since):
    """Of none the piston goes the other way."""
    assert only(name, command, lambda k, v: 0.0) == {'command': [command]}
    assert only(name, command, lambda k, v: v if k < since else 0.0) == {'command': [command]}
    assert only(name, command, lambda k, v: 10.0 * v) == {'range': [command]}
    assert only(name, command, lambda k, v: 1e300) == {'huge': [command]}


@pytest.mark.parametrize('way, share', [(0.036, 0.0), (0.044, 1.0)])
def test_a_load_that_swings_on_a_closed_valve_is_no_command(way, share):
    """It goes back and forth within 4 % of the stroke; farther from where the valve was closed a piston is driven."""
    t = np.arange(0.0, 20.0, STEP)
    piston = np.where(np.arange(t.size) % EVERY == 0, 0.1 + 0.5 * way * np.sin(np.pi * (t - 0.95)), np.nan)
    means = Means(t, np.zeros(t.size, int), {'command/lift_valve': np.zeros(t.size)})
    unsent, moved = _unsent(machine_of(LIFT), 'command/lift_valve', means, piston, 1.0)
    assert moved > 50 and unsent >= 0.8 * share * moved and (unsent == 0) == (share == 0.0)


@pytest.mark.parametrize('every, kinds, notes', [(8, ['rate'], 0), (4, [], 1), (1, [], 0)])
def test_samples_that_are_too_rare_for_the_motion(every, kinds, notes):
    """12.5 Hz is a finding, 25 Hz worth a word: masses count less; 100 Hz neither."""
    count = Counter[str]()
    log = [sample for sample in log_of('zx200') if not (count.update([sample[0]]) or (count[sample[0]] - 1) % every)]
    found = verdict(log, machine_of('zx200'))
    assert list(named(found)) == kinds and len(found.notes) == notes
    assert all('too rare for this motion' in line and ' Hz and needs about ' in line
               for line in (*found.notes, *(finding.line for finding in found.findings)))


def test_strokes_of_two_cylinders_exchanged():
    """The forces balance with the positions exchanged."""
    other = {'position/boom': 'position/arm', 'position/arm': 'position/boom'}
    found = verdict(changed(log_of('zx200'), lambda c, v: (other.get(c, c), v)), machine_of('zx200'))
    assert named(found) == {'swapped': ['position/boom', 'position/arm']}


def test_a_sensor_that_is_silent_while_others_send():
    """Three pauses, or a long one; not one for the time that is interpolated, nor one of all."""
    def cut(*pauses: tuple[float, float], wrong: str = PISTON) -> dict[str, list[str]]:
        log = [(c, t, v) for c, t, v in log_of(LIFT) if wrong not in ('', c)
               or not any(a < t * 1e-9 < b for a, b in pauses)]
        return named(verdict(log, machine_of(LIFT)))
    assert cut((1.0, 1.5), (2.0, 2.5), (3.0, 3.5)) == cut((1.0, 2.3)) == cut((4.0, 9.0)) == {'gap': [PISTON]}
    assert cut((1.0, 1.4), (2.0, 2.4)) == cut((1.0, 2.5), (3.0, 3.8), (4.0, 4.5), wrong='') == {}


def test_stamps_that_leap_while_the_machine_moves_on():
    """A recorder whose clock is set sees no pause; one that rests before and afterwards has paused."""
    machine, hour = machine_of('zx200'), 3_600_000_000_000
    for at, kinds in ((1.2, {'jump'}), (0.2, set())):
        log = [(c, t + hour * (t > at * 1e9), v) for c, t, v in log_of('zx200')]
        assert set(named(verdict(log, machine))) == kinds


def test_rates_are_judged_by_the_rule_of_the_observer():
    """Below 20 Hz that is a finding, from there on a note."""
    log = [(c, t, v) for c, t, v in log_of('zx200') if t % 100_000_000 == 0]
    found = verdict(log, machine_of('zx200'))
    assert set(named(found)) == {'rate'} and 'comes at 10 Hz and needs about ' in found.findings[0].seen
    found = verdict([(c, t, v) for c, t, v in log_of('zx200') if t % 50_000_000 == 0], machine_of('zx200'))
    assert found.findings == () and 'comes at 20 Hz and needs about ' in found.notes[0]


def test_the_measured_lift(shared_data):
    samples, machine = measured_samples(shared_data), machine_of('patu655_measured')
    assert verdict(samples, machine).findings == ()
    other = {PISTON: ROD, ROD: PISTON}
    assert named(verdict(changed(samples, lambda c, v: (other.get(c, c), v)), machine)) == {'swapped': [PISTON, ROD]}
    found = verdict(changed(samples, lambda c, v: (c, v / 1e5 if c in other else v)), machine)
    assert named(found) == {'unit': [PISTON, ROD]} and found.findings[0].remedy.endswith('look like bar')


def test_the_fit_finds_the_load():
    machine = machine_of('patu655')
    fit = ForceFit(machine).fit(means_of(series_of(LogSamples.of(log_of('patu655', 400.0)))))
    assert np.median(fit.mass) == pytest.approx(400.0, abs=12.0) and fit.worst < 1.1


def test_little_or_odd_data():
    machine = machine_of(LIFT)
    assert verdict([], machine).findings == () and 'needs samples' in verdict([], machine).unchecked[0]
    some = log_of(LIFT)[:40]
    assert verdict(some, machine).findings == () and 'too few' in verdict(some, machine).unchecked[0]
    late = [*log_of(LIFT), (ROD, 2 ** 62, 1e6), ('position/lift', 0, float('nan')), (PISTON, 5, float('inf'))]
    assert verdict(late, machine).findings == () and verdict(late, machine).unchecked == ()
    assert means_of(series_of(LogSamples.of(late))).t[-1] < 10.0
    half = [sample for sample in log_of(LIFT) if sample[0] != ROD]
    assert verdict(half, machine).findings == () and 'needs samples' in verdict(half, machine).unchecked[0]


@pytest.mark.parametrize('missing', ['position/arm', 'position/bucket'])
def test_positions_of_which_one_is_missing_are_not_said_to_be_swapped(missing):
    """Of an excavator with the boom's pressures alone."""
    machine = changed_machine('zx200', {f'sensors/{cylinder}_{side}': REMOVED
                                        for cylinder in ('arm', 'bucket') for side in ('piston', 'rod')})
    found = verdict([sample for sample in log_of('zx200') if sample[0] != missing], machine)
    assert not {'swapped', 'command'} & named(found).keys()
    assert 'samples of all positions and pressures' in found.unchecked[0]
