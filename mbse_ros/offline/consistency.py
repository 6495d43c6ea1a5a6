# SPDX-License-Identifier: Apache-2.0
"""Whether a filter is as sure of itself as it may be: NEES and NIS with their chi-squared bounds, whiteness of the
innovations, coverage of the 95 % intervals (Bar-Shalom, Li and Kirubarajan, Estimation with Applications to Tracking
and Navigation, 2001, section 5.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiled.of_scipy import exceeded
from ..errors import SettingError
from ..filters.whiteness import ljung_box
from ..report.data import COLORS, Band, Curve, Panel, Table
from ..report.result import Answer, Result, figure_of
from ..report.series import Z95, resample, share_inside
from ..report.text import number
from ..streams.start import turning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MotionLike = Any        # a MotionEstimate, whose module imports this one

TAIL = 0.025        # probability beyond each bound


def bounds(freedom: float) -> tuple[float, float]:
    """Between which a chi-squared number of so many degrees of freedom lies with 95 %."""
    return exceeded(freedom, 1.0 - TAIL), exceeded(freedom, TAIL)


@dataclass(frozen=True)
class Consistency(Answer):
    """Of one estimate, from ``skip`` s after its first instant on.

    ``nees`` (k,) of the entries ``of`` (d,), whose truth is known; ``nis`` (k,) of all samples there, also those that
    the gate refused, and ``count`` (k,) of them; NaN where unknown. ``nis_mean``: per sample, with its bounds
    ``nis_bounds``, as innovations of a consistent filter are independent. NEES of one run are not: ``nees_inside`` and
    ``nis_inside`` are the shares of instants within their bounds, 0.95 of a consistent filter. ``whiteness`` by
    channel: p-value of Ljung-Box, small where innovations can be predicted. ``coverage`` by entry: share of instants at
    which the truth is within the 95 % interval; ``rmse``: of the same entries, SI.
    """

    t: np.ndarray
    estimator: str
    of: tuple[str, ...]
    nees: np.ndarray
    nis: np.ndarray
    count: np.ndarray
    whiteness: Mapping[str, float]
    coverage: Mapping[str, float]
    rmse: Mapping[str, float]

    @property
    def nees_bounds(self) -> tuple[float, float]:
        """Of one instant, 95 %."""
        return bounds(len(self.of)) if self.of else (np.nan, np.nan)

    @property
    def nees_mean(self) -> float:
        """Over time; ``len(of)`` is expected."""
        return _mean(self.nees)

    @property
    def nees_inside(self) -> float:
        """Share of the instants whose NEES is within its bounds."""
        return share_inside(self.nees, *(np.full(len(self.nees), bound) for bound in self.nees_bounds))

    @property
    def nis_mean(self) -> float:
        """Per sample; 1 is expected."""
        total = int(self.count.sum())
        return float(np.nansum(self.nis)) / total if total else np.nan

    @property
    def nis_bounds(self) -> tuple[float, float]:
        """Of ``nis_mean``, 95 %."""
        total = int(self.count.sum())
        low, high = bounds(total) if total else (np.nan, np.nan)
        return low / max(total, 1), high / max(total, 1)

    @property
    def nis_inside(self) -> float:
        """Share of the instants whose NIS is within the bounds of its samples."""
        limits = {n: bounds(n) for n in np.unique(self.count).tolist() if n}
        low, high = (np.array([limits.get(n, (np.nan, np.nan))[k] for n in self.count.tolist()]) for k in (0, 1))
        return share_inside(self.nis, low, high)

    def tables(self) -> list[Table]:
        """The numbers in one table."""
        low, high = self.nees_bounds
        rows = [[f'NEES of {len(self.of)}', number(self.nees_mean), str(len(self.of)),
                 f'{number(low)} to {number(high)}', number(self.nees_inside)]] if self.of else []
        low, high = self.nis_bounds
        rows.append(['NIS per sample', number(self.nis_mean), '1', f'{number(low)} to {number(high)}',
                     number(self.nis_inside)])
        rows += [[f'coverage of {name}', number(value), '0.95', '', ''] for name, value in self.coverage.items()]
        rows += [[f'whiteness of {name}, p', number(value), 'above 0.05', '', ''] for name, value
                 in self.whiteness.items()]
        rows += [[f'RMSE of {name}', number(value), '', '', ''] for name, value in self.rmse.items()]
        return [Table(f'{self.estimator}: consistency', ('what', 'value', 'expected', '95 %', 'inside'), rows)]

    def _values(self, full: bool) -> dict[str, Any]:
        found: dict[str, Any] = {
            'estimator': self.estimator, 'of': self.of, 'nees_mean': self.nees_mean, 'nees_bounds': self.nees_bounds,
            'nees_inside': self.nees_inside, 'nis_mean': self.nis_mean, 'nis_bounds': self.nis_bounds,
            'nis_inside': self.nis_inside, 'whiteness': dict(self.whiteness), 'coverage': dict(self.coverage),
            'rmse': dict(self.rmse)}
        return found | ({'t': self.t, 'nees': self.nees, 'nis': self.nis} if full else {})

    def plot(self) -> Figure:
        """NEES and NIS over time with their bounds, on logarithmic axes."""
        panels = [(f'NEES of {len(self.of)} entries', self.nees, len(self.of))] if self.of else []
        most = int(self.count.max(initial=0))
        panels += [('NIS', self.nis, most)] if most else []
        shown = []
        for title, values, freedom in panels:
            low, high = (np.full(len(self.t), bound) for bound in bounds(freedom))
            curve = Curve(self.estimator, self.t, np.where(values > 0, values, np.nan))
            shown.append(Panel(title, '', [curve], (Band('95 %', self.t, low, high, COLORS['bound']),), y_scale='log'))
        return figure_of(shown)


def consistency_of(estimate: MotionLike, truth: Result | None, skip: float) -> Consistency:
    """See ``MotionEstimate.consistency``."""
    if not 0.0 <= skip < (float(np.ptp(estimate.t)) or np.inf):
        raise SettingError('skip', skip, f'seconds from 0 on, less than the {np.ptp(estimate.t):g} s of the estimate')
    kept = estimate.t - estimate.t[0] >= skip
    t, entries, errors = estimate.t[kept], *_errors(estimate, truth)
    errors = errors[kept]
    places = [estimate.names.index(name) for name in entries]
    stddev = estimate.stddev[kept][:, places]
    nees = np.full(len(t), np.nan)
    if places and estimate.covariances.size:
        P = estimate.covariances[kept][:, places][:, :, places]
        sound = np.isfinite(P).all(axis=(1, 2)) & np.isfinite(errors).all(axis=1)
        sound &= np.linalg.cond(np.where(sound[:, None, None], P, np.eye(len(places)))) < 1e14
        nees[sound] = np.einsum('ki,ki->k', errors[sound], np.linalg.solve(P[sound], errors[sound][..., None])[..., 0])
    with np.errstate(all='ignore'):
        ratio = (estimate.innovation / estimate.innovation_stddev)[kept]
    there = np.isfinite(ratio)
    nis = np.where(there.any(axis=1), np.nansum(np.where(there, ratio ** 2, 0.0), axis=1), np.nan)
    return Consistency(
        t, estimate.estimator, tuple(entries), nees, nis, there.sum(axis=1),
        {name: ljung_box(column[np.isfinite(column)]) for name, column in zip(estimate.channels, ratio.T)
         if np.isfinite(column).any()},
        {name: share_inside(error, -Z95 * spread, Z95 * spread)
         for name, error, spread in zip(entries, errors.T, stddev.T)},
        {name: float(np.sqrt(_mean(error ** 2))) for name, error in zip(entries, errors.T)})


def _errors(estimate: MotionLike, truth: Result | None) -> tuple[Sequence[str], np.ndarray]:
    """Entries of positions and velocities of which the truth has columns, and their errors (k, d)."""
    if truth is None:
        return (), np.zeros((len(estimate.t), 0))
    known = {item.name: item.values for item in truth.series()}
    columns = {f'{kind}/{name}': f'{name}{suffix}' for name in estimate.model.independent
               for kind, suffix in (('position', ''), ('velocity', '_dot'))}
    entries = [entry for entry in estimate.names if columns.get(entry) in known]
    if not entries:
        raise SettingError('truth', list(known)[:6], f'columns of {", ".join(columns.values())}')
    angles = {f'position/{name}' for name, angle in zip(estimate.model.independent, turning(estimate.model)) if angle}
    errors = []
    for entry in entries:
        error = estimate.mean[:, estimate.names.index(entry)] - resample(estimate.t, truth.t, known[columns[entry]])
        errors.append((error + np.pi) % (2 * np.pi) - np.pi if entry in angles else error)
    return entries, np.array(errors).T


def _mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else np.nan
