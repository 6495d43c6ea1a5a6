# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark simulation``: cost and error of a step of each scheme, beside Exudyn and MuJoCo where installed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from mbse_ros.dynamics.batch import simulate_runs
from mbse_ros.dynamics.integrators import INTEGRATORS
from mbse_ros.dynamics.integrators.task import MotionRecord, MotionTask
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.dynamics.motion import simulate, step_count
from mbse_ros.errors import MbseError, SettingError
from mbse_ros.report.files import check_file, write_json
from mbse_ros.report.text import number, print_table, wide_console
from mbse_ros.studies.many import machine_name
from mbse_ros.workers import processors

from .peer_model import NoPeerError, peer_model
from .peers import best_of, installed

# mechanism: s that it moves without a dead point or a free fall through its own bars
MECHANISMS = {'four_bar': 5.0, 'five_bar': 5.0, 'four_bar_spring': 5.0, 'slider_crank': 5.0, 'spatial_four_bar': 5.0,
              'excavator_arm': 1.0, 'andrews': 0.03, 'pendulum': 5.0, 'four_bar_adams': 5.0, 'three_rrr': 0.5,
              'spatial_crane': 0.5}
SHORTER = {'andrews': 0.01, 'three_rrr': 0.5, 'spatial_crane': 0.25}         # of the step asked for
SCHEMES = ('exponential', 'trapezoid', 'rk4', 'ali3p')
EQUAL = ('rk4', 'ali3p')        # schemes that are compared at the accuracy of a peer
LONGER = (16, 8, 4, 2, 1, 0.5, 0.25, 0.125, 0.0625)      # their steps, by that of the peer
COORDINATES = {'three_rrr': 'relative'}         # instead of the file's, which takes the paper's: half the cost
TRIED = 3               # ... so many of which are timed
ADAPTIVE = ('dop853', 'cvodes')
REFERENCE = 1e-10       # ... and its tolerance
VARIED = 0.01           # deviations of a batch: of lengths, by their size, and of the start, rad
LENGTHS = ('crank', 'coupler', 'rocker', 'ground')
PEER_NUMBERS = ('us_per_step', 'error', 'error_of_quarter', 'our_scheme', 'our_dt', 'our_us', 'our_error', 'ratio')
Row = dict[str, Any]


def run_simulation(json_file: Path | None, mechanisms: Sequence[str], dt: float, repeats: int, runs: int = 0) -> None:
    """Simulate, print, write; ``dt``, s; the fastest of ``repeats`` counts; a batch of ``runs``; or SettingError."""
    check_file(json_file)
    for name in mechanisms:
        if name not in MECHANISMS:
            raise SettingError('mechanism', name, 'one of ' + ', '.join(MECHANISMS))
    if not 1e-5 <= dt <= 1e-2:
        raise SettingError('dt', dt, 'a step from 1e-5 to 1e-2 s')
    console, chosen = wide_console(), mechanisms or tuple(MECHANISMS)
    rows, peers = [], []
    for name in track(chosen, 'simulating', transient=True, disable=not console.is_terminal):
        case = Case.of(name, dt * SHORTER.get(name, 1.0), repeats)
        rows += case.rows()
        peers += case.peer_rows()
    batch = batch_of(runs, dt) if runs else None
    write_json(json_file, {'machine': machine_name(), 'rows': rows, 'peers': peers, 'batch': batch})
    print_table(console, 'us of the processor a step; error: of the first independent coordinate at the end',
                ['mechanism', 'scheme', 'dt s', 's', 'us', 'error'],
                [[row['mechanism'], row['scheme'], number(row['dt']), number(row['duration_s']),
                  *(_cell(row[key]) for key in ('us_per_step', 'error'))] for row in rows])
    if peers:
        print_table(console, 'peers at their best setting; our cheapest scheme that is as accurate, us for their step',
                    ['mechanism', 'peer', 'setting', 'us', 'error', 'at dt/4', 'ours', 'dt s', 'us', 'error', 'ratio'],
                    [[row['mechanism'], row['peer'], row['no_peer'] or row['setting'],
                      *(_cell(row[key]) for key in PEER_NUMBERS)] for row in peers])
    if batch:
        console.print(f'{runs:,} runs of four_bar, {number(batch["duration_s"])} s each, in {batch["jobs"]} threads: '
                      f'{number(batch["wall_s"])} s, {number(batch["processor_s"])} s of the processor, '
                      f'{number(batch["us_per_step"])} us a step; {batch["failed"]} failed', markup=False)
    missing = {'exudyn', 'mujoco'} - set(installed())
    if missing:
        console.print(f'not installed, so not compared: {", ".join(sorted(missing))}', markup=False)


