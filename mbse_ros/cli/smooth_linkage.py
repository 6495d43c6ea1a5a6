# SPDX-License-Identifier: Apache-2.0
"""``mbse smooth BAG --mechanism M``."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..dynamics.model import load_model
from ..graph.sensor_factors import is_angle
from ..report.chart import COLORS, Band, Chart, Curve, Panel
from ..report.png import write_png
from .estimate import check_outputs
from ..report.json_file import write_json
from .linkage_bag import linkage_settings
from .linkage_smooth import FILTER, SmoothedLog, smooth_linkage_bag
from .smooth import SmoothRequest

Z95 = 1.959964
SMOOTHED = '#0ca678'
UNSEEN = 0.5        # of the standard deviation of the start, above which a position counts as not seen


def smooth_linkage(mechanism: str, request: SmoothRequest) -> None:
    """Filter and smooth, print, and write what was asked for."""
    check_outputs(request.output, request.json_file, None)
    settings = linkage_settings(request.words, estimator=FILTER)
    model = load_model(mechanism, backend=request.backend)
    found = smooth_linkage_bag(request.bag, model, settings, request.sensors, request.lag, request.step,
                               request.namespace, request.backend)
    for warning in (*found.log.warnings, *unseen(found)):
        typer.echo(f'warning: {warning}', err=True)
    if request.output is not None:
        request.output.mkdir(parents=True)
        write_png(chart(found), (float(found.column('t')[0]), float(found.column('t')[-1])),
                  request.output / 'smoothed.png')
        write_table(found, request.output / 'smoothed.csv')
    write_json(request.json_file, as_json(found, request), None if request.full else 2)
    typer.echo(summary(found, request))


def unseen(found: SmoothedLog) -> list[str]:
    """Positions that the sensors never told, which are known by the start alone."""
    start = np.broadcast_to(found.smoother.noises.position, len(found.model.z))
    best = found.column('stddev')[:, :len(start)].min(axis=0)
    return [f'{name}: the sensors do not see it: its standard deviation is {low:.2g} at best, that of the start '
            f'{first:.2g}' for name, low, first in zip(found.model.independent, best, start) if low > UNSEEN * first]


def errors(found: SmoothedLog) -> dict[str, dict[str, float]]:
    """RMSE of filter and smoother against the truth in the bag, and the share of it within the smoother's 95 %
    interval, by independent coordinate; empty where the bag has no truth."""
    z, place, log = found.model.z, found.place, found.log
    truth, smoothed = log.truth[place][:, z], found.column('q')[:, z]
    filtered = np.array([log.estimates[i].q[z] for i in place])
    known = np.isfinite(truth).all(axis=1)
    if not known.any():
        return {}
    stddev = found.column('stddev')[:, :len(z)]
    inside = np.abs(smoothed - truth) <= Z95 * stddev
    return {name: {'filter': _rms(filtered[known, k] - truth[known, k]),
                   'smoother': _rms(smoothed[known, k] - truth[known, k]),
                   'coverage': float(np.mean(inside[known, k]))} for k, name in enumerate(found.model.independent)}


def _rms(error: np.ndarray) -> float:
    return float(np.sqrt(np.mean(error ** 2)))


def summary(found: SmoothedLog, request: SmoothRequest) -> str:
    """What was smoothed, how much narrower its intervals are, errors where the truth is known, and the cost."""
    log, how = found.log, 'all at once' if request.lag is None else f'{request.lag:g} s of lag'
    lines = [f'smoothed {found.model.description.name}: {", ".join(log.stage.channels)}; {len(found.place)} instants '
             f'of {log.stage.step_ns * 1e-9:g} s, {how}'
             + (f', in {len(found.stretches)} stretches' if len(found.stretches) > 1 else '')]
    for name, (narrow, wide) in spreads(found).items():
        lines.append(f'  {name}: standard deviation {narrow:.3g}, of the filter {wide:.3g} (medians)')
    for name, row in errors(found).items():
        lines.append(f'RMSE against the truth: {name} {row["smoother"]:.3g}, of the filter {row["filter"]:.3g}; '
                     f'{100 * row["coverage"]:.1f} % of the truth within the 95 % interval')
    seconds = len(found.place) * log.stage.step_ns * 1e-9
    lines.append(f'{seconds:.1f} s of data smoothed in {found.seconds:.3f} s '
                 f'({100 * found.seconds / seconds:.2f} % of real time)')
    return '\n'.join(lines)


def spreads(found: SmoothedLog) -> dict[str, tuple[float, float]]:
    """Median standard deviations of smoother and filter, by independent coordinate."""
    own = np.median(found.column('stddev'), axis=0)
    other = np.median(filter_stddev(found), axis=0)
    return {name: (float(own[k]), float(other[k])) for k, name in enumerate(found.model.independent)}


def filter_stddev(found: SmoothedLog) -> np.ndarray:
    """Standard deviations (k, 2g) of the filter's positions and velocities at the smoothed instants."""
    size = 2 * len(found.model.z)
    P = np.array([np.diag(found.log.estimates[i].covariance)[:size] for i in found.place])
    return np.sqrt(np.maximum(P, 0.0))


