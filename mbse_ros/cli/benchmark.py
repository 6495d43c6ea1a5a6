# SPDX-License-Identifier: Apache-2.0
"""The commands ``mbse benchmark``: one study each; those of the package itself are in the source tree alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import MbseError, check_choice
from .arguments import Backend, Cluster, Jobs, Json, Plots, SetOfMachine, hand_over, names_of, whole_numbers

SOURCES = Path(__file__).resolve().parents[2] / 'benchmarks'        # of a source tree
IN_SOURCES = ('kernels', 'pipeline', 'startup', 'bags', 'energy', 'simulation', 'formulations', 'scaling', 'growth',
              'graphs', 'papers')
BEHIND = 0.99       # of the instants, sent in time; below it the publisher was too slow
benchmark = typer.Typer(no_args_is_help=True, help='Measure speed, accuracy and detection of faults. What measures '
                        'time runs alone: only estimators, faults and reality have --jobs and --cluster.')


@benchmark.command()
def estimators(mechanism: Annotated[str, typer.Option(help='four_bar, five_bar or all; or any file: --mechanism '
                                                       'rig.yaml --sensors encoder,gyro.')] = 'all',
               sensors: Annotated[str | None, typer.Option(
                   help='encoder, gyro_crank, gyro_coupler, accelerometers, separated by commas. [all]')] = None,
               estimators_: Annotated[str | None, typer.Option(
                   '--estimators', help='Filters by their names in Naya et al., review, with commas. [all]')] = None,
               options: Annotated[str, typer.Option(help="Of the filters, e.g. 'motion=ali3p'.")] = '',
               seeds: Annotated[int, typer.Option(min=1, help="Seeds of the sensors' noise.")] = 20,
               jobs: Jobs = 1,
               cluster: Cluster = None,
               duration: Annotated[float, typer.Option(help='Length of each log, s.')] = 10.0,
               json_: Json = None,
               output: Plots = None,
               backend: Backend = 'auto') -> None:
    """Accuracy, consistency and cost of all filters.

    Naya et al., review, section 12: a true linkage, a wrong model of it, a filter that corrects the model.
    """
    if mechanism not in ('four_bar', 'five_bar', 'all'):
        _study(mechanism, names_of(sensors), names_of(estimators_), seeds, jobs, cluster, duration, json_, output)
        return
    from ..studies.estimators import run_estimators
    run_estimators(mechanism, names_of(sensors), names_of(estimators_), seeds, jobs, duration, json_, output,
                   backend, cluster, options)


def _study(mechanism: str, sensors: Sequence[str], filters: Sequence[str], runs: int, jobs: int,
           cluster: str | None, duration: float, json_file: Path | None, output: Path | None) -> None:
    """Of a mechanism of one's own."""
    from ..api.study import study
    from ..filters.filters import CHOOSY, OF_MECHANISMS
    from ..report.files import check_file, check_folder
    check_file(json_file)
    check_folder(output)
    found = study(mechanism, list(filters) or [name for name in OF_MECHANISMS if name not in CHOOSY],
                  list(sensors) or None, runs, jobs=jobs, cluster=cluster, duration=duration)
    if output is not None:
        found.report(output)
    hand_over(found, json_file)


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
    run_faults(names_of(machine), names_of(valve), names_of(fault), names_of(sensor), seeds, start, duration,
               clean, jobs, json_, output, cluster)


@benchmark.command()
def reality(machine: Annotated[str, typer.Option(help='Machines, separated by commas.')] =
            'patu655_lift,patu655,zx200,zx200_can',
            valve: Annotated[str, typer.Option(help='orifice, compensated, unknown, separated by commas.')] =
            'orifice,unknown',
            effect: Annotated[str | None, typer.Option(help='Effects, separated by commas. [all]')] = None,
            seeds: Annotated[int, typer.Option(min=1, help="Seeds of the motion and of the sensors' noise.")] = 1,
            duration: Annotated[float, typer.Option(help='Length of each run, s.')] = 24.0,
            set_: SetOfMachine = None,
            jobs: Jobs = 1,
            cluster: Cluster = None,
            json_: Json = None,
            output: Plots = None,
            page: Annotated[Path | None, typer.Option(help='Page with the two marks, for the table.')] = None) -> None:
    """Machines that differ from their files as real ones do.

    Simulated machines with other numbers than their files, sensors that are wrong, loads that change: whether the
    interval at the end and the bands of the motion hold, how long the mass is silently wrong. See docs/reality.md.
    """
    from ..studies.reality import run_reality_study
    run_reality_study(names_of(machine), names_of(valve), names_of(effect), seeds, duration, jobs, json_, output, page,
                      cluster, set_ or ())


