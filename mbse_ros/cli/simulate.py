# SPDX-License-Identifier: Apache-2.0
"""``mbse simulate``: a machine to a bag, a motion of a mechanism, or many with numbers drawn at random."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import SettingError
from .arguments import Cluster, Coordinates, independent_of, refuse_options

if TYPE_CHECKING:
    from ..api.results.motion_files import SimulationRequest
    from ..api.simulate_batch import BatchSimulation
    from ..api.variations import RunsRequest
    from ..description.model import MechanismDescription

MOST_BYTES = 4 * 2 ** 30    # of the states kept
LOST = 0.01                 # of the largest kinetic energy: a balance off by more was lost at a singular position
WATCHED = 200_000           # states among which singular positions are looked for
INSTANTS = 8                # that are printed


def simulate(
        name: Annotated[str, typer.Argument(
            help='Name of a file in config/machines or config/mechanisms, n_four_bar:N, or a path.')],
        output: Annotated[Path, typer.Option('-o', '--output', help='Bag of a machine; folder of a mechanism.')],
        payload: Annotated[float | None, typer.Option(help='Machine: true payload, kg. [50]')] = None,
        seed: Annotated[int | None, typer.Option(
            help="Machine: seed of the sensors' noise. With --runs: of what is drawn. [1]")] = None,
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
        duration: Annotated[float | None, typer.Option(
            help='Length, s; the cycle of a machine is repeated. [5, of a machine the cycle once]')] = None,
        dt: Annotated[float | None, typer.Option(help='Mechanism: step, s. [0.001]')] = None,
        scheme: Annotated[str | None, typer.Option(
            help='Mechanism: forward_euler, augmented_euler, exponential, trapezoid, rk4, ali3p, dop853, '
                 'radau or cvodes. '
                 '[exponential]')] = None,
        order: Annotated[str | None, typer.Option(
            help='Mechanism: of the exponential scheme, 0 to 4 or exact. [exact]')] = None,
        coordinates: Coordinates = None,
        independent: Annotated[str | None, typer.Option(
            help="Mechanism: independent coordinates, separated by commas, or auto. [the file's]")] = None,
        pictures: Annotated[bool | None, typer.Option(
            '--pictures/--no-pictures', help='Mechanism: plots and an animation. [of 500 steps and more]')] = None,
        runs: Annotated[int | None, typer.Option(
            help='Mechanism: as many runs, each with numbers drawn from the standard deviations of the file and of '
                 '--vary.')] = None,
        vary: Annotated[list[str] | None, typer.Option(
            help="With --runs: standard deviation of a start (theta='2 deg', theta_dot=0.1) or of a number of the file "
                 '(crank=1%, in SI without a percent sign) about its value; 0: it stays; repeat it.')] = None,
        outputs: Annotated[int | None, typer.Option(
            help='With --runs: instants after the start in the tables, a divisor of the steps. [about 100]')] = None,
        states: Annotated[bool | None, typer.Option(
            '--states', help='With --runs: the states of all runs in runs.npz too.')] = None,
        jobs: Annotated[int | None, typer.Option(help='With --runs: threads. [all processors]')] = None,
        cluster: Cluster = None,
        json_: Annotated[Path | None, typer.Option(
            '--json', help='Mechanism: write the summary to this file too.')] = None) -> None:
    """Simulate a machine to a bag, or motions of a mechanism.

    With --runs many motions, with numbers drawn at random.
    """
    from ..description.load import describe
    machine = {'payload': payload, 'cycle': cycle, 'ramp': ramp, 'rate': rate, 'storage': storage,
               'base-roll': base_roll, 'base-pitch': base_pitch, 'soil': soil, 'swing': swing}
    mechanism: dict[str, object] = {
        'dt': dt, 'scheme': scheme, 'order': order, 'coordinates': coordinates,
        'independent': independent, 'pictures': pictures}
    many = {'vary': vary or None, 'outputs': outputs, 'states': states, 'jobs': jobs,
            'cluster': cluster}
    description = describe(name)
    if description.cylinders:
        refuse_options('a mechanism', {**mechanism, 'runs': runs, **many, 'json': json_})
        simulate_bag(description, output, **_given({**machine, 'seed': seed, 'duration': duration}))
        return
    mechanism |= {'duration': duration, 'independent': independent_of(independent)}
    if runs is not None:
        from ..api.variations import RunsRequest
        refuse_options('a machine', machine)
        _runs(RunsRequest(name, runs=runs, **_given({**mechanism, **many, 'seed': seed})), output, json_)
    else:
        from ..api.results.motion_files import SimulationRequest
        refuse_options('a machine', {**machine, 'seed': seed})
        refuse_options('many runs (--runs)', many)
        _motion(SimulationRequest(name, **_given(mechanism)), output, json_)


def _given(options: Mapping[str, object]) -> dict[str, Any]:
    """The options that were given."""
    return {option.replace('-', '_'): value for option, value in options.items() if value is not None}


def simulate_bag(description: MechanismDescription, output: Path, storage: str = 'mcap', seed: int = 1,
                 rate: float = 100.0, duration: float | None = None, **work: Any) -> None:
    """Simulate and write; the same arguments, those of ``working_machine``, give the same bag.

    Raises DescriptionError, SettingError, BagError.
    """
    from rich.console import Console
    from rich.progress import track

    from ..bags.writer import BagWriter, write_frame
    from ..machine import Machine
    from ..simulation.work import frame_count, working_machine
    machine = Machine(description)
    crane = working_machine(machine, seed=seed, rate=rate, duration=duration, **work)
    count = frame_count(crane, duration)
    with BagWriter(output, storage, frame=machine.name) as writer:
        for _ in track(range(count), f'simulating {machine.name}', transient=True, disable=not Console().is_terminal):
            write_frame(writer, machine, crane.frame())
    typer.echo(f'wrote {output}: {duration or crane.cycle.duration:.1f} s at {rate:g} Hz, payload {crane.payload:g} kg'
               f'{" at times" if len(crane.cycle.load) > 1 else ""}, seed {seed}')


def _motion(request: SimulationRequest, output: Path, json_file: Path | None) -> None:
    """Simulate and write; a motion that fails on the way is written up to there, then its error is raised.

    Raises DescriptionError where the start does not determine the motion, typer.Exit with status 1 after a motion
    through singular positions that lost the balance of its energy.
    """
    import numpy as np

    from ..api.results.motion_files import WORTH, motion_json, write_motion, write_pictures
    from ..dynamics.model import load_model
    from ..dynamics.motion import simulate as integrate
    from ..dynamics.singular import check_start, passes
    from ..report.files import check_file, check_folder, write_json
    check_folder(output)
    check_file(json_file)
    model = load_model(request.name, request.coordinates)
    check_start(model)
    begin = time.perf_counter()
    motion = integrate(model, request.duration, request.dt, request.scheme, stop=False, **request.options,
                      independent='auto' if request.independent == () else request.independent)
    seconds = time.perf_counter() - begin
    singular = passes(model, motion.t, motion.q) if len(motion.t) <= WATCHED else list(motion.singular_times)
    output.mkdir(parents=True, exist_ok=True)
    summary = {**motion_json(request, model, motion, seconds), 'singular_times_s': singular}
    write_motion(model, motion, output / 'motion.csv')
    write_json(output / 'summary.json', summary)
    write_json(json_file, summary)
    if request.pictures if request.pictures is not None else len(motion.t) > WORTH:
        write_pictures(model, motion, output)
    for warning in motion.warnings:
        typer.echo(f'warning: {warning}', err=True)
    typer.echo(f'wrote {output}: {len(motion.t)} states over {motion.t[-1] - motion.t[0]:g} s by {request.scheme}, '
               f'energy balance within {np.max(np.abs(motion.balance)):.3g} J, constraints within '
               f'{np.max(motion.violation, initial=0.0):.3g}')
    if motion.failure is not None:
        raise motion.failure
    if singular:
        instants = ', '.join(f'{t:.6g}' for t in singular[:INSTANTS]) + ', ...' * (len(singular) > INSTANTS)
        typer.echo(f'warning: the motion passes singular positions at t = {instants} s: there a loop could go on in '
                   'another way, and only its inertia decides', err=True)
        if np.max(np.abs(motion.balance)) > LOST * np.max(motion.kinetic):
            raise typer.Exit(1)


def _runs(request: RunsRequest, output: Path, json_file: Path | None) -> None:
    """Simulate and write; failed runs are reported; where none was completed, the error of the first is raised."""
    import numpy as np

    from ..api.results.runs_tables import runs_json, write_arrays, write_ends, write_picture, write_quantiles
    from ..api.simulate_batch import BatchSimulation, simulate_batch
    from ..api.variations import by_cluster, drawn, varied_model
    from ..dynamics.motion import step_count
    from ..report.files import check_file, check_folder, write_json
    check_folder(output)
    check_file(json_file)
    every = request.every
    model, varied = varied_model(request.name, request.coordinates, request.independent, request.vary)
    if request.runs > 1 and not any(item.stddev for item in varied) and not np.any(model.system.values.stddev):
        raise SettingError('--runs', request.runs, f'something that differs, --vary NAME=STDDEV: no number of '
                           f'{model.description.name} has a standard deviation')
    starts, parameters = drawn(request, varied)
    kept = 16 * len(model.names) * request.runs * (step_count(request.duration, request.dt) // every + 1)
    if kept > MOST_BYTES:
        raise SettingError('--outputs', request.outputs, f'fewer instants, or fewer runs: {kept / 2 ** 30:.3g} GiB of '
                           f'states, at most {MOST_BYTES >> 30}')
    wall, processor = time.perf_counter(), time.process_time()
    if request.cluster is not None:
        result = BatchSimulation(model, by_cluster(request))
    else:
        result = simulate_batch(model, request.duration, request.dt, request.scheme, runs=request.runs, starts=starts,
                                parameters=parameters, every=every, seed=request.seed, jobs=request.jobs,
                                options=request.options)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    output.mkdir(parents=True, exist_ok=True)
    summary = {**runs_json(request, result, varied), 'seed': request.seed, 'wall_s': wall, 'processor_s': processor,
               'us_per_step': 1e6 * processor / max(1, int(result.batch.steps.sum()))}
    write_ends(result, starts, output / 'ends.csv')
    write_quantiles(result, output / 'quantiles.csv')
    write_arrays(result, starts, request.states, output / 'runs.npz')
    write_json(output / 'summary.json', summary)
    write_json(json_file, summary)
    if request.pictures is not False and result.completed.any():
        write_picture(result, output / 'quantiles.png')
    _say(result, output)


def _warn_of_signs(result: BatchSimulation) -> None:
    """A length or a mass below zero moves on as if it could be."""
    means = result.model.system.values.mean
    for (name, values), mean in zip(result.parameters.items(), means):
        if mean and (count := int((values * mean <= 0).sum())):
            typer.echo(f'warning: {name}: {count} of {len(values)} drawn numbers have not the sign of {mean:g}',
                       err=True)


def _say(result: BatchSimulation, output: Path) -> None:
    """One line on what was written, one for each kind of failure."""
    from ..api.results.runs_tables import failures_of
    _warn_of_signs(result)
    for item in failures_of(result):
        typer.echo(f'warning: {item["runs"]} of {len(result.q)} runs failed by {item["error"]}, from '
                   f'{item["earliest_s"]:g} s on; run {item["first_run"]}: {item["reason"]}', err=True)
    typer.echo(f'wrote {output}: {int(result.completed.sum())} of {len(result.q)} runs complete over '
               f'{result.t[-1] - result.t[0]:g} s, {len(result.t)} instants')
    if not result.completed.any() and (first := result.batch.failures[0]) is not None:
        raise first
