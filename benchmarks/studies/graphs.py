# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark graphs``: simulation and inverse dynamics of Blanco-Claraco et al., factor graphs, section 7, and
smoothing of logs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console

from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import SettingError
from mbse_ros.graph.forward_lag import ForwardLag, GraphMotion
from mbse_ros.graph.inverse import solve_inverse
from mbse_ros.report.files import check_file, write_json
from mbse_ros.report.series import root_mean_square
from mbse_ros.report.text import number, print_table, wide_console
from mbse_ros.studies.many import machine_name

from .smoothers import estimation_rows, length_rows

FOUR_BAR = 'four_bar_adams'
FORMS = ('dependent', 'independent')
PAPER = {'dependent': (2.361e-3, 2.356e-3, 2.352e-3, 2.348e-3, 2.344e-3, 2.341e-3, 2.338e-3, 2.335e-3, 2.332e-3),
         'independent': (2.3834e-2, 1.9645e-2, 2.0019e-2, 1.6647e-2, 1.6677e-2, 1.6677e-2, 1.6677e-2, 1.7056e-2,
                         1.6677e-2)}
DT = 1e-3
LOG, LAG = 10.0, 0.2                # s, of the logs that are smoothed
LENGTHS = (2.5, 5.0, 10.0)          # s, for the growth with the length of the motion
ADAMS = 'InverseDynamics_4bars_MSC.tab'
REASON = 'no reference of MSC Adams: give its table by --adams'


def run_graphs(json_file: Path | None, duration: float, windows: list[int], loops: list[int], adams: Path | None,
               seeds: int, logs: list[int], backend: str) -> None:
    """Simulate, print, write; raises SettingError."""
    check_file(json_file)
    if not windows or min(windows) < 2:
        raise SettingError('windows', windows, 'window lengths of 2 instants or more')
    if adams is not None and not adams.is_file():
        raise SettingError('adams', str(adams), f'a file, such as {ADAMS}')
    console, model = wide_console(), load_model(FOUR_BAR, backend=backend)
    result = {'machine': machine_name(), 'duration_s': duration, 'dt_s': DT,
              'forward': table_1(model, duration, windows), 'order': orders(model),
              'length': growth_with_length(model), 'loops': growth_with_loops(loops, backend),
              'inverse': inverse_rows(model, adams),
              'estimation': estimation_rows(seeds, LOG, (LAG,)) if seeds else [],
              'logs': length_rows([float(length) for length in logs], LAG)}
    write_json(json_file, result)
    _show(console, result)


def table_1(model: Model, duration: float, windows: list[int]) -> list[dict[str, Any]]:
    """RMSE of q and qd of each window and form against an exact solution, with the cost of a step (Table 1)."""
    exact = simulate(model, duration, DT, 'dop853')
    rows = []
    for form in FORMS:
        for window in windows:
            smoother = ForwardLag(model, DT, window, form)
            motion, seconds = _timed(smoother, duration)
            paper = PAPER[form][window - 2] if window <= 10 else None
            rows.append({'form': form, 'window': window, 'rmse_q': root_mean_square(motion.q - exact.q),
                         'rmse_qd': root_mean_square(motion.qd - exact.qd), 'paper_rmse_q_m': paper,
                         'largest_violation': violation(model, motion.q), 'step_us': 1e6 * seconds / len(motion.t),
                         'iterations': motion.iterations})
    return rows


def orders(model: Model) -> list[dict[str, Any]]:
    """Observed order of the error of q in dt, over one second."""
    exact, rows = simulate(model, 1.0, DT, 'dop853'), []
    for form in FORMS:
        errors = [root_mean_square(ForwardLag(model, k * DT, 2, form).run(1.0).q - exact.q[::k]) for k in (4, 2)]
        rows.append({'form': form, 'rmse_4_ms': errors[0], 'rmse_2_ms': errors[1],
                     'order': float(np.log2(errors[0] / errors[1]))})
    return rows


def growth_with_length(model: Model) -> list[dict[str, Any]]:
    """Time of the whole motion for logs of growing length, window 2."""
    smoother = ForwardLag(model, DT, 2)
    return [{'duration_s': length, 'seconds': _timed(smoother, length)[1]} for length in LENGTHS]


def growth_with_loops(loops: list[int], backend: str) -> list[dict[str, Any]]:
    """Cost of a step with the number of loops of the N-four-bar, window 2."""
    rows = []
    for count in loops:
        model = load_model(f'n_four_bar:{count}', backend=backend)
        smoother = ForwardLag(model, DT, 2)
        motion, seconds = _timed(smoother, 0.5)
        rows.append({'loops': count, 'coordinates': len(model.names), 'step_us': 1e6 * seconds / len(motion.t)})
    return rows


