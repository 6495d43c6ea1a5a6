# SPDX-License-Identifier: Apache-2.0
"""Pictures of the benchmark of the estimators, as figures 5 and 6 of paper 001."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..report.plots import PALETTE, Bars, Line, Plot, write_bars, write_plots
from ..simulation.estimator_benchmark import LOST, SENSOR_SETS, Result

QUANTITIES = {'rmse_pos': ('position', 'rad'), 'rmse_pos_after_2s': ('position after 2 s', 'rad'),
              'rmse_vel': ('velocity', 'rad/s'), 'rmse_acc': ('acceleration', 'rad/s2')}
STYLES = ('-', '--', ':')     # of curves whose colour has been used before
SMALLEST = 1e-6     # rad, where the logarithmic axis of the traces ends


def write_estimator_plots(results: Sequence[Result], folder: Path) -> None:
    """Of each mechanism the bars of the errors, and the error over time with each set of sensors."""
    folder.mkdir(parents=True, exist_ok=True)
    for mechanism in dict.fromkeys(result.case.mechanism for result in results):
        chosen = [result for result in results if result.case.mechanism == mechanism]
        write_bars([_bars(chosen, mechanism, key) for key in QUANTITIES], folder / f'fig5_errors_{mechanism}.png')
        sensors = dict.fromkeys(result.case.sensor for result in chosen)
        write_plots([_traces(chosen, mechanism, sensor) for sensor in sensors], folder / f'fig6_traces_{mechanism}.png')


def _bars(results: Sequence[Result], mechanism: str, key: str) -> Bars:
    """Bars of all filters, one colour a set of sensors; no bar for what was lost."""
    what, unit = QUANTITIES[key]
    estimators = list(dict.fromkeys(result.case.estimator for result in results))
    rows = {(result.case.estimator, result.case.sensor): result.row for result in results}
    sensors = [sensor for sensor in SENSOR_SETS if any(at[1] == sensor for at in rows)]
    series = {sensor: [_height(rows.get((name, sensor)), key) for name in estimators] for sensor in sensors}
    return Bars(f'{mechanism}: RMSE of the {what}', unit, estimators, series, log=True)


def _height(row: dict | None, key: str) -> float | None:
    return None if row is None or row['diverged'] == row['seeds'] else row[key]


def _traces(results: Sequence[Result], mechanism: str, sensor: str) -> Plot:
    """Distance of the estimated from the true position, seed 0; what is lost leaves the picture."""
    chosen = [result for result in results if result.case.sensor == sensor]
    lines = [Line(result.case.estimator, result.t, np.clip(np.abs(result.error), SMALLEST, 10 * LOST)
                  if result.error.size else np.full(len(result.t), np.nan), STYLES[k // len(PALETTE) % len(STYLES)])
             for k, result in enumerate(chosen)]
    return Plot(f'{mechanism}, {sensor}: error of the position', 'time [s]', 'rad', lines, y_scale='log',
                limits=(1e-5, LOST))
