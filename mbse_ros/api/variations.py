# SPDX-License-Identifier: Apache-2.0
"""Runs of a mechanism with numbers that are drawn at random: options NAME=STDDEV; by a cluster, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from zlib import crc32

import numpy as np

from ..description.coordinate_units import unit_of
from ..description.language.units import split_number, unit_factor
from ..description.load import load_mechanism
from ..description.model import MechanismDescription
from ..dynamics.batch import Batch, simulate_runs
from ..dynamics.integrators import COMPILED
from ..dynamics.model import Model
from ..dynamics.motion import step_count
from ..errors import SettingError
from ..studies.many import many
from .results.motion_files import SimulationRequest
from .simulate_batch import DOT, parameters_of, starts_of

OUTPUTS = 100               # instants after the start, or as near to it as a divisor of the steps is
PART = 500                  # runs that a worker of a cluster makes at once


@dataclass(frozen=True)
class Variation:
    """A number that is drawn, normal, ``stddev`` (SI) about its value; ``start``: of the start, else of the file."""

    name: str
    start: bool
    value: float
    stddev: float
    unit: str | None

    def drawn(self, seed: int, runs: int) -> np.ndarray:
        """Values (runs,); they depend on the seed and the name alone, and the first of more runs are the same."""
        draw = np.random.default_rng([seed, crc32(self.name.encode())])
        return self.value + self.stddev * draw.standard_normal(runs)


def varied_model(mechanism: str, coordinates: str | None, independent: Sequence[str] | None, vary: Sequence[str]
                 ) -> tuple[Model, list[Variation]]:
    """The model with the numbers of ``vary``, texts NAME=STDDEV, free, and what they are; raises SettingError."""
    given = dict(_split(text) for text in vary)
    if len(given) < len(vary):
        raise SettingError('--vary', list(vary), 'each name once')
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
            raise SettingError('--vary', name, 'a name of one thing: it is a coordinate and a parameter of the file')
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
        raise SettingError('--vary', error.value, f'one of {", ".join(known)}, or the key of a number of the file'
                           ) from None


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition('=')
    if not (equals and name.strip() and value.strip()):
        raise SettingError('--vary', text, "NAME=STDDEV, such as theta='2 deg' or crank=1%")
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
        raise SettingError(f'--vary {name}', text, 'a standard deviation in SI: a percentage of 0 is 0')
    share = _number(name, text, '1', 'a number in SI, or a percentage of its value')
    return Variation(name, False, value, share * abs(value) if text.endswith('%') else share, None)


def _number(name: str, text: str, unit: str, expected: str = '') -> float:
    """Standard deviation in SI."""
    try:
        value, suffix = split_number(text)
        value *= unit_factor(suffix, unit) if suffix else 1.0
    except ValueError as error:
        raise SettingError(f'--vary {name}', text, f'{expected or f"a number, in {unit} or with a unit"} '
                           f'({error})') from None
    if value < 0:
        raise SettingError(f'--vary {name}', text, 'a standard deviation of 0 or more')
    return value


@dataclass(frozen=True)
class RunsRequest(SimulationRequest):
    """What to simulate so many times; ``vary``: NAME=STDDEV, ``outputs``: instants after the start."""

    runs: int = 1
    seed: int = 1
    vary: Sequence[str] = ()
    outputs: int | None = None
    states: bool = False
    jobs: int | None = None
    cluster: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scheme not in COMPILED:
            raise SettingError('--scheme', self.scheme, f'with --runs, one of {", ".join(COMPILED)}')
        for option, value, least in (('--runs', self.runs, 1), ('--seed', self.seed, 0),
                                     ('--jobs', self.jobs if self.jobs is not None else 1, 1)):
            if value < least:
                raise SettingError(option, value, f'a whole number from {least} on')
        if self.cluster is not None and self.jobs is not None:
            raise SettingError('--jobs', self.jobs, 'threads of this computer, or --cluster')

    @property
    def every(self) -> int:
        """Of so many steps the last one is kept; raises SettingError."""
        steps = step_count(self.duration, self.dt)
        if self.outputs is not None:
            if self.outputs < 1 or steps % self.outputs:
                raise SettingError('--outputs', self.outputs, f'a divisor of the {steps} steps')
            return steps // self.outputs
        divisors = [k for k in range(1, int(steps ** 0.5) + 1) if steps % k == 0]
        count = min([*divisors, *(steps // k for k in divisors)], key=lambda k: (abs(np.log(k / OUTPUTS)), k))
        return steps // count


def drawn(request: RunsRequest, varied: Sequence[Variation]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Starts and parameters (runs,) by name."""
    drawn = {item.name: item.drawn(request.seed, request.runs) for item in varied}
    starts, parameters = ({item.name: drawn[item.name] for item in varied if item.start is start}
                          for start in (True, False))
    return starts, parameters


def by_cluster(request: RunsRequest) -> Batch:
    """All runs, so many at a time."""
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
    return simulate_runs(model, request.duration, request.dt, request.scheme, z=z[rows], zd=zd[rows],
                         parameters=parameters_of(model, parameters, request.runs, request.seed)[rows],
                         every=request.every, jobs=1, **request.options)
