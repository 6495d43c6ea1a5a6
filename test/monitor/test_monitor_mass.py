# SPDX-License-Identifier: Apache-2.0
"""Whether the load changes: since when, for how long, what is no change; masses beyond the limits, and the budget."""

from __future__ import annotations

from dataclasses import replace
from math import nan

import numpy as np
import pytest
from core_support import crane, estimate, simulate
from machine_variants import REMOVED, changed

from mbse_ros.machine import Machine
from mbse_ros.monitor.mass import LoadChange, verdict_of
from mbse_ros.payload.mass import Mass
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.streams.pipeline import Output
from mbse_ros.streams.records import PayloadStatus
from mbse_ros.streams.stages import PayloadStage

LIMITS = 0.0, 1000.0
SPAN = 1000.0


def mass(value: float, noise: float = 1.0) -> Mass:
    return Mass(value, noise, 2 * noise, value, value, 10, 'open', noise)


def changing(*phases: tuple[float, float, float, float], change: LoadChange | None = None) -> list[bool]:
    """At each instant, 100 Hz, of phases of (seconds, mass, noise, information forgotten in 1 s as a logarithm)."""
    change, t, kept, found = change or LoadChange(SPAN), 10.0, 0.0, []
    for seconds, value, noise, forgotten in phases:
        for _ in range(round(100 * seconds)):
            t, kept = t + 0.01, kept - 0.01 * forgotten
            change.take(t, mass(value, noise), kept)
            found.append(change.changing)
    return found


def spans(found: list[bool]) -> list[tuple[float, float]]:
    """Begin and end, s, of the times in which it changes."""
    edges = np.flatnonzero(np.diff([False, *found, False])) / 100
    return list(zip(edges[::2], edges[1::2]))


def test_taken_carried_dropped() -> None:
    """It changes from soon after the observer begins to forget until the new mass has been known for a quarter of a
    second."""
    found = spans(changing((3, 0.0, 2.0, 0), (2, 400.0, 200.0, 10), (4, 800.0, 5.0, 0), (1, 300.0, 300.0, 15),
                           (5, 1.0, 3.0, 0)))
    np.testing.assert_allclose(found, [(3.05, 5.5), (9.05, 10.5)], atol=0.1)


@pytest.mark.parametrize('value', [-519.0, 300.0])
def test_another_mass_is_none_from_the_first_sample_on(value: float) -> None:
    """A state that started anew, so that hardly anything counts of what was known, weighs for the first time."""
    change, now = LoadChange(SPAN), replace(mass(80.0, 2.0), taken=10)
    for k in range(100):
        change.take(10.0 + 0.01 * k, now, 0.0)
    assert verdict_of(now, change, LIMITS, '', True)[0] is PayloadStatus.UPDATING
    now = replace(mass(value, 30.0), taken=10)
    change.take(11.0, now, np.log(1e-8))
    assert verdict_of(now, change, LIMITS, '', True)[0] is PayloadStatus.CHANGING


def test_the_first_mass_agrees_with_the_one_half_a_second_before() -> None:
    """While it moves by more than twice the noise in a quarter of a second it is not found; else it is, after that."""
    for slope, expected in ((20.0, False), (10.0, True)):       # kg/s
        change, found = LoadChange(SPAN), []
        for k in range(100):
            change.take(10.0 + 0.01 * k, mass(50.0 + 0.01 * slope * k, 2.0), 0.0)
            found.append(change.found)
        assert any(found) is expected and (not expected or found.index(True) == 26 and all(found[26:]))


def test_what_is_forgotten_of_a_mass_that_stays_is_no_change() -> None:
    """A mass that is known to 2 % of the limits and stays is no load that changes, whatever is forgotten; one that has
    moved is."""
    for noise, after, found in ((19.0, 50.0, False), (21.0, 50.0, True), (11.0, 95.0, True)):
        assert changing((3, 50.0, 2.0, 0), (0.2, after, noise, 10))[-1] is found


