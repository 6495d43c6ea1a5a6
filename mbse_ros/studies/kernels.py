# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark kernels``: cost of one observer step and of the first one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from ..compiled import Kernel, Scan, have_compiler
from ..estimators.hydraulic_model import NOISES, HydraulicModel, hydraulic_model
from ..estimators.hydraulic_observer import observer_step
from ..estimators.paper_reference import PaperModel, paper_step
from ..estimators.settings import ObserverSettings
from ..machine import Machine, load_machine
from ..report.json_file import check_json_file, write_json
from .timing import interleaved, machine_name

BATCH = 1000
DT = 1e-3
FIRST_STEP = '''
import time
start = time.perf_counter()
from mbse_ros.machine import load_machine
from mbse_ros.estimators.hydraulic_observer import HydraulicObserver
from mbse_ros.estimators.settings import ObserverSettings
import numpy as np
machine = load_machine('patu655_lift')
observer = HydraulicObserver(machine, ObserverSettings(), {backend!r})
observer.start(np.array([0.2, 5e6, 2e6]), np.zeros(1))
observer.process(np.array([[0.2, 5e6, 2e6]]), np.zeros((1, 1)), np.ones(3), 1e-3)
print(time.perf_counter() - start)
'''


def run_kernels(json_file: Path | None, rounds: int) -> None:
    """Measure, print and write."""
    check_json_file(json_file)
    machine = load_machine('patu655_lift')
    model = hydraulic_model(machine)
    backends = ['vm', *(['c'] if have_compiler() else [])]
    calls = {'numpy online': (_numpy_step(machine, model), 20)}
    for backend in backends:
        calls[f'{backend} online'] = (_online(machine, model, backend), 500)
        calls[f'{backend} batch'] = (_batch(machine, model, backend), 2)
    best = interleaved(calls, rounds)
    cases = [{'name': 'crane_observer_step', 'backend': backend, 'states': len(model.names),
              'online_us': 1e6 * best[f'{backend} online'], 'batch_us': 1e6 * best[f'{backend} batch'] / BATCH,
              'first_step_s': _first_step(backend)} for backend in backends]
    online = 1e6 * best['numpy online']
    cases.append({'name': 'crane_observer_step', 'backend': 'numpy', 'states': len(model.names), 'online_us': online,
                  'batch_us': online, 'first_step_s': None})
    result = {'machine': machine_name(), 'cases': cases}
    write_json(json_file, result)
    _show(result)


def _inputs(machine: Machine, model: HydraulicModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """State, measurement and parameters of a step while the crane lifts."""
    n = len(model.names)
    settings = ObserverSettings()
    X = np.array([0.2, 0.03, 0.0, 5.0e6, 3.0e6, 4.0])
    columns, rows = np.triu_indices(n)
    lower = np.zeros(len(rows))
    lower[columns == rows] = np.array([1e-4, 1e-2, 0.3, 5e3, 5e3, 1e-3]) ** 2
    variance, psd = np.array([4e-4, 12e3, 8e3]) ** 2, [getattr(settings, name) for name in NOISES]
    p = np.concatenate([[DT], psd, [settings.activity_range, 1e300], variance, machine.parameters.mean])
    return np.concatenate([X, lower, [4.0, 1.0]]), np.array([0.2, 5e6, 3e6, 4.0]), p


def _online(machine: Machine, model: HydraulicModel, backend: str) -> Callable[[], object]:
    """One step called from Python, into arrays that stay."""
    function = observer_step(machine, model, 'exact', 'van_loan')
    x, u, p = _inputs(machine, model)
    return Kernel(function, backend).bind((x, u, p), (np.empty(function.numel_out(0)), np.empty(function.numel_out(1))))


def _batch(machine: Machine, model: HydraulicModel, backend: str) -> Callable[[], object]:
    """A thousand steps in one call."""
    scan = Scan(observer_step(machine, model, 'exact', 'van_loan'), backend)
    x, u, p = _inputs(machine, model)
    us = np.tile(u, (BATCH, 1))
    x_out, ys = np.empty_like(x), np.empty((BATCH, len(model.names) + 2 * len(model.measured)))
    return lambda: scan.run(x, us, p, x_out, ys)


def _numpy_step(machine: Machine, model: HydraulicModel) -> Callable[[], object]:
    """The paper's step in NumPy with the Jacobian by hand."""
    paper, settings = PaperModel(machine), ObserverSettings()
    X, U = np.array([0.2, 0.03, 0.0, 5.0, 3.0, 4.0]), np.array([4.0])
    P = np.diag([1e-4, 1e-2, 0.3, 5e-3, 5e-3, 1e-3]) ** 2
    W = np.diag([0, 0, settings.acceleration_psd, *[settings.pressure_psd] * 2, settings.spool_psd])
    H = np.eye(6)[list(model.measured)]
    Y, R = np.array([0.2, 5.0, 3.0]), 10 * np.diag([4e-4, 12e-3, 8e-3]) ** 2
    return lambda: paper_step(paper, X, P, U, W, DT, H, Y, R)


def _first_step(backend: str) -> float:
    """From the first import to the end of the first step, in a new process with an empty cache, s."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, 'MBSE_CACHE_DIR': cache}
        done = subprocess.run([sys.executable, '-c', FIRST_STEP.format(backend=backend)], env=environment,
                              capture_output=True, text=True, check=True)
    return float(done.stdout)


def _show(result: dict) -> None:
    columns = ('case', 'backend', 'states', 'online us', 'batch us', 'first s')
    table = Table(*columns, title=result['machine'])
    for case in result['cases']:
        first = '' if case['first_step_s'] is None else f'{case["first_step_s"]:.2f}'
        table.add_row(case['name'], case['backend'], str(case['states']), f'{case["online_us"]:.2f}',
                      f'{case["batch_us"]:.2f}', first)
    Console().print(table)
    typer.echo('one step, minimum over interleaved bursts in one run; first: with imports and compilation')
