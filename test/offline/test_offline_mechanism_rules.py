# SPDX-License-Identifier: Apache-2.0
"""What is found in the samples of a mechanism: each fault by its kind and channels, nothing in sound logs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.offline.checks.mechanism_rules import mechanism_verdict
from mbse_ros.offline.checks.plausibility import Verdict
from mbse_ros.offline.log_samples import LogSamples
from mbse_ros.simulation.linkage import LinkagePlantSettings, SimulatedLinkage

START, DEGREES = 1_700_000_000_000_000_000, 180.0 / np.pi
ENCODER, GYRO = ('encoder',), ('crank_gyro',)
Change = Callable[[str, int, float], tuple[int, float] | None]     # channel, stamp from the start, value
SOUND = ('four_bar', 'five_bar', 'slider_crank', 'pendulum', 'three_rrr', 'spatial_crane')


@cache
def model_of(name: str) -> Model:
    return load_model(name, backend='vm')


@cache
def frames_of(name: str, rate: float = 100.0, seconds: float = 5.0) -> tuple[tuple[str, ...], tuple]:
    """Channels and frames of a simulated mechanism that moves."""
    settings = LinkagePlantSettings(rate=rate, amplitude=60.0 if name == 'four_bar' else 10.0)
    plant = SimulatedLinkage(model_of(name), settings=settings)
    return plant.channels, tuple(plant.frame() for _ in range(round(seconds * rate)))


def verdict(change: Change = lambda channel, t, value: (t, value), name: str = 'four_bar',
            **log: float) -> Verdict:
    """Of a log whose samples are changed; None: there is no such sample."""
    channels, frames = frames_of(name, **log)
    samples = [(channel, START + found[0], found[1]) for frame in frames
               for channel, value in zip(channels, frame.samples.tolist())
               if (found := change(channel, frame.stamp_ns, value)) is not None]
    return mechanism_verdict(LogSamples.of(samples), model_of(name), channels)


def found(change: Change, **log: object) -> list[tuple[str, tuple[str, ...]]]:
    """Kinds and channels."""
    return [(item.kind, item.channels) for item in verdict(change, **log).findings]


def scaled(name: str, factor: float) -> Change:
    return lambda channel, t, value: (t, factor * value if channel == name else value)


@pytest.mark.parametrize('name', SOUND)
def test_nothing_is_found_in_a_sound_log(name: str) -> None:
    assert verdict(name=name).findings == ()


@pytest.mark.parametrize('channel, factor, kind, blamed, remedy', [
    ('crank_gyro', DEGREES, 'unit', GYRO, 'multiply by 0.0174533: the values look like degrees'),
    ('crank_gyro', -DEGREES, 'unit', GYRO, 'multiply by -0.0174533: the values look like degrees, negated'),
    ('encoder', DEGREES, 'unit', ENCODER, 'multiply by 0.0174533: the values look like degrees'),
    ('crank_gyro', -1.0, 'negated', GYRO, 'multiply by -1: the values look negated')])
def test_units_and_signs_by_what_sensors_say_of_each_other(channel, factor, kind, blamed, remedy) -> None:
    item, = (item for item in verdict(scaled(channel, factor)).findings if item.kind == kind)
    assert (item.channels, item.remedy) == (blamed, remedy)


@pytest.mark.parametrize('name, wrong', [
    ('four_bar', 'encoder'), ('four_bar', 'crank_gyro'), ('four_bar', 'coupler_gyro'), ('five_bar', 'encoder_1'),
    ('five_bar', 'encoder_2'), ('five_bar', 'crank_gyro_1'), ('five_bar', 'coupler_gyro_1')])
def test_of_several_sensors_the_one_that_the_others_contradict_is_blamed(name: str, wrong: str) -> None:
    """Degrees that were converted twice, and a wrong sign."""
    for factor, kind, like in (1.0 / DEGREES, 'unit', 'like degrees that were conv'), (-1.0, 'negated', 'negated'):
        item, = verdict(scaled(wrong, factor), name=name).findings
        assert (item.kind, item.channels) == (kind, (wrong,))
        assert item.remedy.startswith(f'multiply by {1.0 / factor:.6g}: the values look {like}')


def test_of_two_sensors_the_one_with_another_noise_is_blamed() -> None:
    """Nothing else distinguishes an encoder whose degrees were converted twice from a gyro in degrees."""
    for wrong, factor in (('encoder', 1.0 / DEGREES), ('crank_gyro', DEGREES), ('crank_gyro', 1.0 / DEGREES)):
        item, = verdict(lambda channel, t, value: None if channel == 'coupler_gyro' else (
            t, value * factor if channel == wrong else value)).findings
        assert (item.kind, item.channels) == ('unit', (wrong,)), factor


@pytest.mark.parametrize('size', [0.3, -0.3, 2.0 * np.pi])
@pytest.mark.parametrize('at', [1.0, 2.5, 3.7])
def test_an_encoder_that_steps_where_a_gyro_sees_no_motion(size, at) -> None:
    item, = verdict(lambda channel, t, value: (t, value + size * (channel == 'encoder' and t > at * 1e9))).findings
    assert (item.kind, item.channels) == ('step', ENCODER)
    told, instant = float(item.seen.split()[2]), float(item.seen.partition('t = ')[2].split()[0])
    assert abs(told - size) < 0.1 and abs(instant - at) < 0.02


@pytest.mark.parametrize('rate, steps', [(30.0, False), (15.0, False), (2.0, True)])
def test_a_sudden_motion_that_gyros_see_is_no_step(rate: float, steps: bool) -> None:
    """Nor is one that a gyro neither shows nor contradicts."""
    def moved(channel: str, t: int, value: float) -> tuple[int, float]:
        now = 2.0e9 < t <= 2.01e9       # within a sample, by 0.3 rad
        return t, value + {'encoder': 0.3 * (t > 2.0e9), 'crank_gyro': rate * now}.get(channel, 0.0)
    assert (('step', ENCODER) in found(lambda channel, t, value: None if channel == 'coupler_gyro' else moved(
        channel, t, value))) is steps


def test_a_gain_that_is_no_unit_is_left_to_the_filter() -> None:
    assert found(scaled('crank_gyro', 0.85)) == []
    assert found(scaled('crank_gyro', 4.0)) == []


def test_a_sensor_of_another_motion_gets_no_unit() -> None:
    """Most of what a gyro reads is of another motion, at 5 Hz; of a little of it nothing is said."""
    def mixed(share: float) -> list[tuple[str, tuple[str, ...]]]:
        size = share * DEGREES * 1.4
        return [item for item in found(lambda channel, t, value: (
            t, DEGREES * value + size * np.sin(2e-9 * np.pi * 5.0 * t) if channel == 'crank_gyro' else value))
            if item[0] == 'unit']
    assert mixed(0.05) == [('unit', GYRO)] and mixed(1.5) == []


def test_the_second_encoder_of_a_mechanism_is_looked_at_too() -> None:
    """The piston of a slider-crank in mm: its pose follows from the crank."""
    assert ('unit', ('piston_position',)) in found(scaled('piston_position', 1000.0), name='slider_crank')


def test_an_inclinometer_by_strokes_that_move_it() -> None:
    assert found(scaled('boom_tilt', -1.0), name='excavator_arm') == [('negated', ('boom_tilt',))]


def test_a_stroke_where_the_cylinder_cannot_be() -> None:
    """The lift crane's, of 0 to 0.535 m, which goes forth and back."""
    def moved(gain: float, offset: float) -> list[tuple[str, tuple[str, ...]]]:
        def change(channel: str, t: int, value: float) -> tuple[int, float]:
            noise = np.random.default_rng(t).normal(0.0, 1e-4)
            return t, gain * (0.25 + 0.1 * np.sin(2e-9 * t) + noise) + offset if channel == 'lift_stroke' else value
        return [item for item in found(change, name='patu655_lift') if item[1] == ('lift_stroke',)]
    assert moved(1.0, 0.0) == moved(1.0, 0.19) == []        # to 0.54 m, within 2 % of the stroke
    assert moved(1.0, 0.21) == [('range', ('lift_stroke',))]
    assert moved(1000.0, 0.0) == [('unit', ('lift_stroke',))]


