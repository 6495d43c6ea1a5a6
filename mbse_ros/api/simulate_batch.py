# SPDX-License-Identifier: Apache-2.0
"""``simulate_batch``: many runs of a mechanism, with starts and parameters of their own, in one call.

Of the command line their numbers are drawn at random, by options NAME=STDDEV; a cluster can make them, too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from ..description.coordinate_units import unit_of
from ..description.language.units import split_number, unit_factor
from ..description.load import load_mechanism
from ..description.model import MechanismDescription
from ..dynamics.forcing import Forcing, check_intensities, series_of
from ..dynamics.integrators import COMPILED, INTEGRATORS
from ..dynamics.model import Model
from ..dynamics.motion import step_count
from ..errors import SettingError, check_choice, refuse_options
from ..machine import Machine
from .checked import checked
from .load import Loadable, load, loaded
from .results.batch_simulation import DOT, BatchSimulation, Variation
from .simulate import check_steps

if TYPE_CHECKING:
    from ..dynamics.batch import Batch

OUTPUTS = 100               # instants after the start, or as near to it as a divisor of the steps is
PART = 500                  # runs that a worker of a cluster makes at once
MOST_BYTES = 4 * 2 ** 30    # of the states kept


@checked
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
    check_steps(duration, dt)
    if seed < 0:
        raise SettingError('seed', seed, 'a whole number from 0')
    if not inputs:
        refuse_options('inputs', {'input_times': input_times})
    try:
        item = load(model, free=list(given)) if not isinstance(model, (Model, Machine)) and given else loaded(model)
    except SettingError as error:
        raise error.renamed({'free': 'parameters'}) from None
    if isinstance(item, Machine):
        raise SettingError('model', item.name, 'a mechanism: a machine moves by its cycles (simulate)')
    item.check_reducible()
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
    if model.description.initial.held:
        from ..simulation.linkage import holding_inputs  # here, because it takes its time to import
        inputs = {**dict(zip(model.inputs, holding_inputs(model).tolist())), **inputs}
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


@dataclass(frozen=True)
class RunsRequest:
    """What to simulate so many times; ``independent``: names, empty: to be chosen, or None for the file's; ``vary``:
    NAME=STDDEV, ``outputs``: instants after the start."""

    name: str
    duration: float = 5.0
    dt: float = 1e-3
    scheme: str = 'exponential'
    order: str | None = None
    coordinates: str | None = None
    independent: tuple[str, ...] | None = None
    runs: int = 1
    seed: int = 1
    vary: Sequence[str] = ()
    outputs: int | None = None
    jobs: int | None = None
    cluster: str | None = None

    def __post_init__(self) -> None:
        check_choice('scheme', self.scheme, INTEGRATORS)
        check_steps(self.duration, self.dt)
        if self.scheme not in COMPILED:
            raise SettingError('scheme', self.scheme, f'of many runs, one of {", ".join(COMPILED)}')
        for option, value, least in (('runs', self.runs, 1), ('seed', self.seed, 0),
                                     ('jobs', self.jobs if self.jobs is not None else 1, 1)):
            if value < least:
                raise SettingError(option, value, f'a whole number from {least} on')
        if self.cluster is not None and self.jobs is not None:
            raise SettingError('jobs', self.jobs, 'threads of this computer, or a cluster, not both')

    @property
    def options(self) -> dict[str, Any]:
        """Options of the scheme."""
        return {} if self.order is None else {'order': self.order}

    @property
    def every(self) -> int:
        """Of so many steps the last one is kept; raises SettingError."""
        steps = step_count(self.duration, self.dt)
        if self.outputs is not None:
            if self.outputs < 1 or steps % self.outputs:
                raise SettingError('outputs', self.outputs, f'a divisor of the {steps} steps')
            return steps // self.outputs
        divisors = [k for k in range(1, int(steps ** 0.5) + 1) if steps % k == 0]
        count = min([*divisors, *(steps // k for k in divisors)], key=lambda k: (abs(np.log(k / OUTPUTS)), k))
        return steps // count


def simulate_varied(request: RunsRequest) -> BatchSimulation:
    """Runs with numbers that are drawn from the standard deviations of the file and of ``vary``, by threads or by a
    cluster. Raises SettingError, DescriptionError, CompilationError."""
    every = request.every
    model, varied = varied_model(request.name, request.coordinates, request.independent, request.vary)
    model.check_reducible()
    if request.runs > 1 and not any(item.stddev for item in varied) and not np.any(model.system.values.stddev):
        raise SettingError('runs', request.runs, f'something that differs (vary, NAME=STDDEV): no number of '
                           f'{model.description.name} has a standard deviation')
    starts, parameters = drawn(request, varied)
    kept = 16 * len(model.names) * request.runs * (step_count(request.duration, request.dt) // every + 1)
    if kept > MOST_BYTES:
        raise SettingError('outputs', request.outputs, f'fewer instants, or fewer runs: {kept / 2 ** 30:.3g} GiB of '
                           f'states, at most {MOST_BYTES >> 30}')
    wall, processor = time.perf_counter(), time.process_time()
    batch = by_cluster(request) if request.cluster is not None else simulate_batch(
        model, request.duration, request.dt, request.scheme, runs=request.runs, starts=starts, parameters=parameters,
        every=every, seed=request.seed, jobs=request.jobs, options=request.options).batch
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    asked = {'scheme': request.scheme, 'order': request.order, 'dt_s': request.dt, 'duration_s': request.duration}
    cost = {'seed': request.seed, 'wall_s': wall, 'processor_s': processor,
            'us_per_step': 1e6 * processor / max(1, int(batch.steps.sum()))}
    return BatchSimulation(model, batch, starts, varied, asked, cost)


def varied_model(mechanism: str, coordinates: str | None, independent: Sequence[str] | None, vary: Sequence[str]
                 ) -> tuple[Model, list[Variation]]:
    """The model with the numbers of ``vary``, texts NAME=STDDEV, free, and what they are; raises SettingError."""
    given = dict(_split(text) for text in vary)
    if len(given) < len(vary):
        raise SettingError('vary', list(vary), 'each name once')
    description = load_mechanism(mechanism)
    if independent is not None:
        description = replace(description, independent=tuple(independent))
    plain = Model(description, coordinates)
    starts = [*plain.independent, *(name + DOT for name in plain.independent)]
    free = [name for name in given if name not in starts]
    model = _freed(description, coordinates, free, [*starts, *description.parameters]) if free else plain
    values = model.system.values
    found = []
    for name, text in given.items():
        if name in starts and name in values.names:
            raise SettingError('vary', name, 'a name of one thing: it is a coordinate and a parameter of the file')
        found.append(_start(model, name, text) if name in starts else _parameter(model, name, text))
    return model, found


def _freed(description: MechanismDescription, coordinates: str | None, free: Sequence[str], known: Sequence[str]
           ) -> Model:
    """The model with free numbers."""
    try:
        return Model(description, coordinates, free=free)
    except SettingError as error:
        if error.name != 'free':
            raise
        raise SettingError('vary', error.value, f'one of {", ".join(known)}, or the key of a number of the file'
                           ) from None


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition('=')
    if not (equals and name.strip() and value.strip()):
        raise SettingError('vary', text, "NAME=STDDEV, such as theta='2 deg' or crank=1%")
    return name.strip().removeprefix('parameters.'), value.strip()


def _start(model: Model, name: str, text: str) -> Variation:
    """Of an independent coordinate or its velocity."""
    rate = name.removesuffix(DOT) if name not in model.independent else name
    place, unit = model.names.index(rate), unit_of(model.description, rate)
    unit = unit if rate == name else f'{unit or 1}/s'
    value = (model.start.q if rate == name else model.start.qd)[place]
    return Variation(name, True, float(value), _number(name, text, unit or '1'), unit)


def _parameter(model: Model, name: str, text: str) -> Variation:
    """Of a number of the file."""
    value = float(model.parameters[model.system.values.names.index(name)])
    if text.endswith('%') and value == 0:
        raise SettingError(f'vary {name}', text, 'a standard deviation in SI: a percentage of 0 is 0')
    share = _number(name, text, '1', 'a number in SI, or a percentage of its value')
    return Variation(name, False, value, share * abs(value) if text.endswith('%') else share, None)


def _number(name: str, text: str, unit: str, expected: str = '') -> float:
    """Standard deviation in SI."""
    try:
        value, suffix = split_number(text)
        value *= unit_factor(suffix, unit) if suffix else 1.0
    except ValueError as error:
        raise SettingError(f'vary {name}', text, f'{expected or f"a number, in {unit} or with a unit"} '
                           f'({error})') from None
    if value < 0:
        raise SettingError(f'vary {name}', text, 'a standard deviation of 0 or more')
    return value


def drawn(request: RunsRequest, varied: Sequence[Variation]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Starts and parameters (runs,) by name."""
    drawn = {item.name: item.drawn(request.seed, request.runs) for item in varied}
    starts, parameters = ({item.name: drawn[item.name] for item in varied if item.start is start}
                          for start in (True, False))
    return starts, parameters


def by_cluster(request: RunsRequest) -> Batch:
    """All runs, so many at a time."""
    from ..studies.many import many  # here, as it takes its time to import
    parts = many(partial(_part, request), range(0, request.runs, PART), cluster=request.cluster, what='parts')
    q, qd, steps, parameters = (np.concatenate([getattr(part, name) for part in parts])
                                for name in ('q', 'qd', 'steps', 'parameters'))
    return replace(parts[0], q=q, qd=qd, steps=steps, parameters=parameters,
                   failures=tuple(item for part in parts for item in part.failures))


def _part(request: RunsRequest, first: int) -> Batch:
    """The runs from the first on, of the numbers that are drawn for all, in one thread."""
    model, varied = varied_model(request.name, request.coordinates, request.independent, request.vary)
    starts, parameters = drawn(request, varied)
    rows = slice(first, first + PART)
    z, zd = starts_of(model, starts, request.runs)
    from ..dynamics.batch import simulate_runs  # here, as it takes its time to import
    return simulate_runs(model, request.duration, request.dt, request.scheme, z=z[rows], zd=zd[rows],
                         parameters=parameters_of(model, parameters, request.runs, request.seed)[rows],
                         every=request.every, jobs=1, **request.options)