@dataclass(frozen=True)
class Case:
    """A mechanism that moves for ``duration``, s, in steps of ``dt``, s; ``true``: where its first independent
    coordinate is then."""

    name: str
    model: Model
    duration: float
    dt: float
    repeats: int
    true: float

    @classmethod
    def of(cls, name: str, dt: float, repeats: int) -> Case:
        """With the true motion by DOP853."""
        model, duration = load_model(name, COORDINATES.get(name)), MECHANISMS[name]
        step_count(duration, dt)
        end = simulate(model, duration, duration, 'dop853', rtol=1e-13, atol=1e-13).q[-1]
        return cls(name, model, duration, dt, repeats, float(end[model.z[0]]))

    @property
    def steps(self) -> int:
        """Number of steps."""
        return step_count(self.duration, self.dt)

    def rows(self) -> list[Row]:
        """A row for each scheme."""
        out = []
        for scheme in (*SCHEMES, *ADAPTIVE):
            cost, error = self.timed(scheme, self.steps)
            out.append({'mechanism': self.name, 'scheme': scheme, 'dt': self.dt, 'duration_s': self.duration,
                        'us_per_step': cost, 'error': error})
        return out

    def peer_rows(self) -> list[Row]:
        """A row for each peer that is installed."""
        out = []
        for peer in installed():
            row: Row = {'mechanism': self.name, 'peer': peer, 'dt': self.dt, 'setting': '', 'no_peer': None,
                        **dict.fromkeys(PEER_NUMBERS)}
            try:
                found = best_of(peer, peer_model(self.model), self.dt, self.steps, self.repeats, self.true)
                row |= {'setting': found.setting, 'us_per_step': found.us_per_step, 'error': found.error,
                        'error_of_quarter': found.finer_error, **self.as_accurate(found.error, found.us_per_step)}
            except NoPeerError as error:
                row['no_peer'] = str(error)
            out.append(row)
        return out

    def as_accurate(self, error: float, us_per_step: float) -> Row:
        """Our cheapest scheme and step that has no larger error, neither has half of it; by steps of the peer."""
        counts, found = [max(1, round(self.steps / longer)) for longer in LONGER], []
        for scheme in EQUAL:
            errors = [self.timed(scheme, count, once=True)[1] for count in counts]
            known = [np.inf if each is None else each for each in errors]
            for k in [k for k in range(len(counts) - 1) if max(known[k:k + 2]) <= error][:TRIED]:
                cost = (self.timed(scheme, counts[k])[0] or np.inf) * counts[k] / self.steps
                found.append((cost, scheme, self.duration / counts[k], known[k]))
        if not found:
            return {}
        cost, scheme, dt, ours = min(found)
        return {'our_scheme': scheme, 'our_dt': dt, 'our_us': cost, 'our_error': ours, 'ratio': us_per_step / cost}

    def timed(self, scheme: str, steps: int, once: bool = False) -> tuple[float | None, float | None]:
        """Microseconds of the processor a step, compiled before, and the error at the end; None where it fails."""
        model, dt = self.model, self.duration / steps
        times, best, end = model.start.t + dt * np.arange(steps + 1), np.inf, np.nan
        options = {'rtol': REFERENCE, 'atol': REFERENCE} if scheme in ADAPTIVE else {}
        try:
            for _ in range(1 if once else self.repeats + 1):
                task = MotionTask(model, model.start, times, dt, scheme, compiled=True)
                record = MotionRecord.of(model, times)
                begin = time.process_time()
                INTEGRATORS[scheme](task, record, **options)
                best = min(best, time.process_time() - begin)
                end = float(record.q[-1, model.z[0]])
        except MbseError:
            return None, None
        return 1e6 * best / steps, abs(end - self.true)


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


def _cell(value: float | str | None) -> str:
    return '–' if value is None else value if isinstance(value, str) else number(value)
