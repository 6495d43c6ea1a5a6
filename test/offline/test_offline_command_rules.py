# SPDX-License-Identifier: Apache-2.0
"""Commands against the motion of a piston: a motion just inside and just outside of each number of the rule."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from core_support import crane

from mbse_ros.offline.checks.command_rules import command_findings, seldom_findings
from mbse_ros.offline.log_samples import Means, Series

COMMAND, STROKE = 'command/lift_valve', 'position/lift'
LIMIT = 10.0            # V, of the file
COUNT = 400             # instants, of 0.05 s; the piston is known at each second one


class Balance:
    """Stands for the balance of forces: where the piston is (k,), and how badly it fits as it is and reversed."""

    unmeasured = ()

    def __init__(self, piston: np.ndarray, worst: tuple[float, float] | None = None) -> None:
        self.piston, self.worst = piston, list(worst or ())

    def pistons(self, means: Means) -> np.ndarray:
        return np.where(np.arange(COUNT) % 2 == 0, self.piston, np.nan)[:, None]

    def fit(self, means: Means) -> SimpleNamespace | None:
        return SimpleNamespace(worst=self.worst.pop(0)) if self.worst else None


def found(speed: np.ndarray | float, command: np.ndarray | float, worst: tuple[float, float] | None = None
          ) -> list[tuple[str, tuple[str, ...]]]:
    """Kinds and channels of findings; speeds, m/s, over each instant, and commands, V."""
    piston = 0.1 + np.concatenate([[0.0], np.cumsum(np.broadcast_to(speed, COUNT) * 0.05)[:-1]])
    t = 0.05 * np.arange(COUNT)
    means = Means(t, np.zeros(COUNT), {COMMAND: np.broadcast_to(command, COUNT).astype(float), STROKE: piston})
    return [(item.kind, item.channels) for item in command_findings(crane(), Balance(piston, worst), means, set())]


def first(count: int, value: float, rest: float = 0.0) -> np.ndarray:
    """A value at the first so many instants."""
    return np.where(np.arange(COUNT) < count, value, rest)


AGAINST = [('reversed', (STROKE, COMMAND))]


@pytest.mark.parametrize('inside, outside', [
    (found(0.0101, -5.0), found(0.0099, -5.0)),                                     # 1 cm/s
    (found(first(20, 0.05), -5.0), found(first(18, 0.05), -5.0)),                   # ten instants
    (found(0.01001, first(56, 5.0, -5.0)), found(0.01001, first(64, 5.0, -5.0))),       # 15 % go with the command
    (found(first(390, 0.02), first(390, -3.1, 10.0)), found(first(390, 0.02), first(390, -2.9, 10.0)))])    # 30 %: open
def test_a_piston_that_moves_against_its_command(inside: list[object], outside: list[object]) -> None:
    assert inside == AGAINST and outside == []


@pytest.mark.parametrize('worst, channels', [((1.51, 1.0), (STROKE,)), ((1.49, 1.0), (STROKE, COMMAND)),
                                             ((1.0, 1.51), (COMMAND,)), ((1.0, 1.49), (STROKE, COMMAND))])
def test_which_of_the_two_is_reversed(worst: tuple[float, float], channels: tuple[str, ...]) -> None:
    """The one whose remedy makes the forces balance 1.5 times as well."""
    assert found(0.05, -5.0, worst) == [('reversed', channels)]


def swing(amplitude: float) -> np.ndarray:
    """Speeds to and fro by an amplitude, m, each in a second, after a second of rest."""
    return np.where(np.arange(COUNT) < 20, 0.0, amplitude * (-1.0) ** (np.arange(COUNT) // 20 + 1))


@pytest.mark.parametrize('inside, outside', [
    (found(0.05, 0.19), found(0.05, 0.21)),                 # 2 % of the limit: the valve is closed
    (found(0.0165, 0.0), found(0.0155, 0.0)),               # 1.5 % of the stroke, 8.0 mm, in half a second
    (found(swing(0.0225), 0.0), found(swing(0.0205), 0.0)),         # 4 % of the stroke, 21.4 mm, since it is closed
    (found(0.05, first(140, 0.0, 5.0)), found(0.05, first(110, 0.0, 5.0)))])        # 30 % of the motion
def test_a_piston_that_moves_while_its_valve_is_closed(inside: list[object], outside: list[object]) -> None:
    assert inside == [('command', (COMMAND,))] and outside == []


@pytest.mark.parametrize('count, command, is_found', [(6, 15.1, True), (6, 14.9, False), (5, 15.1, False)])
def test_a_command_in_another_unit(count: int, command: float, is_found: bool) -> None:
    """1.5 times the limit, for 0.3 s."""
    assert found(0.0, first(count, command)) == [('range', (COMMAND,))] * is_found


def ramps(every: float, volts: float, steps: int, ramps_: int = 3, sent: float = 0.0) -> Series:
    """A command that goes up by so many volts each so many s, a few times, and back at once after a second; messages
    come as often, or each ``sent`` s."""
    one = [*(k * volts for k in range(1, steps + 1)), *[0.0] * round(1.0 / every)]
    values, t = np.tile(one, ramps_), every * np.arange(ramps_ * len(one))
    if sent:
        times = np.arange(0.0, t[-1], sent)
        return Series(times, values[np.searchsorted(t, times + 1e-9, 'right') - 1])
    return Series(t, values)


def seldom(command: Series, sensors: float = 0.01) -> bool:
    """Whether it is called too rare beside sensors that come each so many s."""
    t = np.arange(0.0, 10.0, sensors)
    found_ = seldom_findings(crane(), {COMMAND: command, **{name: Series(t, t) for name in crane().channels}})
    assert all((item.kind, item.channels) == ('rate', (COMMAND,)) for item in found_)
    return bool(found_)


@pytest.mark.parametrize('inside, outside', [
    (seldom(ramps(0.026, 1.5, 6), 0.005), seldom(ramps(0.024, 1.5, 6), 0.005)),     # 25 ms
    (seldom(ramps(0.1, 1.5, 6), 0.039), seldom(ramps(0.1, 1.5, 6), 0.041)),         # 2.5 times the sensors' interval
    (seldom(ramps(0.05, 1.01, 6)), seldom(ramps(0.05, 0.99, 6))),                   # 10 % of the limit
    (seldom(ramps(0.49, 1.5, 4)), seldom(ramps(0.51, 1.5, 4))),                     # half a second: it is switched
    (seldom(ramps(0.1, 1.5, 5, 1)), seldom(ramps(0.1, 1.5, 4, 1))),                 # three changes
    (seldom(ramps(0.1, 1.5, 6, 3, 0.01)), seldom(ramps(0.02, 1.5, 6, 3, 0.01)))])   # sent again and again at 100 Hz
def test_a_command_that_changes_too_rarely(inside: bool, outside: bool) -> None:
    assert inside and not outside


def test_a_valve_that_is_switched_has_no_ramp() -> None:
    values = np.tile([0.0] * 20 + [8.0] * 20 + [0.0] * 20 + [-8.0] * 20, 4)
    assert not seldom(Series(0.02 * np.arange(len(values)), values))
