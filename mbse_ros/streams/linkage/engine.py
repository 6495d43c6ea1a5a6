# SPDX-License-Identifier: Apache-2.0
"""One filter compiled for one model and its sensors: steps on a grid, with the whole state after each."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from ...compiled import Kernel, Scan
from ...dynamics.model import Model
from ...errors import DivergenceError, MbseError, SettingError
from ...estimators.filters.cekf_penalty import tangents
from ...estimators.filters.defaults import default_noises
from ...estimators.filters.filters import make_filter
from ...estimators.filters.parts.layout import SYMMETRIC, Layout
from ...estimators.filters.parts.problem import problem
from ...estimators.filters.parts.step import Filter
from .filter_states import mean_names
from .linkage_settings import LinkageSettings, numbers, option_values

MOTION = ('acceleration', 'colored', 'force_walk')      # noises of what moves the mechanism, by the filters' names


@dataclass(frozen=True)
class FilterTuning:
    """Numbers of a filter: flat ``tuning``, the ``threshold`` of one normalised innovation squared, ``stddev`` (s,)."""

    tuning: np.ndarray
    threshold: float
    stddev: np.ndarray

    @cached_property
    def deviations(self) -> list[float]:
        """``stddev`` as numbers."""
        return list(map(float, self.stddev))


class Engine:
    """Filter of some settings on a model with some of its sensors; raises SettingError."""

    def __init__(self, model: Model, sensors: Sequence[str], settings: LinkageSettings, step: float,
                 backend: str = 'auto') -> None:
        self.model, self.sensors, self.dt = model, tuple(sensors), step
        self.problem = problem(model, self.sensors)
        try:
            self.filter: Filter = make_filter(settings.estimator, self.problem, **option_values(settings.options))
        except MbseError:
            raise
        except (TypeError, ValueError, KeyError) as error:
            raise SettingError('options', settings.options, f'options of {settings.estimator}: {error}') from error
        self.names, self.channels = mean_names(self.filter), self.problem.channels
        self._output_places = tuple(self.filter.outputs.places.items())
        self.size = len(self.names)
        self.force_places = tuple(self.names.index(f'force/{name}') if f'force/{name}' in self.names else None
                                  for name in self.filter.forces)
        triangle = self.filter.state.places['P']
        self._covariance = np.rint(Layout({'P': (self.size, SYMMETRIC)}).arrays(
            np.arange(triangle.start, triangle.stop))['P']).astype(int)
        whole = len(self.filter.held) > self.problem.g
        self.tangents = tangents(self.problem) if whole else None
        space = self.filter.parameters
        self._estimated = None if space is None else Kernel(space.function, backend)
        self._scan = Scan(_with_state(self.filter), backend)
        self._warm_up(self.tuned(settings))

    def tuned(self, settings: LinkageSettings, raised: float = 1.0) -> FilterTuning:
        """The tuning of settings for this filter, the noises of its motion ``raised``; raises SettingError."""
        from scipy.special import gammaincinv  # here: slow to import
        of, parts = self.filter, self.filter.tuning.parts
        known = default_noises(settings.estimator, self.model.description.name)
        noises: dict[str, float | Sequence[float] | np.ndarray] = {name: known.get(name, 0.0) for name in of.noises}
        for name, value in numbers('noises', settings.noises, of.noises).items():
            if len(value) not in (1, parts[name][0]):
                raise SettingError(f'noises: {name}', value.tolist(), f'1 or {parts[name][0]} values')
            noises[name] = value
        density = {name: np.broadcast_to(np.asarray(value, dtype=float), parts[name][:1])
                   * (raised if name in MOTION else 1.0) for name, value in noises.items()}
        threshold = 1e300 if settings.gate >= 1 else 2 * float(gammaincinv(0.5, settings.gate))     # of chi2 with 1
        stddev = self._stddev(settings)
        flat = of.tuning.flat(dt=np.array([self.dt]), gate=np.array([threshold]), variance=stddev ** 2,
                              p=np.asarray(self.model.parameters), **density)
        return FilterTuning(flat, threshold, stddev)

    def _stddev(self, settings: LinkageSettings) -> np.ndarray:
        """Standard deviations (s,) of the sensors' samples; raises SettingError."""
        given = numbers('stddev', settings.stddev, self.sensors)
        stddev = np.array([given.get(channel.partition('.')[0], np.array([known]))[0]
                           for channel, known in zip(self.channels, self.problem.stddev)])
        for channel, value in zip(self.channels, stddev):
            if not value > 0:
                raise SettingError('stddev', float(value),
                                   f'a number above 0 for {channel}, which the file does not give')
        return stddev

    def run(self, state: np.ndarray, rows: np.ndarray, tuned: FilterTuning) -> tuple[np.ndarray, np.ndarray]:
        """States (k, x) and outputs (k, y) after each row ``[o, u, t]`` (k, s + u + 1)."""
        _, ys = self._scan(state, rows, tuned.tuning)
        return ys[:, self.filter.outputs.size:], ys[:, :self.filter.outputs.size]

    def outputs(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        """Views of the parts of one instant's outputs, all of them columns."""
        return {name: flat[place] for name, place in self._output_places}

    def covariance(self, state: np.ndarray) -> np.ndarray:
        """Covariance (l, l) of a flat state."""
        return state[self._covariance]

    def parameters(self, mean: np.ndarray, variance: np.ndarray, tuned: FilterTuning) -> dict[str, tuple[float, float]]:
        """Estimated parameters, value and standard deviation in SI, of a mean (l,) and its variances; none for most."""
        space, estimated = self.filter.parameters, self._estimated
        if space is None or estimated is None:
            return {}
        r = len(space.names)
        values, slopes = estimated(mean[-r:], tuned.tuning[self.filter.tuning.places['p']])
        stddev = np.abs(slopes) * np.sqrt(np.fmax(variance[-r:], 0.0))
        return dict(zip(space.names, zip(values[list(space.places)].tolist(), stddev.tolist())))

    def _warm_up(self, tuned: FilterTuning) -> None:
        """A first run, which costs more than the others."""
        s, k, start = len(self.channels), len(self.model.inputs), self.model.start
        row = np.concatenate([np.full(s, np.nan), np.zeros(k + 1)])
        state = self.filter.start(start.q, start.qd, 0.1)
        with suppress(DivergenceError):
            self.run(state, row[None], tuned)
        self.parameters(state[self.filter.state.places['x']], np.ones(self.size), tuned)


def _with_state(filter_: Filter) -> ca.Function:
    """Step whose outputs are followed by the whole state."""
    step = filter_.step()
    kind = ca.SX if step.is_a('SXFunction') else ca.MX
    x, u, p = (kind.sym(name, step.size_in(i)) for i, name in enumerate('xup'))
    after, y = step(x, u, p)
    return ca.Function(f'mbse_{filter_.name}_online', [x, u, p], [after, ca.vertcat(y, after)], {'cse': True})
