# SPDX-License-Identifier: Apache-2.0
"""``observability``: what a choice of sensors sees of a state along a motion, or of a payload in many poses, and which
other sensor would help."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics.model import Model
from ..errors import SettingError, check_choice
from ..estimators.observability.information import BLIND
from ..estimators.observability.machine_poses import Poses, all_poses, in_motion, motion_poses, start_pose, sweep
from ..estimators.observability.mass_accuracy import MassAccuracy, mass_accuracy
from ..estimators.observability.payload_observability import PayloadObservability, payload_observability
from ..machine import Machine
from ..machine.equations import measured_equations, missing_pressures, why_unweighed
from ..report.chart import Curve, Panel
from ..report.files import read_table
from ..report.text import number
from .load import Loadable, loaded
from .results.result import Result
from .results.series import ResultSeries
from .results.simulations import MotionSimulation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..estimators.filters.analysis.observability import SampledMotion, StateObservability

FEW = 12        # poses at which the motion is looked at
START, ALL, MOVING = 'the start', 'all coordinates', 'all coordinates, accelerating'
STEP = 5e-3             # s
TRAJECTORIES = ('free', 'rest')
TABLE = 'the motion'
OPTION = '--trajectory'
UNEVEN = 1e-6       # largest deviation of a step, as a share of it
Trajectory = str | MotionSimulation


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
    volumes = [c.sensor.volume for c in machine.all_channels if c.sensor.name in sensors and c.kind == 'pressure']
    if machine.description.payload is None or not measured_equations(machine, volumes):
        return {}
    return {label: payload_observability(machine, sensors, poses) for label, poses in sets.items()}


@dataclass(frozen=True)
class Observability(Result):
    """What sensors see, in windows whose middles are ``t`` (w,), s (of a machine: places in a list of poses).

    ``names`` (l,) of the states; ``information`` (w, l) along the directions of each window, least first: 1 halves the
    variance that was known before; ``rank`` (w,): directions that are seen; ``verdict``: 'seen', 'blind at times' or
    'blind'; ``blind``: directions that are not seen, in words, and in how many windows; ``helpers``: least information
    with each further sensor, best first. ``payload``: of a machine, by sets of poses, what its pressures see of mass
    and centre (``rank``, ``blind``, ``stddev``).
    """

    t: np.ndarray
    observed: StateObservability
    payload: dict[str, PayloadObservability] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names (l,) of the states."""
        return self.observed.names

    @property
    def information(self) -> np.ndarray:
        """Information (w, l), least first."""
        return np.array([window.information for window in self.observed.windows])

    @property
    def rank(self) -> np.ndarray:
        """Number of directions that are seen (w,)."""
        return np.array([window.rank for window in self.observed.windows])

    @property
    def verdict(self) -> str:
        """'seen', 'blind at times' or 'blind'."""
        return self.observed.verdict

    @property
    def blind(self) -> dict[str, int]:
        """Directions that are not seen, in words, and in how many windows."""
        return self.observed.blind

    @property
    def helpers(self) -> dict[str, float]:
        """Least information with each further sensor, best first."""
        return self.observed.helpers

    def series(self) -> list[ResultSeries]:
        """Information along each direction and the rank."""
        found = [ResultSeries(f'direction {k + 1}', '1', column, panel='information')
                 for k, column in enumerate(self.information.T)]
        return [*found, ResultSeries('rank', '1', self.rank.astype(float))]

    def plot(self, *names: str, truth: Result | None = None) -> Figure:
        """The information over the windows on a logarithmic axis; with names as any result."""
        if names:
            return super().plot(*names, truth=truth)
        from matplotlib import pyplot

        from ..report.plots import draw_plots
        return draw_plots([information_panel(self.observed, self.t)],
                          lambda width, height: pyplot.figure(figsize=(width, height), facecolor='white'))


def observability(model: Loadable, sensors: Sequence[str], *, trajectory: Trajectory = 'free', kind: str = 'force',
                  duration: float = 4.0, window: float = 0.5) -> Observability:
    """Look at windows of ``window``, s, along a motion.

    ``trajectory``: 'free' motion from the start for ``duration``, s, 'rest' at the start, or what ``simulate`` gave
    (even steps). ``kind``: transition of the filters, 'simple' (DEKF, errorEKF), 'exact' (errorEKF_EJ, UKF), 'force'
    (errorEKF_FE). Of a machine the poses of its whole range ('free') or its start ('rest') are looked at, as the
    observer does. Raises SettingError.
    """
    item = loaded(model)
    if isinstance(sensors, str):
        raise SettingError('sensors', sensors, f'a list of names, such as [{sensors!r}]')
    if isinstance(trajectory, str):
        check_choice('trajectory', trajectory, TRAJECTORIES)
    if not (math.isfinite(duration) and 2 * STEP <= window <= duration <= 1000.0):
        raise SettingError('duration', duration, f'seconds, from window ({window:g}) up to 1000')
    if isinstance(item, Machine):
        return _of_machine(item, sensors, trajectory, window)
    from ..estimators.filters.analysis.observability import state_observability  # here: slow to import
    motion = motion_along(item, trajectory, duration, window)
    (found,) = state_observability(item, tuple(sensors), motion, [kind], window)
    return Observability(middles(found, motion.dt, window) + motion.t[0], found)


