# SPDX-License-Identifier: Apache-2.0
"""Observer and payload stage: records in and out, when a state is trusted, and what is said when it is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from core_support import VALVES, crane, cycle_run, estimate, kinematic, two_cylinders, work_cycle

from mbse_ros.errors import SampleError, SettingError
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine
from mbse_ros.monitor.faults import Fault
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.streams.records import ObserverStatus, PayloadStatus, Segment, StateEstimate
from mbse_ros.streams.stages import ObserverStage, PayloadStage

REST = np.array([0.2, 3.5e6, 2e6])


def segment(k: int, values: np.ndarray = REST, machine: Machine = crane(), n: int = 10, **changes: object) -> Segment:
    """The k-th segment of 10 ms with constant samples."""
    rows, commands = np.tile(values, (n, 1)), np.zeros((n, len(machine.commands)))
    made = Segment(k, k * 10_000_000, 10_000_000 // n, k == 0, machine.channels, rows, np.full(len(values), float(n)),
                   machine.commands, commands)
    return replace(made, **changes)


def run(stage: ObserverStage, *values: np.ndarray, first: int = 0) -> list[StateEstimate]:
    return [stage.process(segment(first + k, v)) for k, v in enumerate(values)]


@pytest.fixture
def stage() -> ObserverStage:
    return ObserverStage(crane(), ObserverSettings())


def test_settles_then_is_trusted(stage: ObserverStage) -> None:
    states = run(stage, *[REST] * 25)
    assert [s.status for s in states] == [ObserverStatus.STARTING] * 20 + [ObserverStatus.OK] * 5
    assert [s.restart for s in states] == [True] + [False] * 24
    assert 'settling' in states[0].reason and states[-1].reason == ''
    last = states[-1]
    assert (last.stamp_ns, last.sequence, last.step_ns) == (250_000_000, 24, 1_000_000)
    assert last.names[:5] == ('position/lift', 'velocity/lift', 'acceleration/lift', 'pressure/lift_piston',
                              'pressure/lift_rod')
    assert last.mean.shape == (10, 7) and last.covariance.shape == (7, 7) and last.nis_dof == 3
    np.testing.assert_allclose(last.mean[-1, [0, 3, 4]], REST, rtol=1e-4)
    np.testing.assert_array_equal(last.measured, REST)


def test_innovations_are_those_of_the_last_samples() -> None:
    """A jump of 3 mm in the last segment, about 7 deviations, that no gate rejects: the innovation is 3 mm."""
    stage = ObserverStage(crane(), ObserverSettings(gate=1.0))
    *_, last = run(stage, *[REST] * 30, REST + [3e-3, 0, 0])
    assert last.innovation[0] == pytest.approx(3e-3, rel=0.02)
    assert last.innovation_stddev[0] == pytest.approx(4.1e-4, rel=0.1)
    assert last.nis == pytest.approx(np.sum((last.innovation / last.innovation_stddev) ** 2)) and last.nis > 40


def test_a_jump_beyond_the_gate_is_rejected(stage: ObserverStage) -> None:
    """The innovation is published; 2 mm, about 5 deviations, is within the gate, 15 mm is beyond it,
    20 mm no piston moves."""
    *_, near = run(stage, *[REST] * 30, REST + [2e-3, 0, 0])
    assert near.nis_dof == 3 and near.innovation[0] == pytest.approx(2e-3, rel=0.02)
    *_, far = run(ObserverStage(crane()), *[REST] * 30, REST + [1.5e-2, 0, 0])       # more than a shock does
    assert far.innovation[0] == pytest.approx(1.5e-2, rel=0.02) and 'rejected: position/lift' in far.reason
    assert far.nis_dof == 2 and far.mean[-1, 0] == pytest.approx(REST[0], abs=1e-4)
    *_, jumped = run(ObserverStage(crane()), *[REST] * 30, REST + [2e-2, 0, 0])
    assert jumped.status is ObserverStatus.COASTING and jumped.reason == 'jumped: position/lift'
    assert jumped.nis_dof == 2 and jumped.mean[-1, 0] == pytest.approx(REST[0], abs=1e-4)


@pytest.mark.parametrize('missing', [1, 2, (1, 2)])
def test_coasts_where_a_sample_is_missing(stage: ObserverStage, missing: object) -> None:
    values = REST.copy()
    values[[missing] if isinstance(missing, int) else list(missing)] = np.nan
    *_, last = run(stage, *[REST] * 25, values)
    gone = np.isnan(values)
    assert last.status is ObserverStatus.COASTING and last.nis_dof == 3 - gone.sum()
    assert all(channel in last.reason for channel, out in zip(crane().channels, gone) if out)
    np.testing.assert_array_equal(np.isnan(last.innovation), gone)
    assert np.isfinite(last.nis) and np.isfinite(last.innovation_stddev).all()
    assert run(stage, REST, first=26)[0].status is ObserverStatus.OK


def test_is_lost_when_nothing_is_measured_and_starts_again(stage: ObserverStage) -> None:
    *_, lost = run(stage, *[REST] * 25, np.full(3, np.nan))
    assert lost.status is ObserverStatus.LOST and lost.reason == 'nothing is measured' and lost.nis_dof == 0
    again = run(stage, *[REST] * 25, first=26)
    assert again[0].restart and again[0].status is ObserverStatus.STARTING and again[-1].status is ObserverStatus.OK


def test_is_lost_when_the_position_is_not_known_any_more() -> None:
    """The position sensor dies, flows unknown: the deviation grows past a tenth of the stroke, then it is reported."""
    stage, machine = ObserverStage(crane('unknown')), crane('unknown')
    states = [stage.process(segment(k, REST * [1 if k < 25 else np.nan, 1, 1], machine)) for k in range(425)][25:]
    kinds = [s.status for s in states]
    first = kinds.index(ObserverStatus.LOST)
    assert first > 100 and set(kinds[:first]) == {ObserverStatus.COASTING} and 'not known' in states[first].reason
    deviation = [np.sqrt(s.covariance[0, 0]) for s in states[:first]]
    assert max(deviation) < 0.0536 and (np.diff(deviation) > 0).all()


def test_a_known_valve_gives_the_position_for_a_while(stage: ObserverStage) -> None:
    """Without a position sensor, with an exact valve: the deviation grows slowly, and says so."""
    states = run(stage, *[REST] * 25, *[REST * [np.nan, 1, 1]] * 200)
    known, last = states[24], states[-1]
    assert last.status is ObserverStatus.COASTING
    assert 5e-5 < np.sqrt(last.covariance[0, 0] - known.covariance[0, 0]) < 5e-4       # beside that of the zero


@pytest.mark.parametrize('position', [-0.2, 0.9, 40.0])
def test_a_position_far_out_of_the_stroke_is_no_position(stage: ObserverStage, position: float) -> None:
    state = run(stage, *[REST * [0, 1, 1] + [position, 0, 0]] * 3)[-1]
    assert state.status is ObserverStatus.LOST and 'lift' in state.reason


def test_a_little_outside_the_stroke_is_borne(stage: ObserverStage) -> None:
    assert run(stage, *[REST * [0, 1, 1] + [-0.01, 0, 0]] * 25)[-1].status is ObserverStatus.OK


def test_absurd_samples_do_not_stop_it(stage: ObserverStage) -> None:
    """Whatever finite numbers come, there is an answer; once they end the stage finds back."""
    for k, size in enumerate((1e12, -1e12, 1e200)):
        state = stage.process(segment(k, np.full(3, size)))
        assert state.status is ObserverStatus.LOST
    assert run(stage, *[REST] * 25, first=3)[-1].status is ObserverStatus.OK


def test_a_restart_begins_from_the_new_samples(stage: ObserverStage) -> None:
    run(stage, *[REST] * 25)
    elsewhere = stage.process(segment(100, REST * [2, 1, 1], restart=True))
    assert elsewhere.restart and elsewhere.status is ObserverStatus.STARTING
    assert elsewhere.mean[-1, 0] == pytest.approx(0.4, abs=1e-3)


@pytest.mark.parametrize('changes', [{'channels': ('position/lift', 'pressure/lift_rod', 'pressure/lift_piston')},
                                     {'channels': ('position/lift',)}, {'commands': ('command/other',)},
                                     {'values': np.zeros((0, 3)), 'command_values': np.zeros((0, 1))}])
def test_a_segment_that_does_not_fit_is_refused(stage: ObserverStage, changes: dict) -> None:
    with pytest.raises(SampleError) as caught:
        stage.process(segment(0, **changes))
    assert caught.value.channel == 'segment'
    assert stage.process(segment(1)).restart


def test_tuning_changes_while_running(stage: ObserverStage) -> None:
    stage.configure(kinematic())
    before = run(stage, *[REST] * 30)[-1]
    stage.configure(kinematic(acceleration_psd=1000.0, settle_time=1.0))
    assert stage.settings.acceleration_psd == 1000.0
    after = run(stage, *[REST] * 5, first=30)
    assert not after[0].restart and after[-1].covariance[2, 2] > 3 * before.covariance[2, 2]
    assert after[0].status is ObserverStatus.STARTING       # the longer settling applies at once
    with pytest.raises(SettingError):
        stage.configure(ObserverSettings(transition='5'))
    stage.configure(ObserverSettings())
    assert run(stage, REST, first=35)[0].restart    # with the mass, another state


def test_other_steps_come_with_the_segments(stage: ObserverStage) -> None:
    """5 ms and 0.5 ms steps: the stage follows, and rests where it was."""
    run(stage, *[REST] * 25)
    for k, n in ((25, 2), (26, 20), (27, 10)):
        state = stage.process(segment(k, n=n))
        assert state.status is ObserverStatus.OK and len(state.mean) == n
        np.testing.assert_allclose(state.mean[-1, [0, 3, 4]], REST, rtol=1e-4)


def test_reset_forgets(stage: ObserverStage) -> None:
    run(stage, *[REST] * 25)
    stage.reset()
    assert stage.process(segment(25)).restart


def test_a_segment_with_twenty_steps_of_two_samples_is_two_segments() -> None:
    """Longer segments: the same state at the end, the innovation over the last sample's interval."""
    short, long = ObserverStage(crane()), ObserverStage(crane())
    some = cycle_run('orifice').outputs[100:110]
    for k in range(0, 10, 2):
        a, b = (o.segment for o in some[k:k + 2])
        both = replace(a, restart=k == 0, values=np.vstack([a.values, b.values]),
                       command_values=np.vstack([a.command_values, b.command_values]))
        short.process(replace(a, restart=k == 0))
        one, two = short.process(b), long.process(both)
        np.testing.assert_array_equal(two.mean[-10:], one.mean)
        np.testing.assert_array_equal(two.covariance, one.covariance)
        np.testing.assert_array_equal(two.innovation, one.innovation)
        assert two.nis == one.nis and two.stamp_ns == one.stamp_ns


