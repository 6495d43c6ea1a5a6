# SPDX-License-Identifier: Apache-2.0
"""Faults of sensors do to the samples what their names say, to no other sensor, and not before they begin."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mbse_ros.errors import SettingError
from mbse_ros.machine import load_machine
from mbse_ros.simulation.crane import SensorFrame
from mbse_ros.simulation.sensor_faults import (
    FAULTS,
    SensorFault,
    chosen_faults,
    faulty_samples,
    pair_of,
    place_of,
    sensors_of,
)

POSITION, PISTON, ROD, COMMAND = 'position/lift', 'pressure/lift_piston', 'pressure/lift_rod', 'command/lift_valve'
STROKE = 0.535      # m, of the file
MACHINE = load_machine('patu655_lift')
COUNT, BEGIN, MS = 400, 2.0, 1_000_000
T = 0.01 * np.arange(COUNT)
TRUE = {POSITION: 0.2 + 0.02 * T, PISTON: 5e6 + 1e5 * T, ROD: 1.5e6 - 1e5 * T}
NONE = np.zeros(1)


def frames() -> list[SensorFrame]:
    """4 s at 100 Hz, from an instant that is not zero."""
    return [SensorFrame(7_000 * MS + 10 * MS * k, {name: float(values[k]) for name, values in TRUE.items()},
                        {COMMAND: 3.0}, NONE, NONE, NONE, NONE, 100.0) for k in range(COUNT)]


def with_fault(name: str, sensor: str, seed: int = 0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Times, s, and values that come of each channel."""
    found = faulty_samples(FAULTS[name], sensor, MACHINE, frames(), BEGIN, seed)
    assert [stamp for stamp, _, _ in found] == sorted(stamp for stamp, _, _ in found)
    return {channel: (np.array([1e-9 * stamp - 7.0 for stamp, at, _ in found if at == channel]),
                      np.array([value for _, at, value in found if at == channel])) for channel in (*TRUE, COMMAND)}


WHOLE = {      # fault, sensor -> all its samples
    ('negated', PISTON): -TRUE[PISTON], ('in_bar', ROD): TRUE[ROD] * 1e-5, ('in_kPa', PISTON): TRUE[PISTON] * 1e-3,
    ('gauge', PISTON): TRUE[PISTON] - 101_325.0, ('reversed', POSITION): STROKE - TRUE[POSITION],
    ('wrong_unit', POSITION): 1000.0 * TRUE[POSITION]}
LATER = {      # fault, sensor -> what its samples are from 2 s on
    ('zero', ROD): 0.0 * TRUE[ROD], ('saturated', PISTON): np.full(COUNT, 3e6), ('saturated', ROD): TRUE[ROD],
    ('stuck', PISTON): np.full(COUNT, 5.2e6), ('stuck', POSITION): np.full(COUNT, 0.24),
    ('drift', PISTON): TRUE[PISTON] + 500e3 * (T - 2.0) / 1.99, ('gain_1.02', ROD): 1.02 * TRUE[ROD],
    ('gain_1.10', PISTON): 1.1 * TRUE[PISTON], ('bias_50_kPa', ROD): TRUE[ROD] + 50e3,
    ('bias_200_kPa', PISTON): TRUE[PISTON] + 200e3, ('bias_500_kPa', PISTON): TRUE[PISTON] + 500e3,
    ('offset', POSITION): TRUE[POSITION] + 0.05, ('jump', POSITION): TRUE[POSITION] + 0.05 * (T < 2.395),
    ('nan', ROD): np.full(COUNT, math.nan)}


@pytest.mark.parametrize('name, sensor', [*WHOLE, *LATER])
def test_the_faulty_sensor_and_no_other(name: str, sensor: str) -> None:
    found = with_fault(name, sensor)
    begun = T >= 0.0 if (name, sensor) in WHOLE else T >= 1.995
    expected = np.where(begun, (WHOLE | LATER)[name, sensor], TRUE[sensor])
    np.testing.assert_allclose(found[sensor][1], expected, rtol=1e-12)
    for channel in set(TRUE) - {sensor}:
        np.testing.assert_array_equal(found[channel][1], TRUE[channel])
    assert (found[COMMAND][1] == 3.0).all() and len(found[COMMAND][1]) == COUNT


@pytest.mark.parametrize('name, factor', [('both_in_bar', 1e-5), ('both_in_kPa', 1e-3)])
def test_both_pressures_of_a_cylinder(name: str, factor: float) -> None:
    found = with_fault(name, PISTON)
    for channel in (PISTON, ROD):
        np.testing.assert_allclose(found[channel][1], factor * TRUE[channel], rtol=1e-12)
    np.testing.assert_array_equal(found[POSITION][1], TRUE[POSITION])


def test_swapped_chambers() -> None:
    found = with_fault('swapped', PISTON)
    np.testing.assert_array_equal(found[PISTON][1], TRUE[ROD])
    np.testing.assert_array_equal(found[ROD][1], TRUE[PISTON])


def test_late_samples_come_and_are_stamped_later() -> None:
    found = with_fault('late', ROD)
    np.testing.assert_allclose(found[ROD][0], T + 0.2, atol=1e-9)
    np.testing.assert_array_equal(found[ROD][1], TRUE[ROD])
    np.testing.assert_allclose(found[PISTON][0], T, atol=1e-9)


def test_dropouts_are_three_in_ten_by_the_seed() -> None:
    first, other = with_fault('dropouts', PISTON)[PISTON], with_fault('dropouts', PISTON, 1)[PISTON]
    late = first[0] > 1.995
    assert (~late).sum() == 200 and 0.6 < late.sum() / 200 < 0.8
    assert np.isin(first[1], TRUE[PISTON]).all() and not np.array_equal(first[0], other[0])
    np.testing.assert_array_equal(first[0], with_fault('dropouts', PISTON)[PISTON][0])