def as_json(found: SmoothedLog, request: SmoothRequest) -> dict[str, Any]:
    """The fixed machine-readable form."""
    own, after = found.column('stddev'), found.column('after')
    result: dict[str, Any] = {
        'mechanism': found.model.description.name, 'channels': list(found.log.stage.channels), 'lag': request.lag,
        'instants': len(found.place), 'stretches': len(found.stretches), 'names': list(found.smoother.names),
        'median_stddev': np.median(own, axis=0).tolist(),
        'median_filter_stddev': np.median(filter_stddev(found), axis=0).tolist(), 'truth': errors(found),
        'dropped': found.log.stage.dropped,
        'cost': {'seconds': found.seconds,
                 'real_time_share': found.seconds / (len(found.place) * found.log.stage.step_ns * 1e-9)}}
    if request.full:
        result['state'] = {'stamp_ns': [found.log.estimates[i].stamp_ns for i in found.place],
                           'mean': found.column('mean').tolist(), 'stddev': own.tolist(), 'after': after.tolist()}
    return result


def write_table(found: SmoothedLog, path: Path) -> None:
    """Stamp, mean and standard deviations of every instant as CSV, SI."""
    names, mean, stddev = found.smoother.names, found.column('mean'), found.column('stddev')
    with open(path, 'w', newline='', encoding='utf-8') as file:
        table = csv.writer(file)
        table.writerow(['stamp_ns', *names, *(f'{name} stddev' for name in names), 'after'])
        for i, *rest in zip(found.place, mean, stddev, found.column('after')):
            table.writerow([found.log.estimates[i].stamp_ns, *rest[0].tolist(), *rest[1].tolist(), rest[2]])


def chart(found: SmoothedLog) -> Chart:
    """Filter and smoother with their 95 % intervals, and the truth where it is known."""
    panels: list[Panel] = []
    for k, name in enumerate(found.model.independent):
        panels += [_panel(found, k, name, 'q'), _error_panel(found, k, name), _panel(found, k, name, 'qd'),
                   _force_panel(found, k, name)]
    return Chart('Filter and smoother', 'smoothed', tuple(panels))


def _panel(found: SmoothedLog, k: int, name: str, kind: str) -> Panel:
    """Position or velocity."""
    log, t, g, z = found.log, found.column('t'), len(found.model.z), found.model.z[k]
    column = k if kind == 'q' else g + k
    filtered = np.array([getattr(log.estimates[i], kind)[z] for i in found.place])
    smoothed, sigma = found.column(kind)[:, z], found.column('stddev')[:, column]
    wide = filter_stddev(found)[:, column]
    curves = [Curve('filter', t, filtered, COLORS['estimated']), Curve('smoother', t, smoothed, SMOOTHED)]
    truth = log.truth[found.place][:, z]
    if kind == 'q' and np.isfinite(truth).any():
        curves.append(Curve('truth', t, truth, COLORS['true'], 'dashes'))
    title = name if kind == 'q' else f'{name}, velocity'
    bands = (_band('filter', t, filtered, wide, COLORS['estimated']), _band('smoother', t, smoothed, sigma, SMOOTHED))
    return Panel(title, unit(found, name) + ('' if kind == 'q' else '/s'), tuple(curves), bands)


def unit(found: SmoothedLog, name: str) -> str:
    """Unit of an independent coordinate."""
    return 'rad' if is_angle(found.model.description, name) else 'm'


def _band(label: str, t: np.ndarray, middle: np.ndarray, sigma: np.ndarray, color: str) -> Band:
    return Band(f'{label}, 95 %', t, middle - Z95 * sigma, middle + Z95 * sigma, color)


def _error_panel(found: SmoothedLog, k: int, name: str) -> Panel:
    """Errors against the truth, else the filter against the smoother, in the intervals of both."""
    log, t, z = found.log, found.column('t'), found.model.z[k]
    filtered = np.array([log.estimates[i].q[z] for i in found.place])
    smoothed, sigma = found.column('q')[:, z], found.column('stddev')[:, k]
    truth = log.truth[found.place][:, z]
    known = np.isfinite(truth).any()
    base, zero = truth if known else smoothed, np.zeros(len(t))
    curves = [Curve('filter', t, filtered - base, COLORS['estimated'])]
    if known:
        curves.append(Curve('smoother', t, smoothed - base, SMOOTHED))
    limit = 3 * float(np.median(np.abs(filtered - base)[np.isfinite(base)])) + 3 * float(np.median(sigma))
    title = f'{name}, {"error" if known else "less the smoothed one"}'
    return Panel(title, unit(found, name), tuple(curves),
                 (_band('filter', t, zero, filter_stddev(found)[:, k], COLORS['estimated']),
                  _band('smoother', t, zero, sigma, SMOOTHED)), limits=(-2 * limit, 2 * limit))


def _force_panel(found: SmoothedLog, k: int, name: str) -> Panel:
    """The force that the model lacks."""
    t, g = found.column('t'), len(found.model.z)
    filtered = np.array([found.log.estimates[i].force[k] for i in found.place])
    smoothed, sigma = found.column('force')[:, k], found.column('stddev')[:, 2 * g + k]
    return Panel(f'force along {name} that the model lacks', 'N m' if unit(found, name) == 'rad' else 'N',
                 (Curve('filter', t, filtered, COLORS['estimated']), Curve('smoother', t, smoothed, SMOOTHED)),
                 (_band('smoother', t, smoothed, sigma, SMOOTHED),))
