# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark estimators``: every filter with every sensor of the benchmark of Naya et al., review (figures 5 and
6)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from ..errors import SettingError
from ..report.data import PALETTE, Curve, Panel
from ..report.files import check_file, check_folder, write_json
from ..report.plots import Bars, write_bars, write_plots
from ..report.text import number, print_table, wide_console
from ..simulation.estimator_benchmark import (
    LOST,
    SENSOR_SETS,
    SENSORS,
    SETTLED,
    STEP,
    BenchmarkResult,
    benchmark_cases,
    run_case,
)
from .many import machine_name, many

COLUMNS = {'rmse_pos': 'position', 'rmse_pos_after_2s': 'after 2 s', 'rmse_vel': 'velocity',
           'rmse_acc': 'acceleration', 'force_rmse': 'force', 'nees': 'NEES', 'nis': 'NIS', 'whiteness': 'white p',
           'step_us': 'us/step', 'diverged': 'diverged'}
QUANTITIES = {'rmse_pos': ('position', 'rad'), 'rmse_pos_after_2s': ('position after 2 s', 'rad'),
              'rmse_vel': ('velocity', 'rad/s'), 'rmse_acc': ('acceleration', 'rad/s2')}
STYLES = ('line', 'dashes', 'dotted')     # of curves whose colour has been used before
SMALLEST = 1e-6     # rad, where the logarithmic axis of the traces ends


def run_estimators(mechanism: str, sensors: Sequence[str], estimators: Sequence[str], seeds: int, jobs: int,
                   duration: float, json_file: Path | None, output: Path | None, backend: str = 'auto',
                   cluster: str | None = None, options: str = '') -> None:
    """Run, write, print; the rows come in the order of the cases, whatever process was the first."""
    check_file(json_file)
    check_folder(output)
    if not SETTLED + STEP <= duration <= 1000.0:
        raise SettingError('duration', duration, f'seconds, more than the {SETTLED:g} of the start, up to 1000')
    mechanisms = list(SENSORS) if mechanism == 'all' else [mechanism]
    cases = benchmark_cases(mechanisms, estimators, sensors, seeds, duration, backend, options)
    results = many(run_case, cases, jobs, cluster, 'cases')
    rows = [result.row for result in results]
    write_json(json_file, {'machine': machine_name(), 'duration_s': duration, 'dt_s': STEP, 'rows': rows})
    if output is not None:
        write_estimator_plots(results, output)
    show(wide_console(), rows)


def show(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """One table for each mechanism and set of sensors."""
    for mechanism in SENSORS:
        for sensor in SENSOR_SETS:
            chosen = [row for row in rows if (row['mechanism'], row['sensor']) == (mechanism, sensor)]
            if chosen:
                cells = [[row['estimator'], *(_cell(row[key]) for key in COLUMNS)] for row in chosen]
                print_table(console, f'{mechanism}, {sensor}: mean of {chosen[0]["seeds"]} seeds, rad and s',
                            ['estimator', *COLUMNS.values()], cells)
    for note in dict.fromkeys(f'{row["estimator"]}: {row["note"]}' for row in rows if row['note']):
        console.print(note, markup=False)


def _cell(value: float | int | None) -> str:
    if value is None:
        return '–'
    return str(value) if isinstance(value, int) else number(value)


def write_estimator_plots(results: Sequence[BenchmarkResult], folder: Path) -> None:
    """Of each mechanism the bars of the errors, and the error over time with each set of sensors."""
    folder.mkdir(parents=True, exist_ok=True)
    for mechanism in dict.fromkeys(result.case.mechanism for result in results):
        chosen = [result for result in results if result.case.mechanism == mechanism]
        write_bars([_bars(chosen, mechanism, key) for key in QUANTITIES], folder / f'fig6_errors_{mechanism}.png')
        sensors = dict.fromkeys(result.case.sensor for result in chosen)
        write_plots([_traces(chosen, mechanism, sensor) for sensor in sensors],
                    folder / f'errors_over_time_{mechanism}.png')


def _bars(results: Sequence[BenchmarkResult], mechanism: str, key: str) -> Bars:
    """Bars of all filters, one colour a set of sensors; no bar for what was lost."""
    what, unit = QUANTITIES[key]
    estimators = list(dict.fromkeys(result.case.estimator for result in results))
    rows = {(result.case.estimator, result.case.sensor): result.row for result in results}
    sensors = [sensor for sensor in SENSOR_SETS if any(at[1] == sensor for at in rows)]
    series = {sensor: [_height(rows.get((name, sensor)), key) for name in estimators] for sensor in sensors}
    return Bars(f'{mechanism}: RMSE of the {what}', unit, estimators, series, log=True)


def _height(row: dict[str, Any] | None, key: str) -> float | None:
    return None if row is None or row['diverged'] == row['seeds'] else row[key]


def _traces(results: Sequence[BenchmarkResult], mechanism: str, sensor: str) -> Panel:
    """Distance of the estimated from the true position, seed 0; what is lost leaves the picture."""
    chosen = [result for result in results if result.case.sensor == sensor]
    errors = [np.clip(np.abs(result.error), SMALLEST, 10 * LOST) if result.error.size
              else np.full(len(result.t), np.nan) for result in chosen]
    curves = [Curve(result.case.estimator, result.t, error, kind=STYLES[k // len(PALETTE) % len(STYLES)])
              for k, (result, error) in enumerate(zip(chosen, errors))]
    return Panel(f'{mechanism}, {sensor}: error of the position', 'rad', curves, y_scale='log', limits=(1e-5, LOST))
