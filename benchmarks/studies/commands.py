# SPDX-License-Identifier: Apache-2.0
"""Options of the studies in this folder, as commands of `mbse benchmark`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mbse_ros.cli.arguments import Json, Plots, names_of, whole_numbers
from mbse_ros.errors import SettingError


def kernels(json_: Json = None,
            rounds: Annotated[int, typer.Option(min=1, help='Bursts; the fastest counts.')] = 60,
            case: Annotated[str, typer.Option(help='Cases, separated by commas. [all]')] = '') -> None:
    """One observer step in VM, C and NumPy.

    Online, in a batch, and from a cold start, all in one run.
    """
    from .kernels import run_kernels
    run_kernels(json_, rounds, names_of(case))


def pipeline(json_: Json = None,
             runs: Annotated[int, typer.Option(min=1, help='Runs; the fastest counts.')] = 7) -> None:
    """Interpolation, observer and payload over a log.

    23.5 s of samples at 100 Hz, observer at 1 kHz.
    """
    from .pipeline import run_pipeline
    run_pipeline(json_, runs)


def startup(json_: Json = None,
            machine: Annotated[str, typer.Option(help='Name of a file in config/machines, or a path.')] =
            'patu655_lift',
            rounds: Annotated[int, typer.Option(min=1, help='Warm starts of each case; the fastest counts.')] = 5
            ) -> None:
    """How long one waits for short commands.

    Each in processes of its own, with an empty cache and with a full one; and the nodes of a machine until they take
    samples.
    """
    from .startup import run_startup
    run_startup(json_, machine, rounds)


def bags(json_: Json = None,
         machine: Annotated[str, typer.Option(help='Name of a file in config/machines, or a path.')] = 'zx200',
         seconds: Annotated[float | None, typer.Option(help='Length of the log, s. [60]')] = None,
         hours: Annotated[float | None, typer.Option(help='The same in hours.')] = None,
         storage: Annotated[str, typer.Option(help='mcap or sqlite3.')] = 'mcap') -> None:
    """How fast a long bag is read and estimated.

    A simulated machine at 100 Hz, written by the benchmark: samples a second, time of the whole chain, peak of memory.
    """
    from .bags import SHORT_S, run_bags
    if seconds is not None and hours is not None:
        raise SettingError('hours', hours, 'no such option beside --seconds')
    run_bags(json_, machine, 3600.0 * hours if hours is not None else seconds if seconds is not None else SHORT_S,
             storage)


def energy(json_: Json = None,
           output: Plots = None,
           duration: Annotated[float, typer.Option(help='Length of each motion, s.')] = 10.0,
           rounds: Annotated[int, typer.Option(min=1, help='Bursts; the fastest counts.')] = 100) -> None:
    """Energy balance, accuracy and cost of the integrators.

    Pyrhönen et al., state transition, figures 4 to 7: two four-bar linkages, steps of 1 and 10 ms.
    """
    from .energy import run_energy
    run_energy(json_, output, duration, rounds)


def simulation(json_: Json = None,
               mechanism: Annotated[list[str] | None, typer.Option(help='Only this mechanism; repeat it.')] = None,
               dt: Annotated[float, typer.Option(help='Step, s.')] = 1e-3,
               rounds: Annotated[int, typer.Option(min=1, help='Runs; the fastest counts.')] = 3,
               runs: Annotated[int, typer.Option(min=0, help='Of a batch of the four-bar, 10 s each; 0: none.')] = 500
               ) -> None:
    """Cost and error of a step of the integrators.

    Against a reference of error 1e-12, and beside Exudyn and MuJoCo where they are installed.
    """
    from .simulation import run_simulation
    run_simulation(json_, mechanism or [], dt, rounds, runs)


def formulations(json_: Json = None,
                 output: Plots = None,
                 mechanism: Annotated[list[str] | None, typer.Option(
                     help='Only this mechanism; repeat it.')] = None,
                 rounds: Annotated[int, typer.Option(min=1, help='Bursts; the fastest counts.')] = 10,
                 motions: Annotated[bool, typer.Option(
                     '--motions', help='Motions of four mechanisms instead: errors and their order.')] = False
                 ) -> None:
    """Agreement and cost of all formulations.

    For every mechanism of config/mechanisms, in natural, reference-point and relative coordinates.
    """
    from .formulations import run_formulations
    run_formulations(json_, output, mechanism or [], rounds, motions)


def scaling(json_: Json = None,
            output: Plots = None,
            largest: Annotated[int, typer.Option(help='Loops of the longest chain.')] = 40,
            rounds: Annotated[int, typer.Option(min=1, help='Bursts; the fastest counts.')] = 20) -> None:
    """Growth of the cost with the size of a mechanism.

    Chains of N four-bar linkages by dense and sparse ways.
    """
    from .scaling import run_scaling
    run_scaling(json_, output, largest, rounds)


def growth(json_: Json = None,
           mechanism: Annotated[list[str] | None, typer.Option(
               help='Only this one of chain, chain_3d, arm_6r, n_four_bar; repeat it.')] = None,
           sizes: Annotated[str, typer.Option(help='Links or loops, separated by commas.')] = '2,4,8,16,32,64',
           page: Annotated[Path | None, typer.Option(help='Page with the two marks, for the table.')] = None) -> None:
    """Cost of chains, arms and four-bars with their size.

    Accelerations, their derivatives and a step of Runge and Kutta, beside pinocchio and MuJoCo where they are
    installed; time to build and to compile, memory.
    """
    from .growth import run_growth
    run_growth(json_, mechanism or [], whole_numbers('sizes', sizes), page)


def graphs(json_: Json = None,
           duration: Annotated[float, typer.Option(help='Length of the motion, s.')] = 5.0,
           windows: Annotated[str, typer.Option(help='Lengths of the window, separated by commas.')] =
           '2,3,4,5,6,7,8,9,10',
           loops: Annotated[str, typer.Option(help='Loops of the N-four-bar, separated by commas.')] = '1,2,4',
           adams: Annotated[Path | None, typer.Option(
               help='Table of MSC Adams for the inverse dynamics (time, torque, angle). [skipped]')] = None,
           seeds: Annotated[int, typer.Option(min=0, help='Noisy logs that are smoothed; 0: none.')] = 20,
           logs: Annotated[str, typer.Option(help='Lengths of logs, s, separated by commas, for the growth of the '
                                                  'cost.')] = '10,20,50,100',
           backend: Annotated[str, typer.Option(help='auto, c or vm.')] = 'auto') -> None:
    """Accuracy and cost of factor graphs.

    Blanco-Claraco et al., factor graphs, section 7: forward dynamics by windows, inverse dynamics, growth with window,
    length and size; logs smoothed against the best filter.
    """
    from .graphs import run_graphs
    run_graphs(json_, duration, whole_numbers('windows', windows), whole_numbers('loops', loops), adams, seeds,
               whole_numbers('logs', logs), backend)


def papers(json_: Json = None,
           paper: Annotated[list[str] | None, typer.Option(help='Only this page of docs/papers; repeat it.')] = None,
           part: Annotated[str, typer.Option(help='Only rows with this text in their first cell.')] = '') -> None:
    """What the five papers say, row by row.

    Runs the tests and measurements that show the rows of docs/papers; ends with 1 where one failed.
    """
    from .papers import run_papers
    run_papers(json_, paper or [], part)


def add_to(benchmark: typer.Typer) -> None:
    """All of them."""
    for study in (kernels, pipeline, startup, bags, energy, simulation, formulations, scaling, growth, graphs,
                  papers):
        benchmark.command()(study)