def state_of(valve: str, k: int) -> StateEstimate:
    return cycle_run(valve).outputs[k].state


@pytest.mark.parametrize('status', [ObserverStatus.STARTING, ObserverStatus.COASTING, ObserverStatus.LOST])
def test_payload_takes_no_state_that_is_not_trusted(status: ObserverStatus) -> None:
    payload = PayloadStage(crane())
    states = [o.state for o in cycle_run('orifice').outputs[:300]]
    before = [payload.process(s) for s in states][-1]
    held = payload.process(replace(states[-1], sequence=9, stamp_ns=5, status=status, reason='why',
                                   mean=states[-1].mean * np.nan))
    assert held.status is PayloadStatus.NO_DATA and status.name.lower() in held.reason and 'why' in held.reason
    assert (held.sequence, held.stamp_ns) == (9, 5) and before.samples > 500 and np.isnan(held.raw)
    assert (held.mass, held.samples) == (before.mass, before.samples)
    assert held.stddev == pytest.approx(before.stddev, rel=1e-12)


def test_what_came_shortly_before_a_doubt_is_not_believed() -> None:
    """A rejected sample: the fault may have begun before it was seen. The last half second to second is taken back."""
    payload = PayloadStage(crane())
    states = [o.state for o in cycle_run('orifice').outputs[:300]]
    counts = [payload.process(s).samples for s in states]
    held = payload.process(replace(states[-1], status=ObserverStatus.COASTING, faults=Fault.REJECTED))
    assert held.status is PayloadStatus.NO_DATA and held.faults is Fault.REJECTED and abs(held.mass - 50.0) < 0.5
    assert held.samples in counts[-101:-49] and held.samples < counts[-1] - 400


