# SPDX-License-Identifier: Apache-2.0
"""Machines whose position sensors fail and return: believed where something shows that they are right, else refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from core_support import crane, feed, kinematic, work_cycle
from machine_variants import variant
from plausibility_logs import frames_of, machine_of

from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine
from mbse_ros.monitor.steps import StepCheck
from mbse_ros.simulation.crane import SensorFrame
from mbse_ros.streams.machine_monitor import Recovery
from mbse_ros.streams.pipeline import Output, Pipeline
from mbse_ros.streams.records import ObserverStatus, PayloadStatus, Segment, StateEstimate
from mbse_ros.streams.stages import ObserverStage

STROKE, LIFT, TILT = 'position/lift', 'position/lift', 'position/tilt'
REST = np.array([0.2, 3.5e6, 2e6])
BEGIN, END = 2.0, 3.0       # s
OK, COASTING = ObserverStatus.OK, ObserverStatus.COASTING


def taken(machine: Machine, rows: list[list[float]], dt: float = 0.01, settings: ObserverSettings = ObserverSettings()
          ) -> tuple[list[list[int]], list[list[int]], bool]:
    """Places refused and believed again, row by row, and whether a cut was found."""
    jumps, refused, back, cut = StepCheck(machine), [], [], False
    for k, row in enumerate(rows):
        refused.append(jumps.take(k * dt, row, settings))
        back.append(jumps.back)
        cut |= jumps.cut
    return refused, back, cut


def noisy(level: float, count: int, scale: float = 4e-4) -> list[float]:
    return (level + scale * np.random.default_rng(count).standard_normal(count)).tolist()


def test_a_sensor_that_was_stuck_is_believed_where_it_goes_on() -> None:
    """Stuck where it was, or at a value of its own; a quantised one may repeat itself, and is not."""
    stuck = [0.2] * 30
    for values in ([*noisy(0.2, 20), *stuck, *noisy(0.4, 5)], [*noisy(0.3, 20), *stuck, *noisy(0.4, 5)]):
        refused, back, _ = taken(crane(), [[value, 4e6, 3e6] for value in values])
        assert back.index([0]) == 50 and not any(refused[50:])
    quantised = [0.2, 0.201, 0.2, 0.2, 0.2, 0.2, 0.4, 0.4]
    refused, back, _ = taken(crane(), [[value, 4e6, 3e6] for value in quantised])
    assert refused[-1] == [0] and not any(back)


def test_first_samples_that_were_wrong_are_outlived() -> None:
    """Five of them cost lost_after; a slip after the start stays one."""
    for before, believed in ((5, True), (50, False)):
        values = [*noisy(0.3, before), *noisy(0.2, 170)]
        refused, back, _ = taken(crane(), [[value, 4e6, 3e6] for value in values])
        assert ([0] in back) is believed and (not refused[-1]) is believed
        assert refused[before] == [0]
    assert back.count([0]) == 0


@pytest.mark.parametrize('before, settings, after', [
    (19, {}, 51), (21, {}, None),                       # settle_time is 0.2 s, lost_after 0.5 s
    (19, {'lost_after': 0.3}, 31), (150, {'settle_time': 2.0}, 151)])
def test_when_first_samples_are_outlived(before: int, settings: dict[str, float], after: int | None) -> None:
    """They are so within settle_time, by samples that last longer than they did, and than lost_after."""
    values = [*noisy(0.3, before), *noisy(0.2, 250)]
    _, back, _ = taken(crane(), [[value, 4e6, 3e6] for value in values], settings=ObserverSettings(**settings))
    found = [k - before for k, places in enumerate(back) if places]
    assert found == ([] if after is None else [pytest.approx(after, abs=1)])


def test_exchanged_sensors_are_refused_until_they_change_back() -> None:
    machine = machine_of('patu655')
    places = [machine.channels.index(name) for name in (LIFT, TILT)]
    rows = []
    for k in range(40):
        own = [0.3 + 0.002 * k, 0.5 - 0.001 * k]
        row = [5e6] * len(machine.channels)
        for place, value in zip(places, own[::-1] if 10 <= k < 30 else own):
            row[place] = value
        rows.append(row)
    refused, back, _ = taken(machine, rows)
    assert all(sorted(item) == sorted(places) for item in refused[10:30]) and not any(refused[30:])
    assert sorted(back[30]) == sorted(places) and sum(map(len, back)) == 2


@pytest.mark.parametrize('pressures, one', [(True, False), (False, False), (True, True)])
def test_a_cut_is_where_all_is_elsewhere_at_once(pressures: bool, one: bool) -> None:
    """Not where pressures stay as they are, as of exchanged sensors, nor where a single position jumps, as of a sensor
    that slips in a blow."""
    machine = machine_of('patu655')
    before, after = [5e6] * len(machine.channels), [6e6 if pressures else 5e6] * len(machine.channels)
    for name, (old, new) in {LIFT: (0.2, 0.3), TILT: (0.4, 0.4 if one else 0.6)}.items():
        before[machine.channels.index(name)], after[machine.channels.index(name)] = old, new
    refused, _, cut = taken(machine, [before] * 3 + [after] * 3)
    assert cut is (pressures and not one) and (not any(refused)) is cut


def stuck(frames: list[SensorFrame], channel: str) -> list[SensorFrame]:
    """The sensor repeats its value from BEGIN to END, s."""
    held = next(frame.samples[channel] for frame in frames if frame.stamp_ns >= BEGIN * 1e9)
    return [replace(frame, samples=frame.samples | {channel: held}) if BEGIN <= frame.stamp_ns * 1e-9 < END else frame
            for frame in frames]


def outside(outputs: list[Output], frames: list[SensorFrame], place: int) -> list[float]:
    """Times, s, at which the state is OK and its position off by 3 of its deviations and 2 of the sensor's, or more."""
    true, found = {frame.stamp_ns: frame.position for frame in frames}, []
    for item in outputs:
        state = item.state
        room = 3.0 * np.sqrt(state.covariance[place, place]) + 1e-3
        if state.status is OK and abs(state.mean[-1, place] - true[state.stamp_ns][place]) > room:
            found.append(state.stamp_ns * 1e-9)
    return found


