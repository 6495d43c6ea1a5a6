# SPDX-License-Identifier: Apache-2.0
"""The mechanism's part of ``mbse demo``: check and draw a four-bar linkage, move it, and the energy study in short."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from ..dynamics.model import load_model
from ..dynamics.motion import simulate
from ..report.linkage_drawing import write_linkage
from .benchmark_energy import EXAMPLES, SCHEMES, largest_kinetic, run_case
from .mechanism_check import warnings
from .mechanism_picture import Picture
from .mechanism_simulate import write_motion, write_pictures
from .sections import print_table

MECHANISM = 'four_bar'
DURATION = 3.0          # s of the motion
STUDY = 1.0             # s of the study, at 10 ms
SHOWN = ('forward Euler', 'augmented Euler', 'exponential exact')


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
    console.print(f'drawing, motion, plots: [bold]{folder}[/bold]  (mbse benchmark energy: all of the study)')


def _errors(example: str) -> tuple[str, ...]:
    """One row of the study."""
    model = load_model(example)
    kinetic = largest_kinetic(model, STUDY)
    runs = [run_case(model, example, 10.0, scheme, STUDY, kinetic) for scheme in SCHEMES if scheme in SHOWN]
    return example, *(f'blows up at {run.blew_up_at:.2f} s' if run.blew_up_at is not None
                      else f'{abs(run.motion.balance).max():.3g}' for run in runs)
