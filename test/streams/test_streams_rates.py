# SPDX-License-Identifier: Apache-2.0
"""Rates of a CAN bus: 10 to 20 Hz, with jitter, different for each sensor. A mass then has an interval that holds, and
what is wrong with the rate is said as that."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from core_support import crane, feed, work_cycle
from streams_samples import BASE, CHANNELS, COMMANDS, MS, rows
from streams_samples import feed as segments_of

from mbse_ros.filters.between_samples import InterpolationError
from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.mass_information import MassInformation, mass_information
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import load_machine
from mbse_ros.monitor.clocks import Gaps
from mbse_ros.monitor.faults import NONE, Fault, reason_of
from mbse_ros.monitor.rates import Lately, too_slow
from mbse_ros.offline.checks.log_verdict import no_segment
from mbse_ros.offline.log_samples import LogSamples
from mbse_ros.payload.filter import gain_of, window_of
from mbse_ros.payload.mass import Mass
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, cycle_by_name
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.streams.interpolation import InterpolationSettings, Interpolator
from mbse_ros.streams.pipeline import Output, Pipeline
from mbse_ros.streams.records import ObserverStatus, PayloadEstimate, PayloadStatus, Segment
from mbse_ros.streams.stages import PayloadStage

LOAD = 200.0
INPUTS_OF = (*CHANNELS, *COMMANDS)


def thinned(frames: list[SensorFrame], intervals: list[int]) -> list[SensorFrame]:
    """Frames (100 Hz) after so many each, again and again."""
    places = np.cumsum(np.resize(intervals, len(frames)))
    return [frames[k] for k in places if k < len(frames)]


@cache
def run(valve: str, *intervals: int) -> list[Output]:
    return feed(Pipeline(crane(valve)), thinned(work_cycle(LOAD), list(intervals)))


@pytest.mark.parametrize('valve, intervals', [
    ('orifice', (5,)), ('unknown', (8,)), ('orifice', (8, 12, 10, 11, 9, 12, 8)), ('unknown', (20,))], ids=str)
def test_slow_sensors_weigh_and_their_intervals_hold(valve: str, intervals: tuple[int, ...]) -> None:
    """20, 12.5, 5 Hz, and 10 Hz with 20 ms of jitter: no restart, nothing of the machine's file is blamed."""
    outputs = run(valve, *intervals)
    assert sum(o.state.restart for o in outputs) == 1
    told = [o.payload for o in outputs if o.payload.status is PayloadStatus.UPDATING]
    assert len(told) > 5 and np.mean([p.lower <= LOAD <= p.upper for p in told]) > 0.92
    assert not any(o.payload.status is PayloadStatus.IMPLAUSIBLE for o in outputs)
    first = next(k for k, o in enumerate(outputs) if o.payload.status is PayloadStatus.UPDATING)
    assert not any(o.payload.status is PayloadStatus.CHANGING for o in outputs[first:])
    assert outputs[-1].payload.upper - outputs[-1].payload.lower < 0.25 * LOAD


def test_what_the_rate_hides_is_said_with_numbers() -> None:
    """At 10 Hz, where the crane stops: the channel, its rate, and the rate that this motion needs."""
    outputs = run('orifice', 10)
    reasons = {o.state.reason for o in outputs if o.state.reason and o.state.status is ObserverStatus.OK}
    assert 0 < len(reasons) < 10 and all(r.startswith(reason_of(Fault.RARE, 'pressure/lift_')) for r in reasons)
    assert all('comes at 10 Hz and needs about' in reason for reason in reasons)
    doubted = [o for o in outputs if o.payload.status is PayloadStatus.NO_DATA and Fault.RARE in o.payload.faults]
    assert doubted and not any('changes' in o.payload.reason for o in outputs)
    assert not any(Fault.RARE in o.state.faults for o in run('orifice', 1))


