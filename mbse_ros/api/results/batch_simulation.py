# SPDX-License-Identifier: Apache-2.0
"""Many runs of a mechanism: arrays, tables, a plot and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from ...description.coordinate_units import columns_of, unit_of
from ...dynamics.model import Model
from ...errors import check_choice
from ...report.data import PALETTE, Band, Curve, Panel
from ...report.files import write_json, write_table
from ...report.result import Answer
from ...resources import write_whole
from .simulations import of_mechanism

if TYPE_CHECKING:
    from ...dynamics.batch import Batch

DOT = '_dot'
LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)
_PANELS = 6                 # coordinates in the plot


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


@dataclass(frozen=True)
class BatchSimulation(Answer):
    """Runs of a mechanism, SI; ``batch`` has all of it.

    ``t`` (k,); ``q``, ``qd`` (runs, k, n) of the coordinates ``names`` (n,), NaN from where a run ended early;
    ``reasons`` (runs,): what ended it, '' where it is complete; ``completed`` (runs,) bool; ``parameters``: (runs,) by
    name, ``starts`` the same of those that were drawn; ``varied``: what was drawn; ``asked``: by what they were made,
    ``cost``: what they took. ``result['theta']``, ``result['theta_dot']``: (runs, k).
    """

    model: Model
    batch: Batch
    starts: Mapping[str, np.ndarray] = field(default_factory=dict)
    varied: Sequence[Variation] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)
    cost: Mapping[str, Any] = field(default_factory=dict)

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
        known = self._columns
        check_choice('column', name, known)
        at = known.index(name)
        return self.q[:, :, at] if at < len(self.names) else self.qd[:, :, at - len(self.names)]

    @property
    def warnings(self) -> list[str]:
        """Numbers of the wrong sign, which move on as if they could be, and a line for each kind of failure."""
        found = []
        for (name, values), mean in zip(self.parameters.items(), self.model.system.values.mean):
            if mean and (count := int((values * mean <= 0).sum())):
                found.append(f'{name}: {count} of {len(values)} drawn numbers have not the sign of {mean:g}')
        return found + [f'{item["runs"]} of {len(self.q)} runs failed by {item["error"]}, from {item["earliest_s"]:g} '
                        f's on; run {item["first_run"]}: {item["reason"]}' for item in self.failures]

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Kinds of errors, the most frequent first: how many runs, when they ended, the first one with its reason."""
        kinds = [reason.partition(':')[0] for reason in self.reasons]
        found = []
        for kind, count in Counter(kind for kind in kinds if kind).most_common():
            at = [i for i, other in enumerate(kinds) if other == kind]
            ended = self.reached[at]
            found.append({'error': kind, 'runs': count, 'earliest_s': ended.min(), 'latest_s': ended.max(),
                          'first_run': at[0], 'reason': self.reasons[at[0]]})
        return found

    def summary(self) -> list[str]:
        """How many runs are complete."""
        return [f'{int(self.completed.sum())} of {len(self.q)} runs complete over {self.t[-1] - self.t[0]:g} s, '
                f'{len(self.t)} instants']

    def _values(self, full: bool) -> dict[str, Any]:
        """What was drawn, where the completed runs end, why the others did not, SI."""
        values, by_option = self.model.system.values, [item.name for item in self.varied]
        of_file = [Variation(name, False, float(mean), float(stddev), None) for name, mean, stddev
                   in zip(values.names, values.mean, values.stddev) if stddev > 0 and name not in by_option]
        return {
            **of_mechanism(self.model, self.asked), 'runs': len(self.q), 'instants': len(self.t),
            'completed': int(self.completed.sum()),
            'drawn': [{'name': item.name, 'of': 'start' if item.start else 'file', 'mean': item.value,
                       'stddev': item.stddev, 'unit': item.unit, 'by': 'vary' if item.name in by_option else 'file'}
                      for item in [*of_file, *self.varied]],
            'end': {name: self._ending(name) for name in self._columns} if self.completed.any() else {},
            'failed': self.failures, **self.cost, **({'t': self.t, 'q': self.q, 'qd': self.qd} if full else {})}

    def _ending(self, name: str) -> dict[str, Any]:
        """Mean, deviation and quantiles of a column at the end of the completed runs."""
        values = self[name][self.completed, -1]
        return {'mean': values.mean(), 'stddev': values.std(ddof=1) if len(values) > 1 else None,
                'least': values.min(), 'largest': values.max(),
                'quantiles': dict(zip(map(str, LEVELS), np.quantile(values, LEVELS)))}

    def report(self, folder: str | Path, states: bool = False, pictures: bool | None = None) -> Path:
        """Write ``ends.csv``, ``quantiles.csv``, ``runs.npz``, ``summary.json`` and, but for ``pictures=False``, a plot
        of the quantiles into a folder; gives it. Raises OSError."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        self._write_ends(place / 'ends.csv')
        self._write_quantiles(place / 'quantiles.csv')
        self._write_arrays(place / 'runs.npz', states)
        write_json(place / 'summary.json', self.to_json())
        if pictures is not False and self.completed.any():
            self._write_picture(place / 'quantiles.png')
        return place

    def _write_ends(self, path: Path) -> None:
        """A row for each run: what was drawn, the time it reached, its state at the end, nan if it failed, and why."""
        columns = ['run', *(f'{name} (drawn)' for name in self.parameters),
                   *(f'{name} (start)' for name in self.starts), 'reached [s]', *self._headings, 'failure']
        write_table(path, columns, [np.arange(len(self.q)), *self.parameters.values(), *self.starts.values(),
                                    self.reached, *self.q[:, -1].T, *self.qd[:, -1].T,
                                    np.array(self.reasons, dtype=object)])

    def _write_quantiles(self, path: Path) -> None:
        """A row for each instant: runs that got so far, and of each column the mean and the quantiles of these."""
        there = np.isfinite(self.q).all(axis=2).sum(axis=0)
        columns, values = ['t [s]', 'runs'], [self.t, there]
        for name, heading in zip(self._columns, self._headings):
            columns += [f'{heading} mean', *(f'{heading} {100 * level:g} %' for level in LEVELS)]
            values += [_mean(self[name]), *self.quantiles(name, LEVELS)]
        write_table(path, columns, values)

    def _write_arrays(self, path: Path, states: bool) -> None:
        """The same as arrays.

        ``t`` (k,), ``names`` (n,), ``q_end``, ``qd_end`` (runs, n), ``levels`` (l,), ``q_quantiles``, ``qd_quantiles``
        (l, k, n), ``q_mean``, ``qd_mean`` (k, n), ``parameters`` (runs, p), ``starts`` (runs, s) with their names,
        ``reached`` (runs,), ``reasons`` (runs,); with ``states`` all of ``q``, ``qd`` (runs, k, n).
        """
        arrays: dict[str, np.ndarray] = {}
        for kind, suffix, series in (('q', '', self.q), ('qd', DOT, self.qd)):
            names = [name + suffix for name in self.names]
            arrays |= {f'{kind}_end': series[:, -1], **({kind: series} if states else {}),
                       f'{kind}_mean': np.stack([_mean(self[name]) for name in names], axis=-1),
                       f'{kind}_quantiles': np.stack([self.quantiles(name, LEVELS) for name in names], axis=-1)}
        arrays |= dict(t=self.t, names=np.array(self.names), levels=np.array(LEVELS),
                       parameters=self.batch.parameters, parameter_names=np.array(list(self.parameters), dtype=str),
                       starts=np.array([*self.starts.values()]).T.reshape(len(self.q), -1),
                       start_names=np.array(list(self.starts), dtype=str), reached=self.reached,
                       reasons=np.array(self.reasons))
        write_whole(path, lambda part: np.savez(part, allow_pickle=False, **arrays))

    def _write_picture(self, path: Path) -> None:
        """Median, middle half and 95 % of the independent coordinates."""
        from ...report.plots import write_plots  # here: slow to import
        panels = []
        for name in self.model.independent[:_PANELS]:
            low, lower, middle, upper, high = self.quantiles(name, LEVELS)
            panels.append(Panel(name, unit_of(self.model.description, name) or '1',
                                [Curve('median', self.t, middle, PALETTE[0])],
                                (Band('95 % of the runs', self.t, low, high, PALETTE[0]),
                                 Band('half of the runs', self.t, lower, upper, PALETTE[0]))))
        write_plots(panels, path)

    @property
    def _columns(self) -> list[str]:
        return [*self.names, *(name + DOT for name in self.names)]

    @property
    def _headings(self) -> list[str]:
        return columns_of(self.model.description, self.names, '', DOT)


def _mean(values: np.ndarray) -> np.ndarray:
    """Mean (k,) of columns (runs, k) over the runs that are there; NaN where none is."""
    there = np.isfinite(values)
    with np.errstate(invalid='ignore'):
        return np.where(there, values, 0.0).sum(axis=0) / there.sum(axis=0)
