# SPDX-License-Identifier: Apache-2.0
"""The controller of trajectories in a closed loop with a simulated machine whose states are the true ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mbse_ros.errors import SettingError
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.machine import load_machine
from mbse_ros.machine.piston_motion import moved_joints
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.streams.records import ObserverStatus, PayloadEstimate, PayloadStatus, StateEstimate
from mbse_ros.streams.tracking import Outcome, Tolerances, Tracked, TrackingSettings, TrajectoryTracking, outcome_of
from mbse_ros.streams.trajectory import Trajectory

MASS = 200.0


class Loop:
    """A machine that the controller moves; ``step`` is 10 ms."""

    def __init__(self, name: str = 'patu655_lift', **settings: float | str) -> None:
        self.machine = load_machine(name)
        self.crane = SimulatedCrane(self.machine, MASS, 1, WorkCycle(0.5, (Move(0.0, 60.0),)),
                                    plant=plant_of(self.machine))
        self.tracking = TrajectoryTracking(self.machine, TrackingSettings(**settings))
        self.commands = dict.fromkeys(self.machine.valves, 0.0)
        self.places, self.errors = list[np.ndarray](), list[np.ndarray]()
        self.step()

    def state(self, frame: SensorFrame) -> StateEstimate:
        """The true state as an estimate."""
        names, _ = state_names(self.machine, False)
        given = {f'{kind}/{name}': value for kind in ('position', 'velocity', 'acceleration')
                 for name, value in zip(self.machine.coordinates, getattr(frame, kind))}
        given |= {f'pressure/{name}': value for name, value in zip(self.machine.volumes, frame.pressure)}
        none = np.zeros(0)
        return StateEstimate(1, frame.stamp_ns, 10_000_000, False, names,
                             np.array([[given.get(name, 0.0) for name in names]]), np.eye(len(names)), (), none, none,
                             none, 0.0, 0, ObserverStatus.OK)

    def step(self, weighs: bool = True, **changes: object) -> Tracked | None:
        """The next state, with ``changes``; None also of what was ended before."""
        frame = self.crane.frame(self.commands)
        if weighs:
            self.tracking.weigh(PayloadEstimate(1, frame.stamp_ns, MASS, 1.0, MASS, MASS, MASS, MASS, 1,
                                                PayloadStatus.UPDATING))
        done = self.tracking.process(replace(self.state(frame), **changes))
        if done is not None:
            self.commands |= done.commands
            self.places.append(done.position)
            self.errors.append(done.desired.position - done.position)
        return done

    def run(self, most: float = 30.0) -> Tracked:
        """Until the trajectory is over."""
        for _ in range(round(100 * most)):
            done = self.step()
            if done is not None and done.outcome is not None:
                return done
        raise AssertionError('not over')

    @property
    def here(self) -> np.ndarray:
        """The pistons."""
        return self.crane.coordinates[self.machine.pistons]


def to(loop: Loop, time: float, by: float, names: tuple[str, ...] = ()) -> Trajectory:
    """Cylinders (all) moved by so much in a time."""
    names = names or loop.machine.cylinders
    goal = [loop.here[loop.machine.cylinders.index(name)] + by for name in names]
    return Trajectory(names, [time], [goal], [[0.0] * len(names)])


def test_it_ends_at_the_last_point_and_the_load_makes_it_exact() -> None:
    """Far less than half of the error of the valves' nominal flow; then neutral, and still there a second later."""
    size = {}
    for way in ('load', 'pressures', 'nominal'):
        loop = Loop('patu655', feed_forward=way, gain=1.0, integral_gain=0.25, path_tolerance=0.0, goal_time=5.0)
        begin = loop.here
        loop.tracking.follow(to(loop, 4.0, 0.15))
        done = loop.run()
        assert (done.outcome, done.reason) == (Outcome.SUCCESSFUL, '')
        assert set(done.commands.values()) == {0.0} and not loop.tracking.busy
        size[way] = np.abs(np.array(loop.errors)[50:]).max()
        for _ in range(100):
            assert loop.step() is None
        np.testing.assert_allclose(loop.here, begin + 0.15, atol=0.006)
    assert size['load'] < 0.002 and size['pressures'] < 0.003 and size['nominal'] > 3 * size['load'], size


