# SPDX-License-Identifier: Apache-2.0
"""Chambers whose pressure falls to the tank's: the oil cavitates there, or anti-cavitation valves open."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from core_support import VALVES, feed

from mbse_ros.filters.hydraulic_model import BRIEFLY, cavitation, hydraulic_model
from mbse_ros.machine import load_machine
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import PayloadStatus

TANK = 0.1      # MPa, in the file


@cache
def stopped() -> list[SensorFrame]:
    """A two-cylinder crane with half a tonne whose valves shut within 10 ms at 3.4 s."""
    machine = load_machine('patu655', 'orifice')
    return list(SimulatedCrane(machine, 500.0, 1002, cycle_by_name('random', machine, 1002)).advance(5_000_000_000))


@pytest.mark.usefixtures('vm')
@pytest.mark.parametrize('valve', VALVES)
def test_a_load_that_is_stopped_hard_is_no_contact(valve: str) -> None:
    """The piston side of the tilt cylinder draws oil from the tank meanwhile: that says nothing of its speed."""
    frames = stopped()
    assert min(frame.pressure.min() for frame in frames) < TANK
    outputs = feed(Pipeline(load_machine('patu655', valve)), frames)
    late = [o.payload for o in outputs if o.payload.stamp_ns - frames[0].stamp_ns > 2e9]
    assert {item.status for item in late} <= {PayloadStatus.UPDATING, PayloadStatus.TOO_SLOW}
    assert all(item.lower <= 500.0 <= item.upper for item in late)


def test_only_pressures_below_their_tank_are_noisy_and_briefly() -> None:
    machine = load_machine('patu655', 'orifice')
    model, empty = hydraulic_model(machine), ca.SX.sym('empty', len(machine.volumes))
    density = ca.Function('density', [model.X, empty], [cavitation(machine, model.names, model.X, empty)])
    places = [i for i, name in enumerate(model.names) if name.startswith('pressure/')]
    X, since = np.zeros(len(model.names)), np.zeros(len(machine.volumes))
    X[places] = TANK
    assert not np.array(density(X, since)).any()
    X[places[1]] = TANK - 1e-9
    assert np.flatnonzero(np.array(density(X, since))).tolist() == [places[1]]
    since[1] = BRIEFLY
    assert not np.array(density(X, since)).any()


@pytest.mark.usefixtures('vm')
def test_a_pressure_that_goes_on_reading_nothing_is_rejected() -> None:
    """In bar: 50 to 150 Pa. For 0.3 s it could be a chamber that cavitates."""
    channel, found = 'pressure/tilt_piston', []
    pipeline = Pipeline(load_machine('patu655', 'orifice'))
    for frame in stopped():
        samples = frame.samples | {channel: 1e-5 * frame.samples[channel]}
        found += feed(pipeline, [replace(frame, samples=samples)])
    late = [o for o in found if o.payload.stamp_ns - found[0].payload.stamp_ns > 2e9]
    assert len(late) > 250 and not any(o.payload.status is PayloadStatus.UPDATING for o in late)
    assert any(channel in o.state.reason for o in found)
