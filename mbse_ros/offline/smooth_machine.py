# SPDX-License-Identifier: Apache-2.0
"""A filtered log of a machine, smoothed: all at once, or with a lag."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..calibration.free import FAR
from ..description.coordinate_units import unit_and_scale
from ..graph.machines.machine_graph import MachineGraphSettings
from ..graph.machines.machine_lag import lag_machine
from ..graph.machines.machine_log import MachineLog, unused
from ..graph.machines.machine_smoother import MachineSmoothed, smooth_machine
from ..machine import Machine
from ..payload.gates import too_slow
from ..progress import lengthy
from ..report.data import Panel, Run, Series, Signal
from ..report.files import write_table
from ..report.result import Result, ResultSeries
from ..report.text import cost, cost_line, lag_text
from ..simulation.truth import KINDS, entry_series
from ..streams.records import PayloadStatus
from .estimate import MachineEstimate
from .track import truth_at

OTHER = 0.1     # share of the time with a mass of the filter in which that is another one: two intervals of 95 % of one
                # mass are seldom apart


@dataclass(frozen=True, repr=False)
class SmoothedMachine(Result):
    """Smoothed motion and payload of a machine at times ``t`` (k,), s; SI.

    ``smoothed``: positions, velocities, ... (k, g) with their deviations, ``parameters``: what the log says of the
    machine's uncertain numbers ``names``; ``mass``, ``lower``, ``upper`` (k,), kg; ``filtered``: the filter's result
    beside it; ``seconds`` the smoother took, ``true`` payload, kg, or NaN; ``lag``, s, None of the whole log;
    ``warnings``: what was odd about the log, and what the smoother makes no use of.
    """

    filtered: MachineEstimate
    smoothed: MachineSmoothed
    seconds: float
    true: float
    lag: float | None
    warnings: tuple[str, ...] = ()

    @property
    def machine(self) -> Machine:
        """The machine."""
        return self.filtered.machine

    @property
    def t(self) -> np.ndarray:
        """Times (k,), s."""
        return self.filtered.t

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(item.name for item in self.series())

    @property
    def mass(self) -> np.ndarray:
        """Mass of the payload (k,), kg; of a whole log the same at all times."""
        return self.smoothed.mass

    @property
    def lower(self) -> np.ndarray:
        """Lower ends (k,) of its 95 % interval, kg."""
        return self.smoothed.lower

    @property
    def upper(self) -> np.ndarray:
        """Upper ends (k,), kg."""
        return self.smoothed.upper

    def series(self) -> list[ResultSeries]:
        """The mass, then the motion and the pressures, under the names of the filter's result."""
        s = self.smoothed
        return [ResultSeries('mass', 'kg', s.mass, lower=s.lower, upper=s.upper),
                *entry_series(self.machine, s, s.stddev)]

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Why the mass is not to be trusted: what is wrong with the log, that the filter has no mass or others (the
        smoother takes one load for the whole log), and numbers of the machine that are far from its file."""
        s, track, states, payload = self.smoothed, self.filtered.track, self.filtered.states, self.filtered.last.payload
        found = list(self.filtered.doubts)
        weighed = track.length_ns * (track.status == PayloadStatus.UPDATING)
        if not weighed.any():
            found.append(f'the filter trusts no mass: {payload.reason}')
        other = weighed[(states.lower > s.upper[-1]) | (states.upper < s.lower[-1])].sum()
        if other > OTHER * weighed.sum():
            found.append(f'the filter has other masses for {other * 1e-9:.1f} of {weighed.sum() * 1e-9:.1f} s: the '
                         'load changes in this log, and the smoother takes one load for all of it (see `mbse loads`)')
        known = self.machine.parameters
        places = [known.names.index(name) for name in s.names]
        off = {name: abs(value - known.mean[k]) / known.stddev[k]
               for name, value, k in zip(s.names, s.parameters, places)}
        far = {name: deviations for name, deviations in off.items() if deviations > FAR}
        if far:
            worst = max(far, key=far.__getitem__)
            found.append(f'numbers of the machine more than {FAR:g} standard deviations from its file: {len(far)}, the '
                         f'farthest {worst} by {far[worst]:.1f}')
        return tuple(found)

    def summary(self) -> list[str]:
        """The mass of smoother and filter, what the log says of the machine's numbers, and the cost."""
        s, online, before = self.smoothed, self.filtered.last.payload, self.machine.parameters
        lines = [f'payload {"not trusted: " if self.doubts else ""}{self.mass_text}, {lag_text(self.lag)}, from '
                 f'{self.share_text}', *self._distrust]
        lines += [f'filter: {online.mass:.2f} kg, 95 % interval {online.lower:.2f} to {online.upper:.2f} kg'
                  if math.isfinite(online.mass) else 'filter: no mass']
        if math.isfinite(self.true):
            lines.append(f'truth in the bag: {self.true:.2f} kg')
        if (tool := self.machine.description.attachment) is not None:
            lines.append(tool.line)
        for name, value, sigma in zip(s.names, s.parameters, s.parameters_stddev):
            k = before.names.index(name)
            lines.append(f'  {name}: {value:.5g} +- {sigma:.2g}, in the file {before.mean[k]:.5g} +- '
                         f'{before.stddev[k]:.2g} (SI)')
        return [*lines, cost_line(self.seconds, self.filtered.log_seconds, ' smoothed')]

    @property
    def mass_text(self) -> str:
        """The mass at the end with its interval."""
        s = self.smoothed
        return f'{s.mass[-1]:.2f} kg, 95 % interval {s.lower[-1]:.2f} to {s.upper[-1]:.2f} kg'

    @property
    def share_text(self) -> str:
        """Instants at which the forces balance, of all."""
        return f'{int(self.smoothed.balanced.sum())} of {len(self.smoothed.t)} instants'

    def _values(self, full: bool) -> dict[str, Any]:
        """Masses of smoother and filter, the machine's numbers, cost, and in ``full`` every instant."""
        s, online = self.smoothed, self.filtered.last.payload
        result: dict[str, Any] = {
            'machine': self.machine.name, 'lag': self.lag, 'instants': len(s.t), 'balanced': s.balanced.sum(),
            'payload': {'mass': s.mass[-1], 'stddev': s.mass_stddev[-1], 'interval': [s.lower[-1], s.upper[-1]],
                        **self._trust},
            'filter': {'mass': online.mass, 'stddev': online.stddev, 'interval': [online.lower, online.upper]},
            'truth': self.true,
            'parameters': {name: {'value': value, 'stddev': sigma}
                           for name, value, sigma in zip(s.names, s.parameters, s.parameters_stddev)},
            'unknown_force': s.force, 'iterations': s.iterations,
            'cost': cost(self.seconds, self.filtered.log_seconds)}
        if full:
            result['state'] = {'stamp_ns': self.filtered.track.stamp_ns}
            for name in (*KINDS, 'unknown_force'):
                result['state'] |= {name: getattr(s, name), f'{name}_stddev': s.stddev[name]}
            result['state'] |= {'payload_mass': s.mass, 'payload_stddev': s.mass_stddev}
        return result

    def report(self, folder: str | Path, pictures: bool = True) -> Path:
        """Write the report of the filter with the smoothed curves in it, plot and table into a new folder; gives it."""
        from ..report.plots import write_smoothed  # here, as below: slow to import
        from ..report.writer import write_report
        place = Path(folder)
        place.mkdir(parents=True)
        write_report(overlaid(self), place, pictures)
        if pictures:
            write_smoothed(panels(self), place)
        write_columns(self, place / 'smoothed.csv')
        return place