def test_joints_are_followed_as_their_pistons_are() -> None:
    loop = Loop('zx200')
    joints, q = moved_joints(loop.machine), loop.tracking._q
    assert q is not None
    places = loop.machine.system.indices(joints)
    goal = q[places] + [0.1, -0.1, 0.1]
    loop.tracking.follow(Trajectory(joints, [3.0], [goal], [[0.0] * 3]))
    assert loop.run().outcome is Outcome.SUCCESSFUL
    np.testing.assert_allclose(loop.tracking._q[places], goal, atol=0.006)
    assert np.abs(loop.errors).max() < 0.02


def test_only_valves_that_take_part_get_commands_and_those_that_are_left_are_closed() -> None:
    loop = Loop('patu655')
    first, second = loop.machine.cylinders
    loop.tracking.follow(to(loop, 2.0, 0.1, (first,)))
    begin = loop.here
    for _ in range(100):
        done = loop.step()
    assert done is not None and len(done.commands) == 1 and abs(loop.here[1] - begin[1]) < 1e-3
    loop.tracking.follow(to(loop, 2.0, 0.1, (second,)))
    done = loop.step()
    assert done is not None and list(done.commands.values())[0] == 0.0 and len(done.commands) == 2
    done = loop.step()
    assert done is not None and len(done.commands) == 1


def test_the_next_trajectory_begins_where_the_last_one_was_to_be() -> None:
    loop = Loop()
    loop.tracking.follow(to(loop, 2.0, 0.1))
    for _ in range(100):
        before = loop.step()
    loop.tracking.follow(to(loop, 2.0, -0.05))
    after = loop.step()
    assert before is not None and after is not None
    jump = after.desired.position - before.desired.position - 0.01 * before.desired.velocity
    assert np.abs(jump).max() < 2e-5 and before.desired.velocity[0] > 0.05


def test_the_integral_stands_while_the_valve_is_full() -> None:
    """A motion too fast for the pump: what it lacks must not be paid with an overshoot."""
    loop = Loop(path_tolerance=0.0, gain=2.0, integral_gain=1.0, integral_limit=1.0)
    goal = loop.here + 0.2
    loop.tracking.follow(to(loop, 0.4, 0.2), Tolerances(goal={'lift': 1e-9}, goal_time=4.0))
    assert loop.run().outcome is Outcome.GOAL_TOLERANCE_VIOLATED
    assert max(np.abs(loop.errors))[0] > 0.05 and (np.max(loop.places) - goal)[0] < 0.012


@pytest.mark.parametrize('changes, text', [
    ({'status': ObserverStatus.LOST, 'reason': 'no sensor'}, 'LOST: no sensor'), ({'restart': True}, 'starts again'),
    ({'mean': np.full((1, 11), np.nan)}, 'NaN')])
def test_a_state_that_cannot_be_used_stops_it(changes: dict[str, object], text: str) -> None:
    loop = Loop()
    loop.tracking.follow(to(loop, 2.0, 0.1))
    assert loop.step() is not None and any(loop.commands.values())
    if 'mean' in changes:
        changes = {'mean': np.full((1, len(state_names(loop.machine, False)[0])), np.nan)}
    done = loop.step(**changes)
    assert done is not None and done.outcome is Outcome.STOPPED and text in done.reason
    assert not any(loop.commands.values()) and not loop.tracking.busy


def test_states_that_stay_away_or_are_in_doubt_for_too_long_stop_it() -> None:
    loop = Loop(oldest=0.1, coasting=0.195)
    loop.tracking.follow(to(loop, 2.0, 0.1))
    loop.step()
    for _ in range(15):
        loop.crane.frame(loop.commands)
    done = loop.step()
    assert done is not None and done.outcome is Outcome.STOPPED and '0.160 s' in done.reason
    loop.tracking.follow(to(loop, 2.0, 0.1))
    last = [loop.step(status=ObserverStatus.COASTING, reason='stuck') for _ in range(20)]
    assert last[18] is not None and last[18].outcome is None
    assert last[19] is not None and last[19].outcome is Outcome.STOPPED and 'COASTING' in last[19].reason