def test_of_another_machine_it_is_refused() -> None:
    payload, state = PayloadStage(crane()), state_of('orifice', 200)
    with pytest.raises(SampleError, match='columns, as of this machine'):
        payload.process(replace(state, weighing=state.weighing[:, :4]))
    taken = payload.process(state)
    assert taken.status is PayloadStatus.CHANGING and taken.samples > 0 and 'first mass' in taken.reason


def test_a_load_that_is_wholly_new_is_unknown() -> None:
    """Where nothing of the old information counts any more there is no mass, until the new load is weighed."""
    payload, outputs = PayloadStage(crane()), cycle_run('orifice').outputs
    before = [payload.process(o.state) for o in outputs[:300]][-1]
    reported = outputs[300].state.weighing.copy()
    reported[:, :2], reported[:, 2] = 0.0, -100.0
    gone = payload.process(replace(outputs[300].state, weighing=reported))
    after = [payload.process(o.state) for o in outputs[301:340]][-1]
    assert np.isfinite(before.mass) and np.isnan(gone.mass) and abs(after.mass - 50.0) < 3 * after.stddev + 1.0


def test_a_missing_sample_is_no_doubt() -> None:
    """The mass is held in that segment, and goes on in the next."""
    payload, outputs = PayloadStage(crane()), cycle_run('orifice').outputs
    before = [payload.process(o.state) for o in outputs[:300]][-1]
    held = payload.process(replace(outputs[300].state, status=ObserverStatus.COASTING, reason='rejected',
                                   faults=Fault.MISSING))
    after = payload.process(outputs[301].state)
    assert (held.mass, held.samples, held.status) == (before.mass, before.samples, PayloadStatus.NO_DATA)
    assert after.status is PayloadStatus.UPDATING and after.samples == before.samples + 10