@lengthy('smoothing')
def smooth_estimate(estimate: MachineEstimate, lag: float | None = None,
                    settings: MachineGraphSettings = MachineGraphSettings()) -> SmoothedMachine:
    """Smooth what was filtered, all at once or with a lag, s: its segments are the smoother's samples. Errors are those
    of ``graph.machines.machine_smoother.smooth_machine``."""
    machine, begin, log = estimate.machine, time.perf_counter(), log_of(estimate)
    smoothed = smooth_machine(machine, log, settings) if lag is None else lag_machine(machine, log, lag, settings)
    seconds = time.perf_counter() - begin
    truth = truth_at(estimate.recorded, machine, estimate.track.stamp_ns)
    true = float('nan') if truth is None else float(np.nanmedian(truth.payload))
    return SmoothedMachine(estimate, smoothed, seconds, true, lag,
                       (*estimate.warnings, *notes(machine, settings)))


def log_of(estimate: MachineEstimate) -> MachineLog:
    """Samples at the ends of the segments; each one's information once, also of a sensor slower than the segments."""
    measured = estimate.states.measured
    total = np.cumsum(estimate.states.share, axis=0) + 1e-6
    fresh = np.floor(total) > np.floor(np.vstack([np.full((1, total.shape[1]), 1e-6), total[:-1]]))
    return MachineLog(estimate.track.with_pauses, np.where(fresh, measured, np.nan))


