# SPDX-License-Identifier: Apache-2.0
"""``inverse_dynamics``: the forces that a motion of a mechanism takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..description.coordinate_units import columns_of, unit_of
from ..dynamics.model import Model, load_model
from ..errors import DescriptionError, SettingError, refuse_options
from ..offline.motion_estimate import motion_series
from ..report.data import Curve, Panel
from ..report.files import write_json, write_table
from ..report.result import Result, ResultSeries
from .checked import checked
from .load import Loadable, model_of, named

if TYPE_CHECKING:
    from ..dynamics.forces.driven_motion import DrivenMotion
    from ..dynamics.forces.motion_table import MotionTable

DURATION, DT = 10.0, 0.005   # s
LONGEST = 1_000_000          # instants
FEWEST = 4      # instants, of a spline
_UNITS = {'f': 'N', 'm': 'N*m'}
_MOST = 8       # joints in the plot


@dataclass(frozen=True, repr=False)
class Forces(Result):
    """Forces over a motion at times ``t`` (k,), s; SI. ``found``: all of it, with reactions by joint and what redundant
    constraints leave undetermined.

    ``names`` of the actuators (drivers, or independent coordinates whose motion was given); ``forces`` (k, a), N or
    N m; ``power`` (k,), W; ``q``, ``qd``, ``qdd`` (k, n). ``table``: that the motion is of, with what is odd about it.
    """

    model: Model
    found: DrivenMotion
    table: MotionTable | None = None
    odd: tuple[str, ...] = field(default=(), repr=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is odd about the motion, and reactions that redundant constraints leave undetermined."""
        return *self.odd, *(
            f'{joint}: {", ".join(components)} not determined, because of redundant constraints: '
            f'{", ".join(self.model.redundant)}' for joint, components in self.found.undetermined.items())

    def summary(self) -> list[str]:
        """The largest forces, and how well the power balances."""
        f = self.found
        largest = ', '.join(f'{name} {item["largest"]:.4g} {item["unit"]}' for name, item in
                            self.to_json()['forces'].items() if item['largest'] is not None)
        return [f'{len(f.t)} instants over {f.t[-1] - f.t[0]:g} s; largest {largest}; power balance within '
                f'{np.max(np.abs(f.imbalance)):.2g} W']

    def report(self, folder: str | Path, pictures: bool = True) -> Path:
        """Write ``inverse.csv``, ``summary.json`` and, with ``pictures``, ``inverse.png`` into a folder; gives it.
        Raises OSError."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        self.write_table(place / 'inverse.csv')
        write_json(place / 'summary.json', self.to_json())
        if pictures:
            self.write_plot(place / 'inverse.png')
        return place

    @property
    def t(self) -> np.ndarray:
        """Times (k,), s."""
        return self.found.t

    @property
    def names(self) -> tuple[str, ...]:
        """Names (a,) of the actuators."""
        return tuple(self.found.forces)

    @property
    def forces(self) -> np.ndarray:
        """What the actuators exert along their coordinates (k, a), N or N m."""
        return np.column_stack(list(self.found.forces.values()))

    @property
    def power(self) -> np.ndarray:
        """Power of the actuators (k,), W."""
        return self.found.power

    def series(self) -> list[ResultSeries]:
        """Actuators, power, reactions of the joints (``A.fx``), then the motion."""
        f = self.found
        return self.main_series() + motion_series(self.model, {'position': f.q, 'velocity': f.qd,
                                                               'acceleration': f.qdd})

    def main_series(self) -> list[ResultSeries]:
        """Actuators, power, reactions of the joints."""
        f = self.found
        series = [ResultSeries(f'force/{name}', 'N m' if self._turning(name) else 'N', force)
                  for name, force in f.forces.items()]
        series.append(ResultSeries('power', 'W', f.power))
        for joint, values in f.reactions.items():
            series += [ResultSeries(f'{joint}.{component}', 'N' if component[0] == 'f' else 'N m', column,
                                    panel=f'{joint}, {"forces" if component[0] == "f" else "moments"}')
                       for component, column in zip(f.components, values.T)]
        return series

    def _values(self, full: bool) -> dict[str, Any]:
        """Largest and root mean square values, SI; None where a value is not determined; ``full``: with all columns
        over time."""
        f, d = self.found, self.model.description
        of = {} if self.table is None else {'motion': {'file': self.table.file, 'rows': len(self.table.t),
                                                       'coordinates': list(self.model.independent)}}
        state = {'t': self.t, 'state': {item.name: item.values for item in self.series()}} if full else {}
        return {
            'mechanism': d.name, 'file': d.file, 'instants': len(f.t),
            'duration_s': float(f.t[-1] - f.t[0]),
            'forces': {name: {'unit': self.force_unit(name), **_sizes(values)} for name, values in f.forces.items()},
            'reactions': {joint: {component: _sizes(column) for component, column in zip(f.components, values.T)}
                          for joint, values in f.reactions.items()},
            'undetermined': {name: list(components) for name, components in f.undetermined.items()},
            'power_imbalance_W': float(np.max(np.abs(f.imbalance))), **of, **state}

    def write_table(self, path: Path) -> None:
        """Motion, forces of the drivers and reactions over time, one column each."""
        found, model = self.found, self.model
        columns = ['t [s]', *columns_of(model.description, model.names, '', '_dot', '_ddot')]
        values = [found.t, *found.q.T, *found.qd.T, *found.qdd.T]
        for name, force in found.forces.items():
            columns.append(f'driver {name} [{self.force_unit(name)}]')
            values.append(force)
        for joint, reaction in found.reactions.items():
            columns += [f'joint {joint} {component} [{_UNITS[component[0]]}]' for component in found.components]
            values += list(reaction.T)
        write_table(path, [*columns, 'power [W]'], [*values, found.power])

    def write_plot(self, path: Path) -> None:
        """Picture of motion, forces, reactions and power."""
        from ..report.plots import write_plots  # here: slow to import
        found, model = self.found, self.model
        t = found.t
        driven = [*(driver.coordinate for driver in model.description.drivers.values()), *model.independent]
        units = ' / '.join(dict.fromkeys(unit_of(model.description, name) for name in driven))
        plots = [Panel('Prescribed motion', units, [
            Curve(name, t, found.q[:, model.names.index(name)]) for name in driven])]
        of_force = {name: self.force_unit(name) for name in found.forces}
        plots += [Panel('Forces of the drivers', unit, [
            Curve(name, t, found.forces[name]) for name in of_force if of_force[name] == unit])
            for unit in dict.fromkeys(of_force.values())]
        count = sum(component.startswith('f') for component in found.components)
        sizes = {joint: np.linalg.norm(values[:, :count], axis=1) for joint, values in found.reactions.items()}
        chosen = sorted(sizes, key=lambda joint: -np.max(np.nan_to_num(sizes[joint])))[:_MOST]
        if chosen:
            plots.append(Panel('Reaction forces in the joints', 'N', [
                Curve(joint, t, sizes[joint]) for joint in sizes if joint in chosen]))
        plots.append(Panel('Power of the drivers', 'W', [Curve('', t, found.power)]))
        write_plots(plots, path)

    def force_unit(self, actuator: str) -> str:
        """N or N*m of a driver, or of an independent coordinate that a table moves."""
        return 'N*m' if self._turning(actuator) else 'N'

    def _turning(self, actuator: str) -> bool:
        drivers = self.model.description.drivers
        coordinate = drivers[actuator].coordinate if actuator in drivers else actuator
        return unit_of(self.model.description, coordinate) == 'rad'


def _sizes(values: np.ndarray) -> dict[str, float | None]:
    known = bool(np.isfinite(values).all())
    return {'largest': float(np.max(np.abs(values))) if known else None,
            'rms': float(np.sqrt(np.mean(values ** 2))) if known else None}


@checked
def inverse_dynamics(model: Loadable, t: Sequence[float] | None = None, z: np.ndarray | None = None,
                     zd: np.ndarray | None = None, zdd: np.ndarray | None = None, *, inputs: np.ndarray | None = None,
                     motion: str | Path | None = None, duration: float | None = None, dt: float | None = None,
                     coordinates: str | None = None) -> Forces:
    """Forces that a motion takes at times ``t`` (k,), s.

    ``z`` (k, g): independent coordinates that no driver of the file moves, in the order of ``model.independent``, m or
    rad; None where drivers move all. ``zd``, ``zdd`` (k, g): their rates, by default those of a spline through what is
    given (degree 5). ``inputs`` (k, i).

    Instead of ``t``, as ``mbse inverse``: ``motion``, a CSV table of the motion (docs/command_line.md), or drivers of
    the file, over ``duration``, s (default that of the table, else 10), in steps of ``dt``, s (default the table's
    times, else 0.005); ``coordinates`` of a mechanism that is a name. Raises SettingError, PositionProblemError (out of
    reach), SingularConfigurationError (dead point), BagError (table), DescriptionError (no drivers).

    >>> t = np.linspace(0.0, 1.0, 101)
    >>> inverse_dynamics('four_bar', t, 0.5 + 0.1 * t[:, None] ** 3).names
    ('theta',)
    """
    from ..dynamics.forces.driven_motion import inverse_dynamics as solve  # here, as they take their time to import
    from ..dynamics.forces.motion_table import MotionTable, free_units, interpolated, moved_by_table, oddities
    if t is None:
        refuse_options('times t', {'z': z, 'zd': zd, 'zdd': zdd, 'inputs': inputs})
        for name, value in (('dt', dt), ('duration', duration)):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise SettingError(name, value, 'a number of seconds above 0')
        if motion is None:
            item = model_of(model if coordinates is None else load_model(named(model), coordinates))
            length, step = DURATION if duration is None else duration, DT if dt is None else dt
            _check_count(length, step)
            item.check_reducible()
            _check_driven(item)
            return Forces(item, solve(item, step * np.arange(math.floor(length / step * (1 + 1e-12)) + 1)))
        item, table = moved_by_table(named(model), Path(motion), coordinates)
        _check_count(table.t[-1] - table.t[0] if duration is None else duration, dt)
        found = solve(item, instants(table, duration, dt), interpolated(table, item.independent))
        return Forces(item, found, table, tuple(oddities(table, free_units(item))))
    refuse_options('a motion without times t', {'motion': motion, 'duration': duration, 'dt': dt,
                                                'coordinates': coordinates})
    item, times = model_of(model), np.asarray(t, dtype=float)
    if z is None:
        return Forces(item, solve(item, times, None, inputs))
    if times.ndim != 1 or len(times) < FEWEST or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        raise SettingError('t', times.shape, f'{FEWEST} times or more, s, each later than the one before')
    given = [_columns(name, values, len(times), item) for name, values in (('z', z), ('zd', zd), ('zdd', zdd))]
    columns = [{} if values is None else dict(zip(item.independent, values.T)) for values in given]
    of_arrays = MotionTable('arrays', times, np.arange(len(times)), *columns)
    whole = [values for values in given if values is not None]
    if len(whole) == len(given):
        return Forces(item, solve(item, times, whole, inputs))
    return Forces(item, solve(item, times, interpolated(of_arrays, item.independent), inputs))


def _check_count(duration: float, dt: float | None) -> None:
    if dt is not None and dt > duration:
        raise SettingError('dt', dt, f'a step within the duration, {duration:g} s')
    if dt is not None and duration / dt > LONGEST:
        raise SettingError('dt', dt, f'at most {LONGEST} instants over the duration: a longer step')


def _columns(name: str, values: np.ndarray | None, count: int, model: Model) -> np.ndarray | None:
    """Values (k, g); a single coordinate may come without its axis."""
    if values is None:
        return None
    array = np.asarray(values, dtype=float)
    array = array[:, None] if array.ndim == 1 else array
    if array.shape != (count, len(model.z)) or not np.isfinite(array).all():
        raise SettingError(name, array.shape, f'finite values {(count, len(model.z))}: '
                           + (', '.join(model.independent) or 'drivers move all'))
    return array


def _check_driven(model: Model) -> None:
    d = model.description
    if not d.drivers:
        raise DescriptionError(d.file, 'drivers', None,
                               'a driver, or a table of the motion: inverse dynamics needs a prescribed motion')
    if model.degrees_of_freedom:
        raise DescriptionError(d.file, 'drivers', list(d.drivers),
                               f'drivers of all degrees of freedom; {", ".join(model.independent)} still free: '
                               'drivers, or a table of the motion, for them')


def instants(table: MotionTable, duration: float | None, dt: float | None) -> np.ndarray:
    """Times (k,), s: the table's, or even ones in steps of ``dt`` from its first; the first ``duration`` of them."""
    first, last = table.t[0], table.t[-1]
    length = last - first
    if duration is not None and duration > length * (1 + 1e-9):
        raise SettingError('duration', duration, f'at most {length:.9g} s, the length of {table.file}')
    end = last if duration is None else first + duration
    if dt is None:
        return table.t[table.t <= end + 1e-9 * length]
    return np.minimum(first + dt * np.arange(math.floor((end - first) / dt * (1 + 1e-12)) + 1), last)
