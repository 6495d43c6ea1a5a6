# SPDX-License-Identifier: Apache-2.0
"""Commands that are held while the valves move on: both sides of each number, and the mass of a machine with them."""

from __future__ import annotations

import numpy as np
import pytest
from core_support import crane
from plausibility_logs import frames_of, machine_of

from mbse_ros.estimators.held_commands import HeldCommands
from mbse_ros.monitor.faults import Fault
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import PayloadStatus

DT, SENSORS = 1e-3, 10      # s, steps from sample to sample


def rare(levels: list[float], every: int, sensors: int = SENSORS, first: float = 0.0) -> bool:
    """Whether commands, V, each held for so many steps, are taken to be rare, by segments of a sensor's period."""
    held, column = HeldCommands(crane()), np.repeat([first, *levels], every)[:, None]
    repeats = np.full(3, float(sensors))
    return [held.take(column[k:k + sensors], DT, repeats) for k in range(0, len(column), sensors)][-1]


@pytest.mark.parametrize('inside, outside', [
    (rare([2.0, 4.0, 4.0], 26), rare([2.0, 4.0, 4.0], 25)),                             # 25 ms
    (rare([2.0, 4.0, 4.0], 52, 20), rare([2.0, 4.0, 4.0], 48, 20)),    # 2.5 times the sensors' interval
    (rare([2.0, 3.01, 3.01], 100), rare([2.0, 2.99, 2.99], 100)),                       # a tenth of the limit, 10 V
    (rare([2.0, 4.0, 4.0], 490), rare([2.0, 4.0, 4.0], 510)),                           # half a second
    (rare([8.0, 6.0, 6.0], 100, first=9.9), rare([8.0, 9.5, 9.5], 100, first=9.9)),     # one way
    (rare([-0.21, -8.0, -8.0], 100, first=8.0), rare([-0.19, -8.0, -8.0], 100, first=8.0))])    # from closed: 2 %
def test_which_steps_are_those_of_a_rare_command(inside: bool, outside: bool) -> None:
    assert inside and not outside


def test_it_is_remembered_for_half_a_minute_and_forgotten_at_a_start() -> None:
    held, repeats = HeldCommands(crane()), np.full(3, 10.0)
    for volts in (0.0, 2.0, 4.0):
        held.take(np.full((100, 1), volts), DT, repeats)
    calm = np.full((10_000, 1), 4.0)
    assert held.take(calm, DT, repeats) and held.take(calm, DT, repeats) and held.take(calm, DT, repeats)
    assert not held.take(calm, DT, repeats)
    held.reset()
    assert not held.take(calm, DT, repeats)


@pytest.mark.parametrize('name, load, every', [('patu655', 100.0, 1), ('patu655', 100.0, 10), ('zx200', 400.0, 8)])
def test_the_mass_of_a_machine_with_rare_commands(name: str, load: float, every: int) -> None:
    """At 10 Hz it was implausible for half of the time, or outside its interval, and the file was blamed."""
    pipeline, outputs = Pipeline(machine_of(name)), []
    for k, frame in enumerate(frames_of(name, load)):
        commands = frame.commands.items() if k % every == 0 else ()
        for channel, value in (*frame.samples.items(), *commands):
            outputs += pipeline.add(channel, frame.stamp_ns, value)
    payloads = [output.payload for output in (*outputs, *pipeline.flush())]
    updating = [p for p in payloads if p.status is PayloadStatus.UPDATING]
    assert len(updating) > 0.35 * len(payloads) and all(p.lower < load < p.upper for p in updating)
    alarms = Fault.CONTRADICTION | Fault.LIMITS | Fault.NOT_TRUSTED | Fault.OUTSIDE_FORCE | Fault.SURPRISE
    assert not any(p.faults & alarms for p in payloads)
