# SPDX-License-Identifier: Apache-2.0
"""Findings on a whole log: on both sides of each share, time and misfit that decides."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from core_support import crane

from mbse_ros.machine import Machine
from mbse_ros.monitor.faults import NONE, Fault
from mbse_ros.offline.checks.log_verdict import fit_lines, implausible_lines, stroke_lines
from mbse_ros.offline.checks.plausibility import _mass_findings, _wrong_way
from mbse_ros.offline.log_samples import LogSamples, Means
from mbse_ros.streams.records import PayloadStatus

STROKE, PISTON, ROD = 'position/lift', 'pressure/lift_piston', 'pressure/lift_rod'
UPDATING, WRONG, CONTACT = PayloadStatus.UPDATING, PayloadStatus.IMPLAUSIBLE, PayloadStatus.CONTACT


@pytest.mark.parametrize('position, count', [(0.5402, 0), (0.5405, 1), (-0.0052, 0), (-0.0055, 1)])
def test_positions_outside_the_stroke(position: float, count: int) -> None:
    """By 1 % of 0.535 m."""
    assert len(stroke_lines(LogSamples.of([(STROKE, 0, 0.2), (STROKE, 1, position)]), crane())) == count


class Steps:
    """Of a log of 1000: how many samples of the stroke were far from their prediction, and how far one was."""

    def __init__(self, far: int, worst: float) -> None:
        self.last = SimpleNamespace(state=SimpleNamespace(channels=(STROKE,)))
        self.far, self.worst, self.worst_at, self.elapsed = [far], [worst], [0], np.zeros(1000)

    def __len__(self) -> int:
        return 1000


@pytest.mark.parametrize('far, worst, count', [(1, 20.1, 1), (1, 19.9, 0), (21, 9.0, 1), (20, 9.0, 0)])
def test_samples_far_from_their_prediction(far: int, worst: float, count: int) -> None:
    """One by 20 deviations, or 2 % of them."""
    assert len(fit_lines(Steps(far, worst))) == count       # type: ignore[arg-type]


def implausible(*parts: tuple[float, PayloadStatus, Fault]) -> bool:
    """Whether masses of a log are said to be wrong: for so many s a status and its faults, in segments of 0.01 s."""
    rows = [(status, fault) for seconds, status, fault in parts for _ in range(round(100 * seconds))]
    status, faults = (np.array(column, dtype=np.int64) for column in zip(*rows))
    return bool(implausible_lines(SimpleNamespace(      # type: ignore[arg-type]
        status=status, faults=faults, length_ns=np.full(len(rows), 10_000_000), reason=np.zeros(len(rows), int),
        reasons=['why'])))


def test_masses_that_are_implausible_for_a_while() -> None:
    """A second, and a tenth of the time of weighing; where the machine digs 80 % of it, of what is not trusted yet."""
    for wrong, well, found in ((1.01, 5.0, True), (0.99, 5.0, False), (2.05, 18.0, True), (1.95, 18.0, False)):
        assert implausible((wrong, WRONG, Fault.LIMITS), (well, UPDATING, NONE)) is found
        assert implausible((wrong, WRONG, Fault.NOT_TRUSTED), (well, UPDATING, NONE)) is found
    for wrong, found in ((8.1, True), (7.9, False)):
        assert implausible((wrong, WRONG, Fault.NOT_TRUSTED), (10.0 - wrong, UPDATING, NONE),
                           (1.0, CONTACT, Fault.OUTSIDE_FORCE)) is found


class Balance:
    """Stands for the balance of forces: its misfit as samples are, and with the position alone reversed."""

    def __init__(self, now: float, then: float) -> None:
        self.machine, self.now, self.then = crane(), now, then

    def fit(self, means: Means) -> SimpleNamespace:
        changed = [name for name, values in MEANS.values.items() if not np.array_equal(values, means.values[name])]
        worst = self.then if changed == [STROKE] else self.now
        return SimpleNamespace(misfit=np.array([worst]), worst=worst, mass=np.zeros(1))


MEANS = Means(np.zeros(3), np.zeros(3), {STROKE: np.array([0.1, 0.2, 0.3]), PISTON: np.full(3, 4e6),
                                         ROD: np.full(3, 3e6)})


@pytest.mark.parametrize('now, then, found', [
    (1.31, 0.6, True), (1.29, 0.6, False),      # forces do not balance
    (3.0, 1.09, True), (3.0, 1.11, False),      # and do with the remedy ...
    (2.0, 0.99, True), (2.0, 1.01, False)])     # ... twice as well
def test_a_position_that_is_reversed(now: float, then: float, found: bool) -> None:
    fit = Balance(now, then)
    assert [remedy.channels for remedy in _wrong_way(fit, MEANS, fit.fit(MEANS))] == [(STROKE,)] * found


@pytest.mark.parametrize('outside, share, worst, found', [
    (310.0, 0.81, 1.31, True), (290.0, 0.81, 1.31, False),      # 30 % of the limits, 0 to 1000 kg
    (310.0, 0.79, 1.31, False), (310.0, 0.81, 1.29, False)])
def test_a_load_that_no_limits_allow(outside: float, share: float, worst: float, found: bool) -> None:
    machine: Machine = crane()
    mass = np.where(np.arange(100) < 100 * share, 1000.0 + outside, 200.0)
    assert bool(_mass_findings(machine, SimpleNamespace(mass=mass, worst=worst))) is found      # type: ignore[arg-type]
