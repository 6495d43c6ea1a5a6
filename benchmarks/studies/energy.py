# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark energy``: the study of Pyrhönen et al., state transition, figures 4 to 7, of the schemes of its
section 3."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.progress import track

from mbse_ros.dynamics.integrators import INTEGRATORS
from mbse_ros.dynamics.integrators.task import MotionRecord, MotionTask
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.dynamics.motion import Motion, simulate
from mbse_ros.report.data import Curve, Panel
from mbse_ros.report.files import check_file, check_folder, write_json
from mbse_ros.report.plots import Bars, write_bars, write_plots
from mbse_ros.report.text import number, print_table, wide_console
from mbse_ros.simulation.energy_balance import EXAMPLES, SCHEMES, SchemeRun, largest_kinetic, run_case
from mbse_ros.studies.many import machine_name

from .timing import bound_state, interleaved

CRANKS = {'four_bar': 'theta', 'four_bar_spring': 'theta1'}
STEPS_MS = (1.0, 10.0)
OBSERVED = 1.0              # s, over which the relative angle is compared with the reference
_TIMED = (2, 14)            # steps in a short and in a long burst


def run_energy(json_file: Path | None, output: Path | None, duration: float, rounds: int) -> None:
    """Simulate, print, write."""
    check_file(json_file)
    check_folder(output)
    console = wide_console()
    models = {name: load_model(name) for name in EXAMPLES}
    references = {name: simulate(model, min(OBSERVED, duration), 1e-3, 'dop853') for name, model in models.items()}
    largest = {name: largest_kinetic(model, duration) for name, model in models.items()}
    cases = [(name, dt, scheme) for name in EXAMPLES for dt in STEPS_MS for scheme in SCHEMES]
    runs = [run_case(models[name], name, dt, scheme, duration, largest[name])
            for name, dt, scheme in track(cases, 'simulating', transient=True, disable=not console.is_terminal)]
    cost = step_cost(models, rounds)
    evaluation = evaluation_cost(models, rounds)
    result = {'machine': machine_name(), 'duration_s': duration,
              'rows': [row_of(run, references[run.example], cost[run.example, run.scheme]) for run in runs],
              'orders': observed_orders(runs), 'f_and_A_us': evaluation}
    write_json(json_file, result)
    if output is not None:
        write_energy_plots(runs, references, result, output)
    _show(console, result)


def row_of(run: SchemeRun, reference_: Motion, step_us: float) -> dict[str, Any]:
    """One row of the table; None for what has no value."""
    balance = run.motion.balance
    ended = run.blew_up_at is not None
    angle = EXAMPLES[run.example]
    return {'example': run.example, 'dt_ms': run.dt_ms, 'scheme': run.scheme,
            'largest_energy_error_J': np.max(np.abs(balance)),
            'final_energy_error_J': None if ended else balance[-1],
            'rmse_angle': rmse(run.motion, reference_, CRANKS[run.example]),
            'rmse_relative_angle': rmse(run.motion, reference_, angle) if angle else None,
            'step_us': step_us, 'blew_up_at_s': run.blew_up_at}


def rmse(motion: Motion, reference_: Motion, name: str) -> float | None:
    """Root mean square error of a coordinate over the time of the reference; None where the motion ends before."""
    wanted = reference_.t[-1]
    inside = motion.t <= wanted + 1e-9
    if motion.t[-1] < wanted - 1e-9:
        return None
    true = reference_.of(name)[np.rint(motion.t[inside] / 1e-3).astype(int)]
    return np.sqrt(np.mean((motion.of(name)[inside] - true) ** 2))


def observed_orders(runs: list[SchemeRun]) -> list[dict[str, Any]]:
    """Order of the largest energy error in dt, from the two steps, where neither blew up."""
    found = []
    for example in EXAMPLES:
        for scheme in SCHEMES:
            pair = [next(r for r in runs if (r.example, r.scheme, r.dt_ms) == (example, scheme, dt)) for dt in STEPS_MS]
            errors = [float(np.max(np.abs(run.motion.balance))) for run in pair]
            good = all(run.blew_up_at is None for run in pair) and min(errors) > 0
            order = math.log(errors[1] / errors[0]) / math.log(STEPS_MS[1] / STEPS_MS[0]) if good else None
            found.append({'example': example, 'scheme': scheme, 'order': order})
    return found