def test_tolerances_of_a_goal_are_kept_or_end_it() -> None:
    loop = Loop()
    loop.tracking.follow(to(loop, 2.0, 0.1), Tolerances(path={'lift': 1e-5}))
    assert loop.run().outcome is Outcome.PATH_TOLERANCE_VIOLATED
    loop.tracking.follow(to(loop, 2.0, 0.1), Tolerances(path={'lift': np.inf}, goal={'lift': 1e-9}, goal_time=0.0))
    done = loop.run()
    assert done.outcome is Outcome.GOAL_TOLERANCE_VIOLATED and not any(loop.commands.values())


def test_what_cannot_be_followed_is_refused_and_what_is_followed_goes_on() -> None:
    loop = Loop()
    loop.tracking.follow(to(loop, 2.0, 0.1))
    loop.step()
    far, stamp = loop.here + 0.3, loop.crane._next_ns
    for trajectory, more, code in (
            (to(loop, 1.0, 5.0), {}, Outcome.INVALID_GOAL),
            (Trajectory(['boom'], [1.0], [[0.5]]), {}, Outcome.INVALID_JOINTS),
            (to(loop, 1.0, 0.1), {'start_ns': stamp - 2_000_000_000}, Outcome.OLD_HEADER_TIMESTAMP),
            (Trajectory(['lift'], [0.0, 1.0], [far, far]), {}, Outcome.INVALID_GOAL),
            (to(loop, 1.0, 0.1), {'tolerances': Tolerances(path={'boom': 1.0})}, Outcome.INVALID_GOAL)):
        with pytest.raises(SettingError) as caught:
            loop.tracking.follow(trajectory, **more)
        assert outcome_of(caught.value) is code, caught.value
    assert loop.run().outcome is Outcome.SUCCESSFUL
    idle = TrajectoryTracking(loop.machine)
    with pytest.raises(SettingError, match='none has come'):
        idle.follow(to(loop, 1.0, 0.1))
    assert idle.stop(Outcome.STOPPED, '') is None


def test_a_mass_that_is_old_or_not_trusted_is_none() -> None:
    loop = Loop()
    assert loop.tracking.mass == MASS
    for _ in range(199):
        loop.step(weighs=False)
    assert loop.tracking.mass == MASS
    for _ in range(2):
        loop.step(weighs=False)
    assert loop.tracking.mass is None
    stamp = loop.crane._next_ns
    for status, known in ((PayloadStatus.TOO_SLOW, True), (PayloadStatus.CHANGING, False)):
        loop.tracking.weigh(PayloadEstimate(1, stamp, MASS, 1.0, MASS, MASS, MASS, MASS, 1, status))
        assert (loop.tracking.mass is not None) is known


def test_the_speeds_are_those_of_when_the_command_acts() -> None:
    """Of a trajectory that is followed without looking: the delay and the valve's time constant ahead of the state."""
    loop = Loop(feed_forward='nominal', gain=0.0, integral_gain=0.0, path_tolerance=0.0, delay=0.03)
    trajectory, start = to(loop, 2.0, 0.05), loop.crane._next_ns
    loop.tracking.follow(trajectory, start_ns=start)
    valve, cylinder = loop.machine.hydraulics.valves['lift_valve'], loop.machine.description.cylinders['lift']
    per_speed = valve.nominal_command.value / valve.nominal_flow.value * cylinder.piston_area
    way = loop.tracking._trajectory
    assert way is not None
    for k in range(100):
        done = loop.step()
        speed = way.at(0.01 * k + 0.03 + valve.time_constant.value).velocity[0]
        assert done is not None and done.commands['lift_valve'] == pytest.approx(per_speed * speed, rel=1e-6)
