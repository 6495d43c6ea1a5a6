# SPDX-License-Identifier: Apache-2.0
"""``observability``: what a choice of sensors sees of a state along a motion, or of a payload in many poses, and which
other sensor would help."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..dynamics.model import Model
from ..errors import SettingError, check_choice
from ..filters.observability.machine import (
    MassAccuracy,
    PayloadObservability,
    Poses,
    all_poses,
    in_motion,
    mass_accuracy,
    motion_poses,
    payload_observability,
    start_pose,
    sweep,
)
from ..filters.observability.mechanism import MODELS
from ..machine import Machine
from ..machine.equations import measured_equations, missing_pushes, why_unweighed
from ..report.files import read_table
from ..report.text import number
from .checked import checked
from .load import Loadable, loaded
from .results.observability import ALL, MOVING, START, STEP, Asked, Observability, middles
from .results.simulations import MotionSimulation

if TYPE_CHECKING:
    from ..filters.observability.mechanism import SampledMotion

FEW = 12        # poses at which the motion is looked at
TRAJECTORIES = ('free', 'rest')
TABLE = 'the motion'
OPTION = 'trajectory'
UNEVEN = 1e-6       # largest deviation of a step, as a share of it
Trajectory = str | Path | MotionSimulation


def pose_sets(machine: Machine, trajectory: str) -> dict[str, Poses]:
    """Poses by what they are: of 'rest' the start, else the start, each coordinate alone, all."""
    if trajectory == 'rest':
        return {START: start_pose(machine)}
    every = all_poses(machine)
    return {START: start_pose(machine), **{f'{name} alone': sweep(machine, name) for name in machine.coordinates},
            ALL: every, MOVING: in_motion(every)}


def few_of(poses: Poses) -> Poses:
    """The first ``FEW`` of poses; a motion as it is."""
    return poses if poses.dt else Poses(poses.q[:FEW], poses.zd[:FEW], poses.zdd[:FEW])


def payload_by_poses(machine: Machine, sensors: Sequence[str], sets: dict[str, Poses]
                     ) -> dict[str, PayloadObservability]:
    """What the pressures say of the payload over each set of poses; nothing where no equation has its pressures."""
    pushes = [c.name for c in machine.all_channels if c.sensor.name in sensors and c.name in machine.measured_pushes]
    if machine.description.payload is None or not measured_equations(machine, pushes):
        return {}
    return {label: payload_observability(machine, sensors, poses) for label, poses in sets.items()}


@checked
def observability(model: Loadable, sensors: Sequence[str], *, trajectory: Trajectory = 'free', kind: str | None = None,
                  duration: float = 4.0, window: float = 0.5) -> Observability:
    """Look at windows of ``window``, s, along a motion.

    ``trajectory``: 'free' motion from the start for ``duration``, s, 'rest' at the start, the path of a table of a
    motion (``t``, the independent coordinates and their velocities; even steps), or what ``simulate`` gave. ``kind``:
    transition of the filters, 'simple' (DEKF, errorEKF), 'exact' (errorEKF_EJ, UKF), 'force' (errorEKF_FE, the
    default), or 'all' (``models``, and as ``observed`` the last of them). Of a machine the poses of its whole range
    ('free'), its start ('rest') or the table are looked at, as the observer does. Raises SettingError,
    PositionProblemError.

    >>> observability('four_bar', ['crank_gyro']).summary()[0]
    'force: the same with an unknown force (errorEKF_FE). crank_tip would help most: ... times the least information.'
    """
    item = loaded(model)
    if kind not in (None, 'all'):
        check_choice('kind', kind, MODELS)
    if isinstance(trajectory, (str, Path)) and trajectory not in TRAJECTORIES and not Path(trajectory).is_file():
        raise SettingError('trajectory', str(trajectory), 'free, rest, or the CSV file of a motion')
    if not (math.isfinite(duration) and 2 * STEP <= window <= duration <= 1000.0):
        raise SettingError('duration', duration, f'seconds, from window ({window:g}) up to 1000')
    label = trajectory.model.description.name if isinstance(trajectory, MotionSimulation) else str(trajectory)
    if isinstance(item, Machine):
        if kind not in (None, 'all'):
            raise SettingError('kind', kind, 'no such option for a machine: its motion is looked at as the observer '
                               'does, with constant accelerations')
        return _of_machine(item, sensors, trajectory, Asked(item.name, tuple(sensors), label, duration, window, item))
    from ..filters.observability.mechanism import state_observability  # here: slow to import
    motion = motion_along(item, trajectory, duration, window)
    found = state_observability(item, list(sensors), motion, MODELS if kind == 'all' else [kind or 'force'], window)
    return Observability(middles(found[-1], motion.dt, window) + motion.t[0], found[-1], models=tuple(found),
                         asked=Asked(item.description.name, tuple(sensors), label, duration, window))


def motion_along(model: Model, trajectory: Trajectory, duration: float, window: float) -> SampledMotion:
    """The free motion from the start, one window of standing there, the motion of a table, or a simulated one."""
    from ..dynamics.motion import simulate as integrate
    from ..filters.observability.mechanism import SampledMotion
    if isinstance(trajectory, MotionSimulation):
        t, dt = trajectory.t, float(trajectory.t[1] - trajectory.t[0])
        if trajectory.names != model.names or t[-1] - t[0] < window:
            raise SettingError('trajectory', trajectory.model.description.name,
                               f'a motion of {model.description.name} in the same coordinates, longer than the window')
        every = max(1, round(STEP / dt))
        return SampledMotion(trajectory.q[::every], trajectory.qd[::every], t[::every], every * dt)
    if trajectory not in TRAJECTORIES:
        motion = read_trajectory(Path(trajectory), model)
        if motion.t[-1] - motion.t[0] < window:
            raise SettingError('window', window, f'up to {motion.t[-1] - motion.t[0]:g} s, the motion of {trajectory}')
        return motion
    if trajectory == 'rest':
        count, start = int(round(window / STEP)) + 1, model.start
        return SampledMotion(np.tile(start.q, (count, 1)), np.zeros((count, len(start.q))), STEP * np.arange(count),
                             STEP)
    free = integrate(model, duration, STEP, 'trapezoid')
    return SampledMotion(free.q, free.qd, free.t, STEP)


def _of_machine(machine: Machine, sensors: Sequence[str], trajectory: Trajectory, asked: Asked) -> Observability:
    if isinstance(trajectory, MotionSimulation):
        raise SettingError('trajectory', type(trajectory).__name__, "'free', 'rest' or a table, of a machine")
    for name in sensors:
        check_choice('sensors', name, machine.description.sensors)
    from ..filters.observability.machine import machine_observability
    sets = sets_along(machine, str(trajectory))
    where, widest = list(sets.items())[-1]
    found = machine_observability(machine, sensors, few_of(widest), asked.window)
    payload, weighing = payload_by_poses(machine, sensors, sets), weighing_by(machine, sensors)
    asked = replace(asked, weighing=weighing, weighs=tuple(weighing_lines(machine, sensors, weighing)), where=where,
                    better=more_pressures(machine, sensors, widest))
    return Observability(np.arange(len(found.windows), dtype=float), found, payload, (found,), asked)


def sets_along(machine: Machine, trajectory: str) -> dict[str, Poses]:
    """Poses by what they are, or the motion of a table alone."""
    if trajectory in TRAJECTORIES:
        return pose_sets(machine, trajectory)
    motion = read_trajectory(Path(trajectory), machine.model)
    return {TABLE: motion_poses(machine, motion.q, motion.qd, motion.dt)}


def _with_pressures(machine: Machine, sensors: Sequence[str]) -> Machine:
    """The machine with these pressure sensors alone, and all others."""
    d = machine.description
    return Machine(replace(d, sensors={name: sensor for name, sensor in d.sensors.items()
                                       if sensor.kind != 'pressure' or name in sensors}))


def weighing_by(machine: Machine, sensors: Sequence[str]) -> MassAccuracy | None:
    """To how many kg the equations weigh whose pressures are among these sensors; None where there is none."""
    chosen = _with_pressures(machine, sensors)
    return None if why_unweighed(chosen) or chosen.description.payloads else mass_accuracy(chosen)


def weighing_lines(machine: Machine, sensors: Sequence[str], found: MassAccuracy | None) -> list[str]:
    """Which equations weigh, and what the others lack, in words."""
    if machine.description.payload is None:
        return []
    chosen = _with_pressures(machine, sensors)
    if found is None:
        what = 'of no cylinder are all pressures' if machine.cylinders else 'of no drive is the effort'
        return [f'no mass: {what} among the sensors: motion alone; to weigh, {_to_add(machine, chosen)}'
                if machine.actuators.entries else f'no mass: {why_unweighed(chosen)}']
    each = ', '.join(f'{name} +- {number(kg)} kg' for name, kg in found.each.items())
    lines = [f'weighing, positions known, 95 % in a usual pose: {each}; together +- {number(found.all)} kg']
    return lines + ([f'does not weigh: {", ".join(missing_pushes(chosen))}; for that, {_to_add(machine, chosen)}']
                    if missing_pushes(chosen) else [])


def _to_add(machine: Machine, chosen: Machine) -> str:
    """What equations lack that do not weigh with the chosen sensors, by the names of sensors; what the file has none
    of, by channels."""
    own = {c.name: c.sensor.name for c in machine.all_channels if c.name in machine.measured_pushes}
    return 'add to the sensors: ' + '; or '.join(
        ' and '.join(own.get(push, f'{push} (not in the file)') for push in pushes)
        for pushes in missing_pushes(chosen).values())


def more_pressures(machine: Machine, sensors: Sequence[str], poses: Poses) -> dict[str, PayloadObservability]:
    """The same over some poses with all pressures of one more coordinate, by the names of the sensors to add."""
    found: dict[str, PayloadObservability] = {}
    if machine.description.payload is None:
        return found
    owners = {c.name: c.sensor.name for c in machine.all_channels if c.name in machine.measured_pushes}
    for needed in machine.push_needs:
        added = [name for name in machine.actuators.entries if name in needed and owners.get(name) not in sensors]
        if added and all(name in owners for name in added):
            names = [owners[name] for name in added]
            found[' and '.join(names)] = payload_observability(machine, [*sensors, *names], poses)
    return found


def read_trajectory(path: Path, model: Model) -> SampledMotion:
    """Motion by the columns ``t``, ``<coordinate>`` and ``<coordinate>_dot`` of the independent coordinates, SI, a unit
    behind a blank; the other coordinates follow by the constraints. Raises SettingError, PositionProblemError."""
    from ..filters.observability.mechanism import SampledMotion
    columns = _columns(path)
    needed = ['t', *model.independent, *(f'{name}_dot' for name in model.independent)]
    missing = [name for name in needed if name not in columns]
    if missing:
        raise SettingError(OPTION, str(path), f'a table with the columns {", ".join(needed)}; it has no {missing[0]}')
    t, *values = (columns[name] for name in needed)
    if len(t) < 3 or not np.isfinite([t, *values]).all():
        raise SettingError(OPTION, str(path), 'at least three rows, with finite numbers in these columns')
    dt = float(t[-1] - t[0]) / (len(t) - 1)
    if not dt > 0 or np.max(np.abs(np.diff(t) - dt)) > UNEVEN * dt:
        raise SettingError(OPTION, str(path), 'times that increase by even steps')
    g, partition, q = len(model.independent), model.partition(), model.start.q
    qs, qds = [], []
    for row in np.column_stack([*values, t]):
        q = partition.position(row[:g], q, row[-1])
        qs.append(q)
        qds.append(partition.velocity(q, row[g:2 * g], row[-1]))
    return SampledMotion(np.array(qs), np.array(qds), t, dt)


def _columns(path: Path) -> dict[str, np.ndarray]:
    """Columns by their headings without units."""
    try:
        headings, numbers = read_table(path)
    except (ValueError, IndexError, UnicodeDecodeError, csv.Error) as error:
        raise SettingError(OPTION, str(path), f'a CSV table of numbers with a heading: {error}') from None
    return dict(zip((heading.partition(' ')[0] for heading in headings), numbers.T))
