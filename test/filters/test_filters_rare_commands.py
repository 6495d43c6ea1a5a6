# SPDX-License-Identifier: Apache-2.0
"""Commands that are rarer than the sensors: both sides of each number, and the mass of a machine with them."""

from __future__ import annotations

import numpy as np
import pytest
from core_support import crane
from plausibility_logs import frames_of, machine_of

from mbse_ros.filters.between_samples import RareCommands
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.monitor.faults import Fault
from mbse_ros.streams.interpolation import InterpolationSettings
from mbse_ros.streams.pipeline import Output, Pipeline
from mbse_ros.streams.records import PayloadStatus

DT, SENSORS = 1e-3, 10      # s, steps from sample to sample
FEW = 250           # frames of an excavator that has begun to move, with commands that are seen to be rare


def rare(levels: list[float], every: int, sensors: int = SENSORS, first: float = 0.0) -> bool:
    """Whether commands, V, each held for so many steps, are taken to be rare, by segments of a sensor's period."""
    commands, column = RareCommands(crane()), np.repeat([first, *levels], every)[:, None]
    repeats = np.full(3, float(sensors))
    return [commands.take(column[k:k + sensors], DT, repeats) for k in range(0, len(column), sensors)][-1] is not None


@pytest.mark.parametrize('inside, outside', [
    (rare([2.0, 4.0, 4.0], 26, 5), rare([2.0, 4.0, 4.0], 25, 5)),                       # 25 ms
    (rare([2.0, 4.0, 4.0], 52, 20), rare([2.0, 4.0, 4.0], 48, 20)),    # 2.5 times the sensors' interval
    (rare([2.0, 3.01, 3.01], 100), rare([2.0, 2.99, 2.99], 100)),                       # a tenth of the limit, 10 V
    (rare([2.0, 4.0, 4.0], 490), rare([2.0, 4.0, 4.0], 510)),                           # half a second
    (rare([8.0, 6.0, 6.0], 100, first=9.9), rare([8.0, 9.5, 9.5], 100, first=9.9)),     # one way
    (rare([-0.21, -8.0, -8.0], 100, first=8.0), rare([-0.19, -8.0, -8.0], 100, first=8.0))])    # from closed: 2 %
def test_which_steps_are_those_of_a_rare_command(inside: bool, outside: bool) -> None:
    assert inside and not outside


def test_it_is_remembered_for_half_a_minute_and_forgotten_at_a_start() -> None:
    commands, repeats = RareCommands(crane()), np.full(3, 10.0)
    for volts in (0.0, 2.0):
        assert commands.take(np.full((100, 1), volts), DT, repeats) is None
    seen = np.concatenate([np.full((40, 1), 2.0), np.full((60, 1), 4.0)])
    np.testing.assert_array_equal(commands.take(seen, DT, repeats), np.arange(100)[:, None] >= 40)
    last = commands.take(np.full((30_000, 1), 4.0), DT, repeats)
    np.testing.assert_array_equal(last, np.arange(30_000)[:, None] <= 30_000 - 60)
    assert commands.take(np.full((100, 1), 4.0), DT, repeats) is None
    commands.take(np.full((100, 1), 6.0), DT, repeats)
    commands.take(np.full((100, 1), 8.0), DT, repeats)
    commands.reset()
    assert commands.take(np.full((100, 1), 9.5), DT, repeats) is None


@pytest.mark.parametrize('step', [0.5e-3, 1e-3, 2e-3, 5e-3])
def test_segments_of_any_length_show_the_same_steps(step: float) -> None:
    """0.1 s between changes, and 31 s in which it is forgotten."""
    column = np.repeat([2.0, 4.0, 6.0, 0.0, -3.0, -6.0], np.round(np.array([0.1, 0.1, 31.0, 0.1, 0.1, 0.1]) / step
                                                                  ).astype(int))[:, None]
    found = []
    for length in (round(10e-3 / step), round(0.1 / step), len(column)):
        commands, rare = RareCommands(crane()), np.zeros((len(column), 1), dtype=bool)
        for k in range(0, len(column), length):
            taken = commands.take(column[k:k + length], step, np.full(3, 10e-3 / step))
            rare[k:k + length] = False if taken is None else taken
        found.append(rare)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert np.count_nonzero(np.diff(found[0][:, 0])) == 3


def test_each_valve_has_its_own_steps() -> None:
    commands, volts = RareCommands(machine_of('patu655')), np.zeros((300, 2))
    volts[:, 0], volts[:, 1] = np.repeat([2.0, 4.0, 6.0], 100), 0.1 * np.repeat(np.arange(30) % 2, 10)
    np.testing.assert_array_equal(commands.take(volts, DT, np.full(3, 10.0)), np.arange(300)[:, None] >= 200)


def through(name: str, load: float, every: int, step: float = DT, segment: float = 0.0, tuned: int = -1,
            before: Pipeline | None = None, count: int | None = None) -> list[Output]:
    """A machine with ``every`` so many commands; tuning is set, as it was, at the frame ``tuned``."""
    pipeline = before or Pipeline(machine_of(name), InterpolationSettings(step=step), segment=segment)
    outputs: list[Output] = []
    for k, frame in enumerate(frames_of(name, load)[:count]):
        if k == tuned:
            pipeline.observer.configure(ObserverSettings())
        commands = frame.commands.items() if k % every == 0 else ()
        for channel, value in (*frame.samples.items(), *commands):
            outputs += pipeline.add(channel, frame.stamp_ns, value)
    return [*outputs, *pipeline.flush()]


def states(outputs: list[Output]) -> np.ndarray:
    """At all steps, with what each measures of the mass."""
    return np.concatenate([np.hstack([output.state.mean, output.state.weighing]) for output in outputs])


@pytest.mark.parametrize('step, segment', [(0.5e-3, 0.1), (2e-3, 0.3)])
def test_joined_segments_give_the_same_states(step: float, segment: float) -> None:
    """To the bit, from the step on at which commands are seen to be rare."""
    np.testing.assert_array_equal(*(states(through('zx200', 400.0, 8, step, joined, count=FEW))
                                    for joined in (segment, 0.0)))


def test_the_same_tuning_once_more_forgets_no_mass() -> None:
    np.testing.assert_array_equal(*(states(through('zx200', 400.0, 8, tuned=tuned, count=FEW)) for tuned in (200, -1)))


def test_rare_commands_are_forgotten_with_the_state() -> None:
    again = []
    for every in (1, 8):
        pipeline = Pipeline(machine_of('zx200'))
        through('zx200', 400.0, every, before=pipeline, count=FEW)
        pipeline.interpolator.reset()
        pipeline.observer.reset()
        again.append(states(through('zx200', 400.0, 1, before=pipeline, count=FEW)))
    np.testing.assert_array_equal(again[0], again[1])


@pytest.mark.parametrize('name, load, every', [('patu655', 100.0, 1), ('patu655', 100.0, 10), ('zx200', 400.0, 8)])
def test_the_mass_of_a_machine_with_rare_commands(name: str, load: float, every: int) -> None:
    """At 10 Hz it was implausible for half of the time, or outside its interval, and the file was blamed."""
    payloads = [output.payload for output in through(name, load, every)]
    updating = [p for p in payloads if p.status is PayloadStatus.UPDATING]
    assert len(updating) > 0.35 * len(payloads) and all(p.lower < load < p.upper for p in updating)
    alarms = Fault.CONTRADICTION | Fault.LIMITS | Fault.NOT_TRUSTED | Fault.OUTSIDE_FORCE | Fault.SURPRISE
    assert not any(p.faults & alarms for p in payloads)