def test_what_another_pose_makes_of_the_mass_is_no_change() -> None:
    for deviation, found in ((0.0, True), (30.0, False)):
        change = LoadChange(SPAN, lambda new, old: (new.mass - old.mass, deviation))
        assert changing((3, 50.0, 2.0, 0), (0.2, 95.0, 11.0, 10), change=change)[-1] is found


@pytest.mark.parametrize('after', [50.0, 80.0])
def test_a_load_that_the_payload_finds_to_be_another(after: float) -> None:
    """All is forgotten at once: CHANGING for a quarter of a second, however well the new mass is known, and once."""
    change, said = LoadChange(SPAN), []
    for k in range(500):
        change.take(10.0 + 0.01 * k, mass(50.0 if k < 300 else after, 3.0), 0.0 if k < 300 else -27.6)
        said.append(change.changing)
    assert said.index(True) == 300 and said[300:].index(False) == 26 and not any(said[326:])


@pytest.mark.parametrize('before, forgotten, value, noise, found', [
    (2.0, 0.51, 200.0, 200.0, True), (2.0, 0.49, 200.0, 200.0, False),          # logarithm of what counts still ...
    (100.0, 1.0, 200.0, 111.0, True), (100.0, 1.0, 200.0, 109.0, False),        # ... while the noise rises by a tenth
    (1.0, 1.0, 150.0, 5.1, True), (1.0, 1.0, 150.0, 4.9, False),                # to 0.5 % of the limits
    (1.0, 25.5, 50.0, 3.0, True), (1.0, 24.5, 50.0, 3.0, False)])               # or all is forgotten at once
def test_both_sides_of_where_a_change_begins(before: float, forgotten: float, value: float, noise: float, found: bool
                                             ) -> None:
    change = LoadChange(SPAN)
    assert not any(changing((3, 50.0, before, 0), change=change))
    change.take(13.01, mass(value, noise), -forgotten)
    assert change.changing is found


@pytest.mark.parametrize('slope, noise, over', [(18.0, 5.0, True), (21.0, 5.0, False), (0.0, 9.9, True),
                                                (0.0, 10.1, False)])
def test_both_sides_of_where_a_change_is_over(slope: float, noise: float, over: bool) -> None:
    """In a quarter of a second the mass moves by no more than its noise, which is 1 % of the limits."""
    change = LoadChange(SPAN)
    changing((3, 50.0, 1.0, 0), change=change)
    for k in range(100):
        change.take(13.01 + 0.01 * k, mass(300.0 + 0.01 * k * slope, noise), -26.0)
    assert change.changing is not over


@pytest.mark.parametrize('machine, first', [
    (crane(), 26), (changed('zx200', {'sensors/arm_rod': REMOVED}), 50)])
def test_where_some_cylinders_do_not_weigh_the_first_mass_counts_later(machine: Machine, first: int) -> None:
    """After half a second of weighing, since nothing else contradicts a jerk; else after a quarter."""
    change, found = PayloadStage(machine)._monitor._change, []
    for k in range(60):
        change.take(10.0 + 0.01 * k, replace(mass(50.0), taken=1), 0.0)
        found.append(change.found)
    assert found.index(True) == pytest.approx(first, abs=1)


def test_a_mass_beyond_the_limits_by_three_deviations() -> None:
    """The half-width is two of them."""
    for value, noise, beyond in ((-2.9, 1.0, False), (-3.1, 1.0, True), (1002.9, 1.0, False), (1003.1, 1.0, True),
                                 (-3.1, 2.0, False), (nan, 1.0, False)):
        assert mass(value, noise).beyond(LIMITS) is beyond


def test_slow_forgetting_is_no_change() -> None:
    assert not any(changing((3, 50.0, 2.0, 0), (20, 90.0, 2.0, 0.5)))


def test_a_clock_that_is_set_back() -> None:
    """The next change is noticed."""
    change = LoadChange(SPAN)
    assert not any(changing((3, 50.0, 2.0, 0), change=change))
    found = changing((1, 50.0, 2.0, 0), (1, 400.0, 300.0, 10), (2, 700.0, 5.0, 0), change=change)
    assert found[150] and not found[-1]


