# SPDX-License-Identifier: Apache-2.0
"""``mbse observability``: what a choice of sensors sees of a state, and what would help."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..description.load import load_mechanism
from ..dynamics.model import Model, load_model
from ..dynamics.motion import simulate
from ..errors import SettingError
from ..estimators.filters.linearised import MODELS
from ..estimators.filters.sight import Motion, Sight, sights
from ..estimators.observability import BLIND
from ..report.text import number
from ..report.files import check_file, check_folder, write_json
from ..report.sections import print_table, wide_console
from .arguments import names_of
from .trajectory import read_trajectory

STEP = 5e-3             # s
TRAJECTORIES = ('free', 'rest')
MEANING = {'simple': 'constant velocity (DEKF, errorEKF)',
           'exact': 'derivatives of the accelerations (errorEKF_EJ, UKF)',
           'force': 'the same with an unknown force (errorEKF_FE)'}
FALLING = ("at rest 'exact' sees only by the acceleration with which the weight would set it in motion; what holds the "
           "mechanism is a force that it does not know: 'force' is the honest one")


@dataclass(frozen=True)
class Request:
    """What to look at; ``model``: a transition of the filters, or None for all."""

    mechanism: str
    sensors: str
    trajectory: str = 'free'
    duration: float = 4.0
    window: float = 0.5
    model: str | None = None

    def __post_init__(self) -> None:
        if (self.model or MODELS[0]) not in MODELS:
            raise SettingError('--model', self.model, 'one of ' + ', '.join(MODELS))
        if self.trajectory not in TRAJECTORIES and not Path(self.trajectory).is_file():
            raise SettingError('--trajectory', self.trajectory, 'free, rest, or the CSV file of a motion')
        if not (math.isfinite(self.duration) and 2 * STEP <= self.window <= self.duration <= 1000.0):
            raise SettingError('--duration', self.duration, f'seconds, from --window ({self.window:g}) up to 1000')


def observability_command(request: Request, json_file: Path | None, output: Path | None) -> None:
    """Simulate, look, print, write; of a machine over its poses."""
    check_file(json_file)
    check_folder(output)
    description, chosen = load_mechanism(request.mechanism), names_of(request.sensors, '--sensors', 1)
    if description.cylinders:
        from .observability_machine import observe_machine
        observe_machine(description, request, chosen, json_file, output)
        return
    model = load_model(request.mechanism)
    kinds = [request.model] if request.model else list(MODELS)
    found = sights(model, chosen, motion_of(model, request), kinds, request.window)
    write_json(json_file, {'mechanism': model.description.name, 'sensors': chosen, 'trajectory': request.trajectory,
                           'window_s': request.window, 'results': [summary_of(sight, request) for sight in found]})
    if output is not None:
        write_observability_plots(found, request.window, output)
    show(model, request, chosen, found)


def motion_of(model: Model, request: Request) -> Motion:
    """The free motion from the start, one window of standing there, or the motion of a table."""
    if request.trajectory not in TRAJECTORIES:
        motion = read_trajectory(Path(request.trajectory), model)
        if motion.t[-1] - motion.t[0] < request.window:
            raise SettingError('--window', request.window, f'up to {motion.t[-1] - motion.t[0]:g} s, the motion of '
                               + request.trajectory)
        return motion
    if request.trajectory == 'rest':
        count, start = int(round(request.window / STEP)) + 1, model.start
        return Motion(np.tile(start.q, (count, 1)), np.zeros((count, len(start.q))), STEP * np.arange(count), STEP)
    motion = simulate(model, request.duration, STEP, 'trapezoid')
    return Motion(motion.q, motion.qd, motion.t, STEP)


def summary_of(sight: Sight, request: Request) -> dict[str, Any]:
    """The result as JSON."""
    windows = [{'t': window.start * STEP, 'rank': window.rank, 'information': window.information,
                'condition': window.condition} for window in sight.windows]
    helpers = [{'sensor': name, 'least_information': least, 'gain': least / sight.least if sight.least else None}
               for name, least in sight.helpers.items()]
    return {'model': sight.model, 'verdict': sight.verdict, 'states': list(sight.names), 'prior': sight.prior,
            'rank': sight.rank, 'least_information': sight.least, 'blind': sight.blind, 'windows': windows,
            'helpers': helpers}


def write_observability_plots(found: Sequence[Sight], window: float, folder: Path) -> None:
    """Information of each direction over the windows; what is not seen lies on the lower edge."""
    from ..report.plots import Line, Plot, write_plots        # here, because plots take their time to import
    plots = []
    for sight in found:
        t = np.array([item.start * STEP + window / 2 for item in sight.windows])
        information = np.maximum([item.information for item in sight.windows], BLIND)
        lines = [Line(f'direction {k + 1}', t, information[:, k], 'o-') for k in range(len(sight.names))]
        plots.append(Plot(f"model '{sight.model}': information of {window:g} s, {sight.verdict}", 'time [s]',
                          'in units of the prior', lines, y_scale='log',
                          note=f'rank {sight.rank} of {len(sight.names)}'))
    folder.mkdir(parents=True, exist_ok=True)
    write_plots(plots, folder / 'observability.png')


def show(model: Model, request: Request, sensors: list[str], found: list[Sight]) -> None:
    """Verdict of each transition model, then what would help."""
    console = wide_console()
    where = {'rest': 'at rest', 'free': f'moving freely for {request.duration:g} s'}.get(
        request.trajectory, f'along {Path(request.trajectory).name}')
    rows = []
    for sight in found:
        conditions = [window.condition for window in sight.windows]
        rows.append([sight.model, sight.verdict, f'{sight.rank} of {len(sight.names)}',
                     number(float(np.median(conditions))), number(sight.least), _blind(sight)])
    print_table(console, f'{model.description.name} {where}, seen by {", ".join(sensors)} in {request.window:g} s',
                ['model', 'verdict', 'rank', 'condition', 'least information', 'not seen'], rows)
    for sight in found:
        typer.echo(f'{sight.model}: {MEANING[sight.model]}. {_help(sight)}')
    typer.echo('information: 1 halves the variance of 0.1 rad (m), 0.5 rad/s (m/s), or of a force of 5 rad/s2 (m/s2)')
    if request.trajectory == 'rest' and any(sight.model == 'exact' for sight in found):
        typer.echo(FALLING)


def _blind(sight: Sight) -> str:
    count = len(sight.windows)
    return '; '.join(words if found == count else f'{words} ({found} of {count} windows)'
                     for words, found in sight.blind.items()) or '–'


def _help(sight: Sight) -> str:
    """The sensor that would help most, in words."""
    if not sight.helpers:
        return 'The mechanism has no other sensor.'
    name, least = next(iter(sight.helpers.items()))
    if least <= sight.least or least == 0.0:
        return 'No other sensor of the mechanism would help alone.'
    gain = f'{number(least / sight.least)} times the least information' if sight.least else (
        f'it would see all, with least information {number(least)}')
    return f'{name} would help most: {gain}.'
