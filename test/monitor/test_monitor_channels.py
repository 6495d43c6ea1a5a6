# SPDX-License-Identifier: Apache-2.0
"""What a channel's samples say of its sensor, and where a state can be: on both sides of each number."""

from __future__ import annotations

from collections.abc import Iterable

import double_pendulum_by_hand as by_hand
import numpy as np
import pytest
from machine_variants import changed

from mbse_ros.dynamics.model import load_model
from mbse_ros.filters.parts.problem import problem
from mbse_ros.monitor.bounds import Bounds, with_room
from mbse_ros.monitor.channels import ChannelMonitor
from mbse_ros.monitor.mechanism import ObservedCoordinates
from mbse_ros.monitor.steps import JumpCheck, common_step
from mbse_ros.monitor.units import UnitRatio
from mbse_ros.streams.linkage import LinkageSettings
from mbse_ros.streams.stages import ObserverStage

SETTINGS = LinkageSettings(coast_after=0.1, lost_after=0.5, constant_after=1.0)
STDDEV = 0.01


def fed(watch: ChannelMonitor, values: Iterable[float], dt: float = 0.05, square: float = 0.0, used: bool = True,
        predicted: Iterable[float] | None = None) -> ChannelMonitor:
    """Samples with a squared normalised innovation each, or with predictions."""
    values = np.array(list(values), dtype=float)
    offsets = np.full(values.size, np.sqrt(square)) if predicted is None else values - np.array(list(predicted))
    for k, (value, offset) in enumerate(zip(values.tolist(), offsets.tolist())):
        watch.take(k * dt, [value], [offset], [1.0], [used], [STDDEV], SETTINGS)
    return watch


def one() -> ChannelMonitor:
    """A channel that other sensors see, too."""
    return ChannelMonitor(('a',), jumps=JumpCheck((False,)), units=(UnitRatio(),))


@pytest.mark.parametrize('dt, inside, outside', [(0.1, 0.51, 0.49), (0.01, 0.11, 0.09)])
def test_a_sensor_that_is_silent(dt: float, inside: float, outside: float) -> None:
    """For five of its periods, and for coast_after."""
    watch = fed(ChannelMonitor(('a',)), [0.0, 1.0, 2.0], dt)
    assert watch.silent(2 * dt + inside, SETTINGS) == ['a'] and watch.silent(2 * dt + outside, SETTINGS) == []


@pytest.mark.parametrize('moved, constant', [(5.1, True), (4.9, False)])
@pytest.mark.parametrize('step', [0.0, 0.03])
def test_a_value_that_stays_while_the_prediction_moves(moved: float, constant: bool, step: float) -> None:
    """By five deviations and steps."""
    values = [0.0, step, *[2 * step] * 30]
    way = np.linspace(0.0, moved * (STDDEV + step), 30)
    watch = fed(ChannelMonitor(('a',)), values, predicted=[0.0, step, *2 * step + way])
    assert watch.constant == [constant]


@pytest.mark.parametrize('grain, constant', [(0.051, True), (0.049, False)])
def test_a_sensor_with_noise_does_not_repeat_itself(grain: float, constant: bool) -> None:
    """Its second differences before were a twentieth of the stated deviation, by their median."""
    noise = np.random.default_rng(3).standard_normal(9)
    noise *= grain * STDDEV / np.median(np.abs(np.diff(noise, 2)))
    assert fed(ChannelMonitor(('a',)), [*noise, *[noise[-1]] * 30]).constant == [constant]


@pytest.mark.parametrize('resolution, constant', [((), True), ((3.0 * STDDEV,), False)])
def test_a_sensor_whose_resolution_is_known_may_repeat_itself(resolution: tuple[float, ...], constant: bool) -> None:
    """Values between two of its samples are no multiples of it."""
    values = 3.0 * STDDEV * np.array([0.0, 1.0, 0.3137, 1.0, 0.7071, 2.0, 1.2247, 1.0, 0.4142])
    watch = ChannelMonitor(('a',), resolution=resolution)
    for k, value in enumerate([*values, *[values[-1]] * 30]):
        watch.take(0.1 * k, [value], [0.0], [1.0], [True], [STDDEV], SETTINGS)
    assert watch.constant == [constant]


def test_the_observer_of_a_machine_takes_the_resolution_of_its_file() -> None:
    machine = changed('patu655_lift', {'sensors/lift_rod/resolution': '0.2 MPa'})
    steps = dict(zip(machine.channels, ObserverStage(machine)._monitor.watch.step))
    assert steps['pressure/lift_rod'] == pytest.approx(2e5) and np.isnan(steps['pressure/lift_piston'])


