# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark simulation``: cost and error of a step of each scheme, beside Exudyn and MuJoCo where installed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from ..dynamics.batch import simulate_runs
from ..dynamics.integrators import INTEGRATORS
from ..dynamics.integrators.task import Record, Task
from ..dynamics.model import Model, load_model
from ..dynamics.motion import simulate, step_count
from ..errors import MbseError, SettingError
from ..report.files import check_file, write_json
from ..report.sections import print_table, wide_console
from ..report.text import number
from ..workers import processors
from .peers import Chain, installed
from .timing import machine_name

# mechanism: s that it moves without a dead point or a free fall through its own bars
MECHANISMS = {'four_bar': 5.0, 'five_bar': 5.0, 'four_bar_spring': 5.0, 'slider_crank': 5.0, 'spatial_four_bar': 5.0,
              'excavator_arm': 1.0, 'andrews': 0.03, 'pendulum': 5.0, 'four_bar_adams': 5.0, 'three_rrr': 0.5,
              'spatial_crane': 0.5}
SHORTER = {'andrews': 0.01, 'three_rrr': 0.4, 'spatial_crane': 0.25}         # of the step asked for
SCHEMES = ('exponential', 'trapezoid', 'ali3p')
REFERENCE = 1e-10       # tolerance of the row of DOP853
VARIED = 0.01           # deviations of a batch: of lengths, by their size, and of the start, rad
# pins of the ground, m, points between, and masses of the bars, kg
CHAINS = {'four_bar': ((0.0, 0.0), ('P1', 'P2'), (10.0, 0.0), (2.0, 8.0, 5.0)),
          'five_bar': ((0.0, 0.0), ('P1', 'P2', 'P3'), (3.0, 0.0), (3.0, 1.0, 2.0, 3.0))}
# why no peer does the others: ``peers.Chain`` is all that it is given
OTHERWISE = {'four_bar_spring': 'a spring', 'slider_crank': 'a slider', 'spatial_four_bar': 'not plane',
             'excavator_arm': 'cylinders', 'andrews': 'bodies that are not bars', 'pendulum': 'an open chain',
             'four_bar_adams': 'gravity of its own', 'three_rrr': 'slots and a platform', 'spatial_crane': 'not plane'}
LENGTHS = ('crank', 'coupler', 'rocker', 'ground')
Row = dict[str, Any]


def run_simulation(json_file: Path | None, mechanisms: Sequence[str], dt: float, repeats: int, runs: int = 0) -> None:
    """Simulate, print, write; ``dt``, s; the fastest of ``repeats`` counts; a batch of ``runs``; or SettingError."""
    check_file(json_file)
    for name in mechanisms:
        if name not in MECHANISMS:
            raise SettingError('--mechanism', name, 'one of ' + ', '.join(MECHANISMS))
    if not 1e-5 <= dt <= 1e-2:
        raise SettingError('--dt', dt, 'a step from 1e-5 to 1e-2 s')
    console, chosen = wide_console(), mechanisms or tuple(MECHANISMS)
    rows = [row for name in track(chosen, 'simulating', transient=True, disable=not console.is_terminal)
            for row in rows_of(name, dt * SHORTER.get(name, 1.0), repeats)]
    batch = batch_of(runs, dt) if runs else None
    write_json(json_file, {'machine': machine_name(), 'rows': rows, 'batch': batch})
    print_table(console, 'us of the processor a step; error: of the first independent coordinate at the end',
                ['mechanism', 'scheme', 'dt s', 's', 'us', 'error', 'peer', 'peer us', 'peer error'],
                [[row['mechanism'], row['scheme'], number(row['dt']), number(row['duration_s']),
                  *(_cell(row[key]) for key in ('us_per_step', 'error')), _peer(row),
                  *(_cell(row[key]) for key in ('peer_us_per_step', 'peer_error'))] for row in rows])
    if batch:
        console.print(f'{runs:,} runs of four_bar, {number(batch["duration_s"])} s each, in {batch["jobs"]} threads: '
                      f'{number(batch["wall_s"])} s, {number(batch["processor_s"])} s of the processor, '
                      f'{number(batch["us_per_step"])} us a step; {batch["failed"]} failed', markup=False)
    missing = {'exudyn', 'mujoco'} - set(installed())
    if missing:
        console.print(f'not installed, so not compared: {", ".join(sorted(missing))}', markup=False)


