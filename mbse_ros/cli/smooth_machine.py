# SPDX-License-Identifier: Apache-2.0
"""``mbse smooth BAG --machine M``."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..errors import SettingError
from ..graph.machine_lag import lag_machine
from ..graph.machine_log import MachineLog, unused
from ..graph.machine_settings import MachineGraphSettings
from ..graph.machine_smoother import MachineSmoothed
from ..graph.machine_smoother import smooth_machine as smooth_log
from ..machine import Machine, load_machine
from ..report.data import Run, Series, Signal
from ..report.plots import Line, Plot, write_plots
from ..report.writer import write_report
from .estimate import check_outputs
from ..report.json_file import write_json
from ..offline.bag import Estimate, estimate_bag, parse_tuning
from .report_run import GROUPS, report_run
from .report_units import shown
from .smooth import SmoothRequest
from ..offline.truth import truth_at

ROOM = 'graph.'
KINDS = ('position', 'velocity', 'acceleration', 'pressure')


@dataclass(frozen=True)
class SmoothedBag:
    """A bag through filter and smoother; ``seconds`` the smoother took, ``true`` payload, kg, or NaN."""

    estimate: Estimate
    smoothed: MachineSmoothed
    seconds: float
    true: float

    @property
    def machine(self) -> Machine:
        """The machine of the bag."""
        return self.estimate.machine


def smooth_machine(machine: str, request: SmoothRequest) -> None:
    """Filter and smooth, print, and write what was asked for."""
    if request.sensors or request.step is not None:
        raise SettingError('--sensors' if request.sensors else '--step', request.sensors or request.step,
                           'no such option here: it is for a mechanism')
    check_outputs(request.output, request.json_file, None)
    settings, words = graph_settings(request.words)
    found = smooth_machine_bag(load_machine(machine), request, settings, words)
    for warning in (*found.estimate.warnings, *notes(found.machine)):
        typer.echo(f'warning: {warning}', err=True)
    if request.output is not None:
        request.output.mkdir(parents=True)
        write_report(overlaid(found), request.output)
        write_plots(plots(found), request.output / 'smoothed.png')
        write_table(found, request.output / 'smoothed.csv')
    write_json(request.json_file, as_json(found, request), None if request.full else 2)
    typer.echo(summary(found, request))


def notes(machine: Machine) -> list[str]:
    """What the smoother makes no use of."""
    left = unused(machine)
    return [f'{", ".join(left)}: the smoother makes no use of it: it takes what measures a coordinate of the machine ('
            f'{", ".join(machine.coordinates)}), a volume or an inclination of the base'] if left else []


def owners(machine: Machine, kind: str) -> tuple[str, ...]:
    """Names of the columns of a kind of results."""
    if kind == 'pressure':
        return machine.volumes
    if kind == 'unknown_force':
        return tuple(machine.coordinates[k] for k in machine.actuated)
    return machine.coordinates


def graph_settings(words: Sequence[str]) -> tuple[MachineGraphSettings, list[str]]:
    """Tuning of the graph from words ``graph.min_speed=0.01``, and the other words; raises SettingError."""
    known, chosen = {item.name for item in fields(MachineGraphSettings)}, {}
    for word in (word for word in words if word.startswith(ROOM)):
        key, _, text = word.removeprefix(ROOM).partition('=')
        if key not in known:
            raise SettingError(ROOM + key, text, 'one of ' + ', '.join(sorted(known)))
        try:
            chosen[key] = float(text)
        except ValueError:
            raise SettingError(ROOM + key, text, 'a number') from None
    return MachineGraphSettings(**chosen), [word for word in words if not word.startswith(ROOM)]


def smooth_machine_bag(machine: Machine, request: SmoothRequest, settings: MachineGraphSettings, words: Sequence[str]
                     ) -> SmoothedBag:
    """The filter first: its segments are the smoother's samples."""
    estimate = estimate_bag(request.bag, machine, parse_tuning(words), request.namespace, request.backend)
    begin, log = time.perf_counter(), log_of(estimate)
    smoothed = (smooth_log(machine, log, settings) if request.lag is None
                else lag_machine(machine, log, request.lag, settings))
    seconds = time.perf_counter() - begin
    truth = truth_at(estimate.truth, machine, estimate.stamps_ns)
    true = float('nan') if truth is None else float(np.nanmedian(truth.payload))
    return SmoothedBag(estimate, smoothed, seconds, true)