def step_cost(models: dict[str, Model], rounds: int) -> dict[tuple[str, str], float]:
    """Microseconds a step of each scheme as called from Python: longer bursts less shorter ones, each the fastest."""
    cases = [(name, scheme) for name in models for scheme in SCHEMES]
    calls = {f'{name}/{scheme}/{steps}': (_burst(models[name], scheme, steps), 1)
             for name, scheme in cases for steps in _TIMED}
    best = interleaved(calls, rounds)
    short, long = _TIMED
    return {(name, scheme): 1e6 * (best[f'{name}/{scheme}/{long}'] - best[f'{name}/{scheme}/{short}']) / (long - short)
            for name, scheme in cases}


def _burst(model: Model, scheme: str, steps: int) -> Callable[[], object]:
    name, options = SCHEMES[scheme]
    times = 1e-3 * np.arange(steps + 1)
    return lambda: INTEGRATORS[name](MotionTask(model, model.start, times, 1e-3, name, None, None),
                                     MotionRecord.of(model, times), **options)


def evaluation_cost(models: dict[str, Model], rounds: int) -> dict[str, float]:
    """Microseconds of f with its exact Jacobian A, compiled, called into arrays that stay."""
    calls = {}
    for name, model in models.items():
        partition, start = model.partition(), model.start
        calls[name] = (bound_state(partition, start.q, start.qd[partition.independent], backend=model.backend),
                       300)
    return {name: 1e6 * seconds for name, seconds in interleaved(calls, rounds).items()}


def _show(console: Any, result: dict[str, Any]) -> None:
    orders = {(item['example'], item['scheme']): item['order'] for item in result['orders']}
    rows = []
    for row in result['rows']:
        order = orders[row['example'], row['scheme']]
        rows.append((row['example'], f'{row["dt_ms"]:g}', row['scheme'], _cell(row['largest_energy_error_J']),
                     _cell(row['final_energy_error_J']), _cell(row['rmse_relative_angle']), _cell(order, 2),
                     f'{row["step_us"]:.0f}', '' if row['blew_up_at_s'] is None else f'{row["blew_up_at_s"]:.2f} s'))
    print_table(console, f'energy balance over {result["duration_s"]:g} s; {result["machine"]}',
                ('example', 'dt ms', 'scheme', 'largest |E| J', 'final J', 'RMSE bend rad', 'order', 'step us',
                 'blew up'), rows)
    costs = ', '.join(f'{name} {value:.2f} us' for name, value in result['f_and_A_us'].items())
    typer.echo(f'RMSE: over the first second against DOP853; order: of the largest error, from both steps; step: from '
               f'Python\nf with its exact Jacobian A, compiled: {costs}')


def _cell(value: float | None, digits: int = 3) -> str:
    return '' if value is None or not math.isfinite(value) else number(value, digits)


def write_energy_plots(runs: list[SchemeRun], references: dict[str, Motion], result: dict[str, Any],
                       folder: Path) -> None:
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


def _balance(runs: list[SchemeRun], example: str, dt_ms: float) -> Panel:
    """Energy error of all schemes on a two-sided logarithmic axis; what blows up leaves the picture."""
    worst = [float(np.max(np.abs(run.motion.balance))) for run in runs if run.blew_up_at is None]
    smallest = min(worst, default=1.0) or 1.0
    top = 10.0 ** math.ceil(math.log10(3.0 * max(worst, default=1.0) or 1.0))
    curves = [Curve(run.scheme, run.motion.t, np.clip(run.motion.balance, -1e3 * top, 1e3 * top)) for run in runs]
    return Panel(f'{example}: energy balance, dt = {dt_ms:g} ms', 'E - E(0) [J]', curves, y_scale='symlog',
                 threshold=10.0 ** (math.floor(math.log10(smallest)) - 2), limits=(-top, top))


def _angle(runs: list[SchemeRun], reference: Motion, name: str, dt_ms: float) -> Panel:
    """The relative angle over the first second."""
    true = reference.of(name)
    room = 1.6 * float(np.max(np.abs(true)))
    seen = [(run, run.motion.t <= reference.t[-1]) for run in runs]
    curves = [Curve(run.scheme, run.motion.t[part], np.clip(run.motion.of(name)[part], -2 * room, 2 * room))
              for run, part in seen]
    curves.append(Curve('reference (DOP853)', reference.t, true, '#16191f', 'dashes'))
    return Panel(f'Relative angle of the spring, dt = {dt_ms:g} ms', 'rad', curves, limits=(-room, room))
