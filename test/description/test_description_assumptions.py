# SPDX-License-Identifier: Apache-2.0
"""What counts as uncertain where a machine's file says nothing, and what the file says instead."""

from __future__ import annotations

from math import radians, sqrt
from typing import Any

import pytest
from core_support import two_cylinders, work_cycle
from machine_variants import REMOVED, changed, exact_sensors, variant

from mbse_ros.description.assumptions import is_assumed
from mbse_ros.description.basics import uncertain
from mbse_ros.description.load import load_mechanism
from mbse_ros.machine import Machine
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import ObserverStatus, PayloadStatus

LIFT = 'patu655_lift'


def assumed(machine: Machine) -> dict[str, float]:
    """Deviations by key of all that the file leaves out."""
    return {key: number.stddev for key, number in uncertain(machine.description).items() if is_assumed(number)}


def test_data_sheets_of_a_crane() -> None:
    """Of 16 MPa, the next usual range above 10 MPa; the zero of a stroke of 0.535 m; its base is stated."""
    pressure = {f'sensors.lift_{side}.{number}': limit / sqrt(3)
                for side in ('piston', 'rod') for number, limit in (('offset', 0.0025 * 16e6), ('gain', 0.0025))}
    assert assumed(variant(LIFT)) == pytest.approx({**pressure, 'sensors.lift_stroke.bias': 0.002 * 0.535 / sqrt(3)})


@pytest.mark.parametrize('changes, key, stddev', [
    ({'sensors__lift_rod__range': ['0 MPa', '25 MPa']}, 'sensors.lift_rod.offset', 0.0025 * 25e6 / sqrt(3)),
    ({'sensors__lift_rod__range': ['-0.1 MPa', '5.9 MPa']}, 'sensors.lift_rod.offset', 0.0025 * 6e6 / sqrt(3)),
    ({'hydraulics__supplies__pump': '15.9 MPa'}, 'sensors.lift_rod.offset', 0.0025 * 16e6 / sqrt(3)),
    ({'hydraulics__supplies__pump': '16 MPa'}, 'sensors.lift_rod.offset', 0.0025 * 25e6 / sqrt(3)),
    ({'hydraulics__supplies__pump': '150 MPa'}, 'sensors.lift_rod.offset', 0.0025 * 150e6 / sqrt(3)),
    ({'base': REMOVED}, 'base.pitch', radians(1.0)),
    ({'base': {'roll': 0}}, 'base.pitch', radians(1.0))])
def test_what_they_follow_from(changes: dict[str, Any], key: str, stddev: float) -> None:
    assert assumed(variant(LIFT, **changes))[key] == pytest.approx(stddev)


@pytest.mark.parametrize('changes, key', [
    ({'sensors__lift_rod__offset': '0 kPa'}, 'sensors.lift_rod.offset'),
    ({'sensors__lift_rod__offset': {'value': '0 kPa', 'stddev': '5 kPa'}}, 'sensors.lift_rod.offset'),
    ({'sensors__lift_rod__gain': 1}, 'sensors.lift_rod.gain'),
    ({'sensors__lift_stroke__bias': '2 mm'}, 'sensors.lift_stroke.bias'),
    ({'base': {'pitch': 0}}, 'base.pitch')])
def test_what_the_file_states_counts(changes: dict[str, Any], key: str) -> None:
    before, now = assumed(variant(LIFT, base=REMOVED)), assumed(variant(LIFT, **{'base': REMOVED, **changes}))
    assert before.keys() - now.keys() >= {key} and key in before


def test_exact_sensors_and_machines_that_do_not_weigh() -> None:
    assert assumed(changed(LIFT, exact_sensors(LIFT))) == {}
    assert assumed(variant(LIFT, payload=REMOVED)) == {}
    assert uncertain(load_mechanism('four_bar')).keys().isdisjoint({'base.roll', 'base.pitch'})


@pytest.mark.usefixtures('vm')
def test_coordinates_without_a_range_and_supplies() -> None:
    """The swing turns for ever; a supply's pressure is in no force; an inclination sensor is not mounted exactly."""
    sensors = {'sensors/tilt': {'kind': 'inclination', 'axis': 'pitch', 'stddev': '0.1 deg'}, 'base': {},
               'sensors/pump': {'kind': 'pressure', 'supply': 'pump', 'stddev': '60 kPa'}}
    found = assumed(changed('zx200_can', sensors))
    assert not any(key.startswith(('sensors.swing_angle', 'sensors.pump')) for key in found)
    assert found['sensors.tilt.bias'] == pytest.approx(radians(0.3) / sqrt(3))
    assert found['sensors.boom_angle.bias'] == pytest.approx(0.002 * (1.137 - 0.1) / sqrt(3))
    assert found['sensors.arm_rod.offset'] == pytest.approx(0.0025 * 40e6 / sqrt(3))
    assert 'base.roll' in found and two_cylinders().description.base is not None


def test_the_budget_marks_them() -> None:
    """Stated and assumed causes; all together are the deviation of the mass."""
    pipeline = Pipeline(variant(LIFT, sensors__lift_rod__offset={'value': '0 kPa', 'stddev': '100 kPa'}))
    for frame in work_cycle()[:800]:
        for channel, value in [*frame.commands.items(), *frame.samples.items()]:
            pipeline.add(channel, frame.stamp_ns, value)
    causes = {str(cause): cause.kg for cause in pipeline.payload.budget}
    assert {'sensors.lift_rod.offset', 'sensors.lift_piston.offset (assumed)', 'bodies.boom.mass'} <= causes.keys()
    assert causes['sensors.lift_rod.offset'] > 3 * causes['sensors.lift_piston.offset (assumed)'] / 2 > 1.0


def test_a_sensor_at_the_end_of_its_range_says_nothing() -> None:
    """A piston pressure of up to 3 MPa is cut off at 2.5 MPa: held with its name, in place of a lower mass."""
    pipeline, outputs = Pipeline(variant(LIFT, sensors__lift_piston__range=['0 MPa', '2.5 MPa'])), []
    highest = max(frame.samples['pressure/lift_piston'] for frame in work_cycle()[:800])
    assert highest > 2.6e6
    for frame in work_cycle()[:800]:
        samples = {name: min(value, 2.5e6) if name == 'pressure/lift_piston' else value
                   for name, value in frame.samples.items()}
        for channel, value in [*frame.commands.items(), *samples.items()]:
            outputs.extend(pipeline.add(channel, frame.stamp_ns, value))
    cut = [o for o in outputs if o.state.measured[1] >= 2.5e6]
    assert len(cut) > 50
    assert all(o.state.status is not ObserverStatus.OK for o in cut)
    assert any(o.state.reason == 'at the end of its range: pressure/lift_piston' for o in cut)
    wrong = [o for o in outputs if o.payload.status is PayloadStatus.UPDATING
             and not o.payload.lower <= 50.0 <= o.payload.upper]
    assert not wrong
