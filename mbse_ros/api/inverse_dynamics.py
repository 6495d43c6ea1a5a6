# SPDX-License-Identifier: Apache-2.0
"""``inverse_dynamics``: the forces that a motion of a mechanism takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..description.coordinate_units import columns_of, unit_of
from ..dynamics.model import Model
from ..errors import SettingError
from ..report.chart import Curve, Panel
from ..report.files import write_table
from .load import Loadable, model_of
from .results.motion_estimate import motion_series
from .results.result import Result
from .results.series import ResultSeries

if TYPE_CHECKING:
    from ..dynamics.forces.driven_motion import DrivenMotion

FEWEST = 4      # instants, of a spline
_UNITS = {'f': 'N', 'm': 'N*m'}
_MOST = 8       # joints in the plot


@dataclass(frozen=True)
class Forces(Result):
    """Forces over a motion at times ``t`` (k,), s; SI. ``found``: all of it, with reactions by joint and what redundant
    constraints leave undetermined.

    ``names`` of the actuators (drivers, or independent coordinates whose motion was given); ``forces`` (k, a), N or
    N m; ``power`` (k,), W; ``q``, ``qd``, ``qdd`` (k, n).
    """

    model: Model
    found: DrivenMotion

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

    def to_json(self) -> dict[str, Any]:
        """Largest and root mean square values, SI; None where a value is not determined."""
        f, d = self.found, self.model.description
        return {
            'mechanism': d.name, 'file': d.file, 'instants': len(f.t),
            'duration_s': float(f.t[-1] - f.t[0]),
            'forces': {name: {'unit': self.force_unit(name), **_sizes(values)} for name, values in f.forces.items()},
            'reactions': {joint: {component: _sizes(column) for component, column in zip(f.components, values.T)}
                          for joint, values in f.reactions.items()},
            'undetermined': {name: list(components) for name, components in f.undetermined.items()},
            'power_imbalance_W': float(np.max(np.abs(f.imbalance)))}

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


def inverse_dynamics(model: Loadable, t: Sequence[float], z: np.ndarray | None = None, zd: np.ndarray | None = None,
                     zdd: np.ndarray | None = None, *, inputs: np.ndarray | None = None) -> Forces:
    """Forces that a motion takes at times ``t`` (k,), s.

    ``z`` (k, g): independent coordinates that no driver of the file moves, in the order of ``model.independent``, m or
    rad; None where drivers move all. ``zd``, ``zdd`` (k, g): their rates, by default those of a spline through what is
    given (degree 5). ``inputs`` (k, i). Raises SettingError, PositionProblemError (out of reach),
    SingularConfigurationError (dead point).
    """
    from ..dynamics.forces.driven_motion import inverse_dynamics as solve  # here, as they take their time to import
    from ..dynamics.forces.motion_table import MotionTable, interpolated
    item, times = model_of(model), np.asarray(t, dtype=float)
    if z is None:
        return Forces(item, solve(item, times, None, inputs))
    if times.ndim != 1 or len(times) < FEWEST or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        raise SettingError('t', times.shape, f'{FEWEST} times or more, s, each later than the one before')
    given = [_columns(name, values, len(times), item) for name, values in (('z', z), ('zd', zd), ('zdd', zdd))]
    columns = [{} if values is None else dict(zip(item.independent, values.T)) for values in given]
    table = MotionTable('arrays', times, np.arange(len(times)), *columns)
    whole = [values for values in given if values is not None]
    if len(whole) == len(given):
        return Forces(item, solve(item, times, whole, inputs))
    return Forces(item, solve(item, times, interpolated(table, item.independent), inputs))


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
