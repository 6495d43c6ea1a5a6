# SPDX-License-Identifier: Apache-2.0
"""A piston that is pushed against the end of its stroke: the stop carries what it likes, the others weigh on."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from core_support import feed

from mbse_ros.machine import load_machine
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import PayloadStatus

LOAD = 300.0
# Commands, V, of lift and tilt, and for how many hundredths of a second.
MOVES = ((0, 0, 50), (4, 0, 150), (-6, 0, 350), (-6, 0, 100), (-3, 3, 150), (0, -3, 150), (-1, 3, 150), (4, 0, 150))
AT_THE_STOP = 5.5, 11.0     # s, in which lift is at its stop


@lru_cache(maxsize=1)
def frames() -> list[SensorFrame]:
    """The boom goes down into its stop, is pushed against it, and the tilt boom moves meanwhile."""
    machine = load_machine('patu655', 'orifice')
    cycle = WorkCycle({'lift': 0.2, 'tilt': 0.3}, (Move(0.0, 1.0),))
    crane = SimulatedCrane(machine, LOAD, 1, cycle, plant=plant_of(machine))
    return [crane.frame(dict(zip(machine.valves, (lift, tilt)))) for lift, tilt, count in MOVES for _ in range(count)]


def test_a_simulated_piston_does_not_go_through_the_end() -> None:
    """Steel gives way by the force over its stiffness: 290 kN with the whole supply behind the piston."""
    lift = np.array([frame.position[0] for frame in frames()])
    assert -0.004 < lift.min() < 1e-3
    assert lift[round(100 * AT_THE_STOP[0]):round(100 * AT_THE_STOP[1])].max() < 1e-3


@pytest.mark.parametrize('valve', ['orifice', 'unknown'])
def test_the_mass_is_right_while_a_piston_is_at_its_stop(valve: str) -> None:
    """Taken with the force of the piston that the stop carries, it was lost for seconds, as if there was contact."""
    outputs = feed(Pipeline(load_machine('patu655', valve)), frames())
    start, end = (outputs[0].payload.stamp_ns + round(1e9 * t) for t in AT_THE_STOP)
    there = [output.payload for output in outputs if start < output.payload.stamp_ns < end]
    assert len(there) > 500
    assert {payload.status for payload in there} <= {PayloadStatus.UPDATING, PayloadStatus.TOO_SLOW}
    assert sum(payload.status is PayloadStatus.UPDATING for payload in there) > 20
    assert all(payload.lower < LOAD < payload.upper and abs(payload.mass - LOAD) < 5.0 for payload in there)
    last = outputs[-1].payload
    assert last.lower < LOAD < last.upper and last.status is PayloadStatus.UPDATING
