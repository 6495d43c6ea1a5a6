# SPDX-License-Identifier: Apache-2.0
"""When a mass counts again after one that cannot be, or after alarms of any kind that come too often."""

import re
from dataclasses import replace
from functools import cache

import pytest
from core_support import crane, feed, plant

from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.monitor.faults import Fault
from mbse_ros.monitor.mass import (
    AFTER_CONTACT,
    EXPLAINED,
    FIRST,
    LASTING,
    LONGEST,
    PROBATION,
    Alarm,
    Drift,
    OneWay,
    Trust,
    plain_difference,
)
from mbse_ros.payload.mass import Mass
from mbse_ros.simulation.crane import SimulatedCrane, cycle_by_name
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import ObserverStatus, PayloadStatus

DT = 0.01
PISTON, ROD = 'pressure/lift_piston', 'pressure/lift_rod'


def pass_time(trust, seconds, implausible=False, alarm=False, moved=True, contact=False, refused=False, wanders=False,
              direction=0.0, one_way=False):
    """Segments of DT; gives for how long, s, the mass did not count."""
    lost = 0
    for _ in range(round(seconds / DT)):
        trust.take(DT, implausible, alarm, moved, contact, refused, wanders, direction=direction,
                   one_way=one_way)
        lost += trust.lost
    return lost * DT


def test_it_takes_motion_without_an_alarm():
    trust = Trust()
    assert pass_time(trust, 100.0) == 0.0
    trust.take(DT, True, False, True)
    assert trust.lost
    assert abs(pass_time(trust, 10.0, moved=False) - 10.0) < DT        # standing proves nothing
    pass_time(trust, FIRST - 0.1)
    assert trust.lost
    trust.take(DT, False, True, True)                                   # a load that changes: from the start
    assert abs(pass_time(trust, 10.0) - FIRST) < 2 * DT


def test_it_takes_longer_each_time_but_not_for_ever():
    trust, times = Trust(), []
    for _ in range(4):
        trust.take(DT, True, False, True)
        times.append(pass_time(trust, PROBATION - 0.1))
    assert [round(t) for t in times] == [FIRST, 2 * FIRST, 4 * FIRST, LONGEST]
    pass_time(trust, PROBATION + LONGEST)
    trust.take(DT, True, False, True)
    assert abs(pass_time(trust, 20.0) - FIRST) < 2 * DT                 # forgotten


def test_loads_that_change_are_no_distrust_but_for_too_long():
    trust = Trust()
    for _ in range(50):                                                 # a working cycle
        assert pass_time(trust, 1.0, alarm=True) + pass_time(trust, 2.5) == 0.0
    assert pass_time(trust, LASTING - 0.1, alarm=True) == 0.0
    assert pass_time(trust, 0.3, alarm=True) > 0.1
    assert abs(pass_time(trust, 20.0) - FIRST) < 2 * DT


def test_a_load_that_is_filled_or_dumped_is_no_distrust_however_long_it_takes():
    trust = Trust()
    assert pass_time(trust, 3.0 * LASTING, alarm=True, one_way=True) == 0.0
    pass_time(trust, LASTING - 0.1, alarm=True)
    assert pass_time(trust, 0.05, alarm=True, one_way=True) == 0.0 and pass_time(trust, 0.3, alarm=True) > 0.1


def goes_one_way(values, half=10.0, changes=True):
    one_way = OneWay()
    return [one_way.take(mass(value, half=half), changes) for value in values]


def test_masses_that_come_back_by_more_than_their_interval_do_not_go_one_way():
    assert all(goes_one_way([0.0, 50.0, 45.0, 200.0, 195.0, 205.0])) and all(goes_one_way([200.0, 100.0, 105.0, 0.0]))
    assert goes_one_way([0.0, 50.0, 39.0]) == [True, True, False] and all(goes_one_way([0.0, 50.0, 41.0]))
    assert goes_one_way([0.0, 50.0, 25.0, -1.0, 25.0]) == [True, True, False, True, False]
    assert not any(goes_one_way([0.0, 50.0, 100.0], changes=False))         # an observer in trouble is another thing
    one_way = OneWay()
    found = [one_way.take(mass(value, half=10.0), changes) for value, changes in (
        (0.0, True), (100.0, True), (50.0, True), (50.0, False), (80.0, True), (75.0, True))]
    assert found == [True, True, False, False, True, True]      # since it began to change


