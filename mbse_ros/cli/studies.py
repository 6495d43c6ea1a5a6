# SPDX-License-Identifier: Apache-2.0
"""The commands ``mbse benchmark``: one study each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import SettingError
from .arguments import Cluster, Jobs, Json, Plots, names_of, whole_numbers

benchmark = typer.Typer(no_args_is_help=True, help='Measure speed, accuracy and detection of faults. What measures '
                        'time runs alone: only estimators and faults have --jobs and --cluster.')


@benchmark.command()
def kernels(json_: Json = None,
            rounds: Annotated[int, typer.Option(min=1, help='Bursts; the fastest counts.')] = 60,
            case: Annotated[str, typer.Option(help='Cases, separated by commas. [all]')] = '') -> None:
    """One observer step in VM, C and NumPy.

    Online, in a batch, and from a cold start, all in one run.
    """
    from ..studies.kernels import run_kernels
    run_kernels(json_, rounds, names_of(case))


@benchmark.command()
def pipeline(json_: Json = None,
             runs: Annotated[int, typer.Option(min=1, help='Runs; the fastest counts.')] = 7) -> None:
    """Interpolation, observer and payload over a log.

    23.5 s of samples at 100 Hz, observer at 1 kHz.
    """
    from ..studies.pipeline import run_pipeline
    run_pipeline(json_, runs)


@benchmark.command()
def startup(json_: Json = None,
            machine: Annotated[str, typer.Option(help='Name of a file in config/machines, or a path.')] =
            'patu655_lift',
            rounds: Annotated[int, typer.Option(min=1, help='Warm starts of each case; the fastest counts.')] = 5
            ) -> None:
    """How long one waits for short commands.

    Each in processes of its own, with an empty cache and with a full one; and the nodes of a machine until they take
    samples.
    """
    from ..studies.startup import run_startup
    run_startup(json_, machine, rounds)


@benchmark.command()
def bags(json_: Json = None,
         machine: Annotated[str, typer.Option(help='Name of a file in config/machines, or a path.')] = 'zx200',
         seconds: Annotated[float | None, typer.Option(help='Length of the log, s. [60]')] = None,
         hours: Annotated[float | None, typer.Option(help='The same in hours.')] = None,
         storage: Annotated[str, typer.Option(help='mcap or sqlite3.')] = 'mcap') -> None:
    """How fast a long bag is read and estimated.

    A simulated machine at 100 Hz, written by the benchmark: samples a second, time of the whole chain, peak of memory.
    """
    from ..studies.bags import SHORT_S, run_bags
    if seconds is not None and hours is not None:
        raise SettingError('--hours', hours, 'no such option beside --seconds')
    run_bags(json_, machine, 3600.0 * hours if hours is not None else seconds if seconds is not None else SHORT_S,
             storage)


@benchmark.command()
def energy(json_: Json = None,
           output: Plots = None,
           duration: Annotated[float, typer.Option(help='Length of each motion, s.')] = 10.0,
           rounds: Annotated[int, typer.Option(min=1, help='Bursts; the fastest counts.')] = 100) -> None:
    """Energy balance, accuracy and cost of the integrators.

    Pyrhönen et al., state transition, figures 4 to 7: two four-bar linkages, steps of 1 and 10 ms.
    """
    from ..studies.energy import run_energy
    run_energy(json_, output, duration, rounds)


@benchmark.command()
def simulation(json_: Json = None,
               mechanism: Annotated[list[str] | None, typer.Option(help='Only this mechanism; repeat it.')] = None,
               dt: Annotated[float, typer.Option(help='Step, s.')] = 1e-3,
               rounds: Annotated[int, typer.Option(min=1, help='Runs; the fastest counts.')] = 3,
               runs: Annotated[int, typer.Option(min=0, help='Of a batch of the four-bar, 10 s each; 0: none.')] = 500
               ) -> None:
    """Cost and error of a step of the integrators.

    Against a reference of error 1e-12, and beside Exudyn and MuJoCo where they are installed.
    """
    from ..studies.simulation import run_simulation
    run_simulation(json_, mechanism or [], dt, rounds, runs)


@benchmark.command()
def formulations(json_: Json = None,
                 output: Plots = None,
                 mechanism: Annotated[list[str] | None, typer.Option(
                     help='Only this mechanism; repeat it.')] = None,
                 rounds: Annotated[int, typer.Option(min=1, help='Bursts; the fastest counts.')] = 10) -> None:
    """Agreement and cost of all formulations.

    For every mechanism of config/mechanisms, in natural, reference-point and relative coordinates.
    """
    from ..studies.formulations import run_formulations
    run_formulations(json_, output, mechanism or [], rounds)


@benchmark.command()
def scaling(json_: Json = None,
            output: Plots = None,
            largest: Annotated[int, typer.Option(help='Loops of the longest chain.')] = 40,
            rounds: Annotated[int, typer.Option(min=1, help='Bursts; the fastest counts.')] = 20) -> None:
    """Growth of the cost with the size of a mechanism.

    Chains of N four-bar linkages by dense and sparse ways.
    """
    from ..studies.scaling import run_scaling
    run_scaling(json_, output, largest, rounds)


@benchmark.command()
def estimators(mechanism: Annotated[str, typer.Option(help='four_bar, five_bar or all.')] = 'all',
               sensors: Annotated[str | None, typer.Option(
                   help='encoder, gyro_crank, gyro_coupler, accelerometers, separated by commas. [all]')] = None,
               estimators_: Annotated[str | None, typer.Option(
                   '--estimators', help='Filters by their names in Naya et al., review, with commas. [all]')] = None,
               seeds: Annotated[int, typer.Option(min=1, help="Seeds of the sensors' noise.")] = 20,
               jobs: Jobs = 1,
               cluster: Cluster = None,
               duration: Annotated[float, typer.Option(help='Length of each log, s.')] = 10.0,
               json_: Json = None,
               output: Plots = None,
               backend: Annotated[str, typer.Option(help='auto, c or vm.')] = 'auto') -> None:
    """Accuracy, consistency and cost of all filters.

    Naya et al., review, section 12: a true linkage, a wrong model of it, a filter that corrects the model.
    """
    from ..studies.estimators import run_estimators
    run_estimators(mechanism, names_of(sensors), names_of(estimators_), seeds, jobs, duration, json_, output, backend,
                   cluster)


@benchmark.command()
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
    from ..studies.graphs import run_graphs
    run_graphs(json_, duration, whole_numbers('--windows', windows), whole_numbers('--loops', loops), adams, seeds,
               whole_numbers('--logs', logs), backend)


@benchmark.command()
def faults(machine: Annotated[str, typer.Option(help='Machines, separated by commas.')] =
           'patu655_lift,patu655,zx200,zx200_can',
           valve: Annotated[str, typer.Option(help='orifice, compensated, unknown, separated by commas.')] =
           'orifice,unknown',
           fault: Annotated[str | None, typer.Option(help='Faults, separated by commas. [all]')] = None,
           sensor: Annotated[str | None, typer.Option(help='Channels, separated by commas. [all]')] = None,
           seeds: Annotated[int, typer.Option(min=1, help="Seeds of the motion and of the sensors' noise.")] = 1,
           start: Annotated[float | None, typer.Option(
               help='When a fault begins, s. [8, and in further runs the first sample]')] = None,
           duration: Annotated[float, typer.Option(help='Length of each run, s.')] = 24.0,
           clean: Annotated[float, typer.Option(help='Length of each run without a fault, s; 0: none.')] = 120.0,
           jobs: Jobs = 1,
           cluster: Cluster = None,
           json_: Json = None,
           output: Plots = None) -> None:
    """What is seen of faults of sensors.

    Each fault of each sensor of simulated machines through the whole chain: whether it is reported, how fast, which
    sensor is named, and how wrong the mass is while the status is good. See docs/safety.md.
    """
    from ..studies.faults import run_faults
    run_faults(names_of(machine), names_of(valve), names_of(fault), names_of(sensor), seeds, start, duration, clean,
               jobs, json_, output, cluster)


@benchmark.command()
def graph(rates: Annotated[str, typer.Option(help='Rates of the sensors, Hz, separated by commas.')] =
          '100,200,500,1000',
          composed: Annotated[bool | None, typer.Option(
              '--composed/--separate', help='The nodes in one process, or one process each. [both]')] = None,
          seconds: Annotated[float, typer.Option(min=1.0, max=3600.0, help='Measured length of each run, s.')] = 10.0,
          machine: Annotated[str, typer.Option(help='Name of a file in config/machines, or a path.')] = 'patu655_lift',
          json_: Json = None) -> None:
    """Latency, losses and processor of the nodes.

    Interpolation, observer and payload over DDS, fed in real time; beside a node of rclpy that only passes on.
    """
    from .graph_benchmark import run_graph
    run_graph(machine, whole_numbers('--rates', rates), (True, False) if composed is None else (composed,), seconds,
              json_)