def test_positions_of_5_hz_beside_pressures_of_50() -> None:
    pipeline, outputs = Pipeline(crane('unknown')), []
    for k, frame in enumerate(thinned(work_cycle(LOAD), [2])):
        for channel, value in (*frame.samples.items(), *frame.commands.items()):
            if not channel.startswith('position/') or k % 10 == 0:
                outputs += pipeline.add(channel, frame.stamp_ns, value)
    told = [o.payload for o in outputs if o.payload.status is PayloadStatus.UPDATING]
    assert len(told) > 20 and np.mean([p.lower <= LOAD <= p.upper for p in told]) > 0.92
    assert not any(o.payload.status is PayloadStatus.IMPLAUSIBLE for o in outputs)


@pytest.mark.parametrize('hertz', [0.5, 1.0, 2.0, 3.0, 4.5])
def test_the_error_of_lines_is_bounded_up_to_half_the_rate(hertz: float) -> None:
    """A sine at 10 Hz: the lines are off by no more than is said, and by no less than a fifth of that."""
    t = np.arange(20_000) * 1e-3
    samples = np.sin(2 * np.pi * hertz * t[99::100])
    lines = np.interp(t, t[99::100], samples)
    error, noise = InterpolationError(np.array([1e-12]), np.array([[True, False]])), []
    for k in range(2, len(samples)):
        error.take(lines[100 * k:100 * (k + 1), None], np.array([100.0]), np.array([0]))
        noise.append(float(error.variance[0]))
    off = (lines - np.sin(2 * np.pi * hertz * t))[149:-1000:100]
    assert 0.2 < np.sqrt(np.mean(off ** 2) / np.mean(noise[1:])) < 1.0
    assert error.density(np.array([100.0]), 1e-3, np.array([0])) == pytest.approx(
        [4.0 * noise[-1] * 0.1, 0.0])
    assert error.rare(np.array([0]))[0] == pytest.approx((0, 1e6 * noise[-1] ** 0.5))


def test_noise_alone_is_no_error_of_lines() -> None:
    rng = np.random.default_rng(1)
    samples = rng.normal(size=400)
    lines = np.interp(np.arange(40_000), np.arange(400) * 100.0, samples)
    error, found = InterpolationError(np.ones(1), np.array([[True]])), []
    for k in range(1, 399):
        error.take(lines[100 * k + 1:100 * (k + 1) + 1, None], np.array([100.0]), np.array([0]))
        found.append(bool(error.rare(np.array([0]))))
    assert np.mean(found) < 0.01 and np.mean(error.variance) < 1.0


def test_a_slow_sensor_is_bridged_and_a_pause_of_a_fast_one_is_not() -> None:
    """Intervals of 120 ms of a sensor of 10 Hz have values; 0.15 s without any sample of 100 Hz is a restart."""
    slow = [(name, BASE + stamp * MS, 1.0) for stamp in (0, 100, 180, 300, 420, 640, 740) for name in INPUTS_OF]
    found = segments_of(Interpolator(CHANNELS, COMMANDS), slow)
    assert [segment.restart for segment in found] == [True] + [False] * 5
    assert not any(np.isnan(segment.values).any() for segment in found)
    fast = [sample for sample in rows(0, 500) if not BASE + 100 * MS < sample[1] < BASE + 250 * MS]
    found = segments_of(Interpolator(CHANNELS, COMMANDS), fast)
    assert sum(segment.restart for segment in found) == 2



def pauses(frames: list[SensorFrame], length_ns: int) -> list[SensorFrame]:
    """Without all samples of so long, once in 2 s."""
    return [f for f in frames if not 0 < (f.stamp_ns - 1_500_000_000) % 2_000_000_000 < length_ns]


@pytest.mark.parametrize('valve, every, pause', [('orifice', 1, 200 * MS), ('unknown', 5, 400 * MS)])
def test_pauses_of_all_sensors_are_no_other_load_and_no_alarm(valve: str, every: int, pause: int) -> None:
    """What was known of the mass stays, less sure; what is missing says nothing against it."""
    outputs = feed(Pipeline(crane(valve)), pauses(thinned(work_cycle(LOAD), [every]), pause))
    assert sum(o.state.restart for o in outputs) > 10
    first = next(k for k, o in enumerate(outputs) if o.payload.status is PayloadStatus.UPDATING)
    told = [o.payload for o in outputs[first:] if o.payload.status is PayloadStatus.UPDATING]
    assert len(told) > 100 / every and all(p.lower <= LOAD <= p.upper for p in told)
    assert not {PayloadStatus.CHANGING, PayloadStatus.IMPLAUSIBLE} & {o.payload.status for o in outputs[first:]}
    assert told[-1].upper - told[-1].lower < 0.2 * LOAD