def notes(machine: Machine, settings: MachineGraphSettings) -> list[str]:
    """What the smoother makes no use of, and what is wrong with the tuning."""
    left, slow = unused(machine), too_slow(machine, 'graph.min_speed', settings.min_speed)
    return [*([f'{", ".join(left)}: the smoother makes no use of it: it takes what measures a coordinate of the '
               f'machine ({", ".join(machine.coordinates)}), a volume or an inclination of the base'] if left else []),
            *([slow] if slow else [])]


def owners(machine: Machine, kind: str) -> tuple[str, ...]:
    """Names of the columns of a kind of results."""
    if kind == 'pressure':
        return machine.volumes
    if kind == 'unknown_force':
        return tuple(machine.coordinates[k] for k in machine.weighed)
    return machine.coordinates


def overlaid(found: SmoothedMachine) -> Run:
    """The report of the filter with the smoothed curves in the same charts."""
    from .estimate_report import GROUPS, report_run
    run, s = report_run(found.filtered, 'Filter and smoother'), found.smoothed
    facts = {'Smoothed mass': ('not trusted: ' if found.doubts else '') + found.mass_text,
             'Smoothed from': found.share_text}
    signals = list(run.signals)
    for kind in KINDS:
        for k, owner in enumerate(owners(found.machine, kind)):
            unit, scale = unit_and_scale(found.machine.description, f'{kind}/{owner}')
            series = Series(s.t, getattr(s, kind)[:, k], s.stddev[kind][:, k])
            signals.append(Signal(f'{kind} {owner}, smoothed', unit, scale, GROUPS[kind], None, series, None))
    return replace(run, facts={**run.facts, **facts}, signals=signals)


def panels(found: SmoothedMachine) -> list[Panel]:
    """Mass and velocities of filter and smoother."""
    from ..report.plots import smoothed_panel
    s, online = found.smoothed, found.filtered.states
    curves = {'filter': online.mass, 'smoother': s.mass}
    if math.isfinite(found.true):
        curves['truth'] = np.full(len(s.t), found.true)
    middle, width = s.mass[-1], 4 * (s.upper[-1] - s.mass[-1])
    drawn = [smoothed_panel('Payload', 'kg', s.t, curves, {'filter': (online.lower, online.upper),
                                                  'smoother': (s.lower, s.upper)}, (middle - width, middle + width))]
    names = found.filtered.last.state.names
    for k, owner in enumerate(found.machine.coordinates):
        unit, scale = unit_and_scale(found.machine.description, f'velocity/{owner}')
        filtered = online.mean[:, names.index(f'velocity/{owner}')]
        drawn.append(smoothed_panel(f'Velocity of {owner}', unit, s.t, {'filter': scale * filtered,
                                                               'smoother': scale * s.velocity[:, k]}, {}))
    return drawn


def write_columns(found: SmoothedMachine, path: Path) -> None:
    """Stamp, values and standard deviations of every instant as CSV, SI."""
    s, names, columns = found.smoothed, ['stamp_ns'], [found.filtered.track.stamp_ns]
    for kind in (*KINDS, 'unknown_force'):
        own = owners(found.machine, kind)
        names += [f'{kind}/{owner}' for owner in own] + [f'{kind}/{owner} stddev' for owner in own]
        columns += [*getattr(s, kind).T, *s.stddev[kind].T]
    write_table(path, [*names, 'payload', 'payload stddev'], [*columns, s.mass, s.mass_stddev])
