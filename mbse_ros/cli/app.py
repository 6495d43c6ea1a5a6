# SPDX-License-Identifier: Apache-2.0
"""The commands and their options."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import MbseError, SettingError
from .arguments import Coordinates, Json, Plots, Set, Sources, Valve, names_of, refuse_options, sources_of
from .calibrate import calibrate
from .doctor import doctor
from .export import export_c
from .fleet import fleet
from .import_table import import_command
from .loads import loads
from .studies import benchmark
from .topics import topics
from .view import view

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None,
                  pretty_exceptions_show_locals=False,
                  help='State and payload estimation of hydraulic machines: simulate, record, estimate, replay, '
                       'explain.')
app.add_typer(benchmark, name='benchmark')


@app.command()
def simulate(
        name: Annotated[str, typer.Argument(
            help='Name of a file in config/machines or config/mechanisms, n_four_bar:N, or a path.')],
        output: Annotated[Path, typer.Option('-o', '--output', help='Bag of a machine; folder of a mechanism.')],
        payload: Annotated[float | None, typer.Option(help='Machine: true payload, kg. [50]')] = None,
        seed: Annotated[int | None, typer.Option(help="Machine: seed of the sensors' noise. [1]")] = None,
        cycle: Annotated[str | None, typer.Option(
            help='Machine: lift_hold_lower or boom (the first valve alone), random (all), dig. [lift_hold_lower]'
            )] = None,
        ramp: Annotated[float | None, typer.Option(
            help='Machine: ramps of the valve command in lift_hold_lower, s. [0.2]')] = None,
        rate: Annotated[float | None, typer.Option(help='Machine: rate of the sensors, Hz. [100]')] = None,
        storage: Annotated[str | None, typer.Option(help='Machine: mcap or sqlite3. [mcap]')] = None,
        base_roll: Annotated[float | None, typer.Option(
            help='Machine: true roll of the base, deg, where a sensor measures it. [0]')] = None,
        base_pitch: Annotated[float | None, typer.Option(
            help='Machine: true pitch of the base, deg, where a sensor measures it. [0]')] = None,
        soil: Annotated[float | None, typer.Option(
            help='Machine: force of the soil on its `payload.contact` while the cycle digs, N. [0]')] = None,
        swing: Annotated[float | None, typer.Option(
            help='Machine: where a load that hangs is let go, deg from the vertical. [0]')] = None,
        duration: Annotated[float | None, typer.Option(help='Mechanism: length of the motion, s. [5]')] = None,
        dt: Annotated[float | None, typer.Option(help='Mechanism: step, s. [0.001]')] = None,
        scheme: Annotated[str | None, typer.Option(
            help='Mechanism: forward_euler, augmented_euler, exponential, trapezoid, ali3p, dop853 or radau. '
                 '[exponential]')] = None,
        order: Annotated[str | None, typer.Option(
            help='Mechanism: of the exponential scheme, 0 to 4 or exact. [exact]')] = None,
        coordinates: Coordinates = None,
        independent: Annotated[str | None, typer.Option(
            help="Mechanism: independent coordinates, separated by commas, or auto. [the file's]")] = None,
        pictures: Annotated[bool | None, typer.Option(
            '--pictures/--no-pictures', help='Mechanism: plots and an animation. [of 500 steps and more]')] = None,
        json_: Annotated[Path | None, typer.Option(
            '--json', help='Mechanism: write the summary to this file too.')] = None) -> None:
    """Simulate a machine to a bag, or a mechanism's motion."""
    from ..description.described import describe
    machine = {'payload': payload, 'seed': seed, 'cycle': cycle, 'ramp': ramp, 'rate': rate, 'storage': storage,
               'base-roll': base_roll, 'base-pitch': base_pitch, 'soil': soil, 'swing': swing}
    mechanism = {'duration': duration, 'dt': dt, 'scheme': scheme, 'order': order, 'coordinates': coordinates,
                 'independent': independent, 'pictures': pictures}
    description = describe(name)
    if description.cylinders:
        from .simulate import simulate_bag
        refuse_options('a mechanism', {**mechanism, 'json': json_})
        simulate_bag(description, output, **_given(machine))
    else:
        from .mechanism_simulate import Request, simulate_mechanism
        refuse_options('a machine', machine)
        simulate_mechanism(Request(name, **_given(mechanism)), output, json_)


def _given(options: Mapping[str, object]) -> dict[str, Any]:
    """The options that were given."""
    return {option.replace('-', '_'): value for option, value in options.items() if value is not None}


