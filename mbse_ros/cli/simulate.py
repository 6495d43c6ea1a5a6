# SPDX-License-Identifier: Apache-2.0
"""``mbse simulate``: a machine to a bag, a motion of a mechanism, or many with numbers drawn at random."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import SettingError, refuse_options
from .arguments import Cluster, Coordinates, hand_over, independent_of


def simulate(
        name: Annotated[str, typer.Argument(
            help='Name of a file in config/machines or config/mechanisms, n_four_bar:N, or a path.')],
        output: Annotated[Path, typer.Option('-o', '--output', help='Bag of a machine; folder of a mechanism.')],
        payload: Annotated[str | None, typer.Option(
            help='Machine: true payload, kg; of several NAME=MASS,NAME=MASS. [50]')] = None,
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
        physics: Annotated[str | None, typer.Option(
            help="Machine: what it has beyond its file, e.g. 'bending=2 ripple=3 bar', or a file .yaml "
                 '(docs/reality.md).')] = None,
        duration: Annotated[float | None, typer.Option(
            help='Length, s; the cycle of a machine is repeated. [5, of a machine the cycle once]')] = None,
        dt: Annotated[float | None, typer.Option(help='Mechanism: step, s. [0.001]')] = None,
        scheme: Annotated[str | None, typer.Option(
            help='Mechanism: forward_euler, augmented_euler, exponential, trapezoid, rk4, ali3p, dop853, '
                 'radau or cvodes. '
                 '[exponential, in all coordinates rk4]')] = None,
        order: Annotated[str | None, typer.Option(
            help='Mechanism: of the exponential scheme, 0 to 4 or exact. [exact]')] = None,
        formulation: Annotated[str | None, typer.Option(
            help='Mechanism: matrix_r, semi_recursive, kkt, kkt_sparse, penalty, udwadia_kalaba, '
                 'udwadia_kalaba_recursive, projection_complement, projection_inverse, projection_one_inverse or '
                 'projection_orthonormal. '
                 '[matrix_r]')] = None,
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
    from ..report.files import check_file, check_folder
    machine: dict[str, object] = {
        'payload': payload, 'cycle': cycle, 'ramp': ramp, 'rate': rate, 'storage': storage,
        'base_roll': base_roll, 'base_pitch': base_pitch, 'soil': soil, 'swing': swing, 'physics': physics}
    mechanism: dict[str, object] = {'dt': dt, 'scheme': scheme, 'order': order}
    others: dict[str, object] = {'formulation': formulation, 'coordinates': coordinates, 'independent': independent,
                                 'pictures': pictures}
    many = {'vary': vary or None, 'outputs': outputs, 'states': states, 'jobs': jobs, 'cluster': cluster}
    wrote = f'wrote {output}: '
    check_folder(output)
    if describe(name).is_machine:
        refuse_options('a mechanism', {**mechanism, **others, 'runs': runs, **many, 'json': json_})
        from ..api.simulate import simulate_bag
        from ..machine import load_machine
        from ..report.text import tracked
        from ..simulation.work import masses_of, physics_in
        machine['payload'] = None if payload is None else masses_of(payload)
        machine['physics'] = None if physics is None else physics_in(physics)
        hand_over(simulate_bag(load_machine(name), output, tracked=tracked, **_given(
            {**machine, 'seed': seed, 'duration': duration})), None, wrote=wrote)
        return
    refuse_options('a machine', {**machine, 'seed': seed if runs is None else None})
    if order is not None and scheme not in (None, 'exponential'):
        raise SettingError('order', order, 'no such option here: it is for the scheme exponential')
    check_file(json_)
    mechanism['duration'], chosen = duration, independent_of(independent)
    if runs is not None:
        refuse_options('one run (no --runs)', {'formulation': formulation})
        from ..api.simulate_batch import RunsRequest, simulate_varied
        request = RunsRequest(name, runs=runs, **_given({
            **mechanism, 'coordinates': coordinates, 'independent': chosen, 'seed': seed, 'vary': vary,
            'outputs': outputs, 'jobs': jobs, 'cluster': cluster}))
        batch = simulate_varied(request)
        hand_over(batch, json_, write=partial(batch.report, output, bool(states), pictures), wrote=wrote)
        if not batch.completed.any() and (first := batch.batch.failures[0]) is not None:
            raise first
        return
    refuse_options('many runs (--runs)', many)
    from ..api.simulate import simulate_motion
    from ..dynamics.model import load_model
    options = _given({'order': mechanism.pop('order'), 'independent': 'auto' if chosen == () else chosen})
    motion = simulate_motion(load_model(name, coordinates), sensors=(), stop=False, options=options,
                             **_given({**mechanism, 'formulation': formulation}))
    hand_over(motion, json_, write=partial(motion.report, output, pictures), wrote=wrote)
    if motion.motion.failure is not None:
        raise motion.motion.failure
    if motion.lost:
        raise typer.Exit(1)


def _given(options: Mapping[str, object]) -> dict[str, Any]:
    """The options that were given."""
    return {option: value for option, value in options.items() if value is not None}