def inverse_rows(model: Model, adams: Path | None) -> dict[str, Any]:
    """Torque and tracking of the motion of 7.2, against MSC Adams where its table is given."""
    if adams is None:
        return {'skipped': REASON}
    table = np.loadtxt(adams, comments='%')
    rows = []
    for form in FORMS:
        began = time.perf_counter()
        found = solve_inverse(model, table[:, 0], lambda t: crank_motion(t)[0], form=form)
        seconds = time.perf_counter() - began
        error = found.forces['theta'] + table[:, 1]         # Adams gives the torque of the other side
        rows.append({'form': form, 'torque_rmse_Nm': root_mean_square(error),
                     'torque_largest_Nm': float(np.max(np.abs(error))),
                     'tracking_largest_rad': float(np.max(np.abs(found.q[:, model.z] - crank_motion(table[:, 0])))),
                     'largest_violation': violation(model, found.q), 'seconds': seconds, 'instants': len(table)})
    return {'rows': rows}


def crank_motion(t: np.ndarray | float) -> np.ndarray:
    """Crank angles (k, 1) of the motion of 7.2 at times (k,), rad."""
    return 1.2 * (1.0 - np.cos(2.0 * np.atleast_1d(t)))[:, None]


def violation(model: Model, q: np.ndarray) -> float:
    """Largest constraint residual over some of the instants."""
    return max(float(np.abs(model.residual(row)[0]).max()) for row in q[::max(1, len(q) // 500)])


def _timed(smoother: ForwardLag, duration: float) -> tuple[GraphMotion, float]:
    """The motion, and the seconds of processor time that it took once compiled."""
    smoother.run((smoother.window + 3) * DT)
    began = time.process_time()
    motion = smoother.run(duration)
    return motion, time.process_time() - began


def _show(console: Console, result: dict[str, Any]) -> None:
    print_table(console, f'forward dynamics of the four-bar over {result["duration_s"]:g} s; {result["machine"]}',
                ('form', 'window', 'RMSE q', 'paper m', 'RMSE qd', 'violation', 'step us'),
                [(r['form'], str(r['window']), number(r['rmse_q']),
                  '' if r['paper_rmse_q_m'] is None else number(r['paper_rmse_q_m']), number(r['rmse_qd']),
                  f'{r["largest_violation"]:.1e}', f'{r["step_us"]:.0f}') for r in result['forward']])
    print_table(console, 'order in dt', ('form', 'RMSE at 4 ms', 'at 2 ms', 'order'),
                [(r['form'], number(r['rmse_4_ms']), number(r['rmse_2_ms']), f'{r["order"]:.2f}')
                 for r in result['order']])
    print_table(console, 'growth', ('of', 'size', 'cost'),
                [('length', f'{r["duration_s"]:g} s', f'{r["seconds"]:.2f} s') for r in result['length']]
                + [('loops', str(r['loops']), f'{r["step_us"]:.0f} us a step') for r in result['loops']])
    _show_logs(console, result)
    inverse = result['inverse']
    if 'skipped' in inverse:
        typer.echo(f'inverse dynamics: skipped, {inverse["skipped"]}')
        return
    print_table(console, 'inverse dynamics against MSC Adams',
                ('form', 'torque RMSE N*m', 'largest', 'tracking rad', 'violation', 's'),
                [(r['form'], number(r['torque_rmse_Nm']), number(r['torque_largest_Nm']),
                  f'{r["tracking_largest_rad"]:.1e}', f'{r["largest_violation"]:.1e}', f'{r["seconds"]:.1f}')
                 for r in inverse['rows']])


def _show_logs(console: Console, result: dict[str, Any]) -> None:
    if result['estimation']:
        print_table(console, f'estimation: a gyro on the coupler, errors of Naya et al., review, mean of '
                    f'{result["estimation"][0]["seeds"]} seeds',
                    ('by', 'position rad', 'times better', 'in 95 % interval', 'us a step', 'diverged'),
                    [(r['way'], *([number(r['rmse_pos']), f'{r["gain"]:.2f}', f'{100 * r["coverage_pos"]:.1f} %',
                                   number(r['step_us'])] if 'rmse_pos' in r else ['–'] * 4), str(r['diverged']))
                     for r in result['estimation']])
    if result['logs']:
        print_table(console, 'smoothing of a log, s', ('length', f'lag {LAG:g} s', 'at once'),
                    [(f'{r["length"]:g} s', f'{r["lagged_s"]:.2f}', f'{r["batch_s"]:.3f}') for r in result['logs']])
