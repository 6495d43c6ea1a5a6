# SPDX-License-Identifier: Apache-2.0
"""Results of ``simulate``: of a mechanism its motion, energies and constraint violation as table, JSON and pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...description.coordinate_units import columns_of, input_unit, unit_of
from ...dynamics.model import Model
from ...errors import SingularConfigurationError
from ...offline.motion_estimate import motion_series
from ...report.data import Curve, Panel
from ...report.result import Result, ResultSeries
from ...simulation.truth import MachineTruth
from ..samples import Samples

if TYPE_CHECKING:
    from ...dynamics.motion import Motion
    from ...simulation.crane import SensorFrame

LOST = 0.01                 # of the largest kinetic energy: a balance off by more was lost at a singular position
ROUNDING = 1e-6             # J, of a mechanism that stands still
WATCHED = 200_000           # states among which singular positions are looked for
INSTANTS = 8                # of them that are named
WORTH = 500                 # steps from which a motion is worth pictures that were not asked for
_FRAMES = 75                # of the animation
_CURVES = 8                 # coordinates in the plot
_PANELS = {'rad': 'angles', 'm': 'lengths', '': 'others'}


@dataclass(frozen=True, repr=False)
class MotionSimulation(Result):
    """Motion of a mechanism, SI: ``motion`` has all of it (energies, multipliers, violations); ``samples``: what the
    sensors gave, None where none were asked for; ``asked``: by what it was simulated; ``seconds`` that it took.

    ``t`` (k,), ``names`` (n,) of the coordinates, ``q``, ``qd``, ``qdd`` (k, n).
    """

    model: Model
    motion: Motion
    samples: Samples | None
    asked: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = math.nan

    @property
    def t(self) -> np.ndarray:
        """Times (k,), s."""
        return self.motion.t

    @property
    def names(self) -> tuple[str, ...]:
        """Names (n,) of the coordinates."""
        return self.motion.names

    @property
    def q(self) -> np.ndarray:
        """Coordinates (k, n)."""
        return self.motion.q

    @property
    def qd(self) -> np.ndarray:
        """Velocities (k, n)."""
        return self.motion.qd

    @property
    def qdd(self) -> np.ndarray:
        """Accelerations (k, n)."""
        return self.motion.qdd

    def series(self) -> list[ResultSeries]:
        """Coordinates with both rates, the independent ones first, then the energies."""
        return [*self._motion(), *self._energies()]

    def main_series(self) -> list[ResultSeries]:
        """Independent coordinates with both rates, and the energies."""
        return [*self._motion(self.model.independent), *self._energies()]

    @cached_property
    def singular_times(self) -> list[float]:
        """Instants, s, at which it goes through singular positions, looked for in up to ``WATCHED`` states."""
        from ...dynamics.singular import passes  # here, because it takes its time to import
        return passes(self.model, self.t, self.q) if len(self.t) <= WATCHED else list(self.motion.singular_times)

    @property
    def lost(self) -> bool:
        """Whether the balance of the energy was lost at a singular position."""
        motion = self.motion
        return bool(self.singular_times) and bool(np.max(np.abs(motion.balance)) > LOST * np.max(motion.kinetic))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of the motion, singular positions on the way, what to add where it fell into one, and a lost balance of
        the energy elsewhere."""
        from ...simulation.linkage import must_follow  # here, because it takes its time to import
        instants, failure, of = self.singular_times, self.motion.failure, self.model
        moved = max(np.ptp(part) for part in (self.motion.kinetic, self.motion.potential, self.motion.work))
        left = np.max(np.abs(self.motion.balance))
        if failure is None and not instants and left > max(LOST * moved, ROUNDING):
            return *self.motion.warnings, (f'the balance of the energy is off by {left:.3g} J of {moved:.3g} J: the '
                                           'step is too long for so fast a motion, a shorter dt gives another one')
        if isinstance(failure, SingularConfigurationError) and not self.motion.inputs.any() and must_follow(of):
            return *self.motion.warnings, (f'nothing acted on {", ".join(of.inputs)}: `initial: {{held: true}}` in the '
                                           'file holds its start')
        if failure is not None or not instants:
            return tuple(self.motion.warnings)
        listed = ', '.join(f'{t:.6g}' for t in instants[:INSTANTS]) + ', ...' * (len(instants) > INSTANTS)
        return *self.motion.warnings, (f'the motion passes singular positions at t = {listed} s: there a loop could go '
                                       'on in another way, and only its inertia decides')

    def summary(self) -> list[str]:
        """How long it is, and how well energy and constraints are kept."""
        motion = self.motion
        scheme = f' by {self.asked["scheme"]}' if self.asked else ''
        scheme += f' ({self.asked["formulation"]})' if self.asked and self.asked['scheme'] != 'ali3p' else ''
        return [f'{len(self.t)} states over {self.t[-1] - self.t[0]:g} s{scheme}, energy balance within '
                f'{np.max(np.abs(motion.balance)):.3g} J, constraints within '
                f'{np.max(motion.violation, initial=0.0):.3g}']

    def _values(self, full: bool) -> dict[str, Any]:
        """The end, the balance of the energy, and what happened on the way, SI."""
        model, motion = self.model, self.motion
        end = {name: {'position': motion.q[-1, i], 'velocity': motion.qd[-1, i],
                      'unit': unit_of(model.description, name)} for i, name in enumerate(motion.names)}
        state = {'t': self.t, 'state': {item.name: item.values for item in self.series()}} if full else {}
        return {
            **of_mechanism(model, self.asked), 'reached_s': motion.t[-1], 'states': len(motion.t),
            'evaluations': motion.evaluations, 'seconds': self.seconds, 'degrees_of_freedom': model.degrees_of_freedom,
            'independent': [{'since_s': t, 'names': names} for t, names in motion.choices],
            'end': end,
            'energy': {'start_J': motion.energy[0], 'end_J': motion.energy[-1],
                       'work_J': motion.work[-1], 'largest_error_J': np.max(np.abs(motion.balance))},
            'violation': {'position': np.max(motion.violation, initial=0.0),
                          'velocity': np.max(motion.violation_rate, initial=0.0)},
            'singular_times_s': self.singular_times, 'warnings': motion.warnings,
            'failure': None if motion.failure is None else str(motion.failure), **state}

    def report(self, folder: str | Path, pictures: bool | None = None) -> Path:
        """Write ``motion.csv``, ``summary.json`` and, default of more than ``WORTH`` states, plots and the animation
        into a folder; gives it. Raises OSError."""
        from ...report.files import write_json, write_table  # here, as it takes its time to import
        place, model, motion = Path(folder), self.model, self.motion
        place.mkdir(parents=True, exist_ok=True)
        columns = ['t [s]', *columns_of(model.description, model.names, '', '_dot', '_ddot'),
                   *(f'input {name} [{input_unit(model.description, name).partition(" or ")[0].replace(" ", "*")}]'
                     for name in model.inputs),
                   'kinetic [J]', 'potential [J]', 'power [W]', 'work [J]', 'violation [SI]']
        write_table(place / 'motion.csv', columns, [
            motion.t, *motion.q.T, *motion.qd.T, *motion.qdd.T, *motion.inputs.T, motion.kinetic, motion.potential,
            motion.power, motion.work, motion.violation])
        write_json(place / 'summary.json', self.to_json())
        if pictures if pictures is not None else len(motion.t) > WORTH:
            write_pictures(model, motion, place)
        return place

    def _motion(self, names: Sequence[str] = ()) -> list[ResultSeries]:
        return motion_series(self.model, {'position': self.q, 'velocity': self.qd, 'acceleration': self.qdd}, names)

    def _energies(self) -> list[ResultSeries]:
        return [ResultSeries(name, 'J', getattr(self.motion, name), panel='energy')
                for name in ('kinetic', 'potential')]


@dataclass(frozen=True, repr=False)
class MachineSimulation(MachineTruth):
    """Work of a machine: ``samples`` of its sensors with the commands, and the truth beside them at the same times, SI.

    ``frames`` (k): the same one by one.
    """

    frames: tuple[SensorFrame, ...]
    samples: Samples


def of_mechanism(model: Model, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What was simulated, and how, for JSON."""
    d = model.description
    return {'mechanism': d.name, 'file': d.file, 'coordinates': model.coordinate_type, **asked}


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
