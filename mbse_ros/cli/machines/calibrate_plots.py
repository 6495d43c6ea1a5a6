# SPDX-License-Identifier: Apache-2.0
"""Pictures of a calibration: what is missing in the balance of forces, by pose and by speed, before and after."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...offline.calibration.calibrate_machine import Calibration, forces
from ...report.chart import COLORS, Chart, Curve, Panel
from ...report.png import write_png


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