@app.command()
def inverse(
        mechanism: Annotated[str, typer.Argument(help='Name of a file in config/mechanisms, or a path.')],
        output: Annotated[Path, typer.Option('-o', '--output', help='Folder for table, summary and plot.')],
        motion: Annotated[Path | None, typer.Option(
            help='CSV table of the motion: t, and the independent coordinates, such as theta [deg].')] = None,
        duration: Annotated[float | None, typer.Option(
            help="Length of the motion, s. [10, or the table's]")] = None,
        dt: Annotated[float | None, typer.Option(
            help="Time between two instants, s. [0.005, or the table's times]")] = None,
        coordinates: Coordinates = None,
        json_: Annotated[Path | None, typer.Option('--json', help='Write the summary to this file too.')] = None,
) -> None:
    """Forces that a motion of a mechanism takes.

    Its drivers prescribe the motion, or a table does.
    """
    from .mechanism_inverse import inverse_mechanism
    inverse_mechanism(mechanism, output, duration, dt, coordinates, json_, motion)


app.command('import')(import_command)


@app.command()
def estimate(
        bag: Annotated[Path, typer.Argument(help='Folder of a bag.')],
        machine: Annotated[str | None, typer.Option(
            help='Name of a file in config/machines, or a path to a .yaml file. [patu655_lift]')] = None,
        mechanism: Annotated[str | None, typer.Option(
            help='Estimate a mechanism instead of a machine: name of a file in config/mechanisms, or a path.')] = None,
        estimator: Annotated[str | None, typer.Option(
            help='Mechanism: filter, by its name in Naya et al., review. [errorEKF_FE]')] = None,
        sensors: Annotated[str | None, typer.Option(
            help='Mechanism: sensors to use, separated by commas. [all of the file]')] = None,
        step: Annotated[float | None, typer.Option(
            help="Mechanism: step of the filter, s. [the fastest sensor's period]")] = None,
        valve: Valve = None,
        output: Annotated[Path | None, typer.Option(
            '-o', '--output', help='Folder of a bag for the estimates.')] = None,
        json_: Json = None,
        full: Annotated[bool, typer.Option('--full', help='Put the whole state over time into the JSON.')] = False,
        report: Annotated[Path | None, typer.Option(
            help='Machine: folder for the report, index.html and PNGs.')] = None,
        set_: Set = None,
        sources: Sources = None,
        namespace: Annotated[str | None, typer.Option(
            help='Namespace of the topics, where the bag has several.')] = None,
        backend: Annotated[str, typer.Option(help='auto, c or vm.')] = 'auto') -> None:
    """Estimate what a machine or a mechanism did, from a bag.

    State and payload of a machine, or the state of a mechanism.
    By the same objects as the nodes; the same bag gives the same result every time.
    """
    from .logs import LogRequest
    request = LogRequest(bag, output, json_, full, set_ or [], namespace, backend, names_of(sensors), step,
                         report=report, sources=sources_of(sources))
    if mechanism is not None:
        from .estimate_linkage import estimate_linkage
        refuse_options('a machine', {'machine': machine, 'valve': valve, 'report': report, 'sources': sources})
        estimate_linkage(mechanism, estimator or 'errorEKF_FE', request)
        return
    from .estimate import estimate_machine
    refuse_options('a mechanism', {'estimator': estimator, 'sensors': sensors, 'step': step})
    estimate_machine(machine or 'patu655_lift', valve, request)


