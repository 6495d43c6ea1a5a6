# SPDX-License-Identifier: Apache-2.0
"""What is simulated of a mechanism, and its motion, energies and constraint violation as table, JSON and pictures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...description.coordinate_units import columns_of, input_unit, unit_of
from ...dynamics.integrators import INTEGRATORS
from ...dynamics.model import Model
from ...dynamics.motion import Motion
from ...errors import SettingError, check_choice
from ...report.chart import Curve, Panel
from ...report.files import write_table

LONGEST = 10_000_000        # steps
WORTH = 500                 # steps from which a motion is worth pictures that were not asked for
_FRAMES = 75                # of the animation
_CURVES = 8                 # coordinates in the plot
_PANELS = {'rad': 'angles', 'm': 'lengths', '': 'others'}


@dataclass(frozen=True)
class SimulationRequest:
    """What to simulate; ``independent``: names, empty: to be chosen, or None for the file's; ``pictures``: None for
    those of a motion of at least ``WORTH`` steps."""

    name: str
    duration: float = 5.0
    dt: float = 1e-3
    scheme: str = 'exponential'
    order: str | None = None
    coordinates: str | None = None
    independent: tuple[str, ...] | None = None
    pictures: bool | None = None

    def __post_init__(self) -> None:
        check_choice('--scheme', self.scheme, INTEGRATORS)
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

    def of(self, model: Model) -> dict[str, Any]:
        """What was simulated, and how, as JSON."""
        return {'mechanism': model.description.name, 'file': model.description.file,
                'coordinates': self.coordinates or model.description.coordinate_type, 'scheme': self.scheme,
                'order': self.order, 'dt_s': self.dt, 'duration_s': self.duration}


def motion_json(request: SimulationRequest, model: Model, motion: Motion, seconds: float) -> dict[str, Any]:
    """The result in figures, SI."""
    end = {name: {'position': motion.q[-1, i], 'velocity': motion.qd[-1, i],
                  'unit': unit_of(model.description, name)} for i, name in enumerate(motion.names)}
    return request.of(model) | {
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
               *(f'input {name} [{input_unit(model.description, name).partition(" or ")[0].replace(" ", "*")}]'
                 for name in model.inputs),
               'kinetic [J]', 'potential [J]', 'power [W]', 'work [J]', 'violation [SI]']
    write_table(path, columns, [motion.t, *motion.q.T, *motion.qd.T, *motion.qdd.T, *motion.inputs.T, motion.kinetic,
                                motion.potential, motion.power, motion.work, motion.violation])


def write_pictures(model: Model, motion: Motion, output: Path) -> None:
    """Plots of coordinates, energy and constraints, and the animation."""
    from ...report.linkage_drawing import write_animation  # here: slow to import
    from ...report.plots import write_plots
    from .mechanism_picture import Picture
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