@pytest.mark.parametrize('valve', ['orifice', 'unknown'])
def test_a_sensor_that_sticks_in_motion_and_returns(valve: str) -> None:
    """1 s, in which the piston moves by 0.15 m: the coordinate starts again, nothing is weighed until it has settled,
    and the state and then the mass come back."""
    frames = stuck(work_cycle(), STROKE)
    outputs = feed(Pipeline(crane(valve)), frames)
    after = [o for o in outputs if o.state.stamp_ns > (END + 0.01) * 1e9]
    first = next(k for k, o in enumerate(after) if o.state.status is OK)
    assert all(o.state.status is ObserverStatus.STARTING and 'starts again' in o.state.reason
               and o.payload.status is PayloadStatus.NO_DATA for o in after[:first])
    assert 18 <= first < 50 and all(o.state.status is OK for o in after[first:])
    assert not [t for t in outside(outputs, frames, 0) if t > END]
    assert any(o.payload.status is PayloadStatus.UPDATING and o.payload.lower < 50.0 < o.payload.upper for o in after)


def segment(k: int, values: np.ndarray, machine: Machine) -> Segment:
    rows = np.tile(values, (10, 1))
    return Segment(k, k * 10_000_000, 1_000_000, k == 0, machine.channels, rows, np.full(len(values), 10.0),
                   machine.commands, np.zeros((10, len(machine.commands))))


def gap(stage: ObserverStage, machine: Machine, off: Callable[[int], float], count: int = 150,
        rest: np.ndarray = REST) -> list[StateEstimate]:
    """At rest; 0.15 s without a position, which is off afterwards, as far as a piston can go meanwhile."""
    values = [rest] * 30 + [np.append(np.nan, rest[1:])] * 15
    values += [rest + np.eye(len(rest))[0] * off(k) for k in range(count)]
    return [stage.process(segment(k, row, machine)) for k, row in enumerate(values)]