def log_of(estimate: Estimate) -> MachineLog:
    """Samples at the ends of the segments; each one's information once, also of a sensor slower than the segments."""
    outputs = estimate.outputs
    measured = np.array([o.state.measured for o in outputs])
    share = np.array([len(o.segment.values) / np.maximum(o.segment.repeats, 1) for o in outputs])
    total = np.cumsum(np.minimum(share, 1.0), axis=0) + 1e-6
    fresh = np.floor(total) > np.floor(np.vstack([np.full((1, total.shape[1]), 1e-6), total[:-1]]))
    return MachineLog(estimate.elapsed, np.where(fresh, measured, np.nan))


def summary(found: SmoothedBag, request: SmoothRequest) -> str:
    """The mass of smoother and filter, what the log says of the machine's numbers, and the cost."""
    s, online = found.smoothed, found.estimate.outputs[-1].payload
    how = 'all at once' if request.lag is None else f'{request.lag:g} s of lag'
    lines = [f'payload {s.mass[-1]:.2f} kg, 95 % interval {s.lower[-1]:.2f} to {s.upper[-1]:.2f} kg, {how}, from '
             f'{int(s.balanced.sum())} of {len(s.t)} instants',
             f'filter: {online.mass:.2f} kg, 95 % interval {online.lower:.2f} to {online.upper:.2f} kg']
    if math.isfinite(found.true):
        lines.append(f'truth in the bag: {found.true:.2f} kg')
    before = found.machine.parameters
    for name, value, sigma in zip(s.names, s.parameters, s.parameters_stddev):
        k = before.names.index(name)
        lines.append(f'  {name}: {value:.5g} +- {sigma:.2g}, in the file {before.mean[k]:.5g} +- '
                     f'{before.stddev[k]:.2g} (SI)')
    seconds = found.estimate.log_seconds
    lines.append(f'{seconds:.1f} s of data smoothed in {found.seconds:.3f} s '
                 f'({100 * found.seconds / seconds:.2f} % of real time)')
    return '\n'.join(lines)


def as_json(found: SmoothedBag, request: SmoothRequest) -> dict[str, Any]:
    """The fixed machine-readable form; a value that is not known is null."""
    s, online = found.smoothed, found.estimate.outputs[-1].payload
    result: dict[str, Any] = {
        'machine': found.machine.name, 'lag': request.lag, 'instants': len(s.t), 'balanced': int(s.balanced.sum()),
        'payload': {'mass': _number(s.mass[-1]), 'stddev': _number(s.mass_stddev[-1]),
                    'interval': [_number(s.lower[-1]), _number(s.upper[-1])]},
        'filter': {'mass': _number(online.mass), 'stddev': _number(online.stddev),
                   'interval': [_number(online.lower), _number(online.upper)]},
        'truth': _number(found.true),
        'parameters': {name: {'value': value, 'stddev': sigma} for name, value, sigma in zip(
            s.names, s.parameters.tolist(), s.parameters_stddev.tolist())},
        'unknown_force': s.force, 'iterations': s.iterations,
        'cost': {'seconds': found.seconds, 'real_time_share': found.seconds / found.estimate.log_seconds}}
    if request.full:
        result['state'] = {'stamp_ns': found.estimate.stamps_ns.tolist()}
        for name in (*KINDS, 'unknown_force'):
            result['state'] |= {name: getattr(s, name).tolist(), f'{name}_stddev': s.stddev[name].tolist()}
        result['state']['payload_mass'] = [_number(value) for value in s.mass.tolist()]
        result['state']['payload_stddev'] = [_number(value) for value in s.mass_stddev.tolist()]
    return result


