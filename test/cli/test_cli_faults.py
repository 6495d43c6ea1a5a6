# SPDX-License-Identifier: Apache-2.0
"""`mbse benchmark faults`: its JSON and its table on one machine, and what counts as reported, isolated and wrong."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from cli_support import mbse, refused
from core_support import feed

from mbse_ros.simulation.sensor_faults import FAULTS
from mbse_ros.streams.records import ObserverStatus, PayloadStatus
from mbse_ros.studies import fault_cases
from mbse_ros.studies.fault_cases import (
    FaultCase,
    SegmentOutcome,
    clean_row,
    errors,
    faulty_row,
    outcome_of,
    run_case,
    truth_of,
)
from mbse_ros.studies.faults import alarms_per_hour, summary
from mbse_ros.studies.faults import fault_cases as all_cases

PISTON, ROD = 'pressure/lift_piston', 'pressure/lift_rod'
ZERO = FaultCase('patu655_lift', 'orifice', 1, 'zero', PISTON, 8.0, 11.0)
FINE = SegmentOutcome(0.0, 0.1, 0.0, 1.0, 5.0, True, False, False, frozenset(), '')
ASKED = {'machine', 'fault', 'sensor', 'seed', 'valve', 'detected_s', 'isolated',
         'worst_error_over_half_width_while_ok', 'seconds_wrong_while_ok'}


def course(**changes: SegmentOutcome) -> list[SegmentOutcome]:
    """12 s of outputs, each 0.1 s; what is changed by their place: ``at_85=...``."""
    seen = [replace(FINE, t=0.1 * k, moved=0.05 * k) for k in range(1, 121)]
    for place, item in changes.items():
        k = int(place[3:])
        seen[k - 1] = replace(item, t=0.1 * k, moved=0.05 * k)
    return seen


@pytest.fixture(scope='module')
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp('faults')
    done = mbse('benchmark', 'faults', '--machine', 'patu655_lift', '--valve', 'orifice', '--fault',
                'negated,nan,gauge,dropouts', '--sensor', PISTON, '--start', 4, '--duration', 7, '--clean', 7,
                '--json', folder / 'x.json', '-o', folder / 'plots')
    assert done.status == 0, done
    return json.loads((folder / 'x.json').read_text()), done.out, folder


def test_the_json(small) -> None:
    result, out, folder = small
    assert {'machine', 'duration_s', 'begin_s', 'seeds', 'cases', 'clean', 'false_alarms_per_hour'} == set(result)
    assert [(case['fault'], case['sensor']) for case in result['cases']] == [
        (name, PISTON) for name in ('negated', 'nan', 'gauge', 'dropouts')]
    for case in result['cases']:
        assert ASKED <= set(case) and case['failure'] == ''
        assert (case['machine'], case['valve'], case['seed']) == ('patu655_lift', 'orifice', 1)
        assert isinstance(case['isolated'], bool) and (case['detected_s'] is None or case['detected_s'] > 0.0)
        assert 0.0 <= case['seconds_wrong_while_ok'] <= 7.0 and case['worst_error_over_half_width_while_ok'] >= 0.0
    (clean,) = result['clean']
    assert result['false_alarms_per_hour'] == pytest.approx(3600.0 * clean['false_alarms'] / 7.0)
    assert (folder / 'plots' / 'faults.png').read_bytes().startswith(b'\x89PNG')
    assert 'by fault' in out and 'false alarms an hour' in out and 'negated' in out


def test_what_the_chain_is_known_to_find(small) -> None:
    """A pressure below vacuum and a sample that is missing are reported at once, by their name."""
    for case in small[0]['cases'][:2]:
        assert case['detected_s'] <= 0.05 and case['isolated'] and case['blamed'] == [PISTON]
    assert small[0]['cases'][1]['seconds_wrong_while_ok'] == 0.0


def test_a_case_does_not_depend_on_the_one_before() -> None:
    first = FaultCase('patu655_lift', 'orifice', 1, 'zero', PISTON, 4.0, 7.0)
    alone = run_case(first)
    run_case(replace(first, fault='wrong_unit', sensor='position/lift'))
    assert run_case(first) == alone


def test_reported_isolated_and_wrong_by_hand() -> None:
    lying = replace(FINE, error=-11.0)
    seen = replace(FINE, good=False, alarm=True, blamed=frozenset({PISTON}), reason='x')
    row = faulty_row(ZERO, course(at_79=lying, at_82=lying, at_83=lying, at_90=seen), course())
    assert row['detected_s'] == pytest.approx(1.0) and row['detected_after_motion_s'] == pytest.approx(0.5)
    assert row['isolated'] and row['reason'] == 'x'
    assert row['seconds_wrong_while_ok'] == pytest.approx(0.2)      # the one at 7.9 s is before the fault
    assert (row['worst_error_over_half_width_while_ok'], row['worst_error_kg']) == (2.2, -11.0)
    assert summary([row], 'zero')[:7] == ['zero', '1', '1', '1.00', '1', '1', '0']


def test_wrongly_isolated_and_not_told() -> None:
    other = replace(FINE, alarm=True, blamed=frozenset({ROD}))
    row = faulty_row(ZERO, course(at_90=other), course())
    assert not row['isolated'] and row['blamed'] == [ROD] and summary([row], 'zero')[4:7] == ['0', '0', '1']
    row = faulty_row(ZERO, course(), course())
    assert row['detected_s'] is None and not row['isolated'] and summary([row], 'zero')[2:4] == ['0', '–']


def test_an_alarm_that_a_sound_run_has_too_is_not_a_detection() -> None:
    alarm = replace(FINE, alarm=True)
    assert faulty_row(ZERO, course(at_90=alarm), course(at_90=alarm))['detected_s'] is None
    assert faulty_row(ZERO, course(at_90=alarm), course(at_91=alarm))['detected_s'] == pytest.approx(1.0)
    named = replace(alarm, blamed=frozenset({PISTON}))
    assert faulty_row(ZERO, course(at_90=named), course(at_90=alarm))['detected_s'] == pytest.approx(1.0)


def test_held_masses_are_counted_apart() -> None:
    held = replace(FINE, good=False, held=True, error=20.0)
    row = faulty_row(ZERO, course(at_85=held), course())
    assert row['seconds_wrong_while_held'] == pytest.approx(0.1) and row['seconds_wrong_while_ok'] == 0.0


def test_twice_the_half_width_is_the_limit() -> None:
    assert errors([replace(FINE, error=9.9)])['seconds_wrong_while_ok'] == 0.0
    assert errors([replace(FINE, error=-10.1)])['seconds_wrong_while_ok'] == pytest.approx(0.1)
    unknown = replace(FINE, error=math.nan, half_width=math.nan)
    assert errors([unknown])['worst_error_over_half_width_while_ok'] == 0.0


def test_false_alarms_are_counted_once() -> None:
    alarm = replace(FINE, alarm=True, reason='y')
    row = clean_row(replace(ZERO, fault='', duration=12.0), course(at_20=alarm, at_21=alarm, at_25=alarm, at_60=alarm))
    assert row['false_alarms'] == 2 and row['seconds_of_alarm'] == pytest.approx(0.4) and row['reasons'] == ['y']
    assert alarms_per_hour([row]) == pytest.approx(600.0) and alarms_per_hour([]) is None


@cache
def sound():
    """Outputs of two seconds without a fault."""
    return feed(fault_cases.fresh_pipeline('patu655_lift', 'orifice'), fault_cases.frames_of('patu655_lift', 1, 2.0))


@pytest.mark.parametrize('observer, payload, reason, good, alarm, blamed', [
    (ObserverStatus.OK, PayloadStatus.UPDATING, '', True, False, set()),
    (ObserverStatus.OK, PayloadStatus.UPDATING, f'rejected: {ROD} 9 off', True, True, {ROD}),
    (ObserverStatus.OK, PayloadStatus.TOO_SLOW, '', False, False, set()),
    (ObserverStatus.OK, PayloadStatus.CHANGING, '', False, True, set()),
    (ObserverStatus.OK, PayloadStatus.IMPLAUSIBLE, '', False, True, set()),
    (ObserverStatus.OK, PayloadStatus.NO_DATA, '', False, True, set()),
    (ObserverStatus.STARTING, PayloadStatus.NO_DATA, '', False, False, set()),
    (ObserverStatus.COASTING, PayloadStatus.NO_DATA, f'missing: {PISTON}', False, True, {PISTON}),
    (ObserverStatus.LOST, PayloadStatus.NO_DATA, '', False, True, set())])
def test_what_is_an_alarm(observer, payload, reason, good, alarm, blamed) -> None:
    machine, frames = fault_cases.machine_of('patu655_lift', 'orifice'), fault_cases.frames_of('patu655_lift', 1, 2.0)
    outputs = sound()
    output = replace(outputs[-1], state=replace(outputs[-1].state, status=observer, reason=reason),
                     payload=replace(outputs[-1].payload, status=payload, mass=205.0, lower=201.0, upper=209.0))
    seen = outcome_of(output, machine, truth_of(frames))
    assert (seen.good, seen.alarm, seen.blamed) == (good, alarm, frozenset(blamed))
    assert seen.error == pytest.approx(5.0) and seen.half_width == pytest.approx(4.0)      # a fifth of 1000 kg is true
    assert seen.t == pytest.approx(outputs[-1].segment.stamp_ns * 1e-9) and seen.dt == pytest.approx(0.01)


def test_the_truth_counts_motion() -> None:
    frames = fault_cases.frames_of('patu655_lift', 1, 2.0)
    truth = truth_of(frames)
    moving = [abs(frame.velocity[0]) > 0.006 for frame in frames]
    assert truth.moved[-1] == pytest.approx(0.01 * sum(moving[1:])) and 0.5 < truth.moved[-1] < 1.9
    assert (np.diff(truth.moved) >= 0.0).all() and (truth.mass == 200.0).all()


def test_all_faults_of_all_sensors_of_four_machines() -> None:
    cases = all_cases([], [], [], [], 2, 8.0, 24.0, 60.0)
    assert {case.machine for case in cases} == {'patu655_lift', 'patu655', 'zx200', 'zx200_can'}
    assert {case.valve for case in cases} == {'orifice', 'unknown'} and {case.seed for case in cases} == {1, 2}
    assert {case.fault for case in cases} == {'', *FAULTS} and len(set(cases)) == len(cases)
    assert sum(not case.fault for case in cases) == 4 * 2 * 2


@pytest.mark.parametrize('words, told', [
    (('--fault', 'broken'), '--fault'), (('--sensor', 'position/none'), '--sensor'), (('--valve', 'open'), '--valve'),
    (('--start', 30), '--start'), (('--clean', 0.1), '--clean'), (('--machine', 'patu'), 'machine')])
def test_bad_words_are_refused(words, told) -> None:
    assert told in refused('benchmark', 'faults', *words)


def test_what_begins_later_begins_at_the_first_sample_too() -> None:
    cases = all_cases(['patu655_lift'], ['orifice'], ['gain_1.10', 'swapped'], [PISTON], 1, None, 24.0, 0.0)
    assert [(case.fault, case.begin) for case in cases] == [('gain_1.10', 8.0), ('gain_1.10', 0.0), ('swapped', 8.0)]
    assert len(all_cases(['patu655_lift'], ['orifice'], ['gain_1.10'], [PISTON], 1, 0.0, 24.0, 0.0)) == 1     # as asked


def test_a_sensor_that_never_sends_gives_no_estimate_and_that_is_reported() -> None:
    row = run_case(FaultCase('patu655_lift', 'orifice', 1, 'missing', PISTON, 0.0, 3.0))
    assert row['detected_s'] == 0.0 and row['seconds_ok'] == 0.0
    assert row['failure'] == f'no estimate: nothing was received of {PISTON}'


def test_the_longest_spell_outside_the_interval_is_one_without_a_break() -> None:
    out, held = replace(FINE, error=-5.1), replace(FINE, error=9.0, good=False)
    seen = course(**{f'at_{k}': out for k in (20, 21, 22, 24, 25)}, at_23=held, at_26=FINE)
    assert errors(seen)['longest_outside_while_ok_s'] == pytest.approx(0.3)
    assert errors(course())['longest_outside_while_ok_s'] == 0.0
