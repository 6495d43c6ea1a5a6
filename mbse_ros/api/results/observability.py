# SPDX-License-Identifier: Apache-2.0
"""What sensors see of a state or a payload: arrays, tables, words, JSON and the picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import MbseError
from ...filters.observability.information import BLIND
from ...filters.observability.machine import MassAccuracy, PayloadObservability
from ...machine import Machine
from ...report.data import Curve, Panel, Table
from ...report.result import Result, ResultSeries, figure_of
from ...report.text import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...filters.observability.mechanism import StateObservability

STEP = 5e-3             # s
START, ALL, MOVING = 'the start', 'all coordinates', 'all coordinates, accelerating'
MEANING = {'simple': 'constant velocity (DEKF, errorEKF)',
           'exact': 'derivatives of the accelerations (errorEKF_EJ, UKF)',
           'force': 'the same with an unknown force (errorEKF_FE)'}
FALLING = ("at rest 'exact' sees only by the acceleration with which the weight would set it in motion; what holds the "
           "mechanism is a force that it does not know: use 'force'")


@dataclass(frozen=True)
class Asked:
    """What was looked at; of a ``machine`` to how many kg its equations weigh, in words ``weighs``, and what more of
    the payload is seen with ``better`` sensors over the poses ``where``."""

    name: str
    sensors: tuple[str, ...]
    trajectory: str
    duration: float
    window: float
    machine: Machine | None = None
    weighing: MassAccuracy | None = None
    weighs: tuple[str, ...] = ()
    better: dict[str, PayloadObservability] = field(default_factory=dict)
    where: str = ''


@dataclass(frozen=True, repr=False)
class Observability(Result):
    """What sensors see, in windows whose middles are ``t`` (w,), s (of a machine: places in a list of poses).

    ``names`` (l,) of the states; ``information`` (w, l) along the directions of each window, least first: 1 halves the
    variance that was known before; ``rank`` (w,): directions that are seen; ``verdict``: 'seen', 'blind at times' or
    'blind'; ``blind``: directions that are not seen, in words, and in how many windows; ``helpers``: least information
    with each further sensor, best first. ``payload``: of a machine, by sets of poses, what its pressures see of mass
    and centre (``rank``, ``blind``, ``stddev``). ``models``: what filters of all kinds see, where they were ``asked``.
    """

    t: np.ndarray
    observed: StateObservability
    payload: dict[str, PayloadObservability] = field(default_factory=dict)
    models: tuple[StateObservability, ...] = field(default=(), repr=False)
    asked: Asked | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names (l,) of the states."""
        return self.observed.names

    @property
    def information(self) -> np.ndarray:
        """Information (w, l), least first."""
        return np.array([window.information for window in self.observed.windows])

    @property
    def rank(self) -> np.ndarray:
        """Number of directions that are seen (w,)."""
        return np.array([window.rank for window in self.observed.windows])

    @property
    def verdict(self) -> str:
        """'seen', 'blind at times' or 'blind'."""
        return self.observed.verdict

    @property
    def blind(self) -> dict[str, int]:
        """Directions that are not seen, in words, and in how many windows."""
        return self.observed.blind

    @property
    def helpers(self) -> dict[str, float]:
        """Least information with each further sensor, best first."""
        return self.observed.helpers

    def series(self) -> list[ResultSeries]:
        """Information along each direction and the rank."""
        found = [ResultSeries(f'direction {k + 1}', '1', column, panel='information')
                 for k, column in enumerate(self.information.T)]
        return [*found, ResultSeries('rank', '1', self.rank.astype(float))]

    def plot(self, *names: str, truth: Result | None = None) -> Figure:
        """The information over the windows on a logarithmic axis; with names as any result."""
        if names:
            return super().plot(*names, truth=truth)
        return figure_of([information_panel(self.observed, self.t)])

    @property
    def _question(self) -> Asked:
        if self.asked is None:
            raise MbseError('summary: this result is not of `observability`')
        return self.asked

    def report(self, folder: str | Path, pictures: bool = True) -> Path:
        """Write ``observability.png``, with ``pictures``: information of each direction over the windows; gives the
        folder."""
        from ...report.plots import write_plots  # here, because plots take their time to import
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        if pictures:
            write_plots([information_panel(item, middles(item, STEP, self._question.window)) for item in self.models],
                        place / 'observability.png')
        return place

    def _values(self, full: bool) -> dict[str, Any]:
        """All of it, SI."""
        q = self._question
        asked = {'sensors': list(q.sensors), 'trajectory': q.trajectory, 'window_s': q.window}
        if q.machine is None:
            return {'mechanism': q.name, **asked, 'results': [state_json(item) for item in self.models]}
        return {'machine': q.name, **asked, 'motion': state_json(self.observed),
                'weighing': None if q.weighing is None else {**q.weighing.each, 'all': q.weighing.all},
                'payload': {label: {'rank': item.rank, 'information': item.window.information, 'blind': item.blind,
                                    'stddev': item.stddev} for label, item in self.payload.items()}}

    def tables(self) -> list[Table]:
        """Of a mechanism, what the filters see."""
        q, rows = self._question, []
        if q.machine is not None:
            return []
        where = {'rest': 'at rest', 'free': f'moving freely for {q.duration:g} s'}.get(
            q.trajectory, f'along {Path(q.trajectory).name}')
        for item in self.models:
            conditions = [window.condition for window in item.windows]
            rows.append([item.model, item.verdict, f'{item.rank} of {len(item.names)}',
                         number(float(np.median(conditions))), number(item.least), _blind(item)])
        return [Table(f'{q.name} {where}, seen by {", ".join(q.sensors)} in {q.window:g} s',
                      ['model', 'verdict', 'rank', 'condition', 'least information', 'not seen'], rows)]

    def summary(self) -> list[str]:
        """What would help; of a machine what its motion and its payload are seen to."""
        q = self._question
        if q.machine is not None:
            return machine_lines(q.machine, q, self.observed, self.payload)
        lines = [f'{item.model}: {MEANING[item.model]}. {_help(item)}' for item in self.models]
        lines.append('information: 1 halves the variance of 0.1 rad (m), 0.5 rad/s (m/s), or of a force of 5 rad/s2 '
                     '(m/s2)')
        falls = q.trajectory == 'rest' and any(item.model == 'exact' for item in self.models)
        return [*lines, FALLING] if falls else lines


