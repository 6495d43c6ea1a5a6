# SPDX-License-Identifier: Apache-2.0
"""Result of a filter or a smoother of a mechanism: its motion as series, with bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ..description.coordinate_units import input_unit, measured_unit, unit_of
from ..dynamics.model import Model
from ..report.result import Result, ResultSeries, rate_unit, with_entries

if TYPE_CHECKING:
    from .consistency import Consistency

WORDS = {'position': '', 'velocity': '_dot', 'acceleration': '_ddot'}     # as in the tables of the command line
MOTION = ('position', 'velocity', 'acceleration', 'acceleration_error', 'force')


def motion_series(model: Model, arrays: dict[str, np.ndarray], names: Sequence[str] = ()) -> list[ResultSeries]:
    """Series of ``arrays`` (k, n) of all coordinates by kind ('position', ...), of these ``names`` or all: the
    independent ones first, then those that the file names; all kinds of one coordinate after each other."""
    of_file = [name for name in model.description.coordinates if name in model.names]
    return [ResultSeries(f'{name}{WORDS[kind]}', rate_unit(model.description, name, kind), values[:, place])
            for name in (names or dict.fromkeys([*model.independent, *of_file, *model.names]))
            for place in [model.names.index(name)]
            for kind, values in arrays.items()]


def channel_units(model: Model, channels: Sequence[str]) -> dict[str, str]:
    """Units of sensors' channels and of ``input/<name>``, SI."""
    found = {f'input/{name}': input_unit(model.description, name) for name in model.inputs}
    return {channel: found[channel] if channel in found else measured_unit(model.description, channel.partition('.')[0])
            for channel in channels}


@dataclass(frozen=True, repr=False)
class MotionEstimate(Result):
    """Motion of a mechanism as estimated at times ``t`` (k,), s; SI.

    ``mean``, ``stddev`` (k, l) of the entries ``names`` (l,) of the filter's state, such as ``position/theta``;
    ``q``, ``qd``, ``qdd`` (k, n) of all coordinates of ``model``; ``force`` (k, f) along ``force_names``, what the
    model lacks; ``innovation``, ``innovation_stddev`` (k, s) of the ``channels``, of a log those with samples, NaN
    where missing; ``used`` (k, s).
    ``true_q`` (k, n): coordinates where a bag has true ones, else NaN; ``status`` (k): of a log by the stage, else
    none; ``warnings``: what was odd; ``covariances`` (k, l, l) of the entries, empty where they
    are not known; of ``estimate`` and ``smooth`` more was kept, see ``FilteredMotion`` and ``SmoothedMotion``.
    """

    model: Model
    estimator: str
    t: np.ndarray
    names: tuple[str, ...]
    mean: np.ndarray
    stddev: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    force_names: tuple[str, ...]
    force: np.ndarray
    channels: tuple[str, ...]
    innovation: np.ndarray
    innovation_stddev: np.ndarray
    used: np.ndarray
    true_q: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    status: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    covariances: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))

    def consistency(self, truth: Result | None = None, skip: float = 0.0) -> Consistency:
        """NEES against a ``truth`` (what ``simulate`` gives, or an estimate to compare with; default that of the bag),
        NIS, whiteness and coverage, from ``skip`` s after the first instant on. Raises SettingError."""
        from .consistency import consistency_of  # here, as it is not needed otherwise
        return consistency_of(self, self.truth if truth is None else truth, skip)

    @property
    def log(self) -> MotionEstimate:
        """Itself: what ``estimate`` and ``smooth`` have kept of a log are its own attributes."""
        return self

    @property
    def nis(self) -> np.ndarray:
        """Normalised innovation squared of each instant (k,); its mean is the number of measurements used."""
        return np.nansum(np.where(self.used, (self.innovation / self.innovation_stddev) ** 2, 0.0), axis=1)

    @property
    def truth(self) -> MotionTruth | None:
        """The true coordinates at the same times, where a bag has them, for ``plot(truth=...)``."""
        return MotionTruth(self.t, self.model, self.true_q) if np.isfinite(self.true_q).any() else None

    def series(self) -> list[ResultSeries]:
        """Independent coordinates and their rates with their deviations, forces, other entries, all else."""
        found = self.main_series()
        rest = motion_series(self.model, {'position': self.q, 'velocity': self.qd, 'acceleration': self.qdd})
        named = {item.name for item in found}
        return found + self._with_stddev([item for item in rest if item.name not in named])

    def _found(self) -> dict[str, ResultSeries]:
        return with_entries(super()._found(), self.names, self.mean, self.stddev, self._unit)

    def main_series(self) -> list[ResultSeries]:
        """Independent coordinates and their rates with their deviations, forces, other entries of the state."""
        own = list(self.model.independent)
        motion = {'position': self.q, 'velocity': self.qd}
        found = self._with_stddev(motion_series(self.model, motion, own))
        found += [ResultSeries(f'force/{name}', self._force_unit(name), column, self._stddev(f'force/{name}'))
                  for name, column in zip(self.force_names, self.force.T) if np.any(column)]
        return found + [ResultSeries(name, self._unit(name), column, self.stddev[:, k]) for k, (name, column) in
                        enumerate(zip(self.names, self.mean.T)) if name.partition('/')[0] not in MOTION]

    def _saved(self) -> dict[str, np.ndarray]:
        return {'innovation': self.innovation, 'innovation_stddev': self.innovation_stddev, 'used': self.used}

    def _with_stddev(self, series: list[ResultSeries]) -> list[ResultSeries]:
        """The deviations of what is in the state."""
        entries = {**{name: f'position/{name}' for name in self.model.names},
                   **{f'{name}_dot': f'velocity/{name}' for name in self.model.names}}
        return [replace(item, stddev=self._stddev(entries.get(item.name, ''))) for item in series]

    def _stddev(self, entry: str) -> np.ndarray | None:
        return self.stddev[:, self.names.index(entry)] if entry in self.names else None

    def _force_unit(self, name: str) -> str:
        if name in self.model.inputs:
            return input_unit(self.model.description, name)
        return 'N m' if unit_of(self.model.description, name) == 'rad' else 'N'

    def _unit(self, entry: str) -> str:
        """Of motion and forces that of the coordinate, of a bias that of its channel, else not known here."""
        kind, _, owner = entry.partition('/')
        if owner in self.model.names and kind in MOTION:
            return self._force_unit(owner) if kind == 'force' else rate_unit(self.model.description, owner,
                                                                             kind.removesuffix('_error'))
        return channel_units(self.model, [owner])[owner] if kind == 'bias' else ''


@dataclass(frozen=True, repr=False)
class MotionTruth(Result):
    """True coordinates ``q`` (k, n) of a simulated mechanism, NaN where a bag has none."""

    t: np.ndarray
    model: Model
    q: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        """Names (n,) of the coordinates."""
        return self.model.names

    def series(self) -> list[ResultSeries]:
        """The coordinates, under the names of the estimates."""
        return motion_series(self.model, {'position': self.q})