@pytest.mark.parametrize('valve', VALVES)
def test_payload_stage_says_what_the_estimator_found(valve: str) -> None:
    payload = PayloadStage(crane(valve))
    found = [payload.process(o.state) for o in cycle_run(valve).outputs]
    for mine, whole in zip(found, cycle_run(valve).outputs):
        np.testing.assert_equal((mine.mass, mine.lower, mine.upper, mine.status), (
            whole.payload.mass, whole.payload.lower, whole.payload.upper, whole.payload.status))
    last = found[-1]
    assert last.lower < last.mass < last.upper and last.mass - last.lower == pytest.approx(last.upper - last.mass)


def test_a_state_out_of_reach_is_outside_the_stroke() -> None:
    payload = PayloadStage(crane())
    state = state_of('orifice', 200)
    wrong = payload.process(replace(state, mean=state.mean + 3.0 * (np.arange(7) == 0)))
    assert wrong.status is PayloadStatus.OUTSIDE_STROKE and 'position problem' in wrong.reason
    assert payload.process(state).status is not PayloadStatus.OUTSIDE_STROKE


def test_payload_drops_what_waits_from_before_a_restart() -> None:
    """In the guard time of a lift, of an observer of the motion alone; the mass stays, the joint angles are solved
    afresh."""
    moving = estimate('orifice', work_cycle()[:190], kinematic()).outputs[150:180]
    found = {}
    for restart in (False, True):
        payload = PayloadStage(crane())
        for o in moving[:-1]:
            before = payload.process(replace(o.state, restart=False))
        found[restart] = payload.process(replace(moving[-1].state, restart=restart)).samples - before.samples
    assert found == {False: 10, True: 0}