def test_encoders_of_which_the_mechanism_has_no_pose() -> None:
    """The three motors of a 3-RRR robot turned by a third of a turn each: its legs do not reach."""
    far = found(lambda channel, t, value: (t, value + 2.1 * (channel == 'encoder_a')), name='three_rrr')
    assert far == [('range', ('encoder_a', 'encoder_b', 'encoder_c'))]


def test_a_sensor_that_repeats_a_value_or_is_silent_now_and_then() -> None:
    stuck = found(lambda channel, t, value: (t, 0.1 if channel == 'crank_gyro' and t > 2e9 else value))
    assert ('stuck', GYRO) in stuck
    gap = found(lambda channel, t, value: None if channel == 'encoder' and 2e9 < t < 3.2e9 else (t, value))
    assert gap == [('gap', ENCODER)]


def test_a_slow_sensor_beside_a_fast_one_is_no_gap_and_slow_sensors_alone_are_too_rare() -> None:
    """Every 200 ms, which alone is more than linkage.coast_after."""
    def seldom(channel: str, t: int, value: float) -> tuple[int, float] | None:
        return (t, value) if t % 200_000_000 == 0 else None
    assert found(lambda channel, t, value: seldom(channel, t, value) if channel == 'encoder' else (t, value)) == []
    (kind, channels), = found(seldom, seconds=10.0)
    assert kind == 'rate' and set(channels) == set(frames_of('four_bar')[0])
    for interval, kinds in ((100_000_000, []), (110_000_000, ['rate'])):       # just inside, and just outside
        assert [kind for kind, _ in found(lambda channel, t, value, interval=interval: (
            (t, value) if t % interval == 0 else None), seconds=10.0)] == kinds


