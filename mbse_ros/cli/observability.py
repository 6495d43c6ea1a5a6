# SPDX-License-Identifier: Apache-2.0
"""``mbse observability``: what a choice of sensors sees of a state, and what would help."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import SettingError, check_choice
from .arguments import Json, Plots, names_of

if TYPE_CHECKING:
    from ..description.model import MechanismDescription
    from ..dynamics.model import Model
    from ..estimators.filters.analysis.observability import SampledMotion, StateObservability
    from ..estimators.observability.payload_observability import PayloadObservability
    from ..machine import Machine

MEANING = {'simple': 'constant velocity (DEKF, errorEKF)',
           'exact': 'derivatives of the accelerations (errorEKF_EJ, UKF)',
           'force': 'the same with an unknown force (errorEKF_FE)'}
FALLING = ("at rest 'exact' sees only by the acceleration with which the weight would set it in motion; what holds the "
           "mechanism is a force that it does not know: use 'force'")


@dataclass(frozen=True)
class ObservabilityRequest:
    """What to look at; ``model``: a transition of the filters, or None for all."""

    mechanism: str
    sensors: str
    trajectory: str = 'free'
    duration: float = 4.0
    window: float = 0.5
    model: str | None = None


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
    """Say what the sensors of a mechanism can see.

    Rank and condition along the motion, directions that are blind, the sensor that would help most.
    """
    request = ObservabilityRequest(mechanism, sensors, trajectory, duration, window, model)
    check_request(request)
    observability_command(request, json_, output)


def check_request(request: ObservabilityRequest) -> None:
    """Raises SettingError."""
    from ..api.observability import STEP, TRAJECTORIES
    from ..estimators.filters.parts.linearised import MODELS
    check_choice('--model', request.model or MODELS[0], MODELS)
    if request.trajectory not in TRAJECTORIES and not Path(request.trajectory).is_file():
        raise SettingError('--trajectory', request.trajectory, 'free, rest, or the CSV file of a motion')
    if not (math.isfinite(request.duration) and 2 * STEP <= request.window <= request.duration <= 1000.0):
        raise SettingError('--duration', request.duration, f'seconds, from --window ({request.window:g}) up to 1000')


def observability_command(request: ObservabilityRequest, json_file: Path | None, output: Path | None) -> None:
    """Simulate, look, print, write; of a machine over its poses."""
    from ..api.observability import state_json
    from ..description.load import load_mechanism
    from ..dynamics.model import load_model
    from ..estimators.filters.analysis.observability import state_observability
    from ..estimators.filters.parts.linearised import MODELS
    from ..report.files import check_file, check_folder, write_json
    check_file(json_file)
    check_folder(output)
    description, chosen = load_mechanism(request.mechanism), names_of(request.sensors, '--sensors', 1)
    if description.cylinders:
        observe_machine(description, request, chosen, json_file, output)
        return
    model = load_model(request.mechanism)
    kinds = [request.model] if request.model else list(MODELS)
    found = state_observability(model, chosen, motion_of(model, request), kinds, request.window)
    write_json(json_file, {'mechanism': model.description.name, 'sensors': chosen, 'trajectory': request.trajectory,
                           'window_s': request.window,
                           'results': [state_json(item) for item in found]})
    if output is not None:
        write_observability_plots(found, request.window, output)
    show(model, request, chosen, found)


def motion_of(model: Model, request: ObservabilityRequest) -> SampledMotion:
    """The free motion from the start, one window of standing there, or the motion of a table."""
    from ..api.observability import TRAJECTORIES, motion_along, read_trajectory
    if request.trajectory not in TRAJECTORIES:
        motion = read_trajectory(Path(request.trajectory), model)
        if motion.t[-1] - motion.t[0] < request.window:
            raise SettingError('--window', request.window, f'up to {motion.t[-1] - motion.t[0]:g} s, the motion of '
                               + request.trajectory)
        return motion
    return motion_along(model, request.trajectory, request.duration, request.window)


def write_observability_plots(found: Sequence[StateObservability], window: float, folder: Path) -> None:
    """Information of each direction over the windows; what is not seen lies on the lower edge."""
    from ..api.observability import STEP, information_panel, middles
    from ..report.plots import write_plots  # here, because plots take their time to import
    plots = [information_panel(observed, middles(observed, STEP, window)) for observed in found]
    folder.mkdir(parents=True, exist_ok=True)
    write_plots(plots, folder / 'observability.png')


def show(model: Model, request: ObservabilityRequest, sensors: list[str], found: list[StateObservability]) -> None:
    """Verdict of each transition model, then what would help."""
    import numpy as np

    from ..report.sections import print_table, wide_console
    from ..report.text import number
    console = wide_console()
    where = {'rest': 'at rest', 'free': f'moving freely for {request.duration:g} s'}.get(
        request.trajectory, f'along {Path(request.trajectory).name}')
    rows = []
    for observed in found:
        conditions = [window.condition for window in observed.windows]
        rows.append([observed.model, observed.verdict, f'{observed.rank} of {len(observed.names)}',
                     number(float(np.median(conditions))), number(observed.least), _blind(observed)])
    print_table(console, f'{model.description.name} {where}, seen by {", ".join(sensors)} in {request.window:g} s',
                ['model', 'verdict', 'rank', 'condition', 'least information', 'not seen'], rows)
    for observed in found:
        typer.echo(f'{observed.model}: {MEANING[observed.model]}. {_help(observed)}')
    typer.echo('information: 1 halves the variance of 0.1 rad (m), 0.5 rad/s (m/s), or of a force of 5 rad/s2 (m/s2)')
    if request.trajectory == 'rest' and any(observed.model == 'exact' for observed in found):
        typer.echo(FALLING)


def _blind(observed: StateObservability) -> str:
    count = len(observed.windows)
    return '; '.join(words if found == count else f'{words} ({found} of {count} windows)'
                     for words, found in observed.blind.items()) or '–'


def _help(observed: StateObservability) -> str:
    """The sensor that would help most, in words."""
    from ..report.text import number
    if not observed.helpers:
        return 'The mechanism has no other sensor.'
    name, least = next(iter(observed.helpers.items()))
    if least <= observed.least or least == 0.0:
        return 'No other sensor of the mechanism would help alone.'
    gain = f'{number(least / observed.least)} times the least information' if observed.least else (
        f'it would see all, with least information {number(least)}')
    return f'{name} would help most: {gain}.'


def observe_machine(description: MechanismDescription, request: ObservabilityRequest, sensors: Sequence[str],
                    json_file: Path | None, output: Path | None) -> None:
    """Look, print, write."""
    from ..api.observability import (
        few_of,
        more_pressures,
        payload_by_poses,
        payload_json,
        sets_along,
        state_json,
        weighing_by,
        weighing_lines,
    )
    from ..estimators.observability.machine_observability import machine_observability
    from ..machine import Machine
    from ..report.files import write_json
    if request.model is not None:
        raise SettingError('--model', request.model, 'no such option for a machine: its motion is looked at as the '
                           'observer does, with constant accelerations')
    machine = Machine(description)
    for name in sensors:
        check_choice('--sensors', name, description.sensors)
    sets = sets_along(machine, request.trajectory)
    where, widest = list(sets.items())[-1]
    motion = machine_observability(machine, sensors, few_of(widest), request.window)
    payload = payload_by_poses(machine, sensors, sets)
    weighing = weighing_by(machine, sensors)
    better = more_pressures(machine, sensors, widest)
    write_json(json_file, {'machine': machine.name, 'sensors': list(sensors), 'trajectory': request.trajectory,
                           'window_s': request.window, 'motion': state_json(motion),
                           'weighing': None if weighing is None else {**weighing.each, 'all': weighing.all},
                           'payload': {label: payload_json(observed) for label, observed in payload.items()}})
    if output is not None:
        write_observability_plots([motion], request.window, output)
    show_machine(machine, motion, payload, better, where)
    for line in weighing_lines(machine, sensors, weighing):
        typer.echo(line)


def show_machine(machine: Machine, motion: StateObservability, payload: dict[str, PayloadObservability],
                 better: dict[str, PayloadObservability], where: str) -> None:
    """The motion in a sentence or two, the payload in a line for each set of poses, and what would help."""
    blind = '; '.join(f'{words} ({count} of {len(motion.windows)} places)' for words, count in motion.blind.items())
    typer.echo(f'{machine.name}, motion: {motion.verdict}' + (f': not seen: {blind}' if blind else ''))
    if blind:
        typer.echo('  ' + _helper(motion))
    if machine.description.payload is None:
        typer.echo('payload: the machine has none')
        return
    if not payload:
        typer.echo('payload: not seen: of no cylinder are all pressures among the sensors')
    else:
        typer.echo('payload, mass and centre by the pressures, positions known; poses of')
    for label, observed in payload.items():
        rest = f'; not: {"; ".join(observed.blind)}' if observed.blind else (
            f', after a sample a pose to {_stddev(observed)}')
        typer.echo(f'  {label}: {observed.rank} of {len(observed.stddev)} directions seen{rest}')
    for line in advice(payload):
        typer.echo(line)
    for names, observed in better.items():
        more = observed.rank - (payload[list(payload)[-1]].rank if payload else 0)
        typer.echo(f'with {names}, over {where}: {observed.rank} seen, {more or "no"} more')


def advice(payload: dict[str, PayloadObservability]) -> list[str]:
    """Which motions see more than the start does, and what no motion sees."""
    from ..api.observability import ALL, MOVING, START
    if START not in payload or len(payload) == 1:
        return []
    start, still, moving = payload[START].rank, payload[ALL], payload[MOVING]
    helping = [label for label, observed in payload.items() if label.endswith(' alone') and observed.rank > start]
    lines = [f'more than at the start is seen by moving {", ".join(label.removesuffix(" alone") for label in helping)}'
             if helping else 'no coordinate moved alone shows more than the start does']
    if still.blind:
        lines.append(f'no pose shows {"; ".join(still.blind)}' + (
            ': accelerations do' if not moving.blind else ', nor do accelerations: these pressures cannot; take a load '
            'whose centre is known'))
    return lines


def _stddev(observed: PayloadObservability) -> str:
    """Of mass and centre, 1 sigma."""
    from ..report.text import number
    return f'{number(float(observed.stddev[0]))} kg and {", ".join(number(float(v)) for v in observed.stddev[1:])} m'


def _helper(motion: StateObservability) -> str:
    if not motion.helpers:
        return 'the machine has no other sensor that would help'
    name, least = next(iter(motion.helpers.items()))
    return f'{name} would help most' + (': it would see all' if least > 0.0 else ', but not alone')