def rows_of(name: str, dt: float, repeats: int) -> list[Row]:
    """A row for each scheme, of the first one for each peer that is installed and can do the mechanism."""
    model, duration = load_model(name), MECHANISMS[name]
    steps = step_count(duration, dt)
    true = simulate(model, duration, duration, 'dop853', rtol=1e-13, atol=1e-13).q[-1]
    place = model.z[0]
    rows = []
    for scheme in SCHEMES:
        cost, error = timed(model, scheme, dt, steps, repeats, true[place])
        row = {'mechanism': name, 'scheme': scheme, 'dt': dt, 'duration_s': duration, 'us_per_step': cost,
               'error': error, 'peer': 'none', 'peer_us_per_step': None, 'peer_error': None,
               'no_peer': OTHERWISE.get(name) or ('not installed' if not installed() else None)}
        peers = peer_rows(name, model, dt, steps, repeats, true[place]) if scheme == SCHEMES[0] else []
        rows += [{**row, **peer, 'no_peer': None} for peer in peers] or [row]
    cost, error = timed(model, 'dop853', dt, steps, repeats, true[place], rtol=REFERENCE, atol=REFERENCE)
    return [*rows, {**row, 'scheme': 'dop853', 'us_per_step': cost, 'error': error}]


def timed(model: Model, scheme: str, dt: float, steps: int, repeats: int, true: float, **options: float
          ) -> tuple[float | None, float | None]:
    """Microseconds of the processor a step, compiled before, and the error at the end; None where the scheme fails."""
    times, best, end = model.start.t + dt * np.arange(steps + 1), np.inf, np.nan
    try:
        for _ in range(repeats + 1):
            task, record = Task(model, model.start, times, dt, scheme), Record.of(model, times)
            begin = time.process_time()
            INTEGRATORS[scheme](task, record, **options)
            best = min(best, time.process_time() - begin)
            end = float(record.q[-1, model.z[0]])
    except MbseError:
        return None, None
    return 1e6 * best / steps, abs(end - true)


def batch_of(runs: int, dt: float, duration: float = 10.0) -> Row:
    """Cost of a batch of the four-bar, with lengths and starts of its own in each run; compiled before."""
    model, draw = load_model('four_bar', free=LENGTHS), np.random.default_rng(1)
    z, zd = (np.tile(x[model.z], (runs, 1)) for x in (model.start.q, model.start.qd))
    z = z + VARIED * draw.standard_normal(z.shape)
    p = model.parameters * (1 + VARIED * draw.standard_normal((runs, len(model.parameters))))
    steps = step_count(duration, dt)
    every = steps // 100 if steps % 100 == 0 else steps
    simulate_runs(model, duration, dt, z=z[:1], zd=zd[:1], parameters=p[:1], every=every)
    begin, wall = time.process_time(), time.perf_counter()
    batch = simulate_runs(model, duration, dt, z=z, zd=zd, parameters=p, every=every)
    wall, seconds = time.perf_counter() - wall, time.process_time() - begin
    return {'mechanism': 'four_bar', 'scheme': 'exponential', 'runs': runs, 'duration_s': duration, 'dt': dt,
            'jobs': processors(), 'wall_s': wall, 'processor_s': seconds,
            'us_per_step': 1e6 * seconds / max(1, int(batch.steps.sum())),
            'failed': sum(failure is not None for failure in batch.failures)}


def peer_rows(name: str, model: Model, dt: float, steps: int, repeats: int, true: float) -> list[Row]:
    """What the peers take and how far off they are."""
    if name not in CHAINS:
        return []
    chain, rows = chain_of(name, model), []
    for peer, run in installed().items():
        found = [run(chain, dt, steps) for _ in range(repeats)]
        rows.append({'peer': peer, 'peer_us_per_step': 1e6 * min(seconds for seconds, _ in found) / steps,
                     'peer_error': abs(found[0][1] - true)})
    return rows


def chain_of(name: str, model: Model) -> Chain:
    """The bars of a mechanism where it starts."""
    first, between, last, masses = CHAINS[name]
    at = [[model.start.q[model.names.index(f'{point}.{axis}')] for axis in 'xy'] for point in between]
    return Chain(np.array([first, *at, last], dtype=float), masses)


def _peer(row: Row) -> str:
    """The peer, or none and why."""
    return str(row['peer']) if row['no_peer'] is None else f'none: {row["no_peer"]}'


def _cell(value: float | None) -> str:
    return '–' if value is None else number(value)
