# SPDX-License-Identifier: Apache-2.0
"""``FactorGraph``: variables and factors as data, whole series of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..errors import GraphError, SettingError
from .factors.kinds import FactorKind

ALWAYS = -1      # the step of a variable that does not change over time

Steps = int | Iterable[int]


@dataclass(frozen=True)
class VariableSeries:
    """Variables of one name: ``size`` of each, ``steps`` (k,) ascending, and their places in a vector of all."""

    name: str
    size: int
    steps: np.ndarray
    first: int

    def places(self, steps: np.ndarray) -> np.ndarray:
        """Places (k, size) in the vector of all values; GraphError for a step that is not there."""
        at = np.searchsorted(self.steps, steps)
        known = at < len(self.steps)
        known[known] = self.steps[at[known]] == np.asarray(steps)[known]
        if not known.all():
            raise GraphError('a factor on a variable that is not there',
                             [key_name(self.name, int(step)) for step in np.asarray(steps)[~known]])
        return self.first + at[:, None] * self.size + np.arange(self.size)


@dataclass(frozen=True)
class Factors:
    """Instances of one kind: ``names`` and ``steps`` (k, arity) of the variables of each role, ``constants`` (k, c),
    ``sigma`` (k, rows), zero where a row holds exactly; ``label`` says what they are for."""

    kind: FactorKind
    label: str
    names: tuple[str, ...]
    steps: np.ndarray
    constants: np.ndarray
    sigma: np.ndarray

    def __len__(self) -> int:
        return len(self.steps)

    def keys(self, instance: int) -> list[tuple[str, int]]:
        """Variables of an instance."""
        return list(zip(self.names, self.steps[instance].tolist()))

    def take(self, chosen: np.ndarray) -> Factors:
        """Some of the instances."""
        return Factors(self.kind, self.label, self.names, self.steps[chosen], self.constants[chosen],
                       self.sigma[chosen])


@dataclass
class FactorGraph:
    """Variables and factors of an estimation or simulation problem.

    A variable is known by its name (``q``, ``qd``, ``Q``, ...) and its step: the number of an instant, or ALWAYS.
    ``components``: names of the entries of a variable, where they have names. All values together are one vector
    ``x`` (size,); ``values`` makes it, ``series`` gives the place of each variable.
    """

    factors: list[Factors] = field(default_factory=list)
    components: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)
    _steps: dict[str, list[np.ndarray]] = field(default_factory=dict)
    _series: dict[str, VariableSeries] | None = None

    def add_variables(self, name: str, size: int, steps: Steps = ALWAYS, components: Iterable[str] = ()) -> None:
        """Variables of one name at some steps."""
        if self._sizes.setdefault(name, size) != size:
            raise SettingError(name, size, f'the size of the variables of this name, {self._sizes[name]}')
        if components:
            self.components[name] = tuple(components)
        self._steps.setdefault(name, []).append(_steps(steps))
        self._series = None

    def add(self, kind: FactorKind, variables: Mapping[str, tuple[str, Steps]], sigma: float | np.ndarray,
            constants: Mapping[str, float | np.ndarray] | None = None, label: str = '') -> Factors:
        """Factors of one kind.

        ``variables``: for each role the name and the step, or one step for each factor. ``sigma``: standard deviation
        of all rows, of each (rows,), or of each factor's (k, rows); 0 is a hard constraint. ``constants``: for each
        role a value (size,), or one for each factor (k, size). Raises SettingError for a role too few or too many.
        """
        constants = dict(constants or {})
        if set(variables) != set(kind.variables) or set(constants) != set(kind.constants):
            raise SettingError(kind.name, [*variables, *constants],
                               f'the roles {", ".join([*kind.variables, *kind.constants])}')
        steps = [_steps(variables[role][1]) for role in kind.variables]
        count = max((len(s) for s in steps), default=0)
        columns = [np.broadcast_to(s, count) for s in steps]
        fixed = [_rows(constants[role], count, size, role) for role, size in kind.constants.items()]
        noise = np.broadcast_to(np.asarray(sigma, dtype=float), (count, kind.rows))
        if not (noise >= 0).all():
            raise SettingError(f'sigma of {kind.name}', sigma, 'standard deviations, not negative; 0 holds exactly')
        names = tuple(variables[role][0] for role in kind.variables)
        made = Factors(kind, label or kind.name, names, np.stack(columns, axis=1).reshape(count, len(names)),
                       np.hstack([np.zeros((count, 0)), *fixed]), np.array(noise))
        self.factors.append(made)
        return made

    @property
    def series(self) -> dict[str, VariableSeries]:
        """Variables by name, in the order in which the names were added."""
        if self._series is None:
            self._series, first = {}, 0
            for name, size in self._sizes.items():
                steps = np.unique(np.concatenate(self._steps[name]))
                self._series[name] = VariableSeries(name, size, steps, first)
                first += size * len(steps)
        return self._series

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return sum(item.size * len(item.steps) for item in self.series.values())

    def values(self, **initial: np.ndarray) -> np.ndarray:
        """Vector of all values from arrays (k, size), or (size,) for all steps, by name; zero where none is given."""
        x = np.zeros(self.size)
        for name, value in initial.items():
            if name not in self.series:
                raise SettingError(name, np.shape(value), 'one of ' + ', '.join(self.series))
            self.of(x, name)[...] = np.asarray(value, dtype=float)
        return x

    def of(self, x: np.ndarray, name: str) -> np.ndarray:
        """Values (k, size) of one name in a vector of all: a view."""
        series = self.series[name]
        return x[series.first:series.first + series.size * len(series.steps)].reshape(-1, series.size)

    def key_at(self, place: int) -> tuple[str, int]:
        """Name and step of the variable at a place in the vector of all values."""
        series = next(s for s in self.series.values() if s.first <= place < s.first + s.size * len(s.steps))
        return series.name, int(series.steps[(place - series.first) // series.size])

    def entry_name(self, place: int) -> str:
        """An entry of the vector of all values as people write it: its variable, and its component or number."""
        name, step = self.key_at(place)
        series, known = self.series[name], self.components.get(name)
        entry = int(place - series.first) % series.size
        return key_name(name, step, known[entry] if known else str(entry) if series.size > 1 else '')

    def extrapolate(self, x: np.ndarray, places: Mapping[str, np.ndarray], *before: Mapping[str, np.ndarray]) -> None:
        """Values in x (size,) of one step that have none: on the line through the two steps before, the nearest first.

        ``places`` and ``before`` as ``places_of_steps`` gives them.
        """
        for name, at in places.items():
            known = [step[name] for step in before if name in step]
            if np.isnan(x[at]).any() and known:
                x[at] = 2 * x[known[0]] - x[known[1]] if len(known) == 2 else x[known[0]]

    def places_of_steps(self) -> dict[int, dict[str, np.ndarray]]:
        """Places of the variables of each step, by name."""
        found: dict[int, dict[str, np.ndarray]] = {}
        for series in self.series.values():
            for step, at in zip(series.steps.tolist(), series.places(series.steps)):
                found.setdefault(step, {})[series.name] = at
        return found

    @property
    def instants(self) -> np.ndarray:
        """Steps (k,) of all instants, ascending."""
        return np.unique(np.concatenate([s.steps[s.steps != ALWAYS] for s in self.series.values()]))

    def places(self, factors: Factors) -> np.ndarray:
        """Places (k, width) of the arguments of factors in the vector of all values."""
        for name in factors.names:
            if name not in self.series:
                raise GraphError('a factor on a variable that is not there', [name])
        blocks = [self.series[name].places(factors.steps[:, i]) for i, name in enumerate(factors.names)]
        for block, size, name in zip(blocks, factors.kind.variables.values(), factors.names):
            if block.shape[1] != size:
                raise SettingError(name, block.shape[1], f'variables of size {size} for {factors.kind.name}')
        return np.hstack(blocks)


def key_name(name: str, step: int, component: str = '') -> str:
    """A variable as people write it: ``qd[12]``, ``Q[3].theta``, ``payload``."""
    return name + (f'[{step}]' if step != ALWAYS else '') + (f'.{component}' if component else '')


def _steps(steps: Steps) -> np.ndarray:
    return np.atleast_1d(np.asarray(steps if isinstance(steps, (int, np.ndarray)) else list(steps), dtype=np.int64))


def _rows(value: float | np.ndarray, count: int, size: int, role: str) -> np.ndarray:
    """A constant for each factor (count, size)."""
    array = np.asarray(value, dtype=float)
    if array.ndim == 1 and size == 1 and len(array) == count:
        array = array[:, None]
    try:
        return np.broadcast_to(array, (count, size))
    except ValueError:
        raise SettingError(role, array.shape, f'values ({size},) or ({count}, {size})') from None