def test_an_alarm_at_rest_does_not_last():
    trust = Trust()
    assert pass_time(trust, 60.0, alarm=True, moved=False) == 0.0


def test_soil_explains_what_cannot_be_but_not_for_long():
    """A bucket that comes out of the soil: heavier than any load for a second, then right."""
    trust = Trust()
    for _ in range(5):
        assert pass_time(trust, 2.0, alarm=True, moved=False, contact=True) == 0.0
        assert pass_time(trust, AFTER_CONTACT - 0.1, implausible=True) + pass_time(trust, 5.0) == 0.0
    pass_time(trust, 2.0, alarm=True, moved=False, contact=True)
    assert pass_time(trust, AFTER_CONTACT + 0.1, implausible=True) > 0.0
    assert abs(pass_time(trust, 20.0) - FIRST) < 2 * DT


def test_trust_that_is_lost_stays_lost_through_contact():
    trust = Trust()
    trust.take(DT, True, False, True)
    for _ in range(3):
        pass_time(trust, 1.0)
        pass_time(trust, 0.5, alarm=True, moved=False, contact=True)
        pass_time(trust, 0.5, implausible=True)
        assert trust.lost


def test_soil_explains_no_sensor_that_is_rejected():
    trust = Trust()
    pass_time(trust, 1.0, alarm=True, moved=False, contact=True)
    assert pass_time(trust, 0.1, alarm=True, moved=False, refused=True) > 0.09
    assert abs(pass_time(trust, 20.0) - FIRST) < 2 * DT


def onsets(trust, count, every, length=0.3, directions=(0.0,)):
    """Alarms of ``length`` s that begin every so many s of motion; gives whether trust was lost at any."""
    lost = False
    for k in range(count):
        lost |= pass_time(trust, length, alarm=True, direction=directions[k % len(directions)]) > 0.0
        lost |= pass_time(trust, every - length) > 0.0
    return lost


def test_alarms_that_come_often_cost_trust_and_seldom_ones_do_not():
    assert not onsets(Trust(), 50, 3.0)
    trust = Trust()
    pass_time(trust, 100.0)
    assert onsets(trust, 6, 1.0)
    assert not onsets(Trust(), 1, 1.0)
    assert onsets(Trust(), 2, 0.5)                                      # at a start there is less trust


def test_all_kinds_of_alarms_are_one_doubt():
    """A load that changes, an observer in trouble, a contact, a mass that wanders: each once, and trust is gone."""
    for last in ({'alarm': True}, {'wanders': True}, {'alarm': True, 'contact': True, 'moved': False}):
        trust = Trust()
        pass_time(trust, 100.0)
        for kind in ({'alarm': True}, {'alarm': True, 'moved': False}, {'wanders': True}):
            trust.take(DT, False, **{'alarm': False, 'moved': True, **kind})
            pass_time(trust, 0.2)
        assert not trust.lost
        trust.take(DT, False, **{'alarm': False, 'moved': True, **last})
        assert trust.lost


def test_what_is_alarmed_before_there_is_a_mass_is_not_trusted_at_once():
    trust = Trust()
    for _ in range(100):
        trust.take(DT, False, False, False, contact=True, blind=True)
    assert abs(pass_time(trust, 20.0) - FIRST) < 2 * DT


def test_an_error_of_the_model_that_explains_refused_samples_needs_more_motion():
    """Whatever motion there was before; the longer wait of trust that was lost often stays."""
    trust = Trust()
    pass_time(trust, 100.0)
    trust.take(DT, False, False, True, explained=True)
    assert trust.lost and trust.wanted == EXPLAINED
    pass_time(trust, EXPLAINED - 0.1)
    assert trust.lost
    pass_time(trust, 0.2)
    assert not trust.lost
    trust.wanted = 2.0 * EXPLAINED
    trust.take(DT, False, False, True, explained=True)
    assert trust.wanted == 2.0 * EXPLAINED


def test_trust_that_is_lost_again_on_the_way_back_takes_longer():
    trust = Trust()
    for _ in range(4):
        trust.take(DT, True, False, True)
        assert pass_time(trust, 1.0) > 0.99
    assert trust.wanted == LONGEST


def mass(value, noise=1.0, half=5.0):
    return Mass(value, noise, half, value, value, 1, 'open', noise, 10)