def test_stamps() -> None:
    assert ('unstamped', GYRO) in found(lambda channel, t, value: (-START if channel == 'crank_gyro' else t, value))
    later = 3_600_000_000_000
    assert ('clock', ENCODER) in found(lambda channel, t, value: (t + later * (channel == 'encoder'), value))


def test_what_cannot_be_looked_at_is_said() -> None:
    without = verdict(lambda channel, t, value: None if channel == 'encoder' else (t, value))
    assert without.unchecked == ('speeds against positions, as no sound encoder measures theta',)
    driven = verdict(name='four_bar_adams_driven')
    assert driven.findings == () and driven.unchecked == ('speeds against positions, as all coordinates are driven',)


def test_a_fast_motion_that_is_sampled_rarely_is_not_noise() -> None:
    """A gyro of the four-bar with a spring, which swings within three samples at 20 Hz; of one at 50 Hz noise shows."""
    assert found(lambda channel, t, value: (t, value), name='four_bar_spring', rate=20.0, seconds=6.0) == []

    def noisy(channel: str, t: int, value: float) -> tuple[int, float]:
        return t, value + (0.3 * np.random.default_rng(t).normal() if channel == 'crank_gyro' else 0.0)
    assert ('noise', GYRO) in found(noisy, rate=50.0)


def test_an_encoder_alone_that_is_turns_away_is_in_degrees() -> None:
    """Its noise says so, too; one in radians that turns as often is sound, or noisy, as one that does not turn."""
    def alone(factor: float, more: float = 0.0, times: float = 0.0) -> list[tuple[str, tuple[str, ...]]]:
        stddev = times * model_of('four_bar').description.sensors['encoder'].stddev
        return found(lambda channel, t, value: (
            t, factor * (value + more * t * 1e-9 + stddev * np.random.default_rng(t).normal()))
            if channel == 'encoder' else None)
    assert alone(DEGREES) == [('unit', ENCODER)]
    assert alone(1.0, 20.0) == []
    assert alone(1.0, 20.0, 20.0) == alone(0.1, 0.0, 10.0 * DEGREES) == [('noise', ENCODER)]
