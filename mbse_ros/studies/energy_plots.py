# SPDX-License-Identifier: Apache-2.0
"""Pictures of the energy study, as figures 4 to 7 of paper 000."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ..dynamics.motion import Motion
from ..report.plots import Bars, Line, Plot, write_bars, write_plots
from .energy import EXAMPLES, SCHEMES, STEPS_MS, Run


def write_energy_plots(runs: list[Run], references: dict[str, Motion], result: dict[str, Any], folder: Path) -> None:
    """Energy balance of each example, relative angle, cost of a step."""
    folder.mkdir(parents=True, exist_ok=True)
    for k, example in enumerate(EXAMPLES):
        plots = [_balance([r for r in runs if (r.example, r.dt_ms) == (example, dt)], example, dt) for dt in STEPS_MS]
        write_plots(plots, folder / f'fig{4 + k}_energy_{example}.png')
    example, angle = next((name, angle) for name, angle in EXAMPLES.items() if angle)
    plots = [_angle([r for r in runs if (r.example, r.dt_ms) == (example, dt)], references[example], angle, dt)
             for dt in STEPS_MS]
    write_plots(plots, folder / 'fig6_relative_angle.png')
    rows = [row for row in result['rows'] if row['dt_ms'] == STEPS_MS[0]]
    cost = {name: [row['step_us'] for row in rows if row['example'] == name] for name in EXAMPLES}
    write_bars([Bars('Cost of a step, called from Python', 'microseconds', list(SCHEMES), cost)],
               folder / 'fig7_cost.png')


def _balance(runs: list[Run], example: str, dt_ms: float) -> Plot:
    """Energy error of all schemes on a two-sided logarithmic axis; what blows up leaves the picture."""
    worst = [float(np.max(np.abs(run.motion.balance))) for run in runs if run.blew_up_at is None]
    smallest = min(worst, default=1.0) or 1.0
    top = 10.0 ** math.ceil(math.log10(3.0 * max(worst, default=1.0) or 1.0))
    lines = [Line(run.scheme, run.motion.t, np.clip(run.motion.balance, -1e3 * top, 1e3 * top)) for run in runs]
    return Plot(f'{example}: energy balance, dt = {dt_ms:g} ms', 'time [s]', 'E - E(0) [J]', lines, y_scale='symlog',
                threshold=10.0 ** (math.floor(math.log10(smallest)) - 2), limits=(-top, top))


def _angle(runs: list[Run], reference: Motion, name: str, dt_ms: float) -> Plot:
    """The relative angle over the first second."""
    true = reference.of(name)
    room = 1.6 * float(np.max(np.abs(true)))
    lines = [Line(run.scheme, run.motion.t[run.motion.t <= reference.t[-1]],
                  np.clip(run.motion.of(name)[run.motion.t <= reference.t[-1]], -2 * room, 2 * room)) for run in runs]
    lines.append(Line('reference (DOP853)', reference.t, true, '--', '#16191f'))
    return Plot(f'Relative angle of the spring, dt = {dt_ms:g} ms', 'time [s]', 'rad', lines, limits=(-room, room))