@pytest.mark.parametrize('name, payload, cycle, segment', [
    ('zx200_can', 750.0, 'boom', 0.1), ('patu655_lift', LOAD, 'lift_hold_lower', 0.0)])
def test_one_sensor_that_is_silent_now_and_then_is_no_other_load(name: str, payload: float, cycle: str,
                                                                 segment: float) -> None:
    """For 0.4 s once in 2 s, one after the other; as of a log, and live."""
    machine = load_machine(name)
    frames = SimulatedCrane(machine, payload, 1, cycle_by_name(cycle, machine, 1)).advance(12_000 * MS)
    cut = [replace(f, samples={channel: value for k, (channel, value) in enumerate(f.samples.items())
                               if k != f.stamp_ns // (2000 * MS) % len(f.samples) or f.stamp_ns % (2000 * MS) > 400 * MS
                               or f.stamp_ns < 2000 * MS}) for f in frames]
    outputs = feed(Pipeline(machine, segment=segment), cut)
    since = [o.payload for o in outputs if o.payload.stamp_ns > 2000 * MS]
    assert sum(p.faults == Fault.MISSING for p in since) > 15
    assert not {PayloadStatus.CHANGING, PayloadStatus.IMPLAUSIBLE} & {p.status for p in since}


def test_the_longer_a_pause_the_less_a_mass_counts() -> None:
    """In the payload and in the observer; where the state was wrong nothing does."""
    kept: list[list[float]] = []
    for hole in (0.2, 0.5, 4.0):
        pipeline = Pipeline(crane())
        before = feed(pipeline, work_cycle(LOAD)[:600])[-1]
        later = feed(pipeline, [f for f in work_cycle(LOAD)[600:] if f.stamp_ns > (6.0 + hole) * 1e9][:12])
        mass = [o.state.mean[-1, -1] for o in later]
        deviations = [o.state.covariance[-1, -1] ** 0.5 for o in (before, later[0])]
        assert mass[0] == pytest.approx(before.state.mean[-1, -1], abs=2.0 * deviations[1])
        kept.append([float(pipeline.payload._estimator._restarted), deviations[0] / deviations[1]])
    expected = np.maximum(np.exp(-np.array([0.2, 0.5, 4.0]) / 0.1), 1e-8)
    assert [share for share, _ in kept] == pytest.approx(expected, rel=0.2)
    assert 1.0 > kept[0][1] > kept[1][1] > kept[2][1]


def test_a_bucket_that_fills_within_a_pause_has_no_interval_of_the_old_load() -> None:
    machine = load_machine('zx200')
    frames = list(SimulatedCrane(machine, 250.0, 1, cycle_by_name('dig', machine, 1)).advance(9_000_000_000))
    outputs = feed(Pipeline(machine), [f for f in frames if not 2.5 < f.stamp_ns * 1e-9 < 4.0])
    loads = {f.stamp_ns: f.payload for f in frames}
    later = [o.payload for o in outputs if o.payload.stamp_ns > 4_000_000_000
             and o.payload.status is PayloadStatus.UPDATING and o.payload.stamp_ns in loads]
    assert len(later) > 100
    assert sum(not p.lower <= loads[p.stamp_ns] <= p.upper for p in later) < 10


