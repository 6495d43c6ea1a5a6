# SPDX-License-Identifier: Apache-2.0
"""A file whose zeros drift is calibrated: what is known before has its age, and the new date starts the age again."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from cli_support import START_NS, mbse, recorded, refused, stamped

from mbse_ros.calibration.free import freed
from mbse_ros.description.age import aged, as_calibrated, day_of
from mbse_ros.description.basics import scalars
from mbse_ros.description.load import known_machines, load_mechanism, parse_mechanism
from mbse_ros.machine import Machine
from mbse_ros.offline.calibration.calibrated_file import Parameter, calibrated_text

BAG = day_of(START_NS)
DAYS, OFFSET, OTHER = 100, 'sensors.lift_piston.offset', 'sensors.lift_rod.offset'
KNOWN = {OFFSET: 5e3, OTHER: 4e3}       # Pa


def text() -> str:
    found = known_machines()['patu655_lift'].read_text()
    for key, deviation in KNOWN.items():
        name = key.split('.')[1]
        found = found.replace(f'volume: {name}, ', f'volume: {name}, drift: 2 kPa/sqrt(day), '
                              f'offset: {{value: 0 Pa, stddev: {deviation:g} Pa}}, ')
    return found + f'\ncalibration: {{date: {BAG - timedelta(DAYS)}}}\n'


def test_the_age_is_known_before_and_starts_again(tmp_path: Path) -> None:
    """The prior is that of the bag's day. What the bag says nothing new of has its age written, too: with the new date
    alone it would be as certain as before."""
    file, new = tmp_path / 'old.yaml', tmp_path / 'new.yaml'
    file.write_text(text())
    done = mbse('calibrate', recorded(tmp_path / 'empty'), '--payload', 'empty=50', '--machine', file, '-o', new,
                '--force', '--json', tmp_path / 'result.json')
    assert done.status == 0, done
    found, prior = load_mechanism(new), aged(load_mechanism(file), BAG)
    assert found.calibration.date == BAG.isoformat()
    own, before = scalars(as_calibrated(found)), scalars(prior)
    for key, deviation in KNOWN.items():
        assert before[key].stddev == pytest.approx(np.hypot(deviation, 2e3 * np.sqrt(DAYS)))
        assert key in found.calibration.keys and 0.1 * before[key].stddev < own[key].stddev <= before[key].stddev
        assert own[key].stddev > 1.5 * deviation
    assert [sensor.drift.rate for sensor in found.sensors.values() if sensor.drift] == [2e3, 2e3]
    later = aged(found, BAG + timedelta(25))
    assert scalars(later)[OFFSET].stddev == pytest.approx(np.hypot(own[OFFSET].stddev, 1e4))


def test_what_the_bags_do_not_determine_is_written_with_its_age() -> None:
    machine = Machine(aged(parse_mechanism(text()), BAG))
    p = machine.parameters
    same = [Parameter(key, mean, stddev, mean, stddev) for key, mean, stddev in zip(p.names, p.mean, p.stddev)]
    found = parse_mechanism(calibrated_text(machine, text(), same, np.eye(len(same)), BAG.isoformat(), ['bag']))
    assert set(found.calibration.keys) == set(KNOWN) and found.calibration.date == BAG.isoformat()
    assert scalars(as_calibrated(found))[OFFSET].stddev == pytest.approx(np.hypot(5e3, 20e3))
    fresh = Machine(as_calibrated(parse_mechanism(text())))
    p = fresh.parameters
    same = [Parameter(key, mean, stddev, mean, stddev) for key, mean, stddev in zip(p.names, p.mean, p.stddev)]
    assert calibrated_text(fresh, text(), same, np.eye(len(same)), '2023-08-06', ['bag']) == text()


def test_a_freed_zero_does_not_get_its_age_twice() -> None:
    found = parse_mechanism(freed(text(), 'file', ['sensors.*.offset']))
    assert scalars(as_calibrated(found))[OFFSET].stddev == pytest.approx(5e3)


def test_bags_without_a_date_are_refused(tmp_path: Path) -> None:
    (tmp_path / 'old.yaml').write_text(text())
    since = int(1e9)

    def early(topic: str, t: float, message: object) -> object:
        return stamped(message, since + round(t * 1e9)) if hasattr(message, 'header') else message
    bag = recorded(tmp_path / 'empty', early)
    assert 'its stamps begin on 1970-01-01' in refused('calibrate', bag, '--machine', tmp_path / 'old.yaml')
    assert date(1970, 1, 1) < BAG