def middles(observed: StateObservability, dt: float, window: float) -> np.ndarray:
    """Middles (w,) of the windows, s from the start of the motion."""
    return np.array([item.start * dt + window / 2 for item in observed.windows])


def information_panel(observed: StateObservability, t: np.ndarray) -> Panel:
    """Information of each direction over the windows; what is not seen lies on the lower edge."""
    information = np.maximum([item.information for item in observed.windows], BLIND)
    curves = [Curve(f'direction {k + 1}', t, information[:, k], kind='marks') for k in range(len(observed.names))]
    return Panel(f"model '{observed.model}': information, {observed.verdict}", 'in units of the prior', curves,
                 y_scale='log', note=f'rank {observed.rank} of {len(observed.names)}')


def state_json(observed: StateObservability) -> dict[str, Any]:
    """The result as JSON."""
    windows = [{'t': window.start * STEP, 'rank': window.rank, 'information': window.information,
                'condition': window.condition} for window in observed.windows]
    helpers = [{'sensor': name, 'least_information': least, 'gain': least / observed.least if observed.least else None}
               for name, least in observed.helpers.items()]
    return {'model': observed.model, 'verdict': observed.verdict, 'states': list(observed.names),
            'prior': observed.prior, 'rank': observed.rank, 'least_information': observed.least,
            'blind': observed.blind, 'windows': windows, 'helpers': helpers}


def machine_lines(machine: Machine, asked: Asked, motion: StateObservability,
                  payload: dict[str, PayloadObservability]) -> list[str]:
    """The motion in a sentence or two, the payload in a line for each set of poses, what would help, what weighs."""
    blind = '; '.join(f'{words} ({count} of {len(motion.windows)} places)' for words, count in motion.blind.items())
    lines = [f'{machine.name}, motion: {motion.verdict}' + (f': not seen: {blind}' if blind else '')]
    lines += ['  ' + _helper(motion)] if blind else []
    if machine.description.payload is None:
        none = 'payload: the machine has none'
        each = 'payloads: `mbse check` has to how many kg each is weighed'
        return [*lines, each if machine.description.payloads else none, *asked.weighs]
    lines.append('payload, mass and centre by the pressures, positions known; poses of' if payload else
                 'payload: not seen: of no cylinder are all pressures among the sensors')
    for label, item in payload.items():
        rest = f'; not: {"; ".join(item.blind)}' if item.blind else f', after a sample a pose to {_stddev(item)}'
        lines.append(f'  {label}: {item.rank} of {len(item.stddev)} directions seen{rest}')
    lines += advice(payload)
    for names, item in asked.better.items():
        more = item.rank - (payload[list(payload)[-1]].rank if payload else 0)
        lines.append(f'with {names}, over {asked.where}: {item.rank} seen, {more or "no"} more')
    return [*lines, *asked.weighs]


def advice(payload: dict[str, PayloadObservability]) -> list[str]:
    """Which motions see more than the start does, and what no motion sees."""
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
    return f'{number(float(observed.stddev[0]))} kg and {", ".join(number(float(v)) for v in observed.stddev[1:])} m'


def _helper(motion: StateObservability) -> str:
    if not motion.helpers:
        return 'the machine has no other sensor that would help'
    name, least = next(iter(motion.helpers.items()))
    return f'{name} would help most' + (': it would see all' if least > 0.0 else ', but not alone')


def _blind(observed: StateObservability) -> str:
    count = len(observed.windows)
    return '; '.join(words if found == count else f'{words} ({found} of {count} windows)'
                     for words, found in observed.blind.items()) or '–'


def _help(observed: StateObservability) -> str:
    """The sensor that would help most, in words."""
    if not observed.helpers:
        return 'The mechanism has no other sensor.'
    name, least = next(iter(observed.helpers.items()))
    if least <= observed.least or least == 0.0:
        return 'No other sensor of the mechanism would help alone.'
    gain = f'{number(least / observed.least)} times the least information' if observed.least else (
        f'it would see all, with least information {number(least)}')
    return f'{name} would help most: {gain}.'
