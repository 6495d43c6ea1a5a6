# SPDX-License-Identifier: Apache-2.0
"""Rules on the samples of one sensor, each by a sample series just inside and just outside of each of its numbers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from core_support import crane
from machine_variants import changed

from mbse_ros.machine import Machine, load_machine
from mbse_ros.offline.checks.pressure_rules import resting_of, suspects
from mbse_ros.offline.checks.sensor_rules import huge_values, sensor_findings
from mbse_ros.offline.checks.value_rules import beyond_limits, outside_range, pressure_looks
from mbse_ros.offline.log_samples import LogSamples, Means, Series

STROKE, PISTON = 'position/lift', 'pressure/lift_piston'
CHANNELS = {channel.name: channel for channel in crane().all_channels}
NOISE = CHANNELS[STROKE].sensor.noise       # 0.4 mm


def noisy(count: int, scale: float = 1.0) -> np.ndarray:
    """Noise of the sensor, times a scale, m."""
    return scale * NOISE * np.random.default_rng(count).standard_normal(count)


def kinds(values: np.ndarray, dt: float = 0.01, channel: str = STROKE) -> set[str]:
    """Kinds of findings on samples that come every ``dt``, s."""
    return {finding.kind for finding in sensor_findings(CHANNELS[channel], Series(dt * np.arange(len(values)), values))}


def test_what_is_said_of_a_sensor_has_its_unit() -> None:
    """kPa of a pressure's noise, as the file may state it."""
    for values in (noisy(400, 100.0), np.where(np.arange(400) % 40 == 20, 1e4, noisy(400)), noisy(400).round(1)):
        series = Series(0.01 * np.arange(len(values)), values)
        (found,) = sensor_findings(CHANNELS[STROKE], series, 'kPa', 1e-3)
        assert ' kPa' in found.line and all(line.count(' kPa') for line in found.line.split(', in the file'))


