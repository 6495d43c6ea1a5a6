# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark scaling``: cost of the accelerations of a chain of N four-bar linkages, by dense and sparse ways."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu

from mbse_ros.compiled import Kernel
from mbse_ros.description.generate import CHAIN
from mbse_ros.dynamics.formulations.by_name import accelerations
from mbse_ros.dynamics.formulations.matrix_r import constraint_rates
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.dynamics.state_equations import state_function
from mbse_ros.errors import SettingError
from mbse_ros.report.data import Curve, Panel
from mbse_ros.report.files import check_file, check_folder, write_json
from mbse_ros.report.plots import write_plots
from mbse_ros.report.text import number, print_table, wide_console
from mbse_ros.studies.many import machine_name

from .timing import bound, interleaved

SIZES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 60, 80, 100)
LARGEST = 100
FIT_FROM = 5                # loops from which the growth is fitted
ANGLE, SPEED = 1.0, -1.0    # of the first crank, rad and rad/s: no special position
DENSE, SCALAR, SPARSE, BLOCKS = 'dense KKT (LAPACK)', 'dense, scalar (C)', 'sparse QR (C)', 'blocks (C)'
LARGEST_DENSE = 20          # loops whose dense equations are written out in scalar operations; the C is long
_BURST_S = 2e-3             # about the length of one burst

Evaluate = Callable[[], float]     # the acceleration of the first crank, rad/s2


class Case:
    """One chain at one state: the ways to its acceleration."""

    def __init__(self, loops: int) -> None:
        self.loops = loops
        self.model: Model = load_model(f'{CHAIN}:{loops}')
        partition = self.model.partition()
        self.system, self.place = partition.system, partition.independent[0]
        self.zd, self.p = np.array([SPEED]), np.asarray(self.model.parameters, dtype=float)
        self.q = partition.position(np.array([ANGLE]), self.model.start.q)
        self.qd = partition.velocity(self.q, self.zd)

    def ways(self) -> dict[str, Callable[[], Evaluate]]:
        """Makers of the evaluations, by name; each evaluation gives the acceleration of the first crank, rad/s2."""
        dense = {SCALAR: self._scalar} if self.loops <= LARGEST_DENSE else {}
        return {DENSE: lambda: self._array_way('kkt'), 'dense matrix-R (LAPACK)': lambda: self._array_way('matrix_r'),
                'sparse KKT (SuperLU)': self._superlu, 'sparse QR of KKT (C)': self._kkt_qr, **dense,
                SPARSE: lambda: self._compiled(False, ('zdd',)), BLOCKS: lambda: self._compiled(True, ('zdd',)),
                'blocks, with A (C)': lambda: self._compiled(True, ('zdd', 'A', 'qdd', 'lam', 'qd'))}

    def _array_way(self, formulation: str) -> Evaluate:
        """Terms by the compiled model, the equations by LAPACK."""
        options = {'independent': [self.place]} if formulation == 'matrix_r' else {}
        return lambda: float(accelerations(formulation, self.model.terms(self.q, self.qd), **options).qdd[self.place])

    def _pieces(self) -> ca.Function:
        """Function (q, qd, t, p) -> (matrix of KKT, sparse, and right side)."""
        system = self.system
        J, _, c = constraint_rates(system)
        K = ca.vertcat(ca.horzcat(system.M, J.T), ca.horzcat(J, ca.SX(system.m, system.m)))
        return ca.Function('mbse_kkt', [system.q, system.qd, system.t, system.values.symbol],
                           [K, ca.densify(ca.vertcat(system.Q, c))])

    def _superlu(self) -> Evaluate:
        """The nonzeros by a compiled function, the equations by SciPy's SuperLU."""
        pieces = self._pieces()
        symbols = pieces.sx_in()
        K, right = pieces(*symbols)
        pattern = K.sparsity()
        kernel = Kernel(ca.Function('mbse_kkt_nonzeros', symbols, [ca.vertcat(*K.nonzeros()), right]))
        rows, columns = np.array(pattern.row()), np.array(pattern.colind())

        def evaluate() -> float:
            values, b = kernel(self.q, self.qd, [0.0], self.p)
            return float(splu(csc_matrix((values, rows, columns), shape=pattern.shape)).solve(b)[self.place])
        return evaluate

    def _kkt_qr(self) -> Evaluate:
        """All in generated C: sparse QR of the KKT matrix."""
        pieces = self._pieces()
        symbols = pieces.mx_in()
        K, right = pieces(*symbols)
        zdd = ca.solve(K, right, 'qr')[self.place]
        return _bound(ca.Function('mbse_kkt_qr', symbols, [zdd]), [self.q, self.qd, np.zeros(1), self.p])

    def _scalar(self) -> Evaluate:
        """Matrix-R with the dense inverse of the constraints written out in scalar operations."""
        system = self.system
        J, _, c = constraint_rates(system)
        order = system.dependent + system.independent
        J_d = ca.densify(J[:, system.dependent])
        solved = ca.solve(J_d, ca.densify(ca.horzcat(-J[:, system.independent], c)))
        R, free = ca.vertcat(solved[:, 0], 1), ca.vertcat(solved[:, 1], 0)
        M, Q = system.M[order, order], system.Q[order]
        zdd = ca.dot(R, Q - M @ free) / ca.dot(R, M @ R)
        return _bound(ca.Function('mbse_dense', [system.q, system.qd, system.t, system.values.symbol], [zdd],
                                  {'cse': True}), [self.q, self.qd, np.zeros(1), self.p])

    def _compiled(self, scalar: bool, outputs: tuple[str, ...]) -> Evaluate:
        """The model's own function: matrix-R by sparse QR at run time, or block by block in scalar operations."""
        function = state_function(self.system, self.system.values.symbol, scalar)
        symbols = function.sx_in() if scalar else function.mx_in()
        found = dict(zip(function.name_out(), function.call(symbols, True, False)))
        part = ca.Function('mbse_chain', symbols, [found[name] for name in outputs], {'cse': True})
        return _bound(part, [self.q, self.zd, np.zeros(0), np.zeros(1), self.p])