def wandering(speed, noise=1.0, half=5.0, difference=plain_difference, dt=DT):
    """Whether a mass that moves with so many kg/s is found in 200 segments of motion."""
    drift = Drift(difference)
    return any(drift.take(dt, mass(100.0 + speed * dt * k, noise, half), True, False) for k in range(200))


def test_a_mass_that_moves_by_more_than_its_noise_wanders():
    """1.4 deviations of the noise of two masses half a second apart, and what is within the interval is none."""
    assert wandering(5.0) and wandering(-5.0) and not wandering(3.0)
    assert not wandering(5.0, noise=2.0) and not wandering(5.0, half=20.0)
    assert not wandering(5.0, difference=lambda new, old: (new.mass - old.mass, 3.0))       # another pose explains it


def test_both_sides_of_a_mass_that_wanders():
    """In half a second by 1.4 deviations of two masses, 1.98 kg, and half a half-width; by three masses."""
    assert wandering(4.1, half=3.0, dt=0.1) and not wandering(3.8, half=3.0, dt=0.1)
    assert wandering(20.5, half=20.0, dt=0.1) and not wandering(19.5, half=20.0, dt=0.1)
    drift = Drift(plain_difference)
    found = [drift.take(0.125, mass(100.0 + 50.0 * (k > 7)), True, False) for k in range(10)]
    assert found == 8 * [False] + 2 * [True]


def test_masses_of_the_first_second_of_motion_are_not_compared():
    """They know little, and move; what is held is no motion."""
    drift = Drift(plain_difference)
    assert not any(drift.take(0.125, mass(100.0 + 50.0 * (k > 2)), True, False) for k in range(20))
    drift = Drift(plain_difference)
    assert not any(drift.take(0.125, mass(100.0), False, False) for _ in range(20))
    assert not any(drift.take(0.125, mass(100.0 + 50.0 * (k > 2)), True, False) for k in range(20))


def test_masses_before_another_load_are_not_compared():
    drift = Drift(plain_difference)
    for k in range(200):
        assert not drift.take(DT, mass(100.0 + 50.0 * (k > 100)), True, k == 101)
    assert [drift.take(DT, mass(500.0), False, False) for _ in range(50)] == [False] * 50       # held: no news


def silently_wrong(exchanged=False, begin=0.0, valve='orifice', weighing='joint', payload=50.0):
    """Longest spell and sum, s, in which a mass is outside its interval while all is said to be well; the hoses
    ``exchanged`` from ``begin``, s, on."""
    frames, spells = lifts(payload)[:900], [0.0]
    pipeline = Pipeline(crane(valve), observer=ObserverSettings(weighing=weighing))
    for k, frame in enumerate(frames):
        samples = dict(frame.samples)
        if exchanged and k * DT >= begin:
            samples[PISTON], samples[ROD] = samples[ROD], samples[PISTON]
        for output in feed(pipeline, [replace(frame, samples=samples)]):
            estimate = output.payload
            wrong = estimate.status is PayloadStatus.UPDATING and not estimate.lower <= payload <= estimate.upper
            spells = [*spells[:-1], spells[-1] + DT] if wrong else [*spells, 0.0] if spells[-1] else spells
    return max(spells), sum(spells)


@cache
def lifts(payload):
    return SimulatedCrane(crane(), payload, 4, cycle_by_name('lift_hold_lower', crane(), 4), plant=plant()).run()


@pytest.mark.parametrize('weighing', ('joint', 'apart'))
@pytest.mark.parametrize('valve, payload', (('orifice', 50.0), ('unknown', 0.0)))
def test_swapped_hoses_are_never_believed(valve, payload, weighing):
    """Masses of 8, 21, 215, 34, 220 and 12 kg for 50: one in each motion, for 2.5 s each."""
    assert silently_wrong(True, 0.0, valve, weighing, payload) == (0.0, 0.0)


@pytest.mark.parametrize('weighing', ('joint', 'apart'))
def test_hoses_that_are_swapped_at_work_are_not_believed_for_long(weighing):
    """While the machine lowers: the load seems to be another."""
    longest, total = silently_wrong(True, 6.5, 'unknown', weighing)
    assert longest <= 0.5 and total <= 0.8


def test_hoses_as_they_are_cost_no_trust():
    assert silently_wrong()[1] == 0.0


def after(*parts):
    """A trust of 20 s of motion and more parts: seconds and what is so meanwhile."""
    trust = Trust()
    pass_time(trust, 20.0)
    for seconds, given in parts:
        pass_time(trust, seconds, **given)
    return trust