def test_a_step_of_the_values_is_no_finer_than_a_hundredth_of_the_noise() -> None:
    assert [common_step(0.05, change, 1e-3) for change in (0.1, 0.125)] == pytest.approx([0.05, 0.025])
    for step, found in ((1.02, 1.02), (0.98, 0.0)):
        assert fed(ChannelMonitor(('a',)), [0.0, step * 0.01 * STDDEV]).step == [pytest.approx(found * 0.01 * STDDEV)]


@pytest.mark.parametrize('count, dt, square, misfit', [
    (40, 0.04, 2.85, True), (40, 0.04, 2.83, False),        # by the median 2.5 deviations
    (30, 0.04, 2.9, True), (29, 0.04, 2.9, False),          # of 30 samples
    (102, 0.01, 2.9, True), (100, 0.01, 2.9, False)])       # and of twice lost_after
def test_innovations_that_do_not_fit(count: int, dt: float, square: float, misfit: bool) -> None:
    assert bool(fed(one(), range(count), dt, square).innovations.misfits(SETTINGS.lost_after)) is misfit


def test_innovations_that_are_far_too_small() -> None:
    """Three tenths of what they should be."""
    assert fed(one(), range(40), square=0.29).innovations.cautious()
    assert not fed(one(), range(40), square=0.31).innovations.cautious()


def test_three_samples_that_are_refused() -> None:
    for count, doubted in ((3, [0]), (2, [])):
        assert fed(one(), range(count), 0.2, 20.0, used=False).doubted(0.5, (count - 1) * 0.2) == doubted


def jumped(*steps: float, square: float = 16.0) -> float:
    """How far a channel has jumped after these steps."""
    watch = fed(one(), np.cumsum([0.0, *steps]), square=square)
    assert watch.jumps is not None
    return watch.jumps.jumped[0]


REST = [0.0] * 4


@pytest.mark.parametrize('inside, outside', [
    (jumped(*REST, 0.081, *REST), jumped(*REST, 0.079, *REST)),                         # 8 deviations
    (jumped(*REST, 0.2, *REST), jumped(*REST, 0.2, *REST[1:])),                         # four samples after it
    (jumped(*REST, 0.2, *REST, square=15.2), jumped(*REST, 0.2, *REST, square=15.0)),
    (jumped(*[1, -1] * 2, 11.2, *[1, -1] * 2), jumped(*[1, -1] * 2, 10.9, *[1, -1] * 2)),       # 5 times changes
    (jumped(*REST, 9.0, *REST, *REST, -8.15, *REST), jumped(*REST, 9.0, *REST, *REST, -8.25, *REST))])      # back: 10 %
def test_a_step_that_is_no_motion(inside: float, outside: float) -> None:
    assert inside and not outside


def test_where_a_joint_can_be() -> None:
    """Beyond its limits by a tenth of what lies between them, and by the noise of a sample."""
    assert with_room(0.0, 1.0, 0.0) == pytest.approx((-0.1, 1.1))
    assert with_room(0.0, 1.0, 0.05) == pytest.approx((-0.15, 1.15))


@pytest.mark.parametrize('t, moved, speed, found', [
    (0.0, 4.9, 0.0, ''), (0.0, 5.1, 0.0, 'cannot have reached'),            # rad from where it was known last
    (2.0, 10.9, 0.0, ''), (2.0, 11.1, 0.0, 'cannot have reached'),          # and three times its speed, here 1 rad/s
    (0.0, 0.0, 239.0, ''), (0.0, 0.0, 241.0, 'moves at')])
def test_where_a_free_joint_can_be(t: float, moved: float, speed: float, found: str) -> None:
    model = by_hand.model()
    bounds, q = Bounds(model), np.zeros(len(model.names))
    bounds.know(0.0, q, q)
    at, rate = q.copy(), q.copy()
    at[model.z[0]], rate[model.z[0]] = moved, speed
    said = bounds.broken(t, at.tolist(), rate.tolist(), 1.0)
    assert found in said and bool(found) is bool(said)


@pytest.mark.parametrize('sensors, shown, alone', [
    (('encoder_1',), [True, False], [True]), (('crank_gyro_2',), [False, True], [True]),
    (('coupler_gyro_1',), [False, False], [True]), (('encoder_1', 'coupler_gyro_1'), [True, True], [True, True]),
    (('encoder_1', 'crank_gyro_1'), [True, False], [True, False])])
def test_what_encoders_and_gyros_see_of_two_coordinates(
        sensors: tuple[str, ...], shown: list[bool], alone: list[bool]) -> None:
    """A coupler turns with both cranks; who knows a position over time knows its speed."""
    model = load_model('five_bar', backend='vm')
    seen, start = ObservedCoordinates(problem(model, sensors)), model.start.q
    rows = seen.rows(start, np.zeros(2))
    assert seen.shown(start).tolist() == shown
    assert [seen.alone(rows, k, range(len(sensors))) for k in range(len(sensors))] == alone