def motion_along(model: Model, trajectory: Trajectory, duration: float, window: float) -> SampledMotion:
    """The free motion from the start, one window of standing there, or a simulated motion."""
    from ..dynamics.motion import simulate as integrate
    from ..estimators.filters.analysis.observability import SampledMotion
    if isinstance(trajectory, MotionSimulation):
        t, dt = trajectory.t, float(trajectory.t[1] - trajectory.t[0])
        if trajectory.names != model.names or t[-1] - t[0] < window:
            raise SettingError('trajectory', trajectory.model.description.name,
                               f'a motion of {model.description.name} in the same coordinates, longer than the window')
        every = max(1, round(STEP / dt))
        return SampledMotion(trajectory.q[::every], trajectory.qd[::every], t[::every], every * dt)
    if trajectory == 'rest':
        count, start = int(round(window / STEP)) + 1, model.start
        return SampledMotion(np.tile(start.q, (count, 1)), np.zeros((count, len(start.q))), STEP * np.arange(count),
                             STEP)
    motion = integrate(model, duration, STEP, 'trapezoid')
    return SampledMotion(motion.q, motion.qd, motion.t, STEP)


def middles(observed: StateObservability, dt: float, window: float) -> np.ndarray:
    """Middles (w,) of the windows, s from the start of the motion."""
    return np.array([item.start * dt + window / 2 for item in observed.windows])


def information_panel(observed: StateObservability, t: np.ndarray) -> Panel:
    """Information of each direction over the windows; what is not seen lies on the lower edge."""
    information = np.maximum([item.information for item in observed.windows], BLIND)
    curves = [Curve(f'direction {k + 1}', t, information[:, k], kind='marks') for k in range(len(observed.names))]
    return Panel(f"model '{observed.model}': information, {observed.verdict}", 'in units of the prior', curves,
                 y_scale='log', note=f'rank {observed.rank} of {len(observed.names)}')


def _of_machine(machine: Machine, sensors: Sequence[str], trajectory: Trajectory, window: float) -> Observability:
    if not isinstance(trajectory, str):
        raise SettingError('trajectory', type(trajectory).__name__, "'free' or 'rest', of a machine")
    for name in sensors:
        check_choice('sensors', name, machine.description.sensors)
    from ..estimators.observability.machine_observability import machine_observability
    sets = pose_sets(machine, trajectory)
    found = machine_observability(machine, sensors, few_of(list(sets.values())[-1]), window)
    return Observability(np.arange(len(found.windows), dtype=float), found, payload_by_poses(machine, sensors, sets))


def state_json(observed: StateObservability) -> dict[str, Any]:
    """The result as JSON."""
    windows = [{'t': window.start * STEP, 'rank': window.rank, 'information': window.information,
                'condition': window.condition} for window in observed.windows]
    helpers = [{'sensor': name, 'least_information': least, 'gain': least / observed.least if observed.least else None}
               for name, least in observed.helpers.items()]
    return {'model': observed.model, 'verdict': observed.verdict, 'states': list(observed.names),
            'prior': observed.prior, 'rank': observed.rank, 'least_information': observed.least,
            'blind': observed.blind, 'windows': windows, 'helpers': helpers}


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
    return None if why_unweighed(chosen) else mass_accuracy(chosen)


def weighing_lines(machine: Machine, sensors: Sequence[str], found: MassAccuracy | None) -> list[str]:
    """Which equations weigh, and what the others lack, in words."""
    if machine.description.payload is None:
        return []
    chosen = _with_pressures(machine, sensors)
    if found is None:
        return [f'no mass: of no cylinder are all pressures among the sensors: motion alone; to weigh, '
                f'{_to_add(machine, chosen)}' if machine.volumes else f'no mass: {why_unweighed(chosen)}']
    each = ', '.join(f'{name} +- {number(kg)} kg' for name, kg in found.each.items())
    lines = [f'weighing, positions known, 95 % in a usual pose: {each}; together +- {number(found.all)} kg']
    return lines + ([f'does not weigh: {", ".join(missing_pressures(chosen))}; for that, {_to_add(machine, chosen)}']
                    if missing_pressures(chosen) else [])


def _to_add(machine: Machine, chosen: Machine) -> str:
    """What equations lack that do not weigh with the chosen sensors, by the names of sensors; what the file has none
    of, by channels."""
    own = {c.sensor.volume: c.sensor.name for c in machine.all_channels if c.kind == 'pressure'}
    return 'add to --sensors: ' + '; or '.join(
        ' and '.join(own.get(volume, f'pressure/{volume} (not in the file)') for volume in volumes)
        for volumes in missing_pressures(chosen).values())


def more_pressures(machine: Machine, sensors: Sequence[str], poses: Poses) -> dict[str, PayloadObservability]:
    """The same over some poses with all pressures of one more coordinate, by the names of the sensors to add."""
    found: dict[str, PayloadObservability] = {}
    if machine.description.payload is None:
        return found
    by_volume = {c.sensor.volume: c.sensor.name for c in machine.all_channels if c.kind == 'pressure'}
    for needed in machine.pressure_needs:
        added = [name for name in machine.volumes if name in needed and by_volume.get(name) not in sensors]
        if added and all(name in by_volume for name in added):
            names = [by_volume[name] for name in added]
            found[' and '.join(names)] = payload_observability(machine, [*sensors, *names], poses)
    return found


def payload_json(observed: PayloadObservability) -> dict[str, Any]:
    """Rank, information, what is blind, and standard deviations."""
    return {'rank': observed.rank, 'information': observed.window.information, 'blind': observed.blind,
            'stddev': observed.stddev}


def read_trajectory(path: Path, model: Model) -> SampledMotion:
    """Motion by the columns ``t``, ``<coordinate>`` and ``<coordinate>_dot`` of the independent coordinates, SI, a unit
    behind a blank; the other coordinates follow by the constraints. Raises SettingError, PositionProblemError."""
    from ..estimators.filters.analysis.observability import SampledMotion
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
