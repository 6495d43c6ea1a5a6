# SPDX-License-Identifier: Apache-2.0
"""``mbse smooth BAG --mechanism M``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...description.coordinate_units import unit_of
from ...dynamics.model import load_model
from ...offline.linkage import estimate_linkage_bag, linkage_settings
from ...offline.smooth_linkage import SmoothedLog, check_filter, smooth_linkage_log
from ...report.chart import Panel
from ...report.series import Z95, root_mean_square
from ..logs import Answer, LogRequest, cost, cost_line
from ..panels import how, interval, panel, write_panels
from ..tables import write_table

UNSEEN = 0.5        # of the standard deviation of the start, above which a position counts as not seen



def smooth_linkage(mechanism: str, request: LogRequest) -> Answer:
    """Filter and smooth."""
    settings = linkage_settings(request.words)
    check_filter(settings)
    log = estimate_linkage_bag(request.bag, load_model(mechanism, backend=request.backend), settings, request.sensors,
                               request.step, request.namespace, request.backend)
    found = smooth_linkage_log(log, settings, request.lag, request.backend, str(request.bag))
    return Answer([*found.log.warnings, *unseen(found)], summary(found, request), as_json(found, request),
                  lambda folder: write_files(found, folder))


def unseen(found: SmoothedLog) -> list[str]:
    """Positions that no sensor measured, known from the start alone."""
    start = np.broadcast_to(found.smoother.noises.position, len(found.model.z))
    best = found.column('stddev')[:, :len(start)].min(axis=0)
    return [f'{name}: the sensors do not see it: its standard deviation is {low:.2g} at best, that of the start '
            f'{first:.2g}' for name, low, first in zip(found.model.independent, best, start) if low > UNSEEN * first]


def errors(found: SmoothedLog) -> dict[str, dict[str, float]]:
    """RMSE of filter and smoother against the truth in the bag, and the share of it within the smoother's 95 %
    interval, by independent coordinate; empty where the bag has no truth."""
    z, truth = found.model.z, found.log.truth[found.place]
    filtered, smoothed = ((q - truth)[:, z] for q in (found.filtered('q'), found.column('q')))
    known = np.isfinite(smoothed).all(axis=1)
    if not known.any():
        return {}
    inside = np.abs(smoothed) <= Z95 * found.column('stddev')[:, :len(z)]
    return {name: {'filter': root_mean_square(filtered[known, k]), 'smoother': root_mean_square(smoothed[known, k]),
                   'coverage': float(np.mean(inside[known, k]))} for k, name in enumerate(found.model.independent)}


def summary(found: SmoothedLog, request: LogRequest) -> list[str]:
    """What was smoothed, how much narrower its intervals are, errors where the truth is known, and the cost."""
    log = found.log
    lines = [f'smoothed {found.model.description.name}: {", ".join(log.stage.channels)}; {len(found.place)} instants '
             f'of {log.step:g} s, {how(request)}'
             + (f', in {len(found.stretches)} stretches' if len(found.stretches) > 1 else '')]
    own, other = np.median(found.column('stddev'), axis=0), np.median(filter_stddev(found), axis=0)
    lines += [f'  {name}: standard deviation {own[k]:.3g}, of the filter {other[k]:.3g} (medians)'
              for k, name in enumerate(found.model.independent)]
    lines += [f'RMSE against the truth: {name} {row["smoother"]:.3g}, of the filter {row["filter"]:.3g}; '
              f'{100 * row["coverage"]:.1f} % of the truth within the 95 % interval'
              for name, row in errors(found).items()]
    return [*lines, cost_line(found.seconds, found.log_seconds, ' smoothed')]


def filter_stddev(found: SmoothedLog) -> np.ndarray:
    """Standard deviations (k, 2g) of the filter's positions and velocities at the smoothed instants."""
    variance = np.diagonal(found.filtered('covariance'), axis1=1, axis2=2)[:, :2 * len(found.model.z)]
    return np.sqrt(np.maximum(variance, 0.0))


def as_json(found: SmoothedLog, request: LogRequest) -> dict[str, Any]:
    """Deviations of filter and smoother, errors, cost, and in ``full`` every instant."""
    own = found.column('stddev')
    result: dict[str, Any] = {
        'mechanism': found.model.description.name, 'channels': found.log.stage.channels, 'lag': request.lag,
        'instants': len(found.place), 'stretches': len(found.stretches), 'names': found.smoother.names,
        'median_stddev': np.median(own, axis=0), 'median_filter_stddev': np.median(filter_stddev(found), axis=0),
        'truth': errors(found), 'dropped': found.log.stage.dropped, 'cost': cost(found.seconds, found.log_seconds)}
    if request.full:
        result['state'] = {'stamp_ns': found.filtered('stamp_ns'), 'mean': found.column('mean'), 'stddev': own,
                           'after': found.column('after')}
    return result


def write_files(found: SmoothedLog, folder: Path) -> None:
    """Picture, and stamp, mean and standard deviations of every instant as CSV, SI."""
    folder.mkdir(parents=True)
    write_panels(panels(found), folder)
    names = found.smoother.names
    write_table(folder / 'smoothed.csv', ['stamp_ns', *names, *(f'{name} stddev' for name in names), 'after'],
                [found.filtered('stamp_ns'), *found.column('mean').T, *found.column('stddev').T, found.column('after')])


def panels(found: SmoothedLog) -> list[Panel]:
    """Of each coordinate position, error against the truth (else filter less smoother), velocity, and the force that
    the model lacks."""
    t, g, wide, narrow = found.column('t'), len(found.model.z), filter_stddev(found), found.column('stddev')
    drawn = []
    for k, (name, z) in enumerate(zip(found.model.independent, found.model.z)):
        unit, zero, truth = unit_of(found.model.description, name), np.zeros(len(t)), found.log.truth[found.place, z]
        (q, q_s), (v, v_s) = ((found.filtered(kind)[:, z], found.column(kind)[:, z]) for kind in ('q', 'qd'))
        f, f_s = found.filtered('force')[:, k], found.column('force')[:, k]
        known = bool(np.isfinite(truth).any())
        base = truth if known else q_s
        limit = 6 * float(np.nanmedian(np.abs(q - base)) + np.median(narrow[:, k]))
        drawn += [
            panel(name, unit, t, {'filter': q, 'smoother': q_s, **({'truth': truth} if known else {})},
                  {'filter': interval(q, wide[:, k]), 'smoother': interval(q_s, narrow[:, k])}),
            panel(f'{name}, {"error" if known else "less the smoothed one"}', unit, t,
                  {'filter': q - base, **({'smoother': q_s - base} if known else {})},
                  {'filter': interval(zero, wide[:, k]), 'smoother': interval(zero, narrow[:, k])}, (-limit, limit)),
            panel(f'{name}, velocity', f'{unit}/s', t, {'filter': v, 'smoother': v_s},
                  {'filter': interval(v, wide[:, g + k]), 'smoother': interval(v_s, narrow[:, g + k])}),
            panel(f'force along {name} that the model lacks', 'N m' if unit == 'rad' else 'N', t,
                  {'filter': f, 'smoother': f_s}, {'smoother': interval(f_s, narrow[:, 2 * g + k])})]
    return drawn