def test_both_sides_of_each_time():
    """In seconds, not by the names of the numbers: these are the ones that the page of tuning states."""
    wrong, calm, alarm = (DT, {'implausible': True}), lambda t: (t, {}), lambda t: (t, {'alarm': True})
    assert after(wrong, calm(1.9)).lost and not after(wrong, calm(2.1)).lost
    assert after(wrong, calm(0.4), wrong).wanted == 2.0 and after(wrong, calm(0.6), wrong).wanted == 4.0
    assert after(*[wrong, calm(20.0)] * 3, wrong).wanted == after(*[wrong, calm(20.0)] * 5, wrong).wanted == 16.0
    assert after(wrong, calm(29.0), wrong).wanted == 4.0 and after(wrong, calm(31.0), wrong).wanted == 2.0
    assert not after(alarm(3.9)).lost and after(alarm(4.1)).lost
    assert not after(alarm(3.0), calm(1.0), alarm(1.4)).lost and after(alarm(3.0), calm(1.0), alarm(1.6)).lost
    assert not after((3.9, {'wanders': True})).lost and after((4.1, {'wanders': True})).lost     # 1 + t / 2 > 3
    contact = DT, {'contact': True}
    assert not after(contact, calm(2.9), wrong).lost and after(contact, calm(3.1), wrong).lost


def test_what_is_not_trusted_yet_says_since_which_alarm_and_what_ends_it():
    """States in which a pressure is rejected for a moment."""
    pipeline, reasons, left = Pipeline(crane('unknown')), set(), []
    stage = pipeline.payload
    for k, frame in enumerate(lifts(50.0)[:1100]):
        for output in feed(pipeline, [frame]):
            if 510 <= k < 515:
                stage.process(replace(output.state, status=ObserverStatus.COASTING, faults=Fault.REJECTED,
                                      reason=f'rejected: {PISTON}'))
            elif output.payload.faults == Fault.NOT_TRUSTED:
                reasons.add(output.payload.reason)
                left.append((k * DT, *map(float, re.fullmatch(
                    r'the last alarm was (\d+) s ago; ([\d.]+) s of motion without one are left',
                    stage.distrust).groups())))
    assert len(reasons) == 1 and re.fullmatch(
        f'not trusted yet: observer coasting: rejected: {PISTON} at t = 6.2 s; the masses must '
        'agree for 2 s of motion without an alarm', *reasons)
    assert all(abs(t - ago - 6.2) < 0.6 for t, ago, _ in left)
    assert left[-1][2] < 0.1 and not stage.distrust and all(0.0 <= now[2] <= before[2] for before, now in zip(
        left, left[1:]))


def test_alarms_are_counted_until_motion_has_taken_all_doubt_off():
    trust = Trust()
    for k in range(3):
        trust.take(DT, True, False, True, now=Alarm(f'alarm {k}', float(k)))
        pass_time(trust, 0.2)
    assert trust.words.startswith('alarm 2 at t = 2.0 s, the last of 3 alarms; ')
    pass_time(trust, 60.0)
    assert not trust.left_words(64.0)
    trust.take(DT, True, False, True, now=Alarm('another', 64.0))
    assert trust.words.startswith('another at t = 64.0 s; ') and trust.left == trust.wanted


def test_a_load_that_is_filled_in_parts_is_one_alarm():
    """Masses that keep rising: one load. To and fro, or with a longer time between: several."""
    assert not onsets(Trust(), 6, 1.0, directions=(1.0,))
    assert onsets(Trust(), 6, 1.0, directions=(1.0, -1.0))
    for between, lost in ((2.9, False), (3.1, True)):
        trust = Trust()
        pass_time(trust, 0.5, alarm=True, direction=1.0)
        trust._doubt = 3.0      # as many as are believed
        pass_time(trust, between)
        trust._doubt = 3.0
        assert (pass_time(trust, 0.2, alarm=True, direction=1.0) > 0.0) == lost


def test_a_mass_that_wanders_on_is_one_alarm_of_one_time():
    """What is said of it does not change with every segment."""
    trust = Trust()
    for k in range(200):
        trust.take(DT, False, False, True, wanders=True, now=Alarm('it wanders', DT * k))
    assert trust.lost and trust.words.startswith('it wanders at t = 0.0 s; ')
    assert trust.left_words(3.0).startswith('the last alarm was 1 s ago; ')
