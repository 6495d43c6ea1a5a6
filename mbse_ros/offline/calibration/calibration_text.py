# SPDX-License-Identifier: Apache-2.0
"""What a calibration found, and the procedure for its bags, as tables, JSON and plots of what the forces lack."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ...calibration.identifiability import LEARNT
from ...calibration.plan import CandidateMotion, Plan
from ...machine import Machine
from ...report.chart import COLORS, Chart, Curve, Panel
from ...report.png import write_png
from ...report.sections import print_table, wide_console
from ...report.text import number
from .calibrate_machine import Calibration, LeftOut, forces

AROUND = 0.06       # of the stroke, from which a pose is approached, at 5 % of the stroke a second
STEPS = '''\
1. Warm up the oil. Place the machine as it will work, and note its attitude. Empty and clean the bucket or grapple.
2. Record one bag, `empty`: all channels of the machine. Go to each pose below; there move one cylinder after the other
   slowly (about {slow}) {around} out through the pose and back in again, so that each is approached from below
   and from above, at steady speed for 1 s or more each way. Leave out what cannot be reached safely.
3. In the same bag sweep each cylinder once over its stroke, slowly, out and in, from where the table says.
4. Take a weight that is known to 0.5 % or better, near {load:g} kg. Record a second bag, `load`: the poses with a load,
   in the same way.
5. mbse calibrate empty load --payload load={load:g} --machine {machine} -o {name}_calibrated.yaml --cross-validate
6. Weigh the known load once more with the new file, in a pose that was not among them: it must be within its interval.
'''


def calibration_json(found: Calibration, left: Sequence[LeftOut] = ()) -> dict[str, Any]:
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


def show_calibration(found: Calibration, left: Sequence[LeftOut], output: Path | None) -> None:
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


def show_plan(machine: Machine, name: str, found: Plan) -> None:
    """Steps, poses, and what they tell."""
    console, stroke = wide_console(), machine.stroke[:, 1] - machine.stroke[:, 0]
    slow = ', '.join(f'{item} {50 * span:.0f} mm/s' for item, span in zip(machine.cylinders, stroke))
    around = ', '.join(f'{1e3 * AROUND * span:.0f} mm' for span in stroke)
    console.print(f'Calibration of {machine.name}', markup=False)
    steps = STEPS.format(slow=slow, around=around, load=found.load, machine=name, name=machine.name)
    console.print(steps, markup=False, highlight=False, soft_wrap=True)
    rows = [[f'pose {k + 1}', *_places(item)] for k, item in enumerate(found.poses)]
    rows += [[f'sweep {item.cylinder}', *_places(item)] for item in found.sweeps]
    rows += [[f'with {item.load:g} kg, pose {k + 1}', *_places(item)] for k, item in enumerate(found.loaded)]
    print_table(console, 'positions of the pistons, mm', ['', *machine.cylinders], rows)
    rows = [[key, number(before), number(after), '' if after <= LEARNT * before else 'not determined by this procedure']
            for key, before, after in zip(found.keys, found.before, found.after)]
    print_table(console, 'standard deviations, as in the file and as after the procedure, SI',
                ['number', 'before', 'after', ''], rows)


def _places(item: CandidateMotion) -> list[str]:
    return [f'{1e3 * place:.0f}' for place in item.pistons]


def plan_json(machine: Machine, found: Plan) -> dict[str, Any]:
    """The same."""
    def pose(item: CandidateMotion) -> dict[str, Any]:
        return {'pistons': dict(zip(machine.cylinders, np.round(item.pistons, 4).tolist())),
                'coordinates': dict(zip(machine.coordinates, item.z.tolist())), 'cylinder': item.cylinder,
                'load': item.load}

    return {'machine': machine.name, 'poses': [pose(item) for item in found.poses],
            'sweeps': [pose(item) for item in found.sweeps], 'loaded': [pose(item) for item in found.loaded],
            'load': found.load, 'parameters': [{'key': key, 'stddev_before': before, 'stddev_after': after}
                                               for key, before, after in zip(found.keys, found.before, found.after)]}
