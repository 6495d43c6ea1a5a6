# SPDX-License-Identifier: Apache-2.0
"""``mbse smooth BAG --machine M``."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import SettingError
from ...graph.machines.machine_settings import MachineGraphSettings
from ...machine import load_machine
from ...offline.bag import TUNING, estimate_bag, parse_tuning
from ...offline.smooth_machine import SmoothedBag, notes, owners, smooth_estimate
from ...report.chart import Panel
from ...report.data import Run, Series, Signal
from ...report.writer import write_report
from ..logs import Answer, LogRequest, cost, cost_line
from ..panels import how, panel, write_panels
from ..tables import write_table
from ..units import unit_and_scale
from .report_run import GROUPS, report_run

KINDS = ('position', 'velocity', 'acceleration', 'pressure')


def smooth_machine(machine: str, valve: str | None, request: LogRequest) -> Answer:
    """Filter and smooth."""
    if request.sensors or request.step is not None:
        raise SettingError('--sensors' if request.sensors else '--step', request.sensors or request.step,
                           'no such option here: it is for a mechanism')
    tuning = parse_tuning(request.words, {**TUNING, 'graph': MachineGraphSettings})
    settings = tuning.pop('graph')
    estimate = estimate_bag(request.bag, load_machine(machine, valve), tuning, request.namespace, request.backend,
                            request.sources)
    found = smooth_estimate(estimate, request.lag, settings)
    warnings = [*found.estimate.warnings, *notes(found.machine, settings)]
    return Answer(warnings, summary(found, request), as_json(found, request),
                  lambda folder: write_files(found, folder))


def summary(found: SmoothedBag, request: LogRequest) -> list[str]:
    """The mass of smoother and filter, what the log says of the machine's numbers, and the cost."""
    s, online, before = found.smoothed, found.estimate.last.payload, found.machine.parameters
    lines = [f'payload {_mass(found)}, {how(request)}, from {_share(found)}',
             f'filter: {online.mass:.2f} kg, 95 % interval {online.lower:.2f} to {online.upper:.2f} kg']
    if math.isfinite(found.true):
        lines.append(f'truth in the bag: {found.true:.2f} kg')
    for name, value, sigma in zip(s.names, s.parameters, s.parameters_stddev):
        k = before.names.index(name)
        lines.append(f'  {name}: {value:.5g} +- {sigma:.2g}, in the file {before.mean[k]:.5g} +- '
                     f'{before.stddev[k]:.2g} (SI)')
    return [*lines, cost_line(found.seconds, found.estimate.log_seconds, ' smoothed')]


def _mass(found: SmoothedBag) -> str:
    s = found.smoothed
    return f'{s.mass[-1]:.2f} kg, 95 % interval {s.lower[-1]:.2f} to {s.upper[-1]:.2f} kg'


def _share(found: SmoothedBag) -> str:
    return f'{int(found.smoothed.balanced.sum())} of {len(found.smoothed.t)} instants'


def as_json(found: SmoothedBag, request: LogRequest) -> dict[str, Any]:
    """Masses of smoother and filter, the machine's numbers, cost, and in ``full`` every instant."""
    s, online = found.smoothed, found.estimate.last.payload
    result: dict[str, Any] = {
        'machine': found.machine.name, 'lag': request.lag, 'instants': len(s.t), 'balanced': s.balanced.sum(),
        'payload': {'mass': s.mass[-1], 'stddev': s.mass_stddev[-1], 'interval': [s.lower[-1], s.upper[-1]]},
        'filter': {'mass': online.mass, 'stddev': online.stddev, 'interval': [online.lower, online.upper]},
        'truth': found.true,
        'parameters': {name: {'value': value, 'stddev': sigma}
                       for name, value, sigma in zip(s.names, s.parameters, s.parameters_stddev)},
        'unknown_force': s.force, 'iterations': s.iterations,
        'cost': cost(found.seconds, found.estimate.log_seconds)}
    if request.full:
        result['state'] = {'stamp_ns': found.estimate.stamps_ns}
        for name in (*KINDS, 'unknown_force'):
            result['state'] |= {name: getattr(s, name), f'{name}_stddev': s.stddev[name]}
        result['state'] |= {'payload_mass': s.mass, 'payload_stddev': s.mass_stddev}
    return result


def write_files(found: SmoothedBag, folder: Path) -> None:
    """The report of the filter with the smoothed curves in it, picture and table."""
    folder.mkdir(parents=True)
    write_report(overlaid(found), folder)
    write_panels(panels(found), folder)
    write_columns(found, folder / 'smoothed.csv')


def overlaid(found: SmoothedBag) -> Run:
    """The report of the filter with the smoothed curves in the same charts."""
    run = report_run(found.estimate, 'Filter and smoother')
    facts = {'Smoothed mass': _mass(found), 'Smoothed from': _share(found)}
    return replace(run, facts={**run.facts, **facts}, signals=(*run.signals, *_signals(found)))


def _signals(found: SmoothedBag) -> list[Signal]:
    s, signals = found.smoothed, []
    for kind in KINDS:
        for k, owner in enumerate(owners(found.machine, kind)):
            unit, scale = unit_and_scale(found.machine, f'{kind}/{owner}')
            series = Series(s.t, getattr(s, kind)[:, k], s.stddev[kind][:, k])
            signals.append(Signal(f'{kind} {owner}, smoothed', unit, scale, GROUPS[kind], None, series, None))
    return signals


def panels(found: SmoothedBag) -> list[Panel]:
    """Mass and velocities of filter and smoother."""
    s, online = found.smoothed, found.estimate.states
    curves = {'filter': online.mass, 'smoother': s.mass}
    if math.isfinite(found.true):
        curves['truth'] = np.full(len(s.t), found.true)
    middle, width = s.mass[-1], 4 * (s.upper[-1] - s.mass[-1])
    drawn = [panel('Payload', 'kg', s.t, curves, {'filter': (online.lower, online.upper),
                                                  'smoother': (s.lower, s.upper)}, (middle - width, middle + width))]
    names = found.estimate.last.state.names
    for k, owner in enumerate(found.machine.coordinates):
        unit, scale = unit_and_scale(found.machine, f'velocity/{owner}')
        filtered = online.mean[:, names.index(f'velocity/{owner}')]
        drawn.append(panel(f'Velocity of {owner}', unit, s.t, {'filter': scale * filtered,
                                                               'smoother': scale * s.velocity[:, k]}, {}))
    return drawn


def write_columns(found: SmoothedBag, path: Path) -> None:
    """Stamp, values and standard deviations of every instant as CSV, SI."""
    s, names, columns = found.smoothed, ['stamp_ns'], [found.estimate.stamps_ns]
    for kind in (*KINDS, 'unknown_force'):
        own = owners(found.machine, kind)
        names += [f'{kind}/{owner}' for owner in own] + [f'{kind}/{owner} stddev' for owner in own]
        columns += [*getattr(s, kind).T, *s.stddev[kind].T]
    write_table(path, [*names, 'payload', 'payload stddev'], [*columns, s.mass, s.mass_stddev])