def test_a_load_that_is_dropped_while_samples_show_little_holds_the_mass() -> None:
    """An excavator moves all its cylinders; the mass is another's for no longer than 1.5 s, and 3.9 s without that."""
    machine = load_machine('zx200')
    cycle = replace(cycle_by_name('random', machine, 3), load=((0.0, 1.0), (8.0, 1.0), (9.0, 0.2), (99.0, 0.2)))
    frames = list(SimulatedCrane(machine, 250.0, 3, cycle).advance(13 * 10 ** 9))
    outputs = feed(Pipeline(machine), frames[::10])
    wrong = [o.payload.status is PayloadStatus.UPDATING and not o.payload.lower <= 250.0 * cycle.load_at(
        o.payload.stamp_ns * 1e-9) <= o.payload.upper for o in outputs]
    assert max(len(spell) for spell in ''.join('x' if item else ' ' for item in wrong).split(' ')) <= 15
    held = [o.payload for o in outputs if o.payload.status is PayloadStatus.NO_DATA and o.payload.stamp_ns > 9e9]
    assert held and all(Fault.RARE in p.faults for p in held)


def test_what_was_weighed_lately_shows_the_load_or_not() -> None:
    def shown(*samples: tuple[float, float]) -> bool:
        return lately(30.0, *((100 * k, *sample) for k, sample in enumerate(samples)))
    assert shown((55.0, 220.0), (55.0, 190.0), (55.0, 195.0), (55.0, 210.0))
    assert not shown((60.0, 200.0))                                     # known no better than this
    assert not shown(*[(55.0, 300.0)] * 4)                              # another load
    assert not shown(*[(55.0, 200.0)] * 4, *[(1e4, 200.0)] * 10)        # that was more than a second ago


def lately(half_width: float, *samples: tuple[int, float, float]) -> bool:
    """What was weighed, at times, ms, with deviations and masses, kg: whether it shows 200 kg, of limits 1 t apart."""
    found = Lately(1000.0)
    for at, stddev, mass in samples:
        weighed = MassInformation.of(np.array([[1.0, mass, 0.0]]) / stddev ** 2)
        found.take(at * MS, weighed, mass_of(200.0, half_width), False)
    return found.shows(mass_of(200.0, half_width))


def test_both_sides_of_what_the_last_second_shows() -> None:
    """A mass to its half-width or 20 kg, within that and 1.96 deviations of what was weighed."""
    assert lately(1.0, (0, 19.0, 200.0)) and not lately(1.0, (0, 21.0, 200.0))
    assert lately(30.0, (0, 29.0, 200.0)) and not lately(30.0, (0, 31.0, 200.0))
    room = np.hypot(30.0, 1.96 * 29.0)
    assert lately(30.0, (0, 29.0, 199.0 + room)) and not lately(30.0, (0, 29.0, 201.0 + room))
    assert lately(30.0, (0, 29.0, 200.0), (990, 1e4, 200.0)) and not lately(30.0, (0, 29.0, 200.0), (1010, 1e4, 200.0))


