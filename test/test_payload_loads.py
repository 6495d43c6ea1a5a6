# SPDX-License-Identifier: Apache-2.0
"""Loads one after the other: when they begin and end, what is no change, and the budget of the mass."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest
from core_support import crane, estimate, simulate

from mbse_ros.payload import load_log as loads_module
from mbse_ros.payload.load_log import Load, LoadLog
from mbse_ros.payload.mass import Mass
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.streams.pipeline import Output
from mbse_ros.streams.records import PayloadStatus
from mbse_ros.streams.stages import PayloadStage

LIMITS = 0.0, 1000.0


def mass(value: float, noise: float = 1.0) -> Mass:
    return Mass(value, noise, 2 * noise, value, value, 10, 'open', noise)


def taken(*phases: tuple[float, float, float, float], log: LoadLog | None = None) -> tuple[LoadLog, float]:
    """Phases of (seconds, mass, noise, information forgotten in a second as a logarithm), 100 Hz; the log, its end."""
    log, t, kept = log or LoadLog(LIMITS), 10.0, 0.0
    for seconds, value, noise, forgotten in phases:
        for _ in range(round(100 * seconds)):
            t, kept = t + 0.01, kept - 0.01 * forgotten
            log.take(t, mass(value, noise), kept)
    return log, t


def test_taken_carried_dropped() -> None:
    log, t = taken((3, 0.0, 2.0, 0), (2, 400.0, 200.0, 10), (4, 800.0, 5.0, 0), (1, 300.0, 300.0, 15), (5, 1.0, 3.0, 0))
    loads = log.all(t, mass(1.0, 3.0))
    assert [(load.status, load.mass) for load in loads] == [('empty', 0.0), ('weighed', 800.0), ('empty', 1.0)]
    begins, ends = [load.start for load in loads], [load.end for load in loads]
    np.testing.assert_allclose(begins, [10.0, 15.0, 20.0], atol=0.06)       # begun when known for half a second
    np.testing.assert_allclose(ends, [13.0, 19.0, 25.0], atol=0.6)      # it looks half a second back
    assert [load.end <= after.start for load, after in zip(loads, loads[1:])] == [True, True]


def test_the_first_mass_agrees_with_the_one_half_a_second_before() -> None:
    """While it moves by more than twice the noise in a quarter of a second it is not found; else it is, after that."""
    for slope, expected in ((20.0, False), (10.0, True)):       # kg/s
        log, found = LoadLog(LIMITS), []
        for k in range(100):
            log.take(10.0 + 0.01 * k, mass(50.0 + 0.01 * slope * k, 2.0), 0.0)
            found.append(log.found)
        assert any(found) is expected and (not expected or found.index(True) == 26 and all(found[26:]))


@pytest.mark.parametrize('after, count', [(52.0, 1), (75.0, 2)])
def test_the_same_mass_after_a_change_is_the_same_load(after: float, count: int) -> None:
    """What was forgotten by accident begins no load; 25 kg more, by 4 deviations and 1 % of the limits, do."""
    log, t = taken((3, 50.0, 2.0, 0), (1, 90.0, 100.0, 8), (4, after, 3.0, 0))
    loads = log.all(t, mass(after, 3.0))
    assert len(loads) == count and loads[-1].mass == after and loads[0].start == pytest.approx(10.01)


def test_what_is_forgotten_of_a_mass_that_stays_is_no_change() -> None:
    """A mass that is known to 2 % of the limits and stays is no load that changes, whatever is forgotten; one that has
    moved is."""
    for noise, after, changing in ((19.0, 50.0, False), (21.0, 50.0, True), (11.0, 95.0, True)):
        log, t = taken((3, 50.0, 2.0, 0), (0.2, after, noise, 10))
        assert log.changing is changing


@pytest.mark.parametrize('after, count', [(50.0, 1), (58.0, 1), (80.0, 2)])
def test_a_load_that_the_payload_finds_to_be_another(after: float, count: int) -> None:
    """All is forgotten at once: CHANGING for a quarter of a second, however well the new mass is known, and once."""
    log, t, said = LoadLog(LIMITS), 10.0, []
    for k in range(500):
        t += 0.01
        log.take(t, mass(50.0 if k < 300 else after, 3.0), 0.0 if k < 300 else -27.6)
        said.append(log.changing)
    assert said.index(True) == 300 and said[300:].index(False) == 26 and not any(said[326:])
    assert len(log.all(t, mass(after, 3.0))) == count


@pytest.mark.parametrize('seconds, statuses', [(1.3, ['weighed']), (3.0, ['implausible', 'weighed'])])
def test_what_could_not_be_weighed_for_a_second_is_left_out(seconds: float, statuses: list[str]) -> None:
    """As a wrong mass at the start: that of a longer time is a load that was not known."""
    log, t = taken((seconds, -700.0, 20.0, 0), (1, 0.0, 300.0, 10), (4, 50.0, 2.0, 0))
    assert [load.status for load in log.all(t, mass(50.0, 2.0))] == statuses


def test_a_log_of_years_keeps_the_last_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loads_module, 'KEPT', 2)
    cycles = [phase for value in (100.0, 300.0, 500.0, 700.0) for phase in ((1, 400.0, 300.0, 10), (3, value, 2.0, 0))]
    log, t = taken((3, 0.0, 2.0, 0), *cycles)
    assert [load.mass for load in log.all(t, mass(700.0, 2.0))] == [300.0, 500.0, 700.0]


def test_a_mass_is_beyond_the_limits_by_three_deviations() -> None:
    """The half-width is two of them."""
    for value, noise, beyond in ((-2.9, 1.0, False), (-3.1, 1.0, True), (1002.9, 1.0, False), (1003.1, 1.0, True),
                                 (-3.1, 2.0, False), (nan, 1.0, False)):
        assert mass(value, noise).beyond(LIMITS) is beyond


def test_slow_forgetting_is_no_change() -> None:
    log, t = taken((3, 50.0, 2.0, 0), (20, 90.0, 2.0, 0.5))
    assert len(log.all(t, mass(90.0))) == 1


def test_a_change_that_is_not_over_and_what_is_no_load() -> None:
    log, t = taken((3, 50.0, 2.0, 0), (1, 400.0, 300.0, 8))
    before, now = log.all(t, mass(400.0, 300.0))
    assert (before.mass, before.status, now.mass) == (50.0, 'weighed', 400.0) and now.start == before.end < t
    log, t = taken((2, -700.0, 20.0, 0))            # no machine carries that
    (wrong,) = log.all(t, mass(-700.0, 20.0))
    assert (wrong.status, wrong.mass) == ('implausible', -700.0) and wrong.lower < -700.0 < wrong.upper
    (none,) = log.all(t, Mass(nan, nan, nan, nan, nan, 0, 'open', nan))
    assert none.status == 'unknown' and LoadLog(LIMITS).all(t, mass(1.0)) == ()
    assert Load(0.0, 1.0, 5.0, -inf, inf).status == 'unknown'


@pytest.mark.parametrize('after, deviation, count', [(75.0, 0.0, 2), (75.0, 10.0, 1), (105.0, 10.0, 2)])
def test_what_another_pose_makes_of_the_mass_is_no_other_load(after: float, deviation: float, count: int) -> None:
    """25 kg more are within 4 deviations of what the uncertain numbers do in another pose, 55 kg are not."""
    log = LoadLog(LIMITS, lambda new, old: (new.mass - old.mass, deviation))
    log, t = taken((3, 50.0, 2.0, 0), (1, 90.0, 100.0, 8), (4, after, 3.0, 0), log=log)
    assert len(log.all(t, mass(after, 3.0))) == count


@pytest.mark.parametrize('value, weighed, beyond', [
    (900.0, 900.0, False), (900.0, 1100.0, False), (900.0, 1200.0, True), (1100.0, 900.0, True), (-100.0, 50.0, True),
    (50.0, -200.0, True), (50.0, -100.0, False)])
def test_a_mass_beyond_the_limits_before_or_after_what_is_taken_off(value: float, weighed: float, beyond: bool) -> None:
    """Half-widths 20 kg after, 98 kg before: 3 deviations of 10 and of 50 kg."""
    found = Mass(value, 10.0, 20.0, nan, nan, 10, 'open', 0.0, 0, weighed, np.array([30.0, 40.0]))
    assert found.beyond(LIMITS) is beyond


def test_a_clock_that_is_set_back() -> None:
    """No load ends before it starts, and the next change is noticed."""
    log, _ = taken((3, 50.0, 2.0, 0))
    log, t = taken((1, 50.0, 2.0, 0), (1, 400.0, 300.0, 10), (2, 700.0, 5.0, 0), log=log)
    loads = log.all(t, mass(700.0, 5.0))
    assert [load.mass for load in loads] == [50.0, 700.0] and all(load.start < load.end for load in loads)


CHANGES = WorkCycle(0.3, tuple(Move(v, 1.5) for _ in range(5) for v in (4.0, -4.0)), load=(
    (0.0, 0.2), (5.9, 0.2), (6.0, 1.0), (10.9, 1.0), (11.0, 0.0), (20.0, 0.0)))


def fed(outputs: tuple[Output, ...]) -> PayloadStage:
    stage = PayloadStage(crane())
    for output in outputs:
        stage.process(output.state)
    return stage


@pytest.mark.parametrize('valve', ['orifice', 'unknown'])
def test_the_loads_of_a_crane(valve: str) -> None:
    """40, 200, 0 kg in motion: three loads, each in its interval, at the times when it hung there."""
    stage = fed(estimate(valve, simulate(200.0, 3, CHANGES)).outputs)
    loads = stage.loads
    assert [load.status for load in loads] == ['weighed', 'weighed', 'empty']
    for load, true, (begin, end) in zip(loads, (40.0, 200.0, 0.0), ((0.0, 5.95), (5.95, 10.95), (10.95, 15.0))):
        assert load.lower < true < load.upper and load.upper - load.lower < 40.0
        assert begin - 0.1 < load.start < load.end < end + 0.6
    causes = stage.budget
    assert sum(cause.kg ** 2 for cause in causes) == pytest.approx(stage._mass.stddev ** 2, rel=1e-9)
    assert [cause.kg for cause in causes] == sorted((cause.kg for cause in causes), reverse=True)
    assert {'cylinders.lift.friction.scale', 'bodies.boom.mass'} <= {cause.cause for cause in causes}


def test_before_anything_there_are_no_loads() -> None:
    stage = PayloadStage(crane())
    assert stage.loads == () and stage.budget == ()


def test_a_mass_that_no_machine_carries_is_said_to_be_so() -> None:
    """Pressures of the piston 0.7 MPa too low from the start: the mass is far below zero, and never UPDATING."""
    frames = simulate(50.0, 2, WorkCycle(0.3, tuple(Move(v, 1.5) for _ in range(3) for v in (4.0, -4.0))))
    wrong = [type(f)(f.stamp_ns, f.samples | {'pressure/lift_piston': f.samples['pressure/lift_piston'] - 0.7e6},
                     f.commands, f.position, f.velocity, f.acceleration, f.pressure, f.payload) for f in frames]
    outputs = estimate('unknown', wrong).outputs
    known = [o.payload for o in outputs[300:] if np.isfinite(o.payload.mass)]
    assert len(known) > 300 and not any(p.status is PayloadStatus.UPDATING for p in known)
    assert known[-1].status is PayloadStatus.IMPLAUSIBLE and 'payload.limits' in known[-1].reason
    assert fed(outputs).loads[-1].status == 'implausible'


def test_a_mass_settles_for_a_second_of_weighing_after_a_pause() -> None:
    """Until then it may wander without an alarm; time in which nothing is weighed does not count."""
    loads, mass = LoadLog((0.0, 1000.0)), Mass(100.0, 5.0, 10.0, 100.0, 100.0, 10, 'open', 5.0, taken=10)
    loads.take(0.0, mass, 0.0)
    assert not loads.just_paused
    loads.pause()
    found = []
    for k in range(1, 30):
        loads.take(0.1 * k, mass if k > 10 else replace(mass, taken=0), 0.0)
        found.append(loads.just_paused)
    assert sum(found) == pytest.approx(20, abs=1) and found == sorted(found, reverse=True)
