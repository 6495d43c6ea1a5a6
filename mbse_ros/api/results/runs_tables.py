# SPDX-License-Identifier: Apache-2.0
"""Many runs of a mechanism as tables, arrays, a plot and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...description.coordinate_units import columns_of, unit_of
from ...report.chart import PALETTE, Band, Curve, Panel
from ...report.files import write_table
from ..simulate_batch import DOT, BatchSimulation
from ..variations import Variation
from .motion_files import SimulationRequest

LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)
_PANELS = 6                 # coordinates in the plot


def runs_json(request: SimulationRequest, result: BatchSimulation, varied: Sequence[Variation]) -> dict[str, Any]:
    """The result in figures, SI: what was drawn, where the completed runs end, why the others did not."""
    model, done = result.model, result.completed
    values, by_option = model.system.values, [item.name for item in varied]
    of_file = [Variation(name, False, float(mean), float(stddev), None) for name, mean, stddev
               in zip(values.names, values.mean, values.stddev) if stddev > 0 and name not in by_option]
    return request.of(model) | {
        'runs': len(result.q), 'instants': len(result.t), 'completed': int(done.sum()),
        'drawn': [{'name': item.name, 'of': 'start' if item.start else 'file', 'mean': item.value,
                   'stddev': item.stddev, 'unit': item.unit, 'by': '--vary' if item.name in by_option else 'file'}
                  for item in [*of_file, *varied]],
        'end': {name: _end(result, name) for name in _columns(result)} if done.any() else {},
        'failed': failures_of(result)}


def _end(result: BatchSimulation, name: str) -> dict[str, Any]:
    """Mean, deviation and quantiles of a column at the end of the completed runs."""
    values = result[name][result.completed, -1]
    return {'mean': values.mean(), 'stddev': values.std(ddof=1) if len(values) > 1 else None,
            'least': values.min(), 'largest': values.max(),
            'quantiles': dict(zip(map(str, LEVELS), np.quantile(values, LEVELS)))}


def failures_of(result: BatchSimulation) -> list[dict[str, Any]]:
    """Kinds of errors, the most frequent first: how many runs, when they ended, the first one with its reason."""
    kinds = [reason.partition(':')[0] for reason in result.reasons]
    found = []
    for kind, count in Counter(kind for kind in kinds if kind).most_common():
        at = [i for i, other in enumerate(kinds) if other == kind]
        ended = result.reached[at]
        found.append({'error': kind, 'runs': count, 'earliest_s': ended.min(), 'latest_s': ended.max(),
                      'first_run': at[0], 'reason': result.reasons[at[0]]})
    return found


def write_ends(result: BatchSimulation, starts: dict[str, np.ndarray], path: Path) -> None:
    """A row for each run: what was drawn, the time it reached, the state at the end (nan if it failed), its failure."""
    columns = ['run', *(f'{name} (drawn)' for name in result.parameters), *(f'{name} (start)' for name in starts),
               'reached [s]', *_headings(result), 'failure']
    write_table(path, columns, [np.arange(len(result.q)), *result.parameters.values(), *starts.values(),
                                result.reached, *result.q[:, -1].T, *result.qd[:, -1].T,
                                np.array(result.reasons, dtype=object)])


def write_quantiles(result: BatchSimulation, path: Path) -> None:
    """A row for each instant: runs that got so far, and of each column the mean and the quantiles of these."""
    there = np.isfinite(result.q).all(axis=2).sum(axis=0)
    columns, values = ['t [s]', 'runs'], [result.t, there]
    for name, heading in zip(_columns(result), _headings(result)):
        columns += [f'{heading} mean', *(f'{heading} {100 * level:g} %' for level in LEVELS)]
        values += [_mean(result[name]), *result.quantiles(name, LEVELS)]
    write_table(path, columns, values)


def write_arrays(result: BatchSimulation, starts: dict[str, np.ndarray], states: bool, path: Path) -> None:
    """The same as arrays.

    ``t`` (k,), ``names`` (n,), ``q_end``, ``qd_end`` (runs, n), ``levels`` (l,), ``q_quantiles``, ``qd_quantiles`` (l,
    k, n), ``q_mean``, ``qd_mean`` (k, n), ``parameters`` (runs, p), ``starts`` (runs, s) with their names, ``reached``
    (runs,), ``reasons`` (runs,); with ``states`` all of ``q``, ``qd`` (runs, k, n).
    """
    arrays: dict[str, np.ndarray] = {}
    for kind, suffix, series in (('q', '', result.q), ('qd', DOT, result.qd)):
        names = [name + suffix for name in result.names]
        arrays |= {f'{kind}_end': series[:, -1], **({kind: series} if states else {}),
                   f'{kind}_mean': np.stack([_mean(result[name]) for name in names], axis=-1),
                   f'{kind}_quantiles': np.stack([result.quantiles(name, LEVELS) for name in names], axis=-1)}
    arrays |= dict(t=result.t, names=np.array(result.names), levels=np.array(LEVELS),
                   parameters=result.batch.parameters, parameter_names=np.array(list(result.parameters), dtype=str),
                   starts=np.array([*starts.values()]).T.reshape(len(result.q), -1),
                   start_names=np.array(list(starts), dtype=str), reached=result.reached,
                   reasons=np.array(result.reasons))
    np.savez(path, allow_pickle=False, **arrays)


def write_picture(result: BatchSimulation, path: Path) -> None:
    """Median, middle half and 95 % of the independent coordinates."""
    from ...report.plots import write_plots  # here: slow to import
    panels = []
    for name in result.model.independent[:_PANELS]:
        low, lower, middle, upper, high = result.quantiles(name, LEVELS)
        panels.append(Panel(name, unit_of(result.model.description, name) or '1',
                            [Curve('median', result.t, middle, PALETTE[0])],
                            (Band('95 % of the runs', result.t, low, high, PALETTE[0]),
                             Band('half of the runs', result.t, lower, upper, PALETTE[0]))))
    write_plots(panels, path)


def _columns(result: BatchSimulation) -> list[str]:
    return [*result.names, *(name + DOT for name in result.names)]


def _headings(result: BatchSimulation) -> list[str]:
    return columns_of(result.model.description, result.names, '', DOT)


def _mean(values: np.ndarray) -> np.ndarray:
    """Mean (k,) of columns (runs, k) over the runs that are there; NaN where none is."""
    there = np.isfinite(values)
    with np.errstate(invalid='ignore'):
        return np.where(there, values, 0.0).sum(axis=0) / there.sum(axis=0)
