# SPDX-License-Identifier: Apache-2.0
"""A force that the balance does not know: when it is seen, how long, and an excavator that digs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from core_support import feed

from mbse_ros.api.simulate import simulate_bag
from mbse_ros.errors import SettingError
from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.filters.unweighed import OPENED, STREAK, OutsideForce
from mbse_ros.machine import load_machine
from mbse_ros.monitor.faults import Fault, reason_of
from mbse_ros.offline.log_loads import LogLoads
from mbse_ros.scale.stage import ScaleStage
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name, plant_of
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import ObserverStatus, PayloadStatus

POSITION, PRESSURE, DT = 0, 1, 1e-3
BOTH = np.array([True, True])


def force() -> OutsideForce:
    return OutsideForce(np.array([True, False]))


def test_positions_refused_in_a_row_are_a_force() -> None:
    it = force()
    assert [it.shock(BOTH, [POSITION], DT) for _ in range(3)] == [False, False, True]
    assert it.acts and it.steps == 300
    it.calm(it.steps - 1, True, DT)
    assert it.acts
    it.calm(1, True, DT)
    assert not it.acts


@pytest.mark.parametrize('between', ['accepted', 'clear', 'pressure'])
def test_what_is_not_in_a_row_is_none(between: str) -> None:
    """A sample accepted in between, clear ones in between, or a pressure that is refused."""
    it = force()
    for _ in range(2 * STREAK):
        if between == 'pressure':
            assert not it.shock(BOTH, [PRESSURE], DT)
        else:
            assert not it.shock(BOTH, [POSITION], DT)
            if between == 'accepted':
                it.shock(BOTH, [], DT)
        it.calm(1000, True, DT)
    assert not it.acts


def test_a_sample_that_is_missing_breaks_no_row() -> None:
    it = force()
    found = []
    for _ in range(STREAK):
        found.append(it.shock(BOTH, [POSITION], DT))
        it.shock(np.array([False, True]), [], DT)
    assert found[-1]


def test_many_shocks_at_once_are_a_force() -> None:
    fast, slow = force(), force()
    for _ in range(7):
        assert not fast.shock(BOTH, [], DT) and not slow.shock(BOTH, [], DT) and not slow.acts
        fast.calm(10, True, DT)
        slow.calm(500, True, DT)
    assert fast.acts and not slow.acts
    fast.reset()
    assert not fast.acts


def test_a_pressure_alone_is_no_force_but_soon_after_a_shock() -> None:
    it = force()
    assert it.possible([POSITION]) and not it.possible([PRESSURE])
    it.shock(BOTH, [], DT)
    assert it.possible([PRESSURE])
    it.calm(400, True, DT)      # 0.4 s: two of the times in which a shock fades
    assert not it.possible([PRESSURE])


def test_the_motion_is_found_again_from_nothing() -> None:
    """Speeds and accelerations ten times as uncertain as at a start, apart from all else."""
    observer = HydraulicObserver(load_machine('patu655_lift'), ObserverSettings(), 'vm')
    observer.start(np.array([0.2, 4e6, 3e6]), np.zeros(1))
    observer.running.state[observer._full] = 1e-6
    observer.running.state = observer.filter.opened(observer.running.state, observer.settings)
    P, s = observer.running.state[observer._full], observer.settings
    assert np.sqrt(np.diag(P)[1:3]) == pytest.approx([10 * s.start_velocity, 10 * s.start_acceleration])
    assert OPENED == 10 and not P[1, [0, 2, 3, 4, 5]].any() and P[0, 3] == 1e-6


@pytest.fixture(scope='module')
def dug() -> list[SensorFrame]:
    """`dig` with 30 kN of soil against the teeth from 1.5 to 5 s; 800 kg are taken from 3 to 5 s."""
    machine = load_machine('zx200')
    crane = SimulatedCrane(machine, 800.0, 1, cycle_by_name('dig', machine, 1), plant=plant_of(machine), soil=30e3)
    return list(crane.advance(10_800_000_000))


def test_the_soil_pushes_against_the_motion(dug: list[SensorFrame]) -> None:
    """The same commands without soil: the bucket goes further; before it nothing differs."""
    machine = load_machine('zx200')
    free = list(SimulatedCrane(machine, 800.0, 1, cycle_by_name('dig', machine, 1),
                               plant=plant_of(machine)).advance(3_000_000_000))
    np.testing.assert_array_equal(dug[150].position, free[150].position)
    assert free[300].position[3] - dug[300].position[3] > 0.02


@pytest.mark.parametrize('valve', ['orifice', 'unknown'])
def test_an_excavator_that_digs_holds_its_mass(valve: str, dug: list[SensorFrame]) -> None:
    """In contact no mass that is wrong is UPDATING (but for the first 0.1 s); the motion is found but for 0.1 s; the
    load is weighed as soon as the soil lets go, and is one load."""
    pipeline, truth = Pipeline(load_machine('zx200', valve)), {f.stamp_ns: f.payload for f in dug}
    outputs = feed(pipeline, dug)
    wrong = [o for o in outputs[300:] if o.payload.status is PayloadStatus.UPDATING
             and not o.payload.lower <= truth.get(o.state.stamp_ns, o.payload.mass) <= o.payload.upper]
    contact = [o for o in outputs if 1.6e9 < o.state.stamp_ns < 5e9]
    assert sum(1.6e9 < o.state.stamp_ns < 5e9 for o in wrong) <= 10
    assert {PayloadStatus.CONTACT, PayloadStatus.CHANGING} & {o.payload.status for o in contact}
    assert any('outside force' in o.state.reason for o in contact)
    assert sum(o.state.status is not ObserverStatus.OK for o in outputs[60:]) <= 10
    after = next(o.payload for o in outputs if o.state.stamp_ns > 7.5e9)
    assert after.status is PayloadStatus.UPDATING and after.lower < 800.0 < after.upper
    log = LogLoads(ScaleStage(pipeline.machine))
    for output in outputs:
        log.take(output)
    log.close()
    (load,) = log.loads
    assert load.trusted and 2.5 < load.start < 7.5 and load.lower < 800.0 < load.upper


@cache
def scratched() -> list[SensorFrame]:
    """`dig` with 400 kg and 3 kN of soil."""
    machine = load_machine('zx200')
    crane = SimulatedCrane(machine, 400.0, 1, cycle_by_name('dig', machine, 1), plant=plant_of(machine), soil=3e3)
    return list(crane.advance(15_000_000_000))


@pytest.mark.parametrize('valve', ['orifice', 'unknown'])
def test_a_small_force_at_the_teeth_is_a_contact_and_no_load(valve: str) -> None:
    """3 kN, the weight of 300 kg: the cylinders weigh different loads meanwhile. What is carried then is weighed."""
    machine = load_machine('zx200', valve)
    pipeline, log = Pipeline(machine), LogLoads(ScaleStage(machine))
    outputs = feed(pipeline, scratched())
    dug = [o.payload for o in outputs if 2.2e9 < o.state.stamp_ns < 5e9]
    assert PayloadStatus.UPDATING not in {payload.status for payload in dug}
    assert sum(payload.status is PayloadStatus.CONTACT for payload in dug) > 100
    assert reason_of(Fault.OUTSIDE_FORCE) in {o.reason for o in dug if o.faults == Fault.OUTSIDE_FORCE}
    assert PayloadStatus.IMPLAUSIBLE not in {o.payload.status for o in outputs}
    for output in outputs:
        log.take(output)
    log.close()
    (load,) = log.loads
    assert load.trusted and load.start > 5.0 and load.lower < 400.0 < load.upper < 550.0


def test_soil_where_there_is_none(tmp_path: Path) -> None:
    for name, cycle, soil in (('zx200', 'random', 5e3), ('patu655_lift', 'random', 5e3), ('zx200', 'dig', -1.0)):
        with pytest.raises(SettingError, match='soil'):
            simulate_bag(load_machine(name), tmp_path / 'bag', cycle=cycle, soil=soil)
