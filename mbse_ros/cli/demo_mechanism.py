# SPDX-License-Identifier: Apache-2.0
"""The mechanism's part of ``mbse demo``: check, draw, move and observe a four-bar linkage; two studies in short."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from ..dynamics.model import load_model
from ..dynamics.motion import simulate
from ..report.linkage_drawing import write_linkage
from ..report.text import number
from ..simulation import estimator_benchmark
from ..studies.energy import EXAMPLES, SCHEMES, largest_kinetic, run_case
from ..studies.estimators import write_estimator_plots
from .check_model import warnings
from .mechanism_picture import Picture
from .mechanism_simulate import write_motion, write_pictures
from ..report.sections import print_table

MECHANISM = 'four_bar'
DURATION = 3.0          # s of the motion
STUDY = 1.0             # s of the study, at 10 ms
SHOWN = ('forward Euler', 'augmented Euler', 'exponential exact')
FILTERS = ('DEKF', 'errorEKF_EJ', 'errorEKF_FE', 'UKF')
SENSORS = ('encoder', 'gyro_crank')
OBSERVED = 5.0          # s


def run_mechanism_demo(console: Console, folder: Path) -> None:
    """Print the result and write the pictures into ``folder``."""
    model = load_model(MECHANISM)
    folder.mkdir(parents=True, exist_ok=True)
    write_linkage(Picture(model).at(model.start.q), folder / 'linkage.png')
    motion = simulate(model, DURATION, 1e-3)
    write_motion(model, motion, folder / 'motion.csv')
    write_pictures(model, motion, folder)
    console.print(f'[bold]A four-bar linkage[/bold] from {len(model.description.bodies)} bars in '
                  f'config/mechanisms/{MECHANISM}.yaml: {len(model.names)} coordinates, {len(model.rows)} constraints, '
                  f'{model.degrees_of_freedom} degree of freedom, {len(list(warnings(model)))} warnings; '
                  f'{DURATION:g} s of motion, energy within {abs(motion.balance).max():.2g} J, constraints within '
                  f'{motion.violation.max():.1g} m')
    print_table(console, f'energy study in short: largest error of the energy over {STUDY:g} s in steps of 10 ms, J',
                ('example', *SHOWN[:2], 'exponential'), [_errors(example) for example in EXAMPLES])
    _observe(console, folder)
    console.print(f'drawing, motion, plots: [bold]{folder}[/bold]  (mbse benchmark energy, mbse benchmark estimators: '
                  'all of the studies)')


def _observe(console: Console, folder: Path) -> None:
    """Some filters on a model that is wrong, with two kinds of sensors."""
    cases = estimator_benchmark.benchmark_cases([MECHANISM], FILTERS, SENSORS, 1, OBSERVED)
    results = list(estimator_benchmark.run_cases(cases))
    write_estimator_plots(results, folder)
    rows = {(result.case.estimator, result.case.sensor): result.row for result in results}
    print_table(console, 'observers of it, gravity wrong by 1 m/s2 and the start by 0.196 rad: error of the position '
                f'from 2 to {OBSERVED:g} s, rad',
                ('filter', 'encoder', 'gyro', 'us a step'),
                [(name, *(number(rows[name, sensor]['rmse_pos_after_2s']) for sensor in SENSORS),
                  number(rows[name, SENSORS[0]]['step_us'])) for name in FILTERS])


def _errors(example: str) -> tuple[str, ...]:
    """One row of the study."""
    model = load_model(example)
    kinetic = largest_kinetic(model, STUDY)
    runs = [run_case(model, example, 10.0, scheme, STUDY, kinetic) for scheme in SCHEMES if scheme in SHOWN]
    return example, *(f'blows up at {run.blew_up_at:.2f} s' if run.blew_up_at is not None
                      else f'{abs(run.motion.balance).max():.3g}' for run in runs)
