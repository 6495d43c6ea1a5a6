# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark kernels``: cost of one observer step and of the first one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import typer

from mbse_ros.compiled import Kernel, Scan, have_compiler
from mbse_ros.errors import SettingError
from mbse_ros.filters.hydraulic_model import HydraulicModel, hydraulic_model
from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine, load_machine
from mbse_ros.report.files import check_file, write_json
from mbse_ros.report.text import print_table, wide_console
from mbse_ros.studies.many import machine_name

from .paper_reference import PaperModel, paper_step
from .timing import interleaved

BATCH = 1000
DT = 1e-3
CASES = {'crane_observer_step': ('patu655_lift', 'apart'), 'crane_weighing_step': ('patu655_lift', 'joint'),
         'zx200_observer_step': ('zx200', 'joint')}     # machine, observer.weighing
PRESSURE, COMMAND = 5e6, 4.0       # Pa, V: a machine at work
FIRST_STEP = '''
import sys, time
sys.path.insert(0, {folder!r})
start = time.perf_counter()
from mbse_ros.machine import load_machine
from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.observer_settings import ObserverSettings
from studies.kernels import usual_samples
import numpy as np
machine = load_machine({machine!r})
settings, (values, commands) = ObserverSettings(weighing={weighing!r}), usual_samples(machine)
observer = HydraulicObserver(machine, settings, {backend!r})
observer.start(values, commands)
observer.process(values[None], commands[None], np.ones(len(values)), 1e-3)
print(time.perf_counter() - start)
'''


def run_kernels(json_file: Path | None, rounds: int, chosen: Sequence[str] = ()) -> None:
    """Measure, print and write; ``chosen`` cases, none: all. Raises SettingError for an unknown one."""
    check_file(json_file)
    for name in chosen:
        if name not in CASES:
            raise SettingError('case', name, 'one of ' + ', '.join(CASES))
    names = [name for name in CASES if name in chosen or not chosen]
    machines = {name: load_machine(CASES[name][0]) for name in names}
    models = {name: model_of(name, machines[name]) for name in names}
    backends = ['vm', *(['c'] if have_compiler() else [])]
    crane, *_ = CASES
    calls = {'numpy': (_numpy_step(machines[crane], models[crane]), 20)} if crane in names else {}
    for name, backend in product(names, backends):
        online, batch = _steps(machines[name], CASES[name][1], backend)
        calls[f'{name} {backend} online'], calls[f'{name} {backend} batch'] = (online, 500), (batch, 2)
    best = interleaved(calls, rounds)
    cases = [{'name': name, 'backend': backend, 'states': len(models[name].names),
              'online_us': 1e6 * best[f'{name} {backend} online'],
              'batch_us': 1e6 * best[f'{name} {backend} batch'] / BATCH,
              'first_step_s': _first_step(*CASES[name], backend)} for name, backend in product(names, backends)]
    if crane in names:
        cost = 1e6 * best['numpy']
        cases.insert(len(backends), {'name': crane, 'backend': 'numpy', 'states': len(models[crane].names),
                                     'online_us': cost, 'batch_us': cost, 'first_step_s': None})
    result = {'machine': machine_name(), 'cases': cases}
    write_json(json_file, result)
    _show(result)


def model_of(case: str, machine: Machine) -> HydraulicModel:
    """What the observer of a case estimates."""
    return hydraulic_model(machine, CASES[case][1] == 'joint')


def usual_samples(machine: Machine) -> tuple[np.ndarray, np.ndarray]:
    """Samples (channels,) and commands (valves,) of a machine at the start of its file, all volumes at 5 MPa."""
    start = dict(zip(machine.system.names, machine.model.start.q))
    values = [PRESSURE if channel.kind == 'pressure' else start.get(channel.name.partition('/')[2], 0.0)
              for channel in machine.all_channels]
    return np.array(values), np.full(len(machine.commands), COMMAND)


def _steps(machine: Machine, weighing: str, backend: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """One step called from Python, into arrays that stay, and a thousand steps in one call."""
    settings, (values, commands) = ObserverSettings(weighing=weighing), usual_samples(machine)
    observer = HydraulicObserver(machine, settings, 'vm')
    observer.start(values, commands)
    function, x, p = observer.step(DT)
    u = np.concatenate([values, commands])
    results = np.empty(function.numel_out(0)), np.empty(function.numel_out(1))
    online = Kernel(function, backend).bind((x, u, p), results)
    scan, us, x_out = Scan(function, backend), np.tile(u, (BATCH, 1)), np.empty_like(x)
    ys = np.empty((BATCH, function.numel_out(1)))
    return online, lambda: scan.run(x, us, p, x_out, ys)


def _numpy_step(machine: Machine, model: HydraulicModel) -> Callable[[], object]:
    """The paper's step in NumPy with the Jacobian by hand."""
    paper, settings = PaperModel(machine), ObserverSettings()
    X, U = np.array([0.2, 0.03, 0.0, 5.0, 3.0, 4.0]), np.array([4.0])
    P = np.diag([1e-4, 1e-2, 0.3, 5e-3, 5e-3, 1e-3]) ** 2
    W = np.diag([0, 0, settings.acceleration_psd, *[settings.pressure_psd] * 2, settings.spool_psd])
    H = np.eye(6)[[item.index for item in model.measured if item.index is not None]]
    Y, R = np.array([0.2, 5.0, 3.0]), 10 * np.diag([4e-4, 12e-3, 8e-3]) ** 2
    return lambda: paper_step(paper, X, P, U, W, DT, H, Y, R)


def _first_step(machine: str, weighing: str, backend: str) -> float:
    """From the first import to the end of the first step, in a new process with an empty cache, s."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, 'MBSE_CACHE_DIR': cache}
        program = FIRST_STEP.format(folder=str(Path(__file__).parents[1]), machine=machine, weighing=weighing,
                                    backend=backend)
        done = subprocess.run([sys.executable, '-c', program], env=environment, capture_output=True, text=True,
                              check=True)
    return float(done.stdout)


def _show(result: dict[str, Any]) -> None:
    rows = [(case['name'], case['backend'], str(case['states']), f'{case["online_us"]:.2f}', f'{case["batch_us"]:.2f}',
             '' if case['first_step_s'] is None else f'{case["first_step_s"]:.2f}') for case in result['cases']]
    columns = ('case', 'backend', 'states', 'online us', 'batch us', 'first s')
    print_table(wide_console(), result['machine'], columns, rows)
    typer.echo('one step, minimum over interleaved bursts in one run; first: with imports and compilation')
