# SPDX-License-Identifier: Apache-2.0
"""``simulate_batch``: many runs of a mechanism, with starts and parameters of their own, in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics.forcing import Forcing, check_intensities, series_of
from ..dynamics.model import Model
from ..errors import SettingError, check_choice
from ..machine import Machine
from .load import Loadable, load, loaded

if TYPE_CHECKING:
    from ..dynamics.batch import Batch

DOT = '_dot'


@dataclass(frozen=True)
class BatchSimulation:
    """Runs of a mechanism, SI; ``batch`` has all of it.

    ``t`` (k,); ``q``, ``qd`` (runs, k, n) of the coordinates ``names`` (n,), NaN from where a run ended early;
    ``reasons`` (runs,): what ended it, '' where it is complete; ``completed`` (runs,) bool; ``parameters``: (runs,) by
    name. ``result['theta']``, ``result['theta_dot']``: (runs, k).
    """

    model: Model
    batch: Batch

    @property
    def t(self) -> np.ndarray:
        """Times (k,), s."""
        return self.batch.t

    @property
    def names(self) -> tuple[str, ...]:
        """Names (n,) of the coordinates."""
        return self.batch.names

    @property
    def q(self) -> np.ndarray:
        """Coordinates (runs, k, n)."""
        return self.batch.q

    @property
    def qd(self) -> np.ndarray:
        """Velocities (runs, k, n)."""
        return self.batch.qd

    @property
    def reasons(self) -> tuple[str, ...]:
        """What ended each run early, '' where nothing did."""
        return tuple('' if error is None else f'{type(error).__name__}: {error}' for error in self.batch.failures)

    @property
    def completed(self) -> np.ndarray:
        """Which runs (runs,) reached the end."""
        return np.array([error is None for error in self.batch.failures])

    @property
    def reached(self) -> np.ndarray:
        """Time (runs,) of the last step that each run made, s."""
        return np.asarray(self.t[0] + self.batch.steps * self.batch.dt)

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """Values (runs,) by name."""
        return dict(zip(self.batch.parameter_names, self.batch.parameters.T))

    def quantiles(self, name: str, levels: Sequence[float]) -> np.ndarray:
        """Quantiles (levels, k) of a column over time, of the runs that got so far; NaN where none did."""
        columns = self[name].T
        return np.array([np.quantile(there, levels) if len(there := column[np.isfinite(column)])
                         else np.full(len(levels), np.nan) for column in columns]).T

    def __getitem__(self, name: str) -> np.ndarray:
        """A coordinate, or with ``_dot`` behind its name its velocity (runs, k); raises SettingError."""
        known = [*self.names, *(each + DOT for each in self.names)]
        check_choice('column', name, known)
        at = known.index(name)
        return self.q[:, :, at] if at < len(self.names) else self.qd[:, :, at - len(self.names)]


def simulate_batch(model: Loadable, duration: float = 5.0, dt: float = 1e-3, scheme: str = 'exponential', *,
                   runs: int | None = None, starts: Mapping[str, Any] | None = None,
                   parameters: Mapping[str, Any] | None = None, inputs: Mapping[str, Any] | None = None,
                   input_times: Any = None, noise: Mapping[str, float] | None = None, every: int = 1, seed: int = 1,
                   jobs: int | None = None, options: Mapping[str, Any] | None = None) -> BatchSimulation:
    """Simulate a mechanism many times over ``duration``, s, in steps of ``dt``, s; compiled, in ``jobs`` threads.

    ``starts``: numbers, or arrays (runs,), by the name of an independent coordinate (``theta``) or of its velocity
    (``theta_dot``); ``parameters``: the same by the name of a parameter of the file. With ``runs``, numbers of the
    file that have a standard deviation and are not given are drawn from it (normal, ``seed``); without, the arrays say
    how many runs there are and all else stays as the file says. ``every``: of so many steps one is kept (memory: 16
    bytes a coordinate and kept step). ``scheme``: 'exponential', 'trapezoid', 'forward_euler', 'augmented_euler', with
    ``options`` as of ``simulate``. ``jobs`` default: all processors; the results do not depend on it.

    ``inputs`` by the names of the file's inputs (default zero), N or N m: a number, a function of time (array of times
    -> array), or arrays (m,) for all runs or (runs, m), at ``input_times`` (m,), s, with straight lines between.
    ``noise``: random forces on inputs or coordinates by name, white, each run with its own by ``seed``; the number is
    the square root of the two-sided power spectral density, N s^0.5 or N m s^0.5: in a step the force is constant with
    the standard deviation ``number / sqrt(dt)``. Drivers of the file move their coordinates.

    A run that fails is marked in ``reasons``, the others go on. Raises SettingError; CompilationError without a C
    compiler.

    >>> simulate_batch('four_bar', 1.0, starts={'theta': [0.5, 1.0, 1.5]}).reasons
    ('', '', '')
    """
    starts, given, inputs, noise = dict(starts or {}), dict(parameters or {}), dict(inputs or {}), dict(noise or {})
    item = load(model, free=list(given)) if not isinstance(model, (Model, Machine)) and given else loaded(model)
    if isinstance(item, Machine):
        raise SettingError('model', item.name, 'a mechanism: a machine moves by its cycles (simulate)')
    each = {f'inputs[{name!r}]': values for name, values in inputs.items() if not callable(values)}
    count = _count(runs, {**starts, **given}, [len(array) for name, values in each.items()
                                               if (array := _array(name, values)).ndim == 2])
    if count > 1 and not (starts or given or inputs or noise) and not np.any(item.system.values.stddev):
        raise SettingError('runs', count, f'starts or parameters that differ: {item.description.name} has no free '
                           'number with a standard deviation to draw from')
    from ..dynamics.batch import simulate_runs  # here, because it takes its time to import
    item, forcing = _forced(item, inputs, input_times, noise, (item.start.t, item.start.t + duration), count, seed)
    z, zd = starts_of(item, starts, count)
    values = parameters_of(item, given, count, None if runs is None else seed)
    batch = simulate_runs(item, duration, dt, scheme, z=z, zd=zd, parameters=values, every=every, jobs=jobs,
                          forcing=forcing, **(options or {}))
    return BatchSimulation(item, batch)


def _count(runs: int | None, given: Mapping[str, Any], others: Sequence[int] = ()) -> int:
    """Number of runs that all agree on, ``others`` too."""
    if runs is not None and (isinstance(runs, bool) or not isinstance(runs, Integral) or runs < 1):
        raise SettingError('runs', runs, 'a whole number from 1 on')
    count = None if runs is None else int(runs)
    for name, values in given.items():
        array = _array(name, values)
        if array.ndim and (array.ndim > 1 or count not in (None, len(array)) or not len(array)):
            raise SettingError(name, array.shape, f'a number, or an array ({count or "runs"},)')
        count = len(array) if array.ndim else count
    for other in others:
        count = other if count is None else count
    if count is None:
        raise SettingError('runs', None, 'a number of runs, or an array of starts or parameters')
    return count


def _array(name: str, values: Any) -> np.ndarray:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise SettingError(name, values, 'a number, or an array of one number for each run') from None


def _forced(model: Model, inputs: dict[str, Any], times: Any, noise: dict[str, float], span: tuple[float, float],
            runs: int, seed: int) -> tuple[Model, Forcing | None]:
    """The model with random forces on coordinates as further inputs, and what acts on all of them; None: nothing."""
    if not inputs and not noise:
        return model, None
    for name in inputs:
        if name not in model.inputs:
            raise SettingError('inputs', name, 'one of ' + ', '.join(model.inputs) if model.inputs else
                               f'none: {model.description.name} has no inputs')
    check_intensities(noise, [*model.inputs, *(name for name in model.names if name not in model.inputs)])
    model = model.with_forces([name for name in noise if name not in model.inputs])
    forcing = Forcing(model.inputs, series_of(inputs, times, span, runs), noise, seed)
    forcing.at(0, np.linspace(*span, 3))        # a function that fails does so here, not in each run
    return model, forcing


def starts_of(model: Model, given: dict[str, Any], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Independent coordinates and velocities (count, g)."""
    names = [*model.independent, *(name + DOT for name in model.independent)]
    found = np.tile(np.concatenate([model.start.q[model.z], model.start.qd[model.z]]), (count, 1))
    for name, values in given.items():
        check_choice('starts', name, names)
        found[:, names.index(name)] = values
    g = len(model.independent)
    return np.ascontiguousarray(found[:, :g]), np.ascontiguousarray(found[:, g:])


def parameters_of(model: Model, given: dict[str, Any], count: int, seed: int | None) -> np.ndarray:
    """Values (count, p); drawn from the file's deviations where there is a seed."""
    values = model.system.values
    found = np.tile(np.asarray(model.parameters, dtype=float), (count, 1))
    if seed is not None:
        found += values.stddev * np.random.default_rng(seed).standard_normal(found.shape)
    for name, numbers in given.items():
        if name not in values.names:
            raise SettingError('parameters', name, f'a number that the model keeps free: load(..., free=[{name!r}])'
                               + (', or one of ' + ', '.join(values.names) if values.names else ''))
        found[:, values.names.index(name)] = numbers
    return found