@app.command()
def smooth(
        bag: Annotated[Path, typer.Argument(help='Folder of a bag.')],
        machine: Annotated[str | None, typer.Option(
            help='Name of a file in config/machines, or a path to a .yaml file. [patu655_lift]')] = None,
        mechanism: Annotated[str | None, typer.Option(
            help='Smooth a mechanism instead of a machine: name of a file in config/mechanisms, or a path.')] = None,
        lag: Annotated[float | None, typer.Option(
            help='Estimate each instant so many seconds after it, as could be done online.')] = None,
        batch: Annotated[bool, typer.Option('--batch', help='The whole log at once. [without --lag]')] = False,
        sensors: Annotated[str | None, typer.Option(
            help='Mechanism: sensors to use, separated by commas. [all of the file]')] = None,
        step: Annotated[float | None, typer.Option(
            help="Mechanism: step of the estimates, s. [the fastest sensor's period]")] = None,
        valve: Valve = None,
        output: Annotated[Path | None, typer.Option('-o', '--output', help='Folder for plot and table.')] = None,
        json_: Json = None,
        full: Annotated[bool, typer.Option('--full', help='Put the whole state over time into the JSON.')] = False,
        set_: Set = None,
        sources: Sources = None,
        namespace: Annotated[str | None, typer.Option(
            help='Namespace of the topics, where the bag has several.')] = None,
        backend: Annotated[str, typer.Option(help='auto, c or vm.')] = 'auto') -> None:
    """Most likely motion of a log, from all its samples.

    By the factor graph of the machine or the mechanism; the filter's result beside it, both with their intervals.
    """
    from .logs import LogRequest
    from .smooth import smooth_command
    if batch and lag is not None:
        raise SettingError('--batch', '--lag', 'one of the two')
    if mechanism is not None:
        refuse_options('a machine', {'valve': valve, 'sources': sources})
    smooth_command(machine, mechanism, valve, LogRequest(bag, output, json_, full, set_ or [], namespace, backend,
                                                         names_of(sensors), step, lag, sources=sources_of(sources)))


@app.command()
def check(
        name: Annotated[str, typer.Argument(
            help='Name of a file in config/machines or config/mechanisms, n_four_bar:N, or a path.')],
        draw: Annotated[Path | None, typer.Option(
            '--draw', '-o', help='Draw the start into this PNG.')] = None,
        coordinates: Coordinates = None) -> None:
    """Validate a machine or a mechanism and explain it."""
    from .check import check_described
    check_described(name, draw, coordinates)


@app.command('check-data')
def check_data(
        bag: Annotated[Path, typer.Argument(help='Folder of a bag.')],
        machine: Annotated[str, typer.Option(
            help='Name of a file in config/machines, or a path to a .yaml file.')] = 'patu655_lift',
        valve: Valve = None,
        json_: Json = None,
        sources: Sources = None,
        namespace: Annotated[str | None, typer.Option(
            help='Namespace of the topics, where the bag has several.')] = None) -> None:
    """What is wrong with the data of a bag.

    And what would mend it: units, signs, swapped chambers, reversed positions, sensors that repeat a value. Exit status
    1 where something is wrong.
    """
    from .check_data import check_data as run
    if not run(bag, machine, valve, namespace, json_, sources_of(sources)):
        raise typer.Exit(1)


app.command()(topics)


app.command()(doctor)


@app.command()
def convert(
        old: Annotated[Path, typer.Argument(help='Machine file of the old format mbse/machine/1.')],
        output: Annotated[Path, typer.Option('-o', '--output', help='New file to write, .yaml.')]) -> None:
    """Rewrite an old machine file in the present format.

    What did not change keeps its comments and layout.
    """
    from .convert import convert_command
    convert_command(old, output)


app.command('export-c')(export_c)


@app.command()
def graph(
        mechanism: Annotated[str, typer.Argument(
            help='Name of a file in config/mechanisms, n_four_bar:N, or a path.')],
        kind: Annotated[str, typer.Option(help='forward or inverse.')] = 'forward',
        form: Annotated[str, typer.Option(help='dependent or independent.')] = 'dependent',
        output: Annotated[Path | None, typer.Option('-o', '--output', help='Picture to write, .svg.')] = None,
        coordinates: Coordinates = None) -> None:
    """Factor graph of a mechanism, listed and drawn.

    Variables and factors of its first instants, as in Blanco-Claraco et al., factor graphs, figures 2 to 4.
    """
    from .graph import graph_command
    graph_command(mechanism, kind, form, output, coordinates)


@app.command()
def observability(
        mechanism: Annotated[str, typer.Argument(
            help='Name of a file in config/machines or config/mechanisms, or a path.')],
        sensors: Annotated[str, typer.Option(help="Names of the file's sensors, separated by commas.")],
        trajectory: Annotated[str, typer.Option(
            help='free: from the start; rest: standing there; or the motion.csv of mbse simulate.')] = 'free',
        duration: Annotated[float, typer.Option(help='Length of the motion, s.')] = 4.0,
        window: Annotated[float, typer.Option(help='Time over which the sensors are looked at together, s.')] = 0.5,
        model: Annotated[str | None, typer.Option(
            help='What the filter knows: simple, exact or force. [all three]')] = None,
        json_: Json = None,
        output: Plots = None) -> None:
    """Directions that sensors of a mechanism see, or not.

    Rank and condition along the motion, directions that are blind, the sensor that would help most.
    """
    from .observability import Request, observability_command
    observability_command(Request(mechanism, sensors, trajectory, duration, window, model), json_, output)