def held(count: int, others: int = 400, pairs: int = 0) -> np.ndarray:
    """A value for so many samples, among others of which some come twice."""
    values = noisy(others)
    values[1:2 * pairs:2] = values[:2 * pairs:2]
    return np.concatenate([values[:others // 2], np.zeros(count), values[others // 2:]])


@pytest.mark.parametrize('inside, outside, dt', [
    (held(50), held(49), 0.05),                         # samples with one value ...
    (held(102), held(100), 0.01),                       # ... for 1 s ...
    (held(110, pairs=9), held(110, pairs=11), 0.01)])       # ... of a sensor that seldom, by 5 %, gives one twice
def test_stuck(inside: np.ndarray, outside: np.ndarray, dt: float) -> None:
    assert kinds(inside, dt) == {'stuck'} and kinds(outside, dt) == set()


def ended(lengths: Iterable[int], others: int) -> np.ndarray:
    """Runs at the largest value."""
    values = noisy(others)
    parts = [part for length, own in zip(lengths, np.array_split(values, 2)) for part in (own, np.full(length, 0.01))]
    return np.concatenate([*parts, values[:1] / 2])


@pytest.mark.parametrize('inside, outside', [
    (ended((25, 2), 1300), ended((25, 2), 1400)),       # 2 % of the samples ...
    (ended((25, 25), 500), ended((24, 24), 500)),       # ... once 25 of them in a row ...
    (ended((30, 2), 500), ended((30, 1), 500))])        # ... and again
def test_saturated(inside: np.ndarray, outside: np.ndarray) -> None:
    assert kinds(inside) == {'saturated'} and kinds(outside) == set()


def stepped(levels: int, count: int, step: float) -> np.ndarray:
    """All of so many levels, again and again; a step in deviations."""
    return step * NOISE * np.resize(np.arange(levels), count)


@pytest.mark.parametrize('inside, outside', [
    (stepped(10, 400, 7.0), stepped(10, 400, 6.85)),        # a rounding error of twice the noise: sqrt(12) times 2
    (stepped(10, 400, 9.0) + 0.17 * NOISE * (np.arange(400) % 10 == 9),             # to 2 % of a step
     stepped(10, 400, 9.0) + 0.19 * NOISE * (np.arange(400) % 10 == 9)),
    (stepped(5, 400, 9.0), stepped(4, 400, 9.0)), (stepped(40, 200, 9.0), stepped(41, 200, 9.0))])
def test_coarse(inside: np.ndarray, outside: np.ndarray) -> None:
    assert 'coarse' in kinds(inside) and 'coarse' not in kinds(outside)


def zigzag(amplitude: float, count: int = 2502, calm: int = 0) -> np.ndarray:
    """Second differences of 4 amplitudes, in deviations; so many of 25 samples at the end without."""
    values = amplitude * NOISE * (-1.0) ** np.arange(count)
    values[count - 25 * calm:] *= 1e-3
    return values


def wandering(share: float) -> np.ndarray:
    """Steps that are alike by a share."""
    e = 40.0 * NOISE * np.random.default_rng(1).standard_normal(4001)
    return np.cumsum(e[1:] + share * e[:-1])


@pytest.mark.parametrize('inside, outside', [
    (zigzag(4.16), zigzag(4.10)),                       # 4 / 1.652 amplitudes are ten times the noise
    (zigzag(6.0, calm=8), zigzag(6.0, calm=12)),        # in nine pieces of ten
    (noisy(4000, 20.0), wandering(0.3)),                # neighbouring second differences: -2/3 of white noise, -0.31
    (zigzag(6.0, 50), zigzag(6.0, 49))])
def test_noise(inside: np.ndarray, outside: np.ndarray) -> None:
    assert kinds(inside) == {'noise'} and kinds(outside) == set()
    assert kinds(inside, 0.059) == {'noise'} and kinds(inside, 0.061) == set()      # vibrations look like it


def spiked(height: float, count: int = 5, base: str = 'flat') -> np.ndarray:
    """Spikes so high, m, on a ramp of 1 m, on nearly nothing, or to the other side of steps of 2 deviations."""
    values = {'ramp': np.linspace(0.0, 1.0, 2001), 'flat': noisy(2001, 1e-3),
              'steps': NOISE * (-1.0) ** np.arange(2001)}[base]
    for k in range(count):
        at = 100 + 200 * k + 1
        values[at] = (values[at - 1] + values[at + 1]) / 2 + height
    return values


def leaning(share: float) -> np.ndarray:
    """Spikes whose neighbours differ by a share of them."""
    values = noisy(2001, 1e-3)
    for k in range(5):
        values[101 + 400 * k:] += share * 20.0 * NOISE
        values[101 + 400 * k] += 20.0 * NOISE
    return values


def toggled(every: int) -> np.ndarray:
    """Spikes of 20 deviations on a level that changes by 4, once in so many samples."""
    values = noisy(2401, 1e-3) + 4.0 * NOISE * (np.arange(2401) // every % 2)
    values[every // 2::24 * 10] += 20.0 * NOISE
    return values


def test_samples_that_are_sent_again() -> None:
    """A sensor at 10 Hz that a gateway sends at 100 Hz; that of a sensor with steps has the same values elsewhere."""
    assert kinds(np.repeat(noisy(60), 10)) == kinds(np.repeat(noisy(60), [1, 2] * 30)) == {'held'}
    assert kinds(np.repeat(noisy(49), 10)) == set()                         # so few may be a coincidence
    assert 'held' not in kinds(np.repeat(noisy(61), [1] * 31 + [2] * 30))
    assert 'held' not in kinds(np.repeat(noisy(60, 20.0).round(2), 10))
    series = Series(0.01 * np.arange(600), np.repeat(noisy(60), 10))
    assert 'sent at 100 Hz, but its value changes at 10 Hz' in sensor_findings(CHANNELS[STROKE], series)[0].seen


def filled(count: int, value: float, other: float, side: float = 1.0) -> np.ndarray:
    """A value now and then, two of them in a row, among others about ``other`` before it, and ``side`` of it after."""
    values = other + noisy(400)
    for k in range(count):
        values[10 + 20 * k:12 + 20 * k] = value
        values[12 + 20 * k:20 + 20 * k] *= side
    return values


def test_a_value_that_is_sent_where_there_is_none() -> None:
    """NaN as 0, or as another number; so many are no spikes by the changes, and came with no word."""
    assert kinds(filled(19, 0.0, 0.3)) == kinds(filled(19, -1.0, 0.3)) == {'spikes'}
    assert kinds(filled(19, 0.0, 0.3), 0.1) == {'spikes'}
    assert kinds(filled(5, 0.0, 0.3), 0.1) == {'spikes'} and kinds(filled(4, 0.0, 0.3), 0.1) == set()   # slips
    assert kinds(filled(19, 0.0, 7.0 * NOISE)) == set()                     # it may be one of the others ...
    assert 'spikes' not in kinds(filled(19, 0.0, 0.3, -1.0), 0.1)           # ... or on the way from one to the next


@pytest.mark.parametrize('inside, outside', [
    (leaning(0.24), leaning(0.26)),
    (spiked(0.097, base='ramp'), spiked(0.095, base='ramp')),                   # a tenth of the middle 96 %
    (toggled(12), toggled(8)),                                                  # the usual change: of nine in ten
    (spiked(8.1 * NOISE), spiked(7.9 * NOISE)), (spiked(8.1 * NOISE), spiked(8.1 * NOISE, 4)),
    (spiked(16.2 * NOISE, base='steps'), spiked(15.8 * NOISE, base='steps'))])       # 8 times the usual change
def test_spikes(inside: np.ndarray, outside: np.ndarray) -> None:
    assert kinds(inside) == {'spikes'} and kinds(outside) == set()
    assert kinds(inside, 0.024) == {'spikes'} and 'spikes' not in kinds(inside, 0.026)


@pytest.mark.parametrize('count, value, found', [(3, 1e15, ['huge']), (2, 1e15, []), (3, 0.9e15, [])])
def test_numbers_that_nothing_measures(count: int, value: float, found: list[str]) -> None:
    samples = LogSamples.of([('a', k, value if k < count else 1.0) for k in range(100)])
    assert [finding.kind for finding in huge_values(samples)] == found


def looks(means: list[tuple[int, float]], values: float = 1e7, tank: float | None = None, rests: bool = True) -> str:
    """Of means of the piston's pressure, Pa, each at so many instants of 0.05 s, beside some of 10 MPa."""
    all_ = np.concatenate([np.full(count, value) for count, value in [*means, (100, 1e7)]])
    return pressure_looks(CHANNELS[PISTON], np.full(200, values), all_, np.full(all_.shape, rests), tank).looks


@pytest.mark.parametrize('inside, outside, found', [
    (looks([], 49e3), looks([], 51e3), 'tiny'),                                             # Pa: what never exceeds it
    (looks([(200, 201e6)]), looks([(200, 199e6)]), 'huge'),
    (looks([(10, -5.1e3)]), looks([(10, -4.9e3)]), 'gauge'),                                # below vacuum ...
    (looks([(10, -9e3)]), looks([(9, -9e3)]), 'gauge'),                                     # ... for 0.5 s
    (looks([(101, -130e3)]), looks([(101, -1e3)]), 'negated'),                              # mostly
    (looks([(10, 24e3)], tank=0.1e6), looks([(10, 26e3)], tank=0.1e6), 'gauge'),            # emptier than the tank
    (looks([(10, 1e3)], tank=0.091e6), looks([(10, 1e3)], tank=0.089e6), 'gauge'),
    (looks([(10, 1e3)], tank=0.1e6), looks([(10, 1e3)], tank=0.1e6, rests=False), 'gauge')])
def test_pressures(inside: str, outside: str, found: str) -> None:
    assert inside == found and outside == ''


def test_far_below_vacuum() -> None:
    """1.2 atmospheres, 121.6 kPa: no zero is so wrong; negated where it is so for most of the time."""
    assert looks([(10, -122e3)]) == 'impossible' and looks([(10, -121e3)]) == 'gauge'
    assert looks([(101, -130e3)]) == 'negated' and looks([(99, -130e3)]) == 'impossible'


@pytest.mark.parametrize('share, beyond, seen', [(0.51, 0.03, True), (0.49, 0.03, False), (1.0, 0.0272, True),
                                                 (1.0, 0.0262, False)])
def test_positions_that_are_mostly_outside(share: float, beyond: float, seen: bool) -> None:
    """By 5 % of a stroke of 0.535 m, 0.0268 m."""
    means = np.where(np.arange(100) < 100 * share, 0.535 + beyond, 0.2)
    assert bool(outside_range(crane(), STROKE, means, 0.05 * np.arange(100))) is seen


@pytest.mark.parametrize('fast, count, seen', [(3.1, 100, True), (2.9, 100, False), (100.0, 6, True),
                                               (100.0, 4, False)])
def test_a_swing_that_is_mostly_too_fast(fast: float, count: int, seen: bool) -> None:
    """3 rad/s; what one in 20 speeds exceeds is a turn that is counted from 0 again."""
    speeds = np.where(np.arange(100) < count, fast, 1.0)
    means = np.concatenate([[0.0], np.cumsum(0.05 * speeds)])
    assert bool(outside_range(load_machine('zx200'), 'position/swing_joint', means, 0.05 * np.arange(101))) is seen


@pytest.mark.parametrize('beyond, seconds, seen', [(0.0134, 1.0, True), (0.0128, 1.0, False), (0.05, 0.31, True),
                                                   (0.05, 0.29, False)])
def test_positions_beyond_their_limits(beyond: float, seconds: float, seen: bool) -> None:
    """By 2 % of the stroke, 10.7 mm, and 6 deviations, 2.4 mm, for 0.3 s."""
    t = 0.01 * np.arange(400)
    values = np.where((t > 0.995) & (t < 1.005 + seconds), 0.535 + beyond, 0.2)
    assert bool(beyond_limits(crane(), CHANNELS[STROKE], Series(t, values))) is seen


def units(largest: float, machine: Machine = crane(), name: str = PISTON) -> str:
    """Remedies of samples from half of so much up."""
    t = 0.05 * np.arange(100)
    values = np.linspace(0.5, 1.0, 100) * largest
    means = Means(t, np.zeros(100), {STROKE: np.full(100, 0.2), name: values})
    found = suspects(machine, {name: Series(t, values)}, means)
    return ', '.join(remedy.words for remedy in found.remedies.get(name, ()))


@pytest.mark.parametrize('inside, outside, unit', [
    (149.0, 153.0, 'bar'),          # 1.5 times the supply of 10 MPa
    (31.0, 29.0, 'kPa'),            # 30 kPa: a chamber that never carries more
    (1030.0, 990.0, 'atmosphere')])
def test_units_that_a_pressure_may_have(inside: float, outside: float, unit: str) -> None:
    assert unit in units(inside) and unit not in units(outside)


def test_a_supply_is_near_that_of_the_file() -> None:
    """A fifth to five times 10 MPa."""
    machine = changed('patu655_lift', {'sensors/pump': {'kind': 'pressure', 'supply': 'pump', 'stddev': '60 kPa'}})
    for largest, found in ((19.8, False), (20.6, True), (498.0, True), (506.0, False)):
        assert ('bar' in units(largest, machine, 'pressure/pump')) is found


def test_a_unit_in_which_a_position_is_no_more_than_noise_is_none() -> None:
    """Two deviations are 0.8 mm."""
    t = 0.05 * np.arange(100)
    for range_mm, found in ((0.83, True), (0.77, False)):
        values = 200.0 + np.linspace(0.0, range_mm, 100)
        remedies = suspects(crane(), {STROKE: Series(t, values)}, Means(t, np.zeros(100), {STROKE: values})).remedies
        assert bool(remedies[STROKE]) is found


def test_a_machine_that_rests() -> None:
    """A hundredth of the range a second."""
    t = 0.05 * np.arange(100)
    for speed, rests in ((0.0099, True), (0.0101, False)):
        assert resting_of(crane(), Means(t, np.zeros(100), {STROKE: 0.535 * speed * t})).all() == rests