def test_payload_reset_and_tuning() -> None:
    payload = PayloadStage(crane())
    for o in cycle_run('orifice').outputs[:300]:
        last = payload.process(o.state)
    payload.configure(PayloadSettings(min_speed=0.5))
    assert payload.settings.min_speed == 0.5
    assert payload.process(state_of('orifice', 300)).status is PayloadStatus.TOO_SLOW
    payload.reset()
    assert np.isnan(payload.process(state_of('orifice', 301)).mass) and np.isfinite(last.mass)


@pytest.mark.parametrize('tilt_rod, expected', [(4.3e6, PayloadStatus.TOO_SLOW), (2e6, PayloadStatus.CONTACT)])
def test_two_cylinders_go_through_both_stages(tilt_rod: float, expected: PayloadStatus) -> None:
    """General dimensions: at rest, nothing can be said of the mass, and it is said; where no mass balances both
    cylinders' forces, 8 times the tilt's friction away, that is said."""
    machine, first = two_cylinders(), np.array([0.2, 0.2, 6e6, 2e6, 1e6, tilt_rod])
    observer, payload = ObserverStage(machine, backend='vm'), PayloadStage(machine, backend='vm')
    for k in range(25):
        state = observer.process(segment(k, first, machine))
        found = payload.process(state)
    assert state.status is ObserverStatus.OK and state.nis_dof == 6 and len(state.names) == 13
    assert found.status is expected and np.isnan(found.mass)


def test_for_a_second_after_a_doubt_the_mass_is_held() -> None:
    """As long as it takes until what the observer has learnt of the mass meanwhile is forgotten."""
    stage, doubted = PayloadStage(crane()), 2_500_000_000
    records = [stage.process(replace(o.state, status=ObserverStatus.COASTING, faults=Fault.REJECTED)
                             if o.state.stamp_ns == doubted else o.state) for o in cycle_run('orifice').outputs]
    after = {(p.stamp_ns - doubted) // 10_000_000: p for p in records if p.stamp_ns > doubted}
    held = [k for k, p in after.items() if Fault.DOUBTED in p.faults]
    assert held == list(range(1, 100)) and all(after[k].status is PayloadStatus.NO_DATA for k in held)
    assert after[100].status is not PayloadStatus.NO_DATA


def test_a_doubt_and_the_load_that_is_unknown_since_are_one_alarm() -> None:
    """A contact, a second of doubt, half a second in which nothing weighs, and then the load again."""
    stage, outputs = PayloadStage(crane()), cycle_run('orifice').outputs
    for k, output in enumerate(outputs[:600]):
        state, reported = output.state, output.state.weighing.copy()
        if 300 <= k < 450:
            reported[:, :2], reported[:, 2] = 0.0, -100.0 * (k == 300)
        faults = Fault.OUTSIDE_FORCE if k == 300 else state.faults
        found = stage.process(replace(state, weighing=reported, faults=faults))
        if k in (299, 599):
            assert found.status is PayloadStatus.UPDATING
        if 410 <= k < 450:
            assert found.status is PayloadStatus.TOO_SLOW
    assert stage._monitor._trust._count == 1


def test_an_observer_that_weighs_no_more_leaves_its_mass_behind() -> None:
    """Each kind of record has its estimator: what one knows the other does not, and it begins from nothing again."""
    payload, outputs = PayloadStage(crane()), cycle_run('orifice').outputs[:400]
    joint = [payload.process(o.state) for o in outputs][-1]
    none = outputs[-1].state.weighing[:0, :3]
    apart = [payload.process(replace(o.state, weighing=none)) for o in outputs]
    assert joint.samples > 100 and np.isnan(apart[0].mass) and apart[0].samples == 0 < apart[-1].samples
    again = payload.process(outputs[-1].state)
    assert again.samples <= len(outputs[-1].state.mean)
