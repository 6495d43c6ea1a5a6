# SPDX-License-Identifier: Apache-2.0
"""``mbse simulate`` of a mechanism: motion, energies and constraint violation as table and JSON, plots, animation."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ...description.coordinate_units import columns_of, unit_of
from ...dynamics.integrators import INTEGRATORS
from ...dynamics.model import Model, load_model
from ...dynamics.motion import Motion, simulate
from ...dynamics.singular import check_start, passes
from ...errors import SettingError
from ...report.chart import Curve, Panel
from ...report.files import check_file, check_folder, write_json, write_table
from ..arguments import independent_of

LONGEST = 10_000_000        # steps
WORTH = 500                 # steps from which a motion is worth pictures that were not asked for
_FRAMES = 75                # of the animation
_LOST = 0.01        # of the largest kinetic energy: a balance that is off by more was lost at a singular position
_WATCHED = 200_000          # states among which singular positions are looked for
_INSTANTS = 8               # that are printed
_CURVES = 8                 # coordinates in the plot
_PANELS = {'rad': 'angles', 'm': 'lengths', '': 'others'}


@dataclass(frozen=True)
class SimulationRequest:
    """What to simulate; ``independent``: names separated by commas, 'auto', or None for the file's; ``pictures``:
    None for those of a motion of at least ``WORTH`` steps."""

    name: str
    duration: float = 5.0
    dt: float = 1e-3
    scheme: str = 'exponential'
    order: str | None = None
    coordinates: str | None = None
    independent: str | None = None
    pictures: bool | None = None

    def __post_init__(self) -> None:
        if self.scheme not in INTEGRATORS:
            raise SettingError('--scheme', self.scheme, 'one of ' + ', '.join(INTEGRATORS))
        for option, value in (('--dt', self.dt), ('--duration', self.duration)):
            if not (math.isfinite(value) and value > 0):
                raise SettingError(option, value, 'a number of seconds above 0')
        if self.duration / self.dt > LONGEST:
            raise SettingError('--dt', self.dt, f'at most {LONGEST} steps over --duration: a longer step')
        if self.order is not None and self.scheme != 'exponential':
            raise SettingError('--order', self.order, 'no such option here: it is for the scheme exponential')

    @property
    def options(self) -> dict[str, Any]:
        """Options of the scheme."""
        return {} if self.order is None else {'order': self.order}


def simulate_mechanism(request: SimulationRequest, output: Path, json_file: Path | None = None) -> None:
    """Simulate and write; a motion that fails on the way is written up to there, then its error is raised.

    Raises DescriptionError where the start does not determine the motion, typer.Exit with status 1 after a motion
    through singular positions that lost the balance of its energy.
    """
    check_folder(output)
    check_file(json_file)
    model = load_model(request.name, request.coordinates)
    check_start(model)
    begin = time.perf_counter()
    chosen = independent_of(request.independent)
    motion = simulate(model, request.duration, request.dt, request.scheme, stop=False, **request.options,
                      independent='auto' if chosen == () else chosen)
    seconds = time.perf_counter() - begin
    singular = passes(model, motion.t, motion.q) if len(motion.t) <= _WATCHED else list(motion.singular_times)
    output.mkdir(parents=True, exist_ok=True)
    summary = {**summary_of(request, model, motion, seconds), 'singular_times_s': singular}
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
        instants = ', '.join(f'{t:.6g}' for t in singular[:_INSTANTS]) + ', ...' * (len(singular) > _INSTANTS)
        typer.echo(f'warning: the motion passes singular positions at t = {instants} s: there a loop could go on in '
                   'another way, and only its inertia decides', err=True)
        if np.max(np.abs(motion.balance)) > _LOST * np.max(motion.kinetic):
            raise typer.Exit(1)


def summary_of(request: SimulationRequest, model: Model, motion: Motion, seconds: float) -> dict[str, Any]:
    """The result in figures, SI."""
    end = {name: {'position': motion.q[-1, i], 'velocity': motion.qd[-1, i],
                  'unit': unit_of(model.description, name)} for i, name in enumerate(motion.names)}
    return {
        'mechanism': model.description.name, 'file': model.description.file,
        'coordinates': request.coordinates or model.description.coordinate_type, 'scheme': request.scheme,
        'order': request.order, 'dt_s': request.dt, 'duration_s': request.duration,
        'reached_s': motion.t[-1], 'states': len(motion.t), 'evaluations': motion.evaluations,
        'seconds': seconds, 'degrees_of_freedom': model.degrees_of_freedom,
        'independent': [{'since_s': t, 'names': names} for t, names in motion.choices],
        'end': end,
        'energy': {'start_J': motion.energy[0], 'end_J': motion.energy[-1],
                   'work_J': motion.work[-1], 'largest_error_J': np.max(np.abs(motion.balance))},
        'violation': {'position': np.max(motion.violation, initial=0.0),
                      'velocity': np.max(motion.violation_rate, initial=0.0)},
        'singular_times_s': motion.singular_times, 'warnings': motion.warnings,
        'failure': None if motion.failure is None else str(motion.failure)}


def write_motion(model: Model, motion: Motion, path: Path) -> None:
    """All over time, one column each, units in the heading."""
    columns = ['t [s]', *columns_of(model.description, model.names, '', '_dot', '_ddot'),
               *(f'input {name} [{input_unit(model, name)}]' for name in model.inputs),
               'kinetic [J]', 'potential [J]', 'power [W]', 'work [J]', 'violation [SI]']
    write_table(path, columns, [motion.t, *motion.q.T, *motion.qd.T, *motion.qdd.T, *motion.inputs.T, motion.kinetic,
                                motion.potential, motion.power, motion.work, motion.violation])


def input_unit(model: Model, name: str) -> str:
    """N or N*m."""
    force = next(force for force in model.description.forces.values() if force.input == name)
    turning = bool(force.body) or force.coordinate and unit_of(model.description, force.coordinate) == 'rad'
    return 'N*m' if turning else 'N'


def write_pictures(model: Model, motion: Motion, output: Path) -> None:
    """Plots of coordinates, energy and constraints, and the animation."""
    from ...api.results.mechanism_picture import Picture
    from ...report.linkage_drawing import write_animation  # here: slow to import
    from ...report.plots import write_plots
    write_plots(_coordinates(model, motion), output / 'coordinates.png')
    t = motion.t
    energies = Panel('Energy', 'J', [
        Curve('kinetic', t, motion.kinetic), Curve('potential', t, motion.potential), Curve('sum', t, motion.energy),
        Curve('work of loads, drivers, dampers', t, motion.work, kind='dashes')])
    balance = Panel('Energy balance: sum, less its start and the work', 'J', [Curve('', t, motion.balance)],
                    note=f'largest {np.max(np.abs(motion.balance)):.3g} J')
    write_plots([energies, balance], output / 'energy.png')
    rates = [Curve('positions', *_worst(t, motion.violation)), Curve('velocities', *_worst(t, motion.violation_rate))]
    write_plots([Panel('Constraint violation', 'largest of all rows, SI', rates, y_scale='log')],
                output / 'constraints.png')
    frames = np.unique(np.searchsorted(t, np.linspace(t[0], t[-1], _FRAMES)).clip(0, len(t) - 1))
    picture = Picture(model)
    write_animation([picture.at(motion.q[k]) for k in frames], t[frames], output / 'animation.gif')


def _worst(t: np.ndarray, violation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest value in each of up to 400 stretches of time; zeros are shown at the rounding error."""
    starts = np.unique(np.linspace(0, len(t), min(400, len(t)), endpoint=False).astype(int))
    return t[starts], np.maximum(np.maximum.reduceat(violation, starts), 1e-17)


def _coordinates(model: Model, motion: Motion) -> list[Panel]:
    """Positions and velocities of the named and independent coordinates, else of the first ones; by unit."""
    chosen = [*model.description.coordinates, *model.independent]
    names = list(dict.fromkeys(name for name in chosen if name in motion.names)) or list(motion.names)
    plots = []
    for unit, words in _PANELS.items():
        group = [name for name in names if unit_of(model.description, name) == unit][:_CURVES]
        if group:
            plots += [Panel(f'Coordinates: {words}', unit or '1',
                            [Curve(name, motion.t, motion.of(name)) for name in group]),
                      Panel(f'Their velocities: {words}', f'{unit or 1}/s',
                            [Curve(name, motion.t, motion.of(name, 1)) for name in group])]
    return plots