@benchmark.command()
def graph(rates: Annotated[str, typer.Option(help='Rates of the sensors, Hz, separated by commas.')] =
          '100,200,500,1000',
          ways: Annotated[str, typer.Option(help='The nodes in one process (composed), one process each (separate), '
                                            'or compiled; separated by commas.')] = 'composed,separate,compiled',
          seconds: Annotated[float, typer.Option(min=1.0, max=3600.0, help='Measured length of each run, s.')] = 10.0,
          machine: Annotated[str, typer.Option(help='Name of a file in config/machines, or a path.')] = 'patu655_lift',
          json_: Json = None) -> None:
    """Latency, losses and processor of the nodes.

    Interpolation, observer and payload over DDS, fed in real time; beside a node of rclpy that only passes on.
    """
    run_graph(machine, whole_numbers('rates', rates), names_of(ways) or (), seconds, json_)


def run_graph(machine: str, rates: Sequence[int], ways: Sequence[str], seconds: float, json_file: Path | None) -> None:
    """Measure, print, write; raises SettingError for what cannot be measured, MbseError where a node fails."""
    from ..nodes.measuring.graph_cost import WAYS, benchmark_rows, check_rates, row
    from ..report.files import check_file, write_json
    check_file(json_file)
    check_rates(rates)
    for way in ways:
        check_choice('ways', way, tuple(WAYS))
    rows = []
    typer.echo(f'{machine}, {seconds:g} s each; from the stamp of the last sample to the arrival of the payload:')
    for rate, way, graph, passed in benchmark_rows(machine, rates, ways, seconds):
        rows.append(row(rate, way, graph, passed))
        typer.echo(line(rows[-1], WAYS[way]))
        for who, run in (('graph', graph), ('pass-through', passed)):
            if run.sent < BEHIND * run.due:
                typer.echo(f'  {who}: the publisher sent {run.sent} of {run.due} in time (99 % within '
                           f'{run.publisher_late_ms:.1f} ms): {rate * run.sent / run.due:.0f} Hz was reached')
    write_json(json_file, {'rows': rows})


def line(item: Mapping[str, Any], way: str) -> str:
    """A row in words."""
    shares, passed = item['cpu_share'], item['passthrough_cpu_share']
    total = sum(shares.values())
    ratio = f', ratio {total / passed:.1f}' if passed else ''
    return (f'{item["rate_hz"]} Hz, {way}: {item["messages"]} sent, '
            f'{item["lost"]} lost, p50 {item["p50_ms"]:.1f} ms, p99 {item["p99_ms"]:.1f} ms; % of a core: '
            + ', '.join(f'{name} {100 * share:.1f}' for name, share in shares.items())
            + f', in all {100 * total:.1f}, pass-through {100 * passed:.1f}{ratio}')


def add_studies(app: typer.Typer, folder: Path) -> None:
    """The studies of the package itself, which are in this folder of a source tree; without it how to get them."""
    if (folder / 'studies' / 'commands.py').is_file():
        sys.path.insert(0, str(folder))
        import_module('studies.commands').add_to(app)
        return
    for name in IN_SOURCES:
        app.command(name, help='Runs from a source tree.', hidden=True, context_settings={
            'allow_extra_args': True, 'ignore_unknown_options': True})(_absent)


def _absent(context: typer.Context) -> None:
    raise MbseError(f'mbse benchmark {context.info_name} studies the package itself and is not installed with it: get '
                    f'the source tree of mbse_ros (git clone), then ./mbse benchmark {context.info_name} there')


add_studies(benchmark, SOURCES)
