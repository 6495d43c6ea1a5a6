# SPDX-License-Identifier: Apache-2.0
"""Cylinders follow a trajectory by the estimated state: speeds of the trajectory, PI on the distance from it, and the
valves' commands for these speeds.

``speed = v(t + lead) + gain e + integral_gain ∫e dt`` with ``e = s(t) - estimate``. The command of a valve for it is
the inverse of the valve (`ValveFeedForward`), against the forces that the motion takes with the load
(`FeedForward`) or against the pressures of the estimate. ``lead``: until a command moves the piston. The integral of a
cylinder stands while its valve gives all it can. Nothing here waits or reads a clock: time is that of the states.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..errors import DescriptionError, MbseError, SettingError
from ..machine import Machine
from ..machine.feed_forward import FeedForward
from ..machine.piston_motion import PistonMotion
from ..machine.valve_commands import ValveFeedForward
from ..settings import Settings, setting
from .records import GATES, ObserverStatus, PayloadEstimate, PayloadStatus, StateEstimate
from .trajectory import Setpoint, Trajectory

FORWARD = ('load', 'pressures', 'nominal')
# The mass stays that of the load while it is only not measured for a moment.
KNOWN = (PayloadStatus.UPDATING, *(status for status, _ in GATES.values()))
CHECKED = 0.02      # s between instants at which the strokes of a way of joints are looked at
OVERDUE = 2.0       # s, after which an estimate of the mass that does not come is missing


@dataclass(frozen=True)
class TrackingSettings(Settings):
    """How a trajectory is followed."""

    gain: float = setting(1.0, 'Speed of a piston for its distance from the trajectory', '1/s', 0.0, 100.0)
    integral_gain: float = setting(0.25, 'Speed of a piston for the integral of that distance', '1/s^2', 0.0, 1000.0)
    integral_limit: float = setting(0.05, 'Largest speed of a piston that the integral asks for', 'm/s', 0.0, 10.0)
    feed_forward: str = setting('load', 'Commands by: load: the forces of the motion with the load, if it is known, '
                                        'else the pressures; pressures: the estimated ones; nominal: the nominal '
                                        'flow', choices=FORWARD)
    delay: float = setting(0.015, "Mean time from a state's stamp until its command acts, without the valve's time "
                                  "constant", 's',
                           0.0, 1.0)
    path_tolerance: float = setting(0.05, 'Distance from the trajectory at which it is aborted, unless the goal '
                                          'says; 0: none', 'm or rad', 0.0, 100.0)
    goal_tolerance: float = setting(0.005, 'Distance from the last point that counts as reached, unless the goal '
                                           'says; 0: any', 'm or rad', 0.0, 100.0)
    stopped_velocity: float = setting(0.01, 'Velocity below which the last point counts as reached; 0: any',
                                      'm/s or rad/s', 0.0, 100.0)
    goal_time: float = setting(1.0, 'Time after the end to reach the last point, unless the goal says', 's', 0.0, 60.0)
    coasting: float = setting(0.5, 'How long the state may be other than OK before the motion stops', 's', 0.0, 10.0)
    oldest: float = setting(0.2, 'Between two states, beyond which the motion stops; also by the clock', 's', 0.01, 5.0)
    stroke_margin: float = setting(0.0, 'Distance from both ends of the strokes that a trajectory must keep', 'm',
                                   0.0, 1.0)


class Outcome(IntEnum):
    """How a trajectory ended: the error codes of control_msgs/action/FollowJointTrajectory, and STOPPED."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    INVALID_JOINTS = -2
    OLD_HEADER_TIMESTAMP = -3
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5
    STOPPED = -100


@dataclass(frozen=True)
class Tolerances:
    """Of a goal, by the names of its coordinates, m or rad and s; a name that is missing, None: those of the settings;
    infinite: any."""

    path: Mapping[str, float] = field(default_factory=dict)
    path_velocity: Mapping[str, float] = field(default_factory=dict)
    goal: Mapping[str, float] = field(default_factory=dict)
    goal_velocity: Mapping[str, float] = field(default_factory=dict)
    goal_time: float | None = None


@dataclass(frozen=True)
class Tracked:
    """After a state: ``commands``, V, by the names of the valves that take part, 0 where it has ended; what the
    coordinates ``names`` (k,) should be at its stamp and what they are; how it ``outcome`` and why, None while it goes
    on."""

    stamp_ns: int
    names: tuple[str, ...]
    commands: dict[str, float]
    desired: Setpoint
    position: np.ndarray
    velocity: np.ndarray
    outcome: Outcome | None = None
    reason: str = ''