def test_where_most_samples_are_too_rare_no_mass_counts() -> None:
    """70 % of the last 2 s, as an exponential mean: 2.41 s from none to all."""
    for share, steps, shows in ((1.0, 240, True), (1.0, 241, False), (0.65, 2000, True), (0.75, 2000, False)):
        found, mass, weighed = Lately(1000.0), mass_of(200.0, 30.0), MassInformation.of(np.array([[1e-2, 2.0, 0.0]]))
        for k in range(1, steps + 1):
            found.take(10 * k * MS, weighed, mass, k * share // 1 > (k - 1) * share // 1)
        assert found.shows(mass) is shows, (share, steps)


def test_an_outside_force_before_the_first_mass_is_no_alarm_where_samples_are_too_rare() -> None:
    """Lines between them balance no forces; with samples that are not, the next masses do not count."""
    for rare, doubted in ((NONE, True), (Fault.RARE, False)):
        stage, found = PayloadStage(crane()), []
        for k, output in enumerate(run('orifice', 1)[:800]):
            faults = Fault.OUTSIDE_FORCE if 60 <= k < 65 else rare if k < 60 else output.state.faults
            found.append(stage.process(replace(output.state, faults=faults)))
        assert any(Fault.NOT_TRUSTED in p.faults for p in found) is doubted


def told(outputs: list[Output], rare_at: float, stage: PayloadStage) -> list[PayloadEstimate]:
    """Masses of states of which one, at a time, s, has samples that are too rare."""
    return [stage.process(replace(o.state, reason='too rare', faults=Fault.RARE)
                          if abs(o.state.stamp_ns * 1e-9 - rare_at) < 0.005 else o.state) for o in outputs]


def test_for_two_seconds_samples_too_rare_are_blamed_for_a_load_that_changes() -> None:
    moves = Move(0.0, 1.0), Move(5.0, 3.0), Move(0.0, 1.0), Move(-5.0, 3.0)
    cycle = WorkCycle(0.3, moves, load=((5.5, 1.0), (7.5, 4.0)))
    fixed = ObserverSettings(force_error=0.0)       # else the slow change of 2 s is one of the force balance
    outputs = feed(Pipeline(crane(), observer=fixed), SimulatedCrane(crane(), 50.0, 1, cycle).run())
    later = [p for p in told(outputs, 4.3, PayloadStage(crane())) if p.stamp_ns > 5_900 * MS]
    held = [p.stamp_ns * 1e-9 - 4.3 for p in later if p.status is PayloadStatus.NO_DATA and Fault.RARE in p.faults]
    rest = [p.stamp_ns * 1e-9 - 4.3 for p in later if p.status is PayloadStatus.CHANGING]
    assert held and rest and max(held) < 2.0 - 1e-6 and min(rest) < 2.02 and rest == sorted(rest)


def test_for_ten_seconds_after_samples_too_rare_the_last_second_must_show_the_mass() -> None:
    """A ninth of the information counts of such a sample where masses are compared: it is off by 3 deviations."""
    stage, shares = PayloadStage(crane()), set()
    stage._monitor._lately.shows = lambda mass: False        # type: ignore
    process = stage._estimator.process
    stage._estimator.process = lambda *a: (shares.add(a[-1]), process(*a))[1]       # type: ignore
    found = told(run('orifice', 1)[:1300], 2.0, stage)
    held = [p.stamp_ns * 1e-9 - 2.0 for p in found if Fault.RARE in p.faults]
    free = [p.stamp_ns * 1e-9 - 2.0 for p in found if p.status is PayloadStatus.UPDATING and p.stamp_ns > 2_000 * MS]
    assert 9.9 < max(held) < 10.0 - 1e-6 < min(free) < 10.1
    assert sorted(shares) == [pytest.approx(1.0 / 9.0), 1.0]


def test_a_second_without_samples_makes_what_follows_independent() -> None:
    rest = np.array([0.2, 3.5e6, 2e6])
    segment = Segment(0, 0, 10 * MS, True, crane().channels, rest[None], np.ones(3), crane().commands, np.zeros((1, 1)))
    assert [replace(segment, start_ns=start).independent(5_000 * MS) for start in (5_990 * MS, 6_010 * MS, 4_990 * MS)
            ] == [False, True, True]
    assert not replace(segment, start_ns=9_000 * MS, restart=False).independent(5_000 * MS)


def mass_of(mass: float, half_width: float) -> Mass:
    return Mass(mass, half_width / 2, half_width, mass, mass, 100, 'open', half_width / 2, 10, mass)


def test_max_gap_bounds_what_is_bridged() -> None:
    slow = [(name, BASE + 350 * k * MS, 1.0) for k in range(8) for name in INPUTS_OF]
    assert not segments_of(Interpolator(CHANNELS, COMMANDS), slow)
    found = segments_of(Interpolator(CHANNELS, COMMANDS, InterpolationSettings(max_gap=0.4)), slow)
    assert len(found) == 7 and not any(np.isnan(segment.values).any() for segment in found)


def test_a_state_that_starts_again_may_be_in_motion() -> None:
    """Its speed is not known, as it is at a first start at rest; samples then tell it."""
    spreads = []
    for moving in (False, True):
        observer = HydraulicObserver(crane(), ObserverSettings(), 'vm')
        observer.start(np.array([0.2, 5e6, 1e6]), np.zeros(1), moving)
        nothing = observer.process(np.full((1, 3), np.nan), np.zeros((1, 1)), np.ones(3), 1e-6)
        spreads.append(np.sqrt(nothing.covariance.diagonal()[observer.names.index('velocity/lift')]))
    assert spreads == pytest.approx([0.05, 0.5], rel=1e-2)
    pipeline = Pipeline(crane())
    starts: list[bool] = []
    start = pipeline.observer._observer.start
    pipeline.observer._observer.start = lambda *_, moving, pause: (     # type: ignore
        starts.append(moving), start(*_, moving, pause))
    feed(pipeline, [f for f in work_cycle(LOAD)[:200] if not 1e9 < f.stamp_ns < 1.2e9])
    assert starts == [False, True]


def test_how_often_a_sensor_sends_is_known_from_its_stamps() -> None:
    gaps = Gaps()
    for k in range(6):
        gaps.take('position/lift', k * 400_000_000)
        gaps.take('pressure/lift_rod', k * 10_000_000)
    assert gaps.slower_than(300_000_000) == {'position/lift': 400_000_000}
    text = too_slow(gaps.slower_than(300_000_000), 300_000_000)
    assert 'position/lift every 0.40 s (2.5 Hz)' in text and 'interpolation.max_gap (0.3 s)' in text
    assert too_slow({}, 300_000_000) == ''


SLOW, FAST = [k * 400_000_000 for k in range(10)], [k * 10_000_000 for k in range(400)]


@pytest.mark.parametrize(('stamps', 'values', 'reason'), [
    (SLOW[:1], 1.0, 'only one sample of b'),
    (FAST, np.nan, 'all samples of b are missing (NaN)'),
    (SLOW, 1.0, 'too rare: b every 0.40 s (2.5 Hz)'),
    ([stamp + 10 ** 10 for stamp in FAST], 1.0, 'no time in common: b begins 6.01 s after the end of a')])
def test_each_cause_of_no_segment_has_its_reason(stamps: list[int], values: float, reason: str) -> None:
    samples = LogSamples.of([('a', stamp, 1.0) for stamp in FAST] + [('b', stamp, values) for stamp in stamps])
    assert reason in no_segment(samples, ('a', 'b'), 300_000_000)


def test_gain_and_window_of_the_mass_are_as_long_at_any_step() -> None:
    gains = [(1.0 - gain_of(2e-4, dt)) ** (0.5 / dt) for dt in (5e-4, 1e-3, 2e-3)]
    assert gains == pytest.approx([gains[1]] * 3) and gain_of(2e-4, 1e-3) == 2e-4
    assert [window_of(401, dt) for dt in (5e-4, 1e-3, 2e-3)] == [802, 401, 200]


def test_a_change_of_the_load_is_found_as_soon_at_any_step() -> None:
    """A mass that steps by many deviations: its activity after the same time, at 0.5, 1 and 2 ms; and how it fades."""
    symbols = [ca.SX.sym(name, 2 if name == 'j' else 1) for name in 'abcdefghij']
    dt, found, calm = ca.SX.sym('dt'), [], []
    it = mass_information(tuple(symbols[:4]), tuple(symbols[4:7]), *symbols[7:], dt)
    function = ca.Function('information', [*symbols, dt], [it.activity, it.trend])
    for step in (5e-4, 1e-3, 2e-3):
        activity, trend = 1.0, np.zeros(2)
        for _ in range(round(0.04 / step)):     # of white noise of one density, and a bias
            learnt, change = 1e-3 * step, 1.5 * step
            activity, trend = function(0, 0, 1, 1, change, 0, 1 - learnt, 0, activity, trend, step)
        found.append(np.log(float(activity)))
        calm.append(float(function(0, 0, 1, 1, 0, 0, 1, 0, 100.0, np.zeros(2), step)[0]) ** (1e-3 / step))
    assert found[1] > 0.5 and found == pytest.approx([found[1]] * 3, rel=0.25)
    assert [np.log(item / 100.0 ** (1e-3 / step)) for item, step in zip(calm, (5e-4, 1e-3, 2e-3))] == pytest.approx(
        [-0.004] * 3)
