# SPDX-License-Identifier: Apache-2.0
"""Zeros of sensors that drift: what the file says, how uncertain they are on a day, what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbse_ros.description.age import aged, as_calibrated, day_of, drifting, today
from mbse_ros.description.basics import scalars
from mbse_ros.description.explain import explain
from mbse_ros.description.load import known_machines, parse_mechanism
from mbse_ros.description.model import content, fingerprint
from mbse_ros.errors import DescriptionError
from mbse_ros.machine import Machine

TEXT = known_machines()['patu655_lift'].read_text()
DATE = date(2026, 5, 1)
OFFSET = 'sensors.lift_piston.offset'
TIED = f'\ncalibration:\n  date: 2026-05-01\n  keys: [bodies.boom.mass, {OFFSET}]\n  rows: [[1], [-0.6, 0.8]]\n'
SENSOR = 'lift_piston: {kind: pressure, volume: lift_piston, stddev: 12 kPa'


def text(drift: str = '2 kPa/sqrt(day)', more: str = 'offset: {value: 0 kPa, stddev: 5 kPa}',
         calibration: str = '\ncalibration: {date: 2026-05-01}\n') -> str:
    return TEXT.replace(SENSOR, f'{SENSOR}, drift: {drift}' + f', {more}' * bool(more)) + calibration


MACHINE = parse_mechanism(text())


@given(st.integers(-20000, 20000), st.integers(-20000, 20000), st.floats(0.0, 1e6), st.floats(1e-3, 1e5))
def test_variances_add_up_and_no_day_is_remembered(days: int, other: int, stddev: float, rate: float) -> None:
    """sqrt(stddev^2 + rate^2 days), whatever day it was before; a later day is never less uncertain."""
    sensor = MACHINE.sensors['lift_piston']
    own = replace(sensor, bias=(replace(sensor.bias[0], stddev=stddev),),
                  drift=replace(sensor.drift, rate=rate, days=0, stated=()))
    machine = replace(MACHINE, sensors={**MACHINE.sensors, 'lift_piston': own})
    one, two = (aged(machine, DATE + timedelta(number)) for number in (days, other))
    found = one.sensors['lift_piston']
    assert found.bias[0].stddev == pytest.approx(np.sqrt(stddev ** 2 + rate ** 2 * abs(days)), rel=1e-12)
    assert aged(two, DATE + timedelta(days)) == one and content(aged(two, DATE + timedelta(days))) == content(one)
    if abs(days) <= abs(other):
        assert found.bias[0].stddev <= two.sensors['lift_piston'].bias[0].stddev
    assert fingerprint(one) == fingerprint(two) and as_calibrated(one).sensors['lift_piston'].bias[0].stddev == stddev
    assert one.sensors['lift_rod'] == machine.sensors['lift_rod'] and one.bodies == machine.bodies


def test_a_file_is_as_old_as_today() -> None:
    days = (today() - DATE).days
    assert scalars(MACHINE)[OFFSET].stddev == pytest.approx(1e3 * np.sqrt(25.0 + 4.0 * days))
    assert drifting(MACHINE) == ('lift_piston',) and MACHINE.sensors['lift_piston'].drift.days == days
    assert scalars(as_calibrated(MACHINE))[OFFSET].stddev == 5e3
    said = ' '.join(f'{row.name} {row.value} {row.note}' for section in explain(MACHINE) for row in section.rows)
    assert f'drift 0.002 MPa/sqrt(day): {2e-3 * np.sqrt(days):.4g} MPa of' in said
    assert f'due to age, {days} days after 2026-05-01' in said


def test_files_without_it_are_as_they_were() -> None:
    plain = parse_mechanism(TEXT)
    none = parse_mechanism(text('0 kPa/sqrt(day)', '', ''))
    assert aged(plain, DATE) is plain and fingerprint(none) == fingerprint(plain)
    assert fingerprint(MACHINE) != fingerprint(parse_mechanism(text('3 kPa/sqrt(day)')))


def test_assumed_zeros_and_positions_drift_too() -> None:
    machine = as_calibrated(parse_mechanism(text(more='').replace(
        'lift_stroke: {', 'lift_stroke: {drift: 0.1 mm / sqrt(day), bias: {value: 1 mm, stddev: 0 mm}, ')))
    plain, later = parse_mechanism(TEXT), aged(machine, DATE + timedelta(100))
    assumed = scalars(plain)[OFFSET].stddev
    assert scalars(later)[OFFSET].stddev == pytest.approx(np.hypot(assumed, 20e3))
    assert scalars(later)['sensors.lift_stroke.bias'].stddev == pytest.approx(1e-3)
    assert 'sensors.lift_stroke.bias' not in Machine(machine).parameters.names       # exact on the day itself
    assert 'sensors.lift_stroke.bias' in Machine(later).parameters.names


@pytest.mark.parametrize('days', [0, 4, 400])
def test_an_age_is_independent_of_what_a_calibration_has_tied(days: int) -> None:
    """The covariance is that of the calibration and, on the offset's place alone, the age's variance."""
    machine = parse_mechanism(text(calibration=TIED))
    new, old = (Machine(aged(machine, DATE + timedelta(number))).parameters for number in (0, days))
    fresh, later = (p.factor() @ p.factor().T for p in (new, old))
    k, mass = new.names.index(OFFSET), new.names.index('bodies.boom.mass')
    assert fresh[k, mass] == pytest.approx(-0.6 * new.stddev[k] * new.stddev[mass])
    fresh[k, k] += 4e6 * days
    assert later == pytest.approx(fresh, rel=1e-9)


@pytest.mark.parametrize('written, key, words', [
    (text('2 kPa'), 'sensors.lift_piston.drift', 'per square root of a day, such as .2 kPa/sqrt'),
    (text('2 kPa/day'), 'sensors.lift_piston.drift', 'per square root of a day'),
    (text('2 mm/sqrt(day)'), 'sensors.lift_piston.drift', 'not a unit of Pa'),
    (text('-2 kPa/sqrt(day)'), 'sensors.lift_piston.drift', 'from 0'),
    (text('{value: 2 kPa}'), 'sensors.lift_piston.drift', 'per square root of a day'),
    (text(calibration=''), 'calibration.date', 'a date such as'),
    (text(calibration=TIED.replace('date: 2026-05-01', 'bags: [a]')), 'calibration.date', 'a date such as'),
    (text(calibration='\ncalibration: {date: 1 May 2026}\n'), 'calibration.date', 'a date such as'),
    (text(calibration='\ncalibration: {date: 20260501}\n'), 'calibration.date', 'a date such as'),
    (text(calibration='\ncalibration: {date: 2026-02-30}\n'), 'calibration.date', 'a date such as'),
    (text(calibration=f'\ncalibration: {{date: {today() + timedelta(2)}}}\n'), 'calibration.date', 'not after today'),
    (TEXT + '\ncalibration: {}\n', 'calibration.keys', 'missing'),
    (TEXT.replace('lift_stroke: {', 'lift_gyro: {kind: gyro, body: boom, stddev: 1 deg/s, drift: 1 deg/s/sqrt(day)}\n'
                  '  lift_stroke: {') + '\ncalibration: {date: 2026-05-01}\n', 'sensors.lift_gyro.bias', 'the zero')])
def test_what_is_refused(written: str, key: str, words: str) -> None:
    with pytest.raises(DescriptionError, match=words) as caught:
        parse_mechanism(written)
    assert caught.value.key == key


def test_mechanisms_have_no_date() -> None:
    four_bar = (known_machines()['patu655_lift'].parent.parent / 'mechanisms' / 'four_bar.yaml').read_text()
    head, kind, rest = four_bar.partition('kind: encoder')
    with pytest.raises(DescriptionError, match='drift: .*a machine'):
        parse_mechanism(f'{head}drift: 1 deg/sqrt(day), {kind}{rest}')


def test_stamps_with_a_date() -> None:
    assert day_of(1_777_593_600_000_000_000) == DATE and day_of(1_777_593_599_999_999_999) == date(2026, 4, 30)
    assert day_of(0) is None and day_of(10 ** 17) is None