def _number(value: float) -> float | None:
    """JSON knows no NaN."""
    return float(value) if math.isfinite(value) else None


def overlaid(found: SmoothedBag) -> Run:
    """The report of the filter with the smoothed curves in the same charts."""
    s, run = found.smoothed, report_run(found.estimate, 'Filter and smoother')
    facts = {'Smoothed mass': f'{s.mass[-1]:.2f} kg, 95 % interval {s.lower[-1]:.2f} to {s.upper[-1]:.2f} kg',
             'Smoothed from': f'{int(s.balanced.sum())} of {len(s.t)} instants'}
    return replace(run, facts={**run.facts, **facts}, signals=(*run.signals, *_signals(found)))


def _signals(found: SmoothedBag) -> list[Signal]:
    s, signals = found.smoothed, []
    for kind in KINDS:
        for k, owner in enumerate(owners(found.machine, kind)):
            unit, scale = shown(found.machine, f'{kind}/{owner}')
            series = Series(s.t, getattr(s, kind)[:, k], s.stddev[kind][:, k])
            signals.append(Signal(f'{kind} {owner}, smoothed', unit, scale, GROUPS[kind], None, series, None))
    return signals


def plots(found: SmoothedBag) -> list[Plot]:
    """Mass and velocity, filter over smoother."""
    s, outputs = found.smoothed, found.estimate.outputs
    online = {name: np.array([getattr(o.payload, name) for o in outputs]) for name in ('mass', 'lower', 'upper')}
    blue, orange, green = '#2a7de1', '#e8590c', '#0ca678'
    lines = [Line('filter', s.t, online['mass'], color=blue), Line('filter, 95 %', s.t, online['lower'], '--', blue),
             Line('', s.t, online['upper'], '--', blue), Line('smoother', s.t, s.mass, color=orange),
             Line('smoother, 95 %', s.t, s.lower, '--', orange), Line('', s.t, s.upper, '--', orange)]
    if math.isfinite(found.true):
        lines.append(Line('truth', s.t, np.full(len(s.t), found.true), color=green))
    middle, width = s.mass[-1], 4 * (s.upper[-1] - s.mass[-1])
    drawn = [Plot('Payload', 't, s', 'kg', lines, limits=(middle - width, middle + width))]
    names = outputs[0].state.names
    for k, owner in enumerate(found.machine.coordinates):
        unit, scale = shown(found.machine, f'velocity/{owner}')
        filtered = np.array([o.state.mean[-1, names.index(f'velocity/{owner}')] for o in outputs])
        drawn.append(Plot(f'Velocity of {owner}', 't, s', unit, [
            Line('filter', s.t, scale * filtered, color=blue),
            Line('smoother', s.t, scale * s.velocity[:, k], color=orange)]))
    return drawn


def write_table(found: SmoothedBag, path: Path) -> None:
    """Stamp, values and standard deviations of every instant as CSV, SI."""
    s, machine = found.smoothed, found.machine
    names, columns = [], []
    for kind in (*KINDS, 'unknown_force'):
        own = owners(machine, kind)
        names += [f'{kind}/{owner}' for owner in own] + [f'{kind}/{owner} stddev' for owner in own]
        columns += [getattr(s, kind), s.stddev[kind]]
    rows = np.column_stack([*columns, s.mass, s.mass_stddev])
    with open(path, 'w', newline='', encoding='utf-8') as file:
        table = csv.writer(file)
        table.writerow(['stamp_ns', *names, 'payload', 'payload stddev'])
        for stamp, row in zip(found.estimate.stamps_ns.tolist(), rows.tolist()):
            table.writerow([stamp, *row])
