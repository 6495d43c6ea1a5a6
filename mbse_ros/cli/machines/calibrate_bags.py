# SPDX-License-Identifier: Apache-2.0
"""``mbse calibrate``: the numbers of a machine's file by its bags; tables and plots of what the forces lack."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ...description.edit import for_folder
from ...errors import SettingError
from ...offline.calibration.calibrate_machine import Calibration, LeftOut, calibrate_bags, forces
from ...report.chart import COLORS, Chart, Curve, Panel
from ...report.files import check_file, check_folder, write_json
from ...report.png import write_png
from ...report.sections import print_table, wide_console
from ...report.text import number
from ...resources import write_whole
from ...sources.map import SourceMap
from ...studies.many import many


@dataclass(frozen=True)
class CalibrationRequest:
    """What to calibrate, by which bags, and what to write."""

    bags: Sequence[Path]
    machine: str
    output: Path | None = None
    payloads: Sequence[str] = ()
    free: Sequence[str] = ()
    cross_validate: bool = False
    plots: Path | None = None
    namespace: str | None = None
    sources: SourceMap | None = None
    jobs: int = 1
    force: bool = False
    cluster: str | None = None


def calibrate_command(request: CalibrationRequest, json_file: Path | None) -> None:
    """Calibrate, write, print; raises SettingError, BagError, DescriptionError."""
    check_file(json_file)
    check_file(request.output, '--output', ('.yaml', '.yml'))
    check_folder(request.plots)
    if request.cross_validate and len(request.bags) < 2:
        raise SettingError('--cross-validate', len(request.bags), 'two bags or more')
    by = None if request.jobs == 1 and request.cluster is None else partial(
        many, jobs=request.jobs, cluster=request.cluster, what='bags')
    found = calibrate_bags(request.machine, request.bags, request.payloads, request.free, request.namespace,
                           request.sources, by)
    left = found.cross_validation() if request.cross_validate else ()
    for line in found.warnings:
        typer.echo(f'warning: {line}', err=True)
    write_json(json_file, as_json(found, left))
    if request.plots is not None:
        write_plots(found, request.plots)
    output = None if found.trouble or found.unexplained and not request.force else request.output
    if output is not None:
        write_whole(output, for_folder(found.text, found.machine.description.file, output))
    show(found, left, output)
    if found.unexplained:
        typer.echo(f'warning: {found.unexplained}', err=True)
    if request.output is not None and output is None:
        why = 'see the warning; --force writes it' if not found.trouble else (
            f'what the bags ask for is not a machine that a file may describe: {found.trouble}')
        typer.echo(f'mbse: {request.output}: not written: {why}', err=True)
        raise typer.Exit(1)


def as_json(found: Calibration, left: Sequence[LeftOut] = ()) -> dict[str, Any]:
    """The result; SI, forces in N at the pistons."""
    result = {
        'machine': found.machine.name,
        'parameters': [{**asdict(item), 'correlated_with': list(item.correlated_with), 'learnt': item.learnt}
                       for item in found.parameters],
        'residual_rms_before': found.residual_rms_before, 'residual_rms_after': found.residual_rms_after,
        'noise_rms': found.noise_rms, 'unexplained': found.unexplained, 'trouble': found.trouble,
        'cannot_tell': list(found.cannot_tell), 'advice': list(found.advice),
        'bags': [asdict(item) for item in found.bags], 'singular_values': found.singular_values,
        'loads': [{'name': name, 'mass': mass, 'stddev': stddev} for name, (mass, stddev) in found.loads.items()]}
    return {**result, 'cross_validation': [asdict(item) for item in left]} if left else result


def show(found: Calibration, left: Sequence[LeftOut], output: Path | None) -> None:
    """Numbers, residuals, what the bags do not tell, what would help."""
    console = wide_console()
    rows = [[item.key, spread(item.before, item.stddev_before), spread(item.after, item.stddev_after),
             '' if item.learnt else 'prior kept']
            for item in found.parameters]
    print_table(console, f'{found.machine.name}: numbers, 1 sigma, SI', ['number', 'before', 'after', ''], rows)
    rows = [[item.bag, str(item.count), number(item.before), number(item.after)] for item in found.bags]
    rows.append(['all', str(sum(item.count for item in found.bags)), number(found.residual_rms_before),
                 number(found.residual_rms_after)])
    print_table(console, 'forces that are missing at the pistons, RMS, N', ['bag', 'windows', 'before', 'after'], rows)
    if left:
        print_table(console, 'each bag by the numbers of all others',
                    ['bag', 'before, N', 'after, N', 'weighed, kg', 'load, kg'],
                    [[item.bag, number(item.before), number(item.after), number(item.mass),
                      number(item.true) if math.isfinite(item.true) else 'unknown'] for item in left])
    for name, (mass, stddev) in found.loads.items():
        console.print(f'load {name}: {number(mass)} +- {number(stddev)} kg', markup=False)
    for title, lines in (('what these bags cannot determine', found.cannot_tell),
                         ('what would help most', found.advice)):
        if lines:
            console.print(f'{title}:', *(f'  - {line}' for line in lines), sep='\n', markup=False, highlight=False,
                          soft_wrap=True)
    if output is not None:
        console.print(f'wrote {output}: mbse check {output} shows what was understood', markup=False, soft_wrap=True)


def spread(value: float, stddev: float) -> str:
    """Both to two digits of the standard deviation."""
    digits = 1 - math.floor(math.log10(stddev)) if stddev > 0.0 else 6
    if not 0 <= digits <= 8:
        return f'{value:.6g} +- {stddev:.2g}'
    return f'{round(value, digits) + 0.0:.{digits}f} +- {stddev:.{digits}f}'


def write_plots(found: Calibration, folder: Path) -> None:
    """``residuals_by_pose.png`` and ``residuals_by_speed.png``, one panel for each equation that counts anywhere."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, title, scale, unit in (('pose', 'piston position', 1e3, 'mm'), ('speed', 'piston speed', 1e3, 'mm/s')):
        panels = [panel for k in range(len(found.problem.balance.equations))
                  if (panel := _panel(found, k, kind, f'{title} [{unit}]', scale)) is not None]
        if not panels:
            continue
        x = np.concatenate([curve.t for panel in panels for curve in panel.curves])
        room = 0.05 * max(float(np.ptp(x)), 1e-3)
        chart = Chart(f'Missing forces by {kind}', f'residuals_by_{kind}', tuple(panels))
        write_png(chart, (float(x.min()) - room, float(x.max()) + room), folder / f'{chart.name}.png')


def _panel(found: Calibration, k: int, kind: str, label: str, scale: float) -> Panel | None:
    """Of equation ``k``, over the first cylinder whose friction is in it."""
    problem = found.problem
    cylinder = int(np.argmax(problem.balance.found.concerns[k]))
    columns = []
    for log in problem.logs:
        own = log.moments.counts[:, k]
        columns.append((scale * (log.moments.pistons if kind == 'pose' else log.moments.speeds)[own, cylinder],
                        forces(problem, log, found.start)[own, k], forces(problem, log, found.fit.u)[own, k]))
    x, before, after = (np.concatenate(item) for item in zip(*columns))
    if not len(x):
        return None
    order = np.argsort(x)
    curves = (Curve('before', x[order], before[order], COLORS['measured'], 'dots'),
              Curve('after', x[order], after[order], COLORS['estimated'], 'dots'))
    return Panel(problem.balance.equations[k], 'N', curves, x_label=label)