@pytest.mark.parametrize('value, weighed, beyond', [
    (900.0, 900.0, False), (900.0, 1100.0, False), (900.0, 1200.0, True), (1100.0, 900.0, True), (-100.0, 50.0, True),
    (50.0, -200.0, True), (50.0, -100.0, False)])
def test_a_mass_beyond_the_limits_before_or_after_what_is_taken_off(value: float, weighed: float, beyond: bool) -> None:
    """Half-widths 20 kg after, 98 kg before: 3 deviations of 10 and of 50 kg."""
    found = Mass(value, 10.0, 20.0, nan, nan, 10, 'open', 0.0, 0, weighed, np.array([30.0, 40.0]))
    assert found.beyond(LIMITS) is beyond


CHANGES = WorkCycle(0.3, tuple(Move(v, 1.5) for _ in range(5) for v in (4.0, -4.0)), load=(
    (0.0, 0.2), (5.9, 0.2), (6.0, 1.0), (10.9, 1.0), (11.0, 0.0), (20.0, 0.0)))


def fed(outputs: tuple[Output, ...]) -> PayloadStage:
    stage = PayloadStage(crane())
    for output in outputs:
        stage.process(output.state)
    return stage


def test_what_makes_the_mass_of_a_crane_uncertain() -> None:
    stage = fed(estimate('orifice', simulate(200.0, 3, CHANGES)).outputs)
    causes = stage.budget
    assert sum(cause.kg ** 2 for cause in causes) == pytest.approx(stage._mass.stddev ** 2, rel=1e-9)
    assert [cause.kg for cause in causes] == sorted((cause.kg for cause in causes), reverse=True)
    assert {'cylinders.lift.friction.scale', 'bodies.boom.mass'} <= {cause.cause for cause in causes}
    assert PayloadStage(crane()).budget == ()


def test_a_mass_that_no_machine_carries_is_said_to_be_so() -> None:
    """Pressures of the piston 0.7 MPa too low from the start: the mass is far below zero, and never UPDATING."""
    frames = simulate(50.0, 2, WorkCycle(0.3, tuple(Move(v, 1.5) for _ in range(3) for v in (4.0, -4.0))))
    wrong = [type(f)(f.stamp_ns, f.samples | {'pressure/lift_piston': f.samples['pressure/lift_piston'] - 0.7e6},
                     f.commands, f.position, f.velocity, f.acceleration, f.pressure, f.payload) for f in frames]
    outputs = estimate('unknown', wrong).outputs
    known = [o.payload for o in outputs[300:] if np.isfinite(o.payload.mass)]
    assert len(known) > 300 and not any(p.status is PayloadStatus.UPDATING for p in known)
    assert known[-1].status is PayloadStatus.IMPLAUSIBLE and 'payload.limits' in known[-1].reason


def test_a_mass_settles_for_a_second_of_weighing_after_a_pause() -> None:
    """Until then it may wander without an alarm; time in which nothing is weighed does not count."""
    loads, mass = LoadChange(SPAN), Mass(100.0, 5.0, 10.0, 100.0, 100.0, 10, 'open', 5.0, taken=10)
    loads.take(0.0, mass, 0.0)
    assert not loads.just_paused
    loads.pause()
    found = []
    for k in range(1, 30):
        loads.take(0.1 * k, mass if k > 10 else replace(mass, taken=0), 0.0)
        found.append(loads.just_paused)
    assert sum(found) == pytest.approx(20, abs=1) and found == sorted(found, reverse=True)