def test_spikes_are_few_and_large() -> None:
    off = with_fault('spikes', POSITION)[POSITION][1] - TRUE[POSITION]
    hit = np.flatnonzero(off)
    assert 1 <= len(hit) <= 12 and hit.min() >= 200
    np.testing.assert_allclose(np.abs(off[hit]), STROKE / 4, rtol=1e-9)


def test_quantised_to_ten_bits() -> None:
    values = with_fault('quantised', POSITION)[POSITION][1][200:]
    steps = values / (STROKE / 1024)
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)
    assert 0 < np.abs(values - TRUE[POSITION][200:]).max() <= STROKE / 2048 + 1e-12


def test_angles_have_their_own_range_and_unit() -> None:
    machine = load_machine('zx200_can')
    assert place_of(machine, 'position/boom_joint').angle and not place_of(MACHINE, POSITION).angle
    low, high = machine.range[machine.coordinates.index('boom_joint')]
    place = place_of(machine, 'position/boom_joint')
    assert (place.low, place.high) == (low, high)
    assert FAULTS['wrong_unit'].change(math.pi, None, place) == pytest.approx(180.0)       # type: ignore[arg-type]


def test_which_sensors_can_have_a_fault() -> None:
    assert sensors_of(FAULTS['stuck'], MACHINE) == (POSITION, PISTON, ROD)
    assert sensors_of(FAULTS['jump'], MACHINE) == (POSITION,)
    assert sensors_of(FAULTS['gauge'], MACHINE) == (PISTON, ROD)
    assert sensors_of(FAULTS['swapped'], MACHINE) == (PISTON,)
    assert sensors_of(FAULTS['swapped'], load_machine('zx200')) == (
        'pressure/boom_piston', 'pressure/arm_piston', 'pressure/bucket_piston')
    assert pair_of(MACHINE, ROD) == (PISTON, ROD) and pair_of(MACHINE, POSITION) == ()
    every: list[SensorFault] = [fault for fault in FAULTS.values() if sensors_of(fault, MACHINE)]
    assert len(every) == len(FAULTS)


def test_faults_by_name() -> None:
    assert [fault.name for fault in chosen_faults(['zero', 'late'])] == ['zero', 'late']
    assert len(chosen_faults([])) == len(FAULTS)
    with pytest.raises(SettingError, match='one of negated'):
        chosen_faults(['broken'])


def test_a_wrong_zero_is_there_from_the_first_sample_on() -> None:
    for name, off in (('zero_30_mm', 0.03), ('zero_50_mm', 0.05)):
        np.testing.assert_allclose(with_fault(name, POSITION)[POSITION][1], TRUE[POSITION] + off, rtol=1e-12)


def test_hoses_that_are_swapped_midway() -> None:
    found = with_fault('swapped_midway', PISTON)
    for channel, other in ((PISTON, ROD), (ROD, PISTON)):
        np.testing.assert_array_equal(found[channel][1][:200], TRUE[channel][:200])
        np.testing.assert_array_equal(found[channel][1][200:], TRUE[other][200:])


def test_a_sensor_of_another_line() -> None:
    """The next cylinder's, of one cylinder the pump's with the sensor's noise."""
    pump = with_fault('another_line', PISTON)[PISTON][1]
    noise = next(item.sensor.noise for item in MACHINE.all_channels if item.name == PISTON)
    assert abs(pump.mean() - 10e6) < noise and 0.8 * noise < pump.std() < 1.2 * noise
    zx200 = load_machine('zx200')
    names = [name for name in zx200.channels if name.startswith('pressure/')]
    frame = SensorFrame(0, {name: float(k) for k, name in enumerate(names)}, {}, NONE, NONE, NONE, NONE, 0.0)
    found = faulty_samples(FAULTS['another_line'], names[0], zx200, [frame], 0.0)
    read = {name: value for _, name, value in found}
    assert read == {**frame.samples, 'pressure/boom_piston': frame.samples['pressure/arm_piston']}


@pytest.mark.parametrize('name, rate, jitter', [('rate_10_Hz', 10, 0.0), ('rate_5_Hz', 5, 0.0), ('jitter', 10, 0.02)])
def test_slow_buses(name: str, rate: int, jitter: float) -> None:
    found = with_fault(name, 'all')
    for channel in TRUE:
        times, values = found[channel]
        assert len(times) == 4 * rate and sensors_of(FAULTS[name], MACHINE) == ('all',)
        off = times - np.arange(4 * rate) / rate
        assert np.abs(off).max() <= jitter + 1e-9 and (jitter == 0.0 or np.abs(off).max() > 0.01)
        np.testing.assert_allclose(values, TRUE[channel][::100 // rate])
    assert len(found[COMMAND][0]) == COUNT


def test_a_second_publisher_a_silent_sensor_and_stamps_that_are_far_off() -> None:
    times, values = with_fault('two_publishers', PISTON)[PISTON]
    assert len(times) == 2 * COUNT
    np.testing.assert_array_equal(values[::2], TRUE[PISTON])
    np.testing.assert_allclose(times[1::2], T + 0.005, atol=1e-9)
    assert (values[1::2] == TRUE[PISTON][0]).all()
    assert not len(with_fault('missing', ROD)[ROD][0])
    np.testing.assert_allclose(with_fault('very_late', PISTON)[PISTON][0], T + 0.45, atol=1e-9)