def outcome_of(error: MbseError) -> Outcome:
    """The code of a goal that is refused by an error."""
    key = error.name if isinstance(error, SettingError) else ''
    return {'trajectory.joint_names': Outcome.INVALID_JOINTS,
            'trajectory.header.stamp': Outcome.OLD_HEADER_TIMESTAMP}.get(key, Outcome.INVALID_GOAL)


class TrajectoryTracking:
    """Follows one trajectory after the other.

    Raises DescriptionError for a machine without cylinders, or with a valve whose numbers are not known.
    """

    def __init__(self, machine: Machine, settings: TrackingSettings = TrackingSettings()) -> None:
        self.machine = machine
        self._valves, self._forward = ValveFeedForward(machine), FeedForward(machine)
        valves = list(machine.hydraulics.valves.values())
        if not (self._valves.moved.sum(axis=1) == 1).all() or not (self._valves.moved.sum(axis=0) == 1).all():
            raise DescriptionError(machine.description.file, 'hydraulics.valves', list(machine.valves),
                                   'one valve for each cylinder, to follow a trajectory')
        self._of = self._valves.moved.argmax(axis=0)        # valve of each cylinder
        self._lags = np.array([valves[k].time_constant.value if valves[k].time_constant else 0.0 for k in self._of])
        self._most = np.array([valves[k].command_limit.value if valves[k].command_limit else math.inf
                               for k in self._of])
        areas = [cylinder.piston_area for cylinder in machine.description.cylinders.values()]
        self._per_speed = np.array([valves[k].nominal_command.value / valves[k].nominal_flow.value * area
                                    for k, area in zip(self._of, areas)])       # V s/m
        v, p = ca.SX.sym('v', len(machine.cylinders)), ca.SX.sym('p', len(machine.volumes))
        self._friction = Kernel(ca.Function('mbse_tracking_friction', [v, p, machine.parameters.symbol], [
            machine.circuit.friction_forces(v, p)]), 'vm')
        self.configure(settings)
        self.reset()

    def configure(self, settings: TrackingSettings) -> None:
        """Other numbers, from the next state on."""
        self.settings = settings

    def reset(self) -> None:
        """Forget trajectory and states."""
        self._state: StateEstimate | None = None
        self._q: np.ndarray | None = None
        self._trajectory: Trajectory | None = None
        self._motion: PistonMotion | None = None
        self._desired: Setpoint | None = None
        self._payload: PayloadEstimate | None = None
        self._released: tuple[str, ...] = ()
        self._doubted = 0.0

    @property
    def busy(self) -> bool:
        """Whether a trajectory is followed."""
        return self._trajectory is not None

    @property
    def valves(self) -> tuple[str, ...]:
        """Names of the valves that take part."""
        return () if self._motion is None else tuple(
            self.machine.valves[self._of[k]] for k in np.flatnonzero(self._motion.moving))

    @property
    def mass(self) -> float | None:
        """Of the load, kg; None while it is not known."""
        payload, state = self._payload, self._state
        if payload is None or state is None or payload.status not in KNOWN or not math.isfinite(payload.mass) or (
                state.stamp_ns - payload.stamp_ns > OVERDUE * 1e9):
            return None
        return max(payload.mass, 0.0)

    def weigh(self, payload: PayloadEstimate) -> None:
        """Take an estimate of the mass."""
        self._payload = payload

    def follow(self, trajectory: Trajectory, tolerances: Tolerances = Tolerances(), start_ns: int | None = None
               ) -> None:
        """Follow a trajectory from a stamp on, default that of the last state, in place of another one.

        From where the machine is, or was to be by that other one, to the first point that is still to come. Raises
        SettingError for what cannot be followed (names, stamp, strokes, first point, tolerances), and DescriptionError;
        then what was followed goes on.
        """
        state, q = self._state, self._q
        if state is None or q is None or state.status is ObserverStatus.LOST:
            raise SettingError('trajectory', 'a goal', 'an estimate of the state first: ' + (
                'none has come yet' if state is None else f'{state.status.name}, {state.reason}'))
        motion = PistonMotion(self.machine, trajectory.names)
        limits = self._limits(motion, tolerances)
        start = state.stamp_ns if start_ns is None else start_ns
        now = (state.stamp_ns - start) * 1e-9
        position, velocity = motion.read(q, self._velocities(state))
        if trajectory.times[0] <= 0.0 and now <= 0.0:
            far = np.abs(trajectory.begins - position)
            if (far > limits[0]).any():
                k = int(np.argmax(far - limits[0]))
                raise SettingError('trajectory.points', trajectory.begins.tolist(), f'a first point at time 0 where '
                                   f'{motion.names[k]} is, {position[k]:.4f}, or a later time for it')
        else:
            still = np.zeros(len(position))
            begin = Setpoint(position, velocity if now >= 0.0 else still, still)
            if self._desired is not None and self._motion is not None and self._motion.names == motion.names:
                begin = self._desired
            trajectory = trajectory.continued(max(now, 0.0), begin)
        self._check_strokes(motion, trajectory, q)
        before = self.valves if self.busy else ()
        self._trajectory, self._motion, self._limit, self._start_ns = trajectory, motion, limits, start
        self._released = tuple(name for name in before if name not in self.valves)
        self._goal_time = self.settings.goal_time if tolerances.goal_time is None else tolerances.goal_time
        self._integral, self._full = np.zeros(len(self.machine.cylinders)), np.zeros(len(self.machine.cylinders))
        self._doubted = 0.0

    def stop(self, outcome: Outcome, reason: str) -> Tracked | None:
        """End what is followed, with neutral commands; None where nothing is."""
        if self._trajectory is None or self._motion is None or self._state is None:
            return None
        names, commands = self._motion.names, dict.fromkeys((*self._released, *self.valves), 0.0)
        none = np.full(len(names), np.nan)
        desired = self._desired or Setpoint(none, none, none)
        self._trajectory = self._desired = None
        self._released = ()
        return Tracked(self._state.stamp_ns, names, commands, desired, none, none, outcome, reason)

    def process(self, state: StateEstimate) -> Tracked | None:
        """Commands after a state; None while nothing is followed, and for a state that is not newer."""
        last = self._state
        if last is not None and state.stamp_ns <= last.stamp_ns and not state.restart:
            return None
        lost = self._read(state)
        if self._trajectory is None or self._motion is None or last is None:
            return None
        dt = (state.stamp_ns - last.stamp_ns) * 1e-9
        if lost:
            return self.stop(Outcome.STOPPED, lost)
        if state.restart or not 0.0 < dt <= self.settings.oldest:
            return self.stop(Outcome.STOPPED, f'the state starts again after {dt:.3f} s without one')
        self._doubted = 0.0 if state.status is ObserverStatus.OK else self._doubted + dt
        if self._doubted > self.settings.coasting:
            return self.stop(Outcome.STOPPED, f'state {state.status.name} for {self._doubted:.2f} s: {state.reason}')
        try:
            return self._step(state, self._trajectory, self._motion, dt)
        except MbseError as error:
            return self.stop(Outcome.STOPPED, str(error))

    def _read(self, state: StateEstimate) -> str:
        """Take a state; why it cannot be used."""
        self._state = state
        if state.status is ObserverStatus.LOST:
            self._q = None
            return f'state LOST: {state.reason}'
        z = state.mean[-1, :len(self.machine.coordinates)]
        try:
            if not np.isfinite(state.mean[-1]).all():
                raise SettingError('state', 'NaN', 'finite numbers')
            self._q = self.machine.position(z, None if state.restart else self._q)
        except MbseError as error:
            self._q = None
            return str(error)
        return ''

    def _step(self, state: StateEstimate, trajectory: Trajectory, motion: PistonMotion, dt: float) -> Tracked:
        settings, q = self.settings, self._q
        assert q is not None
        time = (state.stamp_ns - self._start_ns) * 1e-9
        position, velocity = motion.read(q, self._velocities(state))
        desired = self._desired = trajectory.at(time)
        ended = self._ended(trajectory, motion, time, desired, position, velocity)
        if ended is not None:
            done = self.stop(*ended)
            assert done is not None
            return Tracked(done.stamp_ns, done.names, done.commands, desired, position, velocity, *ended)
        lead = settings.delay + float(self._lags[motion.moving].mean())
        here, ahead = (motion(*instant, q) for instant in (desired, trajectory.at(time + lead)))
        error = np.where(motion.moving, here.positions - q[self.machine.pistons], 0.0)
        self._integral += np.where(error * self._full > 0.0, 0.0, error * dt)     # not farther where a valve is full
        if settings.integral_gain > 0.0:
            most = settings.integral_limit / settings.integral_gain
            self._integral = np.clip(self._integral, -most, most)
        speeds = ahead.speeds + settings.gain * error + settings.integral_gain * self._integral
        commands, shares = self._commands(state, q, ahead.zd, ahead.zdd, np.where(motion.moving, speeds, 0.0))
        self._full = np.where(shares < 1.0, np.sign(speeds), 0.0)
        given = dict(zip(self.machine.valves, commands.tolist()))
        chosen = dict.fromkeys(self._released, 0.0) | {name: given[name] for name in self.valves}
        self._released = ()
        return Tracked(state.stamp_ns, motion.names, chosen, desired, position, velocity)

    def _commands(self, state: StateEstimate, q: np.ndarray, zd: np.ndarray, zdd: np.ndarray, speeds: np.ndarray
                  ) -> tuple[np.ndarray, np.ndarray]:
        """Commands of all valves (v,), V, and shares (c,) of the speeds that they give."""
        machine, way = self.machine, self.settings.feed_forward
        if way == 'nominal':
            wanted = self._per_speed * speeds
            commands = np.zeros(len(machine.valves))
            commands[self._of] = np.clip(wanted, -self._most, self._most)
            return commands, np.where(np.abs(wanted) > self._most, 0.0, 1.0)
        entries = dict(zip(state.names, state.mean[-1].tolist()))
        pressures = np.array([entries[f'pressure/{name}'] for name in machine.volumes])
        supplies = {name: entries[f'supply/{name}'] for name in machine.measured_supplies}
        mass = self.mass
        if way == 'pressures' or mass is None and machine.description.payload is not None:
            found = self._valves(speeds, pressures, supplies=supplies)
        else:
            base = {axis: entries[f'inclination/{axis}'] for axis in machine.inclinations}
            forces = self._forward(q, mass or 0.0, zd=zd, zdd=zdd, base=base).forces
            (friction,) = self._friction(speeds, pressures, machine.parameters.mean)
            found = self._valves(speeds, forces=forces + friction, supplies=supplies)
        return found.commands, found.shares[self._of]

    def _ended(self, trajectory: Trajectory, motion: PistonMotion, time: float, desired: Setpoint, position: np.ndarray,
               velocity: np.ndarray) -> tuple[Outcome, str] | None:
        path, path_velocity, goal, goal_velocity = self._limit
        for error, limit, unit in ((position - desired.position, path, ''),
                                   (velocity - desired.velocity, path_velocity, '/s')):
            if (np.abs(error) > limit).any():
                k = int(np.argmax(np.abs(error) - limit))
                return (Outcome.PATH_TOLERANCE_VIOLATED, f'{motion.names[k]} is {error[k]:.4f}{unit} from the '
                        f'trajectory, more than {limit[k]:g}')
        late = time - trajectory.duration
        if late < 0.0:
            return None
        far = np.abs(position - trajectory.ends)
        if (far <= goal).all() and (np.abs(velocity) <= goal_velocity).all():
            return Outcome.SUCCESSFUL, ''
        if late <= self._goal_time:
            return None
        k = int(np.argmax(np.maximum(far - goal, np.abs(velocity) - goal_velocity)))
        return (Outcome.GOAL_TOLERANCE_VIOLATED, f'{motion.names[k]} is {position[k] - trajectory.ends[k]:.4f} from '
                f'the last point with {velocity[k]:.4f}/s, {self._goal_time:g} s after it; allowed {goal[k]:g} and '
                f'{goal_velocity[k]:g}/s')

    def _limits(self, motion: PistonMotion, given: Tolerances) -> tuple[np.ndarray, ...]:
        """Tolerances (k,) of path, its velocity, goal, its velocity; infinite: none."""
        own, found = self.settings, []
        for name, values, default in (('path_tolerance', given.path, own.path_tolerance),
                                      ('path_tolerance', given.path_velocity, 0.0),
                                      ('goal_tolerance', given.goal, own.goal_tolerance),
                                      ('goal_tolerance', given.goal_velocity, own.stopped_velocity)):
            strange = [key for key, value in values.items() if key not in motion.names or not value > 0.0]
            if strange:
                raise SettingError(name, {key: values[key] for key in strange}, f'more than 0, of '
                                   f'{", ".join(motion.names)}')
            found.append(np.array([values.get(key, default or math.inf) for key in motion.names]))
        return tuple(found)

    def _check_strokes(self, motion: PistonMotion, trajectory: Trajectory, q: np.ndarray) -> None:
        """Raise SettingError where a piston would leave its stroke: of cylinders by the ends of the way, of joints at
        instants."""
        margin, stroke = self.settings.stroke_margin, self.machine.stroke
        if set(motion.names) <= set(self.machine.cylinders):
            ranges = dict(zip(motion.names, trajectory.ranges()))
        else:
            times, rows = np.arange(trajectory.times[0], trajectory.duration + CHECKED, CHECKED), []
            for time in times:
                way = motion(*trajectory.at(float(time)), q)
                q = way.q
                rows.append(way.positions)
            ranges = dict(zip(self.machine.cylinders, np.stack([np.min(rows, axis=0), np.max(rows, axis=0)], axis=1)))
        for name, (low, high) in ranges.items():
            least, most = stroke[self.machine.cylinders.index(name)] + [margin, -margin]
            if low < least or high > most:
                raise SettingError('trajectory.points.positions', f'{name} from {low:.4f} to {high:.4f} m',
                                   f'within its stroke, {least:.4f} to {most:.4f} m')

    def _velocities(self, state: StateEstimate) -> np.ndarray:
        g = len(self.machine.coordinates)
        return np.asarray(state.mean[-1, g:2 * g])
