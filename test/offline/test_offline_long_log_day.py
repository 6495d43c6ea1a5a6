# SPDX-License-Identifier: Apache-2.0
"""Logs of a machine whose zeros drift: they are as old as on the day of the log, and what has no such day is said."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from functools import cache

import numpy as np
import pytest

import mbse_ros
from mbse_ros.api.samples import Samples
from mbse_ros.bags.channel_samples import Sample
from mbse_ros.description.age import aged, as_calibrated, today
from mbse_ros.description.load import known_machines, parse_mechanism
from mbse_ros.machine import Machine
from mbse_ros.offline.long_log import START, _on_its_day
from mbse_ros.offline.weigh_bags import weigh_bags
from mbse_ros.simulation.crane import CraneSettings, SimulatedCrane, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle

DATE, DAYS, RATE, LOAD = date(2026, 5, 1), 100, 10e3, 300.0
DAY_NS = 86_400 * 10 ** 9
START_NS = 1_777_633_200 * 10 ** 9       # 11:00 UTC of the date
OFFSET, WALKED = 'sensors.lift_piston.offset', 1.2 * RATE * np.sqrt(DAYS)
MOVES = (Move(0.0, 0.4), Move(7.0, 2.0), Move(-6.0, 1.6), Move(0.0, 0.3))
PLAIN = known_machines()['patu655_lift'].read_text()


def text(drift: bool) -> str:
    """The crane's file with an offset of the piston's pressure that was zeroed to 5 kPa."""
    own = 'offset: {value: 0 kPa, stddev: 5 kPa}, ' + 'drift: 10 kPa/sqrt(day), ' * drift
    return PLAIN.replace('lift_piston: {kind: pressure, ', f'lift_piston: {{kind: pressure, {own}'
                         ) + f'\ncalibration: {{date: {DATE}}}\n'


@cache
def machine(drift: bool) -> Machine:
    """As on the day of its calibration."""
    return Machine(as_calibrated(parse_mechanism(text(drift))))


@cache
def walked(start_ns: int = START_NS + DAYS * DAY_NS) -> Samples:
    """A log of a crane whose offset has walked meanwhile."""
    plain = machine(False)
    true = plain.parameters.mean
    true[plain.parameters.names.index(OFFSET)] = WALKED
    frames = SimulatedCrane(plain, LOAD, 1, WorkCycle(0.1, MOVES), CraneSettings(rate=100.0), true, plant_of(plain),
                            start_ns).run()
    names = (*plain.channels, *plain.commands)
    values = np.array([[*(f.samples[name] for name in plain.channels), *f.commands.values()] for f in frames])
    return Samples(1e-9 * np.array([f.stamp_ns - start_ns for f in frames]), names, values, {}, start_ns)


def test_an_offset_that_walked_is_inside_the_interval_with_the_drift_alone() -> None:
    with_, without = (mbse_ros.estimate(walked(), machine(drift), tuning={'observer.force_error': 0.0})
                      for drift in (True, False))
    assert with_.lower[-1] <= LOAD <= with_.upper[-1] and not without.lower[-1] <= LOAD <= without.upper[-1]
    assert with_.machine.description.sensors['lift_piston'].drift.days == DAYS
    causes = {cause.cause: cause for cause in with_.budget}
    assert causes[OFFSET].aged == pytest.approx(DAYS * 100.0 / (DAYS * 100.0 + 25.0))
    assert str(causes[OFFSET]) == f'{OFFSET} (100% of its square by age)'
    assert all(cause.aged == 0.0 for cause in without.budget)
    shown = with_.to_json()['payload']['budget']
    assert {row['cause']: row['aged'] for row in shown}[OFFSET] == causes[OFFSET].aged
    assert not any('drift' in line for line in with_.warnings)


def test_a_bag_is_as_old_as_its_samples(tmp_path) -> None:
    """By the bag as by the arrays, by the loads of bags of two days each on its own; the machine that was given may be
    of any day."""
    path, other = (tmp_path / f'bag{k}' for k in range(2))
    today_ = Machine(parse_mechanism(text(True)))
    mbse_ros.write_bag(path, walked(), machine(False))
    mbse_ros.write_bag(other, walked(START_NS), machine(False))
    for item in (machine(True), today_):
        found = mbse_ros.estimate(path, item)
        assert found.machine.description.sensors['lift_piston'].drift.days == DAYS
    same = mbse_ros.estimate(walked(), machine(True))
    assert found.mass[-1] == pytest.approx(same.mass[-1], rel=1e-6) and found.upper[-1] == pytest.approx(same.upper[-1])
    kept = mbse_ros.estimate(other, machine(True))
    assert kept.machine is machine(True)
    loads = weigh_bags([path, other], today_, {})
    assert not any('drift' in line for line in loads.warnings)


def test_loads_of_a_log_before_the_calibration_are_said(tmp_path) -> None:
    mbse_ros.write_bag(tmp_path / 'early', walked(START_NS - 3 * DAY_NS), machine(False))
    found, = (line for line in weigh_bags([tmp_path / 'early'], machine(True), {}).warnings if 'drift' in line)
    assert found.startswith('early: sensors.lift_piston.drift: this log begins 3 days before 2026-05-01')


@pytest.mark.parametrize('wrong, days', [(49, DAYS), (51, 0)])
def test_the_day_is_that_of_the_median_of_the_first_stamps(wrong: int, days: int) -> None:
    """Not of the rest of the log, which is not read for it."""
    def samples() -> Iterator[Sample]:
        for k in range(START):
            yield Sample('position/lift', START_NS + (DAYS * DAY_NS if k >= wrong else k), 0.3)
        raise AssertionError
    found, odd = _on_its_day(machine(True), samples())
    assert found.description.sensors['lift_piston'].drift.days == days and odd == ()
    assert _on_its_day(machine(True), iter(())) == (machine(True), ())


@pytest.mark.parametrize('days', [-5, -1])
def test_a_log_before_the_calibration_is_said(days: int) -> None:
    """It is as far off as one so long after it."""
    found = mbse_ros.estimate(walked(START_NS + days * DAY_NS), machine(True))
    line = next(line for line in found.warnings if 'drift' in line)
    assert line.startswith('sensors.lift_piston.drift: this log begins') and 'before 2026-05-01' in line
    assert f'{-days} day' in line
    late = aged(machine(True).description, DATE + timedelta(-days)).sensors['lift_piston']
    assert found.machine.description.sensors['lift_piston'].bias == late.bias


def test_a_log_without_a_date_is_said() -> None:
    """It counts as one of the day on which the machine was loaded."""
    log = {name: (walked().t, walked().values[:, k]) for k, name in enumerate(walked().names)}
    now = Machine(parse_mechanism(text(True)))
    found = mbse_ros.estimate(log, now)
    assert found.machine is now and now.description.sensors['lift_piston'].drift.days == (today() - DATE).days
    assert any('have no date: its zeros count as those of today' in line for line in found.warnings)
    assert not any('date' in line for line in mbse_ros.estimate(log, machine(False)).warnings)