def _bound(function: ca.Function, arguments: list[np.ndarray]) -> Evaluate:
    """The first output of a compiled function on arguments that stay."""
    run, (first, *_) = bound(function, arguments)

    def evaluate() -> float:
        run()
        return float(first[0])
    return evaluate


def run_scaling(json_file: Path | None, output: Path | None, largest: int, rounds: int) -> None:
    """Measure, print and write."""
    if not 1 <= largest <= LARGEST:
        raise SettingError('largest', largest, f'a number of loops from 1 to {LARGEST}')
    check_file(json_file)
    check_folder(output)
    console = wide_console()
    sizes = sorted({*(size for size in SIZES if size <= largest), largest})
    rows = [row for size in track(sizes, 'measuring', transient=True, disable=not console.is_terminal)
            for row in measure(Case(size), rounds)]
    result = {'machine': machine_name(), 'rows': rows, 'exponents': exponents(rows), 'crossovers': crossovers(rows)}
    write_json(json_file, result)
    if output is not None:
        _plot(rows, output)
    _show(console, result)


def measure(case: Case, rounds: int) -> list[dict[str, Any]]:
    """Cost and result of each way at one size."""
    evaluations, build = {}, {}
    for name, make in case.ways().items():
        begin = time.perf_counter()
        evaluations[name] = make()
        build[name] = time.perf_counter() - begin
    values = {name: evaluate() for name, evaluate in evaluations.items()}
    calls: dict[str, tuple[Callable[[], object], int]] = {}
    for name, evaluate in evaluations.items():
        begin = time.perf_counter()
        evaluate()
        calls[name] = (evaluate, max(1, round(_BURST_S / (time.perf_counter() - begin))))
    best = interleaved(calls, rounds)
    return [{'loops': case.loops, 'coordinates': case.system.n, 'way': name, 'zdd_us': 1e6 * best[name],
             'zdd': values[name], 'difference': abs(values[name] / values[DENSE] - 1.0), 'build_s': build[name]}
            for name in evaluations]