def test_where_samples_are_rare_a_mass_counts_again_when_it_is_known_no_better() -> None:
    """To 5 % of the limits, after 2 s of weighing since the load began to change."""
    for noise, weighs, ends in ((49.0, 1, 5.1), (51.0, 1, None), (49.0, 0, None), (9.0, 1, 3.5)):
        change, found = LoadChange(SPAN), []
        for k in range(1000):
            t, value = 0.01 * k, 50.0 if k < 300 else 300.0
            of = replace(mass(value, 2.0 if k < 300 else noise), taken=weighs)
            change.take(t, of, -10.0 * np.clip(t - 3.0, 0.0, 0.3))
            found.append(change.changing)
        (begin, end), = spans(found)
        assert abs(begin - 3.05) < 0.1 and (end > 9.9 if ends is None else abs(end - ends) < 0.2), (noise, weighs)


def test_a_mass_beyond_the_limits_is_no_fault_while_a_load_drops() -> None:
    """For a second of weighing since it began to change: then the masses cannot be those of any load."""
    change = LoadChange(SPAN)
    verdicts = []
    for k in range(700):
        t, value = 0.01 * k, 50.0 if k < 300 else -900.0
        of = replace(mass(value, 2.0 if k < 300 else 100.0), taken=1)
        change.take(t, of, -10.0 * np.clip(t - 3.0, 0.0, 0.3))
        verdicts.append(verdict_of(of, change, LIMITS, '', True)[0])
    assert PayloadStatus.CHANGING in verdicts[300:340] and PayloadStatus.IMPLAUSIBLE not in verdicts[310:400]
    assert set(verdicts[420:]) == {PayloadStatus.IMPLAUSIBLE}


def test_an_interval_leans_to_one_side() -> None:
    """To where the last second's masses are."""
    of = mass(100.0, 5.0)       # +- 10 kg
    assert of.bounds == (90.0, 110.0)
    assert replace(of, lean=-30.0).bounds == (60.0, 110.0) and replace(of, lean=30.0).bounds == (90.0, 140.0)


def test_a_load_that_may_still_change_is_changing_and_leans_in_what_is_published() -> None:
    """And that is no alarm, however long it takes."""
    stage, outputs = PayloadStage(crane()), estimate('orifice', simulate(200.0, 1)).outputs
    process, settling = stage._estimator.process, [False]
    stage._estimator.process = lambda *a: replace(process(*a), lean=-50.0 * settling[0],     # type: ignore
                                                  settling=settling[0])
    found = []
    for k, output in enumerate(outputs):
        settling[0] = 500 <= k < 1100
        found.append(stage.process(output.state))
    changing = [p for p in found[500:1100] if p.status is PayloadStatus.CHANGING]
    assert len(changing) > 450 and all(abs(p.mass - p.lower - (p.upper - p.mass) - 50.0) < 1e-9 for p in changing)
    assert not any(p.status is PayloadStatus.IMPLAUSIBLE for p in found)
    assert any(p.status is PayloadStatus.UPDATING for p in found[1100:])


def test_a_load_that_is_in_doubt_is_not_said_to_change_while_nothing_weighs() -> None:
    """Closed gates say why; as soon as something weighs it, it changes until it is known. A mass that no load explains
    is not held as if it were only not weighed now."""
    change, held = LoadChange(SPAN), replace(mass(400.0), taken=0)
    assert not any(changing((3, 400.0, 2.0, 0), change=change))
    t, kept = 13.0, 0.0
    for k in range(300):            # observer in doubt: forgotten, and then at rest
        t, kept = t + 0.01, kept - 0.1 * (k < 100)
        last = replace(held, noise=2.0 + k, half_width=2.0 * (2.0 + k))
        change.take(t, last, kept)
    assert change.changing and change.unweighed
    assert verdict_of(replace(last, gate='too slow'), change, LIMITS, '', True)[0] is PayloadStatus.TOO_SLOW
    lost = replace(last, mass=-3420.0, gate='too slow')
    assert verdict_of(lost, change, LIMITS, '', True)[0] is PayloadStatus.CHANGING
    change.take(t + 0.01, replace(last, taken=1), kept)
    assert not change.unweighed
    assert verdict_of(replace(last, taken=1), change, LIMITS, '', True)[0] is PayloadStatus.CHANGING