def test_a_sensor_refused_for_long_that_alone_sees_a_coordinate_starts_it_again() -> None:
    """0.1 m after a gap; the valve is closed, so the gate refuses it, until it was not used for lost_after."""
    states = gap(ObserverStage(crane(), kinematic()), crane(), lambda k: 0.1)
    again = next(k for k, s in enumerate(states) if 'starts again' in s.reason)
    before, last = states[again - 1], states[-1]
    assert before.status is COASTING and 'rejected: position/lift' in before.reason
    assert 29 + 50 <= again <= 29 + 54 and abs(before.mean[-1, 0] - REST[0]) < 0.01
    assert last.status is OK and last.mean[-1, 0] == pytest.approx(0.3, abs=1e-3)
    assert not any(s.restart for s in states[1:])


def test_a_sensor_to_which_no_start_helps_stays_refused() -> None:
    """It goes to and fro by 15 mm, which is no jump, and no motion with the valve closed: after three starts in 3.75 s
    (15 times lost_after) it is refused, with its name."""
    machine = crane()
    states = gap(ObserverStage(machine, kinematic(lost_after=0.25)), machine, lambda k: 0.015 * (k // 40 % 2), 400)
    starts = [k for k, (a, b) in enumerate(zip(states, states[1:]))
              if 'starts again' in b.reason and 'starts again' not in a.reason]
    assert len(starts) == 3 and 'rejected: position/lift' in states[400].reason and states[400].status is COASTING


def test_what_another_sensor_sees_too_does_not_start_again() -> None:
    """A second sensor of the speed stands against it: COASTING with the name."""
    machine = variant('patu655_lift', sensors__speed={'kind': 'rate', 'coordinate': 'lift', 'stddev': '0.001 m/s'})
    rest = np.array([0.0 if name.startswith('velocity') else dict(zip(crane().channels, REST))[name]
                     for name in machine.channels])
    assert machine.channels[0] == STROKE
    states = gap(ObserverStage(machine, kinematic(), 'vm'), machine, lambda k: 0.1, 80, rest)
    assert states[-1].status is COASTING and 'rejected: position/lift' in states[-1].reason
    assert not any('starts again' in s.reason for s in states)


def test_a_coordinate_starts_again_with_an_unknown_speed_and_all_else_as_it_was() -> None:
    observer = HydraulicObserver(machine_of('zx200'), ObserverSettings(), 'vm')
    machine = observer.machine
    first = np.array([0.5 if name.startswith('position') else 5e6 for name in machine.channels])
    observer.start(first, np.zeros(len(machine.commands)))
    before, place = observer.running.state.copy(), machine.channels.index('position/arm')
    observer.start_again({place: 0.9})
    n, names = len(observer.names), observer.names
    x, P = observer.running.state[:n], observer.running.state[observer._full]
    arm = names.index('position/arm')
    assert x[arm] == pytest.approx(0.9) and P[arm, arm] == pytest.approx(observer._variance[place])
    others = [k for k, name in enumerate(names) if name.startswith(('position', 'pressure')) and k != arm]
    np.testing.assert_array_equal(x[others], before[:n][others])
    speed = names.index('velocity/arm')
    assert x[speed] == 0.0 and np.sqrt(P[speed, speed]) == pytest.approx(10 * observer.settings.start_velocity)
    moved = observer.running.state[-len(machine.system.dependent):] - before[-len(machine.system.dependent):]
    assert np.abs(moved).max() > 0.1


def test_an_excavator_starts_again_where_its_log_was_cut() -> None:
    """2 s are taken out and the stamps joined: no sensor is blamed, and the state is right 0.5 s later."""
    frames = [frame for frame in frames_of('zx200', 2000.0)]
    kept = frames[:200] + [replace(frame, stamp_ns=frame.stamp_ns - 2_000_000_000) for frame in frames[400:]]
    pipeline = Pipeline(machine_of('zx200'))
    outputs = feed(pipeline, kept)
    t = [(o.state.stamp_ns - kept[0].stamp_ns) * 1e-9 for o in outputs]
    cut = [o.state for o, at in zip(outputs, t) if 1.99 < at < 2.2]
    assert any('log was cut' in s.reason and s.restart for s in cut) and not any('jumped: ' in s.reason for s in cut)
    assert all(o.state.status is OK for o, at in zip(outputs, t) if at > 2.7)
    assert all(max(outside(outputs, kept, place), default=0.0) < kept[0].stamp_ns * 1e-9 + 2.5 for place in range(4))


@pytest.mark.parametrize('off, kept', [(0.05, False), (0.0, True)])
def test_joined_segments_are_judged_by_each_sample(off: float, kept: bool) -> None:
    """50 mm from 2 s on, which a piston could move in the 0.1 s of a joined segment: refused as in single ones."""
    frames = [replace(f, samples=f.samples | {STROKE: f.samples[STROKE] + off * (f.stamp_ns > 2_040_000_000)})
              for f in work_cycle()[:300]]
    pipeline = Pipeline(crane('unknown'), segment=0.1)
    outputs = [*feed(pipeline, frames), *pipeline.flush()]
    after = [o.state for o in outputs if o.state.stamp_ns > 2_050_000_000]
    assert len(after) < 12 and all((s.status is OK) is kept for s in after)
    assert all(f'jumped: {STROKE}' in s.reason for s in after) is not kept


def test_a_cut_within_a_joined_segment_starts_at_its_row() -> None:
    """The samples before it are not used for the state after it."""
    frames = [frame for frame in frames_of('zx200', 2000.0)]
    kept = frames[:204] + [replace(frame, stamp_ns=frame.stamp_ns - 2_000_000_000) for frame in frames[404:]]
    pipeline = Pipeline(machine_of('zx200'), segment=0.1)
    outputs = [*feed(pipeline, kept), *pipeline.flush()]
    cut = next(o.state for o in outputs if 'log was cut' in o.state.reason)
    true = {frame.stamp_ns: frame.position for frame in kept}[cut.stamp_ns]
    assert cut.restart and np.abs(cut.mean[-1, :4] - true).max() < 0.01


def test_a_state_settles_by_its_own_covariance() -> None:
    """Not after settle_time, 0.2 s, alone: its speed is as well known as at a start (0.05 m/s), or no better again."""
    observer = HydraulicObserver(crane(), ObserverSettings(), 'vm')
    recovery, speed = Recovery(crane(), observer), np.zeros(len(observer.names))
    for at, known, settled in ((0.1, 0.01, False), (0.25, 1.0, False), (0.3, 0.9, False), (0.5, 0.5, False),
                               (0.75, 0.49, True), (0.8, 2.0, True)):
        recovery.age, speed[observer.names.index('velocity/lift')] = at, known ** 2
        assert recovery.settled(speed) is settled, at
    recovery.reset()
    recovery.age, speed[observer.names.index('velocity/lift')] = 0.25, 0.04 ** 2
    assert recovery.settled(speed)


@pytest.mark.parametrize('starts, t, due', [(2, 3.1, True), (3, 3.1, False), (3, 8.4, False), (3, 8.6, True)])
def test_a_coordinate_starts_again_three_times_in_fifteen_times_lost_after(starts: int, t: float, due: bool) -> None:
    """In 7.5 s: then its sensor is what is wrong."""
    class Refusing:
        def refused(self, at: float, start: float, longest: float) -> list[str]:
            return [STROKE]
    observer = HydraulicObserver(crane(), ObserverSettings(), 'vm')
    observer.start(REST, np.zeros(1))
    recovery = Recovery(crane(), observer)
    for at in range(1, 1 + starts):
        recovery.judge(float(at), 0.0, Refusing())      # type: ignore[arg-type]
        assert recovery.start_again(float(at), [], REST) == [0]
    recovery.judge(t, 0.0, Refusing())      # type: ignore[arg-type]
    assert bool(recovery.due) is due
