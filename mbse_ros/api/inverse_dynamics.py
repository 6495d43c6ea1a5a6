# SPDX-License-Identifier: Apache-2.0
"""``inverse_dynamics``: the forces that a motion of a mechanism takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..description.coordinate_units import unit_of
from ..dynamics.model import Model
from ..errors import SettingError
from .load import Loadable, model_of
from .results.motion_estimate import motion_series
from .results.result import Result
from .results.series import ResultSeries

if TYPE_CHECKING:
    from ..dynamics.forces.driven_motion import DrivenMotion

FEWEST = 4      # instants, of a spline


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
        drivers, f = self.model.description.drivers, self.found
        of = {name: drivers[name].coordinate if name in drivers else name for name in f.forces}
        turning = {name: unit_of(self.model.description, on) == 'rad' for name, on in of.items()}
        series = [ResultSeries(f'force/{name}', 'N m' if turning[name] else 'N', force) for name,
                  force in f.forces.items()]
        series.append(ResultSeries('power', 'W', f.power))
        for joint, values in f.reactions.items():
            series += [ResultSeries(f'{joint}.{component}', 'N' if component[0] == 'f' else 'N m', column,
                                    panel=f'{joint}, {"forces" if component[0] == "f" else "moments"}')
                       for component, column in zip(f.components, values.T)]
        return series


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