@app.command()
def tune(
        sources: Annotated[list[str], typer.Argument(
            help='A mechanism, for simulated logs; or, with --mechanism, bags and CSV tables of its sensors.')],
        estimator: Annotated[str, typer.Option(help='Filter, by its name in Naya et al., review.')],
        sensors: Annotated[str, typer.Option(help="Names of the file's sensors, separated by commas.")],
        mechanism: Annotated[str | None, typer.Option(help='Mechanism that the logs are of.')] = None,
        seeds: Annotated[int, typer.Option(min=1, help='Simulated logs.')] = 1,
        duration: Annotated[float, typer.Option(help='Length of a simulated log, s.')] = 10.0,
        skip: Annotated[float, typer.Option(min=0, help='Start of each log that does not count, s.')] = 2.0,
        dt: Annotated[float | None, typer.Option(help="Step for recorded logs, s. [the samples']")] = None,
        json_: Json = None,
        backend: Annotated[str, typer.Option(help='auto, c or vm.')] = 'auto') -> None:
    """Process noises of a filter by maximum likelihood.

    With what its innovations are like before and after: NIS and whiteness.
    """
    from .tune import Request, tune_command
    tune_command(Request(sources, estimator, sensors, mechanism, seeds, duration, skip, dt), json_, backend)


app.command()(calibrate)


app.command()(loads)


app.command()(fleet)


app.command()(view)


@app.command(context_settings={'allow_extra_args': True, 'ignore_unknown_options': True})
def up(context: typer.Context,
       graph: Annotated[str, typer.Argument(help='machine, crane or linkage')],
       duration: Annotated[float | None, typer.Option(help='Stop after so many seconds.')] = None) -> None:
    """Start the nodes, as ros2 launch does.

    Arguments as there, e.g. mbse up machine machine:=zx200 payload:=800, mbse up linkage mechanism:=five_bar
    estimator:=UKF; docs/parameters.md has all.
    """
    from .up import up_graph
    raise typer.Exit(up_graph(graph, context.args, duration))


@app.command()
def replay(
        bag: Annotated[Path, typer.Argument(help='Folder of a bag.')],
        rate: Annotated[float, typer.Option(help='Speed: 2 is twice as fast.')] = 1.0,
        loop: Annotated[bool, typer.Option('--loop', help='Start again at the end.')] = False,
        paused: Annotated[bool, typer.Option(
            '--paused', help='Wait for the service ~/pause (std_srvs/SetBool).')] = False,
        all_: Annotated[bool, typer.Option(
            '--all', help="Publish the bag's estimates too, not only its sensors.")] = False,
        wait: Annotated[float, typer.Option(
            help='Longest time to wait for a reader of each sensor topic before the start, s.')] = 5.0,
) -> None:
    """Publish the sensors of a bag, with /clock.

    The service /replay_node/pause (std_srvs/SetBool) pauses and goes on.
    """
    from .up import replay_bag
    raise typer.Exit(replay_bag(bag, rate, loop, paused, all_, wait))


@app.command()
def demo(
        payload: Annotated[float, typer.Option(help='True payload of the simulated crane, kg.')] = 50.0,
        seed: Annotated[int, typer.Option(help='Seed of the sensors\' noise.')] = 1,
        output: Annotated[Path, typer.Option(
            '-o', '--output', help='Folder for bags and reports.')] = Path('out/demo'),
        offline: Annotated[bool, typer.Option(
            '--offline', help='Without ROS 2: the crane, simulated to a bag and estimated from it.')] = False) -> None:
    """Simulated crane through the ROS 2 graph, then offline.

    And the measured lift, where its data are found; and a four-bar linkage.
    """
    if offline:
        from .demo_offline import run_offline_demo
        raise typer.Exit(run_offline_demo(payload, seed, output))
    from .demo import run_demo
    raise typer.Exit(run_demo(payload, seed, output))


def main() -> None:
    """Entry point: an error of this package, or of a file, is one line and exit status 2."""
    gc.set_threshold(20_000)    # of 700, the collector would take a fifth of the time of imports, and find nothing
    try:
        app(prog_name='mbse')
    except MbseError as error:
        typer.echo(f'mbse: {error}', err=True)
        sys.exit(2)
    except OSError as error:
        typer.echo(f'mbse: {error.filename or "files"}: {error.strerror or error}', err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
