# SPDX-License-Identifier: Apache-2.0
"""Positions that jump: what is refused, until when, and what is no jump."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from core_support import crane, feed, work_cycle

from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import load_machine
from mbse_ros.monitor.bounds import StateBounds
from mbse_ros.monitor.steps import StepCheck
from mbse_ros.simulation.crane import SensorFrame
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import ObserverStatus, PayloadStatus
from mbse_ros.streams.stages import ObserverStage

STROKE = 'position/lift'


def taken(jumps: StepCheck, *samples: float, dt: float = 0.01, settings: ObserverSettings = ObserverSettings()
          ) -> list[bool]:
    return [bool(jumps.take(k * dt, np.array([sample, 4e6, 3e6]), settings)) for k, sample in enumerate(samples)]


def test_a_zero_that_slips_is_refused_until_it_slips_back() -> None:
    jumps = StepCheck(crane())
    assert taken(jumps, 0.2, 0.2, 0.25, 0.2501, 0.3, 0.3, 0.2, 0.2) == [False] * 2 + [True] * 4 + [False] * 2


def test_a_spike_costs_its_sample() -> None:
    assert taken(StepCheck(crane()), 0.2, 0.2, 0.4, 0.2, 0.2) == [False, False, True, False, False]


def test_what_a_piston_can_do_is_no_jump() -> None:
    """As fast as it goes; after a gap in which it could have come there; a sample that is missing in between."""
    fast = 0.2 + 1.4 * 0.01 * np.arange(20)
    assert not any(taken(StepCheck(crane()), *fast))
    assert not any(taken(StepCheck(crane()), 0.2, 0.45, dt=0.2)) and taken(StepCheck(crane()), 0.2, 0.45, dt=0.1)[1]
    assert not any(taken(StepCheck(crane()), 0.2, np.nan, np.nan, 0.24))
    jumps = StepCheck(crane())
    assert taken(jumps, 0.2, 0.3)[1]
    jumps.reset()
    assert not any(taken(jumps, 0.3, 0.3))


def test_noise_is_no_jump() -> None:
    """A stroke of 0.4 mm deviation, 1 kHz: 7 deviations and what a piston moves at 1.5 m/s are none, 10 are."""
    assert not any(taken(StepCheck(crane()), 0.2, 0.2 + 7 * 0.4e-3 + 1.5e-3, 0.2, dt=1e-3))
    assert taken(StepCheck(crane()), 0.2, 0.2 + 10 * 0.4e-3 + 1.5e-3, dt=1e-3)[1]


def test_angles_have_a_limit_of_their_own() -> None:
    machine = load_machine('zx200_can')
    place, samples = machine.channels.index('position/boom_joint'), np.full(len(machine.channels), np.nan)
    for step, jumped in ((0.038, False), (0.05, True)):
        jumps, found = StepCheck(machine), []
        for k in range(2):
            samples[place] = k * step
            found.append(jumps.take(0.01 * k, samples))
        assert found == [[], [place] if jumped else []]


def test_how_fast_a_machine_may_be_is_a_setting() -> None:
    """In samples and in states, which may exceed it by a tenth of what lies between its two ends."""
    settings = ObserverSettings(fastest_piston=3.0, fastest_joint=9.0)
    assert not taken(StepCheck(crane()), 0.2, 0.228, settings=settings)[1] and taken(StepCheck(crane()), 0.2, 0.228)[1]
    assert taken(StepCheck(crane()), 0.2, 0.235, settings=settings)[1]
    for machine, name, at, ends in ((crane(), 'lift', 0.2, (3.55, 3.65)),
                                    (load_machine('zx200_can'), 'arm_joint', 1.0, (10.7, 10.9))):
        bounds = StateBounds(machine, (f'position/{name}', f'velocity/{name}'), settings)
        assert [bool(bounds.broken(np.array([at, speed]), np.full(2, 1e-8))) for speed in ends] == [False, True]
    stage = ObserverStage(crane())
    stage.configure(settings)
    assert stage._monitor._bounds.broken(np.array([0.2, 2.0, 0.0, 4e6, 3e6, 0.0, 0.0]), np.full(7, 1e-8)) is None


@pytest.mark.parametrize('valve', ['orifice', 'unknown'])
def test_a_machine_whose_sensor_slips_holds_its_mass(valve: str) -> None:
    """50 mm from 2 s on, in motion: held with the reason from the first sample on, for good, and after a restart of the
    observer too."""
    def slipped(frame: SensorFrame) -> SensorFrame:
        shift = 0.05 if frame.stamp_ns > 2_000_000_000 else 0.0
        return replace(frame, samples=frame.samples | {STROKE: frame.samples[STROKE] + shift})
    outputs = feed(Pipeline(crane(valve)), [slipped(f) for f in work_cycle()[:900]])
    after = [o for o in outputs if o.state.stamp_ns > 2_010_000_000]
    assert len(after) > 500 and all(o.state.status is not ObserverStatus.OK for o in after)
    assert all(o.payload.status is PayloadStatus.NO_DATA for o in after)
    assert f'jumped: {STROKE}' in after[0].state.reason and f'jumped: {STROKE}' in after[-1].state.reason
    known = [o.payload for o in outputs if o.state.stamp_ns <= 2_000_000_000][-1]
    assert abs(after[-1].payload.mass - known.mass) < 3 * known.stddev


def test_an_observer_that_starts_again_does_not_believe_a_slipped_sensor() -> None:
    """It starts without that sample: the position is not known to a centimetre, and the reason stays."""
    frames = [replace(f, samples=f.samples | {STROKE: f.samples[STROKE] + 0.05 * (f.stamp_ns > 2_000_000_000)})
              for f in work_cycle()[:260]]
    pipeline = Pipeline(crane())
    feed(pipeline, frames[:230])
    pipeline.observer._observer.reset()
    again = feed(pipeline, frames[230:])[0].state
    assert again.reason == f'jumped: {STROKE}'
    assert again.restart and again.covariance[0, 0] > 0.01 ** 2