def exponents(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    """Growth of the cost with N by way: slope of the fit in logarithms from FIT_FROM loops on."""
    found = {}
    for way in dict.fromkeys(row['way'] for row in rows):
        points = [(row['loops'], row['zdd_us']) for row in rows if row['way'] == way and row['loops'] >= FIT_FROM]
        logs = np.log(np.array(points)) if len(points) > 1 else None
        found[way] = None if logs is None else float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
    return found


def crossovers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """From how many loops on the second way of each pair is cheaper than the first, over the sizes that both have.

    None: at no size measured; then ``extrapolated`` is where the fits of the last three sizes meet, None if nowhere.
    """
    cost = {(row['way'], row['loops']): row['zdd_us'] for row in rows}
    found = []
    for first, second in ((DENSE, 'sparse KKT (SuperLU)'), (SCALAR, SPARSE), (SCALAR, BLOCKS), (BLOCKS, SPARSE)):
        sizes = sorted(size for way, size in cost if way == second and (first, size) in cost)
        cheaper = [cost[second, size] < cost[first, size] for size in sizes]
        last = max((k for k, good in enumerate(cheaper) if not good), default=-1)
        measured = sizes[last + 1] if last + 1 < len(sizes) else None
        meeting = _meeting(sizes[-3:], cost, first, second) if measured is None else None
        found.append({'from': first, 'to': second, 'loops': measured, 'extrapolated': meeting})
    return found


def _meeting(sizes: list[int], cost: dict[tuple[str, int], float], first: str, second: str) -> float | None:
    """Beyond the sizes (k,), where the straight lines through two costs meet in logarithms; None if they do not."""
    if len(sizes) < 2:
        return None
    ratio = [np.log(cost[second, size] / cost[first, size]) for size in sizes]
    slope, offset = np.polyfit(np.log(sizes), ratio, 1)
    found = float(np.exp(min(-offset / slope, 20.0))) if slope < 0 else None
    return found if found is not None and found > sizes[-1] else None


def _plot(rows: list[dict[str, Any]], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    points = {way: np.array([(row['loops'], row['zdd_us']) for row in rows if row['way'] == way])
              for way in dict.fromkeys(row['way'] for row in rows)}
    curves = [Curve(way, columns[:, 0], columns[:, 1], kind='marks') for way, columns in points.items()]
    sizes = np.array(sorted({row['loops'] for row in rows if row['loops'] >= FIT_FROM}), dtype=float)
    if len(sizes) > 1:
        begin = next(row['zdd_us'] for row in rows if (row['way'], row['loops']) == (SPARSE, int(sizes[0])))
        curves.append(Curve('N^1.5', sizes, 2.2 * begin * (sizes / sizes[0]) ** 1.5, '#8b929c', 'dashes'))
    write_plots([Panel('N-four-bar: cost of the acceleration', 'microseconds', curves, x_label='loops N', x_scale='log',
                       y_scale='log')], folder / 'scaling.png')


def _show(console: Console, result: dict[str, Any]) -> None:
    rows = result['rows']
    sizes = sorted({row['loops'] for row in rows})
    cost = {(row['way'], row['loops']): row['zdd_us'] for row in rows}
    lines = [(way, *(number(cost[way, size]) if (way, size) in cost else '' for size in sizes),
              '-' if power is None else f'{power:.2f}') for way, power in result['exponents'].items()]
    print_table(console, f'N-four-bar, microseconds for the acceleration; {result["machine"]}',
                ('way', *(f'N={size}' for size in sizes), 'growth'), lines)
    typer.echo(f'growth: exponent of N, fitted from N = {FIT_FROM} on; largest relative difference from dense KKT '
               f'{max(row["difference"] for row in rows):.1e}')
    for item in result['crossovers']:
        beyond = item['extrapolated']
        guess = '' if beyond is None else f' measured, by extrapolation from about N = {beyond:.0f} on'
        when = f'at no size{guess}' if item['loops'] is None else f'from N = {item["loops"]} on'
        typer.echo(f'{item["to"]} is cheaper than {item["from"]} {when}')
