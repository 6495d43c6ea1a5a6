# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark estimators``: every filter with every sensor of paper 001's benchmark (its figures 5 and 6)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..errors import SettingError
from ..report.text import number
from ..simulation.estimator_benchmark import (SETTLED, SENSOR_SETS, SENSORS, STEP, Case, Result, benchmark_cases,
                                              run_cases)
from ..report.files import check_folder
from ..report.json_file import check_json_file, write_json
from ..report.options import names_of
from ..report.sections import print_table, wide_console
from .timing import machine_name

COLUMNS = {'rmse_pos': 'position', 'rmse_pos_after_2s': 'after 2 s', 'rmse_vel': 'velocity',
           'rmse_acc': 'acceleration', 'force_rmse': 'force', 'nees': 'NEES', 'nis': 'NIS', 'whiteness': 'white p',
           'step_us': 'us/step', 'diverged': 'diverged'}


def run_estimators(mechanism: str, sensors: str | None, estimators: str | None, seeds: int, jobs: int, duration: float,
                   json_file: Path | None, output: Path | None, backend: str = 'auto') -> None:
    """Run, write, print; the rows come in the order of the cases, whatever process was the first."""
    check_json_file(json_file)
    check_folder(output)
    if not SETTLED + STEP <= duration <= 1000.0:
        raise SettingError('--duration', duration, f'seconds, more than the {SETTLED:g} of the start, up to 1000')
    mechanisms = list(SENSORS) if mechanism == 'all' else [mechanism]
    cases = benchmark_cases(mechanisms, names_of(estimators), names_of(sensors), seeds, duration, backend)
    console = wide_console()
    results = {result.case: result for result in _with_progress(console, cases, jobs)}
    ordered = [results[case] for case in cases]
    rows = [result.row for result in ordered]
    write_json(json_file, {'machine': machine_name(), 'duration_s': duration, 'dt_s': STEP, 'rows': rows})
    if output is not None:
        from .estimators_plots import write_estimator_plots   # here, because plots take their time to import
        write_estimator_plots(ordered, output)
    show(console, rows)


def _with_progress(console: Console, cases: Sequence[Case], jobs: int) -> list[Result]:
    """Results as they come, with a bar on a terminal."""
    columns = (TextColumn('{task.description}'), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    results = []
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task('cases', total=len(cases))
        for result in run_cases(cases, jobs):
            results.append(result)
            case = result.case
            progress.update(task, advance=1, description=f'{case.mechanism} {case.sensor} {case.estimator}')
    return results


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
